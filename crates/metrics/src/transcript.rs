//! Every fact of a run, written down so that two runs can be compared.
//!
//! A run of equal steps is written step by step, so that how the steps were taken makes no
//! difference. For tests and for `cargo xtask soak`; it keeps everything in memory.

use crate::fact::{Fact, Listener};
use blis_core::{Span, Time};
use std::collections::BTreeMap;

/// When, who (0 is the gateway, n + 1 is instance n), and what.
pub type Line = (Time, u32, String);

/// What a run has told.
#[derive(Clone, Debug)]
pub struct Transcript {
    lines: Vec<Line>,
    /// Blocks in use at the end of steps. A run of steps tells only its last.
    blocks: BTreeMap<(Time, u32), u32>,
    /// Who stated the last run of steps, how many and how long: its tokens come right after it.
    steps: (u32, u64, Span),
    forget: fn(&mut Fact<'_>),
}

impl Transcript {
    /// An empty one; `forget` takes out of each fact what is not to be compared. Samples and
    /// details are never written down.
    pub fn new(forget: fn(&mut Fact<'_>)) -> Transcript {
        Transcript { lines: Vec::new(), blocks: BTreeMap::new(), steps: (0, 1, Span::ZERO), forget }
    }

    /// The facts by time and then by who states them, and the blocks in use after steps.
    pub fn into_parts(mut self) -> (Vec<Line>, BTreeMap<(Time, u32), u32>) {
        self.sort();
        (self.lines, self.blocks)
    }

    /// Where this run and another differ first, if they do.
    pub fn difference(&mut self, other: &mut Transcript) -> Option<String> {
        self.sort();
        other.sort();
        if let Some((a, b)) = self.lines.iter().zip(&other.lines).find(|(a, b)| a != b) {
            return Some(format!("the first fact that differs:\n  {a:?}\n  {b:?}"));
        }
        let lengths = [self.lines.len(), other.lines.len()];
        if lengths[0] != lengths[1] {
            return Some(format!("{} facts, and {} facts", lengths[0], lengths[1]));
        }
        let differs = |(place, blocks): &(&(Time, u32), &u32)| {
            other.blocks.get(place).is_some_and(|others| others != *blocks)
        };
        let (place, blocks) = self.blocks.iter().find(differs)?;
        Some(format!("blocks in use at {place:?}: {blocks}, and {}", other.blocks[place]))
    }

    fn sort(&mut self) {
        self.lines.sort_by_key(|&(at, lane, _)| (at, lane));
    }
}

impl Listener for Transcript {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if let Fact::Sample { .. } | Fact::Considered { .. } | Fact::Formed { .. } = fact {
            return;
        }
        let lane = fact.instance().map_or(0, |instance| instance.0 + 1);
        let mut fact = fact.clone();
        (self.forget)(&mut fact);
        if let Fact::Steps { count, duration, blocks_in_use, .. } = &mut fact {
            self.steps = (lane, *count, *duration);
            self.blocks.insert((at, lane), std::mem::take(blocks_in_use));
        } else if !matches!(fact, Fact::Tokens { .. }) || self.steps.0 != lane {
            self.steps = (lane, 1, Span::ZERO);
        }
        let (_, count, duration) = self.steps;
        if let Fact::Tokens { gap, .. } = fact {
            assert!(count == 1 || gap == duration, "in a run of steps every token takes a step");
        }
        let shared: [Option<&mut u64>; 2] = match &mut fact {
            Fact::Steps { count, .. } => [Some(count), None],
            Fact::Tokens { count, tokens, .. } => [Some(count), Some(tokens)],
            _ => [None, None],
        };
        for n in shared.into_iter().flatten() {
            assert!(n.is_multiple_of(count), "tokens of a run of steps divide evenly");
            *n /= count;
        }
        let text = format!("{fact:?}");
        let earlier = (1..count).rev().map(|back| (at - duration * back, lane, text.clone()));
        self.lines.extend(earlier);
        self.lines.push((at, lane, text));
    }
}
