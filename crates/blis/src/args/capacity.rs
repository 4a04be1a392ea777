//! The command line of `blis capacity`.

use super::ShownArgs;
use super::lab::TrialArgs;
use crate::flags::ScenarioFlags;
use blis_lab::capacity::Vary;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `blis capacity`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct CapacityArgs {
    /// Scenario file (YAML)
    pub(crate) scenario: Option<PathBuf>,

    /// SLO, e.g. `critical.ttft_p99 <= 200ms` or `slo_attainment >= 95%`; repeatable [default: 95 %
    /// of the requests of each class meet its targets]
    #[arg(long, value_name = "CLAIM", help_heading = "Question")]
    pub(crate) slo: Vec<String>,

    /// What to vary
    #[arg(long, value_enum, default_value = "rate", help_heading = "Question")]
    pub(crate) vary: VaryArg,

    /// Choose hardware: the fewest instances on each of these GPUs (e.g. `H100,8xH200`: at most
    /// eight H200), with tensor parallelism, token budget and number of sequences tried, cheapest
    /// first; with `--latency-model operators` also pipelines, divided experts and an FP8 KV cache
    #[arg(long, value_name = "GPU,...", value_delimiter = ',', help_heading = "Question")]
    #[arg(conflicts_with_all = ["vary", "hardware", "tp", "num-instances"])]
    #[arg(conflicts_with_all = ["max-num-running-reqs", "max-num-scheduled-tokens"])]
    pub(crate) search: Vec<String>,

    /// Most GPUs of each kind that `--search` may take
    #[arg(long, value_name = "N", requires = "search", help_heading = "Question")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) gpus: Option<u32>,

    /// Dollars an hour of one GPU, e.g. `H100=2.5`; repeatable [default: the catalogue's]
    #[arg(long, value_name = "GPU=DOLLARS", requires = "search", help_heading = "Question")]
    pub(crate) price: Vec<String>,

    /// Stop when the CI half-width is below this share of the capacity
    #[arg(long, value_name = "PERCENT", default_value = "2%", help_heading = "Question")]
    pub(crate) precision: String,

    /// Seeds to start with
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1_000))]
    pub(crate) seeds: u16,

    /// Most seeds to use
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1_000))]
    pub(crate) max_seeds: u16,

    /// Warm-up to cut from each run: `auto`, seconds, e.g. `30s`, or `scenario` for its own
    #[arg(long, value_name = "TIME", default_value = "auto", help_heading = "Running")]
    pub(crate) warmup: String,

    /// Runs too short to be steady are lengthened, up to this many requests
    #[arg(long, value_name = "N", default_value_t = 50_000, help_heading = "Running")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) max_requests: u64,

    #[command(flatten)]
    pub(crate) trials: TrialArgs,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,

    #[command(flatten)]
    pub(crate) flags: ScenarioFlags,
}

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VaryArg {
    /// Find the highest arrival rate
    Rate,
    /// Find the fewest instances
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
