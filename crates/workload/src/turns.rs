//! Whose turn it is in the load of a benchmark tool, and when its next stage begins.
//!
//! inference-perf asks the questions of its data set in one shuffled order, again and again, and
//! begins a stage when all requests of the one before are answered.

use crate::rate::Rate;
use blis_core::random::Purpose;
use blis_core::{Dice, Span, Time};

/// The turns of a mix, whose own clock stands still while a stage is drained.
#[derive(Clone, Debug)]
pub(crate) struct InTurn {
    /// The clients in the order of their turns.
    order: Vec<usize>,
    /// Where stages after the first begin, on the clock of the mix.
    starts: Vec<Time>,
    /// How many of them have begun.
    pub(crate) stage: usize,
    /// Requests that have not ended.
    open: u64,
    /// When the last one did.
    ended: Time,
    /// How long the clock of the mix has stood still.
    late: Span,
}

impl InTurn {
    pub(crate) fn new(clients: usize, rate: &Rate, seed: u64) -> InTurn {
        let mut order: Vec<usize> = (0..clients).collect();
        let mut dice = Dice::new(seed, Purpose::Permutation, 0);
        for at in (1..order.len()).rev() {
            order.swap(at, dice.below(at + 1));
        }
        let (ended, late) = (Time::ZERO, Span::ZERO);
        InTurn { order, starts: rate.jumps(), stage: 0, open: 0, ended, late }
    }

    /// The client whose turn it is after `sent` requests, and how often it had one before.
    pub(crate) fn client(&self, sent: u64) -> (usize, u64) {
        let clients = self.order.len() as u64;
        let place = usize::try_from(sent % clients).expect("less than there are clients");
        (self.order[place], sent / clients)
    }

    /// When a request is sent that is due at `at` on the clock of the mix; `None` if a stage has to
    /// be drained first.
    pub(crate) fn sent(&mut self, at: Time) -> Option<Time> {
        while let Some(&start) = self.starts.get(self.stage).filter(|start| **start <= at) {
            if self.open > 0 {
                return None;
            }
            let soonest = self.ended + Span::from_nanos(1);
            self.late = self.late.max(soonest.saturating_since(start));
            self.stage += 1;
        }
        self.open += 1;
        Some(at + self.late)
    }

    /// A request has ended.
    pub(crate) fn end(&mut self, at: Time) {
        self.open = self.open.saturating_sub(1);
        self.ended = self.ended.max(at);
    }

    /// Nothing is under way any more.
    pub(crate) fn drain(&mut self) {
        self.open = 0;
    }

    /// Whether a stage is still to begin.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stage < self.starts.len()
    }
}
