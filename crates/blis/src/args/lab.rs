//! The command lines of the lab: studies, comparisons, explanations, searches.

use super::Layout;
use blis_lab::ledger::DEFAULT_PATH;
use clap::Args;
use std::path::{Path, PathBuf};

/// The names that `--metrics` knows.
fn metrics_help() -> String {
    let names: Vec<&str> = blis_metrics::metric::all().map(|metric| metric.name).collect();
    format!("Metrics, also of one class, e.g. critical.ttft_p99: {}", names.join(", "))
}

/// How trials are run, whoever wants them.
#[derive(Debug, Args)]
pub(crate) struct TrialArgs {
    /// Runs at a time; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    /// Check every invariant as the runs go; what is finished is run again, and compared
    #[arg(long, help_heading = "Running")]
    pub(crate) audit: bool,

    /// Where finished runs are kept
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH, help_heading = "Running")]
    pub(crate) ledger: PathBuf,

    /// Keep no finished runs, and use none
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
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that users know by name")]
pub(crate) struct StudyArgs {
    /// Study files (YAML); with --all also folders
    #[arg(value_name = "FILE|FOLDER", required_unless_present = "all")]
    pub(crate) studies: Vec<PathBuf>,

    /// Run every study, and every search of `blis optimize`, in the folders [default: studies]
    #[arg(long)]
    pub(crate) all: bool,

    /// Exit with 1 if a hypothesis is refuted
    #[arg(long, help_heading = "Output")]
    pub(crate) check: bool,

    /// Layout of the result
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Layout,

    /// Write a page to this file: Markdown with its charts beside it if the name ends in `.md`,
    /// else HTML that needs no other file; may be given more than once
    #[arg(long, value_name = "FILE", help_heading = "Output", alias = "markdown")]
    pub(crate) report: Vec<PathBuf>,

    /// Write a page for each study, and one with all verdicts, to this folder, as HTML
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) site: Option<PathBuf>,

    /// Write all verdicts to this folder: README.md for people, results.csv to compare with
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) results: Option<PathBuf>,

    /// Write no results, but exit with 1 if those of --results are not what would be written
    #[arg(long, requires = "results", help_heading = "Output")]
    pub(crate) verify: bool,

    /// Write one row a run to this CSV file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,

    /// Draw the first number of the study, or the one of --plot-metric, to this SVG file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,

    /// Which number --plot draws
    #[arg(long, value_name = "METRIC", requires = "plot", help_heading = "Output")]
    pub(crate) plot_metric: Option<String>,

    /// No progress bar and no notes
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,

    /// Only run part I (from 0) of N, into the ledger; `auto` takes both from a Slurm array,
    /// `auto/N` the part from a Slurm array or a Kubernetes Indexed Job
    #[arg(long, value_name = "I/N", help_heading = "Running")]
    #[arg(conflicts_with_all = ["no_ledger", "csv", "plot", "report", "site", "results"])]
    #[arg(conflicts_with = "check")]
    pub(crate) shard: Option<String>,
}

/// `blis compare`.
#[derive(Debug, Args)]
#[command(after_long_help = metrics_help())]
pub(crate) struct CompareArgs {
    /// Scenario files (YAML); the first is what the others are compared with
    #[arg(required = true)]
    pub(crate) scenarios: Vec<PathBuf>,

    /// The first scenario with a patch, e.g. `two: {cluster: {instances: 2}}`
    #[arg(long, value_name = "NAME: PATCH")]
    pub(crate) arm: Vec<String>,

    /// What to compare [default: latencies, throughput, goodput, cache hits and losses]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,

    /// Layout of the result
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Layout,

    /// No progress bar and no notes
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Seeds that each is run with
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) seeds: u16,

    /// What to leave out of each run: `auto`, or seconds, e.g. `30s` [default: what they say]
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

    /// The arm to explain [default: the last in the file]
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,

    /// The arm it is compared with [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,

    /// Where: the workload, and values of swept fields as `FIELD=VALUE` [default: the first of
    /// each]
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub(crate) at: Vec<String>,

    /// What is asked about [default: the study's first]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,

    /// Layout of the result
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Layout,

    /// No progress bar and no notes
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Write a page to this file: Markdown with its charts beside it if the name ends in `.md`,
    /// else HTML that needs no other file; may be given more than once
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Vec<PathBuf>,

    /// Leave out what oracles would reach
    #[arg(long, help_heading = "Running")]
    pub(crate) no_oracles: bool,

    /// How many counterfactual routing decisions are tried, over all seeds; 0: none
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Running")]
    pub(crate) counterfactual_sample: u16,

    /// How many other instances each of them is tried at, the best score first
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "Running")]
    pub(crate) counterfactual_k: u16,

    /// Seeds that each is run with
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

    /// Write the recommended strategy to this file, to be chosen with `strategy: FILE`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,

    /// Write a page to this file: Markdown with its charts beside it if the name ends in `.md`,
    /// else HTML that needs no other file; may be given more than once
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Vec<PathBuf>,

    /// Layout of the result
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Layout,

    /// No progress bar and no notes
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Search at random too, with the same budget, and show both
    #[arg(long, help_heading = "Running")]
    pub(crate) control: bool,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,
}
