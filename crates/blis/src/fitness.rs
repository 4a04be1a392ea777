//! `--fitness-weights`: one score from several components, each between 0 and 1.

use crate::failure::Failure;
use blis_metrics::{Latency, Report};
use blis_report::run::Fitness;
use std::collections::BTreeMap;

const KEYS: [&str; 8] = [
    "mean_e2e",
    "mean_ttft",
    "p50_e2e",
    "p50_ttft",
    "p99_e2e",
    "p99_ttft",
    "throughput",
    "tokens_per_sec",
];

/// The greatest weight: only ratios matter, and this leaves room for any.
const GREATEST: f64 = 1e6;

/// Weights by component, checked before anything runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights(BTreeMap<&'static str, f64>);

impl Weights {
    /// Reads `key:weight,...`: every key once, and at least one weight above 0.
    pub(crate) fn parse(text: &str) -> Result<Weights, Failure> {
        let refuse = |what: String| Failure::Input(format!("--fitness-weights: {what}"));
        let mut weights = BTreeMap::new();
        for part in text.split(',') {
            let (key, weight) = part.split_once(':').ok_or_else(|| {
                refuse(format!("found `{part}`; legal: `key:weight,...`, e.g. `throughput:1`"))
            })?;
            let key = key.trim();
            let known = KEYS.iter().find(|known| **known == key).ok_or_else(|| {
                let hint = blis_scenario::problem::hint(key, KEYS);
                let known = blis_scenario::problem::quoted(&KEYS);
                refuse(format!("unknown key `{key}`{hint}; known: {known}"))
            })?;
            let number: Option<f64> = weight.trim().parse().ok();
            let number =
                number.filter(|weight| (0.0..=GREATEST).contains(weight)).ok_or_else(|| {
                    refuse(format!("found `{weight}` for `{key}`; legal: a number from 0 to 1e6"))
                })?;
            if weights.insert(*known, number).is_some() {
                return Err(refuse(format!("`{key}` is given twice; keep one")));
            }
        }
        if weights.values().all(|&weight| weight <= 0.0) {
            return Err(refuse("all weights are 0; legal: at least one above 0".to_owned()));
        }
        Ok(Weights(weights))
    }

    /// The score of a run.
    pub(crate) fn judge(&self, report: &Report) -> Fitness {
        let cluster = &report.cluster;
        let share = |value: Option<f64>, half: f64| value.map(|value| value / (value + half));
        // A latency of one millisecond scores a half. Without a sample there is nothing to praise.
        let speed = |ms: Option<f64>| ms.map(|ms| 1.0 / (1.0 + ms));
        let of = |latency: &Latency, key: &str| match key.split('_').next() {
            Some("mean") => speed(latency.mean_ms),
            Some("p50") => speed(latency.p50_ms),
            _ => speed(latency.p99_ms),
        };
        let component = |key: &'static str| match key {
            "throughput" => share(cluster.responses_per_sec, 100.0),
            "tokens_per_sec" => share(cluster.tokens_per_sec, 10_000.0),
            key if key.ends_with("ttft") => of(&cluster.ttft, key),
            key => of(&cluster.e2e, key),
        };
        let components: Vec<(&str, f64)> =
            self.0.keys().map(|&key| (key, component(key).unwrap_or(0.0))).collect();
        let score = self.0.values().zip(&components).map(|(weight, (_, part))| weight * part).sum();
        Fitness { score, components }
    }
}
