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

use crate::contract::Priority;
use crate::spec::Spec;
use crate::view::{Needs, WaitingView};
use blis_core::{Param, ParamKind, SloClass as Class, Time, Values};

/// How `slo-class` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "slo-class",
    alias: None,
    help: "Gives each service class a fixed priority",
    params: &[
        class(Class::Critical, 10.0, "Priority of critical requests"),
        class(Class::Standard, 5.0, "Priority of standard requests"),
        class(Class::Sheddable, 1.0, "Priority of sheddable requests"),
        class(Class::Batch, 1.0, "Priority of batch requests"),
        class(Class::Background, 0.0, "Priority of background requests"),
    ],
    needs: |_| Needs::NONE,
    build: |values, _| Box::new(SloClass::new(values)),
};

const fn class(class: Class, default: f64, help: &'static str) -> Param {
    let kind = ParamKind::Float { min: 0.0, max: 100.0, default };
    Param { name: class.name(), kind, unit: "", help, when: None }
}

/// A priority for each service class.
#[derive(Clone, Copy, Debug)]
pub struct SloClass {
    priorities: [f64; Class::ALL.len()],
}

impl SloClass {
    fn new(values: &Values) -> SloClass {
        SloClass { priorities: Class::ALL.map(|class| values.float(class.name())) }
    }
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
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        let policy = SloClass::new(&values);
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
        assert!(!SloClass::new(&Values::defaults(SPEC.params)).varies());
    }
}
