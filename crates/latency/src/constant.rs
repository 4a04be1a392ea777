//! `constant`: every step takes the same time, nothing else takes any. For queueing oracles.

use crate::shape::{StepShape, StepTime};
use blis_core::Span;

/// Constant step time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Time of one step, at least one nanosecond.
    pub step: Span,
}

impl StepTime for Constant {
    fn predict(&self, _shape: &StepShape) -> Span {
        self.step.max(Span::from_nanos(1))
    }

    fn context_free(&self) -> bool {
        true
    }
}
