//! The table of promised costs: what is run, and what is good enough.

use super::measure::Sample;
use super::{median, minimum};
use std::path::{Path, PathBuf};

/// One row of the table.
pub(super) struct Row {
    /// Its number, from 1.
    pub(super) number: usize,
    /// What is simulated, in words.
    pub(super) work: &'static str,
    /// What is promised, in words.
    pub(super) target: &'static str,
    /// What is run.
    pub(super) cases: &'static [Case],
    /// What is promised of the runs.
    pub(super) promises: &'static [Promise],
}

/// What is run.
pub(super) struct Case {
    /// Requests to simulate; all of them must be completed.
    pub(super) requests: u64,
    /// What the requests are, and what serves them.
    world: World,
    /// How often it is run unless told otherwise.
    pub(super) runs: usize,
}

/// What the requests are, and what serves them.
enum World {
    /// As this scenario file says, which also says how many requests there are.
    Scenario(&'static str),
    /// 512 tokens in and 128 out, on a cluster of equal engines behind a weighted router.
    Constant {
        /// Instances of the cluster.
        instances: u32,
        /// Requests per second.
        rate: u32,
        /// The flags that choose the router.
        routing: &'static str,
    },
    /// A trace of the folder of traces, which is no part of the project, on 8 instances.
    Trace(&'static str),
    /// This scenario, 64 times with other seeds, so many at a time; 0: one for each core.
    Sweep {
        /// The scenario file.
        scenario: &'static str,
        /// Runs at a time.
        jobs: u32,
    },
}

/// The runs of one case.
pub(super) struct Measured {
    /// Requests of each run.
    pub(super) requests: u64,
    /// What each run cost; never empty.
    pub(super) samples: Vec<Sample>,
}

/// A number that the runs of a row must reach.
pub(super) struct Promise {
    /// The number, from the samples of each case.
    pub(super) value: fn(&[Measured]) -> Value,
    /// Whether the median may be at most, or must be at least, the bound.
    pub(super) at_most: bool,
    /// The bound.
    pub(super) bound: f64,
    /// Its unit.
    pub(super) unit: &'static str,
    /// Digits shown after the point.
    pub(super) digits: usize,
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

const DEFAULT_SCORERS: &str = "--routing-policy weighted --routing-scorers pa:3,qd:2,kv:2";
const FOUR_SCORERS: &str = "--routing-policy weighted --routing-scorers pp:3,pa:3,qd:2,kv:2";
const NO_SCORERS: &str = "--routing-policy round-robin";

/// 4 instances at 15 requests/s each.
const SMALL: World = World::Constant { instances: 4, rate: 60, routing: DEFAULT_SCORERS };

/// 1,000 instances at 50 requests/s each.
const LARGE: World = World::Constant { instances: 1_000, rate: 50_000, routing: DEFAULT_SCORERS };

/// Instances at 15 requests/s each, where decisions are what differs.
const fn deciding(instances: u32, routing: &'static str) -> World {
    World::Constant { instances, rate: 15 * instances, routing }
}

const MANY_TENANTS: World = World::Sweep { scenario: "scenarios/many-tenants.yaml", jobs: 0 };
const MANY_TENANTS_ALONE: World = World::Sweep { scenario: "scenarios/many-tenants.yaml", jobs: 1 };

/// The table.
pub(super) const ALL: &[Row] = &[
    Row {
        number: 1,
        work: "20,000 requests at 400/s: prefix 512 + N(256, 100) in, Exp(128) out, gamma CV 2, \
               3 classes; 8 instances",
        target: "<= 0.06 CPU-s, <= 40 MB",
        cases: &[Case {
            requests: 20_000,
            world: World::Scenario("scenarios/shared-prefix.yaml"),
            runs: 9,
        }],
        promises: &[
            Promise { value: cpu, at_most: true, bound: 0.06, unit: "CPU-s", digits: 4 },
            Promise { value: peak, at_most: true, bound: 40.0, unit: "MB", digits: 1 },
        ],
    },
    Row {
        number: 2,
        work: "5,000 and 50,000 requests at 60/s: 512 in, 128 out; 4 instances",
        target: ">= 250,000 requests/CPU-s",
        cases: &[
            Case { requests: 5_000, world: SMALL, runs: 9 },
            Case { requests: 50_000, world: SMALL, runs: 9 },
        ],
        promises: &[
            Promise {
                value: |measured| throughput(measured, 0),
                at_most: false,
                bound: 250_000.0,
                unit: "requests/CPU-s",
                digits: 0,
            },
            Promise {
                value: |measured| throughput(measured, 1),
                at_most: false,
                bound: 250_000.0,
                unit: "requests/CPU-s",
                digits: 0,
            },
        ],
    },
    Row {
        number: 3,
        work: "12,031 requests of the Mooncake conversation trace, precise prefix routing, \
               16-token blocks; 8 instances",
        target: "<= 1 CPU-s, <= 500 MB",
        cases: &[Case {
            requests: 12_031,
            world: World::Trace("mooncake_conversation.jsonl"),
            runs: 9,
        }],
        promises: &[
            Promise { value: cpu, at_most: true, bound: 1.0, unit: "CPU-s", digits: 3 },
            Promise { value: peak, at_most: true, bound: 500.0, unit: "MB", digits: 1 },
        ],
    },
    Row {
        number: 4,
        work: "1,000,000 requests at 50,000/s: 512 in, 128 out; 1,000 instances",
        target: "<= 60 s, time per request within 1.25 of that of 250,000",
        cases: &[
            Case { requests: 250_000, world: LARGE, runs: 3 },
            Case { requests: 500_000, world: LARGE, runs: 3 },
            Case { requests: 1_000_000, world: LARGE, runs: 3 },
        ],
        promises: &[
            Promise { value: wall_of_largest, at_most: true, bound: 60.0, unit: "s", digits: 2 },
            Promise { value: growth, at_most: true, bound: 1.25, unit: "x", digits: 3 },
        ],
    },
    Row {
        number: 5,
        work: "sweep of 64 trials of `scenarios/many-tenants.yaml`, one for each core at a time",
        target: ">= 0.9 x cores",
        cases: &[
            Case { requests: 6_000, world: MANY_TENANTS_ALONE, runs: 3 },
            Case { requests: 6_000, world: MANY_TENANTS, runs: 3 },
        ],
        promises: &[Promise {
            value: speed_up,
            at_most: false,
            bound: 0.9,
            unit: "x cores",
            digits: 3,
        }],
    },
    Row {
        number: 6,
        work: "weighted routing with four scorers (pp, pa, qd, kv) against round-robin; 8 and \
               1,000 instances at 15 requests/s each",
        target: "a decision costs at most 125 times as much on 125 times the instances",
        cases: &[
            Case { requests: 50_000, world: deciding(8, NO_SCORERS), runs: 5 },
            Case { requests: 50_000, world: deciding(8, FOUR_SCORERS), runs: 5 },
            Case { requests: 50_000, world: deciding(1_000, NO_SCORERS), runs: 5 },
            Case { requests: 50_000, world: deciding(1_000, FOUR_SCORERS), runs: 5 },
        ],
        promises: &[Promise {
            value: decisions,
            at_most: true,
            bound: 125.0,
            unit: "x",
            digits: 1,
        }],
    },
];

impl Case {
    /// The file that is needed and that is not a part of the project.
    pub(super) fn needs(&self, traces: &Path) -> Option<PathBuf> {
        match self.world {
            World::Trace(file) => Some(traces.join(file)),
            _ => None,
        }
    }

    /// The command line; `traces` is the folder of traces.
    pub(super) fn arguments(&self, traces: &Path) -> Vec<String> {
        let requests = self.requests;
        let world = match self.world {
            World::Scenario(file) => file.to_owned(),
            World::Trace(file) => format!(
                "--trace {} --num-instances 8 --block-size 16 --strategy precise",
                traces.join(file).display()
            ),
            World::Sweep { scenario, jobs } => {
                format!("{scenario} --replications 64 --jobs {jobs}")
            }
            World::Constant { instances, rate, routing } => format!(
                "--model meta-llama/llama-3.1-8b-instruct --hardware H100 --tp 2 \
                 --num-instances {instances} {routing} --rate {rate} --num-requests {requests} \
                 --prompt-tokens 512 --prompt-tokens-stdev 0 \
                 --prompt-tokens-min 512 --prompt-tokens-max 512 \
                 --output-tokens 128 --output-tokens-stdev 0 \
                 --output-tokens-min 128 --output-tokens-max 128"
            ),
        };
        let line = format!("run {world} --format json --quiet");
        line.split_whitespace().map(str::to_owned).collect()
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
    let samples = &measured[0].samples;
    Value {
        median: median(samples.iter().map(|sample| sample.peak_mb)),
        minimum: Some(minimum(samples.iter().map(|sample| sample.peak_mb))),
        note: None,
    }
}

fn throughput(measured: &[Measured], case: usize) -> Value {
    let Measured { requests, samples } = &measured[case];
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

fn wall_of_largest(measured: &[Measured]) -> Value {
    let samples = &measured[measured.len() - 1].samples;
    let cpu_s = median(samples.iter().map(|sample| sample.cpu_s));
    let peak_mb = median(samples.iter().map(|sample| sample.peak_mb));
    Value {
        median: median(samples.iter().map(|sample| sample.wall_s)),
        minimum: Some(minimum(samples.iter().map(|sample| sample.wall_s))),
        note: Some(format!("{cpu_s:.2} CPU-s, {peak_mb:.0} MB")),
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
