//! What every router, scorer, filter and picker promises, with any parameters.

use crate::variants::{spell, variants};
use crate::views::{CLUSTER, Question, questions};
use blis_core::{Content, Dice, InstanceId, RequestView, Segment, Span, StreamId, Values};
use blis_policy::routing::{self, filters, pickers, scorers};
use blis_policy::{
    Answer, Choice, Chosen, ClusterView, Filter, Guests, PartsText, Router, Routing, Scorer,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// What `router` decides about `sequence`.
fn decisions(router: &mut dyn Router, sequence: &[Question]) -> Vec<Choice> {
    let mut decide = |(number, question): (u64, &Question)| {
        let mut dice = Question::dice(number);
        let (request, cluster) = (question.request(number), question.cluster(number));
        let choice = router.route(&request, &cluster, &mut dice.clone());
        assert_eq!(choice, router.route(&request, &cluster, &mut dice), "asking changes nothing");
        router.sent(&request, choice.instance, cluster.now);
        router.answered(&answer(&request, choice.instance));
        choice
    };
    (0..).zip(sequence).map(&mut decide).collect()
}

/// An answer that comes at once, after a time that depends on where it was.
fn answer(request: &RequestView<'_>, instance: InstanceId) -> Answer {
    let ttft = Span::from_micros(u64::from(request.input_tokens) * u64::from(instance.0 + 1));
    Answer {
        request: request.id,
        class: request.class,
        instance,
        input_tokens: request.input_tokens,
        cached_tokens: 0,
        ttft,
        e2e: ttft,
        now: request.arrival + ttft,
    }
}

/// Every router with any of its parameters at an end of its range; made of what it is by default.
fn all_routers() -> impl Iterator<Item = String> {
    let spelled = |name, params| {
        variants(params).into_iter().map(move |values| spell(name, &values)).collect::<Vec<_>>()
    };
    routing::ALL.iter().flat_map(move |spec| spelled(spec.name, spec.params))
}

fn router(policy: &str, parts: &PartsText<'_>) -> Routing {
    Routing::new(policy, &[], parts, &Guests::NONE).expect("legal")
}

fn weighted(scorers: &str, picker: &str) -> Box<dyn Router> {
    let parts = PartsText { scorers: Some(scorers), picker: Some(picker), ..PartsText::default() };
    router("weighted", &parts).build(&CLUSTER)
}

/// All scores of `scorer` over `sequence`, when each request goes to the instance it likes best.
fn all_scores(scorer: &mut dyn Scorer, sequence: &[Question]) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    for (number, question) in (0..).zip(sequence) {
        let request = question.request(number);
        let mut scores = vec![f64::NAN; question.instances.len()];
        scorer.score(&request, &question.cluster(number), &mut scores);
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        scorer.sent(
            &request,
            question.instances[best.expect("an instance")].id,
            question.cluster(number).now,
        );
        all.push(scores);
    }
    all
}

type Make = fn(&Values, &blis_policy::Cluster) -> Box<dyn Scorer>;

/// Every scorer with any of its parameters at an end of its range.
fn all_scorers() -> impl Iterator<Item = (&'static str, Values, Make)> {
    let all = |spec: &&blis_policy::Spec<dyn Scorer>| {
        let (name, build) = (spec.name, spec.build);
        variants(spec.params).into_iter().map(move |values| (name, values, build)).collect()
    };
    scorers::ALL.iter().flat_map::<Vec<_>, _>(all)
}

fn bits(scores: &[Vec<f64>]) -> Vec<Vec<u64>> {
    scores.iter().map(|row| row.iter().map(|score| score.to_bits()).collect()).collect()
}

proptest! {
    #[test]
    fn scores_are_finite_from_0_to_1_and_deterministic(sequence in questions()) {
        for (name, values, build) in all_scorers() {
            let scores = all_scores(&mut *build(&values, &CLUSTER), &sequence);
            for score in scores.iter().flatten() {
                prop_assert!((0.0..=1.0).contains(score), "{}: {score}", spell(name, &values));
            }
            let again = all_scores(&mut *build(&values, &CLUSTER), &sequence);
            prop_assert_eq!(bits(&scores), bits(&again));
        }
    }

    #[test]
    fn scoring_twice_gives_the_same_scores(sequence in questions()) {
        for (name, values, build) in all_scorers() {
            let mut scorer = build(&values, &CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let request = question.request(number);
                let mut once = vec![f64::NAN; question.instances.len()];
                let mut twice = vec![0.5; question.instances.len()];
                scorer.score(&request, &question.cluster(number), &mut once);
                scorer.score(&request, &question.cluster(number), &mut twice);
                prop_assert_eq!(once, twice, "{}", spell(name, &values));
                scorer.sent(&request, question.instances[0].id, question.cluster(number).now);
            }
        }
    }

    #[test]
    fn expected_hits_never_exceed_the_prompt(sequence in questions()) {
        for (name, values, build) in all_scorers() {
            let mut scorer = build(&values, &CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let request = question.request(number);
                let mut scores = vec![f64::NAN; question.instances.len()];
                scorer.score(&request, &question.cluster(number), &mut scores);
                for view in &question.instances {
                    let hits = scorer.expected_hit_blocks(view.id).unwrap_or(0);
                    prop_assert!(hits <= request.prompt_blocks.len(), "{}", name);
                }
                scorer.sent(&request, question.instances[0].id, question.cluster(number).now);
            }
        }
    }

    #[test]
    fn routers_choose_an_instance_that_exists_and_are_deterministic(sequence in questions()) {
        for policy in all_routers() {
            let routing = router(&policy, &PartsText::default());
            let first = decisions(&mut *routing.build(&CLUSTER), &sequence);
            for (choice, question) in first.iter().zip(&sequence) {
                prop_assert!(choice.instance.index() < question.instances.len(), "{}", policy);
            }
            prop_assert_eq!(first, decisions(&mut *routing.build(&CLUSTER), &sequence));
        }
    }

    #[test]
    fn pickers_pick_an_index_that_exists(
        scores in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..3.0_f64], 1..20),
        number in any::<u64>(),
    ) {
        for (spec, values) in pickers::ALL.iter().flat_map(|spec| {
            variants(spec.params).into_iter().map(move |values| (spec, values))
        }) {
            let build = || (spec.build)(&values, &CLUSTER);
            let pick = |dice: &mut Dice| build().pick(&scores.clone().into(), dice);
            let index = pick(&mut Question::dice(number));
            prop_assert!(index < scores.len(), "{}", spec.name);
            prop_assert_eq!(index, pick(&mut Question::dice(number)), "{}", spec.name);
            let positive = scores.iter().any(|score| *score > 0.0);
            // `random` promises to take anybody.
            let fair = spec.name == "random" || !positive || scores[index] > 0.0;
            prop_assert!(fair, "{} took a score of 0", spec.name);
        }
    }

    #[test]
    fn only_ratios_of_weights_matter_and_the_order_of_scorers_does_not(
        sequence in questions(),
        weights in prop::collection::vec(1_u32..1_000, scorers::ALL.len()),
        order in Just((0..scorers::ALL.len()).collect::<Vec<_>>()).prop_shuffle(),
        tenths in any::<bool>(),
    ) {
        let spell = |factor: u32, order: &[usize]| {
            let one = |at: &usize| {
                let weight = weights[*at] * factor;
                let point = if tenths { "." } else { "" };
                format!("{}:{}{point}{}", scorers::ALL[*at].name, weight / 10, weight % 10)
            };
            order.iter().map(one).collect::<Vec<_>>().join(",")
        };
        let sorted: Vec<usize> = (0..scorers::ALL.len()).collect();
        for picker in pickers::ALL {
            let decide = |text: &str| decisions(&mut *weighted(text, picker.name), &sequence);
            let plain = decide(&spell(1, &sorted));
            prop_assert_eq!(&plain, &decide(&spell(2, &sorted)));
            prop_assert_eq!(&plain, &decide(&spell(3, &sorted)));
            prop_assert_eq!(&plain, &decide(&spell(7, &order)));
        }
    }

    #[test]
    fn a_scorer_of_weight_0_is_as_good_as_absent(sequence in questions()) {
        let decide = |text: &str| decisions(&mut *weighted(text, "max-score"), &sequence);
        prop_assert_eq!(decide("pa:3,qd:2,kv:0,lb:0"), decide("pa:3,qd:2"));
    }

    #[test]
    fn one_instance_is_always_chosen(sequence in questions()) {
        let alone: Vec<Question> = sequence
            .iter()
            .map(|q| Question { instances: q.instances[..1].to_vec(), ..q.clone() })
            .collect();
        for spec in routing::ALL {
            let mut router = Chosen::<dyn Router>::plain(spec).build(&CLUSTER);
            let choices = decisions(&mut *router, &alone);
            prop_assert!(choices.iter().all(|choice| choice.instance.0 == 0), "{}", spec.name);
        }
    }
}

#[test]
fn clusters_without_blocks_or_instances_can_be_built_for() {
    let empty = blis_policy::Cluster {
        instances: 0,
        blocks: 0,
        block_size: 1,
        ..blis_policy::Cluster::SMALL
    };
    for spec in routing::ALL {
        let mut router = Chosen::<dyn Router>::plain(spec).build(&empty);
        let question = Question {
            prompt: Content::new(
                [Segment { stream: StreamId(1), tokens: 3 * CLUSTER.block_size }],
                StreamId(2),
            ),
            class: blis_core::SloClass::Standard,
            session: 0,
            round: 0,
            deadline: None,
            instances: vec![blis_policy::InstanceView::idle(InstanceId(0), 0)],
        };
        let choices = decisions(&mut *router, &[question.clone(), question]);
        // SGLang's router remembers as much whatever an instance holds.
        let blind = spec.name != "cache-aware";
        let hits = choices.iter().map(|choice| choice.intent.expected_hit_blocks.unwrap_or(0));
        assert!(!blind || hits.sum::<u32>() == 0, "{}", spec.name);
    }
}

/// Scorers whose score of an instance does not depend on which others there are.
const ABSOLUTE: &[&str] = &[
    "formula[formula=1 / (load + 1) * cached_share,scale=absolute]",
    "kv-pressure",
    "kv-pressure-slo",
    "kv-utilization",
    "load-balance",
    "precise-prefix",
    "predicted-latency[normalise=inverse]",
    "predicted-latency[normalise=inverse,error=0.5]",
    "prefix-affinity",
    "session",
    "slo-headroom[critical=500,batch=90]",
    "token-load[normalise=threshold,threshold=3000]",
];

/// `question` without every other instance.
fn half(question: &Question) -> Question {
    let instances = question.instances.iter().skip(1).step_by(2).copied().collect();
    Question { instances, ..question.clone() }
}

proptest! {
    #[test]
    fn an_absolute_score_is_the_same_among_fewer_instances(sequence in questions()) {
        for text in ABSOLUTE {
            let mut scorer = Chosen::<dyn Scorer>::parse(text).expect("legal").build(&CLUSTER);
            for (number, question) in (0..).zip(sequence.iter().filter(|q| q.instances.len() > 1)) {
                let (request, fewer) = (question.request(number), half(question));
                let mut scores = vec![f64::NAN; question.instances.len()];
                scorer.score(&request, &question.cluster(number), &mut scores);
                let mut of_fewer = vec![f64::NAN; fewer.instances.len()];
                scorer.score(&request, &fewer.cluster(number), &mut of_fewer);
                let same: Vec<f64> = scores.iter().skip(1).step_by(2).copied().collect();
                prop_assert_eq!(of_fewer, same, "{}", text);
                scorer.sent(&request, question.instances[0].id, question.cluster(number).now);
            }
        }
    }
}

/// What `filter` keeps of `cluster`, asked twice.
fn kept(
    filter: &mut dyn Filter,
    request: &RequestView<'_>,
    cluster: &ClusterView<'_>,
) -> Vec<bool> {
    let mut ask = || {
        let mut kept = vec![true; cluster.instances.len()];
        filter.keep(request, cluster, &mut Question::dice(request.id.0), &mut kept);
        kept
    };
    let once = ask();
    assert_eq!(once, ask(), "asking changes nothing");
    once
}

#[test]
fn filters_are_deterministic_and_work_on_fewer_instances() {
    let mut runner = TestRunner::deterministic();
    // How often a filter of each name kept some and left others out.
    let mut narrowed = vec![0_u32; filters::ALL.len()];
    for _ in 0..60 {
        let sequence = questions().new_tree(&mut runner).expect("questions").current();
        for (spec, narrowed) in filters::ALL.iter().zip(&mut narrowed) {
            for values in variants(spec.params) {
                let run = |fewer: bool| -> Vec<Vec<bool>> {
                    let mut filter = (spec.build)(&values, &CLUSTER);
                    let ask = |(number, question): (u64, &Question)| {
                        let shown = if fewer { half(question) } else { question.clone() };
                        let request = shown.request(number);
                        let kept = kept(&mut *filter, &request, &shown.cluster(number));
                        filter.sent(&request, question.instances[0].id, request.arrival);
                        kept
                    };
                    let asked = sequence.iter().filter(|q| !fewer || q.instances.len() > 1);
                    (0..).zip(asked).map(ask).collect()
                };
                let (first, of_fewer) = (run(false), run(true));
                assert_eq!(first, run(false), "{}", spell(spec.name, &values));
                assert_eq!(of_fewer, run(true), "{}", spell(spec.name, &values));
                let both = |kept: &&Vec<bool>| kept.contains(&true) && kept.contains(&false);
                *narrowed += u32::try_from(first.iter().filter(both).count()).unwrap();
            }
        }
    }
    assert!(narrowed.iter().all(|times| *times > 100), "{narrowed:?}");
}

proptest! {
    #[test]
    fn whatever_filters_leave_out_somebody_is_chosen_and_nobody_they_left_out(
        sequence in questions(),
    ) {
        for policy in ["weighted", "kv-adaptive", "epoch-adaptive"] {
            let parts = PartsText {
                filters: Some(
                    "kv-filter[max-utilization=0.5],prefix-affinity-filter[threshold=0.3],\
                     slo-headroom-filter[critical=20,standard=20,exploration=0.5]",
                ),
                picker: Some("weighted-random"),
                ..PartsText::default()
            };
            let mut router = router(policy, &parts).build(&CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let (request, cluster) = (question.request(number), question.cluster(number));
                let choice = router.route(&request, &cluster, &mut Question::dice(number));
                let total = router.totals()[choice.instance.index()];
                prop_assert!(total.is_finite(), "{}: {:?}", policy, router.totals());
                router.sent(&request, choice.instance, cluster.now);
            }
        }
    }
}
