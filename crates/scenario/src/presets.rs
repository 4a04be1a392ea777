//! Workloads that ship: specifications with a name, the targets that go with them, and a header
//! that says what they model and where their numbers come from.
//!
//! A preset is a specification like any other (`presets/NAME.yaml` of this crate): printed, saved
//! and edited, it reads back as a file.

use crate::problem::unknown;
use crate::problems::Problems;
use crate::workload_spec::{self, SpecFile};

/// A workload that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// How it is called.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The specification.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal: $summary:literal;)*) => {
        /// All presets: the workloads of the first studies, then those of the Go program.
        pub const ALL: &[Preset] = &[$(
            Preset {
                name: $name,
                summary: $summary,
                text: include_str!(concat!("../presets/", $name, ".yaml")),
            },
        )*];
    };
}

presets! {
    "orthogonal-slo": "Three classes that differ in nothing else, one shared prefix, bursty";
    "orthogonal-slo-32": "The same classes in conversations of four rounds over 32 system prompts";
    "bursts-32": "Conversations over 32 system prompts whose sessions begin in bursts";
    "independent": "The same lengths and classes with nothing shared, as a control";
    "multi-turn-4x512": "Conversations of four rounds that resend their whole context";
    "mixed-slo-multi-turn": "Critical questions next to batch conversations that fill the cache";
    "rag-4096": "Questions over five retrieved contexts of 4,096 tokens each";
    "agentic-2048": "Agents in closed loops over ten tool prompts of 2,048 tokens each";
    "saas-150x6000": "150 tenants with a context of 6,000 tokens each, from 3 to 60 requests per \
        second";
    "chatbot": "Short prompts, short outputs";
    "summarization": "Long prompts, short outputs";
    "contentgen": "Prompts and outputs of a thousand tokens";
    "multidoc": "Very long prompts, long outputs";
}

/// The preset called `name`.
///
/// # Errors
/// What is wrong with the name, with the nearest known one.
pub fn find(name: &str) -> Result<&'static Preset, String> {
    ALL.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|preset| preset.name).collect();
        unknown("preset", name, &known)
    })
}

impl Preset {
    /// Reads it for a scenario that simulates `model`.
    ///
    /// # Errors
    /// Never for those that ship; a test reads all of them.
    pub fn read(&self, model: Option<&str>) -> Result<SpecFile, Problems> {
        workload_spec::read_text(&format!("{}.yaml (preset)", self.name), self.text, model)
    }
}
