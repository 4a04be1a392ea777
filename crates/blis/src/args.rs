//! The command line: commands and the flags that are not part of a scenario.

mod capacity;
pub(crate) mod export;
mod init;
pub(crate) mod lab;
mod ledger;
mod trace;
mod why;

pub(crate) use capacity::CapacityArgs;
pub(crate) use init::{FileKind, InitArgs, SchemaArgs};
pub(crate) use ledger::{
    DiffArgs, ExportArgs, GcArgs, LedgerArgs, LedgerCommand, ListArgs, MergeArgs, ShowArgs,
};
pub(crate) use trace::{
    ConvertArgs, GenerateArgs, InspectArgs, TraceArgs, TraceCommand, TraceInputArgs,
};
pub(crate) use why::WhyArgs;

use crate::flags::ScenarioFlags;
use clap::{Args, Parser, Subcommand, ValueEnum};
use export::{ExportToArgs, ImportArgs};
use lab::{CompareArgs, EvolveArgs, ExplainArgs, OptimizeArgs, StudyArgs};
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
    /// The scenario comes from a file, from flags, or from both (flags override the file). Without
    /// either, one instance gets 500 requests, one a second.
    Run(Box<RunArgs>),
    /// Say why a request was slow
    ///
    /// Runs the scenario and shows the life of a request: where its time went, who was ahead of it,
    /// what else was in its steps, what its router saw, and in one sentence what made it slow.
    Why(Box<WhyArgs>),
    /// Inspect, convert or generate traces
    ///
    /// The native format has one request per line, as JSON. Mooncake, Azure, BurstGPT and other
    /// formats are read as well.
    Trace(TraceArgs),
    /// Fit a latency profile to server logs
    ///
    /// Prints the coefficients and the errors by kind of step, for the fit and for workloads left
    /// out of it. data/h200/README.md describes the columns of the logs.
    Calibrate(CalibrateArgs),
    /// Compare predictions with measured runs
    ///
    /// Replays each measured workload and prints predicted and measured latencies, with intervals
    /// from how sure the fit is. By default each workload is predicted by a fit to all others.
    Validate(ValidateArgs),
    /// List shipped workloads, or print one
    Workloads(WorkloadsArgs),
    /// List shipped strategies, or print one
    Strategies(StrategiesArgs),
    /// Run a study and give verdicts on its hypotheses
    ///
    /// Runs every combination of arm, workload and swept value with every seed, on the same
    /// requests. Tables show means with 95 % intervals. Seeds are added until every hypothesis has
    /// a verdict, up to `max_seeds`.
    Study(StudyArgs),
    /// Run one trial: JSON on standard input, a JSON row on standard output
    ///
    /// The input is a scenario and a seed, e.g. `{"scenario": {...}, "seed": 42}`. `blis ledger
    /// show KEY --trial` prints that of a finished trial.
    Trial,
    /// List, compare, merge and export finished trials
    ///
    /// Studies keep every finished trial in a ledger, an SQLite file you can query.
    Ledger(LedgerArgs),
    /// Compare scenarios side by side, with paired differences
    ///
    /// Scenarios with the same workload get the same requests. Changes are relative to the first.
    Compare(CompareArgs),
    /// Explain why an arm of a study is better
    ///
    /// Compares the TTFT breakdown of two arms, runs the arm with every subset of its components,
    /// and with oracles, and repeats some routing decisions at other instances.
    Explain(ExplainArgs),
    /// Tune the parameters of a strategy
    ///
    /// Bayesian optimisation by default. The recommended point is run again on fresh seeds, next to
    /// the hand-set one. An interrupted search continues from the ledger.
    Optimize(OptimizeArgs),
    /// Breed strategies from formulas
    ///
    /// Raced on training workloads, confirmed on held-out ones. Continues from the ledger.
    Evolve(EvolveArgs),
    /// Find the highest rate or the fewest instances that meet the SLOs
    ///
    /// Finds the capacity of each seed by bisection and reports the mean. Several `--strategy` are
    /// compared on the same requests. Exits with 1 if a strategy has no capacity.
    Capacity(Box<CapacityArgs>),
    /// List policies and their parameters
    Policies(PoliciesArgs),
    /// Write a strategy as configuration of llm-d or vLLM
    ///
    /// Comments say what differs there, or what is missing and what to do instead.
    Export(ExportToArgs),
    /// Read a strategy from the configuration of llm-d
    Import(ImportArgs),
    /// Write a first scenario and a study of it
    ///
    /// From a few flags; in a terminal, what is missing is asked for.
    Init(InitArgs),
    /// Print the JSON Schema of a kind of file, for editors
    Schema(SchemaArgs),
    /// Print a shell completion script
    Completions(CompletionsArgs),
}

/// `blis run`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that users know by name")]
pub(crate) struct RunArgs {
    /// Scenario file (YAML)
    pub(crate) scenario: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) flags: ScenarioFlags,

    /// Separate policy file (admission, routing, priority, scheduler)
    #[arg(long, value_name = "FILE", help_heading = "Policies")]
    pub(crate) policy_config: Option<PathBuf>,

    /// Format of the result
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Format,

    /// Write cluster metrics and one row per request to this JSON file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) results_path: Option<PathBuf>,

    /// Write one row per request to this CSV file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) requests_out: Option<PathBuf>,

    /// Write the state of every instance at regular intervals to this CSV file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) timeline: Option<PathBuf>,

    /// Interval of --timeline, in ms [default: 100]
    #[arg(long, value_name = "MS", help_heading = "Output")]
    pub(crate) timeline_interval_ms: Option<String>,

    /// Record the requests as a trace, to replay with `--trace`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace_out: Option<PathBuf>,

    /// Score the run by weighted metrics, e.g. `throughput:0.5,p99_ttft:0.5`
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

    /// Write one line per routing decision, with the best alternatives and every scorer's part, to
    /// this JSONL file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) decisions_out: Option<PathBuf>,

    /// Write steps, requests and counters as a trace for ui.perfetto.dev to this JSON file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) perfetto: Option<PathBuf>,

    /// Also write a page with the run over time and its ten slowest requests: Markdown if FILE ends
    /// in `.md`, else HTML; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Vec<PathBuf>,

    /// Repeat a sample of routing decisions at this many other instances each and report the
    /// regret; 0: off [default: 0; 3 for --decisions-out]
    #[arg(long, value_name = "N", help_heading = "Output")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) counterfactual_k: Option<u16>,

    /// Number of decisions --counterfactual-k repeats
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Output")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) counterfactual_sample: u32,

    /// No progress bar and no notes
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Number of seeds to run, starting at the scenario's
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) replications: u64,

    /// Parallel runs; 0: one per core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    /// Check all invariants during the run
    #[arg(long, help_heading = "Running")]
    pub(crate) audit: bool,

    /// Simulate every engine step individually (slow; same result)
    #[arg(long, help_heading = "Running")]
    pub(crate) stepwise: bool,

    /// Do not make the run longer than the workload says, as the Go program does not
    #[arg(long, hide = true)]
    pub(crate) as_written: bool,
}

/// `blis calibrate`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct CalibrateArgs {
    /// Step logs (NAME.steps.csv), or folders of them; or what `vllm bench serve --save-detailed`
    /// wrote (NAME.json)
    #[arg(value_name = "STEPS", required = true)]
    pub(crate) steps: Vec<PathBuf>,

    /// Request logs (NAME.requests.csv) [default: those next to the step logs]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) requests: Vec<PathBuf>,

    /// Steps measured one at a time, without a server; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) grid: Vec<PathBuf>,

    /// Profile to write, for --latency-model; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// How the server pads its batches: vllm, measured-server (data/h200/README.md) or none
    /// [default: vllm if the logs have host times, else measured-server]
    #[arg(long, value_name = "NAME")]
    pub(crate) padding: Option<String>,

    /// Tokens per KV block
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

    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis validate`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ValidateArgs {
    /// What to predict: workloads of --data by name, or new runs by file (NAME.steps.csv next to
    /// NAME.requests.csv) or folder; a folder without --data is taken as --data [default: all of
    /// --data; without it, all that ships]
    #[arg(value_name = "NAME|FILE|FOLDER")]
    pub(crate) what: Vec<String>,

    /// Folder with measured runs to fit to [default: data/vllm]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,

    /// Replay benchmarks that others have published, by data file or folder [default: data/public]
    #[arg(long, conflicts_with_all = ["data", "profile", "refit", "grid", "resamples", "seed", "padding",
        "total_kv_blocks", "block_size", "max_num_running_reqs", "max_num_scheduled_tokens"])]
    pub(crate) public: bool,

    /// Predict with this profile, a file or the name of a shipped one, instead of a fit
    #[arg(long, value_name = "FILE", conflicts_with = "refit", help_heading = "Prediction")]
    pub(crate) profile: Option<PathBuf>,

    /// Predict with a fit to all runs, including the predicted ones
    #[arg(long, help_heading = "Prediction")]
    pub(crate) refit: bool,

    /// Steps measured one at a time, without a server; repeatable [default: those of --data]
    #[arg(long, value_name = "FILE", help_heading = "Prediction")]
    pub(crate) grid: Vec<PathBuf>,

    /// Replays with varied profiles for the intervals; 0: no intervals
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Prediction")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) resamples: u32,

    /// Seed of the varied profiles
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Prediction")]
    pub(crate) seed: u64,

    /// How the server pads its batches: vllm, measured-server (data/h200/README.md) or none
    /// [default: vllm if the logs have host times, else measured-server]
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) padding: Option<String>,

    /// KV blocks [default: those free at the end of a run]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) total_kv_blocks: Option<u32>,

    /// Tokens per KV block
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) block_size: u32,

    /// Most requests running at once [default: from engines.csv next to the run, or 256]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_num_running_reqs: Option<u32>,

    /// Token budget per step [default: from engines.csv, or 2048]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_num_scheduled_tokens: Option<u32>,

    /// Tokens of the largest CUDA graph [default: from engines.csv, or the fit]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_cudagraph_capture_size: Option<u32>,

    /// Schedule a request only if its whole prompt fits [default: as in vLLM, if the logs have host
    /// times]
    #[arg(long, value_name = "BOOL", help_heading = "Server")]
    #[arg(action = clap::ArgAction::Set)]
    pub(crate) reserve_full_prompt: Option<bool>,

    /// Parallel replays; 0: one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// `blis workloads`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadsArgs {
    /// Workload to print, as a file for --workload-spec
    pub(crate) name: Option<String>,

    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis strategies`.
#[derive(Debug, Args)]
pub(crate) struct StrategiesArgs {
    /// Strategy to print, as a file to start from
    pub(crate) name: Option<String>,

    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis policies`.
#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// Kind of policy, e.g. routing
    pub(crate) kind: Option<String>,

    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}

/// Where a result goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShownArgs {
    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,

    /// Also write a page: Markdown if FILE ends in `.md`, with its charts beside it, else one
    /// self-contained HTML file; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Vec<PathBuf>,

    /// No progress bar and no notes
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// The layouts of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text tables
    Table,
    /// One JSON object
    Json,
    /// Sections of flat JSON, as the Go program prints them
    Blis,
    /// A Markdown page
    Markdown,
    /// A self-contained HTML page
    Html,
}

/// The layouts of what people and programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// Text tables
    Table,
    /// A Markdown page
    Markdown,
    /// A self-contained HTML page
    Html,
    /// JSON
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
