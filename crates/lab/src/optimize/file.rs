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
//! guards: {refused: 1%, class_order: true}
//! budget: {calls: 30, seeds: 3, engine: gp}
//! confirm: {seeds: 10}
//! ```

use super::Outline;
use super::constraint::Constraint;
use super::number::Number;
use super::points::Points;
use super::{Budget, Engine, Guards, Load, Objective, Search};
use crate::study::file::{PatchFields, base, question_of, workloads};
use crate::study::patch::Once;
use blis_metrics::SloTargets;
use blis_optimize::{Grid, SpaceError};
use blis_scenario::problem::{Problem, unknown};
use blis_scenario::problems::{Problems, Together, every, given};
use blis_scenario::strategy;
use blis_scenario::yaml::{self, Node, OneOrMany, Whole};
use blis_scenario::{Files, Saturations, json_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

const DEFAULT_CALLS: u64 = 30;
const DEFAULT_SEEDS: u64 = 3;
const DEFAULT_CONFIRM: u64 = 10;
const DEFAULT_BATCH: u64 = 2;

/// A search as written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    /// What it asks, in one sentence.
    question: Option<String>,
    /// The scenario of all runs.
    base: Option<Node>,
    /// The strategy whose parameters are searched.
    strategy: Option<Node>,
    /// In which settings; the objective is their mean.
    workloads: Vec<PatchFields>,
    /// The parameters that are searched, if not all; a range takes the place of a parameter's own.
    parameters: Option<Node>,
    /// Metrics to make small.
    objective: Option<OneOrMany<String>>,
    /// Metrics to make large.
    maximise: Option<OneOrMany<String>>,
    /// What must hold, e.g. `tokens_per_sec >= 0.95 * baseline`.
    constraints: Vec<String>,
    /// What no recommendation may do unless it is said here.
    guards: GuardFields,
    /// How much is tried.
    budget: BudgetFields,
    /// What runs again on seeds that the search has not seen.
    confirm: ConfirmFields,
    /// Text for the end of the page, in Markdown.
    discussion: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct BudgetFields {
    /// How many settings are tried.
    calls: Option<Whole<4, 100_000>>,
    /// With how many seeds each.
    seeds: Option<Whole<1, 1_000>>,
    /// `gp`, `random` and others; `blis optimize --help` lists them.
    engine: Option<String>,
    /// Seed of the search itself.
    seed: Option<Whole<0, { u64::MAX }>>,
    /// How many settings are tried at once.
    batch: Option<Whole<1, 64>>,
    /// Whether a setting that is surely worse is given up before all its seeds have run.
    racing: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct GuardFields {
    /// How much more of any class or tenant may be refused than by the baseline, or `false`.
    refused: Option<String>,
    /// Whether the order of the classes must stay.
    class_order: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ConfirmFields {
    /// How many seeds.
    seeds: Option<Whole<2, 1_000>>,
}

/// The JSON Schema of a search.
pub fn json_schema() -> serde_json::Value {
    let places = ["/properties/base", "/definitions/PatchFields/properties/set"];
    json_schema::patched(json_schema::of::<Fields>("search"), &places)
}

/// Reads the search in the file `path` and checks all of it.
///
/// # Errors
/// All that is illegal in it; if it cannot be read.
pub fn read(path: &Path) -> Result<Outline, Problems> {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let Outline(found) = search(&yaml::read_file(path)?)?;
    Ok(Outline(Search { name, ..found }))
}

/// Reads the search in `text` as if it stood in a file called `name`, beside which are the files
/// that it names.
///
/// # Errors
/// All that is illegal in it.
pub fn read_text(name: &str, text: &str) -> Result<Outline, Problems> {
    search(&yaml::read_text(name, text)?)
}

pub(crate) fn search(tree: &Node) -> Result<Outline, Problems> {
    let found = outline(tree)?;
    if found.0.points.space.is_empty() {
        let message = format!("nothing can be searched here: {}", SpaceError::Empty);
        return Err(tree.problem("strategy", message));
    }
    Ok(found)
}

/// The same, where there may be no parameter to search.
pub(crate) fn outline(tree: &Node) -> Result<Outline, Problems> {
    yaml::decode_and(tree, |fields, tree| Reader { fields, tree }.read())
}

/// A search as written, and the tree that it was decoded from.
struct Reader<'a> {
    fields: Fields,
    tree: &'a Node,
}

impl Reader<'_> {
    fn read(self) -> Result<Outline, Problems> {
        let Reader { fields, tree } = &self;
        let question = question_of(tree, fields.question.as_ref());
        let points = Points::read(tree, fields.strategy.as_ref(), fields.parameters.as_ref());
        let limits = (budget(tree, &fields.budget), guards(tree, &fields.guards)).together();
        let files = Files::default();
        let loads = self.loads(&files);
        let names = given(&loads, |loads| {
            Ok(loads.iter().filter_map(|load| load.name.clone()).collect::<Vec<String>>())
        });
        let objectives = given(&names, |names| self.objectives(names));
        let constraints = given(&names, |names| self.constraints(names));
        let mut once = Once::new(&files);
        let legal = given(&points, |points| {
            given(&loads, |loads| every(loads.iter().map(|load| load.check(points, &mut once))))
        });
        let wanted = (question, objectives, constraints, legal).together();
        let (wanted, points, (budget, guards), loads) =
            (wanted, points, limits, loads).together()?;
        let (question, objectives, constraints, _) = wanted;
        let found = Search {
            name: String::new(),
            question,
            objectives,
            constraints,
            guards,
            budget,
            confirm: size(fields.confirm.seeds.map_or(DEFAULT_CONFIRM, Whole::get)),
            points,
            loads,
            notes: Vec::new(),
            discussion: fields.discussion.clone(),
        };
        check_grid(tree, &found)?;
        Ok(Outline(found))
    }

    /// What every point is run on, with rates as they are written.
    fn loads(&self, files: &Files) -> Result<Vec<Load>, Problems> {
        let Reader { fields, tree } = self;
        let base = base(tree, fields.base.as_ref());
        let load = |name, base| {
            let (saturations, files) = (Saturations::default(), files.clone());
            Load { name, base, saturations, files, slo: SloTargets::default() }
        };
        if fields.workloads.is_empty() {
            tree.whole(&["workloads"])?;
            return Ok(vec![load(None, base?)]);
        }
        let named = given(&base, |base| workloads(tree, &fields.workloads, base));
        let (_, (), named) = (base, self.check_patches(), named).together()?;
        Ok(named.into_iter().map(|(name, base)| load(Some(name), base)).collect())
    }

    /// What a search decides is no part of a workload: it would be dropped.
    fn check_patches(&self) -> Result<(), Problems> {
        let sets = self.fields.workloads.iter().enumerate();
        let sets = sets.filter_map(|(index, workload)| Some((index, workload.set.as_ref()?)));
        let parts = || strategy::POLICIES.iter().chain(&[strategy::FIELD, "seed"]);
        every(sets.flat_map(|(index, set)| {
            parts().map(move |part| match (set.field(part), *part) {
                (None, _) => Ok(()),
                (Some(found), part) => {
                    let path = format!("workloads[{index}].set.{part}");
                    let message = match part {
                        "seed" => "a search sets its own seeds; remove it",
                        _ => "policies come from `strategy`, the same in all workloads; remove it",
                    };
                    Err(Problem::new(found.place.clone(), path, message))
                }
            })
        }))
        .map(drop)
    }

    /// What is made small or large.
    fn objectives(&self, names: &[String]) -> Result<Vec<Objective>, Problems> {
        let Reader { fields, tree } = self;
        let both = [("objective", &fields.objective, false), ("maximise", &fields.maximise, true)];
        let all = every(both.into_iter().flat_map(|(field, listed, maximise)| {
            let listed = listed.iter().flat_map(|listed| &listed.0).enumerate();
            listed.map(move |(index, text)| {
                let number = number(text, names).map_err(|message| {
                    let place = tree.place_of(&format!("{field}[{index}]"));
                    Problem::new(place, field, message)
                })?;
                Ok::<_, Problem>(Objective { number, maximise })
            })
        }))?;
        if all.is_empty() {
            tree.whole(&["objective", "maximise"])?;
            let message = "there is no objective; give `objective` (minimised) or `maximise`";
            return Err(Problem::new(tree.place.clone(), "objective", message).into());
        }
        let name = |index: usize| all[index].number.name();
        if let Some(again) = (1..all.len()).find(|&i| (0..i).any(|before| name(before) == name(i)))
        {
            let message = format!("found `{}` twice; remove one", name(again));
            let field = if all[again].maximise { "maximise" } else { "objective" };
            return Err(tree.problem(field, message));
        }
        Ok(all)
    }

    /// What must hold; in each workload, if it does not name one.
    fn constraints(&self, names: &[String]) -> Result<Vec<Constraint>, Problems> {
        let written = every(self.fields.constraints.iter().enumerate().map(|(index, text)| {
            Constraint::parse(text, names).map_err(|(message, at)| {
                let problems = self.tree.problem(format!("constraints[{index}]"), message);
                problems.map(|problem| problem.pointing(text, &at))
            })
        }))?;
        Ok(written.into_iter().flat_map(|one| one.each(names)).collect())
    }
}

/// The number that is called `text` where workloads have these names.
fn number(text: &str, names: &[String]) -> Result<Number, String> {
    let number = Number::parse(text, names).map_err(|(why, _)| why)?;
    if names.len() > 1 && number.workload.is_none() && number.metric.mean().is_none() {
        return Err(format!(
            "`{text}` is a count, which has no mean over workloads; name one, e.g. `{text} @ {}`, \
             or use a share or a rate",
            names[0]
        ));
    }
    Ok(number)
}

fn budget(tree: &Node, fields: &BudgetFields) -> Result<Budget, Problems> {
    let engine = match fields.engine.as_deref() {
        None => Engine::Gp,
        Some(name) => Engine::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
            let message = unknown("engine", name, &Engine::ALL.map(Engine::name));
            tree.problem("budget.engine", message)
        })?,
    };
    Ok(Budget {
        calls: size(fields.calls.map_or(DEFAULT_CALLS, Whole::get)),
        seeds: size(fields.seeds.map_or(DEFAULT_SEEDS, Whole::get)),
        engine,
        seed: fields.seed.map_or(0, Whole::get),
        batch: size(fields.batch.map_or(DEFAULT_BATCH, Whole::get)),
        racing: fields.racing.unwrap_or(true),
    })
}

/// What no recommendation may do: a share that may be refused beyond the hand-set point's, or
/// `false`, and whether classes keep their order.
fn guards(tree: &Node, fields: &GuardFields) -> Result<Guards, Problems> {
    let usual = Guards::default();
    let refused = match fields.refused.as_deref() {
        None => usual.refused,
        Some("false") => None,
        Some(text) => {
            let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |it| (it, 0.01));
            let share = yaml::float(number.trim()).map(|number| unit * number);
            let share = share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
                let message = format!("found `{text}`; legal: a share, e.g. `5%`, or `false`");
                tree.problem("guards.refused", message)
            })?;
            Some(share)
        }
    };
    Ok(Guards { refused, class_order: fields.class_order.unwrap_or(usual.class_order) })
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
fn check_grid(tree: &Node, search: &Search) -> Result<(), Problems> {
    tree.whole(&["budget"])?;
    let calls = search.budget.calls;
    if search.budget.engine != Engine::Grid || search.grid_steps().is_some() {
        return Ok(());
    }
    let least = Grid::new(search.problem(0), 2).size();
    let least = least.map_or("too many".to_owned(), |size| size.to_string());
    let message = format!(
        "the coarsest grid has {least} points, but the budget is {calls} calls; raise it, search \
         fewer parameters, or use another engine"
    );
    Err(tree.problem("budget", message))
}
