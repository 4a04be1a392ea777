//! Study files: from YAML to checked cells.
//!
//! ```yaml
//! question: what does offloading buy under KV pressure?
//! base: {cluster: {instances: 4}, workload: {preset: multi-turn-4x512}}
//! seeds: 3
//! arms:
//!   - {name: no tier}
//!   - {name: async, set: {kv_tier: {cpu_blocks: 5000, reload: async}}}
//! sweep: {engine.total_kv_blocks: [10000, 3000]}
//! metrics: [ttft_p99, hit_rate]
//! ```

use super::{Cell, Study};
use crate::metric::Metric;
use crate::problem::{Place, Problem};
use crate::scenario::Draft;
use crate::yaml::{self, Kind, Node, Whole};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;

/// Most cells of a study, times seeds.
const MOST_TRIALS: usize = 100_000;
const DEFAULT_SEEDS: u64 = 3;
const FIRST_SEED: u64 = 42;

/// A study as written. Patches are taken from the tree: they are scenarios, and checked as such.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFields {
    question: String,
    #[expect(dead_code, reason = "read from the tree, with places")]
    base: IgnoredAny,
    #[serde(default)]
    arms: Vec<PatchFields>,
    #[serde(default)]
    workloads: Vec<PatchFields>,
    #[serde(default)]
    sweep: Option<IgnoredAny>,
    #[serde(default)]
    seeds: Option<Whole<1, 1_000>>,
    metrics: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchFields {
    name: String,
    #[serde(default)]
    #[expect(dead_code, reason = "read from the tree, with places")]
    set: Option<IgnoredAny>,
}

/// One thing that cells differ in: its name, and its levels with what each of them sets.
struct Factor {
    name: String,
    levels: Vec<Level>,
}

/// One of the things that it can be.
struct Level {
    name: String,
    settings: Vec<Setting>,
}

/// A field of the scenario, step by step, and its value.
type Setting = (Vec<String>, Node);

/// Reads the study in the file `path` and checks every scenario in it.
///
/// # Errors
/// If it cannot be read, or anything in it is illegal.
pub fn read(path: &Path) -> Result<Study, Problem> {
    let tree = yaml::read_file(path)?;
    study(&tree)
}

fn study(tree: &Node) -> Result<Study, Problem> {
    let fields: StudyFields = yaml::decode(tree)?;
    let metrics = metrics(tree, &fields.metrics)?;
    let mut factors = Vec::new();
    for (name, patches) in [("workloads", &fields.workloads), ("arms", &fields.arms)] {
        if !patches.is_empty() {
            factors.push(patched(tree, name, patches)?);
        }
    }
    if fields.sweep.is_some() {
        factors.extend(swept(tree)?);
    }
    let seeds = fields.seeds.map_or(DEFAULT_SEEDS, Whole::get);
    let cells: usize = factors.iter().map(|factor| factor.levels.len()).product();
    let seeds_count = usize::try_from(seeds).unwrap_or(usize::MAX);
    if cells.saturating_mul(seeds_count) > MOST_TRIALS {
        let message = format!("{cells} cells and {seeds} seeds; legal: at most {MOST_TRIALS} runs");
        return Err(Problem::new(tree.place.clone(), "", message));
    }
    let base = tree.field("base").cloned().unwrap_or_else(Node::empty);
    let base = match &base.kind {
        Kind::Scalar { text, .. } => yaml::read_file(&beside(&base.place, text))?,
        _ => base,
    };
    let cells = (0..cells).map(|number| cell(&base, &factors, number)).collect::<Result<_, _>>()?;
    Ok(Study {
        question: fields.question,
        factors: factors.into_iter().map(|factor| factor.name).collect(),
        cells,
        seeds: (FIRST_SEED..FIRST_SEED + seeds).collect(),
        metrics,
    })
}

/// `path` relative to the file that it stands in.
fn beside(place: &Place, path: &str) -> std::path::PathBuf {
    match place {
        Place::File { file, .. } => {
            Path::new(&**file).parent().map_or_else(|| path.into(), |folder| folder.join(path))
        }
        _ => path.into(),
    }
}

fn metrics(tree: &Node, names: &[String]) -> Result<Vec<Metric>, Problem> {
    if names.is_empty() {
        let message = "there are none; name at least one, e.g. `ttft_p99`";
        return Err(Problem::new(tree.place_of("metrics"), "metrics", message));
    }
    let parse = |(index, name): (usize, &String)| {
        let path = format!("metrics[{index}]");
        Metric::parse(name).map_err(|text| Problem::new(tree.place_of(&path), path, text))
    };
    names.iter().enumerate().map(parse).collect()
}

/// The factor whose levels are the patches at `field`.
fn patched(tree: &Node, field: &str, patches: &[PatchFields]) -> Result<Factor, Problem> {
    let Some(Kind::List(items)) = tree.field(field).map(|node| &node.kind) else {
        return Err(Problem::new(tree.place_of(field), field, "found no list; legal: a list"));
    };
    let mut levels: Vec<Level> = Vec::new();
    for (index, (patch, node)) in patches.iter().zip(items).enumerate() {
        if levels.iter().any(|level| level.name == patch.name) {
            let path = format!("{field}[{index}].name");
            let message = format!("found `{}` for the second time; give it another", patch.name);
            return Err(Problem::new(tree.place_of(&path), path, message));
        }
        let mut settings = Vec::new();
        if let Some(set) = node.field("set") {
            collect(set, &mut Vec::new(), &mut settings);
        }
        levels.push(Level { name: patch.name.clone(), settings });
    }
    let name = field.strip_suffix('s').unwrap_or(field).to_owned();
    Ok(Factor { name, levels })
}

/// The leaves of a patch and their paths. An empty group sets nothing.
fn collect(node: &Node, path: &mut Vec<String>, settings: &mut Vec<Setting>) {
    match &node.kind {
        Kind::Map(fields) if !fields.is_empty() => {
            for (name, _, value) in fields {
                path.push(name.clone());
                collect(value, path, settings);
                path.pop();
            }
        }
        _ => settings.push((path.clone(), node.clone())),
    }
}

/// The factors that are swept: a field's path, and its values.
fn swept(tree: &Node) -> Result<Vec<Factor>, Problem> {
    let illegal = |path: &str, message: &str| {
        Err(Problem::new(tree.place_of(path), path.to_owned(), message))
    };
    let Some(Kind::Map(fields)) = tree.field("sweep").map(|node| &node.kind) else {
        return illegal("sweep", "legal: fields of a scenario with lists of values");
    };
    let mut factors = Vec::new();
    for (name, place, values) in fields {
        let steps: Vec<String> = name.split('.').map(str::to_owned).collect();
        let Kind::List(values) = &values.kind else {
            let message = "found one value; legal: a list of values";
            return Err(Problem::new(place.clone(), format!("sweep.{name}"), message));
        };
        if values.is_empty() {
            let message = "found an empty list; legal: at least one value";
            return Err(Problem::new(place.clone(), format!("sweep.{name}"), message));
        }
        let levels = values
            .iter()
            .map(|value| Level {
                name: shown(value),
                settings: vec![(steps.clone(), value.clone())],
            })
            .collect();
        factors.push(Factor { name: name.clone(), levels });
    }
    Ok(factors)
}

/// A value as the name of a level.
fn shown(value: &Node) -> String {
    match &value.kind {
        Kind::Null => "none".to_owned(),
        Kind::Scalar { text, .. } => text.clone(),
        Kind::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Kind::Map(fields) => {
            let parts: Vec<String> =
                fields.iter().map(|(name, _, value)| format!("{name}={}", shown(value))).collect();
            parts.join(",")
        }
    }
}

/// Cell `number` of all combinations; the last factor changes fastest.
fn cell(base: &Node, factors: &[Factor], number: usize) -> Result<Cell, Problem> {
    let mut tree = base.clone();
    let mut levels = Vec::new();
    let mut left = number;
    let mut chosen = Vec::new();
    for factor in factors.iter().rev() {
        chosen.push(&factor.levels[left % factor.levels.len()]);
        left /= factor.levels.len();
    }
    for Level { name, settings } in chosen.into_iter().rev() {
        for (path, value) in settings {
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            tree.set(&steps, value.clone());
        }
        levels.push(name.clone());
    }
    let plan = Draft::from_tree(tree).resolve().map_err(|problem| {
        let cell = levels.join(", ");
        let message = if cell.is_empty() {
            problem.message.clone()
        } else {
            format!("{} (in the cell {cell})", problem.message)
        };
        Problem { message, ..problem }
    })?;
    Ok(Cell { levels, plan })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Study, String> {
        let tree = yaml::read_text("s.yaml", text).expect("well-formed");
        study(&tree).map_err(|problem| problem.to_string())
    }

    const STUDY: &str = "
question: does it matter?
base: {cluster: {instances: 2}, routing: {policy: weighted, scorers: 'pa:1'}}
seeds: 2
arms:
  - {name: base}
  - {name: plain, set: {routing: round-robin}}
sweep: {engine.total_kv_blocks: [900, 800], seed: [1, 2, 3]}
metrics: [ttft_p99, critical.e2e_mean]
";

    #[test]
    fn every_combination_is_a_cell_and_the_last_factor_changes_fastest() {
        let study = read(STUDY).expect("legal");
        assert_eq!(study.factors, ["arm", "engine.total_kv_blocks", "seed"]);
        assert_eq!((study.cells.len(), study.trials()), (12, 24));
        assert_eq!(study.cells[0].levels, ["base", "900", "1"]);
        assert_eq!(study.cells[1].levels, ["base", "900", "2"]);
        assert_eq!(study.cells[11].levels, ["plain", "800", "3"]);
        let last = &study.cells[11].plan;
        assert_eq!((last.engine.total_kv_blocks, last.instances), (800, 2));
        assert_eq!(last.policies.routing, "round-robin", "the patch replaces the whole policy");
    }

    #[test]
    fn mistakes_are_told_with_their_place_before_anything_runs() {
        for (from, to, message) in [
            ("ttft_p99, ", "ttft_p98, ", "s.yaml:9:11: metrics[0]: unknown number `ttft_p98`"),
            ("round-robin", "robin", "unknown routing policy `robin`"),
            ("[900, 800]", "[900, 0]", "s.yaml:8:39: engine.total_kv_blocks: found `0`; legal: a"),
            ("[900, 800]", "900", "sweep.engine.total_kv_blocks: found one value; legal: a list"),
            ("name: plain", "name: base", "arms[1].name: found `base` for the second time"),
            ("seeds: 2", "seeds: 99999", "seeds: found `99999`; legal: a whole number from 1 to"),
            ("question: does it matter?", "", "field `question` is missing"),
        ] {
            let text = STUDY.replace(from, to);
            assert_ne!(text, STUDY);
            let found = read(&text).expect_err(message);
            assert!(found.contains(message), "{found}\nnot: {message}");
        }
        let in_cell = read(&STUDY.replace("[900, 800]", "[900, 0]")).expect_err("illegal");
        assert!(in_cell.ends_with("(in the cell base, 0, 1)"), "{in_cell}");
    }
}
