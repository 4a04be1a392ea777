//! The arguments of `blis trace`.

use super::Layout;
use crate::flags::ScenarioFlags;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `blis trace`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Summarise a trace: rates, lengths, shared prefixes, sessions
    Inspect(InspectArgs),
    /// Convert a trace to the native format
    Convert(ConvertArgs),
    /// Generate a trace from a scenario's workload
    ///
    /// Closed-loop rounds keep their think times.
    Generate(Box<GenerateArgs>),
}

/// A trace to read, and what to change of it on the way.
#[derive(Debug, Args)]
pub(crate) struct TraceInputArgs {
    /// Trace file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Format: native, mooncake, azure, burstgpt, tracev2, legacy-csv or h200 [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,

    /// Divide arrival times by this; 2 doubles the rate [default: 1]
    #[arg(long, value_name = "X", help_heading = "Part of the trace")]
    pub(crate) speedup: Option<f64>,

    /// Drop arrivals before this time, in s; it becomes time 0
    #[arg(long, value_name = "S", help_heading = "Part of the trace")]
    pub(crate) start: Option<f64>,

    /// Drop arrivals from this time on, in s
    #[arg(long, value_name = "S", help_heading = "Part of the trace")]
    pub(crate) end: Option<f64>,

    /// Keep this fraction of the sessions
    #[arg(long, value_name = "SHARE", help_heading = "Part of the trace")]
    pub(crate) sample: Option<f64>,

    /// Seed of --sample [default: 0]
    #[arg(long, value_name = "N", help_heading = "Part of the trace")]
    pub(crate) sample_seed: Option<u64>,

    /// Stop after this many requests
    #[arg(long, value_name = "N", help_heading = "Part of the trace")]
    pub(crate) limit: Option<u64>,
}

/// `blis trace inspect`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) input: TraceInputArgs,

    /// Tokens per block, for shared prefixes
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) block_size: u32,

    /// Skip shared prefixes; memory then does not grow with the trace
    #[arg(long)]
    pub(crate) no_sharing: bool,

    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis trace convert`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) input: TraceInputArgs,

    /// File to write; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// Print no summary
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// `blis trace generate`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct GenerateArgs {
    /// Scenario file (YAML)
    pub(crate) scenario: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) flags: ScenarioFlags,

    /// File to write; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: PathBuf,

    /// Print no summary
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,
}
