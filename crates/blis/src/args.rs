//! The command line: commands and the flags that are not part of a scenario.

use crate::flags::ScenarioFlags;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// BLIS: a deterministic simulator of LLM-inference clusters.
#[derive(Debug, Parser)]
#[command(name = "blis", version, about, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one simulation
    ///
    /// A scenario comes from a file, from flags, or from both (flags win). Without either, 100
    /// requests go to one instance.
    Run(Box<RunArgs>),
    /// Look at traces, convert them, make them
    ///
    /// A trace has one request a line, as JSON. Those of others (Mooncake, Azure, BurstGPT and
    /// more) are read as well.
    Trace(TraceArgs),
    /// Fit a latency profile to what a server logged
    ///
    /// Prints the errors by kind of step, of the fit and of fits that had not seen the run's
    /// workload, and all coefficients. The columns of the files are those of data/h200/README.md.
    Calibrate(CalibrateArgs),
    /// Compare predictions with measured runs
    ///
    /// Replays each measured workload and prints predicted against measured latencies, with
    /// intervals that come from resampling the fit. By default each workload is predicted by a fit
    /// to all others.
    Validate(ValidateArgs),
    /// List the workloads that are shipped, or print one
    Workloads(WorkloadsArgs),
    /// Run a study: arms, workloads and swept values, side by side
    ///
    /// Every combination is run with every seed, on the same requests. The table shows means and
    /// 95 % intervals.
    Study(StudyArgs),
    /// List policies and their parameters
    Policies(PoliciesArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// `blis run`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that users know by name")]
pub(crate) struct RunArgs {
    /// Scenario file (YAML)
    pub(crate) scenario: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) flags: ScenarioFlags,

    /// Policies in a file of their own (admission, routing, priority, scheduler)
    #[arg(long, value_name = "FILE", help_heading = "Policies")]
    pub(crate) policy_config: Option<PathBuf>,

    /// Layout of the result [default: table on a terminal, blis otherwise]
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) format: Option<Format>,

    /// Write the cluster's numbers and one row a request to this JSON file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) results_path: Option<PathBuf>,

    /// Write one row a request to this CSV file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) requests_out: Option<PathBuf>,

    /// Write what every instance looks like at regular times to this CSV file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) timeline: Option<PathBuf>,

    /// Time between the rows of --timeline, in ms [default: 100]
    #[arg(long, value_name = "MS", help_heading = "Output")]
    pub(crate) timeline_interval_ms: Option<String>,

    /// Record the requests that arrived, as a trace to replay with `--trace`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace_out: Option<PathBuf>,

    /// Score the run by weighted components, e.g. `throughput:0.5,p99_ttft:0.5`
    #[arg(long, value_name = "KEY:WEIGHT,...", help_heading = "Output")]
    pub(crate) fitness_weights: Option<String>,

    /// Decision trace: none or decisions
    #[arg(
        long,
        value_enum,
        default_value = "none",
        help_heading = "Output",
        hide_default_value = true
    )]
    pub(crate) trace_level: TraceLevel,

    /// Summarise the decision trace (with --trace-level decisions)
    #[arg(long, help_heading = "Output")]
    pub(crate) summarize_trace: bool,

    /// No progress bar and no notes
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Run with this many seeds, starting at the scenario's
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) replications: u64,

    /// Runs at a time; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    /// Check every invariant along the way
    #[arg(long, help_heading = "Running")]
    pub(crate) audit: bool,

    /// Take every engine step by itself (slow; the result is the same)
    #[arg(long, help_heading = "Running")]
    pub(crate) stepwise: bool,
}

/// `blis trace`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Say what a trace looks like: rates, lengths, sharing, sessions
    Inspect(InspectArgs),
    /// Convert a trace to the native format
    Convert(ConvertArgs),
    /// Write the requests of a scenario's workload as a trace
    ///
    /// Rounds that wait for an answer (closed loop) are written as such, with their think times.
    Generate(Box<GenerateArgs>),
}

/// A trace to read, and what to change of it on the way.
#[derive(Debug, Args)]
pub(crate) struct TraceInputArgs {
    /// Trace file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Its format: native, mooncake, azure, burstgpt, tracev2, legacy-csv or h200 [default: that of
    /// its first line]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,

    /// Divide arrival times by this; 2 is twice the rate [default: 1]
    #[arg(long, value_name = "X", help_heading = "Part of the trace")]
    pub(crate) speedup: Option<f64>,

    /// Leave out what arrives before this time of the trace, in s; it becomes 0
    #[arg(long, value_name = "S", help_heading = "Part of the trace")]
    pub(crate) start: Option<f64>,

    /// Leave out what arrives at this time of the trace or later, in s
    #[arg(long, value_name = "S", help_heading = "Part of the trace")]
    pub(crate) end: Option<f64>,

    /// Keep this share of the sessions, each whole (a request without one stands for itself)
    #[arg(long, value_name = "SHARE", help_heading = "Part of the trace")]
    pub(crate) sample: Option<f64>,

    /// Which sessions --sample keeps [default: 0]
    #[arg(long, value_name = "N", help_heading = "Part of the trace")]
    pub(crate) sample_seed: Option<u64>,

    /// Stop after this many requests
    #[arg(long, value_name = "N", help_heading = "Part of the trace")]
    pub(crate) limit: Option<u64>,
}

/// `blis trace inspect`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) input: TraceInputArgs,

    /// Tokens of a block, for what requests share
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) block_size: u32,

    /// Do not look at what requests share: memory then does not grow with the trace
    #[arg(long)]
    pub(crate) no_sharing: bool,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: TextFormat,
}

/// `blis trace convert`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) input: TraceInputArgs,

    /// File to write; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// Do not say what was done
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// `blis trace generate`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct GenerateArgs {
    /// Scenario file (YAML)
    pub(crate) scenario: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) flags: ScenarioFlags,

    /// File to write; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: PathBuf,

    /// Do not say what was done
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// `blis calibrate`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct CalibrateArgs {
    /// Steps of runs (NAME.steps.csv), or folders of them; runs of one workload share the name up
    /// to its first dot
    #[arg(value_name = "STEPS", required = true)]
    pub(crate) steps: Vec<PathBuf>,

    /// Requests of these runs (NAME.requests.csv) [default: those beside the steps]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) requests: Vec<PathBuf>,

    /// Single steps that were measured without a server; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) grid: Vec<PathBuf>,

    /// Profile to write, for --latency-model; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// How the server pads its batches: measured-server (data/h200/README.md) or none
    #[arg(long, value_name = "NAME", default_value = "measured-server")]
    pub(crate) padding: String,

    /// Tokens of a KV block
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) block_size: u32,

    /// Model that was served, for the profile
    #[arg(long, value_name = "NAME", help_heading = "Machine")]
    pub(crate) model: Option<String>,

    /// GPU that served it
    #[arg(long, value_name = "NAME", help_heading = "Machine")]
    pub(crate) hardware: Option<String>,

    /// Tensor parallelism
    #[arg(long, value_name = "N", help_heading = "Machine")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) tp: Option<u32>,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: TextFormat,
}

/// `blis validate`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct ValidateArgs {
    /// What to predict: workloads of --data by name, or runs by their files (NAME.steps.csv and
    /// NAME.requests.csv beside each other) or folders; a folder without --data is the data
    /// [default: all of --data]
    #[arg(value_name = "NAME|FILE|FOLDER")]
    pub(crate) what: Vec<String>,

    /// Folder with the measured runs to fit to [default: data/h200]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,

    /// Predict with this profile instead of fits to the other workloads; `shipped` is that of
    /// Llama-3.1-8B on an H200
    #[arg(long, value_name = "FILE", conflicts_with = "refit", help_heading = "Prediction")]
    pub(crate) profile: Option<PathBuf>,

    /// Predict with a fit to all runs, those that are predicted included
    #[arg(long, help_heading = "Prediction")]
    pub(crate) refit: bool,

    /// Single steps that were measured without a server; may be given more than once [default:
    /// those of --data]
    #[arg(long, value_name = "FILE", help_heading = "Prediction")]
    pub(crate) grid: Vec<PathBuf>,

    /// Resampled fits for the intervals; 0: no intervals
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Prediction")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) resamples: u32,

    /// Seed of the resampling
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Prediction")]
    pub(crate) seed: u64,

    /// How the server pads its batches: measured-server (data/h200/README.md) or none
    #[arg(long, value_name = "NAME", default_value = "measured-server", help_heading = "Server")]
    pub(crate) padding: String,

    /// KV blocks [default: those that were free when a run ended]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) total_kv_blocks: Option<u32>,

    /// Tokens of a KV block
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) block_size: u32,

    /// Most requests running at once
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_num_running_reqs: u32,

    /// Token budget of a step
    #[arg(long, value_name = "N", default_value_t = 2048, help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_num_scheduled_tokens: u32,

    /// Whether a request is scheduled only if blocks for its whole prompt are free
    #[arg(long, value_name = "BOOL", default_value_t = false, help_heading = "Server")]
    #[arg(action = clap::ArgAction::Set)]
    pub(crate) reserve_full_prompt: bool,

    /// Replays at a time; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    /// Write a page to this Markdown file, and its plots beside it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,

    /// Text for the end of that page
    #[arg(long, value_name = "FILE", requires = "markdown", help_heading = "Output")]
    pub(crate) notes: Option<PathBuf>,

    /// Write a page to this HTML file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    /// Layout
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: TextFormat,
}

/// `blis workloads`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadsArgs {
    /// Print this one, as a file for --workload-spec
    pub(crate) name: Option<String>,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: TextFormat,
}

/// `blis policies`.
#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// Only this kind
    pub(crate) kind: Option<String>,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: ListFormat,
}

/// `blis completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}

/// The layouts of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    Table,
    /// One JSON object
    Json,
    /// Sections with flat JSON objects, as existing scripts read them
    Blis,
}

/// The layouts of what people and programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Text for people
    Table,
    /// One JSON object
    Json,
}

/// How much of the decisions is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceLevel {
    /// Nothing
    None,
    /// Counts of admission and routing decisions
    Decisions,
}

/// The layouts of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Tables for people
    Table,
    /// One JSON array
    Json,
    /// The reference page
    Markdown,
}

/// `blis study`.
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// Study file (YAML)
    pub(crate) study: PathBuf,

    /// Layout of the result
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: TextFormat,

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

    /// Runs at a time; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    /// Check every invariant as the runs go
    #[arg(long, help_heading = "Running")]
    pub(crate) audit: bool,
}
