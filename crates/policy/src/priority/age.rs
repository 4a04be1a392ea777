//! `age`: priority that accumulates while a request waits, faster for important classes.
//!
//! **Prefers** requests that have waited long, in proportion: a class with twice the slope waits
//! about half as long. Nobody starves: every slope above 0 overtakes any fresh request in time.
//!
//! **Reads** the request's age since its arrival, and its service class. Priorities change while
//! requests wait, so queues are ranked again at every step, unless all slopes are 0.
//!
//! **Parameters** one per class, named like it (per s): how fast its priority grows.
//!
//! **Origin** L. Kleinrock, "A delay dependent queue discipline", Naval Research Logistics
//! Quarterly 11(3-4), 1964. With equal slopes it is the order of arrival.

use crate::contract::Priority;
use crate::spec::Spec;
use crate::view::{Needs, PerClass, WaitingView};
use blis_core::{Param, ParamKind, SloClass, Time, Values};

/// How `age` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "age",
    alias: None,
    help: "Lets priority grow with age, at a slope for each service class",
    params: &[
        slope(SloClass::Critical, 10.0, "How fast the priority of critical requests grows"),
        slope(SloClass::Standard, 5.0, "How fast the priority of standard requests grows"),
        slope(SloClass::Sheddable, 1.0, "How fast the priority of sheddable requests grows"),
        slope(SloClass::Batch, 1.0, "How fast the priority of batch requests grows"),
        slope(SloClass::Background, 0.5, "How fast the priority of background requests grows"),
    ],
    needs: |_| Needs::NONE,
    build: |values, _| Box::new(Age::new(values)),
};

const fn slope(class: SloClass, default: f64, help: &'static str) -> Param {
    let kind = ParamKind::Float { min: 0.0, max: 1_000.0, default };
    Param { name: class.name(), kind, unit: "per s", help, when: None }
}

/// Priorities that accumulate.
#[derive(Clone, Copy, Debug)]
pub struct Age {
    slopes: PerClass<f64>,
}

impl Age {
    fn new(values: &Values) -> Age {
        Age { slopes: SloClass::ALL.map(|class| values.float(class.name())) }
    }
}

impl Priority for Age {
    fn priority(&self, waiting: &WaitingView<'_>, now: Time) -> f64 {
        let age = now.saturating_since(waiting.request.arrival).as_secs_f64();
        self.slopes[waiting.request.class.index()] * age
    }

    fn varies(&self) -> bool {
        self.slopes.iter().any(|slope| *slope > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use blis_core::RequestView;

    fn policy(given: &[(&'static str, &'static str)]) -> Age {
        Age::new(&Values::parse(SPEC.params, given.iter().copied()).expect("legal"))
    }

    fn priority(policy: Age, class: SloClass, arrival: u64, now: u64) -> f64 {
        let any = waiting(1);
        let request = RequestView { class, arrival: Time::from_micros(arrival), ..any.request };
        policy.priority(&WaitingView { request, ..any }, Time::from_micros(now))
    }

    #[test]
    fn priority_is_the_age_times_the_slope_of_the_class() {
        let standard = priority(policy(&[]), SloClass::Standard, 1_000_000, 3_000_000);
        assert_eq!(standard.to_bits(), 10.0_f64.to_bits());
        let batch = [("batch", "7")];
        let batch = priority(policy(&batch), SloClass::Batch, 1_000_000, 3_000_000);
        assert_eq!(batch.to_bits(), 14.0_f64.to_bits());
    }

    #[test]
    fn an_old_request_of_a_slow_class_overtakes_a_younger_one_of_a_fast_class() {
        let now = 100_000_000;
        let batch = priority(policy(&[]), SloClass::Batch, 0, now);
        assert!(batch > priority(policy(&[]), SloClass::Critical, 91_000_000, now));
        assert!(batch < priority(policy(&[]), SloClass::Critical, 89_000_000, now));
    }

    #[test]
    fn priorities_vary_unless_all_slopes_are_0() {
        let none = SloClass::ALL.map(|class| (class.name(), "0"));
        assert!(policy(&[]).varies() && policy(&none[1..]).varies() && !policy(&none).varies());
    }
}
