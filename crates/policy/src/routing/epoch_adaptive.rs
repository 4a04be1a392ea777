//! `epoch-adaptive`: one weight, moved while the answers get better.
//!
//! **Prefers** instances with a high weighted sum of scores, like `weighted`. After each epoch of
//! answers it compares them with those of the epoch before, and moves the weight of one scorer by a
//! step: in the same direction if they got better, back if they got worse, not at all if they are
//! alike.
//!
//! **Reads** answers (as they pass the gateway), and what its filters and scorers read.
//!
//! **Parameters** `moves`: the scorer whose weight is moved against all others. `epoch` (answers):
//! how many answers are averaged. `step`: the share by which the weight changes. `range`: how many
//! times as much, or as little, as at the start the weight may become. `reward`: whether a short
//! mean TTFT is good, or a large share of TTFT targets met. Scorers with their weights at the
//! start, filters and picker are settings beside it, as of `weighted`.
//!
//! **Origin** hill climbing on one dimension. It is no more than that: it takes noise and changes
//! of the workload for its own doing, so with short epochs it wanders, and it finds the nearest
//! hill only. Answers of requests that were sent under older weights are not counted.

use crate::prelude::*;
use crate::routing::router::RouterParts;
use crate::routing::weighted::{self, Parts, Weighted};

/// The scorers when none are given: those of `weighted`, with the one that is moved.
pub(crate) fn default_scorers(values: &Values) -> &'static str {
    match values.choice("moves") {
        "precise-prefix" => "pp:3,qd:2,kv:2",
        _ => weighted::DEFAULT_SCORERS,
    }
}

/// What it reads besides its parts.
pub(crate) const OWN_NEEDS: Needs = Needs { answers: true, ..Needs::NONE };

/// How `epoch-adaptive` introduces itself. Its needs are those of the default scorers; a router
/// built with other scorers has theirs.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "epoch-adaptive",
    help: "Weighted scorers; adjusts one weight by hill climbing on measured TTFT",
    params: &[
        Param::choice(
            "moves",
            &["prefix-affinity", "precise-prefix", "queue-depth", "kv-utilization"],
        )
        .help("The scorer whose weight is adjusted"),
        Param::int("epoch", 1..=1_000_000, 200, "answers")
            .help("Responses averaged per adjustment"),
        Param::float("step", 0.001..=1.0, 0.1, "")
            .help("Relative change of the weight per adjustment"),
        Param::log("range", 1.0..=100.0, 4.0, "")
            .help("Largest factor between the weight and its initial value"),
        Param::choice("reward", &["mean-ttft", "ttft-targets"])
            .help("Minimise mean TTFT, or maximise the share of TTFT targets met"),
    ],
    needs: |values| {
        let events = values.choice("moves") == "precise-prefix";
        OWN_NEEDS.or(Needs { load: true, kv: true, events, ..Needs::NONE })
    },
    ..Spec::built_by(|values, cluster| {
        RouterParts::default_of("epoch-adaptive", values).build(values, cluster)
    })
};

/// Weights of which one is learned on line.
pub struct EpochAdaptive {
    weighted: Weighted,
    /// At the start.
    weights: Vec<f64>,
    /// Which of them is moved, and what it is multiplied with now.
    moved: usize,
    factor: f64,
    climb: Climb,
    epoch: u64,
    reward: Reward,
    /// Of this epoch.
    answers: u64,
    earned: f64,
    /// The last request sent.
    newest: Option<RequestId>,
    /// The last request sent under older weights.
    older: Option<RequestId>,
}

enum Reward {
    MeanTtft,
    Targets(PerClass<Option<Span>>),
}

impl EpochAdaptive {
    /// A router made of `parts`, with the parameters `values`.
    ///
    /// # Panics
    /// If the scorer that it moves is not among the parts, which was checked before.
    pub(crate) fn new(parts: Parts, values: &Values, cluster: &Cluster) -> EpochAdaptive {
        let moves = values.choice("moves");
        let scorers = &parts.scorers.scorers;
        let moved = scorers.iter().position(|(name, ..)| *name == moves);
        let moved = moved.expect("the scorer whose weight moves is among the parts");
        let reward = match values.choice("reward") {
            "mean-ttft" => Reward::MeanTtft,
            _ => Reward::Targets(cluster.ttft_targets),
        };
        EpochAdaptive {
            weights: scorers.iter().map(|(_, weight, _)| *weight).collect(),
            weighted: parts.weighted(),
            moved,
            factor: 1.0,
            climb: Climb::new(values.float("step"), values.float("range")),
            epoch: values.int("epoch"),
            reward,
            answers: 0,
            earned: 0.0,
            newest: None,
            older: None,
        }
    }

    /// What an answer earns; `None` if it tells nothing.
    fn reward(&self, answer: &Answer) -> Option<f64> {
        match &self.reward {
            Reward::MeanTtft => Some(-answer.ttft.as_millis_f64()),
            Reward::Targets(targets) => {
                let target = targets[answer.class.index()]?;
                Some(if answer.ttft <= target { 1.0 } else { 0.0 })
            }
        }
    }

    fn end_epoch(&mut self) {
        let reward = self.earned / math::float(self.answers);
        (self.answers, self.earned) = (0, 0.0);
        let factor = self.climb.next(self.factor, reward);
        if factor.to_bits() != self.factor.to_bits() {
            self.factor = factor;
            self.older = self.newest;
            let moved = self.moved;
            let weight = |(at, weight): (usize, &f64)| {
                if at == moved { weight * factor } else { *weight }
            };
            self.weighted.reweigh(self.weights.iter().enumerate().map(weight));
        }
    }
}

impl Router for EpochAdaptive {
    fn route(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Choice {
        self.weighted.route(request, cluster, dice)
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, now: Time) {
        self.newest = self.newest.max(Some(request.id));
        self.weighted.sent(request, instance, now);
    }

    fn answered(&mut self, answer: &Answer) {
        if Some(answer.request) <= self.older {
            return;
        }
        let Some(reward) = self.reward(answer) else {
            return;
        };
        self.answers += 1;
        self.earned += reward;
        if self.answers == self.epoch {
            self.end_epoch();
        }
    }

    fn because(&self) -> Option<&'static str> {
        self.weighted.because()
    }

    fn totals(&mut self) -> &[f64] {
        self.weighted.totals()
    }

    fn opinions(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.weighted.opinions()
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add(SPEC.name, "raised", self.climb.raised);
        firings.add(SPEC.name, "lowered", self.climb.lowered);
        firings.add(SPEC.name, "turned", self.climb.turned);
        self.weighted.firings(firings);
    }
}

/// Hill climbing on a factor around 1.
struct Climb {
    /// The ratio of a factor to the next smaller one.
    ratio: f64,
    range: f64,
    up: bool,
    last: Option<f64>,
    raised: u64,
    lowered: u64,
    turned: u64,
}

impl Climb {
    fn new(step: f64, range: f64) -> Climb {
        Climb { ratio: 1.0 + step, range, up: true, last: None, raised: 0, lowered: 0, turned: 0 }
    }

    /// The factor to try after `factor` has earned `reward`.
    fn next(&mut self, factor: f64, reward: f64) -> f64 {
        let last = self.last.replace(reward);
        if last.is_some_and(|last| reward < last) {
            self.turn();
        } else if last.is_some_and(|last| reward <= last) {
            return factor;
        }
        let next = if self.up { factor * self.ratio } else { factor / self.ratio };
        let next = next.clamp(1.0 / self.range, self.range);
        if next > factor {
            self.raised += 1;
        } else if next < factor {
            self.lowered += 1;
        } else {
            // At the end of its range the only way is back.
            self.turn();
        }
        next
    }

    fn turn(&mut self) {
        self.up = !self.up;
        self.turned += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chosen::guest::Guests;
    use crate::routing::router::{PartsText, Routing};
    use crate::view::examples::{cluster, dice, instances, prompt, request};
    use blis_core::SloClass;

    const CLUSTER: Cluster = Cluster {
        ttft_targets: [Some(Span::from_micros(100_000)), None, None, None, None],
        ..Cluster::SMALL
    };

    fn router(policy: &str) -> Box<dyn Router> {
        let parts = PartsText {
            scorers: Some("pa:1,qd:1"),
            picker: Some("max-score[ties=lowest-index]"),
            ..PartsText::default()
        };
        let routing = Routing::new(policy, &[], &parts, &Guests::NONE).expect("legal");
        let mut router = routing.build(&CLUSTER);
        router.sent(&request(&prompt(&[1, 2, 3])), InstanceId(1), Time::ZERO);
        router
    }

    /// Sends request `id`, three quarters of which are warm on instance 1, the busier of two; says
    /// whether it went there.
    fn sticks(router: &mut dyn Router, id: u64) -> bool {
        let asked = prompt(&[1, 2, 3, 100 + id]);
        let request = RequestView { id: RequestId(id), ..request(&asked) };
        let views = instances(&[0, 9]);
        let choice = router.route(&request, &cluster(&views), &mut dice(id));
        // Nothing that is sent from here on makes an instance warm.
        let nothing = RequestView { prompt_blocks: request.prompt_blocks.first(0), ..request };
        router.sent(&nothing, choice.instance, Time::ZERO);
        choice.instance.0 == 1
    }

    fn answer(request: u64, class: SloClass, ttft_ms: u64) -> Answer {
        let ttft = Span::from_micros(ttft_ms * 1_000);
        Answer {
            request: RequestId(request),
            class,
            instance: InstanceId(0),
            input_tokens: 64,
            cached_tokens: 0,
            ttft,
            e2e: ttft,
            now: Time::ZERO,
        }
    }

    /// Requests of which those that stick have the first TTFT, and the others the second; how many
    /// of the last hundred stick.
    fn late_share(policy: &str, warm_ms: u64, cold_ms: u64) -> u32 {
        let mut router = router(policy);
        let mut late = 0;
        for id in 1..1_000 {
            let stuck = sticks(&mut *router, id);
            late += u32::from(stuck && id >= 900);
            // Noise that depends on nothing makes epochs differ.
            let ttft = if stuck { warm_ms } else { cold_ms } + id % 2;
            router.answered(&answer(id, SloClass::Critical, ttft));
        }
        late
    }

    #[test]
    fn the_weight_climbs_until_requests_stick_where_that_is_faster() {
        // 0.75 * weight against 1: sticking begins at 4/3 of the weight at the start.
        assert!(!sticks(&mut *router("epoch-adaptive"), 1));
        let policy = "epoch-adaptive[epoch=5,step=0.2]";
        assert!(late_share(policy, 50, 200) > 60, "{}", late_share(policy, 50, 200));
        assert!(late_share(policy, 200, 50) < 40, "{}", late_share(policy, 200, 50));
    }

    #[test]
    fn answers_to_requests_sent_under_older_weights_are_not_counted() {
        let raised = |first_counted: u64| {
            let mut router = router("epoch-adaptive[epoch=2]");
            for id in 1..=10 {
                sticks(&mut *router, id);
            }
            // The first epoch ends and moves the weight: 3..=10 were sent before that.
            for id in 1..=2 {
                router.answered(&answer(id, SloClass::Critical, 100));
            }
            for id in 11..=20 {
                sticks(&mut *router, id);
            }
            for id in first_counted..first_counted + 2 {
                router.answered(&answer(id, SloClass::Critical, 50));
            }
            let mut firings = Firings::default();
            router.firings(&mut firings);
            firings.into_list()[0].1
        };
        assert_eq!((raised(3), raised(9), raised(11)), (1, 1, 2));
    }

    #[test]
    fn rewards_are_mean_ttfts_or_shares_of_targets_met() {
        let moves = |policy: &str, class, ttfts: &[u64]| {
            let mut router = router(policy);
            for (id, ttft) in (1..).zip(ttfts) {
                sticks(&mut *router, id);
                router.answered(&answer(id, class, *ttft));
            }
            let mut firings = Firings::default();
            router.firings(&mut firings);
            let list = firings.into_list();
            (list[0].1, list[1].1)
        };
        let (ttft, targets) =
            ("epoch-adaptive[epoch=1]", "epoch-adaptive[epoch=1,reward=ttft-targets]");
        assert_eq!(moves(ttft, SloClass::Critical, &[90, 80, 70]), (3, 0));
        assert_eq!(moves(ttft, SloClass::Critical, &[90, 95]), (1, 1));
        assert_eq!(moves(targets, SloClass::Critical, &[90, 80, 70]), (1, 0), "all met, all alike");
        assert_eq!(moves(targets, SloClass::Critical, &[150, 90, 150]), (2, 1));
        assert_eq!(moves(targets, SloClass::Batch, &[150, 90, 150]), (0, 0), "no target");
    }

    #[test]
    fn the_factor_stays_within_its_range_and_turns_at_the_end() {
        let mut climb = Climb::new(0.5, 2.0);
        let mut factor = 1.0;
        let mut seen = Vec::new();
        for reward in 0..6_u32 {
            factor = climb.next(factor, f64::from(reward));
            seen.push(factor);
        }
        assert_eq!(
            seen,
            [1.5, 2.0, 2.0, 2.0 / 1.5, 2.0 / 1.5 / 1.5, 0.888_888_888_888_888_8 / 1.5]
        );
        assert_eq!((climb.raised, climb.lowered, climb.turned), (2, 3, 1));
    }
}
