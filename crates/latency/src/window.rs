//! Windows of context lengths in which a batch that only decodes takes equally long.
//!
//! A batch that decodes reads its KV cache by blocks. Models that look at contexts look at them in
//! windows of one block, so that runs of decode steps take equally long until the mean context
//! enters the next window: runs can be taken at once and cost the same as stepping.

use crate::shape::StepShape;

/// Contexts are told apart by so many tokens: one KV block.
const WINDOW: u64 = 16;

/// Steps until the mean context enters the next window, this one included.
pub(crate) fn left(shape: &StepShape) -> u32 {
    u32::try_from(WINDOW - behind(shape)).expect("a window is short")
}

/// A decode shape as of the middle of its window: the same for all steps of a run in it.
pub(crate) fn middle(shape: &StepShape) -> StepShape {
    let (behind, half) = (behind(shape), WINDOW / 2);
    let seqs = u64::from(shape.decode_seqs);
    let start = shape.decode_context.saturating_sub(seqs * behind);
    let longest = match shape.decode_longest {
        0 => 0,
        longest => (u64::from(longest) + half).saturating_sub(behind).max(1),
    };
    StepShape {
        decode_context: start + seqs * half,
        decode_longest: u32::try_from(longest).unwrap_or(u32::MAX),
        ..*shape
    }
}

/// Tokens that the mean context has behind it in its window.
fn behind(shape: &StepShape) -> u64 {
    shape.decode_context / u64::from(shape.decode_seqs.max(1)) % WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_a_window_looks_like_its_middle() {
        let shape = StepShape {
            decode_seqs: 7,
            decode_context: 7 * 32 + 3,
            decode_longest: 100,
            ..StepShape::default()
        };
        assert_eq!(left(&shape), 16);
        for step in 0..16 {
            assert_eq!(middle(&shape.after(step)), shape.after(8), "step {step}");
        }
        assert_ne!(middle(&shape.after(16)), shape.after(8));
    }
}
