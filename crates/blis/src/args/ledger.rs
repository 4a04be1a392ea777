//! The arguments of `blis ledger`.

use super::Layout;
use blis_lab::ledger::DEFAULT_PATH;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `blis ledger`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct LedgerArgs {
    #[command(subcommand)]
    pub(crate) command: LedgerCommand,

    /// Which ledger
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH, global = true)]
    pub(crate) ledger: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// List finished trials
    List(ListArgs),
    /// Print the row of a trial
    Show(ShowArgs),
    /// Show the numbers in which two trials differ
    Diff(DiffArgs),
    /// Take over the trials of other ledgers, e.g. those of shards
    Merge(MergeArgs),
    /// Write the strategy ledger: studies, hypotheses, verdicts, as Markdown
    Export(ExportArgs),
    /// Remove trials of other versions of the code
    Gc(GcArgs),
}

/// `blis ledger list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only so many, those that finished last
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) last: u64,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis ledger show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Key of a trial, or its first digits
    pub(crate) key: String,

    /// Print the trial instead, as a document for `blis trial`
    #[arg(long)]
    pub(crate) trial: bool,
}

/// `blis ledger diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Key of a trial, or its first digits
    pub(crate) first: String,

    /// Key of another
    pub(crate) second: String,

    /// Layout
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis ledger merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Ledgers to take over into the one of --ledger
    #[arg(value_name = "FILE", required = true)]
    pub(crate) from: Vec<PathBuf>,
}

/// `blis ledger export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// File to write, e.g. `STRATEGY_LEDGER.md`; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,

    /// Write nothing, but exit with 1 if the file of --out is not what would be written
    #[arg(long, requires = "out")]
    pub(crate) verify: bool,
}

/// `blis ledger gc`.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}
