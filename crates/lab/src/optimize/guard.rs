//! Guards: what no recommendation may do, unless the file of the search allows it.
//!
//! No class and no tenant may have more of its requests refused than at the hand-set point, but for
//! one percentage point, and no class may wait longer for its first tokens, by 2 % or more, than a
//! less important one does, unless it already does so at the hand-set point. An engine is told of
//! one guard of each kind, the one that is broken most.

use super::number::{Number, Runs};
use super::{LEVEL, Search};
use crate::metric::Metric;
use crate::stats::estimate;
use crate::verdict::EQUIVALENT;
use blis_core::SloClass;
use blis_core::math::ln;
use blis_optimize::Measured;
use blis_scenario::row::Row;
use std::cmp::Ordering;
use std::ops::Range;

/// Which guards there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guards {
    /// How much more of the requests of a class or a tenant may be refused than at the hand-set
    /// point; absent: all of them.
    pub refused: Option<f64>,
    /// Whether classes keep their order.
    pub class_order: bool,
}

impl Default for Guards {
    fn default() -> Guards {
        Guards { refused: Some(0.01), class_order: true }
    }
}

/// What must hold at every point that is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// In words.
    pub text: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    /// No more of these requests is refused than at the hand-set point, but for so much.
    Refused(Number, f64),
    /// The first waits no longer than the second.
    Order(Number, Number),
}

/// Requests that are looked at by themselves: those of a class or of a tenant, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    class: Option<SloClass>,
    tenant: Option<String>,
    /// The workload, by its place in the list and its name; absent if there is no list.
    pub workload: Option<(usize, String)>,
}

impl Group {
    /// What is told of each group.
    pub const NUMBERS: [&str; 3] = ["ttft_p99", "e2e_mean", "refused_share"];

    /// What it is called, without its workload.
    pub fn name(&self) -> String {
        match (self.class, &self.tenant) {
            (Some(class), _) => class.name().to_owned(),
            (None, Some(tenant)) => format!("tenant {tenant}"),
            (None, None) => "all requests".to_owned(),
        }
    }

    /// Whether it is a tenant.
    pub fn is_tenant(&self) -> bool {
        self.tenant.is_some()
    }

    /// The metric called `name` of its requests.
    ///
    /// # Panics
    /// If there is no such metric, or none of a part of the requests.
    pub fn number(&self, name: &str) -> Number {
        let all = Metric::parse(name).expect("a metric of the table");
        let of = |class| all.of_class(class).expect("a metric of requests");
        let metric = self.class.map_or(all, of);
        Number { metric, tenant: self.tenant.clone(), workload: self.workload.clone() }
    }
}

impl Search {
    /// The requests of `runs` that are looked at by themselves, workload by workload: by class, or
    /// all if there is one class, and by tenant if there are several.
    pub fn groups(&self, runs: &Runs) -> Vec<Group> {
        let mut groups = Vec::new();
        for (index, (load, rows)) in self.loads.iter().zip(runs).enumerate() {
            let workload = load.name.clone().map(|name| (index, name));
            let group = |class, tenant| Group { class, tenant, workload: workload.clone() };
            let classes: Vec<SloClass> =
                SloClass::ALL.into_iter().filter(|&class| sends(rows, class)).collect();
            match classes[..] {
                [] | [_] => groups.push(group(None, None)),
                _ => groups.extend(classes.into_iter().map(|class| group(Some(class), None))),
            }
            let mut tenants: Vec<&String> = rows.iter().flat_map(|row| &row.tenants).collect();
            tenants.sort();
            tenants.dedup();
            if tenants.len() > 1 {
                let tenants = tenants.into_iter().cloned();
                groups.extend(tenants.map(|tenant| group(None, Some(tenant))));
            }
        }
        groups
    }

    /// What must hold at every point that is recommended, where the hand-set point has `runs`.
    pub(crate) fn guards_on(&self, runs: &Runs) -> Vec<Guard> {
        let groups = self.groups(runs);
        let refused = |allowed: f64| {
            let guard = move |group: &Group| {
                let number = group.number("refused_share");
                let name = number.name();
                let text = format!("{name} <= baseline + {:.1} points", 100.0 * allowed);
                Guard { text, rule: Rule::Refused(number, allowed) }
            };
            groups.iter().map(guard).collect::<Vec<_>>()
        };
        let mut guards = self.guards.refused.map(refused).unwrap_or_default();
        for group in groups.iter().filter(|_| self.guards.class_order) {
            let below = groups.iter().filter(|other| self.ranks_above(group, other));
            guards.extend(below.map(|other| {
                let [first, second] = [group, other].map(|group| group.number("ttft_p99"));
                let text = format!("{} <= {}", first.name(), second.name());
                Guard { text, rule: Rule::Order(first, second) }
            }));
        }
        guards
    }

    /// Whether `group` is a more important class than `other` in the same workload: it has the
    /// shorter target of the time to first token, or, without targets that differ, comes first in
    /// the list of classes.
    fn ranks_above(&self, group: &Group, other: &Group) -> bool {
        let (Some(class), Some(than)) = (group.class, other.class) else { return false };
        if group.workload != other.workload {
            return false;
        }
        let load = group.workload.as_ref().map_or(0, |(index, _)| *index);
        let target = |class: SloClass| self.loads[load].slo.of(class).ttft_ms;
        let by_target = match (target(class), target(than)) {
            (Some(own), Some(other)) => own.total_cmp(&other),
            _ => Ordering::Equal,
        };
        by_target.then(class.index().cmp(&than.index())) == Ordering::Less
    }
}

/// How many of `guards` are orders.
pub(crate) fn orders(guards: &[Guard]) -> usize {
    guards.iter().filter(|guard| matches!(guard.rule, Rule::Order(..))).count()
}

/// The places of the guards of each kind, which stand together.
pub(super) fn kinds(guards: &[Guard]) -> impl Iterator<Item = Range<usize>> {
    let first = guards.len() - orders(guards);
    [0..first, first..guards.len()].into_iter().filter(|kind| !kind.is_empty())
}

fn sends(rows: &[Row], class: SloClass) -> bool {
    rows.iter().any(|row| row.report.classes.iter().any(|(sent, _)| *sent == class))
}

impl Guard {
    /// What it looks at in each run: the refused share, or the logarithm of the ratio of waits.
    pub(crate) fn values(&self, runs: &Runs) -> Vec<Option<f64>> {
        match &self.rule {
            Rule::Refused(number, _) => number.values(runs),
            Rule::Order(first, second) => {
                let both = first.values(runs).into_iter().zip(second.values(runs));
                let ratio = |(first, second): (Option<f64>, Option<f64>)| Some(first? / second?);
                let ln = |ratio: f64| Some(ln(ratio)).filter(|ln| ln.is_finite());
                both.map(|both| ratio(both).and_then(ln)).collect()
            }
        }
    }

    /// By how much a point with these runs breaks it, where the hand-set point has `hand`.
    pub fn excess_of(&self, runs: &Runs, hand: &Runs) -> Measured {
        self.excess(&self.values(runs), &self.values(hand))
    }

    /// By how much it is broken where what is bred is judged, which is much at a time: an order
    /// only if that is sure at a level that all of `orders` share.
    pub(crate) fn sure_excess(
        &self,
        values: &[Option<f64>],
        hand: &[Option<f64>],
        orders: usize,
    ) -> f64 {
        if let Rule::Refused(..) = self.rule {
            return self.excess(values, hand).mean;
        }
        let low = |values: &[Option<f64>], level: f64| {
            let values: Vec<f64> = values.iter().flatten().copied().collect();
            estimate(&values, level).map_or(0.0, |found| found.low)
        };
        let level = LEVEL / blis_core::math::float(orders.max(1) as u64);
        if low(hand, LEVEL) > 0.0 { 0.0 } else { low(values, level) }
    }

    /// By how much a point with these values breaks it, where the hand-set point has `hand` with
    /// the same seeds: at most 0 if it holds. An order that the hand-set point surely keeps is
    /// broken if it is not kept on average, and one that it may keep, if that is sure.
    pub(super) fn excess(&self, values: &[Option<f64>], hand: &[Option<f64>]) -> Measured {
        let own: Vec<f64> = values.iter().flatten().copied().collect();
        let by_hand: Vec<f64> = hand.iter().flatten().copied().collect();
        let of = |values: &[f64]| match values {
            [] => Measured::exact(0.0),
            _ => Measured::of(values),
        };
        if let Rule::Refused(_, allowed) = self.rule {
            let both = values.iter().zip(hand);
            let more = both.filter_map(|(own, hand)| Some((*own)? - (*hand)? - allowed));
            return of(&more.collect::<Vec<f64>>());
        }
        // A router without classes gives equal waits, of which a few seeds invert some by chance.
        let inverted = |ln_ratio: f64| ln_ratio - ln(1.0 + EQUIVALENT);
        match estimate(&by_hand, LEVEL) {
            Some(hand) if hand.high <= 0.0 => {
                of(&own.into_iter().map(inverted).collect::<Vec<_>>())
            }
            Some(hand) if hand.low > 0.0 => Measured::exact(0.0),
            _ => Measured::noisy(estimate(&own, LEVEL).map_or(0.0, |own| inverted(own.low))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(rule: Rule, values: &[f64], hand: &[f64]) -> f64 {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let guard = Guard { text: String::new(), rule };
        guard.excess(&some(values), &some(hand)).mean
    }

    fn number(name: &str) -> Number {
        Number::of_all(Metric::parse(name).expect("known"))
    }

    #[test]
    fn a_point_more_may_be_refused_than_by_hand_on_the_same_seeds() {
        let refused = |own: &[f64]| {
            excess(Rule::Refused(number("refused_share"), 0.01), own, &[0.1, 0.2, 0.3])
        };
        assert!(refused(&[0.1, 0.2, 0.32]) <= 0.0, "0.7 points more");
        assert!(refused(&[0.12, 0.22, 0.32]) > 0.0, "two points more");
        assert!(refused(&[0.2, 0.2]) > 0.0, "with the first two seeds");
    }

    #[test]
    fn an_order_is_kept_as_surely_as_it_is_by_hand() {
        let order = |own: &[f64], hand: &[f64]| {
            let numbers = ["critical.ttft_p99", "standard.ttft_p99"].map(number);
            let [first, second] = numbers;
            excess(Rule::Order(first, second), own, hand)
        };
        let (ordered, inverted, neither) = ([-0.9, -1.0, -1.1], [0.9, 1.0, 1.1], [-0.2, 0.1, 0.2]);
        assert!(order(&[-0.1, 0.1, 0.1], &ordered) > 0.0, "kept by hand, lost on average");
        assert!(order(&[-0.2, 0.1, 0.1], &ordered) <= 0.0);
        assert!(order(&[0.01, 0.02, 0.02], &ordered) <= 0.0, "too little to matter");
        assert!(order(&neither, &neither) <= 0.0, "nobody keeps it");
        assert!(order(&inverted, &neither) > 0.0, "surely inverted");
        assert!(order(&inverted, &inverted) <= 0.0, "by hand too");
    }
}
