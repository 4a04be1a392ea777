//! What the checks of a mix complain about, in the words of the file that it was written in.

use crate::problem::{Place, Problem};
use crate::problems::Problems;
use crate::yaml::Node;
use blis_workload::{SpecError, TraceError, TraceErrorKind};
use std::sync::Arc;

/// A complaint of `Mix::validate` in the words of a specification whose fields stand under `path`.
/// It can only be about the mix as a whole: each client was checked when it was read.
pub fn translate(tree: &Node, path: &str, error: &SpecError) -> Problems {
    let field = if error.field.starts_with("rate") { "aggregate_rate" } else { &error.field };
    let at = |field: &str| {
        if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
    };
    let blamed = if at_fault(tree, &at("aggregate_rate"), &at("num_requests"), error) {
        at("num_requests")
    } else {
        at(field)
    };
    tree.problem(blamed, message(error))
}

/// Whether the number of requests rather than the rate is to blame for a workload that takes too
/// long: it is, if it was given and the rate was not.
pub(crate) fn at_fault(tree: &Node, rate: &str, requests: &str, error: &SpecError) -> bool {
    error.field == "rate" && !tree.has(rate) && tree.has(requests)
}

/// What is wrong, in one sentence.
pub(crate) fn message(error: &SpecError) -> String {
    let SpecError { field, found, legal } = error;
    match field.as_str() {
        "num_requests" if found.starts_with("neither") => {
            "a workload needs a number of requests or a horizon; give one of them".to_owned()
        }
        // These are found in words, not in a value.
        _ if found.contains(' ') => format!("found {found}; legal: {legal}"),
        _ => format!("found `{found}`; legal: {legal}"),
    }
}

/// What is wrong with a trace, as a problem of its file.
pub(crate) fn trace_problem(error: &TraceError) -> Problem {
    let io = error.kind == TraceErrorKind::Io;
    let file: Arc<str> = error.path.as_str().into();
    let problem = match (error.line, u64::try_from(error.column)) {
        (0, _) | (_, Err(_)) => Problem::of_file(&file, error.message.clone()),
        (line, Ok(column)) => {
            Problem::new(Place::File { file, line, column }, "", error.message.clone())
        }
    };
    Problem { io, ..problem }
}
