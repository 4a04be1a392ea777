//! `weighted`: several opinions, added up.
//!
//! **Prefers** instances with a high weighted sum of scores, among those that all filters keep; a
//! picker takes one.
//!
//! **Reads** what its filters and scorers read, each as fresh as they say.
//!
//! **Parameters** none of its own: filters, scorers with their weights, and the picker are settings
//! beside it (no filters, `pa:3,qd:2,kv:2` and `max-score` if not given). Only ratios of weights
//! matter.
//!
//! **Origin** llm-d's scheduler profile: filters, scorers with weights, then a picker.

use crate::prelude::*;
use crate::routing::pickers::max_score;
use crate::routing::router::RouterParts;
use crate::routing::weights::WeightedScorers;

/// The scorers when none are given.
pub const DEFAULT_SCORERS: &str = "pa:3,qd:2,kv:2";
/// The picker when none is given.
pub const DEFAULT_PICKER: &str = max_score::SPEC.name;
/// Totals that differ by less are equal, but for rounding.
const ROUNDING: f64 = 1e-9;

/// How `weighted` introduces itself. Its needs are those of the default scorers; a router built
/// with other scorers has theirs.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "weighted",
    help: "Sums weighted scores; a picker chooses",
    needs: |values| RouterParts::default_of("weighted", values).needs(),
    ..Spec::built_by(|values, cluster| {
        RouterParts::default_of("weighted", values).build(values, cluster)
    })
};

/// What a router that weighs scores is made of.
pub struct Parts {
    /// Filters with their names, in the order in which they are asked.
    pub filters: Vec<(&'static str, Box<dyn Filter>)>,
    /// Scorers with their weights.
    pub scorers: WeightedScorers,
    /// Who takes one of the best.
    pub picker: Box<dyn Picker>,
}

impl Parts {
    /// A router that adds up the scorers in their order, among what the filters keep.
    pub fn weighted(self) -> Weighted {
        let sieve = |(name, filter)| Sieve { name, filter, narrowed: 0, passed_over: 0 };
        let voice =
            |(name, weight, scorer)| Voice { name, weight, scorer, scores: Vec::new(), swayed: 0 };
        Weighted {
            filters: self.filters.into_iter().map(sieve).collect(),
            scorers: self.scorers.scorers.into_iter().map(voice).collect(),
            picker: self.picker,
            candidates: Vec::new(),
            kept: Vec::new(),
            asked: Vec::new(),
            sums: Vec::new(),
            others: Vec::new(),
            totals: Vec::new(),
        }
    }
}

/// Filters, scorers with weights, and a picker.
pub struct Weighted {
    filters: Vec<Sieve>,
    scorers: Vec<Voice>,
    picker: Box<dyn Picker>,
    /// The instances that all filters keep; unused without filters.
    candidates: Vec<InstanceView>,
    /// Which instances are kept, so far and by the filter being asked.
    kept: Vec<bool>,
    asked: Vec<bool>,
    /// The weighted sum of each candidate's scores, and the same without one of the scorers.
    sums: Vec<f64>,
    others: Vec<f64>,
    /// The same for each instance shown.
    totals: Vec<f64>,
}

/// A filter, and how often it left somebody out.
struct Sieve {
    name: &'static str,
    filter: Box<dyn Filter>,
    narrowed: u64,
    passed_over: u64,
}

/// A scorer, and how often it made a difference.
struct Voice {
    name: &'static str,
    weight: f64,
    scorer: Box<dyn Scorer>,
    /// Of the last decision, one per candidate.
    scores: Vec<f64>,
    swayed: u64,
}

impl Weighted {
    /// Replaces the weights, scorer by scorer; for routers that change them on the way.
    pub fn reweigh(&mut self, weights: impl IntoIterator<Item = f64>) {
        for (voice, weight) in self.scorers.iter_mut().zip(weights) {
            voice.weight = weight;
        }
    }

    /// Asks the filters, each about what those before it have kept.
    fn sift(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, dice: &mut Dice) {
        self.kept.clear();
        self.kept.resize(cluster.instances.len(), true);
        self.candidates.clear();
        self.candidates.extend_from_slice(cluster.instances);
        for sieve in &mut self.filters {
            self.asked.clear();
            self.asked.resize(self.candidates.len(), true);
            let left = ClusterView { instances: &self.candidates, ..*cluster };
            sieve.filter.keep(request, &left, dice, &mut self.asked);
            if !self.asked.contains(&true) {
                sieve.passed_over += 1;
                continue;
            }
            sieve.narrowed += u64::from(self.asked.contains(&false));
            let mut asked = self.asked.iter();
            let mut keep = || *asked.next().expect("one answer a candidate");
            for kept in self.kept.iter_mut().filter(|kept| **kept) {
                *kept = keep();
            }
            let mut asked = self.asked.iter();
            self.candidates.retain(|_| *asked.next().expect("one answer a candidate"));
        }
    }

    /// Adds up the scores of `cluster`, and counts whose scores changed who is best.
    fn weigh(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>) {
        self.sums.clear();
        self.sums.resize(cluster.instances.len(), 0.0);
        for voice in &mut self.scorers {
            voice.scores.resize(cluster.instances.len(), 0.0);
            voice.scorer.score(request, cluster, &mut voice.scores);
            for (sum, score) in self.sums.iter_mut().zip(&voice.scores) {
                debug_assert!((0.0..=1.0).contains(score), "a score of {score} is out of 0..=1");
                *sum += voice.weight * score;
            }
        }
        let best = highest(&self.sums);
        for voice in &mut self.scorers {
            self.others.clear();
            let others = self.sums.iter().zip(&voice.scores).map(|(t, s)| t - voice.weight * s);
            self.others.extend(others);
            let best_of_others = highest(&self.others);
            // Counted to the end, not looked for: without a way out it takes several at a time.
            let both = self.sums.iter().zip(&self.others);
            let differ = both.filter(|(sum, other)| {
                (**sum >= best - ROUNDING) != (**other >= best_of_others - ROUNDING)
            });
            voice.swayed += u64::from(differ.count() > 0);
        }
    }

    /// The scorer in whose eyes candidate `chosen` stands out most.
    fn because(&self, chosen: usize) -> &'static str {
        let lead = |voice: &Voice| {
            let mean = voice.scores.iter().sum::<f64>() / math::float(voice.scores.len() as u64);
            voice.weight * (voice.scores[chosen] - mean)
        };
        let leads = self.scorers.iter().map(|voice| (lead(voice), voice.name));
        let most = leads.fold((ROUNDING, SPEC.name), |a, b| if b.0 > a.0 { b } else { a });
        most.1
    }
}

/// The values of candidates as values of all instances, of which so many are `kept`.
fn spread(kept: &[bool], values: &[f64]) -> impl Iterator<Item = f64> {
    let mut values = values.iter();
    let value = move |&kept: &bool| if kept { values.next().copied() } else { None };
    kept.iter().map(value).map(|value| value.unwrap_or(f64::NEG_INFINITY))
}

/// The greatest of `sums`, four at a time: over a thousand instances this is what a decision costs.
fn highest(sums: &[f64]) -> f64 {
    let higher = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [f64::NEG_INFINITY; 4];
    let (fours, rest) = sums.as_chunks::<4>();
    for four in fours {
        for (lane, sum) in lanes.iter_mut().zip(four) {
            *lane = higher(*lane, *sum);
        }
    }
    lanes.iter().chain(rest).copied().fold(f64::NEG_INFINITY, higher)
}

impl Router for Weighted {
    fn route(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Choice {
        let filtered = !self.filters.is_empty();
        if filtered {
            self.sift(request, cluster, dice);
        }
        let candidates = std::mem::take(&mut self.candidates);
        let left = if filtered { &candidates[..] } else { cluster.instances };
        self.weigh(request, &ClusterView { instances: left, ..*cluster });
        let index = self.picker.pick(&self.sums, dice);
        let instance = left[index].id;
        let opinions = self.scorers.iter().map(|v| v.scorer.expected_hit_blocks(instance));
        let expected_hit_blocks = opinions.flatten().next();
        self.candidates = candidates;
        Choice { instance, intent: Intent { expected_hit_blocks, because: self.because(index) } }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, now: Time) {
        for sieve in &mut self.filters {
            sieve.filter.sent(request, instance, now);
        }
        for voice in &mut self.scorers {
            voice.scorer.sent(request, instance, now);
        }
    }

    fn totals(&mut self) -> &[f64] {
        if self.filters.is_empty() {
            return &self.sums;
        }
        self.totals.clear();
        self.totals.extend(spread(&self.kept, &self.sums));
        &self.totals
    }

    fn opinions(&self) -> Vec<(&'static str, Vec<f64>)> {
        let opinion = |voice: &Voice| {
            let weighted: Vec<f64> = voice.scores.iter().map(|s| voice.weight * s).collect();
            let all = if self.filters.is_empty() {
                weighted
            } else {
                spread(&self.kept, &weighted).collect()
            };
            (voice.name, all)
        };
        self.scorers.iter().map(opinion).collect()
    }

    fn firings(&self, firings: &mut Firings) {
        for Sieve { name, filter, narrowed, passed_over } in &self.filters {
            firings.add(name, "narrowed", *narrowed);
            firings.add(name, "passed-over", *passed_over);
            filter.firings(firings);
        }
        for voice in &self.scorers {
            firings.add(voice.name, "swayed", voice.swayed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chosen::guest::Guests;
    use crate::routing::router::{PartsText, Routing};
    use crate::spec::Cluster;
    use crate::view::examples::{cluster, dice, instances, prompt, request};

    const CLUSTER: Cluster = Cluster { instances: 2, ..Cluster::SMALL };

    fn router(scorers: &str) -> Box<dyn Router> {
        let parts = PartsText {
            scorers: Some(scorers),
            picker: Some("max-score[ties=lowest-index]"),
            ..PartsText::default()
        };
        let routing = Routing::new("weighted", &[], &parts, &Guests::NONE).expect("legal");
        routing.build(&CLUSTER)
    }

    /// Where a prompt whose first half is warm on instance 1 goes, when that is the busier one.
    fn warm_or_idle(scorers: &str) -> Choice {
        let mut router = router(scorers);
        router.sent(&request(&prompt(&[1, 2])), InstanceId(1), Time::ZERO);
        let views = instances(&[0, 1]);
        router.route(&request(&prompt(&[1, 2, 3, 4])), &cluster(&views), &mut dice(1))
    }

    #[test]
    fn a_warm_instance_is_kept_only_if_its_weighted_match_outweighs_its_load() {
        let choice = warm_or_idle("pa:3,qd:1");
        assert_eq!((choice.instance.0, choice.intent.expected_hit_blocks), (1, Some(2)));
        let choice = warm_or_idle("pa:1,qd:1");
        assert_eq!((choice.instance.0, choice.intent.expected_hit_blocks), (0, Some(0)));
    }

    #[test]
    fn without_a_prefix_scorer_nothing_is_expected_to_hit() {
        let views = instances(&[3, 0]);
        let choice = router("qd:1").route(&request(&prompt(&[1])), &cluster(&views), &mut dice(0));
        assert_eq!((choice.instance.0, choice.intent.expected_hit_blocks), (1, None));
    }

    #[test]
    fn the_number_of_instances_may_change_between_requests() {
        let mut router = router("pa:3,qd:2,kv:2");
        for loads in [&[0, 0, 0][..], &[0], &[0, 0, 0, 0, 0]] {
            let views = instances(loads);
            let choice = router.route(&request(&prompt(&[1, 2])), &cluster(&views), &mut dice(0));
            assert!(choice.instance.index() < loads.len());
        }
    }

    #[test]
    fn a_choice_names_the_scorer_in_whose_eyes_it_stands_out_and_counts_whom_it_swayed() {
        let mut router = router("pa:3,qd:1");
        router.sent(&request(&prompt(&[1, 2])), InstanceId(1), Time::ZERO);
        let views = instances(&[0, 1]);
        let warm = router.route(&request(&prompt(&[1, 2])), &cluster(&views), &mut dice(0));
        assert_eq!((warm.instance.0, warm.intent.because), (1, "prefix-affinity"));
        let cold = router.route(&request(&prompt(&[7])), &cluster(&views), &mut dice(1));
        assert_eq!((cold.instance.0, cold.intent.because), (0, "queue-depth"));
        let mut firings = Firings::default();
        router.firings(&mut firings);
        let swayed = |scorer: &str| (format!("{scorer}.swayed"), 1);
        assert_eq!(firings.into_list(), [swayed("prefix-affinity"), swayed("queue-depth")]);
    }
}
