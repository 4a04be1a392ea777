//! The summary and the audit, on the facts of a toy cluster.

mod abandoned;
mod ahead;
mod audit;
mod reports;
mod samples;
mod summary;
mod toy;
