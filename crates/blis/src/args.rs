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
