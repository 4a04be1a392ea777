//! What weights do in the long run: closed forms about prefix affinity against load.

use crate::views::CLUSTER;
use blis_core::random::Purpose;
use blis_core::{
    Content, Dice, InstanceId, RequestId, RequestView, Segment, SloClass, StreamId, TenantId, Time,
};
use blis_policy::{ClusterView, Guests, InstanceView, PartsText, Router, Routing};
use proptest::prelude::*;

/// A prompt of blocks of stream `shared`, then of stream `own`.
fn prompt(shared: (u64, u32), own: (u64, u32)) -> Content {
    let segment = |(stream, blocks): (u64, u32)| Segment {
        stream: StreamId(stream),
        tokens: blocks * CLUSTER.block_size,
    };
    Content::new([segment(shared), segment(own)], StreamId(u64::MAX))
}

fn request(id: u64, prompt: &Content) -> RequestView<'_> {
    RequestView {
        id: RequestId(id),
        arrival: Time::ZERO,
        input_tokens: prompt.prompt_tokens(),
        prompt_blocks: prompt.prompt_blocks(CLUSTER.block_size),
        class: SloClass::Standard,
        tenant: TenantId(0),
        session: None,
        round: 0,
        attempt: 0,
        deadline: None,
    }
}

fn weighted(scorers: &str, picker: &str) -> Box<dyn Router> {
    let parts = PartsText {
        scorers: Some(scorers),
        picker: Some(picker),
        lru_capacity: Some(1_000_000),
        filters: None,
    };
    Routing::new("weighted", &[], &parts, &Guests::NONE).expect("legal").build(&CLUSTER)
}

/// Where `prompts` go, when nobody ever finishes.
fn places(router: &mut dyn Router, instances: u32, prompts: &[Content]) -> Vec<u32> {
    let mut views: Vec<InstanceView> =
        (0..instances).map(|id| InstanceView::idle(InstanceId(id), 1_000)).collect();
    let send = |(id, prompt): (u64, &Content)| {
        let request = request(id, prompt);
        let cluster = ClusterView { now: Time::ZERO, seed: 7, instances: &views, changed: None };
        let mut dice = Dice::new(7, Purpose::Routing, id);
        let choice = router.route(&request, &cluster, &mut dice);
        router.sent(&request, choice.instance, Time::ZERO);
        views[choice.instance.index()].queue_depth += 1;
        choice.instance.0
    };
    (0..).zip(prompts).map(send).collect()
}

proptest! {
    #[test]
    fn with_one_warm_instance_requests_stick_for_ever_exactly_if_their_match_outweighs_load(
        instances in 2_u32..6,
        blocks in 1_u32..20,
        matched in 0_u32..20,
        pa in 1_u32..10,
        qd in 1_u32..10,
    ) {
        let matched = matched.min(blocks);
        // At equality rounding decides.
        prop_assume!(pa * matched != qd * blocks);
        // 0 is warm; nothing else is ever sent, so only loads change from prompt to prompt.
        let warm = prompt((1, matched), (2, 0));
        let asked = prompt((1, matched), (3, blocks - matched));
        let mut router = weighted(&format!("pa:{pa},qd:{qd}"), "max-score[ties=lowest-index]");
        router.sent(&request(0, &warm), InstanceId(0), Time::ZERO);
        let sticks = |depth: u32, router: &mut dyn Router| {
            let mut views: Vec<InstanceView> =
                (0..instances).map(|id| InstanceView::idle(InstanceId(id), 1_000)).collect();
            views[0].queue_depth = depth;
            let (now, instances) = (Time::ZERO, &views[..]);
            let cluster = ClusterView { now, seed: 7, instances, changed: None };
            let mut dice = Dice::new(7, Purpose::Routing, 0);
            router.route(&request(1, &asked), &cluster, &mut dice).instance == InstanceId(0)
        };
        let outweighs = pa * matched > qd * blocks;
        for depth in [1, 2, 50, 100_000_000] {
            prop_assert_eq!(sticks(depth, &mut *router), outweighs, "{} waiting", depth);
        }
        prop_assert!(sticks(0, &mut *router), "an idle warm instance is always taken");
    }
}

#[test]
fn prefix_affinity_alone_with_positional_ties_puts_everything_on_the_first_instance() {
    let mixed: Vec<Content> = (0..200).map(|n| prompt((n % 7, 2), (1_000 + n, 3))).collect();
    let mut router = weighted("pa:1", "max-score[ties=lowest-index]");
    assert!(places(&mut *router, 4, &mixed).iter().all(|place| *place == 0));
}

#[test]
fn prefix_affinity_alone_never_spreads_a_prefix_however_ties_are_broken() {
    const GROUPS: usize = 40;
    let mixed: Vec<Content> =
        (0..800).map(|n| prompt((n % GROUPS as u64, 1), (1_000 + n, 3))).collect();
    let places = places(&mut *weighted("pa:1", "max-score"), 4, &mixed);
    let first = &places[..GROUPS];
    assert!((0..4).all(|place| first.contains(&place)), "cold prompts are spread: {first:?}");
    for round in places.chunks(GROUPS) {
        assert_eq!(round, first, "each prefix stays where its first prompt went");
    }
}

#[test]
fn a_little_weight_on_load_spreads_cold_prompts_and_nothing_else() {
    let cold: Vec<Content> = (0..40).map(|n| prompt((n, 2), (1_000 + n, 2))).collect();
    let spread = places(&mut *weighted("pa:10,qd:1", "max-score"), 4, &cold);
    assert!((0..4).all(|place| spread.iter().filter(|p| **p == place).count() == 10));
    let warm: Vec<Content> = (0..40).map(|n| prompt((1, 2), (1_000 + n, 2))).collect();
    let herd = places(&mut *weighted("pa:10,qd:1", "max-score"), 4, &warm);
    assert!(
        herd.iter().all(|place| *place == herd[0]),
        "half a match outweighs any load: {herd:?}"
    );
    // At half the weight it pays to spill, and then everybody is warm and load alone decides.
    let spilled = places(&mut *weighted("pa:1,qd:1", "max-score"), 4, &warm);
    assert!((0..4).all(|place| spilled.iter().filter(|p| **p == place).count() == 10));
}
