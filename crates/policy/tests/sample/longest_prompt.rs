//! `longest-prompt`: schedules the longest prompt first.
//!
//! **Prefers** long prompts.
//!
//! **Reads** the number of prompt tokens.
//!
//! **Parameters** none.
//!
//! **Origin** where the idea comes from, and what is different here.

use crate::prelude::*;

/// The registry entry of `longest-prompt`.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "longest-prompt",
    help: "Schedules the longest prompt first",
    ..Spec::built_by(|_, _| Box::new(LongestPrompt))
};

/// Longest prompt first.
#[derive(Clone, Copy, Debug)]
pub struct LongestPrompt;

impl Order for LongestPrompt {
    fn rank(&self, waiting: &WaitingView<'_>, _: f64, _: Time) -> f64 {
        -f64::from(waiting.request.input_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;

    #[test]
    fn a_longer_prompt_ranks_first() {
        let rank = |tokens| LongestPrompt.rank(&waiting(tokens), 0.0, Time::ZERO);
        assert!(rank(8) < rank(7));
    }
}
