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
    /// What becomes of each policy: the same, something like it, or nothing yet
    Coverage(CoverageArgs),
}

/// `blis export llm-d` and `blis export vllm`.
#[derive(Debug, Args)]
pub(crate) struct SystemArgs {
    /// Scenario file (YAML)
    #[arg(required_unless_present = "strategy")]
    pub(crate) scenario: Option<PathBuf>,

    /// Strategy by name or file; it replaces the policies of the scenario
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) strategy: Option<String>,

    /// A parameter of the strategy, e.g. `pa=4`; may be given more than once
    #[arg(long, value_name = "PARAMETER=VALUE", requires = "strategy")]
    pub(crate) set: Vec<String>,

    /// File to write; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

/// `blis export coverage`.
#[derive(Debug, Args)]
pub(crate) struct CoverageArgs {
    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}
