//! Rows: what a finished trial leaves behind, as one JSON object.
//!
//! A row holds every number of a run that does not depend on the machine it ran on, so that equal
//! trials have equal rows, byte for byte, and whoever has the row needs no run. `blis run --format
//! json` prints the same numbers through the same description, in `row/shape.rs`.

mod shape;

use crate::json::{Fields, Reader};
use crate::run::RunResult;
use crate::scenario::Plan;
use blis_core::TenantId;
use blis_metrics::Report;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The version of the layout of rows. It changes when a key changes its meaning or goes away; new
/// keys do not change it, because readers skip the keys that they do not know.
pub const SCHEMA: u64 = 1;

/// What a finished trial leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
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
        };
        Row { run, report, tenants: tenants.clone(), warnings: result.warnings(plan) }
    }

    /// Its numbers, without what only rows have (`schema` and `warnings`).
    pub fn numbers(&self) -> Fields {
        let mut fields = Fields::default();
        shape::numbers(&mut fields, &mut self.clone());
        fields
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

    fn from_value(value: &Value) -> Result<Row, String> {
        let Value::Object(fields) = value else {
            return Err("it is not an object".to_owned());
        };
        match fields.get("schema").and_then(Value::as_u64) {
            None => return Err("`schema` is missing: it is not a row of a trial".to_owned()),
            Some(schema) if schema > SCHEMA => {
                return Err(format!(
                    "it has layout {schema}, but this program knows up to {SCHEMA}; update blis"
                ));
            }
            Some(_) => {}
        }
        let mut row = Row::default();
        Reader::read(fields, |reader| shape::row(reader, &mut row))?;
        row.report.duration_s = row.run.simulated_seconds;
        Ok(row)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::default();
        fields.count("schema", SCHEMA);
        shape::row(&mut fields, &mut self.clone());
        fields.into_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Row, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Row::from_value(&value).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
