//! Fits a latency profile to what a server logged, and says how good it is.
//!
//! The binary reads files through [`crate::measured`], calls [`calibrate`] and prints the result.

use crate::measured::{Measured, read_grid};
use blis_latency::fit::judge::{Errors, Region, drift, errors, leave_one_out, workloads};
use blis_latency::fit::log::Run;
use blis_latency::fit::trace::Trace;
use blis_latency::fit::{FitError, Options, fit};
use blis_latency::profile::Profile;
use blis_latency::profile::host::{HOST, HOST_TERMS, Host};
use blis_latency::profile::padding::Padding;
use blis_latency::profile::term::{ALL, Site};
use blis_scenario::json::present;
use blis_scenario::problem::{Problem, hint, quoted};
use blis_scenario::profile::{ProfileFile, ProfiledMachine};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Steps of a server are no larger than this, so larger single steps say nothing about it.
const LARGEST_STEP: u32 = 2304;

/// How servers pad their batches, by name.
const PADDINGS: [&str; 3] = ["measured-server", "vllm", "none"];

/// The largest graph that is taken to be captured where nobody says so.
const LARGEST_GRAPH: u32 = 2048;

/// The ways into vLLM's engine and out of it, in microseconds, of its own clients in the same
/// process (`data/vllm`). Clients of an HTTP server have longer ones.
const USUAL_WAYS_US: [f64; 3] = [1250.0, 1100.0, 28.0];

/// How far steps are off that are a guess, as a share (root mean square).
const GUESSED_DRIFT: f64 = 0.1;

/// A fit and what it was made from.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The profile, with its drift and provenance.
    pub file: ProfileFile,
    /// What it was fitted to.
    pub runs: Vec<Run>,
    /// For each workload, the profile that was fitted to all others; empty if there is only one
    /// workload.
    pub left_out: Vec<(String, Profile)>,
}

/// The errors of one kind of step in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionError {
    /// Name of the run.
    pub run: String,
    /// Kind of step.
    pub region: &'static str,
    /// Of the profile.
    pub fitted: Errors,
    /// Of the profile that was fitted without the run's workload.
    pub left_out: Option<Errors>,
}

/// One coefficient.
#[derive(Clone, Debug, PartialEq)]
pub struct CoefficientRow {
    /// Its name.
    pub name: String,
    /// Its value in microseconds by unit.
    pub value: f64,
    /// Its standard error; `None` if it is at its bound or nobody knows.
    pub error: Option<f64>,
    /// Unit.
    pub unit: &'static str,
    /// What it stands for.
    pub help: &'static str,
}

/// The padding called `name`; without a name, that of the server that logged `measured`: vLLM's if
/// it logged what the host did, or its clients were asked by vLLM's own program.
///
/// # Errors
/// If there is none of that name.
pub fn padding(name: Option<&str>, measured: &[Measured]) -> Result<Padding, String> {
    let vllm = || {
        let graphs = measured.iter().filter_map(|run| run.engine.as_ref());
        let largest = graphs.map(|engine| engine.max_cudagraph_capture_size).max();
        Padding::vllm(largest.unwrap_or(LARGEST_GRAPH))
    };
    match name {
        Some("vllm") => Ok(vllm()),
        None if measured.iter().any(|run| run.has_host() || run.by_clients) => Ok(vllm()),
        None | Some("measured-server") => Ok(Padding::measured_server()),
        Some("none") => Ok(Padding::none()),
        Some(other) => {
            let hint = hint(other, PADDINGS);
            Err(format!("found `{other}`{hint}; legal: {}", quoted(&PADDINGS)))
        }
    }
}

/// What a fit sees of `measured`, and of the single steps in the files `grids`. It sees nothing of
/// engines with a CPU tier: their hosts look after the tier too, and take half as long again.
///
/// # Errors
/// If a file cannot be read.
pub fn runs(
    measured: &[Measured],
    grids: &[PathBuf],
    block_size: u32,
) -> Result<Vec<Run>, Problem> {
    let has_tier = |run: &&Measured| run.engine.as_ref().is_some_and(|it| it.cpu_blocks > 0);
    let alone = measured.iter().filter(|run| !has_tier(run));
    let mut runs: Vec<Run> = alone.map(|run| run.run(block_size)).collect();
    for path in grids {
        runs.push(read_grid(path, LARGEST_STEP)?);
    }
    Ok(runs)
}

/// Fits a profile of `machine` to `runs`.
///
/// # Errors
/// If there are too few steps.
pub fn calibrate(
    runs: Vec<Run>,
    padding: Padding,
    machine: ProfiledMachine,
) -> Result<Calibration, Problem> {
    let refuse = |error: FitError| Problem::of_file("calibrate", error.to_string());
    let options = Options { provenance: provenance(&runs), ..Options::of(padding) };
    let left_out = if workloads(&runs).len() > 1 {
        leave_one_out(&runs, &options).map_err(refuse)?
    } else {
        Vec::new()
    };
    let mut parameters = fit(&runs, &options).map_err(refuse)?.parameters().clone();
    parameters.drift = drift(&runs, &left_out);
    let profile = Profile::new(parameters).map_err(|error| refuse(error.into()))?;
    Ok(Calibration { file: ProfileFile { machine, profile }, runs, left_out })
}

/// What a profile says about where it comes from. No date: the same files give the same bytes.
fn provenance(runs: &[Run]) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let mut lines = vec![format!("fitted by blis {version} to the steps of {} runs", runs.len())];
    for run in runs {
        let seconds: f64 = run.rows.iter().map(|row| row.micros / 1e6).sum();
        let site = match run.site {
            Site::Served => "of a server",
            Site::Bare => "measured apart",
        };
        let (name, steps) = (&run.name, run.rows.len());
        let engine = run.trace.as_ref().map_or_else(String::new, settings);
        lines.push(format!("{name}: {steps} steps {site}, {seconds:.3} s together{engine}"));
    }
    lines
}

/// How the engine of a trace was set, as far as its log shows it.
fn settings(trace: &Trace) -> String {
    let scheduling = if trace.is_asynchronous() { "asynchronous" } else { "synchronous" };
    let shapes = || trace.steps.iter().map(|step| step.shape);
    let tokens = shapes().map(|shape| shape.prefill_tokens + shape.decode_seqs).max();
    let seqs = shapes().map(|shape| shape.prefill_seqs + shape.decode_seqs).max();
    let graphs = trace.largest_graph.map(|size| format!(", graphs up to {size} tokens"));
    format!(
        ", {scheduling} scheduling, at most {} tokens and {} sequences a step{}",
        tokens.unwrap_or(0),
        seqs.unwrap_or(0),
        graphs.unwrap_or_default()
    )
}

impl Calibration {
    /// The same if only clients were asked: with the ways in and out of an engine, which they do
    /// not see apart, and less trust in the rest.
    ///
    /// # Errors
    /// If the profile is illegal.
    pub fn by_clients(mut self) -> Result<Calibration, Problem> {
        let mut parameters = self.file.profile.parameters().clone();
        let mut us = [0.0; HOST_TERMS];
        us[HOST_TERMS - USUAL_WAYS_US.len()..].copy_from_slice(&USUAL_WAYS_US);
        parameters.host = Some(Host { us, drift: 0.0 });
        parameters.drift = parameters.drift.max(GUESSED_DRIFT);
        parameters.provenance.push("the steps are a guess from the tokens of clients".to_owned());
        self.file.profile = Profile::new(parameters)
            .map_err(|error| Problem::of_file("calibrate", error.to_string()))?;
        Ok(self)
    }

    /// Errors by run and kind of step; kinds that a run has no steps of are left out.
    pub fn errors(&self) -> Vec<RegionError> {
        let of_run = |run: &Run| -> Vec<RegionError> {
            let without = self.left_out.iter().find(|(workload, _)| *workload == run.workload);
            let row = |region: Region| {
                let fitted = errors(&self.file.profile, run, region)?;
                let left_out = without.and_then(|(_, profile)| errors(profile, run, region));
                Some(RegionError { run: run.name.clone(), region: region.name(), fitted, left_out })
            };
            Region::ALL.into_iter().filter_map(row).collect()
        };
        self.runs.iter().flat_map(of_run).collect()
    }

    /// All coefficients.
    pub fn coefficients(&self) -> Vec<CoefficientRow> {
        let parameters = self.file.profile.parameters();
        let row = |name: String, value, unit, help| {
            let error = None;
            CoefficientRow { name, value, error, unit, help }
        };
        let terms = ALL.iter().zip(parameters.terms_us);
        let terms = terms.map(|(it, value)| row(it.name.to_owned(), value, it.unit, it.help));
        let sizes = parameters.sizes_us.iter().map(|&(size, value)| {
            row(format!("size {size}"), value, "us/step", "steps with prefill of this padded size")
        });
        let mut rows: Vec<CoefficientRow> = terms.chain(sizes).collect();
        for (at, row) in rows.iter_mut().enumerate() {
            let variance = parameters.covariance.get(at).map_or(0.0, |row| row[at]);
            row.error = (variance > 0.0).then(|| variance.sqrt());
        }
        if let Some(host) = &parameters.host {
            let host = HOST.iter().zip(host.us);
            let named = |it: &str| format!("host {it}");
            rows.extend(host.map(|(it, value)| row(named(it.name), value, it.unit, it.help)));
            return rows;
        }
        let gap = &parameters.gap;
        let gaps = [
            ("gap", gap.step_us, "us/step", "from the end of a step to the next"),
            ("gap_decode_seq", gap.decode_seq_us, "us/sequence", "and for each that decoded"),
            ("gap_prefill_seq", gap.prefill_seq_us, "us/sequence", "and for each that caught up"),
        ];
        rows.extend(gaps.map(|(name, value, unit, help)| row(name.to_owned(), value, unit, help)));
        rows
    }

    /// Errors, coefficients and drift as one JSON object.
    pub fn object(&self) -> Value {
        let errors = self.errors().into_iter().map(|row| {
            let left_out = row.left_out;
            json!({
                "run": row.run,
                "region": row.region,
                "steps": row.fitted.steps,
                "seconds": row.fitted.seconds,
                "mean_absolute_error": row.fitted.mean_absolute,
                "total_error": row.fitted.total,
                "left_out_mean_absolute_error": left_out.map(|errors| errors.mean_absolute),
                "left_out_total_error": left_out.map(|errors| errors.total),
            })
        });
        let coefficients = self.coefficients().into_iter().map(|row| {
            json!({
                "name": row.name,
                "value": row.value,
                "standard_error": row.error,
                "unit": row.unit,
            })
        });
        present(json!({
            "errors": errors.collect::<Vec<_>>(),
            "coefficients": coefficients.collect::<Vec<_>>(),
            "drift": self.file.profile.parameters().drift,
        }))
    }
}

/// The catalogue's name of a model, or the name itself if it is not there.
pub fn model_name(name: &str) -> String {
    let catalogue = blis_latency::Catalogue::shipped();
    catalogue.model(name).map_or_else(|| name.to_owned(), |model| model.name.clone())
}
