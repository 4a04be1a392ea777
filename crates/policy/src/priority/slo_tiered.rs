//! `slo-tiered`: a base for each service class, and urgency that grows after a grace period.
//!
//! **Prefers** important classes, but nobody forever: once a request is older than its class's
//! grace, its priority grows steadily. A request overtakes fresh ones of a class with a higher base
//! after its grace plus the difference of the bases over the age weight, so that nobody starves.
//!
//! **Reads** the request's age since its arrival, and its service class. Priorities change while
//! requests wait, so queues are ranked again at every step, unless the age weight is 0. All classes
//! age alike, so of two requests that are both past their grace the order does not change any more.
//!
//! **Parameters** `base-critical`, `base-standard`, `base-sheddable`, `base-batch` and
//! `base-background`: the priority before the grace is over. `age-weight` (per s): how much a
//! second is worth after it. `grace-critical`, `grace-standard`, `grace-sheddable`, `grace-batch`
//! and `grace-background` (ms): for how long a request does not age.
//!
//! **Origin** aging as in operating systems' schedulers, with tiers and graces of our choice.

use crate::prelude::*;

/// How `slo-tiered` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "slo-tiered",
    help: "Gives each class a base priority that grows with age after a grace period",
    params: &[
        base("base-critical", 10.0, "Base priority of critical requests"),
        base("base-standard", 5.0, "Base priority of standard requests"),
        base("base-sheddable", 1.0, "Base priority of sheddable requests"),
        base("base-batch", 1.0, "Base priority of batch requests"),
        base("base-background", 0.0, "Base priority of background requests"),
        Param::float("age-weight", 0.0..=1_000.0, 1.0, "per s")
            .help("Priority gained per second of waiting after the grace period"),
        grace("grace-critical", 0.0, "Grace period of critical requests"),
        grace("grace-standard", 100.0, "Grace period of standard requests"),
        grace("grace-sheddable", 200.0, "Grace period of sheddable requests"),
        grace("grace-batch", 500.0, "Grace period of batch requests"),
        grace("grace-background", 1_000.0, "Grace period of background requests"),
    ],
    ..Spec::built_by(|values, _| Box::new(SloTiered::new(values)))
};

const fn base(name: &'static str, default: f64, help: &'static str) -> Param {
    Param::float(name, 0.0..=100.0, default, "").help(help)
}

const fn grace(name: &'static str, default: f64, help: &'static str) -> Param {
    Param::float(name, 0.0..=1e6, default, "ms").help(help)
}

/// Tiers that age.
#[derive(Clone, Copy, Debug)]
pub struct SloTiered {
    bases: PerClass<f64>,
    age_weight: f64,
    graces: PerClass<Span>,
}

impl SloTiered {
    fn new(values: &Values) -> SloTiered {
        let of = |what: &str, class: SloClass| values.float(&format!("{what}-{}", class.name()));
        SloTiered {
            bases: SloClass::ALL.map(|class| of("base", class)),
            age_weight: values.float("age-weight"),
            graces: SloClass::ALL.map(|class| Span::from_secs_f64(of("grace", class) / 1e3)),
        }
    }
}

impl Priority for SloTiered {
    fn priority(&self, waiting: &WaitingView<'_>, now: Time) -> f64 {
        let class = waiting.request.class.index();
        let aging = now.saturating_since(waiting.request.arrival + self.graces[class]);
        self.bases[class] + self.age_weight * aging.as_secs_f64()
    }

    fn varies(&self) -> bool {
        self.age_weight > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use blis_core::RequestView;

    fn policy(given: &[(&'static str, &'static str)]) -> SloTiered {
        SloTiered::new(&Values::parse(SPEC.params, given.iter().copied()).expect("legal"))
    }

    /// The priority of a request at an age of so many ms.
    fn priority(policy: SloTiered, class: SloClass, age: u64) -> f64 {
        let any = waiting(1);
        let request = RequestView { class, ..any.request };
        policy.priority(&WaitingView { request, ..any }, Time::from_micros(age * 1_000))
    }

    #[test]
    fn a_class_keeps_its_base_until_its_grace_is_over_and_then_ages() {
        let given = [("age-weight", "10"), ("grace-sheddable", "200"), ("base-sheddable", "1")];
        let at = [0, 200, 300, 1_100].map(|age| priority(policy(&given), SloClass::Sheddable, age));
        assert_eq!(at.to_vec(), [1.0, 1.0, 2.0, 10.0]);
    }

    #[test]
    fn a_sheddable_request_overtakes_fresh_critical_ones_after_a_bounded_wait() {
        let fresh = priority(policy(&[]), SloClass::Critical, 0);
        assert!(priority(policy(&[]), SloClass::Sheddable, 9_199) < fresh);
        assert!(priority(policy(&[]), SloClass::Sheddable, 9_201) > fresh);
    }

    #[test]
    fn without_aging_priorities_are_fixed() {
        let fixed = policy(&[("age-weight", "0")]);
        assert!(!fixed.varies() && policy(&[]).varies());
        assert_eq!(priority(fixed, SloClass::Batch, 1 << 40).to_bits(), 1.0_f64.to_bits());
    }
}
