//! Weighted lists of scorers: `pa:3,qd:2,kv:2`, and with two profiles `pa:3/2,qd:2,kv:2/5`.
//!
//! In a list of two profiles every scorer has two weights, one for each; a single one is both. So
//! both profiles share the scorers, what these remember, and the cost of asking them.
//!
//! Called when a router that reads scorers is built. Only the ratios of weights matter, and the
//! order of scorers does not: both are brought into one form, so that equal strategies add up equal
//! floats in equal order and decide equally to the last bit. It must never panic, whatever the
//! text.

use crate::contract::Scorer;
use crate::guest::Guests;
use crate::routing::scorers::prefix_affinity;
use crate::spec::{Built, Cluster, PolicyError, parse};
use crate::view::Needs;
use blis_core::math;

/// The kind, as errors name it.
pub const KIND: &str = "scorer";

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

/// Scorers with their weights, in the order in which scores are added up.
pub struct WeightedScorers {
    /// Name, weight and scorer, by name; the greatest weight is 1.
    pub scorers: Vec<(&'static str, f64, Box<dyn Scorer>)>,
    /// Weights in the second profile, scorer by scorer; the greatest is 1. The same as the first if
    /// there is only one. No scorer has 0 in both.
    pub second: Vec<f64>,
    /// What any of them reads.
    pub needs: Needs,
    /// `scorer:weight,...` or `scorer:weight/weight,...`, by name, with the smallest whole weights
    /// of these ratios.
    pub canonical: String,
}

/// One entry of the list.
struct Weighted {
    name: &'static str,
    weights: [f64; 2],
    built: Built<dyn Scorer>,
}

impl WeightedScorers {
    /// The scorers that `text` spells. `lru_capacity` is the parameter of that name of
    /// `prefix-affinity`, when it is given apart from the list.
    ///
    /// # Errors
    /// If a scorer is unknown, repeated or refuses its parameters; if a weight is missing, negative
    /// or not finite, or all are 0; if `lru_capacity` is given and no scorer reads it.
    pub fn parse(
        text: &str,
        profiles: Profiles,
        lru_capacity: Option<u64>,
        cluster: &Cluster,
    ) -> Result<WeightedScorers, PolicyError> {
        WeightedScorers::parse_with(text, profiles, lru_capacity, &Guests::default(), cluster)
    }

    /// The same, where scorers may be `guests` too.
    ///
    /// # Errors
    /// As [`WeightedScorers::parse`].
    pub fn parse_with(
        text: &str,
        profiles: Profiles,
        lru_capacity: Option<u64>,
        guests: &Guests,
        cluster: &Cluster,
    ) -> Result<WeightedScorers, PolicyError> {
        let wrong = |problem| wrong(text, profiles, problem);
        let lru_capacity = lru_capacity.map(|blocks| blocks.to_string());
        let mut list: Vec<Weighted> = Vec::new();
        for item in items(text) {
            let (scorer, weights) = item
                .rsplit_once(':')
                .filter(|(_, weight)| !weight.contains(']'))
                .ok_or_else(|| wrong(format!("`{}` has no weight", item.trim())))?;
            let (name, built) = build_scorer(scorer, lru_capacity.as_deref(), guests, cluster)?;
            let weights = read_weights(weights, profiles).map_err(|found| {
                wrong(format!("the weight of `{name}` is `{found}`, not a number of 0 or more"))
            })?;
            if list.iter().any(|other| other.name == name) {
                return Err(wrong(format!("`{name}` is given twice")));
            }
            list.push(Weighted { name, weights, built });
        }
        // A scorer without weight cannot change a decision, so it is not asked at all.
        list.retain(|entry| entry.weights.iter().any(|weight| *weight > 0.0));
        if (0..2).any(|profile| list.iter().all(|entry| entry.weights[profile] <= 0.0)) {
            return Err(wrong("all weights are 0".to_owned()));
        }
        if lru_capacity.is_some() && list.iter().all(|e| e.name != prefix_affinity::SPEC.name) {
            return Err(PolicyError::Unread {
                setting: prefix_affinity::LRU_CAPACITY,
                reader: format!("none of the scorers `{text}`"),
                remedy: "; add `prefix-affinity` to them",
            });
        }
        list.sort_by_key(|entry| entry.name);
        Ok(WeightedScorers::new(list))
    }

    fn new(list: Vec<Weighted>) -> WeightedScorers {
        let reduced = |profile: usize| {
            reduce(&list.iter().map(|entry| entry.weights[profile]).collect::<Vec<f64>>())
        };
        let (first, second) = (reduced(0), reduced(1));
        let spelled: Vec<String> = list
            .iter()
            .zip(first.iter().zip(&second))
            .map(|(entry, (one, other))| {
                let name = &entry.built.canonical;
                if first == second {
                    format!("{name}:{one}")
                } else {
                    format!("{name}:{one}/{other}")
                }
            })
            .collect();
        WeightedScorers {
            needs: list.iter().fold(Needs::NONE, |needs, entry| needs.or(entry.built.needs)),
            canonical: spelled.join(","),
            second: scaled(second),
            scorers: list
                .into_iter()
                .zip(scaled(first))
                .map(|(entry, weight)| (entry.name, weight, entry.built.policy))
                .collect(),
        }
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

/// The parts of `text` between the commas that are not inside brackets.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// The scorer that `text` spells, `scorer` or `scorer[parameter=value,...]`, and its name.
fn build_scorer(
    text: &str,
    lru_capacity: Option<&str>,
    guests: &Guests,
    cluster: &Cluster,
) -> Result<(&'static str, Built<dyn Scorer>), PolicyError> {
    let mut parsed = parse(KIND, text)?;
    let is = |name: &str| {
        prefix_affinity::SPEC.name == name || prefix_affinity::SPEC.alias == Some(name)
    };
    if let Some(blocks) = lru_capacity.filter(|_| is(parsed.name)) {
        parsed.given.push((prefix_affinity::LRU_CAPACITY, blocks));
    }
    guests.scorers().build(&parsed, cluster)
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

    const CLUSTER: Cluster = Cluster { instances: 2, ..Cluster::SMALL };

    fn canonical(text: &str) -> Result<String, String> {
        WeightedScorers::parse(text, Profiles::One, None, &CLUSTER)
            .map(|list| list.canonical)
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
        let two = |text| WeightedScorers::parse(text, Profiles::Two, None, &CLUSTER);
        let list = two("qd:4/2, pa:6/2, kv:0/5").expect("legal");
        assert_eq!(list.canonical, "kv-utilization:0/5,prefix-affinity:3/2,queue-depth:2/2");
        let first: Vec<f64> = list.scorers.iter().map(|(_, weight, _)| *weight).collect();
        assert_eq!((first, list.second), (vec![0.0, 1.0, 2.0 / 3.0], vec![1.0, 0.4, 0.4]));
        assert_eq!(two("pa:3,qd:2").expect("legal").canonical, "prefix-affinity:3,queue-depth:2");
        assert_eq!(two("pa:3/6,qd:2/4").expect("legal").second, [1.0, 2.0 / 3.0]);
    }

    #[test]
    fn senseless_profiles_are_refused_with_what_is_wrong() {
        let two = |text| WeightedScorers::parse(text, Profiles::Two, None, &CLUSTER).err();
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
            WeightedScorers::parse(text, Profiles::One, Some(77), &CLUSTER)
                .map(|list| list.canonical)
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
            let _ = WeightedScorers::parse(&text, Profiles::Two, None, &CLUSTER);
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
