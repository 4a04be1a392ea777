//! Parameters per service class, each named like its class.

use crate::view::PerClass;
use blis_core::{Dice, Param, SloClass, Values};

/// Whether requests of a class may be rejected at all.
pub(crate) const fn flag(class: SloClass, default: bool, help: &'static str) -> Param {
    Param::flag(class.name(), default).help(help)
}

/// The share of a class's requests that is turned away.
pub(crate) const fn share(class: SloClass, default: f64, help: &'static str) -> Param {
    Param::float(class.name(), 0.0..=1.0, default, "").help(help)
}

/// How much a class counts.
pub(crate) const fn weight(class: SloClass, default: f64, help: &'static str) -> Param {
    Param::float(class.name(), 0.0..=100.0, default, "").help(help)
}

/// The numbers of all classes.
pub(crate) fn numbers(values: &Values) -> PerClass<f64> {
    SloClass::ALL.map(|class| values.float(class.name()))
}

/// The flags of all classes.
pub(crate) fn flags(values: &Values) -> PerClass<bool> {
    SloClass::ALL.map(|class| values.flag(class.name()))
}

/// The shares of all classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares(PerClass<f64>);

impl Shares {
    pub(crate) fn new(values: &Values) -> Shares {
        Shares(numbers(values))
    }

    /// Whether this request of `class` is one of those. Draws only where chance decides.
    pub(crate) fn hit(&self, class: SloClass, dice: &mut Dice) -> bool {
        let share = self.0[class.index()];
        share >= 1.0 || (share > 0.0 && dice.unit() < share)
    }
}

/// The parameters of tests: `values` of a `SPEC` with those given.
#[cfg(test)]
pub(crate) fn values(params: &'static [Param], given: &[(&'static str, &'static str)]) -> Values {
    Values::parse(params, given.iter().copied()).expect("legal")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::dice;

    #[test]
    fn shares_hit_never_always_or_about_as_often_as_they_say() {
        let shares = Shares([0.0, 1.0, 0.25, 0.5, 0.75]);
        let hits = |class| (0..4_000).filter(|&key| shares.hit(class, &mut dice(key))).count();
        assert_eq!([hits(SloClass::Critical), hits(SloClass::Standard)], [0, 4_000]);
        let some = hits(SloClass::Sheddable);
        assert!((900..1_100).contains(&some), "{some} of 4000");
    }
}
