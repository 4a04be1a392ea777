//! The command line of `why`.

use super::ShownArgs;
use crate::flags::ScenarioFlags;
use blis_lab::why::Measure;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `blis why`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct WhyArgs {
    /// Request, by the number or name that `--requests-out` gives it [default: the slowest], and
    /// scenario file (YAML)
    #[arg(value_names = ["REQUEST", "SCENARIO"], num_args = 0..=2)]
    pub(crate) what: Vec<String>,

    /// What to explain, and by what the slowest are chosen; itl: mean time between tokens
    #[arg(long, value_enum, value_name = "LATENCY", default_value = "ttft")]
    pub(crate) slowest: Slow,

    /// Number of slowest requests to explain
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) number: u16,

    #[command(flatten)]
    pub(crate) flags: ScenarioFlags,

    /// Separate policy file (admission, routing, priority, scheduler)
    #[arg(long, value_name = "FILE", help_heading = "Policies")]
    pub(crate) policy_config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// A latency of requests.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Slow {
    Ttft,
    E2e,
    Itl,
}

impl From<Slow> for Measure {
    fn from(slow: Slow) -> Measure {
        match slow {
            Slow::Ttft => Measure::Ttft,
            Slow::E2e => Measure::E2e,
            Slow::Itl => Measure::Itl,
        }
    }
}
