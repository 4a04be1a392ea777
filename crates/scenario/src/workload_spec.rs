//! The workload specification: version 2 of the Go program's YAML, whole, and what BLIS adds to it.
//!
//! Reads a file into a [`Mix`], which `blis_workload` draws requests from; the clients of a
//! scenario's `mix` go the same way ([`read_clients`]), and so do the presets. Unknown fields and
//! illegal values are refused with their place, what was found and what is legal. What is accepted
//! without an effect gives a note: a workload never loses a part in silence.
//!
//! What BLIS adds: `description` and `slo` at the top, the other forms of a rate, and of clients
//! and cohorts `deadline_ms`, `patience_ms`, closed-loop sessions with retries, distributions of
//! rounds and of think time, `diurnal`, `spike` and `drain` of single clients, all fields of a
//! client for cohorts, and `{member}` in their names. Where a field means something else than in
//! the Go program, decision 8 says why.

mod activity;
mod arrival;
mod client;
mod cohort;
mod group;
mod inference_perf;
mod length;
mod media;
mod notes;
mod servegen;
mod session;
#[cfg(test)]
mod tests;
mod words;

pub use arrival::arrival;
pub use client::{ClassNames, ClientContext, ClientSpec};
pub use cohort::{Clients, CohortSpec, Section, read_clients};
pub use words::translate;
pub(crate) use words::{at_fault, message, trace_problem};

use crate::legal::{self, MOST_REQUESTS};
use crate::problem::none_of;
use crate::problems::{Problems, Together};
use crate::rate::{Level, RateSpec};
use crate::slo::SloSpec;
use crate::yaml::{self, Node, Whole};
use blis_core::Time;
use blis_core::math::float;
use blis_metrics::SloTargets;
use blis_workload::{Client, Mix, Rate};
use group::Group;
use inference_perf::InferencePerfSpec;
use notes::{Note, Notes};
use schemars::JsonSchema;
use serde::Deserialize;
use servegen::ServegenSpec;
use std::path::{Path, PathBuf};

/// A workload specification as written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Spec {
    version: Option<String>,
    description: Option<String>,
    slo: Option<SloSpec>,
    seed: Option<Whole<0, { u64::MAX }>>,
    category: Option<String>,
    aggregate_rate: Option<RateSpec>,
    num_requests: Option<Whole<0, MOST_REQUESTS>>,
    horizon: Option<Whole<0, { u64::MAX }>>,
    clients: Vec<ClientSpec>,
    cohorts: Vec<CohortSpec>,
    servegen_data: Group<ServegenSpec>,
    inference_perf: Group<InferencePerfSpec>,
}

/// What a specification file says.
#[derive(Clone, Debug)]
pub struct SpecFile {
    /// The clients and how many requests; `horizon` and `seed` are still to be decided, and so is
    /// the rate where it is a share of saturation: until then that counts as 1,000,000 a second.
    pub mix: Mix,
    /// The rate that it asks for.
    pub rate: Option<RateSpec>,
    /// The seed it asks for.
    pub seed: Option<u64>,
    /// The horizon it asks for.
    pub horizon: Option<Time>,
    /// Targets by class that go with it.
    pub slo: Option<SloTargets>,
    /// What it is about.
    pub description: Option<String>,
    /// What it asks for without an effect, in sentences with their places.
    pub notes: Vec<String>,
    /// The files that it is read from besides its own.
    pub files: Vec<PathBuf>,
    /// The tree, to find the places of what is wrong.
    pub tree: Node,
}

/// What stands in for the saturation that is not known yet; high, so that no check takes a workload
/// for too long.
const UNKNOWN_SATURATION: f64 = 1e6;

/// Reads the specification file `path` for a scenario that simulates `model`, if that is known.
///
/// # Errors
/// If it cannot be read, is malformed, or asks for something illegal.
pub fn read(path: &Path, model: Option<&str>) -> Result<SpecFile, Problems> {
    from_tree(&yaml::read_file(path)?, model)
}

/// Reads the specification in `text`, as if it stood in a file called `name`.
///
/// # Errors
/// Like [`read`].
pub fn read_text(name: &str, text: &str, model: Option<&str>) -> Result<SpecFile, Problems> {
    from_tree(&yaml::read_text(name, text)?, model)
}

fn from_tree(tree: &Node, model: Option<&str>) -> Result<SpecFile, Problems> {
    yaml::decode_and(tree, |spec, tree| check(spec, tree, model))
}

fn check(spec: Spec, tree: &Node, model: Option<&str>) -> Result<SpecFile, Problems> {
    let names = version(tree, spec.version.as_deref());
    let category = check_category(tree, spec.category.as_deref());
    let mut notes = Notes::new(tree);
    let context = ClientContext { names: *names.as_ref().unwrap_or(&ClassNames::Version1), model };
    let sent = Sent::read(&spec, tree, &context, &mut notes);
    let (_, (), sent) = (names, category, sent).together()?;
    let notes = notes.into_texts();
    let micros = spec.horizon.map(Whole::get).filter(|&us| us > 0);
    let rate = sent.rate.as_ref().map(|rate| rate.rate(UNKNOWN_SATURATION));
    let requests = spec.num_requests.map(Whole::get).filter(|&n| n > 0);
    let mix = Mix::new(sent.clients, rate.unwrap_or(Rate::Steady(1.0)), requests);
    let mix = Mix { in_turn: sent.in_turn, ..mix };
    Ok(SpecFile {
        mix,
        rate: sent.rate,
        seed: spec.seed.map(Whole::get),
        horizon: micros.and_then(legal::horizon),
        slo: spec.slo.map(|slo| slo.targets),
        description: spec.description,
        notes,
        files: sent.files,
        tree: tree.clone(),
    })
}

/// Which class names the version has.
fn version(tree: &Node, version: Option<&str>) -> Result<ClassNames, Problems> {
    tree.whole(&["version"])?;
    match version {
        None | Some("" | "1" | "1.0") => Ok(ClassNames::Version1),
        Some("2" | "2.0") => Ok(ClassNames::Current),
        Some(other) => {
            let message = format!("found `{other}`; legal: `1`, `2`");
            Err(tree.problem("version", message))
        }
    }
}

/// A category is a label of the workload and changes nothing, but it has to be a known one.
fn check_category(tree: &Node, category: Option<&str>) -> Result<(), Problems> {
    let known = ["language", "multimodal", "reasoning"];
    let Some(category) = category.filter(|word| !word.is_empty() && !known.contains(word)) else {
        return Ok(());
    };
    Err(tree.problem("category", none_of(&known, category)))
}

/// Who sends, and how much.
struct Sent {
    clients: Vec<Client>,
    rate: Option<RateSpec>,
    in_turn: bool,
    files: Vec<PathBuf>,
}

impl Sent {
    /// The clients that are written, or else those that a block stands for; and the cohorts.
    fn read(
        spec: &Spec,
        tree: &Node,
        context: &ClientContext<'_>,
        notes: &mut Notes<'_>,
    ) -> Result<Sent, Problems> {
        let stages = spec.inference_perf.given();
        let measured = spec.servegen_data.given();
        let written = !spec.clients.is_empty();
        if stages.is_some() && written {
            notes.add(Note::OtherClients, "inference_perf");
        }
        if measured.is_some() && (written || stages.is_some()) {
            notes.add(Note::OtherClients, "servegen_data");
        }
        let mut rate = spec.aggregate_rate.clone();
        let (mut files, mut in_turn) = (Vec::new(), false);
        let block = match (written, stages, measured) {
            (false, Some(stages), _) => {
                let expanded = stages.expand(tree, notes)?;
                check_requests(spec, tree, expanded.requests)?;
                if rate.replace(expanded.rate).is_some() {
                    notes.add(Note::OtherRate, "aggregate_rate");
                }
                in_turn = expanded.in_turn && spec.cohorts.is_empty();
                expanded.clients
            }
            (false, None, Some(measured)) => {
                let measured = measured.read(tree, notes)?;
                rate = rate.or(Some(RateSpec::Level(Level::PerSecond(measured.rate))));
                files = measured.files;
                measured.clients
            }
            (false, None, None) => {
                tree.whole(&["inference_perf", "servegen_data"])?;
                Vec::new()
            }
            (true, ..) => Vec::new(),
        };
        let section = Section { tree, base: "", clients: &spec.clients, cohorts: &spec.cohorts };
        let clients = cohort::add_clients(block, &section, context, notes)?;
        Ok(Sent { clients, rate, in_turn, files })
    }
}

/// Refuses a number of requests that the stages of `inference_perf` will not reach.
fn check_requests(spec: &Spec, tree: &Node, stages: Option<f64>) -> Result<(), Problems> {
    const FIELD: &str = "num_requests";
    match (spec.num_requests.map(Whole::get), stages) {
        (Some(requests), Some(most)) if float(requests) > most => {
            let legal = format!("at most {most}, which the stages of `inference_perf` send");
            let message = format!("found `{requests}`; legal: {legal}");
            Err(tree.problem(FIELD, message))
        }
        _ => Ok(()),
    }
}
