//! `slo-aware`: the cached blocks of unimportant classes.
//!
//! **Prefers** to drop runs that no request of an important class has used, however recent they
//! are; within a class, the run that was released first. A run that an important request has used
//! once keeps that importance until it is dropped: its prefix does too, and must not go before it.
//!
//! **Reads** the service class of the request that has used a run (live; the engine asks itself).
//!
//! **Parameters** one per class, named like it: what its blocks are worth. Classes of equal worth
//! are treated alike; a class of worth 0 is not protected at all.
//!
//! **Origin** ours: the strict form of what priority-aware caches do. Nothing ages, so classes that
//! leave no room for others starve them of cache.

use crate::classes::{numbers, weight};
use crate::prelude::*;

/// How `slo-aware` introduces itself.
pub const SPEC: Spec<dyn Evict> = Spec {
    name: "slo-aware",
    help: "Evicts blocks of low-priority classes first",
    params: &[
        weight(SloClass::Critical, 10.0, "Weight of blocks used by critical requests"),
        weight(SloClass::Standard, 5.0, "Weight of blocks used by standard requests"),
        weight(SloClass::Sheddable, 1.0, "Weight of blocks used by sheddable requests"),
        weight(SloClass::Batch, 1.0, "Weight of blocks used by batch requests"),
        weight(SloClass::Background, 0.0, "Weight of blocks used by background requests"),
    ],
    ..Spec::built_by(|values, _| Box::new(SloAware { worths: numbers(values) }))
};

/// A worth for each service class; a run has the highest of those that have used it.
#[derive(Clone, Copy, Debug)]
pub struct SloAware {
    worths: PerClass<f64>,
}

impl Evict for SloAware {
    fn worth(&self, ended: &UseView) -> f64 {
        self.worths[ended.class.index()].max(ended.worth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::used;

    fn worth(given: &[(&'static str, &'static str)], class: SloClass, before: f64) -> f64 {
        SPEC.made(given).worth(&UseView { class, worth: before, ..used() })
    }

    #[test]
    fn blocks_are_worth_what_their_class_is() {
        let worths = |given| SloClass::ALL.map(|class| worth(given, class, 0.0)).to_vec();
        assert_eq!(worths(&[]), [10.0, 5.0, 1.0, 1.0, 0.0]);
        assert_eq!(worths(&[("batch", "7.5")]), [10.0, 5.0, 1.0, 7.5, 0.0]);
    }

    #[test]
    fn a_run_keeps_the_worth_of_the_most_important_class_that_has_used_it() {
        assert_eq!(worth(&[], SloClass::Background, 10.0).to_bits(), 10.0_f64.to_bits());
        assert_eq!(worth(&[], SloClass::Critical, 1.0).to_bits(), 10.0_f64.to_bits());
    }
}
