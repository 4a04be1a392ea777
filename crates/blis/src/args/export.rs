//! The arguments of `blis export`.

use super::Layout;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `blis export`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ExportToArgs {
    #[command(subcommand)]
    pub(crate) command: ExportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// The `EndpointPickerConfig` of llm-d's endpoint picker
    #[command(name = "llm-d")]
    LlmD(SystemArgs),
    /// The command line of vLLM's server
    Vllm(SystemArgs),
    /// List the counterpart of each policy: exact, approximate or none
    Coverage(CoverageArgs),
}

/// `blis export llm-d` and `blis export vllm`.
#[derive(Debug, Args)]
pub(crate) struct SystemArgs {
    /// Scenario file (YAML), or a study, whose base scenario counts
    #[arg(required_unless_present = "strategy")]
    pub(crate) scenario: Option<PathBuf>,

    /// Strategy by name or file; overrides the scenario's policies
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) strategy: Option<String>,

    /// Parameter of the strategy, e.g. `pa=4`; repeatable
    #[arg(long, value_name = "PARAMETER=VALUE", requires = "strategy")]
    pub(crate) set: Vec<String>,

    /// Export what has a counterpart although other policies have none; exits with 1 then
    #[arg(long)]
    pub(crate) allow_partial: bool,

    /// File to write; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

/// `blis import`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) command: ImportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// A strategy from llm-d's `EndpointPickerConfig`, or from Helm values that contain one
    #[command(name = "llm-d")]
    LlmD(ImportFrom),
}

/// `blis import llm-d`.
#[derive(Debug, Args)]
pub(crate) struct ImportFrom {
    /// Configuration file (YAML)
    pub(crate) config: PathBuf,

    /// Strategy file to write; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

/// `blis export coverage`.
#[derive(Debug, Args)]
pub(crate) struct CoverageArgs {
    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}
