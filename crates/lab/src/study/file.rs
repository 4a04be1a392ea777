//! Study files: from YAML to checked cells.
//!
//! ```yaml
//! question: what does offloading buy under KV pressure?
//! base: {cluster: {instances: 4}, workload: {preset: multi-turn-4x512}}
//! seeds: 5
//! max_seeds: 40
//! arms:
//!   - {name: no tier}
//!   - {name: async, set: {kv_tier: {cpu_blocks: 5000, reload: async}}}
//! sweep: {engine.total_kv_blocks: [10000, 3000]}
//! metrics: [ttft_p99, hit_rate]
//! hypotheses:
//!   - claim: ttft_p99(async) <= 0.8 * ttft_p99(no tier)
//!     because: blocks that come back need not be computed again
//!     fires: [reloaded_blocks(async)]
//! ```

use super::Outline;
use super::arms::{self, Component};
use super::capacity::{CapacityFields, question};
use super::levels::{self, Choices, Level};
use super::predictions::hypotheses;
use super::{Cell, Study, Warmup, patch};
use crate::design::Design;
use crate::metric::Metric;
use blis_scenario::problem::{Place, Problem};
use blis_scenario::yaml::{self, Kind, Node, Whole};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;

/// Most cells of a study, times seeds.
const MOST_TRIALS: usize = 100_000;
const DEFAULT_SEEDS: u64 = 3;
/// Studies that claim something start with more: fewer can hardly tell anything.
const DEFAULT_SEEDS_CLAIMING: u64 = 5;
/// Most hypotheses of a study.
const MOST_HYPOTHESES: usize = 64;

/// A study as written. Patches are taken from the tree: they are scenarios, and checked as such.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFields {
    question: String,
    #[expect(dead_code, reason = "read from the tree, with places")]
    base: IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "read from the tree, with places")]
    components: Option<IgnoredAny>,
    #[serde(default)]
    matrix: Vec<String>,
    #[serde(default)]
    arms: Vec<PatchFields>,
    #[serde(default)]
    workloads: Vec<PatchFields>,
    #[serde(default)]
    sweep: Option<IgnoredAny>,
    #[serde(default)]
    references: Option<bool>,
    #[serde(default)]
    first_seed: Option<Whole<{ Study::FIRST_SEED }, 9_000>>,
    #[serde(default)]
    seeds: Option<Whole<1, 1_000>>,
    #[serde(default)]
    max_seeds: Option<Whole<1, 1_000>>,
    #[serde(default)]
    warmup: Option<String>,
    #[serde(default)]
    capacity: Option<CapacityFields>,
    metrics: Vec<String>,
    #[serde(default)]
    hypotheses: Vec<HypothesisFields>,
    #[serde(default)]
    discussion: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchFields {
    pub(super) name: String,
    #[serde(default)]
    pub(super) with: Vec<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "read from the tree, with places")]
    set: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) tests: Option<String>,
}

/// A hypothesis as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HypothesisFields {
    #[serde(default)]
    pub(super) name: Option<String>,
    pub(super) claim: String,
    #[serde(default)]
    pub(super) predict: Option<String>,
    #[serde(default)]
    pub(super) because: Option<String>,
    #[serde(default)]
    pub(super) fires: Vec<String>,
    #[serde(default, rename = "in")]
    #[expect(dead_code, reason = "read from the tree, with places")]
    workloads: Option<IgnoredAny>,
}

/// What a file of experiments holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A study: it has `metrics`.
    Study,
    /// A search for [`optimize`](crate::optimize): it has an `objective` or says what to
    /// `maximise`.
    Search,
    /// Neither.
    Other,
}

/// What the file `path` holds, by its fields; whether it is legal is not looked at.
///
/// # Errors
/// If it cannot be read or is not well-formed YAML.
pub fn form(path: &Path) -> Result<Form, Problem> {
    let tree = yaml::read_file(path)?;
    Ok(match tree {
        tree if tree.has("objective") || tree.has("maximise") => Form::Search,
        tree if tree.has("metrics") => Form::Study,
        _ => Form::Other,
    })
}

/// Reads the study in the file `path` and checks every scenario in it.
///
/// # Errors
/// If it cannot be read, or anything in it is illegal.
pub fn read(path: &Path) -> Result<Outline, Problem> {
    let tree = yaml::read_file(path)?;
    study(&tree)
}

/// Reads the study in `text` as if it stood in a file called `name`, beside which are the files
/// that it names.
///
/// # Errors
/// If anything in it is illegal.
pub fn read_text(name: &str, text: &str) -> Result<Outline, Problem> {
    study(&yaml::read_text(name, text)?)
}

pub(super) fn study(tree: &Node) -> Result<Outline, Problem> {
    let fields: StudyFields = yaml::decode(tree)?;
    let base = base(tree)?;
    let components = arms::components(tree);
    let factors = factors(tree, &fields, &base, &components)?;
    let (seeds, max_seeds) = seeds(tree, &fields)?;
    let warmup = warmup(tree, fields.warmup.as_deref(), !fields.hypotheses.is_empty())?;
    let capacity = fields.capacity.as_ref().map(|fields| question(tree, fields, warmup));
    let capacity = capacity.transpose()?;
    let searched = capacity.as_ref().map(|question| question.vary.metric());
    let design = Design { searched, ..levels::design(&factors) };
    let metrics = metrics(tree, &fields.metrics, &design)?;
    if design.cells().saturating_mul(max_seeds) > MOST_TRIALS {
        let cells = design.cells();
        let message =
            format!("{cells} cells and {max_seeds} seeds; legal: at most {MOST_TRIALS} runs");
        return Err(Problem::new(tree.place.clone(), "", message));
    }
    let hypotheses = hypotheses(tree, &fields.hypotheses, &design)?;
    if hypotheses.len() > MOST_HYPOTHESES {
        let message = format!("{}; legal: at most {MOST_HYPOTHESES}", hypotheses.len());
        return Err(Problem::new(tree.place_of("hypotheses"), "hypotheses", message));
    }
    let cell = |number: usize| {
        let names = design.names(number);
        let at = design.levels(number);
        let tree = levels::tree(&base, &factors, &at, &components);
        let checked = patch::resolve(&tree, &names)?;
        let own_warmup = levels::sets(&factors, &at, &components, "warmup_s");
        Ok((Cell { levels: names, plan: checked.plan().clone(), own_warmup, tree }, checked))
    };
    let cells = (0..design.cells()).map(cell).collect::<Result<Vec<_>, Problem>>()?;
    let (cells, checked) = cells.into_iter().unzip();
    let study = Study {
        question: fields.question,
        factors: design.factors.iter().map(|factor| factor.name.clone()).collect(),
        design,
        cells,
        first_seed: fields.first_seed.map_or(Study::FIRST_SEED, Whole::get),
        seeds,
        max_seeds,
        warmup,
        metrics,
        hypotheses,
        capacity,
        discussion: fields.discussion,
        components,
        levels: factors,
        base,
    };
    // What cannot be searched is refused before anything runs.
    study.subjects()?;
    Ok(Outline { study, cells: checked })
}

/// The scenario under `base`, or in the file that it names.
pub(crate) fn base(tree: &Node) -> Result<Node, Problem> {
    let base = tree.field("base").cloned().unwrap_or_else(Node::empty);
    match &base.kind {
        Kind::Scalar { text, .. } => yaml::read_file(&beside(&base.place, text)),
        _ => Ok(base),
    }
}

/// The workloads of a file: the name of each, and the scenario that it makes of `base`.
pub(crate) fn workloads(
    tree: &Node,
    fields: &[PatchFields],
    base: &Node,
) -> Result<Vec<(String, Node)>, Problem> {
    let factor = arms::patched(tree, "workloads", fields, &[])?;
    let scenario = |level: Level| {
        let mut tree = base.clone();
        level.apply(&mut tree, &[]);
        (level.name, tree)
    };
    Ok(factor.levels.into_iter().map(scenario).collect())
}

/// What the cells differ in.
fn factors(
    tree: &Node,
    fields: &StudyFields,
    base: &Node,
    components: &[Component],
) -> Result<Vec<Choices>, Problem> {
    let mut factors = Vec::new();
    if !fields.workloads.is_empty() {
        factors.push(arms::patched(tree, "workloads", &fields.workloads, components)?);
    }
    let mut arms = match (&fields.matrix[..], &fields.arms[..]) {
        ([], []) => None,
        ([], patches) => Some(arms::patched(tree, "arms", patches, components)?),
        (names, []) => {
            let which = names.iter().enumerate().map(|(index, name)| {
                arms::named(tree, &format!("matrix[{index}]"), name, components)
            });
            Some(arms::matrix(&which.collect::<Result<Vec<_>, _>>()?, components))
        }
        _ => {
            let message = "makes the arms by itself; leave `arms` out, or `matrix`";
            return Err(Problem::new(tree.place_of("matrix"), "matrix", message));
        }
    };
    if let Some(arms) = &mut arms
        && fields.references != Some(false)
    {
        // A workload may be needed to make the scenario whole.
        let first = levels::tree(base, &factors, &vec![0; factors.len()], components);
        arms::add_references(&first, arms, components)?;
    }
    factors.extend(arms);
    if fields.sweep.is_some() {
        factors.extend(levels::swept(tree)?);
    }
    Ok(factors)
}

/// After how many seeds to look first, and the most that are run.
fn seeds(tree: &Node, fields: &StudyFields) -> Result<(usize, usize), Problem> {
    let default = match fields.hypotheses[..] {
        [] => DEFAULT_SEEDS,
        _ => DEFAULT_SEEDS_CLAIMING,
    };
    let most = fields.max_seeds.map(Whole::get);
    let first =
        fields.seeds.map_or_else(|| most.map_or(default, |most| most.min(default)), Whole::get);
    let most = most.unwrap_or(first);
    if most < first {
        let message = format!("found `{most}`; legal: no fewer than `seeds`, which is {first}");
        return Err(Problem::new(tree.place_of("max_seeds"), "max_seeds", message));
    }
    let size = |seeds: u64| usize::try_from(seeds).unwrap_or(usize::MAX);
    Ok((size(first), size(most)))
}

/// How much of each run is left out.
pub(super) fn warmup(tree: &Node, text: Option<&str>, claims: bool) -> Result<Warmup, Problem> {
    match text {
        None if claims => Ok(Warmup::Auto),
        None => Ok(Warmup::Given),
        Some("auto") => Ok(Warmup::Auto),
        Some(text) => {
            let seconds = text.strip_suffix('s').unwrap_or(text).trim().parse::<f64>();
            let legal = seconds.ok().filter(|seconds| (0.0..=1e8).contains(seconds));
            legal.map(Warmup::Seconds).ok_or_else(|| {
                let message =
                    format!("found `{text}`; legal: `auto`, or seconds from 0 to 1e8, e.g. `30s`");
                Problem::new(tree.place_of("warmup"), "warmup", message)
            })
        }
    }
}

/// How much of each run is left out, as `flag` says: `auto`, or seconds.
///
/// # Errors
/// If it is neither.
pub fn warmup_flag(flag: &str, text: &str) -> Result<Warmup, Problem> {
    warmup(&Node::from_flag(flag, text), Some(text), false)
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

fn metrics(tree: &Node, names: &[String], design: &Design) -> Result<Vec<Metric>, Problem> {
    if names.is_empty() {
        let message = "there are none; name at least one, e.g. `ttft_p99`";
        return Err(Problem::new(tree.place_of("metrics"), "metrics", message));
    }
    let parse = |(index, name): (usize, &String)| {
        let path = format!("metrics[{index}]");
        design.metric(name).map_err(|text| Problem::new(tree.place_of(&path), path, text))
    };
    names.iter().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Study, String> {
        let tree = yaml::read_text("s.yaml", text).expect("well-formed");
        study(&tree).map(|outline| outline.study).map_err(|problem| problem.to_string())
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
    fn seeds_count_up_from_the_first_one_and_are_never_those_of_searches() {
        let first = |line: &str| read(&format!("{STUDY}{line}")).map(|study| study.first_seeds(3));
        assert_eq!(first(""), Ok(vec![42, 43, 44]));
        assert_eq!(first("first_seed: 501\n"), Ok(vec![501, 502, 503]));
        let last = read(&format!("{STUDY}first_seed: 9000\n")).expect("legal").first_seeds(1_000);
        assert!(last.iter().all(|&seed| seed <= 10_000), "searches begin at 10,001");
        for wrong in ["41", "9001"] {
            let told = first(&format!("first_seed: {wrong}\n")).expect_err("illegal");
            assert!(told.contains("first_seed") && told.contains("42 to 9000"), "{told}");
        }
    }

    #[test]
    fn every_combination_is_a_cell_and_the_last_factor_changes_fastest() {
        let study = read(STUDY).expect("legal");
        assert_eq!(study.factors, ["arm", "engine.total_kv_blocks", "seed"]);
        assert_eq!((study.cells.len(), study.trials()), (12, 24));
        assert_eq!((study.seeds, study.max_seeds), (2, 2));
        assert_eq!(study.cells[0].levels, ["base", "900", "1"]);
        assert_eq!(study.cells[1].levels, ["base", "900", "2"]);
        assert_eq!(study.cells[11].levels, ["plain", "800", "3"]);
        let last = &study.cells[11].plan;
        assert_eq!((last.engine.total_kv_blocks, last.instances), (800, 2));
        assert_eq!(last.routing(), "round-robin", "the patch replaces the whole policy");
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
