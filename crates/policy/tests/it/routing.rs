//! What every router, scorer and picker promises.

use crate::views::{CLUSTER, Question, questions};
use blis_core::{Content, Dice, Segment, StreamId, Values};
use blis_policy::routing::{self, pickers, scorers};
use blis_policy::spec::build_from_text;
use blis_policy::{Choice, Router, RoutingText, Scorer, build_router};
use proptest::prelude::*;

/// What `router` decides about `sequence`.
fn decisions(router: &mut dyn Router, sequence: &[Question]) -> Vec<Choice> {
    let mut decide = |(number, question): (u64, &Question)| {
        let mut dice = Question::dice(number);
        let (request, cluster) = (question.request(number), question.cluster(number));
        let choice = router.route(&request, &cluster, &mut dice.clone());
        assert_eq!(choice, router.route(&request, &cluster, &mut dice), "asking changes nothing");
        router.sent(&request, choice.instance, cluster.now);
        choice
    };
    (0..).zip(sequence).map(&mut decide).collect()
}

fn weighted(scorers: &str, picker: &str) -> Box<dyn Router> {
    let text = RoutingText {
        policy: "weighted",
        scorers: Some(scorers),
        filters: None,
        picker: Some(picker),
        lru_capacity: None,
    };
    build_router(&text, &CLUSTER).expect("legal").policy
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

fn bits(scores: &[Vec<f64>]) -> Vec<Vec<u64>> {
    scores.iter().map(|row| row.iter().map(|score| score.to_bits()).collect()).collect()
}

proptest! {
    #[test]
    fn scores_are_finite_from_0_to_1_and_deterministic(sequence in questions()) {
        for spec in scorers::ALL {
            let build = || (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            let scores = all_scores(&mut *build(), &sequence);
            for score in scores.iter().flatten() {
                prop_assert!((0.0..=1.0).contains(score), "{}: {score}", spec.name);
            }
            prop_assert_eq!(bits(&scores), bits(&all_scores(&mut *build(), &sequence)));
        }
    }

    #[test]
    fn scoring_twice_gives_the_same_scores(sequence in questions()) {
        for spec in scorers::ALL {
            let mut scorer = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let request = question.request(number);
                let mut once = vec![f64::NAN; question.instances.len()];
                let mut twice = vec![0.5; question.instances.len()];
                scorer.score(&request, &question.cluster(number), &mut once);
                scorer.score(&request, &question.cluster(number), &mut twice);
                prop_assert_eq!(once, twice, "{}", spec.name);
                scorer.sent(&request, question.instances[0].id, question.cluster(number).now);
            }
        }
    }

    #[test]
    fn expected_hits_never_exceed_the_prompt(sequence in questions()) {
        for spec in scorers::ALL {
            let mut scorer = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let request = question.request(number);
                let mut scores = vec![f64::NAN; question.instances.len()];
                scorer.score(&request, &question.cluster(number), &mut scores);
                for view in &question.instances {
                    let hits = scorer.expected_hit_blocks(view.id).unwrap_or(0);
                    prop_assert!(hits <= request.prompt_blocks.len(), "{}", spec.name);
                }
                scorer.sent(&request, question.instances[0].id, question.cluster(number).now);
            }
        }
    }

    #[test]
    fn routers_choose_an_instance_that_exists_and_are_deterministic(sequence in questions()) {
        for spec in routing::ALL {
            let build = || build_from_text("routing policy", routing::ALL, spec.name, &CLUSTER);
            let first = decisions(&mut *build().expect("legal").policy, &sequence);
            for (choice, question) in first.iter().zip(&sequence) {
                prop_assert!(choice.instance.index() < question.instances.len(), "{}", spec.name);
            }
            prop_assert_eq!(first, decisions(&mut *build().expect("legal").policy, &sequence));
        }
    }

    #[test]
    fn pickers_pick_an_index_that_exists(
        scores in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..3.0_f64], 1..20),
        number in any::<u64>(),
    ) {
        for spec in pickers::ALL {
            let build = || (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            let pick = |dice: &mut Dice| build().pick(&scores, dice);
            let index = pick(&mut Question::dice(number));
            prop_assert!(index < scores.len(), "{}", spec.name);
            prop_assert_eq!(index, pick(&mut Question::dice(number)), "{}", spec.name);
            let positive = scores.iter().any(|score| *score > 0.0);
            prop_assert!(!positive || scores[index] > 0.0, "{} took a score of 0", spec.name);
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
            let built = build_from_text("routing policy", routing::ALL, spec.name, &CLUSTER);
            let choices = decisions(&mut *built.expect("legal").policy, &alone);
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
        let built = build_from_text("routing policy", routing::ALL, spec.name, &empty);
        let question = Question {
            prompt: Content::new(
                [Segment { stream: StreamId(1), tokens: 3 * CLUSTER.block_size }],
                StreamId(2),
            ),
            class: blis_core::SloClass::Standard,
            session: 0,
            round: 0,
            deadline: None,
            instances: vec![blis_policy::InstanceView::idle(blis_core::InstanceId(0), 0)],
        };
        let choices = decisions(&mut *built.expect("legal").policy, &[question.clone(), question]);
        assert!(choices.iter().all(|choice| choice.intent.expected_hit_blocks.unwrap_or(0) == 0));
    }
}
