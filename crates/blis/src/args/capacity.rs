//! The command line of `blis capacity`.

use super::Layout;
use super::lab::TrialArgs;
use crate::flags::ScenarioFlags;
use blis_lab::capacity::Vary;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `blis capacity`.
#[derive(Debug, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
pub(crate) struct CapacityArgs {
    /// Scenario file (YAML)
    pub(crate) scenario: Option<PathBuf>,

    /// What must hold, e.g. `critical.ttft_p99 <= 200ms` or `slo_attainment >= 95%`; may be given
    /// several times [default: of each class with targets, 95 % of the requests are within them]
    #[arg(long, value_name = "CLAIM", help_heading = "Question")]
    pub(crate) slo: Vec<String>,

    /// What is varied: the highest rate, or the fewest instances
    #[arg(long, value_enum, default_value = "rate", help_heading = "Question")]
    pub(crate) vary: VaryArg,

    /// Half the width of the interval, as a share of the capacity, that is narrow enough
    #[arg(long, value_name = "PERCENT", default_value = "2%", help_heading = "Question")]
    pub(crate) precision: String,

    /// Seeds that each rate is run with at first
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1_000))]
    pub(crate) seeds: u16,

    /// Most seeds that are added until the interval is narrow enough
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1_000))]
    pub(crate) max_seeds: u16,

    /// What to leave out of each run: `auto`, or seconds, e.g. `30s`; `scenario` is what it says
    #[arg(long, value_name = "TIME", default_value = "auto", help_heading = "Running")]
    pub(crate) warmup: String,

    /// Runs that are too short to be steady are made longer, up to this many requests
    #[arg(long, value_name = "N", default_value_t = 50_000, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) max_requests: u64,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,

    /// Layout of the result
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    pub(crate) format: Layout,

    /// Write a page to this file: Markdown with its charts beside it if the name ends in `.md`,
    /// else HTML that needs no other file; may be given more than once
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Vec<PathBuf>,

    /// No progress bar and no notes
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) flags: ScenarioFlags,
}

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VaryArg {
    /// Arrivals a second: the highest that is met
    Rate,
    /// Engine instances: the fewest that are enough
    Instances,
}

impl From<VaryArg> for Vary {
    fn from(vary: VaryArg) -> Vary {
        match vary {
            VaryArg::Rate => Vary::Rate,
            VaryArg::Instances => Vary::Instances,
        }
    }
}
