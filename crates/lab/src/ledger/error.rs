//! What can be wrong with a ledger, and what to do about it.

use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// What is wrong with a ledger. Whatever it is, the trials that were recorded before are kept.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// There is no such file.
    #[error(
        "{}: there is no ledger; run a study first, or name another with `--ledger`",
        .0.display()
    )]
    Missing(PathBuf),
    /// It was written by a newer program.
    #[error(
        "{}: it was written by a newer version of blis (layout {found}, this one knows up to \
         {known}); update blis, or name another ledger with `--ledger`",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// It is a file of something else.
    #[error("{}: not a ledger; name another file with `--ledger`", .0.display())]
    Foreign(PathBuf),
    /// It is no file at all, so nothing would be kept.
    #[error("found `{}`; legal: the path of a file, or `--no-ledger` for none", .0.display())]
    NoFile(PathBuf),
    /// Its content is broken.
    #[error(
        "{}: the ledger is damaged ({detail}); remove damaged lines with `blis ledger gc`, or move \
         it away and run again",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is broken.
        detail: String,
    },
    /// Its content is broken where lines are found, so none can be removed.
    #[error(
        "{}: the ledger is damaged ({detail}) in ways that `blis ledger gc` cannot mend; move it \
         away, and its trials are run again when a study asks for them",
        .path.display()
    )]
    Lost {
        /// The file.
        path: PathBuf,
        /// What is broken.
        detail: String,
    },
    /// The disk is full.
    #[error(
        "{}: the disk is full; finished trials are kept: make room and run again, or run with \
         `--no-ledger`",
        .0.display()
    )]
    Full(PathBuf),
    /// It cannot be opened or written.
    #[error(
        "{}: cannot open or write the ledger: {detail}; name another with `--ledger`, or run with \
         `--no-ledger`",
        .path.display()
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// Another process does not let go of it.
    #[error(
        "{}: another process keeps the ledger locked; if it is stopped, let it go on or end it, \
         then run again",
        .0.display()
    )]
    Busy(PathBuf),
    /// No trial, or more than one, has a key that begins so.
    #[error("{0}")]
    Unknown(String),
    /// A trial has two rows, which must not be.
    #[error(
        "trial {key}: the recorded row differs from {other} in {paths}, although both are of the \
         same program, scenario and seed; one of the machines computes differently, or a ledger \
         was changed by hand"
    )]
    Differs {
        /// Its key.
        key: String,
        /// Where the other row is from.
        other: String,
        /// The numbers that differ.
        paths: String,
    },
    /// The database library complains about something else.
    #[error("{}: {detail}", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The complaint.
        detail: String,
    },
}

impl LedgerError {
    /// Whether the user has named something wrong; else the system is at fault.
    pub fn is_input(&self) -> bool {
        match self {
            LedgerError::Missing(_)
            | LedgerError::Newer { .. }
            | LedgerError::Foreign(_)
            | LedgerError::NoFile(_)
            | LedgerError::Unknown(_)
            | LedgerError::Differs { .. } => true,
            LedgerError::Damaged { .. }
            | LedgerError::Lost { .. }
            | LedgerError::Full(_)
            | LedgerError::Unwritable { .. }
            | LedgerError::Busy(_)
            | LedgerError::Other { .. } => false,
        }
    }

    /// The same to somebody who has just removed damaged lines, or tried to.
    #[must_use]
    pub fn of_gc(self) -> LedgerError {
        match self {
            LedgerError::Damaged { path, detail } => LedgerError::Lost { path, detail },
            other => other,
        }
    }

    /// What the file system says about `path`.
    pub(super) fn io(path: &Path, error: &std::io::Error) -> LedgerError {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                LedgerError::Full(path.to_owned())
            }
            _ => LedgerError::Unwritable { path: path.to_owned(), detail: error.to_string() },
        }
    }

    /// What the database library says about the ledger at `path`.
    pub(super) fn sqlite(path: &Path, error: &rusqlite::Error) -> LedgerError {
        let (path, detail) = (path.to_owned(), error.to_string());
        // What was written is read as it was written, by statements that are known to be right.
        let unread = matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
        );
        match error.sqlite_error_code() {
            _ if unread => LedgerError::Damaged { path, detail },
            Some(ErrorCode::DiskFull) => LedgerError::Full(path),
            Some(
                ErrorCode::DatabaseCorrupt | ErrorCode::ConstraintViolation | ErrorCode::Unknown,
            ) => LedgerError::Damaged { path, detail },
            Some(ErrorCode::NotADatabase) => LedgerError::Foreign(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LedgerError::Busy(path),
            Some(
                ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure,
            ) => LedgerError::Unwritable { path, detail },
            _ => LedgerError::Other { path, detail },
        }
    }
}
