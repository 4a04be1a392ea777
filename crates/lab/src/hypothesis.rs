//! Hypotheses: what a study predicts, written down before anything runs.
//!
//! A claim compares numbers of arms, e.g. `critical.ttft_p99(full) <= 0.5 *
//! critical.ttft_p99(baseline)`:
//!
//! ```text
//! claim      = comparison { "and" comparison }
//! comparison = sum ( "<" | "<=" | ">" | ">=" ) sum
//!            | sum "~" sum "within" number "%"
//! sum        = product { ( "+" | "-" ) product }
//! product    = factor { ( "*" | "/" ) factor }
//! factor     = number [ "%" | "ms" | "s" ] | value | "(" sum ")"
//! value      = metric [ "(" place ")" ]
//! metric     = [ class "." ] name
//! place      = item { "," item }
//! item       = [ arm ] [ "@" workload ] | swept "=" level
//! ```
//!
//! A place names an arm, a workload after `@`, and levels of swept fields, by the last step of
//! their path or by all of it. Names with other than letters, digits, spaces and `_+-.:/` stand in
//! double quotes. What a place does not name is everything: the claim must hold for each of them,
//! and stands for the same one on both sides. Units are checked: milliseconds are not compared with
//! shares, and two latencies are not multiplied.

mod claim;
mod parse;
mod predict;

pub(crate) use claim::spelled;
pub use claim::{Claim, Comparison, Expr, Op, Reference, Relation, Suffix};
pub(crate) use parse::unknown;
pub use parse::{Mistake, parse, parse_value};
pub use predict::Prediction;

/// A prediction of a study, with what it is thought to come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// What reports call it.
    pub name: String,
    /// What it says.
    pub claim: Claim,
    /// The claim as written.
    pub text: String,
    /// How large the effect is thought to be.
    pub predict: Option<Prediction>,
    /// Why.
    pub because: Option<String>,
    /// Counters that tell whether the mechanism did anything at all, as written and as read.
    pub fires: Vec<(String, Expr)>,
}
