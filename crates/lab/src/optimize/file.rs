//! Search files: from YAML to a checked search.
//!
//! ```yaml
//! question: which gate and weights serve critical requests best?
//! base: {cluster: {instances: 8}, workload: {preset: orthogonal-slo, rate: 90%}}
//! workloads: [{name: as it is}, {name: overload, set: {workload: {rate: 150%}}}]
//! strategy: slo-compound
//! parameters: [pa, qd, gate, age-weight]
//! objective: critical.ttft_p99
//! constraints: ["tokens_per_sec >= 0.95 * baseline"]
//! budget: {calls: 30, seeds: 3, engine: gp}
//! confirm: {seeds: 10}
//! ```

use super::Outline;
use super::constraint::Constraint;
use super::number::Number;
use super::points::Points;
use super::{Budget, Engine, Load, Objective, Search};
use crate::study::file::{PatchFields, base, workloads};
use blis_optimize::Grid;
use blis_scenario::Saturations;
use blis_scenario::problem::{Problem, hint, quoted};
use blis_scenario::strategy;
use blis_scenario::yaml::{self, Amount, Kind, Node, Range, Whole};
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
    workloads: Vec<PatchFields>,
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
pub fn read(path: &Path) -> Result<Outline, Problem> {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let Outline(found) = search(&yaml::read_file(path)?)?;
    Ok(Outline(Search { name, ..found }))
}

/// Reads the search in `text` as if it stood in a file called `name`, beside which are the files
/// that it names.
///
/// # Errors
/// If anything in it is illegal.
pub fn read_text(name: &str, text: &str) -> Result<Outline, Problem> {
    search(&yaml::read_text(name, text)?)
}

pub(super) fn search(tree: &Node) -> Result<Outline, Problem> {
    let fields: Fields = yaml::decode(tree)?;
    let points = Points::read(tree)?;
    let loads = loads(tree, &fields.workloads)?;
    let names: Vec<String> = loads.iter().filter_map(|load| load.name.clone()).collect();
    let mut objectives = objectives(tree, "objective", false, &names)?;
    objectives.extend(self::objectives(tree, "maximise", true, &names)?);
    if objectives.is_empty() {
        let message = "there is nothing to improve; give `objective` (made small) or `maximise`";
        return Err(Problem::new(tree.place.clone(), "objective", message));
    }
    let constraint = |(index, text): (usize, &String)| {
        let path = format!("constraints[{index}]");
        Constraint::parse(text, &names).map_err(|(message, at)| {
            Problem::new(tree.place_of(&path), path, message).pointing(text, &at)
        })
    };
    let written = fields.constraints.iter().enumerate().map(constraint);
    let written: Vec<Constraint> = written.collect::<Result<_, _>>()?;
    let constraints = written.into_iter().flat_map(|one| one.each(&names)).collect();
    let budget = budget(tree, &fields.budget)?;
    let confirm = size(fields.confirm.seeds.map_or(DEFAULT_CONFIRM, Whole::get));
    loads.iter().try_for_each(|load| load.check(&points))?;
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
        loads,
        notes: Vec::new(),
        discussion,
    };
    check_grid(tree, &found)?;
    Ok(Outline(found))
}

/// What every point is run on, with rates as they are written.
fn loads(tree: &Node, fields: &[PatchFields]) -> Result<Vec<Load>, Problem> {
    let base = base(tree)?;
    if fields.is_empty() {
        return Ok(vec![Load { name: None, base, saturations: Saturations::default() }]);
    }
    check_patches(tree)?;
    let named = |(name, base): (String, Node)| Load {
        name: Some(name),
        base,
        saturations: Saturations::default(),
    };
    Ok(workloads(tree, fields, &base)?.into_iter().map(named).collect())
}

/// What a search decides is no part of a workload: it would be dropped.
fn check_patches(tree: &Node) -> Result<(), Problem> {
    let Some(Node { kind: Kind::List(workloads), .. }) = tree.field("workloads") else {
        return Ok(());
    };
    for (index, workload) in workloads.iter().enumerate() {
        let Some(set) = workload.field("set") else { continue };
        for part in strategy::POLICIES.iter().chain(&[strategy::FIELD, "seed"]) {
            if let Some(found) = set.field(part) {
                let path = format!("workloads[{index}].set.{part}");
                let message = match *part {
                    "seed" => "a search has seeds of its own; leave it out",
                    _ => "policies come from `strategy`, the same in all workloads; leave it out",
                };
                return Err(Problem::new(found.place.clone(), path, message));
            }
        }
    }
    Ok(())
}

/// The numbers that `field` names: one, or a list.
fn objectives(
    tree: &Node,
    field: &str,
    maximise: bool,
    names: &[String],
) -> Result<Vec<Objective>, Problem> {
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
        let number = Number::parse(text, names).map_err(|(why, _)| wrong(why))?;
        if names.len() > 1 && number.workload.is_none() && number.metric.mean().is_none() {
            return Err(wrong(format!(
                "`{text}` is a count, and workloads have no common measure for it; say which one \
                 counts, e.g. `{text} @ {}`, or take a share or a rate",
                names[0]
            )));
        }
        Ok(Objective { number, maximise })
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

/// The notes of each of `loads`; what is so in every workload is said once.
pub(super) fn told_once(loads: &[Load], notes: &[Vec<String>]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for (load, own) in loads.iter().zip(notes) {
        for note in own {
            let told_of =
                load.name.as_ref().filter(|_| !notes.iter().all(|all| all.contains(note)));
            let note = told_of.map_or_else(|| note.clone(), |name| format!("{name}: {note}"));
            if !told.contains(&note) {
                told.push(note);
            }
        }
    }
    told
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
