//! Splitting what components do together: pure arithmetic over the values of subsets.
//!
//! A subset is a bit mask. With few components every subset is run, and main effects and
//! interactions are averages over all of them. With many, only the subsets along some orders in
//! which components are added are, and Shapley shares are averages over these orders.

use crate::stats::{Estimate, estimate};
use blis_core::Dice;
use blis_core::math::float;
use blis_core::random::Purpose;
use std::collections::BTreeSet;

/// Up to so many components all subsets are run.
const MOST_IN_FULL: usize = 5;
/// So many random orders, and the reverse of each.
const ORDERS: u64 = 16;
/// Intervals leave out the truth with this probability, each by itself.
const LEVEL: f64 = 0.05;

/// Which subsets of some components are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subsets {
    components: usize,
    /// The orders in which components are added; empty if all subsets are run.
    orders: Vec<Vec<usize>>,
    masks: Vec<u32>,
}

/// What components do.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// The value without any of them.
    pub none: Estimate,
    /// The value with all of them.
    pub all: Estimate,
    /// All less none.
    pub total: Estimate,
    /// The sum of what each does alone.
    pub alone: Estimate,
    /// What they do together beyond that: total less alone.
    pub beyond: Estimate,
    /// By component.
    pub parts: Vec<Part>,
    /// By pair of components; only if all subsets were run.
    pub pairs: Vec<Pair>,
}

/// What one component does.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which.
    pub component: usize,
    /// Added to nothing.
    pub alone: Estimate,
    /// Taken from all: all less all but it.
    pub last: Estimate,
    /// Added to a subset of the others, averaged over all subsets; only if all were run.
    pub main: Option<Estimate>,
    /// Its Shapley share: averaged over all orders in which they can be added. The shares of all
    /// components add up to the total.
    pub shapley: Estimate,
}

/// What two components do together beyond what they do apart, averaged over all subsets of the
/// others.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The first.
    pub first: usize,
    /// The second.
    pub second: usize,
    /// How much.
    pub interaction: Estimate,
}

impl Subsets {
    /// Those of so many components.
    ///
    /// # Panics
    /// If there are more than 31.
    pub fn of(components: usize) -> Subsets {
        assert!(components < 32, "{components} components");
        if components <= MOST_IN_FULL {
            let masks = (0..1_u32 << components).collect();
            return Subsets { components, orders: Vec::new(), masks };
        }
        let mut orders = Vec::new();
        for key in 0..ORDERS {
            let mut order: Vec<usize> = (0..components).collect();
            let mut dice = Dice::new(0, Purpose::Permutation, key);
            for last in (1..components).rev() {
                order.swap(last, dice.below(last + 1));
            }
            let reverse = order.iter().rev().copied().collect();
            orders.extend([order, reverse]);
        }
        let all = (1_u32 << components) - 1;
        let mut masks: BTreeSet<u32> = orders.iter().flat_map(|order| along(order)).collect();
        masks.extend((0..components).flat_map(|i| [1 << i, all ^ 1 << i]));
        Subsets { components, orders, masks: masks.into_iter().collect() }
    }

    /// The subsets, ascending: none of the components first, all of them last.
    pub fn masks(&self) -> &[u32] {
        &self.masks
    }

    /// What the components do, where `values` has, for each subset, the value of each seed; `None`
    /// for fewer than two seeds.
    ///
    /// # Panics
    /// If there are not as many values as subsets.
    pub fn shares(&self, values: &[Vec<f64>]) -> Option<Shares> {
        let seeds = values.iter().map(Vec::len).min().filter(|&seeds| seeds > 1)?;
        let at = |mask: u32, seed: usize| {
            let index = self.masks.binary_search(&mask).expect("the subset was run");
            values[index][seed]
        };
        // Something of each seed, over seeds.
        let over = |of: &dyn Fn(usize) -> f64| {
            estimate(&(0..seeds).map(of).collect::<Vec<f64>>(), LEVEL).expect("several seeds")
        };
        let all = (1_u32 << self.components) - 1;
        let bits = || (0..self.components).map(|component| 1_u32 << component);
        let alone = |seed: usize| bits().map(|bit| at(bit, seed) - at(0, seed)).sum::<f64>();
        let total = |seed: usize| at(all, seed) - at(0, seed);
        let part = |component: usize| {
            let bit = 1_u32 << component;
            Part {
                component,
                alone: over(&|seed| at(bit, seed) - at(0, seed)),
                last: over(&|seed| at(all, seed) - at(all ^ bit, seed)),
                main: self.orders.is_empty().then(|| over(&|seed| self.main(bit, |m| at(m, seed)))),
                shapley: self.shapley(component, seeds, &at),
            }
        };
        Some(Shares {
            none: over(&|seed| at(0, seed)),
            all: over(&|seed| at(all, seed)),
            total: over(&total),
            alone: over(&alone),
            beyond: over(&|seed| total(seed) - alone(seed)),
            parts: (0..self.components).map(part).collect(),
            pairs: self
                .pairs()
                .map(|(first, second)| {
                    let interaction =
                        over(&|seed| self.interaction(first, second, |m| at(m, seed)));
                    Pair { first, second, interaction }
                })
                .collect(),
        })
    }

    /// Subsets without any of `bits`.
    fn without(&self, bits: u32) -> impl Iterator<Item = u32> + '_ {
        self.masks.iter().copied().filter(move |mask| mask & bits == 0)
    }

    fn main(&self, bit: u32, at: impl Fn(u32) -> f64) -> f64 {
        let gains: Vec<f64> = self.without(bit).map(|mask| at(mask | bit) - at(mask)).collect();
        gains.iter().sum::<f64>() / float(gains.len() as u64)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let components = if self.orders.is_empty() { self.components } else { 0 };
        (0..components)
            .flat_map(move |first| (first + 1..components).map(move |second| (first, second)))
    }

    fn interaction(&self, first: usize, second: usize, at: impl Fn(u32) -> f64) -> f64 {
        let (a, b) = (1_u32 << first, 1_u32 << second);
        let beyond = |mask| at(mask | a | b) - at(mask | a) - at(mask | b) + at(mask);
        let found: Vec<f64> = self.without(a | b).map(beyond).collect();
        found.iter().sum::<f64>() / float(found.len() as u64)
    }

    fn shapley(&self, component: usize, seeds: usize, at: &dyn Fn(u32, usize) -> f64) -> Estimate {
        let bit = 1_u32 << component;
        if self.orders.is_empty() {
            let of = |seed: usize| {
                let gain = |mask: u32| self.weight(mask) * (at(mask | bit, seed) - at(mask, seed));
                self.without(bit).map(gain).sum::<f64>()
            };
            let values: Vec<f64> = (0..seeds).map(of).collect();
            return estimate(&values, LEVEL).expect("several seeds");
        }
        let gain = |order: &Vec<usize>, seed: usize| {
            let before = order.iter().take_while(|&&other| other != component);
            let mask = before.fold(0, |mask, other| mask | 1_u32 << other);
            at(mask | bit, seed) - at(mask, seed)
        };
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / float(values.len() as u64);
        let by_seed: Vec<f64> = (0..seeds)
            .map(|seed| mean(self.orders.iter().map(|order| gain(order, seed)).collect()))
            .collect();
        // An order and its reverse belong together, and pairs of them are independent.
        let by_order: Vec<f64> = self
            .orders
            .chunks(2)
            .map(|pair| {
                let gains = pair.iter().flat_map(|order| (0..seeds).map(move |s| gain(order, s)));
                mean(gains.collect())
            })
            .collect();
        let seeds = estimate(&by_seed, LEVEL).expect("several seeds");
        let orders = estimate(&by_order, LEVEL).expect("several orders");
        // Two sources of doubt that have nothing to do with each other.
        let joined = |a: f64, b: f64| (a * a + b * b).sqrt();
        Estimate {
            low: seeds.mean - joined(seeds.mean - seeds.low, orders.mean - orders.low),
            high: seeds.mean + joined(seeds.high - seeds.mean, orders.high - orders.mean),
            ..seeds
        }
    }

    /// The share of all orders in which exactly `mask` comes before a given other component.
    fn weight(&self, mask: u32) -> f64 {
        let size = mask.count_ones();
        let all = u32::try_from(self.components).expect("few components");
        let product = |range: std::ops::RangeInclusive<u32>| range.map(f64::from).product::<f64>();
        product(1..=size) * product(1..=all - size - 1) / product(1..=all)
    }
}

/// The subsets that adding components in this order goes through.
fn along(order: &[usize]) -> impl Iterator<Item = u32> {
    let added = order.iter().scan(0, |mask, component| {
        *mask |= 1_u32 << component;
        Some(*mask)
    });
    std::iter::once(0).chain(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all subsets in `seeds` seeds: `value` and noise, a common one and one of their
    /// own.
    fn made(subsets: &Subsets, seeds: u64, own: f64, value: impl Fn(u32) -> f64) -> Vec<Vec<f64>> {
        let noise = |key: u64| Dice::new(4, Purpose::Sampling, key).normal();
        let one = |&mask: &u32| {
            let of = |seed: u64| {
                value(mask) + 5.0 * noise(seed) + own * noise((u64::from(mask) + 1) << 20 | seed)
            };
            (0..seeds).map(of).collect()
        };
        subsets.masks().iter().map(one).collect()
    }

    fn additive(mask: u32) -> f64 {
        let effects = [-10.0, -4.0, 0.0, 3.0, -1.0, -2.0, 0.5];
        let has = |i: &usize| mask >> i & 1 == 1;
        100.0 + (0..7).filter(has).map(|i| effects[i]).sum::<f64>()
    }

    fn holds(estimate: &Estimate, value: f64) -> bool {
        estimate.low - 1e-9 <= value && value <= estimate.high + 1e-9
    }

    #[test]
    fn an_additive_system_has_no_interactions() {
        let subsets = Subsets::of(4);
        assert_eq!(subsets.masks().len(), 16);
        let exact = subsets.shares(&made(&subsets, 8, 0.0, additive)).expect("eight seeds");
        for pair in &exact.pairs {
            assert!(pair.interaction.mean.abs() < 1e-9, "{pair:?}");
        }
        assert!(exact.beyond.mean.abs() < 1e-9, "{:?}", exact.beyond);
        for (part, effect) in exact.parts.iter().zip([-10.0, -4.0, 0.0, 3.0]) {
            for estimate in [part.alone, part.last, part.shapley, part.main.expect("full")] {
                assert!((estimate.mean - effect).abs() < 1e-9, "{part:?}");
            }
        }
        let noisy = subsets.shares(&made(&subsets, 12, 0.5, additive)).expect("twelve seeds");
        assert!(holds(&noisy.beyond, 0.0), "{:?}", noisy.beyond);
        assert!(noisy.pairs.iter().filter(|pair| holds(&pair.interaction, 0.0)).count() >= 5);
    }

    #[test]
    fn a_compound_that_is_more_than_its_parts_is_found() {
        let subsets = Subsets::of(3);
        // The first two together take off 20 more.
        let value = |mask: u32| additive(mask) - if mask & 0b11 == 0b11 { 20.0 } else { 0.0 };
        let found = subsets.shares(&made(&subsets, 10, 1.0, value)).expect("ten seeds");
        assert!(found.beyond.high < -15.0 && holds(&found.beyond, -20.0), "{:?}", found.beyond);
        let strongest =
            found.pairs.iter().min_by(|a, b| a.interaction.mean.total_cmp(&b.interaction.mean));
        let pair = strongest.expect("three pairs");
        assert_eq!((pair.first, pair.second), (0, 1));
        assert!(holds(&pair.interaction, -20.0), "{pair:?}");
        // Each gets half of what they do together.
        assert!(holds(&found.parts[0].shapley, -20.0), "{:?}", found.parts[0]);
        assert!(holds(&found.parts[1].shapley, -14.0), "{:?}", found.parts[1]);
    }

    #[test]
    fn shapley_shares_add_up_to_the_total() {
        let tangled = |mask: u32| {
            let own = f64::from(mask.wrapping_mul(2_654_435_761) >> 22);
            own + 3.0 * f64::from(mask.count_ones())
        };
        for components in [1, 2, 5, 7] {
            let subsets = Subsets::of(components);
            let found = subsets.shares(&made(&subsets, 6, 2.0, tangled)).expect("six seeds");
            let sum: f64 = found.parts.iter().map(|part| part.shapley.mean).sum();
            assert!((sum - found.total.mean).abs() < 1e-9, "{components}: {sum}");
        }
    }

    #[test]
    fn many_components_are_sampled_and_their_shares_are_right() {
        let subsets = Subsets::of(7);
        let run = subsets.masks().len();
        assert!(run < 128, "{run} subsets");
        let found = subsets.shares(&made(&subsets, 8, 0.2, additive)).expect("eight seeds");
        assert!(found.pairs.is_empty() && found.parts.iter().all(|part| part.main.is_none()));
        let effects = [-10.0, -4.0, 0.0, 3.0, -1.0, -2.0, 0.5];
        let right = found.parts.iter().zip(effects).filter(|(part, e)| holds(&part.shapley, *e));
        assert!(right.count() >= 6, "{:?}", found.parts);
        assert!(found.parts.iter().all(|part| part.shapley.high - part.shapley.low < 2.0));
    }

    #[test]
    fn one_seed_is_not_enough() {
        let subsets = Subsets::of(2);
        assert_eq!(subsets.shares(&made(&subsets, 1, 0.0, additive)), None);
    }
}
