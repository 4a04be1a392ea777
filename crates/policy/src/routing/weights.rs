//! Weighted lists of scorers: `pa:3,qd:2,kv:2`, and with two profiles `pa:3/2,qd:2,kv:2/5`.
//!
//! In a list of two profiles every scorer has two weights, one for each; a single one is both. So
//! both profiles share the scorers, what these remember, and the cost of asking them.
//!
//! Called when a router that reads scorers is built. Only the ratios of weights matter, and the
//! order of scorers does not: both are brought into one form, so that equal strategies add up equal
//! floats in equal order and decide equally to the last bit. It must never panic, whatever the
//! text.

use crate::chosen::guest::Guests;
use crate::chosen::{Chosen, Policy};
use crate::contract::Scorer;
use crate::routing::scorers::{formula, prefix_affinity};
use crate::spec::{Cluster, PolicyError, items, parse};
use crate::view::Needs;
use blis_core::math;
use std::fmt;

/// Decimal places up to which weights are taken as the decimal numbers they were written as.
const DECIMALS: u32 = 12;
/// Whole numbers up to here, and halves between them, are exact as floats.
const EXACT: f64 = math::float(1 << 50);

/// How many weights a scorer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profiles {
    /// One, as in `pa:3,qd:2,kv:2`.
    One,
    /// One or two, as in `pa:3/2,qd:2,kv:2/5`.
    Two,
}

impl Profiles {
    /// A list of that form, for messages.
    pub const fn example(self) -> &'static str {
        match self {
            Profiles::One => "pa:3,qd:2,kv:2",
            Profiles::Two => "pa:3/2,qd:2,kv:2/5",
        }
    }
}

/// Scorers that were chosen, by name, each with a weight for each of two profiles: the smallest
/// whole numbers of these ratios. No scorer has 0 in both.
#[derive(Clone, Debug)]
pub struct Scorers(Vec<(Chosen<dyn Scorer>, [f64; 2])>);

/// Scorers with their weights, in the order in which scores are added up.
pub struct WeightedScorers {
    /// Name, weight and scorer, by name; the greatest weight is 1.
    pub scorers: Vec<(&'static str, f64, Box<dyn Scorer>)>,
    /// Weights in the second profile, scorer by scorer; the greatest is 1. The same as the first if
    /// there is only one.
    pub second: Vec<f64>,
}

impl Scorers {
    /// The scorers that `text` spells; some may be `guests`. `lru_capacity` is the parameter of
    /// that name of `prefix-affinity`, when it is given apart from the list.
    ///
    /// # Errors
    /// If a scorer is unknown, repeated or refuses its parameters; if a weight is missing, negative
    /// or not finite, or all are 0; if `lru_capacity` is given and no scorer reads it.
    pub fn new(
        text: &str,
        profiles: Profiles,
        lru_capacity: Option<u64>,
        guests: &Guests,
    ) -> Result<Scorers, PolicyError> {
        let wrong = |problem| wrong(text, profiles, problem);
        let lru_capacity = lru_capacity.map(|blocks| blocks.to_string());
        let mut list: Vec<(Chosen<dyn Scorer>, [f64; 2])> = Vec::new();
        for item in items(text) {
            let (scorer, weights) = item
                .rsplit_once(':')
                .filter(|(_, weight)| !weight.contains(']'))
                .ok_or_else(|| wrong(format!("`{}` has no weight", item.trim())))?;
            let scorer = choose(scorer, lru_capacity.as_deref(), guests)?;
            let name = scorer.name();
            let weights = read_weights(weights, profiles).map_err(|found| {
                wrong(format!("the weight of `{name}` is `{found}`, not a number of 0 or more"))
            })?;
            // Formulas have a name in common and nothing else.
            let same = |other: &Chosen<dyn Scorer>| {
                let formulas = name == formula::SPEC.name;
                other.name() == name && !(formulas && other.to_string() != scorer.to_string())
            };
            if list.iter().any(|(other, _)| same(other)) {
                return Err(wrong(format!("`{name}` is given twice")));
            }
            list.push((scorer, weights));
        }
        // A scorer without weight cannot change a decision, so it is not asked at all.
        list.retain(|(_, weights)| weights.iter().any(|weight| *weight > 0.0));
        if (0..2).any(|profile| list.iter().all(|(_, weights)| weights[profile] <= 0.0)) {
            return Err(wrong("all weights are 0".to_owned()));
        }
        if lru_capacity.is_some()
            && list.iter().all(|(s, _)| s.name() != prefix_affinity::SPEC.name)
        {
            return Err(PolicyError::NobodyReads {
                setting: prefix_affinity::LRU_CAPACITY,
                readers: format!("the scorers `{text}`"),
                remedy: "add `prefix-affinity` to them",
            });
        }
        list.sort_by_cached_key(|(scorer, _)| (scorer.name(), scorer.to_string()));
        for profile in 0..2 {
            let reduced = reduce(&list.iter().map(|(_, w)| w[profile]).collect::<Vec<f64>>());
            for ((_, weights), reduced) in list.iter_mut().zip(reduced) {
                weights[profile] = reduced;
            }
        }
        Ok(Scorers(list))
    }

    /// The scorers with their weights in the first profile.
    pub fn iter(&self) -> impl Iterator<Item = (&Chosen<dyn Scorer>, f64)> {
        self.0.iter().map(|(scorer, [weight, _])| (scorer, *weight))
    }

    /// What any of them reads.
    pub fn needs(&self) -> Needs {
        self.0.iter().fold(Needs::NONE, |needs, (scorer, _)| needs.or(scorer.needs()))
    }

    /// Makes them.
    pub fn build(&self, cluster: &Cluster) -> WeightedScorers {
        let scaled = |profile: usize| scaled(self.0.iter().map(|(_, w)| w[profile]).collect());
        let of = |((scorer, _), weight): (&(Chosen<dyn Scorer>, _), f64)| {
            (scorer.name(), weight, scorer.build(cluster))
        };
        WeightedScorers {
            scorers: self.0.iter().zip(scaled(0)).map(of).collect(),
            second: scaled(1),
        }
    }
}

/// `scorer:weight,...`, or `scorer:weight/weight,...` if the profiles differ.
impl fmt::Display for Scorers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = self.0.iter().all(|(_, [one, other])| one.to_bits() == other.to_bits());
        for (at, (scorer, [one, other])) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{scorer}:{one}")?;
            if !same {
                write!(f, "/{other}")?;
            }
        }
        Ok(())
    }
}

/// `weights`, the greatest of which is 1.
fn scaled(mut weights: Vec<f64>) -> Vec<f64> {
    let greatest = weights.iter().copied().fold(0.0, f64::max);
    for weight in &mut weights {
        *weight /= greatest;
    }
    weights
}

fn wrong(text: &str, profiles: Profiles, problem: String) -> PolicyError {
    PolicyError::Weights { text: text.to_owned(), problem, example: profiles.example() }
}

/// The scorer that `text` spells: `scorer` or `scorer[parameter=value,...]`.
fn choose(
    text: &str,
    lru_capacity: Option<&str>,
    guests: &Guests,
) -> Result<Chosen<dyn Scorer>, PolicyError> {
    let mut parsed = parse(<dyn Scorer>::KIND, text)?;
    let is = |name: &str| {
        prefix_affinity::SPEC.name == name || prefix_affinity::SPEC.alias == Some(name)
    };
    if let Some(blocks) = lru_capacity.filter(|_| is(parsed.name)) {
        parsed.given.push((prefix_affinity::LRU_CAPACITY, blocks));
    }
    Chosen::of(&parsed, guests)
}

/// The weights that `text` spells; the error is what is not one.
fn read_weights(text: &str, profiles: Profiles) -> Result<[f64; 2], &str> {
    let read = |text: &str| -> Option<f64> {
        text.trim().parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0)
    };
    let text = text.trim();
    let (first, second) = match text.split_once('/') {
        Some(both) if profiles == Profiles::Two => both,
        _ => (text, text),
    };
    Ok([read(first).ok_or(text)?, read(second).ok_or(text)?])
}

/// The smallest whole numbers with the same ratios, or `weights` if there are none within reach.
///
/// 0.3 is not three times 0.1 in binary, but 3 is three times 1: weights are taken as the decimal
/// numbers that were written.
fn reduce(weights: &[f64]) -> Vec<f64> {
    let Some(whole) = (0..=DECIMALS).find_map(|decimals| shifted(weights, decimals)) else {
        return weights.to_vec();
    };
    let divisor = whole.iter().copied().fold(0, greatest_common_divisor);
    whole.iter().map(|n| math::float(n / divisor)).collect()
}

/// `weights` times 10^decimals, if these are whole numbers.
fn shifted(weights: &[f64], decimals: u32) -> Option<Vec<u64>> {
    let scale = math::float(10_u64.pow(decimals));
    let shift = |weight: &f64| {
        let whole = (weight * scale).round();
        // The quotient of two exact numbers is rounded as the reader rounds the decimal text.
        let same = whole <= EXACT && (whole / scale).to_bits() == weight.to_bits();
        same.then(|| math::count(whole))
    };
    weights.iter().map(shift).collect()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> Result<String, String> {
        Scorers::new(text, Profiles::One, None, &Guests::NONE)
            .map(|list| list.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn equal_ratios_have_one_spelling_in_any_order() {
        let expected = "kv-utilization:2,prefix-affinity:3,queue-depth:2";
        for text in [
            "pa:3,qd:2,kv:2",
            "kv:2,qd:2,pa:3",
            "prefix-affinity:6, queue-depth:4, kv-utilization:4",
            "pa:0.3,qd:0.2,kv:0.2",
            "pa:0.9,qd:0.6,kv:0.6",
            "pa:3e3,qd:2000,kv:2000.0,lb:0",
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn parameters_of_scorers_stay_with_them() {
        assert_eq!(
            canonical("prefix-affinity[lru-capacity=10000]:3,qd:1").as_deref(),
            Ok("prefix-affinity[lru-capacity=10000]:3,queue-depth:1")
        );
    }

    #[test]
    fn senseless_lists_are_refused_with_what_is_wrong() {
        for (text, complaint) in [
            ("", "`` has no weight"),
            ("pa", "`pa` has no weight"),
            ("pa[lru-capacity=1]", "has no weight"),
            ("pa:3,,qd:2", "`` has no weight"),
            ("pa:", "is ``, not a number"),
            ("pa:-1", "is `-1`, not a number of 0 or more"),
            ("pa:NaN", "not a number of 0 or more"),
            ("pa:inf", "not a number of 0 or more"),
            ("pa:0,qd:0", "all weights are 0"),
            ("pa:1,prefix-affinity:2", "`prefix-affinity` is given twice"),
            ("queue-dept:1", "did you mean `queue-depth`?"),
            ("pa[lru-capacity=0]:1", "`auto` or a whole number from 1"),
        ] {
            let error = canonical(text).expect_err(text);
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_of_two_profiles_has_two_weights_a_scorer_or_one_for_both() {
        let two =
            |text| Scorers::new(text, Profiles::Two, None, &Guests::NONE).expect("a legal list");
        let list = two("qd:4/2, pa:6/2, kv:0/5");
        assert_eq!(list.to_string(), "kv-utilization:0/5,prefix-affinity:3/2,queue-depth:2/2");
        let built = list.build(&Cluster::SMALL);
        let first: Vec<f64> = built.scorers.iter().map(|(_, weight, _)| *weight).collect();
        assert_eq!((first, built.second), (vec![0.0, 1.0, 2.0 / 3.0], vec![1.0, 0.4, 0.4]));
        assert_eq!(two("pa:3,qd:2").to_string(), "prefix-affinity:3,queue-depth:2");
        assert_eq!(two("pa:3/6,qd:2/4").build(&Cluster::SMALL).second, [1.0, 2.0 / 3.0]);
    }

    #[test]
    fn senseless_profiles_are_refused_with_what_is_wrong() {
        let two = |text| Scorers::new(text, Profiles::Two, None, &Guests::NONE).err();
        for (text, complaint) in [
            ("pa:3/0,qd:2/0", "all weights are 0"),
            ("pa:3/", "is `3/`, not a number"),
            ("pa:1/2/3", "is `1/2/3`, not a number"),
            ("pa:1/-2", "write `scorer:weight,...`, e.g. `pa:3/2,qd:2,kv:2/5`"),
        ] {
            let error = two(text).expect(text).to_string();
            assert!(error.contains(complaint), "{text}: {error}");
        }
        let one = canonical("pa:3/2,qd:1").expect_err("one profile only");
        assert!(one.contains("is `3/2`, not a number of 0 or more"), "{one}");
    }

    #[test]
    fn a_capacity_given_apart_reaches_the_scorer_that_reads_it() {
        let parse = |text| {
            Scorers::new(text, Profiles::One, Some(77), &Guests::NONE)
                .map(|list| list.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(parse("pa:1").as_deref(), Ok("prefix-affinity[lru-capacity=77]:1"));
        let unread = parse("pa:0,qd:1").expect_err("nobody reads it");
        assert!(unread.contains("`lru-capacity` is given, but none of the scorers"), "{unread}");
        let twice = parse("pa[lru-capacity=5]:1").expect_err("given twice");
        assert!(twice.contains("given twice"), "{twice}");
    }

    #[test]
    fn weights_out_of_decimal_reach_are_kept_as_they_are() {
        assert_eq!(canonical("pa:1e300,qd:1").map(|text| text.len() > 300), Ok(true));
        assert!(canonical("pa:1e-300,qd:1").is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([a-z]{0,3}|pa|qd|[\\[\\],:=0-9.eE-]|\\PC){0,12}") {
            let _ = canonical(&text);
            let _ = Scorers::new(&text, Profiles::Two, None, &Guests::NONE);
        }

        #[test]
        fn scaled_decimal_weights_reduce_to_the_same_numbers(
            thousandths in prop::collection::vec(1_u32..100_000, 1..6),
            factor in 1_u32..10,
        ) {
            let read = |n: u32| -> f64 {
                format!("{}.{:03}", n / 1_000, n % 1_000).parse().expect("a decimal number")
            };
            let once: Vec<f64> = thousandths.iter().map(|n| read(*n)).collect();
            let scaled: Vec<f64> = thousandths.iter().map(|n| read(n * factor)).collect();
            prop_assert_eq!(reduce(&once), reduce(&scaled));
        }
    }
}
