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

use super::arms::{self, Component};
use super::capacity::{CapacityFields, question};
use super::cells::Cells;
use super::levels::{self, Choices, Level};
use super::predictions::hypotheses;
use super::{Outline, Study, Warmup};
use crate::capacity::Question;
use crate::design::Design;
use crate::hypothesis::Hypothesis;
use crate::metric::Metric;
use blis_scenario::problem::{Place, Problem};
use blis_scenario::problems::{Findings, Problems, Together, every, given};
use blis_scenario::yaml::{self, Kind, Named, Node, OneOrMany, Whole};
use blis_scenario::{Files, json_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

/// Most cells of a study, times seeds.
const MOST_TRIALS: usize = 100_000;
const DEFAULT_SEEDS: u64 = 3;
/// Studies that claim something start with more: fewer can hardly tell anything.
const DEFAULT_SEEDS_CLAIMING: u64 = 5;
/// Studies that claim something add seeds until they can tell, up to so many.
const DEFAULT_MAX_SEEDS_CLAIMING: u64 = 40;
/// Most hypotheses of a study.
const MOST_HYPOTHESES: usize = 64;

/// A study as written. Patches are scenarios, and checked as such.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct StudyFields {
    /// What it asks, in one sentence.
    question: Option<String>,
    /// The scenario of all cells.
    base: Option<Node>,
    /// Parts of strategies, by name: scenario fields that arms are made of.
    components: Named<Node>,
    /// Components of which all combinations that tell them apart become arms.
    matrix: Vec<String>,
    /// What is compared.
    arms: Vec<PatchFields>,
    /// In which settings.
    workloads: Vec<PatchFields>,
    /// Scenario fields, and the values that each takes in turn.
    sweep: Named<Vec<Node>>,
    /// Whether reference arms are added: round-robin, and gates on it.
    references: Option<bool>,
    /// The first seed.
    first_seed: Option<Whole<{ Study::FIRST_SEED }, 9_000>>,
    /// Seeds that every cell runs with.
    seeds: Option<Whole<1, 1_000>>,
    /// Seeds are added up to so many, until the claims are decided.
    max_seeds: Option<Whole<1, 1_000>>,
    /// How long requests are not counted, e.g. `20s`.
    warmup: Option<String>,
    /// `written`: runs are as long as their scenarios say, not until they are steady.
    length: Option<String>,
    /// What `capacity(arm)` asks.
    capacity: Option<CapacityFields>,
    /// The columns of the tables; the first one ranks the arms.
    metrics: Option<Vec<String>>,
    /// The claims.
    hypotheses: Vec<HypothesisFields>,
    /// Text for the end of the page, in Markdown.
    discussion: Option<String>,
}

/// A patch as written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PatchFields {
    /// How it is called in claims.
    pub(super) name: Option<String>,
    /// Components that it has.
    pub(super) with: Vec<String>,
    /// Scenario fields that it changes.
    pub(crate) set: Option<Node>,
    /// What it is there for.
    pub(super) tests: Option<String>,
    /// A strategy whose parameters are searched before the study.
    pub(super) tuned: Option<TunedFields>,
}

/// What an arm is tuned from, as written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TunedFields {
    /// The strategy.
    pub(super) strategy: Option<Node>,
    /// How many settings are tried.
    pub(super) budget: Option<Whole<4, 100_000>>,
    /// The swept value at which they are tried; what is found there is used at all of them.
    pub(super) at: Option<Node>,
}

/// A hypothesis as written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HypothesisFields {
    /// How it is called.
    pub(super) name: Option<String>,
    /// What is claimed, e.g. `ttft_p99(a @ busy) < 0.8 * ttft_p99(b @ busy)`.
    pub(super) claim: Option<String>,
    /// The effect that is expected, e.g. `-30%..-20%`.
    pub(super) predict: Option<String>,
    /// Why it should be so.
    pub(super) because: Option<String>,
    /// What must have happened for the claim to be about it, e.g. `preemptions(a)`.
    pub(super) fires: Vec<String>,
    /// The workloads in which it is claimed, or `each`.
    #[serde(rename = "in")]
    pub(super) workloads: Option<OneOrMany<String>>,
}

/// The JSON Schema of a study.
pub fn json_schema() -> serde_json::Value {
    let places = [
        "/properties/base",
        "/properties/components/additionalProperties",
        "/definitions/PatchFields/properties/set",
    ];
    json_schema::patched(json_schema::of::<StudyFields>("study"), &places)
}

/// What a file of experiments holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A study: it has `metrics`.
    Study,
    /// A search for [`optimize`](crate::optimize): it has an `objective` or says what to
    /// `maximise`.
    Search,
    /// An evolution of strategies for [`evolve`](crate::evolve): it has workloads `held_out`.
    Evolution,
    /// None of them.
    Other,
}

/// What the file `path` holds, by its fields; whether it is legal is not looked at.
///
/// # Errors
/// If it cannot be read or is not well-formed YAML.
pub fn form(path: &Path) -> Result<Form, Problem> {
    let tree = yaml::read_file(path)?;
    Ok(match tree {
        tree if tree.has("evolve") || tree.has("held_out") => Form::Evolution,
        tree if tree.has("objective") || tree.has("maximise") => Form::Search,
        tree if tree.has("metrics") => Form::Study,
        _ => Form::Other,
    })
}

/// Reads the study in the file `path` and checks every scenario in it.
///
/// # Errors
/// All that is illegal in it; if it cannot be read.
pub fn read(path: &Path) -> Result<Outline, Problems> {
    study(&yaml::read_file(path)?)
}

/// Reads the study in the file `path`, where the baseline sets `fields` instead of what is written:
/// the arm called `baseline`, or the first. It is called `name` then, unless another is.
///
/// # Errors
/// All that is illegal in it; if it has no arms.
pub fn read_with_baseline(path: &Path, name: &str, fields: Node) -> Result<Outline, Problems> {
    let mut tree = yaml::read_file(path)?;
    let mut arms = tree.field("arms").map_or(&[][..], Node::items).to_vec();
    if arms.is_empty() {
        return Err(tree.problem("arms", "there is none whose place a baseline could take"));
    }
    let is_baseline = |arm: &Node| arm.field("name").and_then(Node::text) == Some("baseline");
    let place = arms.iter().position(is_baseline).unwrap_or(0);
    for field in ["with", "tuned", "set", "tests"] {
        arms[place].remove(field);
    }
    arms[place].set(&["set"], fields);
    let list = Node { place: tree.place_of("arms"), kind: Kind::List(arms) };
    tree.set(&["arms"], list);
    let mut outline = study(&tree)?;
    outline.study.rename_arm(place, name);
    Ok(outline)
}

/// Reads the study in `text` as if it stood in a file called `name`, beside which are the files
/// that it names.
///
/// # Errors
/// All that is illegal in it.
pub fn read_text(name: &str, text: &str) -> Result<Outline, Problems> {
    study(&yaml::read_text(name, text)?)
}

pub(super) fn study(tree: &Node) -> Result<Outline, Problems> {
    yaml::decode_and(tree, |fields, tree| Reader { fields, tree }.read())
}

/// A study as written, and the tree that it was decoded from.
struct Reader<'a> {
    fields: StudyFields,
    tree: &'a Node,
}

/// The question of a study or a search, which is what reports call it.
pub(crate) fn question_of(tree: &Node, given: Option<&String>) -> Result<String, Problems> {
    let question = tree.required("", "question", given.cloned())?;
    tree.check_name("question", &question)?;
    Ok(question)
}

impl Reader<'_> {
    fn read(self) -> Result<Outline, Problems> {
        let Reader { fields, tree } = &self;
        let (mut found, files) = (Findings::default(), Files::default());
        for (name, _) in &fields.components.0 {
            found.keep(tree.check_name("components", name));
        }
        let components: Vec<Component> = fields.components.0.iter().map(Component::of).collect();
        let base = base(tree, fields.base.as_ref());
        let seeds = self.seeds();
        let warmup = warmup(tree, fields.warmup.as_deref(), !fields.hypotheses.is_empty());
        let capacity = self.capacity(*warmup.as_ref().unwrap_or(&Warmup::Auto));
        let factors = self.factors(&components, &mut found);
        let cells = factors.map(|factors| {
            let mut cells = Cells::new(base.as_ref().ok(), &components, factors, &files);
            if fields.references != Some(false) {
                cells.add_references();
            }
            cells
        });
        let design = given(&cells, |cells| {
            let searched = given(&capacity, |capacity| Ok(searched(capacity.as_ref())))?;
            Ok(Design { searched, ..levels::design(&cells.factors) })
        });
        let claims = given(&design, |design| self.hypotheses(design));
        let metrics = given(&capacity, |capacity| self.metrics(searched(capacity.as_ref())));
        let cells = cells.and_then(|cells| {
            let most = seeds.as_ref().map_or(1, |(_, most)| *most);
            check_size(tree, levels::design(&cells.factors).cells(), most)?;
            cells.all()
        });
        let question = question_of(tree, fields.question.as_ref());
        let runs = (seeds, warmup, capacity, self.as_written()).together();
        let read = (question, base, design, runs, cells, (metrics, claims).together()).together();
        let Some((question, base, design, runs, cells, (metrics, hypotheses))) = found.keep(read)
        else {
            return Err(found.into());
        };
        let ((seeds, max_seeds), warmup, capacity, as_written) = runs;
        let (levels, cells) = cells;
        let (cells, checked) = cells.into_iter().unzip();
        let study = Study {
            question,
            factors: design.factors.iter().map(|factor| factor.name.clone()).collect(),
            design,
            cells,
            first_seed: fields.first_seed.map_or(Study::FIRST_SEED, Whole::get),
            seeds,
            max_seeds,
            warmup,
            as_written,
            metrics,
            hypotheses,
            capacity,
            discussion: fields.discussion.clone(),
            components,
            levels,
            base,
            files,
        };
        // What cannot be searched is refused before anything runs.
        found.keep(study.subjects());
        found.done(Outline { study, cells: checked })
    }

    /// What the cells differ in. Fails where that is not known; other problems go to `found`.
    fn factors(
        &self,
        components: &[Component],
        found: &mut Findings,
    ) -> Result<Vec<Choices>, Problems> {
        let Reader { fields, tree } = self;
        // A list of which nothing is left because it is broken is not an empty one.
        tree.whole(if fields.arms.is_empty() { &["arms"] } else { &[] })?;
        tree.whole(if fields.workloads.is_empty() { &["workloads"] } else { &[] })?;
        tree.whole(&["matrix", "components"])?;
        let swept = levels::swept(tree, &fields.sweep, found);
        let mut patched = |field: &str, patches: &[PatchFields]| {
            (!patches.is_empty())
                .then(|| arms::patched(tree, field, patches, components, &swept, found))
        };
        let workloads = patched("workloads", &fields.workloads);
        let arms = match (&fields.matrix[..], &fields.arms[..]) {
            ([], patches) => patched("arms", patches),
            (names, []) => {
                let which = every(names.iter().enumerate().map(|(index, name)| {
                    arms::named(tree, &format!("matrix[{index}]"), name, components)
                }))?;
                Some(arms::matrix(&which, components))
            }
            _ => {
                let message = "it makes the arms; remove `arms` or `matrix`";
                return Err(tree.problem("matrix", message));
            }
        };
        let factors: Vec<Choices> = workloads.into_iter().chain(arms).chain(swept).collect();
        let levels = factors.iter().flat_map(|factor| &factor.levels).map(|level| &level.own);
        let set = levels.chain(components.iter().map(|component| &component.settings)).flatten();
        for (_, seed) in set.filter(|(path, _)| *path == ["seed"]) {
            let message = "a study sets its own seeds; remove it";
            found.keep::<()>(Err(Problem::new(seed.place.clone(), "seed", message)));
        }
        Ok(factors)
    }

    /// After how many seeds to look first, and the most that are run.
    fn seeds(&self) -> Result<(usize, usize), Problems> {
        let Reader { fields, tree } = self;
        tree.whole(&["seeds"])?;
        let (default, at_most) = match fields.hypotheses[..] {
            [] => (DEFAULT_SEEDS, 0),
            _ => (DEFAULT_SEEDS_CLAIMING, DEFAULT_MAX_SEEDS_CLAIMING),
        };
        let most = fields.max_seeds.map(Whole::get);
        let first =
            fields.seeds.map_or_else(|| most.map_or(default, |most| most.min(default)), Whole::get);
        let most = most.unwrap_or(first.max(at_most));
        if most < first {
            let message = format!("found `{most}`; legal: at least `seeds`, which is {first}");
            return Err(tree.problem("max_seeds", message));
        }
        let size = |seeds: u64| usize::try_from(seeds).unwrap_or(usize::MAX);
        Ok((size(first), size(most)))
    }

    /// Whether runs are as long as written, however long it takes to be steady.
    fn as_written(&self) -> Result<bool, Problems> {
        self.tree.whole(&["length"])?;
        match self.fields.length.as_deref() {
            None | Some("steady") => Ok(false),
            Some("written") => Ok(true),
            Some(other) => {
                let message = format!("found `{other}`; legal: `steady`, `written`");
                Err(self.tree.problem("length", message))
            }
        }
    }

    /// What must hold at the capacity of a cell, if that is looked for.
    fn capacity(&self, warmup: Warmup) -> Result<Option<Question>, Problems> {
        self.tree.whole(&["capacity"])?;
        self.fields.capacity.as_ref().map(|fields| question(self.tree, fields, warmup)).transpose()
    }

    fn metrics(&self, searched: Option<Metric>) -> Result<Vec<Metric>, Problems> {
        let Reader { fields, tree } = self;
        let names = tree.required("", "metrics", fields.metrics.as_ref())?;
        if names.is_empty() {
            let message = "missing; name at least one, e.g. `ttft_p99`";
            return Err(tree.problem("metrics", message));
        }
        let design = Design { searched, ..Design::default() };
        every(names.iter().enumerate().map(|(index, name)| {
            design.metric(name).map_err(|text| tree.problem(format!("metrics[{index}]"), text))
        }))
    }

    fn hypotheses(&self, design: &Design) -> Result<Vec<Hypothesis>, Problems> {
        let Reader { fields, tree } = self;
        if fields.arms.iter().chain(&fields.workloads).any(|patch| patch.name.is_none()) {
            // They may be about those whose names are missing.
            return Err(Problems::KNOWN);
        }
        let hypotheses = hypotheses(tree, &fields.hypotheses, design)?;
        if hypotheses.len() > MOST_HYPOTHESES {
            let message = format!("{}; legal: at most {MOST_HYPOTHESES}", hypotheses.len());
            return Err(tree.problem("hypotheses", message));
        }
        Ok(hypotheses)
    }
}

/// What is found for each cell besides the numbers of its runs.
fn searched(capacity: Option<&Question>) -> Option<Metric> {
    capacity.map(|question| question.vary.metric())
}

/// Refuses a study that nobody would wait for.
fn check_size(tree: &Node, cells: usize, seeds: usize) -> Result<(), Problem> {
    if cells.saturating_mul(seeds) <= MOST_TRIALS {
        return Ok(());
    }
    let message = format!("{cells} cases and {seeds} seeds; legal: at most {MOST_TRIALS} runs");
    Err(Problem::new(tree.place.clone(), "", message))
}

/// The scenario under `base`, or in the file that it names.
pub(crate) fn base(tree: &Node, base: Option<&Node>) -> Result<Node, Problems> {
    let base = tree.required("", "base", base)?;
    match base.text() {
        Some(text) => Ok(yaml::read_file(&beside(&base.place, text))?),
        None => Ok(base.clone()),
    }
}

/// The scenario in the file `path`, or the one that all cells of the study there begin with.
///
/// # Errors
/// If a file cannot be read or is not well-formed YAML.
pub fn scenario_of(path: &Path) -> Result<Node, Problems> {
    let tree = yaml::read_file(path)?;
    match tree.field("base") {
        Some(written) => base(&tree, Some(written)),
        None => Ok(tree),
    }
}

/// The workloads of a file: the name of each, and the scenario that it makes of `base`.
pub(crate) fn workloads(
    tree: &Node,
    fields: &[PatchFields],
    base: &Node,
) -> Result<Vec<(String, Node)>, Problems> {
    let mut found = Findings::default();
    let factor = arms::patched(tree, "workloads", fields, &[], &[], &mut found);
    let scenario = |level: Level| {
        let mut tree = base.clone();
        level.apply(&mut tree, &[]);
        (level.name, tree)
    };
    found.done(factor.levels.into_iter().map(scenario).collect())
}

/// How much of each run is left out.
pub(super) fn warmup(tree: &Node, text: Option<&str>, claims: bool) -> Result<Warmup, Problems> {
    tree.whole(&["warmup"])?;
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
                tree.problem("warmup", message)
            })
        }
    }
}

/// How much of each run is left out, as `flag` says: `auto`, or seconds.
///
/// # Errors
/// If it is neither.
pub fn warmup_flag(flag: &str, text: &str) -> Result<Warmup, Problems> {
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
sweep: {engine.total_kv_blocks: [900, 800], engine.max_num_running_reqs: [1, 2, 3]}
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
        assert_eq!(study.factors, ["arm", "engine.total_kv_blocks", "engine.max_num_running_reqs"]);
        assert_eq!((study.cells.len(), study.trials()), (12, 24));
        assert_eq!((study.seeds, study.max_seeds), (2, 2));
        assert_eq!(study.cells[0].levels, ["base", "900", "1"]);
        assert_eq!(study.cells[1].levels, ["base", "900", "2"]);
        assert_eq!(study.cells[11].levels, ["plain", "800", "3"]);
        let last = &study.cells[11].plan;
        assert_eq!((last.engine.total_kv_blocks, last.instances), (800, 2));
        assert_eq!(last.routing(), "round-robin", "the patch replaces the whole policy");
    }

    /// The paths of all that is wrong with a study.
    fn blamed(text: &str) -> Vec<String> {
        let tree = yaml::read_text("s.yaml", text).expect("well-formed");
        let problems = study(&tree).expect_err("it is illegal");
        problems.iter().map(|problem| problem.path.clone()).collect()
    }

    #[test]
    fn all_mistakes_of_a_study_are_told_at_once_each_of_them_once() {
        let text = "
base: {cluster: {instances: 0}, workload: {distribution: {rate: 90%}}}
components: {gate: {admission: kv-gat}}
arms:
  - {name: one, set: {engine: {block_sise: 32}}}
  - {name: two, with: [gate], set: {scheduler: fcsf}}
  - {set: {priority: slo-clas}}
  - {name: four, with: [gatt]}
workloads: [{name: a}, {name: b, set: {seed: 3}}, {name: b}]
sweep: {engine.total_kv_blocks: [900, 800], engine.watermark: [], cluster.gateways: 2}
seeds: 9
max_seeds: 3
warmup: soon
metrics: [ttft_p98, ttft_p99]
";
        assert_eq!(
            blamed(text),
            [
                "",
                "cluster.instances",
                "admission",
                "engine.block_sise",
                "scheduler",
                "arms[2]",
                "priority",
                "arms[3].with[0]",
                "seed",
                "workloads[2].name",
                "sweep.engine.watermark",
                "sweep.cluster.gateways",
                "max_seeds",
                "warmup",
                "metrics[0]",
            ]
        );
    }

    #[test]
    fn what_a_strategy_or_the_study_would_drop_is_refused() {
        let arm = |arm: &str| {
            let parts = "components: {r: {scheduler: sjf}, s: {strategy: least-loaded}}\n";
            read(
                &format!("{STUDY}{parts}")
                    .replace("{name: base}", &format!("{{name: base, {arm}}}")),
            )
        };
        for (wrong, told) in [
            ("with: [r], set: {strategy: least-loaded}", "arms[0].with[0]: `r` sets `scheduler`"),
            ("with: [r], tuned: {strategy: least-loaded}", "arms[0].with[0]: `r` sets `scheduler`"),
            ("with: [r, s]", "arms[0].with[0]: `r` sets `scheduler`"),
            ("with: [s], set: {strategy: {name: least-loaded}}", "`s` sets `strategy`"),
            ("set: {seed: 3}", "seed: a study sets its own seeds; remove it"),
        ] {
            let found = arm(wrong).expect_err(wrong);
            assert!(found.contains(told), "{found}");
        }
        for policies in ["with: [s, r]", "set: {scheduler: sjf, strategy: least-loaded}"] {
            let study = arm(policies).expect("the policy is set on top of the strategy");
            assert_eq!(study.cells[0].plan.scheduler(), "sjf", "{policies}");
            assert_ne!(study.cells[0].plan.routing(), "round-robin");
        }
    }

    #[test]
    fn claims_are_checked_though_arms_are_broken() {
        let text = "
question: q?
base: {workload: {distribution: {rate: 1}}}
arms:
  - {name: one, set: {scheduler: fcsf}}
  - {name: two, set: {scheduler: sjf, routing: {policy: weighted, scoers: 'pa:1'}}}
metrics: [ttft_p99, ttft_p98]
hypotheses:
  - {claim: ttft_p99(one) < ttft_p99(tow)}
  - {claim: ttft_p99(one) < ttft_p99(priority of two on round-robin)}
";
        let expected = ["scheduler", "routing.scoers", "metrics[1]", "hypotheses[0].claim"];
        assert_eq!(blamed(text), expected, "the arm's reference may well be there");
        let told = read(text).expect_err("it is illegal");
        let known = "unknown arm `tow`, did you mean `two`?; known: `one`, `two`, ...";
        assert!(told.contains(known), "references of broken arms are not known arms: {told}");
    }

    #[test]
    fn mistakes_are_told_with_their_place_before_anything_runs() {
        for (from, to, message) in [
            ("ttft_p99, ", "ttft_p98, ", "s.yaml:9:11: metrics[0]: unknown number `ttft_p98`"),
            ("round-robin", "robin", "unknown routing policy `robin`"),
            ("[900, 800]", "[900, 0]", "s.yaml:8:39: engine.total_kv_blocks: found `0`; legal: a"),
            ("[900, 800]", "900", "sweep.engine.total_kv_blocks: found `900`; legal: a list"),
            ("name: plain", "name: base", "arms[1].name: found `base` twice"),
            ("name: plain", "name: \"\\u200b\"", "arms[1].name: found a blank name"),
            ("does it matter?", "' '", "s.yaml:2:11: question: found a blank name"),
            ("seeds: 2", "seeds: 99999", "seeds: found `99999`; legal: a whole number from 1 to"),
            ("question: does it matter?", "", "field `question` is missing"),
        ] {
            let text = STUDY.replace(from, to);
            assert_ne!(text, STUDY);
            let found = read(&text).expect_err(message);
            assert!(found.contains(message), "{found}\nnot: {message}");
        }
        let claimed = |more: &str| {
            let workloads = "workloads: [{name: calm}, {name: wild}]\nhypotheses:\n";
            read(&format!("{STUDY}{workloads}{more}").replace(
                "engine.max_num_running_reqs: [1, 2, 3]",
                "engine.max_num_running_reqs: [1, 2]",
            ))
        };
        let claim = "claim: ttft_p99(plain) < ttft_p99(base)";
        for (hypotheses, message) in [
            (format!("  - {{{claim}, in: [calm, calm]}}\n"), "found `calm` twice; remove one"),
            (
                format!("  - {{name: a, {claim}}}\n  - {{name: a, {claim}}}\n"),
                "hypotheses[1].name: found `a` twice; rename one",
            ),
            (format!("  - {{name: H2, {claim}}}\n  - {{{claim}}}\n"), "found `H2` twice"),
            (format!("  - {{name: ' ', {claim}}}\n"), "hypotheses[0].name: found a blank name"),
            (format!("  - {{{claim}, predict: -200%}}\n"), "no change below `-100%`"),
        ] {
            let found = claimed(&hypotheses).expect_err(message);
            assert!(found.contains(message), "{found}\nnot: {message}");
        }
        let in_cell = read(&STUDY.replace("[900, 800]", "[900, 0]")).expect_err("illegal");
        assert!(in_cell.ends_with("(in the case base, 0, 1)"), "{in_cell}");
    }
}
