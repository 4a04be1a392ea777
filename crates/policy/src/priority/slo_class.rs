//! `slo-class`: a fixed priority for each service class.
//!
//! **Prefers** important classes; within a class nobody.
//!
//! **Reads** the request's service class.
//!
//! **Parameters** one per class, named like it: its priority.
//!
//! **Origin** the priority classes of llm-d and of vLLM's `priority` scheduling. It does not age,
//! so a steady stream of important requests starves the others.

use crate::classes::{numbers, weight};
use crate::prelude::*;
use blis_core::SloClass as Class;

/// How `slo-class` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "slo-class",
    help: "Gives each service class a fixed priority",
    params: &[
        weight(Class::Critical, 10.0, "Priority of critical requests"),
        weight(Class::Standard, 5.0, "Priority of standard requests"),
        weight(Class::Sheddable, 1.0, "Priority of sheddable requests"),
        weight(Class::Batch, 1.0, "Priority of batch requests"),
        weight(Class::Background, 0.0, "Priority of background requests"),
    ],
    ..Spec::built_by(|values, _| Box::new(SloClass { priorities: numbers(values) }))
};

/// A priority for each service class.
#[derive(Clone, Copy, Debug)]
pub struct SloClass {
    priorities: PerClass<f64>,
}

impl Priority for SloClass {
    fn priority(&self, waiting: &WaitingView<'_>, _: Time) -> f64 {
        self.priorities[waiting.request.class.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use blis_core::RequestView;

    fn priorities(given: &[(&'static str, &'static str)]) -> Vec<f64> {
        let policy = SPEC.made(given);
        let priority = |class| {
            let any = waiting(1);
            let request = RequestView { class, ..any.request };
            policy.priority(&WaitingView { request, ..any }, Time::ZERO)
        };
        Class::ALL.into_iter().map(priority).collect()
    }

    #[test]
    fn every_class_has_the_priority_it_was_given() {
        assert_eq!(priorities(&[]), [10.0, 5.0, 1.0, 1.0, 0.0]);
        assert_eq!(priorities(&[("batch", "7.5")]), [10.0, 5.0, 1.0, 7.5, 0.0]);
    }

    #[test]
    fn priorities_do_not_change_while_a_request_waits() {
        assert!(!SPEC.made(&[]).varies());
    }
}
