//! Arrival processes by name.

use crate::legal::Finite;
use crate::problem::{none_of, quoted};
use crate::problems::Problems;
use crate::workload_spec::client::Reader;
use crate::workload_spec::words::message;
use crate::yaml::Amount;
use blis_workload::{Arrival, Weibull};
use schemars::JsonSchema;
use serde::Deserialize;

/// `arrival:` as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ArrivalSpec {
    process: String,
    cv: Option<Amount<Finite>>,
}

impl Reader<'_> {
    pub(super) fn arrival(&self, spec: &ArrivalSpec) -> Result<Arrival, Problems> {
        arrival(&spec.process, spec.cv.map(|cv| cv.get()))
            .map_err(|(field, message)| self.problem(&format!("arrival.{field}"), message))
    }
}

/// The arrival process of that name.
///
/// # Errors
/// The field at fault (`process` or `cv`) and what is wrong with it, if the process is unknown or
/// has a parameter that it does not read.
pub fn arrival(process: &str, cv: Option<f64>) -> Result<Arrival, (&'static str, String)> {
    let known = ["constant", "gamma", "poisson", "weibull"];
    match (process, cv) {
        ("gamma", cv) => Ok(Arrival::Gamma { cv: cv.unwrap_or(1.0) }),
        ("weibull", cv) => Weibull::new(cv.unwrap_or(1.0))
            .map(Arrival::Weibull)
            .map_err(|error| ("cv", message(&error))),
        ("poisson", None) => Ok(Arrival::Poisson),
        ("constant", None) => Ok(Arrival::Constant),
        ("poisson" | "constant", Some(_)) => {
            let message =
                format!("arrivals that are `{process}` have no `cv`; remove it, or use `gamma`");
            Err(("cv", message))
        }
        ("", _) => Err(("process", format!("found nothing; legal: {}", quoted(&known)))),
        (other, _) => Err(("process", none_of(&known, other))),
    }
}
