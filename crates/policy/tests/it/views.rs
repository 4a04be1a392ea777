//! Random views of a cluster and of the requests that meet it.

use blis_core::random::Purpose;
use blis_core::{
    Content, Dice, InstanceId, RequestId, RequestView, Segment, SessionId, SloClass, Span,
    StreamId, TenantId, Time,
};
use blis_policy::{Cluster, ClusterView, InstanceView};
use proptest::prelude::*;

/// The cluster that policies are built for.
pub(crate) const CLUSTER: Cluster = Cluster {
    instances: 8,
    blocks: 60,
    ttft_targets: [
        Some(Span::from_micros(10_000)),
        Some(Span::from_micros(15_000)),
        None,
        Some(Span::from_micros(20_000)),
        None,
    ],
    ..Cluster::SMALL
};

/// One routing decision to be made: a request, and what is known of the instances.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) prompt: Content,
    pub(crate) class: SloClass,
    pub(crate) session: u64,
    pub(crate) round: u32,
    pub(crate) deadline: Option<Span>,
    pub(crate) instances: Vec<InstanceView>,
}

impl Question {
    /// The request; `number` is its place in the sequence.
    pub(crate) fn request(&self, number: u64) -> RequestView<'_> {
        RequestView {
            id: RequestId(number),
            arrival: Time::from_micros(number * 1_000),
            input_tokens: self.prompt.prompt_tokens(),
            prompt_blocks: self.prompt.prompt_blocks(CLUSTER.block_size),
            class: self.class,
            tenant: TenantId(0),
            session: Some(SessionId(self.session)),
            round: self.round,
            attempt: 0,
            deadline: self.deadline,
        }
    }

    /// What the gateway knows when request `number` comes.
    pub(crate) fn cluster(&self, number: u64) -> ClusterView<'_> {
        let now = Time::from_micros(number * 1_000);
        ClusterView { now, seed: 5, instances: &self.instances, changed: None }
    }

    /// The routing dice of request `number`.
    pub(crate) fn dice(number: u64) -> Dice {
        Dice::new(5, Purpose::Routing, number)
    }
}

/// A sequence of questions about clusters of one size, from one instance to eight.
pub(crate) fn questions() -> impl Strategy<Value = Vec<Question>> {
    (1..=8_usize).prop_flat_map(|size| prop::collection::vec(question(size), 1..25))
}

fn question(size: usize) -> impl Strategy<Value = Question> {
    let instances = prop::collection::vec(instance(), size).prop_map(|mut views| {
        for (id, view) in (0..).zip(&mut views) {
            view.id = InstanceId(id);
        }
        views
    });
    // All instances alike is rare at random, and where ties and divisions by zero are.
    let alike = instance().prop_map(move |view| {
        (0..).take(size).map(|id| InstanceView { id: InstanceId(id), ..view }).collect()
    });
    let class = prop::sample::select(SloClass::ALL.to_vec());
    let session = (0..5_u64, 0..3_u32);
    let deadline = prop::option::of((0..10_000_000_u64).prop_map(Span::from_micros));
    let instances = prop_oneof![4 => instances.boxed(), 1 => alike.boxed()];
    (prompt(), class, session, deadline, instances).prop_map(
        |(prompt, class, (session, round), deadline, mut instances)| {
            // Nobody has more of a prompt than there is.
            let blocks = prompt.prompt_blocks(CLUSTER.block_size).len();
            for view in &mut instances {
                view.cached_blocks = view.cached_blocks.min(blocks);
                view.cached_cpu_blocks = view.cached_cpu_blocks.min(blocks - view.cached_blocks);
            }
            Question { prompt, class, session, round, deadline, instances }
        },
    )
}

/// Prompts that share prefixes, and some that fill no block.
pub(crate) fn prompt() -> impl Strategy<Value = Content> {
    (1..4_u64, 0..6_u32, 0..6_u64, 0..8_u32).prop_map(|(system, shared, tail, own)| {
        let size = CLUSTER.block_size;
        let head = Segment { stream: StreamId(system), tokens: shared * size };
        let tail = Segment { stream: StreamId(100 + tail), tokens: own * size + 3 };
        Content::new([head, tail], StreamId(u64::MAX))
    })
}

pub(crate) fn instance() -> impl Strategy<Value = InstanceView> {
    let counts = (0..9_u32, 0..9_u32, 0..4_u32, 0..40_u32, any::<bool>());
    (counts, 0.0..=1.0_f64, 0.0..=1.0_f64).prop_map(
        |((queue_depth, running, unseen, in_flight, busy), utilization, hit_rate)| {
            let extreme = if busy { 1_000_000 } else { 0 };
            InstanceView {
                queue_depth: queue_depth + if queue_depth == 8 { extreme } else { 0 },
                running,
                waiting_by_class: [queue_depth / 5; 5],
                in_flight,
                in_flight_tokens: u64::from(in_flight) * 300,
                unstarted_tokens: u64::from(unseen) * 200,
                unseen,
                kv_utilization: if queue_depth == 7 { 1.0 } else { utilization },
                free_blocks: if queue_depth == 7 { 0 } else { 30 },
                cache_hit_rate: hit_rate,
                pending_transfer_us: f64::from(in_flight) * 1e3,
                thrashing_rate: hit_rate,
                cached_blocks: running,
                cached_cpu_blocks: unseen,
                ..InstanceView::idle(InstanceId(0), 60)
            }
        },
    )
}
