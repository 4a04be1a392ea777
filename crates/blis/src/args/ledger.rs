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

    /// Ledger to use
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH, global = true)]
    pub(crate) ledger: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// List finished trials
    List(ListArgs),
    /// Print a trial's row
    Show(ShowArgs),
    /// Show where two trials differ
    Diff(DiffArgs),
    /// Merge trials of other ledgers, e.g. of shards
    Merge(MergeArgs),
    /// Write all studies, hypotheses and verdicts as Markdown
    Export(ExportArgs),
    /// Look for damage; exit with 1 if there is any
    Check,
    /// Remove damaged lines and trials of other code versions
    Gc(GcArgs),
}

/// `blis ledger list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Number of most recent trials to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) last: u64,

    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis ledger show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Key of a trial, or a prefix of it
    pub(crate) key: String,

    /// Print the trial itself, as input for `blis trial`
    #[arg(long)]
    pub(crate) trial: bool,
}

/// `blis ledger diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Key of a trial, or a prefix of it
    pub(crate) first: String,

    /// Key of the other trial
    pub(crate) second: String,

    /// Format of the result
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Layout,
}

/// `blis ledger merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Ledgers to merge into --ledger
    #[arg(value_name = "FILE", required = true)]
    pub(crate) from: Vec<PathBuf>,
}

/// `blis ledger export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// File to write, e.g. `STRATEGY_LEDGER.md`; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,

    /// Write nothing; exit with 1 if --out is out of date
    #[arg(long, requires = "out")]
    pub(crate) verify: bool,
}

/// `blis ledger gc`.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Only print what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}
