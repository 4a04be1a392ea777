//! `--format json`: one object with everything.

use crate::report::Finished;
use crate::report::fitness::Fitness;
use blis_scenario::Row;
use blis_scenario::json::Fields;
use serde_json::Value;

pub(crate) use blis_scenario::json::text;

/// The result of one run.
pub(crate) fn object(finished: &Finished<'_>) -> Value {
    let mut row = Row::of(finished.plan, finished.result);
    row.run.wall_seconds = finished.wall_seconds;
    row.run.cpu_seconds = finished.cpu_seconds;
    let mut all = row.numbers();
    if let Some(score) = &finished.fitness {
        all.value("fitness", fitness(score));
    }
    all.into_value()
}

/// The results of several runs that differ in their seed.
pub(crate) fn replications(runs: &[Finished<'_>], wall: f64, cpu: Option<f64>) -> Value {
    let mut run = Fields::default();
    if let Some(first) = runs.first() {
        run.text("scenario_hash", first.plan.hash());
    }
    run.text("version", env!("CARGO_PKG_VERSION"));
    run.number("wall_seconds", Some(wall));
    run.number("cpu_seconds", cpu);
    let mut all = Fields::default();
    all.value("run", run.into_value());
    all.value("replications", runs.iter().map(object).collect::<Vec<Value>>());
    all.into_value()
}

/// The score of a run.
fn fitness(fitness: &Fitness) -> Value {
    let mut fields = Fields::default();
    fields.number("score", Some(fitness.score));
    for (key, component) in &fitness.components {
        fields.number(key, Some(*component));
    }
    fields.into_value()
}
