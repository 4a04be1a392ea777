//! The command lines of `blis init` and `blis schema`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `blis init`.
#[derive(Clone, Debug, Args)]
pub(crate) struct InitArgs {
    /// Where the files go
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Model, by name or alias
    #[arg(long, default_value = "meta-llama/llama-3.1-8b-instruct")]
    pub(crate) model: String,

    /// GPU
    #[arg(long, visible_alias = "gpu", default_value = "H200")]
    pub(crate) hardware: String,

    /// How many GPUs there are
    #[arg(long, value_name = "N", default_value = "8")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) gpus: u32,

    /// GPUs of an instance [default: the fewest with room for 131,072 tokens of KV]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) tp: Option<u32>,

    /// Workload that ships
    #[arg(long, value_name = "NAME", default_value = "multi-turn-4x512")]
    pub(crate) workload: String,

    /// Trace to replay instead
    #[arg(conflicts_with = "workload")]
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Mean prompt instead of a workload (with --output-tokens)
    #[arg(long, value_name = "N", requires = "output_tokens", conflicts_with = "trace")]
    pub(crate) prompt_tokens: Option<u32>,

    /// Mean output
    #[arg(long, value_name = "N", requires = "prompt_tokens")]
    pub(crate) output_tokens: Option<u32>,

    /// Requests per second (written as sessions per second where the workload has sessions), or a
    /// share of saturation such as 90%
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,

    /// A target that the study tests, e.g. `ttft_p99 < 1s`; repeatable
    #[arg(long, value_name = "TARGET")]
    pub(crate) slo: Vec<String>,
}

/// `blis schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Kind of file
    #[arg(value_enum)]
    pub(crate) kind: FileKind,
}

/// Kinds of files that people write.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FileKind {
    /// For `blis run`
    Scenario,
    /// For `blis study`
    Study,
    /// For `blis optimize`
    Search,
    /// For `strategy:`
    Strategy,
    /// For `workload.spec:`
    Workload,
}
