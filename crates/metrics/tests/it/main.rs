//! The summary and the audit, on the facts of a toy cluster.

mod abandoned;
mod audit;
mod reports;
mod samples;
mod summary;
mod toy;
