//! The table of promised costs: `rows.yaml` says what is run, and what is good enough.

use super::measure::Sample;
use super::{median, minimum};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// One row of the table.
#[derive(Deserialize)]
pub(super) struct Row {
    /// What is simulated, in words.
    pub(super) work: String,
    /// What is promised, in words.
    pub(super) target: String,
    /// What is run.
    pub(super) cases: Vec<Case>,
    /// What is promised of the runs.
    pub(super) promises: Vec<Promise>,
}

/// What is run.
#[derive(Deserialize)]
pub(super) struct Case {
    /// Requests to simulate; all of them must be completed.
    pub(super) requests: u64,
    /// The arguments of `blis run`, with `$constant` and `$traces`.
    run: String,
    /// How often it is run unless told otherwise.
    pub(super) runs: usize,
}

/// The runs of one case.
pub(super) struct Measured {
    /// Requests of each run.
    pub(super) requests: u64,
    /// What each run cost; never empty.
    pub(super) samples: Vec<Sample>,
}

/// A number that the runs of a row must reach.
#[derive(Deserialize)]
pub(super) struct Promise {
    /// The number, from the samples of each case.
    pub(super) value: Figure,
    /// The most that the median may be.
    #[serde(default)]
    pub(super) at_most: Option<f64>,
    /// The least that it must be.
    #[serde(default)]
    pub(super) at_least: Option<f64>,
    /// Its unit.
    pub(super) unit: String,
    /// Digits shown after the point.
    pub(super) digits: usize,
}

/// What is computed from the samples of each case.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Figure {
    /// CPU seconds of the first case.
    Cpu,
    /// Memory of the last case.
    Peak,
    /// Requests of this case per CPU second.
    Throughput(usize),
    /// CPU time per request of the last case, relative to the first.
    Growth,
    /// How many times faster all cores are than one, for each core.
    SpeedUp,
    /// What a decision costs on many instances, relative to few.
    Decisions,
}

/// A measured number.
pub(super) struct Value {
    /// What is judged.
    pub(super) median: f64,
    /// The best or least of the runs.
    pub(super) minimum: Option<f64>,
    /// What else there is to say.
    pub(super) note: Option<String>,
}

/// 512 tokens in and 128 out.
const CONSTANT: &str = "--model meta-llama/llama-3.1-8b-instruct --hardware H100 --tp 2 \
    --prompt-tokens 512 --prompt-tokens-stdev 0 --prompt-tokens-min 512 --prompt-tokens-max 512 \
    --output-tokens 128 --output-tokens-stdev 0 --output-tokens-min 128 --output-tokens-max 128 \
    --num-requests";

/// The table.
pub(super) static ALL: LazyLock<Vec<Row>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("rows.yaml")).expect("rows.yaml is a list of rows")
});

impl Case {
    /// The file that is needed and that is not a part of the project.
    pub(super) fn needs(&self, traces: &Path) -> Option<PathBuf> {
        let mut words = self.run.split_whitespace();
        words.find_map(|word| word.strip_prefix("$traces/")).map(|file| traces.join(file))
    }

    /// The command line; `traces` is the folder of traces.
    pub(super) fn arguments(&self, traces: &Path) -> Vec<String> {
        let run = self.run.replace("$traces", &traces.display().to_string());
        let run = run.replace("$constant", &format!("{CONSTANT} {}", self.requests));
        let line = format!("run {run} --format json --quiet");
        line.split_whitespace().map(str::to_owned).collect()
    }
}

impl Figure {
    /// The figure of what was measured, case by case.
    pub(super) fn of(self, measured: &[Measured]) -> Value {
        match self {
            Figure::Cpu => cpu(measured),
            Figure::Peak => peak(measured),
            Figure::Throughput(case) => throughput(&measured[case]),
            Figure::Growth => growth(measured),
            Figure::SpeedUp => speed_up(measured),
            Figure::Decisions => decisions(measured),
        }
    }
}

fn cpu(measured: &[Measured]) -> Value {
    let samples = &measured[0].samples;
    let own = median(samples.iter().filter_map(|sample| sample.own_cpu_s));
    Value {
        median: median(samples.iter().map(|sample| sample.cpu_s)),
        minimum: Some(minimum(samples.iter().map(|sample| sample.cpu_s))),
        note: own.is_finite().then(|| format!("by its own account {own:.4}")),
    }
}

fn peak(measured: &[Measured]) -> Value {
    let samples = &measured[measured.len() - 1].samples;
    Value {
        median: median(samples.iter().map(|sample| sample.peak_mb)),
        minimum: Some(minimum(samples.iter().map(|sample| sample.peak_mb))),
        note: None,
    }
}

fn throughput(Measured { requests, samples }: &Measured) -> Value {
    let rate = |cpu_s: f64| float(*requests) / cpu_s;
    Value {
        median: rate(median(samples.iter().map(|sample| sample.cpu_s))),
        minimum: None,
        note: Some(format!(
            "{requests} requests, best run {:.0}",
            rate(minimum(samples.iter().map(|sample| sample.cpu_s)))
        )),
    }
}

/// CPU time per request of the largest case, relative to the smallest; minima, to keep noise out.
fn growth(measured: &[Measured]) -> Value {
    let per_request = |Measured { requests, samples }: &Measured| {
        minimum(samples.iter().map(|sample| sample.cpu_s)) / float(*requests)
    };
    let times: Vec<f64> = measured.iter().map(per_request).collect();
    let shown: Vec<String> = times.iter().map(|time| format!("{:.2}", time * 1e6)).collect();
    Value {
        median: times[times.len() - 1] / times[0],
        minimum: None,
        note: Some(format!("{} CPU-µs a request", shown.join(", "))),
    }
}

/// What a decision with scorers costs on many instances, relative to few: CPU time beyond that of
/// round-robin; minima, to keep noise out.
fn decisions(measured: &[Measured]) -> Value {
    let cpu = |case: usize| minimum(measured[case].samples.iter().map(|sample| sample.cpu_s));
    let cost = |case: usize| (cpu(case + 1) - cpu(case)) / float(measured[case].requests);
    let (few, many) = (cost(0), cost(2));
    Value {
        median: many / few,
        minimum: None,
        note: Some(format!("{:.2} and {:.2} CPU-µs a decision", few * 1e6, many * 1e6)),
    }
}

/// How many times faster all cores are than one, for each core.
fn speed_up(measured: &[Measured]) -> Value {
    let wall = |case: usize| minimum(measured[case].samples.iter().map(|sample| sample.wall_s));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (alone, together) = (wall(0), wall(1));
    Value {
        median: alone / together / float(cores as u64),
        minimum: None,
        note: Some(format!("{alone:.2} s on one core, {together:.2} s on {cores}")),
    }
}

pub(super) fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
