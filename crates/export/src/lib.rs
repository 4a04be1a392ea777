//! Strategies as configuration of real systems: llm-d's endpoint picker and vLLM's server.
//!
//! A checked scenario goes in, text comes out, with a comment for every part that is not the same
//! there. What a policy becomes is written down once, in [`coverage`]; what may be written at all
//! is in the tables of [`llm_d`] and [`vllm`], against which every text is checked before it is
//! handed out. Nothing here runs or reads files.

pub mod coverage;
mod legal;
pub mod llm_d;
mod spelled;
pub mod vllm;
mod write;

pub use coverage::{Fit, Mapping, System};
pub use write::shell_word;

use blis_scenario::{Draft, Plan, RunFailure};

/// The scenario of a strategy alone, or of a scenario's file, for export: what is sent does not
/// matter, and neither need it be measured.
///
/// # Errors
/// If anything in it is illegal.
pub fn plan(draft: &Draft) -> Result<Plan, RunFailure> {
    draft.without_workload().plan()
}

/// A strategy as a real system reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The configuration, with comments.
    pub text: String,
    /// Policies that decide and have no counterpart there, e.g. "scorer `least-harm`".
    pub missing: Vec<String>,
}

impl Exported {
    fn new(text: String, notes: &[Note]) -> Exported {
        let missing = notes.iter().filter(|note| note.policy && note.fit.is_missing());
        Exported { text, missing: missing.map(|note| note.part.clone()).collect() }
    }
}

/// What is said about a part of a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    /// The part, e.g. "scorer `kv-pressure`".
    part: String,
    /// Whether it is a policy, and so decides something.
    policy: bool,
    fit: Fit,
    /// More, where the parameters matter.
    more: Vec<String>,
}

impl Note {
    /// What the table has about a part that is no policy, under `key`.
    fn new(part: &str, key: &str, more: Vec<String>) -> Note {
        Note { part: part.to_owned(), policy: false, fit: coverage::of("part", key).fit, more }
    }
}

/// The notes as comments of at most 100 columns: all that differs, what is missing first.
fn comments(notes: &[Note]) -> String {
    let order = |note: &&Note| match note.fit {
        Fit::Missing(_) => 0,
        Fit::Approximate(_) => 1,
        Fit::Exact(_) => 2,
    };
    let mut sorted: Vec<&Note> = notes.iter().collect();
    sorted.sort_by_key(order);
    let mut out = String::new();
    for note in sorted {
        let (word, text) = note.fit.told();
        let text = if text.is_empty() { String::new() } else { format!(": {text}") };
        let first = format!("[{word}] {}{text}", note.part);
        let all: Vec<&str> =
            std::iter::once(first.as_str()).chain(note.more.iter().map(String::as_str)).collect();
        out.push_str(&write::comment(&all.join(". "), "  "));
    }
    out
}
