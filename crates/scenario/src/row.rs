//! Rows: what a finished trial leaves behind, as one JSON object.
//!
//! A row holds every number of a run that does not depend on the machine it ran on, so that equal
//! trials have equal rows, byte for byte, and whoever has the row needs no run. `blis run --format
//! json` prints the same numbers. Their keys are those of the structs in `metrics`.

use crate::json::object;
use crate::run::RunResult;
use crate::scenario::Plan;
use blis_core::{SloClass, TenantId};
use blis_metrics::report::by_class;
use blis_metrics::{
    Decomposition, Distributions, EngineTime, InstanceSection, KvSection, PoolSection, Report,
    RoutingSection, Saturation, Section, Steady,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The version of the layout of rows. It changes when a key changes its meaning or goes away; new
/// keys do not change it, because readers skip the keys that they do not know.
pub const SCHEMA: u64 = 1;

/// What a finished trial leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Wire")]
pub struct Row {
    /// Which run it was, and how it went.
    pub run: RunNumbers,
    /// Its numbers. The ids of tenants only count them.
    pub report: Report,
    /// Names of the tenants of `report.tenants`, in the same order.
    pub tenants: Vec<String>,
    /// What the numbers do not show, although whoever reads them must know.
    pub warnings: Vec<String>,
}

/// Which run it was, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunNumbers {
    /// The seed of the workload and of the policies.
    pub seed: u64,
    /// The hash of the scenario.
    pub scenario_hash: String,
    /// The version of the program.
    pub version: String,
    /// How long the run was, in simulated seconds.
    pub simulated_seconds: f64,
    /// Seconds on the clock; never in a row that is kept.
    pub wall_seconds: Option<f64>,
    /// CPU seconds; never in a row that is kept.
    pub cpu_seconds: Option<f64>,
    /// Events that were simulated.
    pub events: u64,
    /// The cluster's saturation in arrivals per second, if the rate is a share of it.
    pub saturation_per_sec: Option<f64>,
    /// How it ended: `drained`, `horizon` or `interrupted`.
    pub end: String,
    /// Steps outside what the latency model was fitted to; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extrapolated_steps: Option<u64>,
    /// How far percentiles of latencies may be from the exact ones, as a share; absent if they are
    /// exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles_within: Option<f64>,
}

impl Row {
    /// The row of a run of `plan`.
    pub fn of(plan: &Plan, result: &RunResult) -> Row {
        let RunResult { seed, report, outcome, tenants, audit: _ } = result;
        let mut report = report.clone();
        for (id, (tenant, _)) in (0..).zip(&mut report.tenants) {
            *tenant = TenantId(id);
        }
        let run = RunNumbers {
            seed: *seed,
            scenario_hash: plan.hash(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            simulated_seconds: outcome.ended_at.as_secs_f64(),
            wall_seconds: None,
            cpu_seconds: None,
            events: outcome.events,
            saturation_per_sec: plan.saturation,
            end: outcome.end.name().to_owned(),
            extrapolated_steps: Some(outcome.extrapolated.steps).filter(|&steps| steps > 0),
            percentiles_within: report.large.then_some(0.001),
        };
        Row { run, report, tenants: tenants.clone(), warnings: result.warnings(plan) }
    }

    /// Its numbers, without what only rows have (`schema` and `warnings`).
    pub fn numbers(&self) -> Value {
        object(&Wire { schema: None, warnings: Vec::new(), ..Wire::from(self.clone()) })
    }

    /// The same as `blis run` prints them: with the engine of `plan`, which it is a row of.
    pub fn printed(&self, plan: &Plan) -> Value {
        let mut all = self.numbers();
        all["engine"] = json!({
            "max_num_scheduled_tokens": plan.engine.max_num_scheduled_tokens,
            "max_num_running_reqs": plan.engine.max_num_running_reqs,
            "async_scheduling": plan.engine.async_scheduling,
            "latency_model": plan.latency_kind(),
        });
        all
    }

    /// The row as one line of JSON, without a final newline.
    ///
    /// # Panics
    /// Never: plain values can be written as JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain values can be written as JSON")
    }

    /// The row in `text`. Keys that are not known are skipped.
    ///
    /// # Errors
    /// What is wrong with it: no JSON, no row, or a row of a newer layout.
    pub fn parse(text: &str) -> Result<Row, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        object(&Wire::from(self.clone())).serialize(serializer)
    }
}

/// The objects of a row, in their order. A key that is missing leaves the default.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Wire {
    schema: Option<u64>,
    run: RunNumbers,
    cluster: Cluster,
    #[serde(with = "by_class")]
    classes: Vec<(SloClass, Section)>,
    /// A [`Section`] each. They stay in their order.
    tenants: Map<String, Value>,
    instances: Vec<InstanceSection>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pools: Vec<PoolSection>,
    kv: KvSection,
    routing: RoutingSection,
    decomposition: Decomposition,
    mechanisms: BTreeMap<String, u64>,
    steady: Steady,
    curves: Option<Distributions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The numbers of all requests.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Cluster {
    #[serde(flatten)]
    requests: Section,
    offered_per_sec: Option<f64>,
    jain_fairness: Option<f64>,
    saturation: Option<Saturation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overloaded_from_s: Option<f64>,
    mean_in_system: Option<f64>,
    #[serde(flatten)]
    engine_time: Option<EngineTime>,
}

impl From<Row> for Wire {
    fn from(row: Row) -> Wire {
        let Row { run, report, tenants, warnings } = row;
        let sections = report.tenants.iter().map(|(_, section)| object(section));
        let cluster = Cluster {
            requests: report.cluster,
            offered_per_sec: report.offered_per_sec,
            jain_fairness: report.jain_fairness,
            saturation: report.saturation,
            overloaded_from_s: report.overloaded_from_s,
            mean_in_system: report.mean_in_system,
            engine_time: report.engine_time,
        };
        Wire {
            schema: Some(SCHEMA),
            run,
            cluster,
            classes: report.classes,
            tenants: tenants.into_iter().zip(sections).collect(),
            instances: report.instances,
            pools: report.pools,
            kv: report.kv,
            routing: report.routing,
            decomposition: report.decomposition,
            mechanisms: report.mechanisms,
            steady: report.steady,
            curves: report.curves,
            warnings,
        }
    }
}

impl TryFrom<Wire> for Row {
    type Error = String;

    fn try_from(wire: Wire) -> Result<Row, String> {
        let schema = wire.schema.ok_or("`schema` is missing: it is not a row of a trial")?;
        if schema > SCHEMA {
            return Err(format!(
                "its layout is {schema}, this version reads up to {SCHEMA}; update blis"
            ));
        }
        let (names, sections): (Vec<String>, Vec<Value>) = wire.tenants.into_iter().unzip();
        let tenant = |(id, section)| Ok((TenantId(id), Section::deserialize(section)?));
        let tenants = (0..).zip(&sections).map(tenant).collect::<serde_json::Result<_>>();
        let report = Report {
            cluster: wire.cluster.requests,
            classes: wire.classes,
            tenants: tenants.map_err(|error| error.to_string())?,
            instances: wire.instances,
            pools: wire.pools,
            engine_time: wire.cluster.engine_time,
            kv: wire.kv,
            routing: wire.routing,
            decomposition: wire.decomposition,
            jain_fairness: wire.cluster.jain_fairness,
            saturation: wire.cluster.saturation,
            overloaded_from_s: wire.cluster.overloaded_from_s,
            mean_in_system: wire.cluster.mean_in_system,
            offered_per_sec: wire.cluster.offered_per_sec,
            duration_s: wire.run.simulated_seconds,
            mechanisms: wire.mechanisms,
            steady: wire.steady,
            curves: wire.curves,
            large: wire.run.percentiles_within.is_some(),
        };
        Ok(Row { run: wire.run, report, tenants: names, warnings: wire.warnings })
    }
}

#[cfg(test)]
mod tests;
