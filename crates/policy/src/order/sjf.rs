//! `sjf`: schedules the shortest prompt first.
//!
//! **Prefers** the shortest prompt; of equals, the one that joined the queue first.
//!
//! **Reads** the request's prompt length.
//!
//! **Parameters** none.
//!
//! **Origin** shortest job first, by the part of the job that is known: the output length is not.

use crate::prelude::*;

/// How `sjf` introduces itself.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "sjf",
    help: "Schedules the shortest prompt first",
    ..Spec::built_by(|_, _| Box::new(Sjf))
};

/// Shortest prompt first.
#[derive(Clone, Copy, Debug)]
pub struct Sjf;

impl Order for Sjf {
    fn rank(&self, waiting: &WaitingView<'_>, _: f64, _: Time) -> f64 {
        f64::from(waiting.request.input_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use std::cmp::Ordering;

    fn rank(input_tokens: u32, priority: f64) -> f64 {
        Sjf.rank(&waiting(input_tokens), priority, Time::ZERO)
    }

    #[test]
    fn a_shorter_prompt_ranks_first_whatever_its_priority() {
        assert!(rank(7, 1.0) < rank(8, 5.0));
        assert_eq!(rank(7, 1.0).total_cmp(&rank(7, 5.0)), Ordering::Equal);
    }
}
