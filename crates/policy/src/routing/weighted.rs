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
use crate::totals::{self, highest};

/// The scorers when none are given.
pub const DEFAULT_SCORERS: &str = "pa:3,qd:2,kv:2";
/// The picker when none is given.
pub const DEFAULT_PICKER: &str = max_score::SPEC.name;
/// Totals that differ by less are equal, but for rounding.
const ROUNDING: f64 = 1e-9;
/// With fewer instances it is cheaper to score all than to ask which have changed.
const MANY: usize = 64;

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
        let voice = |(name, weight, scorer)| Voice {
            name,
            weight,
            scorer,
            scores: Vec::new(),
            others: Totals::default(),
            swayed: 0,
        };
        Weighted {
            filters: self.filters.into_iter().map(sieve).collect(),
            scorers: self.scorers.scorers.into_iter().map(voice).collect(),
            picker: self.picker,
            candidates: Vec::new(),
            kept: Vec::new(),
            asked: Vec::new(),
            touched: Vec::new(),
            reweighed: false,
            quick: false,
            others: Vec::new(),
            sums: Totals::default(),
            totals: Vec::new(),
            chosen: 0,
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
    /// Candidates whose scores may differ from those of the last decision.
    touched: Vec<usize>,
    /// Whether the weights have changed since.
    reweighed: bool,
    /// Whether what scorers leave to the others is kept, to be brought up to date; otherwise it is
    /// found anew for each decision.
    quick: bool,
    others: Vec<f64>,
    /// The weighted sum of each candidate's scores.
    sums: Totals,
    /// The same for each instance shown.
    totals: Vec<f64>,
    /// The candidate that was chosen last.
    chosen: usize,
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
    /// The weighted sum of the scores of all others, if that is kept.
    others: Totals,
    swayed: u64,
}

impl Weighted {
    /// Replaces the weights, scorer by scorer; for routers that change them on the way.
    pub fn reweigh(&mut self, weights: impl IntoIterator<Item = f64>) {
        for (voice, weight) in self.scorers.iter_mut().zip(weights) {
            voice.weight = weight;
        }
        self.reweighed = true;
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

    /// Brings the scores of `cluster` and their sums up to date.
    fn weigh(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>) {
        let size = cluster.instances.len();
        let known = self.quick && self.sums.len() == size && !self.reweighed;
        let few = |changed: &&[usize]| known && changed.len() < size / 4;
        self.quick = size >= MANY && self.filters.is_empty() && cluster.changed.is_some();
        self.reweighed = false;
        if let Some(changed) = cluster.changed.filter(few) {
            if self.rescore(request, cluster, changed) {
                for at in 0..self.touched.len() {
                    self.add_up(self.touched[at]);
                }
                return;
            }
        } else {
            for voice in &mut self.scorers {
                voice.scores.resize(size, 0.0);
                voice.scorer.score(request, cluster, &mut voice.scores);
            }
        }
        self.add_up_all(size);
    }

    /// Brings the scores up to date, and notes where they were touched. Returns whether that is
    /// not everywhere.
    fn rescore(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        changed: &[usize],
    ) -> bool {
        self.touched.clear();
        self.touched.extend_from_slice(changed);
        let mut all = false;
        for voice in &mut self.scorers {
            match voice.scorer.rescore(request, cluster, changed, &mut voice.scores) {
                Rescored::All => all = true,
                Rescored::Changed(places) => self.touched.extend_from_slice(places),
            }
        }
        !all
    }

    /// Adds up the scores of one candidate.
    fn add_up(&mut self, place: usize) {
        let weighted = self.scorers.iter().map(|voice| voice.weight * voice.scores[place]);
        let sum = weighted.fold(0.0, |sum, score| sum + score);
        self.sums.set(place, sum);
        for voice in &mut self.scorers {
            voice.others.set(place, sum - voice.weight * voice.scores[place]);
        }
    }

    /// Adds up the scores of all candidates, in the same order.
    fn add_up_all(&mut self, candidates: usize) {
        let Weighted { scorers, sums, .. } = self;
        sums.fill(candidates, |sums| {
            sums.fill(0.0);
            for voice in &*scorers {
                for (sum, score) in sums.iter_mut().zip(&voice.scores) {
                    debug_assert!((0.0..=1.0).contains(score), "a score of {score}, not in 0..=1");
                    *sum += voice.weight * score;
                }
            }
        });
        for Voice { scores, weight, others, .. } in scorers.iter_mut().filter(|_| self.quick) {
            others.fill(candidates, |others| leave_out(scores, *weight, sums, others));
        }
    }

    /// Counts whose scores changed who is best.
    fn count_swayed(&mut self) {
        let sums = &self.sums;
        if sums.len() < 2 {
            return;
        }
        let high = sums.highest() - ROUNDING;
        for Voice { scores, weight, others, swayed, .. } in &mut self.scorers {
            let sways = if self.quick {
                sums.differ(high, others, others.highest() - ROUNDING)
            } else {
                self.others.resize(sums.len(), 0.0);
                leave_out(scores, *weight, sums, &mut self.others);
                totals::differ(sums, high, &self.others, highest(&self.others) - ROUNDING)
            };
            *swayed += u64::from(sways);
        }
    }
}

/// Writes into `others` what is left of `sums` without the scores of one scorer.
fn leave_out(scores: &[f64], weight: f64, sums: &[f64], others: &mut [f64]) {
    for ((other, sum), score) in others.iter_mut().zip(sums).zip(scores) {
        *other = sum - weight * score;
    }
}

/// The values of candidates as values of all instances, of which so many are `kept`.
fn spread(kept: &[bool], values: &[f64]) -> impl Iterator<Item = f64> {
    let mut values = values.iter();
    let value = move |&kept: &bool| if kept { values.next().copied() } else { None };
    kept.iter().map(value).map(|value| value.unwrap_or(f64::NEG_INFINITY))
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
        self.count_swayed();
        self.chosen = self.picker.pick(&self.sums, dice);
        let instance = left[self.chosen].id;
        let opinions = self.scorers.iter().map(|v| v.scorer.expected_hit_blocks(instance));
        let expected_hit_blocks = opinions.flatten().next();
        self.candidates = candidates;
        Choice { instance, intent: Intent { expected_hit_blocks, because: SPEC.name } }
    }

    /// The scorer in whose eyes the chosen candidate stands out most, if it does in any.
    fn because(&self) -> Option<&'static str> {
        let lead = |voice: &Voice| {
            let mean = voice.scores.iter().sum::<f64>() / math::float(voice.scores.len() as u64);
            voice.weight * (voice.scores[self.chosen] - mean)
        };
        let leads = self.scorers.iter().map(|voice| (lead(voice), Some(voice.name)));
        leads.fold((ROUNDING, None), |a, b| if b.0 > a.0 { b } else { a }).1
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
        assert_eq!((warm.instance.0, router.because()), (1, Some("prefix-affinity")));
        let cold = router.route(&request(&prompt(&[7])), &cluster(&views), &mut dice(1));
        assert_eq!((cold.instance.0, router.because()), (0, Some("queue-depth")));
        let mut firings = Firings::default();
        router.firings(&mut firings);
        let swayed = |scorer: &str| (format!("{scorer}.swayed"), 1);
        assert_eq!(firings.into_list(), [swayed("prefix-affinity"), swayed("queue-depth")]);
    }
}
