//! The command lines of the lab: studies, comparisons, explanations, searches.

use super::ShownArgs;
use blis_lab::ledger::DEFAULT_PATH;
use clap::Args;
use std::path::{Path, PathBuf};

/// The names that `--metrics` knows.
fn metrics_help() -> String {
    let names: Vec<&str> = blis_metrics::metric::all().map(|metric| metric.name).collect();
    format!("Metrics (CLASS.METRIC for one class, e.g. critical.ttft_p99): {}", names.join(", "))
}

/// How trials are run, whoever wants them.
#[derive(Debug, Args)]
pub(crate) struct TrialArgs {
    /// Parallel runs; 0: one per core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    /// Check all invariants during runs; finished runs are repeated and compared
    #[arg(long, help_heading = "Running")]
    pub(crate) audit: bool,

    /// Database of finished runs
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH, help_heading = "Running")]
    pub(crate) ledger: PathBuf,

    /// Neither use nor keep finished runs
    #[arg(long, help_heading = "Running", conflicts_with = "ledger")]
    pub(crate) no_ledger: bool,
}

impl TrialArgs {
    /// The ledger to use, if any.
    pub(crate) fn ledger(&self) -> Option<&Path> {
        (!self.no_ledger).then_some(self.ledger.as_path())
    }
}

/// `blis study`.
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// Study files (YAML), or folders with --all
    #[arg(value_name = "FILE|FOLDER", required_unless_present = "all")]
    pub(crate) studies: Vec<PathBuf>,

    /// Run all studies and searches in the folders [default: studies]
    #[arg(long)]
    pub(crate) all: bool,

    /// What you run today, as the arm `baseline` or the first one: llm-d's `EndpointPickerConfig`,
    /// or a strategy file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "site", "results"])]
    pub(crate) baseline: Option<PathBuf>,

    /// Exit with 1 if a hypothesis is refuted
    #[arg(long, help_heading = "Output")]
    pub(crate) check: bool,

    /// Print all verdicts and tables before the answer
    #[arg(long, conflicts_with_all = ["format", "all"])]
    pub(crate) tables: bool,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,

    /// Write an HTML page per study, and an index of all verdicts, to this folder
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) site: Option<PathBuf>,

    /// Write all verdicts to this folder, as README.md and results.csv
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) results: Option<PathBuf>,

    /// Write nothing; exit with 1 if the files of --results are out of date
    #[arg(long, requires = "results", help_heading = "Output")]
    pub(crate) verify: bool,

    /// Write one row per run to this CSV file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,

    /// Plot the first metric of the study, or --plot-metric, to this SVG file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,

    /// Metric for --plot
    #[arg(long, value_name = "METRIC", requires = "plot", help_heading = "Output")]
    pub(crate) plot_metric: Option<String>,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,

    /// Run only shard I (from 0) of N, into the ledger; `auto` reads both from a Slurm array,
    /// `auto/N` reads I from a Slurm array or a Kubernetes Indexed Job
    #[arg(long, value_name = "I/N", help_heading = "Running")]
    #[arg(conflicts_with_all = ["no_ledger", "csv", "plot", "report", "site", "results"])]
    #[arg(conflicts_with = "check")]
    pub(crate) shard: Option<String>,
}

/// `blis compare`.
#[derive(Debug, Args)]
#[command(after_long_help = metrics_help())]
pub(crate) struct CompareArgs {
    /// Scenario files (YAML); the others are compared with the first
    #[arg(required = true)]
    pub(crate) scenarios: Vec<PathBuf>,

    /// An arm: the first scenario with a patch, e.g. `two: {cluster: {instances: 2}}`
    #[arg(long, value_name = "NAME: PATCH")]
    pub(crate) arm: Vec<String>,

    /// Metrics to compare [default: latencies, throughput, goodput, hit rate, preemptions]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,

    /// Seeds per arm
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) seeds: u16,

    /// Warm-up to cut from each run: `auto` or seconds, e.g. `30s` [default: the scenario's]
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    pub(crate) warmup: Option<String>,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,
}

/// `blis explain`.
#[derive(Debug, Args)]
#[command(after_long_help = metrics_help())]
pub(crate) struct ExplainArgs {
    /// Study file (YAML)
    pub(crate) study: PathBuf,

    /// Arm to explain [default: the last in the file]
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,

    /// Arm to compare with [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,

    /// Workload, and swept values as `FIELD=VALUE` [default: the first of each]
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub(crate) at: Vec<String>,

    /// Metrics to explain [default: the study's first]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,

    /// Skip the oracles
    #[arg(long, help_heading = "Running")]
    pub(crate) no_oracles: bool,

    /// Counterfactual routing decisions to run, over all seeds; 0: none
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Running")]
    pub(crate) counterfactual_sample: u16,

    /// Other instances to try per decision, best score first
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "Running")]
    pub(crate) counterfactual_k: u16,

    /// Seeds per arm
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1_000))]
    pub(crate) seeds: u16,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,
}

/// `blis optimize`.
#[derive(Debug, Args)]
pub(crate) struct OptimizeArgs {
    /// Search file (YAML)
    pub(crate) search: PathBuf,

    /// Write the recommended strategy to this file, for `strategy: FILE`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,

    /// Also run a random search with the same budget
    #[arg(long, help_heading = "Running")]
    pub(crate) control: bool,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,
}

/// `blis evolve`.
#[derive(Debug, Args)]
pub(crate) struct EvolveArgs {
    /// Evolution file (YAML)
    pub(crate) file: PathBuf,

    /// Write the recommended strategy to this file, for `strategy: FILE`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,

    /// Seed of the breeding [default: the file's]
    #[arg(long, value_name = "N", help_heading = "Running")]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,
}
