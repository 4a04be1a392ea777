//! What a specification asks for and does not get: said once a file, never passed over.
//!
//! The plan carries the texts and the binary prints them as warnings. What would change the
//! meaning of a workload is refused instead.

use crate::problem::Problem;
use crate::yaml::Node;

/// Something that was asked for and has no effect, or another one than the reader may think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Streaming,
    Network,
    ReasonRatio,
    InputBesideMedia,
    DefaultPrefix,
    EndlessDrain,
    OtherRate,
    OtherClients,
    NoTokens,
    SilentChunk,
}

impl Note {
    fn text(self) -> &'static str {
        match self {
            Note::Streaming => "no effect: tokens are always streamed",
            Note::Network => "no effect: the network is not simulated",
            Note::ReasonRatio => "no effect: reasoning tokens are generated like any others",
            Note::InputBesideMedia => "no effect: `multimodal` sets the prompts",
            Note::DefaultPrefix => "the prefix has 50 tokens, because `prefix_length` is not given",
            Note::EndlessDrain => {
                "the client never drains: its most active part applies, and `diurnal` does not end"
            }
            Note::OtherRate => "no effect: the stages of `inference_perf` are the rate",
            Note::OtherClients => "no effect: there are other clients; keep one kind of them",
            Note::NoTokens => "a length of 0 is read as 1: prompts and outputs are never empty",
            Note::SilentChunk => "no effect: it sends nothing in the span",
        }
    }
}

/// The notes of one file, each kind with its first place.
pub(super) struct Notes<'a> {
    tree: &'a Node,
    found: Vec<(Note, Problem, u32)>,
}

impl<'a> Notes<'a> {
    /// No notes yet on what stands in `tree`.
    pub(super) fn new(tree: &'a Node) -> Notes<'a> {
        Notes { tree, found: Vec::new() }
    }

    /// Notes something about the field at `path`.
    pub(super) fn add(&mut self, note: Note, path: &str) {
        let place = self.tree.place_of(path);
        self.add_at(note, Problem::new(place, path, note.text()));
    }

    /// Notes something about the file `name`.
    pub(super) fn add_file(&mut self, note: Note, name: &str) {
        self.add_at(note, Problem::of_file(name, note.text()));
    }

    fn add_at(&mut self, note: Note, place: Problem) {
        match self.found.iter_mut().find(|(known, ..)| *known == note) {
            Some((.., more)) => *more += 1,
            None => self.found.push((note, place, 0)),
        }
    }

    /// The notes as sentences.
    pub(super) fn into_texts(self) -> Vec<String> {
        let text = |(_, first, more): (Note, Problem, u32)| match more {
            0 => first.to_string(),
            more => format!("{first} (and {more} more like it)"),
        };
        self.found.into_iter().map(text).collect()
    }
}
