//! The playground's compiled half: a question comes as JSON, and the answer goes back as JSON.
//!
//! The page `web/playground.html` writes scenario files and draws what comes back. Whatever decides
//! a number is in `blis-scenario` and below, so the browser's numbers are the command's, byte for
//! byte. It must never read a file or start a thread: browsers have neither here.

#[cfg(target_family = "wasm")]
mod browser;

use blis_metrics::Strips;
use blis_metrics::strips::Moment;
use blis_policy::registry::kinds;
use blis_scenario::problems::Problems;
use blis_scenario::strategy::Parameter;
use blis_scenario::{
    Draft, Plan, Row, RunFailure, Saturations, Trial, json, policies, presets, run_scenario,
    strategy,
};
use blis_sim::{Observer, Progress};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What scenarios are called in messages.
const FILE: &str = "scenario.yaml";

/// What the page asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Question {
    /// What there is to choose from.
    Lists,
    /// What the rate of a scenario is, if it is a share of saturation.
    Settle(Asked),
    /// What a scenario gives.
    Run(Asked),
}

/// A scenario, and the saturations that were measured before.
#[derive(Debug, Deserialize)]
struct Asked {
    scenario: String,
    known: BTreeMap<String, f64>,
}

/// Tells how many requests of a run are over.
struct Watch<'a>(&'a mut dyn FnMut(u64));

impl Observer for Watch<'_> {
    fn go_on(&mut self, progress: Progress) -> bool {
        (self.0)(progress.closed);
        true
    }
}

/// The answer to `question`; `tell` hears now and then how many requests of a run are over. What
/// cannot be answered gives an object with an `error`, in the words of the command.
pub fn answer(question: &str, tell: &mut dyn FnMut(u64)) -> String {
    let answered = match serde_json::from_str(question) {
        Ok(Question::Lists) => lists().map_err(|problems| problems.to_string()),
        Ok(Question::Settle(asked)) => settle(&asked, tell).map_err(|failure| failure.to_string()),
        Ok(Question::Run(asked)) => run(&asked, tell).map_err(|failure| failure.to_string()),
        Err(error) => Err(error.to_string()),
    };
    answered.unwrap_or_else(|error| json!({ "error": error })).to_string()
}

fn lists() -> Result<Value, Problems> {
    let workload = |preset: &presets::Preset| json!({"name": preset.name, "help": preset.summary});
    let strategies: Vec<Value> = strategy::ALL
        .iter()
        .map(|shipped| {
            let strategy = strategy::Strategy::find(shipped.name)?;
            let parameter = |it: &Parameter| json!({"name": it.name, "default": it.default});
            let params: Vec<Value> = strategy.parameters.iter().map(parameter).collect();
            Ok(json!({"name": strategy.name, "help": strategy.help, "params": params}))
        })
        .collect::<Result<_, Problems>>()?;
    Ok(json!({
        "workloads": presets::ALL.iter().map(workload).collect::<Vec<Value>>(),
        "strategies": strategies,
        "policies": kinds().iter().map(policies::object).collect::<Vec<Value>>(),
    }))
}

/// The plan of a scenario, and all saturations that are known then.
fn plan(asked: &Asked, tell: &mut dyn FnMut(u64)) -> Result<(Plan, Saturations), RunFailure> {
    let known = Saturations::default();
    known.extend(asked.known.clone());
    let checked = Draft::from_text(FILE, &asked.scenario)?.resolve()?;
    let plan = checked.settle(&known, &mut Watch(tell))?;
    Ok((plan, known))
}

fn settle(asked: &Asked, tell: &mut dyn FnMut(u64)) -> Result<Value, RunFailure> {
    let (plan, known) = plan(asked, tell)?;
    Ok(json!({"known": known.all(), "saturation": plan.saturation}))
}

/// What `blis run --format json` prints but for its clock, and what charts need besides.
fn run(asked: &Asked, tell: &mut dyn FnMut(u64)) -> Result<Value, RunFailure> {
    let (plan, _) = plan(asked, tell)?;
    let mut strips = Strips::default();
    let trial = Trial { curves: true, ..Trial::new(plan.seed) };
    let mut result = run_scenario(&plan, trial, &mut [&mut strips], None, &mut Watch(tell))?;
    result.check()?;
    let curves = result.report.curves.take();
    let row = Row::of(&plan, &result);
    let moment = |it: &Moment| json!([it.at, it.levels[0], it.levels[1], it.levels[2]]);
    let instance = |all: Vec<Moment>| all.iter().map(moment).collect::<Vec<Value>>();
    Ok(json!({
        "output": json::text(&row.printed(&plan)),
        "warnings": row.warnings,
        "notes": plan.notes,
        "curves": curves,
        "blocks": plan.engine.total_kv_blocks,
        "moments": strips.instances().map(instance).collect::<Vec<Vec<Value>>>(),
    }))
}
