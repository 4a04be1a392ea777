//! The workload specification (version 2 of the Go program's YAML), and the clients of a scenario's
//! `mix`.
//!
//! Reads what is supported into a [`Mix`]. What version 2 knows and BLIS does not simulate yet is
//! refused by name: a workload that silently lost a part would give numbers for something else.

use crate::problem::{Place, Problem, hint, quoted};
use crate::scenario::schema::{Finite, MOST_REQUESTS, PerSecond, Unsupported};
use crate::yaml::{self, Amount, Node, Whole};
use blis_core::math::{count, float};
use blis_core::{SloClass, Time};
use blis_latency::Catalogue;
use blis_workload::{
    Activity, Arrival, Client, Empirical, Length, MAX_TOKENS, Mix, Rate, SpecError, TraceError,
    TraceErrorKind, Weibull,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A prefix group's length when the client gives none.
const DEFAULT_PREFIX_LENGTH: u32 = 50;

/// A workload specification as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Spec {
    version: Option<String>,
    seed: Option<Whole<0, { u64::MAX }>>,
    category: Option<String>,
    aggregate_rate: Option<Amount<PerSecond>>,
    num_requests: Option<Whole<0, MOST_REQUESTS>>,
    horizon: Option<Whole<0, { u64::MAX }>>,
    clients: Vec<ClientSpec>,
    cohorts: Unsupported,
    servegen_data: Unsupported,
    inference_perf: Unsupported,
}

/// One client as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientSpec {
    id: String,
    tenant_id: String,
    slo_class: String,
    model: String,
    rate_fraction: Option<Amount<Finite>>,
    arrival: ArrivalSpec,
    input_distribution: LengthSpec,
    output_distribution: LengthSpec,
    prefix_group: String,
    prefix_length: Option<Whole<0, 1_073_741_824>>,
    streaming: bool,
    network: Unsupported,
    lifecycle: Unsupported,
    multimodal: Unsupported,
    reasoning: Unsupported,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ArrivalSpec {
    process: String,
    cv: Option<Amount<Finite>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LengthSpec {
    r#type: String,
    params: BTreeMap<String, Amount<Finite>>,
    file: Unsupported,
}

/// What a specification file says.
#[derive(Clone, Debug)]
pub struct SpecFile {
    /// The clients, their total rate and how many requests; `horizon` and `seed` are still to be
    /// decided.
    pub mix: Mix,
    /// The seed it asks for.
    pub seed: Option<u64>,
    /// The horizon it asks for.
    pub horizon: Option<Time>,
    /// Whether it gives a rate.
    pub has_rate: bool,
    /// The tree, to find the places of what is wrong.
    pub tree: Node,
}

/// Reads the specification file `path` for a scenario that simulates `model`.
///
/// # Errors
/// If it cannot be read, is malformed, or asks for something illegal or not supported.
pub fn read(path: &Path, model: &str) -> Result<SpecFile, Problem> {
    let tree = yaml::read_file(path)?;
    let spec: Spec = yaml::decode(&tree)?;
    let absent = [
        ("cohorts", spec.cohorts.given),
        ("servegen_data", spec.servegen_data.given),
        ("inference_perf", spec.inference_perf.given),
    ];
    if let Some((field, _)) = absent.iter().find(|(_, given)| *given) {
        return Err(not_yet(&tree, field, "write `clients` instead"));
    }
    let names = match spec.version.as_deref() {
        None | Some("" | "1") => ClassNames::Version1,
        Some("2") => ClassNames::Current,
        Some(other) => {
            let message = format!("found `{other}`; legal: `1`, `2`");
            return Err(Problem::new(tree.place_of("version"), "version", message));
        }
    };
    if let Some(category) = &spec.category {
        // A label of the workload; it changes nothing.
        let known = ["language", "multimodal", "reasoning"];
        if !category.is_empty() && !known.contains(&category.as_str()) {
            let hint = hint(category, known);
            let message = format!("found `{category}`{hint}; legal: {}", quoted(&known));
            return Err(Problem::new(tree.place_of("category"), "category", message));
        }
    }
    let clients = clients(&tree, "clients", &spec.clients, &ClientContext { names, model })?;
    let micros = spec.horizon.map(Whole::get).filter(|&us| us > 0);
    let mix = Mix {
        clients,
        rate: Rate::Steady(spec.aggregate_rate.map_or(1.0, |rate| rate.get())),
        num_requests: spec.num_requests.map(Whole::get).filter(|&n| n > 0),
        horizon: None,
        seed: 0,
    };
    Ok(SpecFile {
        mix,
        seed: spec.seed.map(Whole::get),
        horizon: micros.and_then(super::scenario::horizon),
        has_rate: spec.aggregate_rate.is_some(),
        tree,
    })
}

/// Which names of service classes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassNames {
    /// Today's.
    Current,
    /// Today's, and those of version 1 of the specification.
    Version1,
}

/// What the clients of a workload have in common.
#[derive(Clone, Copy, Debug)]
pub struct ClientContext<'a> {
    /// Which names of service classes are read.
    pub names: ClassNames,
    /// The model that the scenario simulates, by its name in the catalogue.
    pub model: &'a str,
}

/// The clients that stand at `path` of `tree`.
///
/// # Errors
/// If one is illegal or asks for something that is not supported.
pub fn clients(
    tree: &Node,
    path: &str,
    specs: &[ClientSpec],
    context: &ClientContext<'_>,
) -> Result<Vec<Client>, Problem> {
    if specs.is_empty() {
        let at = |path: &str| tree.place_of(path);
        return Err(Problem::new(at(path), path, "there are no clients; add at least one"));
    }
    let mut group_lengths: BTreeMap<&str, u32> = BTreeMap::new();
    let mut clients = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        let reader = Reader { tree, path: format!("{path}[{index}]"), context };
        let given = spec.prefix_length.map(Whole::get_u32).filter(|&length| length > 0);
        let prefix_tokens = match (spec.prefix_group.none_if_empty(), given) {
            (None, None) => 0,
            (None, Some(_)) => {
                let message = "there is no `prefix_group` whose tokens these are; name one";
                return Err(reader.problem("prefix_length", message));
            }
            // A client that gives no length has that of the first client of its group.
            (Some(group), given) => {
                let first =
                    *group_lengths.entry(group).or_insert(given.unwrap_or(DEFAULT_PREFIX_LENGTH));
                given.unwrap_or(first)
            }
        };
        clients.push(Client { prefix_tokens, ..reader.client(spec)? });
    }
    Ok(clients)
}

/// A complaint of `Mix::validate` in the words of a specification whose fields stand under `path`.
pub fn translate(tree: &Node, path: &str, error: &SpecError) -> Problem {
    let whole = if error.field == "rate" { "aggregate_rate" } else { &error.field };
    let field = whole
        .replace(".share", ".rate_fraction")
        .replace(".tenant", ".tenant_id")
        .replace(".prefix_tokens", ".prefix_length")
        .replace(".input.text.", ".input_distribution.params.")
        .replace(".output.", ".output_distribution.params.");
    let at = |field: &str| {
        if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
    };
    let blamed = if at_fault(tree, &at("aggregate_rate"), &at("num_requests"), error) {
        at("num_requests")
    } else {
        at(&field)
    };
    Problem::new(tree.place_of(&blamed), blamed, message(error))
}

/// Whether the number of requests rather than the rate is to blame for a workload that takes too
/// long: it is, if it was given and the rate was not.
pub(crate) fn at_fault(tree: &Node, rate: &str, requests: &str, error: &SpecError) -> bool {
    error.field == "rate" && !tree.has(rate) && tree.has(requests)
}

/// What is wrong, in one sentence.
pub(crate) fn message(error: &SpecError) -> String {
    let SpecError { field, found, legal } = error;
    match field.as_str() {
        "num_requests" if found.starts_with("neither") => {
            "a workload needs a number of requests or a horizon; give one of them".to_owned()
        }
        // These are found in words, not in a value.
        _ if found.contains(' ') => format!("found {found}; legal: {legal}"),
        _ => format!("found `{found}`; legal: {legal}"),
    }
}

fn not_yet(tree: &Node, path: &str, remedy: &str) -> Problem {
    let message = format!("not supported yet; {remedy}");
    Problem::new(tree.place_of(path), path, message)
}

trait NoneIfEmpty {
    fn none_if_empty(&self) -> Option<&str>;
}

impl NoneIfEmpty for str {
    fn none_if_empty(&self) -> Option<&str> {
        Some(self).filter(|text| !text.is_empty())
    }
}

/// Reads one client and knows where it stands.
struct Reader<'a> {
    tree: &'a Node,
    path: String,
    context: &'a ClientContext<'a>,
}

impl Reader<'_> {
    fn problem(&self, field: &str, message: impl Into<String>) -> Problem {
        let path = format!("{}.{field}", self.path);
        Problem::new(self.tree.place_of(&path), path, message)
    }

    fn not_yet(&self, field: &str, remedy: &str) -> Problem {
        not_yet(self.tree, &format!("{}.{field}", self.path), remedy)
    }

    /// The client, but for the length of its prefix, which its group decides.
    fn client(&self, spec: &ClientSpec) -> Result<Client, Problem> {
        let unsupported = [
            ("network", spec.network.given),
            ("lifecycle", spec.lifecycle.given),
            ("multimodal", spec.multimodal.given),
            ("reasoning", spec.reasoning.given),
        ];
        if let Some((field, _)) = unsupported.iter().find(|(_, given)| *given) {
            return Err(self.not_yet(field, "remove the field"));
        }
        self.check_model(&spec.model)?;
        let share = spec.rate_fraction.ok_or_else(|| {
            self.problem("rate_fraction", "missing; write the client's share of the rate, e.g. `1`")
        })?;
        Ok(Client {
            name: spec.id.clone(),
            tenant: spec.tenant_id.none_if_empty().unwrap_or("default").to_owned(),
            class: self.class(&spec.slo_class)?,
            share: share.get(),
            arrival: self.arrival(&spec.arrival)?,
            prefix_group: spec.prefix_group.none_if_empty().map(str::to_owned),
            prefix_tokens: 0,
            input: self.length("input_distribution", &spec.input_distribution)?.into(),
            output: self.length("output_distribution", &spec.output_distribution)?,
            activity: Activity::default(),
            sessions: None,
            deadline: None,
        })
    }

    fn class(&self, name: &str) -> Result<SloClass, Problem> {
        match (name, self.context.names) {
            ("", _) | ("interactive", ClassNames::Version1) => return Ok(SloClass::Standard),
            ("realtime", ClassNames::Version1) => return Ok(SloClass::Critical),
            _ => {}
        }
        SloClass::from_name(name).ok_or_else(|| {
            let known = SloClass::ALL.map(SloClass::name);
            let hint = hint(name, known);
            self.problem("slo_class", format!("found `{name}`{hint}; legal: {}", quoted(&known)))
        })
    }

    /// One model is simulated, so a client can only ask for that one.
    fn check_model(&self, name: &str) -> Result<(), Problem> {
        let ours = self.context.model;
        let catalogue = Catalogue::shipped();
        let canonical = catalogue.model(name).map_or(name, |model| model.name.as_str());
        if name.is_empty() || canonical == ours {
            return Ok(());
        }
        let legal = format!("`{ours}`, the scenario's, or no `model`: only one is simulated");
        Err(self.problem("model", format!("found `{name}`; legal: {legal}")))
    }

    fn arrival(&self, spec: &ArrivalSpec) -> Result<Arrival, Problem> {
        arrival(&spec.process, spec.cv.map(|cv| cv.get()))
            .map_err(|(field, message)| self.problem(&format!("arrival.{field}"), message))
    }

    fn length(&self, field: &str, spec: &LengthSpec) -> Result<Length, Problem> {
        let at = |name: &str| format!("{field}.{name}");
        if spec.file.given {
            return Err(self.not_yet(&at("file"), "give the distribution's `params`"));
        }
        let (required, optional): (&[&str], &[&str]) = match spec.r#type.as_str() {
            "gaussian" => (&["mean", "std_dev", "min", "max"], &[]),
            "exponential" => (&["mean"], &["min", "max"]),
            "constant" => (&["value"], &[]),
            "geometric" => (&["mean"], &[]),
            "lognormal" => (&["mu", "sigma"], &["min", "max"]),
            "pareto_lognormal" => (&["alpha", "xm", "mu", "sigma", "mix_weight"], &[]),
            "empirical" => return self.empirical(&at("params"), spec),
            other => {
                let known = [
                    "constant",
                    "empirical",
                    "exponential",
                    "gaussian",
                    "geometric",
                    "lognormal",
                    "pareto_lognormal",
                ];
                let hint = hint(other, known);
                let found =
                    if other.is_empty() { "nothing".to_owned() } else { format!("`{other}`") };
                let message = format!("found {found}{hint}; legal: {}", quoted(&known));
                return Err(self.problem(&at("type"), message));
            }
        };
        let known = [required, optional].concat();
        if let Some(name) = spec.params.keys().find(|name| !known.contains(&name.as_str())) {
            let hint = hint(name, known.iter().copied());
            let message = format!("unknown parameter `{name}`{hint}; known: {}", quoted(&known));
            return Err(self.problem(&at(&format!("params.{name}")), message));
        }
        if let Some(name) = required.iter().find(|name| !spec.params.contains_key(**name)) {
            let message = format!("parameter `{name}` of `{}` is missing; add it", spec.r#type);
            return Err(self.problem(&at("params"), message));
        }
        self.make_length(&at("params"), spec)
    }

    /// Lengths as parameters, each with its weight.
    fn empirical(&self, field: &str, spec: &LengthSpec) -> Result<Length, Problem> {
        let mut bins = Vec::with_capacity(spec.params.len());
        for (name, weight) in &spec.params {
            let length = name.parse::<u32>().map_err(|_| {
                let message = format!(
                    "found `{name}`; legal: a length, a whole number from 1 to {MAX_TOKENS}"
                );
                self.problem(&format!("{field}.{name}"), message)
            })?;
            bins.push((length, weight.get()));
        }
        Empirical::new(bins)
            .map(Length::Empirical)
            .map_err(|error| self.problem(&format!("{field}.{}", error.field), message(&error)))
    }

    fn make_length(&self, field: &str, spec: &LengthSpec) -> Result<Length, Problem> {
        let get = |name: &str| spec.params.get(name).map(Amount::get);
        let mean = get("mean").unwrap_or_default();
        let tokens = |name: &str, default: u32| match get(name) {
            None => Ok(default),
            Some(value) => u32::try_from(count(value))
                .ok()
                .filter(|&tokens| float(tokens.into()).to_bits() == value.abs().to_bits())
                .filter(|_| value >= 0.0)
                .ok_or_else(|| {
                    let legal = format!("a whole number from 1 to {MAX_TOKENS}");
                    let message = format!("found `{value}`; legal: {legal}");
                    self.problem(&format!("{field}.{name}"), message)
                }),
        };
        // A least length of 0 means 1: no prompt and no output is empty.
        let min = tokens("min", 1)?.max(1);
        let max = tokens("max", MAX_TOKENS)?;
        Ok(match spec.r#type.as_str() {
            "gaussian" => {
                Length::Gaussian { mean, std_dev: get("std_dev").unwrap_or_default(), min, max }
            }
            "exponential" => Length::Exponential { mean, min, max },
            "geometric" => Length::Geometric { mean },
            "lognormal" => Length::Lognormal {
                mu: get("mu").unwrap_or_default(),
                sigma: get("sigma").unwrap_or_default(),
                min,
                max,
            },
            "pareto_lognormal" => Length::ParetoLognormal {
                alpha: get("alpha").unwrap_or_default(),
                xm: get("xm").unwrap_or_default(),
                mu: get("mu").unwrap_or_default(),
                sigma: get("sigma").unwrap_or_default(),
                mix_weight: get("mix_weight").unwrap_or_default(),
            },
            _ => Length::Constant(tokens("value", 1)?),
        })
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
        (other, _) => {
            let hint = hint(other, known);
            Err(("process", format!("found `{other}`{hint}; legal: {}", quoted(&known))))
        }
    }
}

/// What is wrong with a trace, as a problem of its file.
pub(crate) fn trace_problem(error: &TraceError) -> Problem {
    let io = error.kind == TraceErrorKind::Io;
    let file: Arc<str> = error.path.as_str().into();
    let problem = match (error.line, u64::try_from(error.column)) {
        (0, _) | (_, Err(_)) => Problem::of_file(&file, error.message.clone()),
        (line, Ok(column)) => {
            Problem::new(Place::File { file, line, column }, "", error.message.clone())
        }
    };
    Problem { io, ..problem }
}
