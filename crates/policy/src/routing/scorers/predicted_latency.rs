//! `predicted-latency`: when the first token would come.
//!
//! **Prefers** instances with a short predicted TTFT: the prompts sent there before, plus what of
//! this one is not cached. `min-max` gives 1 to the shortest and 0 to the longest (1 for all if all
//! are equal); `inverse` gives scale / (scale + TTFT). `llm-d` puts TTFT and time per output token
//! on a scale from 0 (shortest) to 1 (longest), and gives 1 less their weighted mean, rounded down
//! to hundredths, plus one hundredth, at most 1. If any instances are idle, all others get 0.
//!
//! **Reads** the router's own counts (live): `unstarted_tokens`, `in_flight`; with `precise`
//! knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are); with `llm-d` also
//! `queue_depth` and `running` (as late as polls are).
//!
//! **Parameters** `normalise`: `min-max`, `inverse` or `llm-d`. `scale` (ms): the TTFT that scores
//! 0.5 with `inverse`. `tpot-share`: the weight of the time per output token with `llm-d`. `error`:
//! the standard deviation of the logarithm of the prediction's error, which multiplies it; 0 is as
//! good as the predictor is by itself. `knowledge`: whether hits are guessed from what was sent or
//! read from KV events. `cpu-weight` (blocks): value of a block in the CPU tier if they are read.
//!
//! **Origin** llm-d's predicted-latency scheduling, whose predictor is trained on line; here it is
//! a line through the step times, and `error` tells how good a trained one must be to pay. `llm-d`
//! scores as its `latency-scorer` does for requests without targets (llm-d-router ebab687).

use crate::predict::Predictor;
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};
use crate::routing::scorers::{Best, min_max};
use blis_core::random::{Purpose, mix};

const NORMALISE: [&str; 3] = ["min-max", "inverse", "llm-d"];

/// How `predicted-latency` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "predicted-latency",
    help: "Prefers instances with the lowest predicted TTFT",
    params: &[
        Param::choice("normalise", &NORMALISE).help(
            "Score relative to other instances, to `scale`, or as llm-d's latency-scorer does",
        ),
        Param::log("scale", 0.1..=1e6, 200.0, "ms")
            .help("TTFT that scores 0.5")
            .only_if("normalise", &["inverse"]),
        Param::float("tpot-share", 0.0..=1.0, 0.2, "")
            .help("Weight of the time per output token; the rest is that of TTFT")
            .only_if("normalise", &["llm-d"]),
        Param::float("error", 0.0..=5.0, 0.0, "")
            .help("Standard deviation of the lognormal error of predictions"),
        knowledge::PARAM,
        knowledge::CPU_WEIGHT,
    ],
    needs: |values| Needs {
        load: values.choice("normalise") == "llm-d",
        ..knowledge::needs(values)
    },
    ..Spec::built_by(|values, cluster| Box::new(PredictedLatency::new(values, cluster)))
};

/// How times become scores.
#[derive(Clone, Copy, Debug)]
enum Scale {
    MinMax,
    /// The TTFT that scores 0.5, in ms.
    Inverse(f64),
    /// The weight of the time per output token.
    LlmD(f64),
}

/// The predicted time to first token, on some scale.
#[derive(Clone, Debug)]
pub struct PredictedLatency {
    scale: Scale,
    error: f64,
    knowledge: Knowledge,
    predictor: Predictor,
}

impl PredictedLatency {
    fn new(values: &Values, cluster: &Cluster) -> PredictedLatency {
        let scale = match values.choice("normalise") {
            "inverse" => Scale::Inverse(values.float("scale")),
            "llm-d" => Scale::LlmD(values.float("tpot-share")),
            _ => Scale::MinMax,
        };
        PredictedLatency {
            scale,
            error: values.float("error"),
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
        }
    }

    /// What the prediction for `request` at `instance` is multiplied with; its median is 1.
    fn error(&self, seed: u64, request: RequestId, instance: InstanceId) -> f64 {
        if self.error <= 0.0 {
            return 1.0;
        }
        let key = mix(request.0, u64::from(instance.0));
        math::exp(self.error * Dice::new(seed, Purpose::Prediction, key).normal())
    }

    /// Turns TTFTs into the scores of llm-d's `latency-scorer`.
    fn blend(&self, instances: &[InstanceView], tpot_share: f64, ttfts: &mut [f64]) {
        let any_idle = instances.iter().any(|view| view.in_flight == 0);
        let counts = |view: &InstanceView| !any_idle || view.in_flight == 0;
        let (mut ttft, mut tpot) = (Range::EMPTY, Range::EMPTY);
        for (ms, view) in ttfts.iter().zip(instances).filter(|(_, view)| counts(view)) {
            ttft.add(*ms);
            tpot.add(self.predictor.tpot_ms(view));
        }
        let share = match (ttft.is_one(), tpot.is_one()) {
            (true, false) => 1.0,
            (false, true) => 0.0,
            _ => tpot_share,
        };
        for (score, view) in ttfts.iter_mut().zip(instances) {
            let tpot = tpot.place(self.predictor.tpot_ms(view));
            let late = (1.0 - share) * ttft.place(*score) + share * tpot;
            let hundredths = ((1.0 - late) * 100.0).floor() + 1.0;
            *score = if counts(view) { (hundredths / 100.0).min(1.0) } else { 0.0 };
        }
    }
}

/// The least and the largest of some times.
#[derive(Clone, Copy)]
struct Range(f64, f64);

impl Range {
    const EMPTY: Range = Range(f64::INFINITY, f64::NEG_INFINITY);

    fn add(&mut self, ms: f64) {
        *self = Range(self.0.min(ms), self.1.max(ms));
    }

    /// Whether all are the same, as far as llm-d tells them apart.
    fn is_one(self) -> bool {
        self.1 - self.0 <= 1e-9
    }

    /// Where `ms` lies, from 0 to 1.
    fn place(self, ms: f64) -> f64 {
        if self.is_one() { 0.5 } else { (ms - self.0) / (self.1 - self.0) }
    }
}

impl Scorer for PredictedLatency {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        for (score, view) in scores.iter_mut().zip(cluster.instances) {
            let tokens = self.predictor.uncached_tokens(request, self.knowledge.worth(view));
            let error = self.error(cluster.seed, request.id, view.id);
            *score = self.predictor.ttft_ms(view, tokens) * error;
        }
        match self.scale {
            Scale::MinMax => min_max(scores, Best::Least),
            Scale::Inverse(scale) => {
                for score in scores {
                    *score = scale / (scale + *score);
                }
            }
            Scale::LlmD(tpot_share) => self.blend(cluster.instances, tpot_share, scores),
        }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        self.knowledge.sent(request, instance);
    }

    fn expected_hit_blocks(&self, instance: InstanceId) -> Option<u32> {
        Some(self.knowledge.blocks(instance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::StepCost;
    use crate::view::InstanceView;
    use crate::view::examples::{cluster, instances, prompt, request};

    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 0.0, prefill_token_us: 1_000.0, decode_us: 0.0 },
        ..Cluster::SMALL
    };

    fn scorer(given: &[(&'static str, &'static str)]) -> PredictedLatency {
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        PredictedLatency::new(&values, &CLUSTER)
    }

    fn scores(scorer: &mut PredictedLatency, id: u64, views: &[InstanceView]) -> Vec<f64> {
        let mut scores = vec![f64::NAN; views.len()];
        let asked = prompt(&[1, 2, 3, 4]);
        let request = RequestView { id: RequestId(id), ..request(&asked) };
        scorer.score(&request, &cluster(views), &mut scores);
        scores
    }

    /// Half a prompt of 64 ms cached on 1, as much before it on 2.
    fn views() -> Vec<InstanceView> {
        let mut views = instances(&[0, 0, 0]);
        views[1].cached_blocks = 2;
        views[2].unstarted_tokens = 32;
        views
    }

    #[test]
    fn cached_blocks_shorten_and_prompts_before_it_lengthen_the_wait() {
        let mut relative = scorer(&[("knowledge", "precise")]);
        assert_eq!(scores(&mut relative, 0, &views()), [0.5, 1.0, 0.0]);
        let given = [("knowledge", "precise"), ("normalise", "inverse"), ("scale", "96")];
        assert_eq!(scores(&mut scorer(&given), 0, &views()), [0.6, 0.75, 0.5]);
    }

    #[test]
    fn llm_d_blends_both_times_and_prefers_idle_instances() {
        let given = [("knowledge", "precise"), ("normalise", "llm-d")];
        let mut busy = views();
        // TTFTs of 64, 32 and 96 ms; steps of 3, 4 and 4 ms.
        for (view, in_flight) in busy.iter_mut().zip([1, 2, 2]) {
            view.in_flight = in_flight;
            view.running = in_flight;
        }
        let decoding = Cluster {
            step: StepCost { base_us: 1_000.0, prefill_token_us: 1_000.0, decode_us: 1_000.0 },
            ..CLUSTER
        };
        let mut blending = scorer(&given);
        blending.predictor = Predictor::new(&decoding);
        // 1 - (0.8 * about 0.5 + 0), 1 - (0 + 0.2), 1 - (0.8 + 0.2), a hundredth more.
        let found = scores(&mut blending, 0, &busy);
        assert!((0.59..=0.62).contains(&found[0]), "{found:?}");
        assert_eq!(found[1..], [0.81, 0.01]);
        busy[2].in_flight = 0;
        assert_eq!(scores(&mut blending, 0, &busy), [0.0, 0.0, 0.51]);
        // The same steps: their share goes to TTFT.
        assert_eq!(scores(&mut scorer(&given), 0, &views()), [0.51, 1.0, 0.01]);
    }

    #[test]
    fn what_was_sent_is_taken_to_be_cached_unless_knowledge_is_precise() {
        let mut remembering = scorer(&[]);
        remembering.sent(&request(&prompt(&[1, 2, 3])), InstanceId(0), Time::ZERO);
        let scores = scores(&mut remembering, 0, &instances(&[0, 0]));
        assert_eq!(scores, [1.0, 0.0]);
        assert_eq!(remembering.expected_hit_blocks(InstanceId(0)), Some(3));
    }

    #[test]
    fn errors_have_the_given_spread_and_belong_to_a_request_and_an_instance() {
        let wrong = scorer(&[("error", "0.5")]);
        let log = |id, at| math::ln(wrong.error(42, RequestId(id), InstanceId(at)));
        assert_eq!(log(3, 1).to_bits(), log(3, 1).to_bits());
        assert!((log(3, 1) - log(3, 2)).abs() > 1e-6 && (log(3, 1) - log(4, 1)).abs() > 1e-6);
        let logs: Vec<f64> = (0..10_000).map(|id| log(id, 0)).collect();
        let mean = logs.iter().sum::<f64>() / 1e4;
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.02 && (variance - 0.25).abs() < 0.02, "{mean} {variance}");
        let exact = scorer(&[]).error(42, RequestId(3), InstanceId(1));
        assert_eq!(exact.to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn a_bad_predictor_sends_some_requests_to_the_wrong_instance() {
        let right = |error| {
            let mut scorer = scorer(&[("knowledge", "precise"), ("error", error)]);
            (0..1_000).filter(|id| scores(&mut scorer, *id, &views())[1] >= 1.0).count()
        };
        assert_eq!(right("0"), 1_000);
        // 32 ms against 64 and 96: the best of three is told more often than by chance alone.
        assert!((450..650).contains(&right("1")), "{}", right("1"));
    }
}
