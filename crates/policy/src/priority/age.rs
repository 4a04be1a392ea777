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

use crate::classes::numbers;
use crate::prelude::*;

/// How `age` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "age",
    help: "Priority grows with age, at a rate per class",
    params: &[
        slope(SloClass::Critical, 10.0, "Growth rate of the priority of critical requests"),
        slope(SloClass::Standard, 5.0, "Growth rate of the priority of standard requests"),
        slope(SloClass::Sheddable, 1.0, "Growth rate of the priority of sheddable requests"),
        slope(SloClass::Batch, 1.0, "Growth rate of the priority of batch requests"),
        slope(SloClass::Background, 0.5, "Growth rate of the priority of background requests"),
    ],
    ..Spec::built_by(|values, _| Box::new(Age { slopes: numbers(values) }))
};

const fn slope(class: SloClass, default: f64, help: &'static str) -> Param {
    Param::float(class.name(), 0.0..=1_000.0, default, "per s").help(help)
}

/// Priorities that accumulate.
#[derive(Clone, Copy, Debug)]
pub struct Age {
    slopes: PerClass<f64>,
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

    type Given = [(&'static str, &'static str)];

    fn priority(given: &Given, class: SloClass, arrival: u64, now: u64) -> f64 {
        let any = waiting(1);
        let request = RequestView { class, arrival: Time::from_micros(arrival), ..any.request };
        SPEC.made(given).priority(&WaitingView { request, ..any }, Time::from_micros(now))
    }

    #[test]
    fn priority_is_the_age_times_the_slope_of_the_class() {
        let standard = priority(&[], SloClass::Standard, 1_000_000, 3_000_000);
        assert_eq!(standard.to_bits(), 10.0_f64.to_bits());
        let batch = [("batch", "7")];
        let batch = priority(&batch, SloClass::Batch, 1_000_000, 3_000_000);
        assert_eq!(batch.to_bits(), 14.0_f64.to_bits());
    }

    #[test]
    fn an_old_request_of_a_slow_class_overtakes_a_younger_one_of_a_fast_class() {
        let now = 100_000_000;
        let batch = priority(&[], SloClass::Batch, 0, now);
        assert!(batch > priority(&[], SloClass::Critical, 91_000_000, now));
        assert!(batch < priority(&[], SloClass::Critical, 89_000_000, now));
    }

    #[test]
    fn priorities_vary_unless_all_slopes_are_0() {
        let none = SloClass::ALL.map(|class| (class.name(), "0"));
        let varies = |given: &Given| SPEC.made(given).varies();
        assert!(varies(&[]) && varies(&none[1..]) && !varies(&none));
    }
}
