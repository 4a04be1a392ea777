//! Search files: from YAML to a checked search.
//!
//! ```yaml
//! question: which gate and weights serve critical requests best?
//! base: {cluster: {instances: 8}, workload: {preset: orthogonal-slo, rate: 90%}}
//! strategy: slo-compound
//! parameters: [pa, qd, gate, age-weight]
//! objective: critical.ttft_p99
//! constraints: ["tokens_per_sec >= 0.95 * baseline"]
//! budget: {calls: 30, seeds: 3, engine: gp}
//! confirm: {seeds: 10}
//! ```

use super::constraint::Constraint;
use super::points::Points;
use super::{Budget, Engine, Objective, Search};
use crate::metric::Metric;
use crate::problem::{Problem, hint, quoted};
use crate::scenario::{Draft, Plan, Workload};
use crate::study::file::base;
use crate::yaml::{self, Amount, Kind, Node, Range, Whole};
use blis_optimize::Grid;
use blis_workload::Rate;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;

const DEFAULT_CALLS: u64 = 30;
const DEFAULT_SEEDS: u64 = 3;
const DEFAULT_CONFIRM: u64 = 10;
const DEFAULT_BATCH: u64 = 2;

/// A search as written. What is one thing or a list is taken from the tree.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    question: String,
    #[expect(dead_code, reason = "read from the tree, with places")]
    base: IgnoredAny,
    #[expect(dead_code, reason = "read from the tree, with places")]
    strategy: IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "read from the tree, with places")]
    parameters: Option<IgnoredAny>,
    #[serde(default)]
    #[expect(dead_code, reason = "read from the tree, with places")]
    objective: Option<IgnoredAny>,
    #[serde(default)]
    #[expect(dead_code, reason = "read from the tree, with places")]
    maximise: Option<IgnoredAny>,
    #[serde(default)]
    constraints: Vec<String>,
    #[serde(default)]
    budget: BudgetFields,
    #[serde(default)]
    confirm: ConfirmFields,
    #[serde(default)]
    discussion: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetFields {
    #[serde(default)]
    calls: Option<Whole<4, 100_000>>,
    #[serde(default)]
    seeds: Option<Whole<1, 1_000>>,
    #[serde(default)]
    engine: Option<String>,
    #[serde(default)]
    seed: Option<Whole<0, { u64::MAX }>>,
    #[serde(default)]
    batch: Option<Whole<1, 64>>,
    #[serde(default)]
    racing: Option<bool>,
    #[serde(default)]
    early: Option<Amount<EarlyShare>>,
}

/// A share of the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EarlyShare;

impl Range for EarlyShare {
    const MIN: f64 = 0.05;
    const MAX: f64 = 1.0;
    const LEGAL: &'static str = "a number from 0.05 to 1 (of the requests of a run)";
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfirmFields {
    #[serde(default)]
    seeds: Option<Whole<2, 1_000>>,
}

/// Reads the search in the file `path` and checks all of it.
///
/// # Errors
/// If it cannot be read, or anything in it is illegal.
pub fn read(path: &Path) -> Result<Search, Problem> {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(Search { name, ..search(&yaml::read_file(path)?)? })
}

/// Reads the search in `text` as if it stood in a file called `name`, beside which are the files
/// that it names.
///
/// # Errors
/// If anything in it is illegal.
pub fn read_text(name: &str, text: &str) -> Result<Search, Problem> {
    search(&yaml::read_text(name, text)?)
}

pub(super) fn search(tree: &Node) -> Result<Search, Problem> {
    let fields: Fields = yaml::decode(tree)?;
    let points = Points::read(tree)?;
    let mut objectives = objectives(tree, "objective", false)?;
    objectives.extend(self::objectives(tree, "maximise", true)?);
    if objectives.is_empty() {
        let message = "there is nothing to improve; give `objective` (made small) or `maximise`";
        return Err(Problem::new(tree.place.clone(), "objective", message));
    }
    let constraint = |(index, text): (usize, &String)| {
        let path = format!("constraints[{index}]");
        Constraint::parse(text).map_err(|(message, at)| {
            Problem::new(tree.place_of(&path), path, message).pointing(text, &at)
        })
    };
    let constraints = fields.constraints.iter().enumerate().map(constraint);
    let constraints: Vec<Constraint> = constraints.collect::<Result<_, _>>()?;
    let budget = budget(tree, &fields.budget)?;
    let confirm = size(fields.confirm.seeds.map_or(DEFAULT_CONFIRM, Whole::get));
    let (base, notes) = settled(&base(tree)?, &points)?;
    let question = fields.question;
    let name = String::new();
    let discussion = fields.discussion;
    let found = Search {
        name,
        question,
        objectives,
        constraints,
        budget,
        confirm,
        points,
        notes,
        discussion,
        base,
    };
    check_grid(tree, &found)?;
    Ok(found)
}

/// The numbers that `field` names: one, or a list.
fn objectives(tree: &Node, field: &str, maximise: bool) -> Result<Vec<Objective>, Problem> {
    let Some(node) = tree.field(field) else { return Ok(Vec::new()) };
    let nodes: &[Node] = match &node.kind {
        Kind::List(nodes) => nodes,
        _ => std::slice::from_ref(node),
    };
    let objective = |node: &Node| {
        let wrong = |message: String| Problem::new(node.place.clone(), field, message);
        let Kind::Scalar { text, .. } = &node.kind else {
            return Err(wrong(
                "legal: the name of a number, e.g. `ttft_p99`, or a list".to_owned(),
            ));
        };
        Metric::parse(text).map(|metric| Objective { metric, maximise }).map_err(wrong)
    };
    nodes.iter().map(objective).collect()
}

fn budget(tree: &Node, fields: &BudgetFields) -> Result<Budget, Problem> {
    let engine = match fields.engine.as_deref() {
        None => Engine::Gp,
        Some(name) => {
            let known = Engine::ALL.map(Engine::name);
            Engine::ALL.into_iter().find(|engine| engine.name() == name).ok_or_else(|| {
                let hint = hint(name, known);
                let message = format!("unknown engine `{name}`{hint}; known: {}", quoted(&known));
                Problem::new(tree.place_of("budget.engine"), "budget.engine", message)
            })?
        }
    };
    Ok(Budget {
        calls: size(fields.calls.map_or(DEFAULT_CALLS, Whole::get)),
        seeds: size(fields.seeds.map_or(DEFAULT_SEEDS, Whole::get)),
        engine,
        seed: fields.seed.map_or(0, Whole::get),
        batch: size(fields.batch.map_or(DEFAULT_BATCH, Whole::get)),
        racing: fields.racing.unwrap_or(true),
        early: fields.early.map(|share| share.get()).filter(|share| *share < 1.0),
    })
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// `base` with a rate that all points share, and what there is to know about it. A share of
/// saturation is that of the hand-set point's cluster: it is measured once, and parameters that
/// change the engines do not change what they are sent.
fn settled(base: &Node, points: &Points) -> Result<(Node, Vec<String>), Problem> {
    let resolve = |base: &Node, candidate: usize| -> Result<Plan, Problem> {
        let settings = &points.candidates[candidate].hand;
        Draft::from_tree(points.tree(base, candidate, settings)).resolve()
    };
    let plan = resolve(base, 0)?;
    let mut base = base.clone();
    if let (Some(_), Workload::Mix(mix)) = (plan.saturation, &plan.workload)
        && let Rate::Steady(rate) = mix.rate
    {
        let mut draft = Draft::from_tree(base);
        draft.set_amount("rate", "rate", &rate.to_string());
        base = draft.into_tree();
    }
    for candidate in 1..points.candidates.len() {
        resolve(&base, candidate)?;
    }
    Ok((base, plan.notes))
}

/// A grid that the budget cannot pay for is refused.
fn check_grid(tree: &Node, search: &Search) -> Result<(), Problem> {
    let calls = search.budget.calls;
    if search.budget.engine != Engine::Grid || search.grid_steps().is_some() {
        return Ok(());
    }
    let least = Grid::new(search.problem(), 2).size();
    let least = least.map_or("too many".to_owned(), |size| size.to_string());
    let message = format!(
        "the coarsest grid has {least} points, and {calls} calls are allowed; allow more, or free \
         fewer parameters, or take another engine"
    );
    Err(Problem::new(tree.place_of("budget"), "budget", message))
}
