//! The command line: commands and the flags that are not part of a scenario.

mod capacity;
pub(crate) mod export;
pub(crate) mod lab;
mod ledger;
mod trace;

pub(crate) use capacity::CapacityArgs;
pub(crate) use ledger::{
    DiffArgs, ExportArgs, GcArgs, LedgerArgs, LedgerCommand, ListArgs, MergeArgs, ShowArgs,
};
pub(crate) use trace::{
    ConvertArgs, GenerateArgs, InspectArgs, TraceArgs, TraceCommand, TraceInputArgs,
};

use crate::flags::ScenarioFlags;
use clap::{Args, Parser, Subcommand, ValueEnum};
use export::ExportToArgs;
use lab::{CompareArgs, ExplainArgs, OptimizeArgs, StudyArgs};
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
    /// Inspect, convert or generate traces
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
    /// List the strategies that ship, or print one
    Strategies(StrategiesArgs),
    /// Run a study: arms, workloads and swept values, side by side, and verdicts on its hypotheses
    ///
    /// Every combination is run with every seed, on the same requests. The tables show means and
    /// 95 % intervals. Seeds are added until all hypotheses are answered.
    Study(StudyArgs),
    /// Run one trial: a JSON document on standard input, a JSON row on standard output
    ///
    /// The document holds a whole scenario and a seed, e.g. `{"scenario": {...}, "seed": 42}`;
    /// `blis ledger show KEY --trial` prints that of a finished trial.
    Trial,
    /// List finished trials, merge ledgers, write the strategy ledger
    ///
    /// Studies keep every finished trial in a ledger, an SQLite file that can be queried with SQL.
    Ledger(LedgerArgs),
    /// Compare scenarios side by side, with paired differences
    ///
    /// All are sent the same requests, if their workloads are the same. Changes are against the
    /// first.
    Compare(CompareArgs),
    /// Say why an arm of a study is better: where the time went, and which component did it
    ///
    /// Shows the parts of the time to first token of two arms, and runs the arm with every subset
    /// of its components.
    Explain(ExplainArgs),
    /// Search the parameters of a strategy for what serves a workload best
    ///
    /// Measures points that a model of all earlier ones finds most promising, then runs the
    /// recommended one on fresh seeds, beside the strategy as it was set by hand. A search that was
    /// interrupted goes on from the ledger.
    Optimize(OptimizeArgs),
    /// Find the highest rate, or the fewest instances, at which the SLOs are met
    ///
    /// Every seed has a capacity of its own, found by bisection; their mean is the answer. Several
    /// `--strategy` are compared on the same requests. Exits with 1 if a strategy has no capacity.
    Capacity(Box<CapacityArgs>),
    /// List policies and their parameters
    Policies(PoliciesArgs),
    /// Write a strategy as configuration of llm-d or vLLM
    ///
    /// Every part that is not the same there has a comment that says what differs, or what is
    /// missing and what to do instead.
    Export(ExportToArgs),
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

    /// Write one line a routing decision, with the best alternatives, to this JSONL file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) decisions_out: Option<PathBuf>,

    /// Try a sample of the routing decisions at this many other instances each, and tell what they
    /// cost; 0: do not [default: 0; 3 for --decisions-out]
    #[arg(long, value_name = "N", help_heading = "Output")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) counterfactual_k: Option<u16>,

    /// How many decisions --counterfactual-k tries
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Output")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) counterfactual_sample: u32,

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

/// `blis calibrate`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct CalibrateArgs {
    /// Steps of runs (NAME.steps.csv), or folders of them; or what `vllm bench serve
    /// --save-detailed` wrote (NAME.json)
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

    /// How the server pads its batches: vllm, measured-server (data/h200/README.md) or none
    /// [default: vllm if the steps say what the host did, else measured-server]
    #[arg(long, value_name = "NAME")]
    pub(crate) padding: Option<String>,

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
    pub(crate) format: Layout,
}

/// `blis validate`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct ValidateArgs {
    /// What to predict: workloads of --data by name, or runs by their files (NAME.steps.csv and
    /// NAME.requests.csv beside each other) or folders; a folder without --data is the data
    /// [default: all of --data; without that, all that ships]
    #[arg(value_name = "NAME|FILE|FOLDER")]
    pub(crate) what: Vec<String>,

    /// Folder with the measured runs to fit to [default: data/vllm]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,

    /// Predict with this profile, a file or the name of one that ships, instead of fits to the
    /// other workloads
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

    /// How the server pads its batches: vllm, measured-server (data/h200/README.md) or none
    /// [default: vllm if the steps say what the host did, else measured-server]
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) padding: Option<String>,

    /// KV blocks [default: those that were free when a run ended]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) total_kv_blocks: Option<u32>,

    /// Tokens of a KV block
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) block_size: u32,

    /// Most requests running at once [default: what engines.csv beside the run says, or 256]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_num_running_reqs: Option<u32>,

    /// Token budget of a step [default: what engines.csv says, or 2048]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_num_scheduled_tokens: Option<u32>,

    /// Tokens of the largest captured graph [default: what engines.csv says, or that of the fit]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_cudagraph_capture_size: Option<u32>,

    /// Whether a request is scheduled only if blocks for its whole prompt are free [default: as
    /// vLLM does, if the steps say what the host did]
    #[arg(long, value_name = "BOOL", help_heading = "Server")]
    #[arg(action = clap::ArgAction::Set)]
    pub(crate) reserve_full_prompt: Option<bool>,

    /// Replays at a time; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    /// Write a page to this file: Markdown with its charts beside it if the name ends in `.md`,
    /// else HTML that needs no other file; may be given more than once
    #[arg(long, value_name = "FILE", help_heading = "Output", alias = "markdown")]
    pub(crate) report: Vec<PathBuf>,

    /// Text for the end of a Markdown page
    #[arg(long, value_name = "FILE", requires = "report", help_heading = "Output")]
    pub(crate) notes: Option<PathBuf>,

    /// Layout
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Layout,
}

/// `blis workloads`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadsArgs {
    /// Print this one, as a file for --workload-spec
    pub(crate) name: Option<String>,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis strategies`.
#[derive(Debug, Args)]
pub(crate) struct StrategiesArgs {
    /// Print this one, as a file to start from
    pub(crate) name: Option<String>,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis policies`.
#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// Only this kind
    pub(crate) kind: Option<String>,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
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
    /// A Markdown page
    Markdown,
    /// An HTML page that needs nothing else
    Html,
}

/// The layouts of what people and programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// Text for people
    Table,
    /// A Markdown page
    Markdown,
    /// An HTML page that needs nothing else
    Html,
    /// JSON for programs
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
