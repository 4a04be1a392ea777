//! Comparisons: scenario files as the arms of a study that claims nothing.

use super::file::warmup;
use super::levels::{self, Choices, Level};
use super::patch::{self, Once, settings};
use super::{Cell, Outline, Study};
use crate::metric::Metric;
use blis_scenario::Files;
use blis_scenario::problem::{Place, Problem};
use blis_scenario::problems::{Problems, Together, every};
use blis_scenario::yaml::{self, Kind, Node};
use std::path::PathBuf;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Sides<'a> {
    /// Scenario files. The first is what the others, and the arms, are compared with.
    pub files: &'a [PathBuf],
    /// Patches on the first: `name: {...}`.
    pub arms: &'a [String],
    /// Numbers.
    pub metrics: Vec<Metric>,
    /// How many seeds each is run with.
    pub seeds: usize,
    /// What to leave out of each run: `auto`, or seconds.
    pub warmup: Option<&'a str>,
}

/// The study that compares `sides`.
///
/// # Errors
/// If a file cannot be read, or anything is illegal.
pub fn compare(sides: &Sides<'_>) -> Result<Outline, Problems> {
    let mut arms: Vec<(String, Node)> = Vec::new();
    for file in sides.files {
        let tree = yaml::read_file(file)?;
        let name = tree.field("name").and_then(Node::text).map(str::to_owned);
        // Scenarios of one name are told apart by their files, and these by their folders.
        let alike = sides.files.iter().filter(|other| other.file_stem() == file.file_stem());
        let stem = file.file_stem().filter(|_| alike.count() == 1);
        let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
        let is_new = |name: &String| arms.iter().all(|(other, _)| other != name);
        let name = name.filter(is_new).or(stem.filter(is_new));
        arms.push((name.unwrap_or_else(|| file.display().to_string()), tree));
    }
    let base = arms.first().map_or_else(Node::empty, |(_, tree)| tree.clone());
    for text in sides.arms {
        let (name, patch) = arm(text)?;
        let mut tree = base.clone();
        patch::apply(&mut tree, &settings(&patch));
        arms.push((name, tree));
    }
    if let Some((name, _)) = arms
        .iter()
        .enumerate()
        .find(|(index, (name, _))| arms[..*index].iter().any(|(other, _)| other == name))
        .map(|(_, arm)| arm)
    {
        let message = format!("found `{name}` twice; rename one");
        return Err(Problem::new(Place::Unknown, "", message).into());
    }
    let names: Vec<String> = arms.iter().map(|(name, _)| name.clone()).collect();
    let choices = vec![Choices {
        name: "arm".to_owned(),
        stated: names.len(),
        levels: names.iter().cloned().map(Level::named).collect(),
    }];
    let files = Files::default();
    let mut once = Once::new(&files);
    let cell = |(name, tree): (String, Node)| {
        let levels = vec![name];
        let checked = once.resolve(&tree, &patch::cell(&levels))?;
        Ok::<_, Problems>((
            Cell { plan: checked.plan().clone(), levels, own_warmup: false, tuned: None, tree },
            checked,
        ))
    };
    let flag = Node::from_flag("--warmup", sides.warmup.unwrap_or_default());
    let warmup = warmup(&flag, sides.warmup, false);
    let (cells, warmup) = (every(arms.into_iter().map(cell)), warmup).together()?;
    let (cells, checked) = cells.into_iter().unzip();
    let study = Study {
        question: names.join(" or "),
        factors: vec!["arm".to_owned()],
        design: levels::design(&choices),
        cells,
        first_seed: Study::FIRST_SEED,
        seeds: sides.seeds,
        max_seeds: sides.seeds,
        warmup,
        as_written: false,
        metrics: sides.metrics.clone(),
        hypotheses: Vec::new(),
        capacity: None,
        discussion: None,
        components: Vec::new(),
        levels: choices,
        base,
        files,
    };
    Ok(Outline { study, cells: checked })
}

/// The name and the patch in `name: {...}`.
fn arm(text: &str) -> Result<(String, Node), Problem> {
    let tree = yaml::read_text("--arm", text)?;
    match tree.kind {
        Kind::Map(fields) if fields.len() == 1 => {
            let (name, _, patch) = fields.into_iter().next().expect("there is one");
            Ok((name, patch))
        }
        _ => {
            let message =
                format!("found `{text}`; legal: a name and a patch, e.g. `two: {{tp: 2}}`");
            Err(Problem::new(Place::Flag("--arm".into()), "", message))
        }
    }
}
