//! Random small worlds, and what happened in them, so that no property passes without having been
//! tested.

use crate::harness::{Scenario, Told, prompted, small_world};
use crate::speculation::{any_drafts, any_prefill};
use blis_core::{Content, Request, Segment, SessionId, SloClass, Span, StreamId, Time};
use blis_kv::LinkSpeed;
use blis_latency::profile::padding::{Padding, Sizes};
use blis_latency::profile::{Gap, Parameters, Range, VARIABLES};
use blis_latency::{HostTime, Profile, StepShape, StepTime};
use blis_metrics::{Stage, Status};
use blis_sim::{Engine, Freshness, Gateway, KvTier, Pace, Pool, Preemption, Reload, Signals};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Arc;

/// A latency model that looks at context lengths, so that equal batches take unequal steps.
#[derive(Debug)]
pub(crate) struct ContextBound;

impl StepTime for ContextBound {
    fn predict(&self, shape: &StepShape) -> Span {
        let pairs = shape.prefill_attention_pairs + shape.decode_context;
        let seqs = u64::from(shape.prefill_tokens + shape.decode_seqs);
        Span::from_nanos(50_000 + 7 * pairs + 300 * seqs + shape.prefill_past_tokens)
    }

    fn ingress(&self, input_tokens: u32) -> Span {
        Span::from_nanos(u64::from(input_tokens) * 100)
    }

    fn output(&self, seqs: u32) -> Span {
        Span::from_nanos(7 + 3 * u64::from(seqs))
    }

    fn context_free(&self) -> bool {
        false
    }
}

/// A latency model with an engine's host: a span for each of its parts, in us, and 1 us more to
/// launch a sequence.
#[derive(Debug)]
pub(crate) struct Hosted(pub(crate) Arc<dyn StepTime>, pub(crate) [u64; 4]);

impl StepTime for Hosted {
    fn predict(&self, shape: &StepShape) -> Span {
        self.0.predict(shape)
    }

    fn host(&self, shape: &StepShape) -> HostTime {
        let [schedule, prepare, launch, update] = self.1.map(Span::from_micros);
        let seqs = u64::from(shape.prefill_seqs + shape.decode_seqs);
        HostTime { schedule, prepare, launch: launch + Span::from_micros(seqs), update }
    }

    fn ingress(&self, input_tokens: u32) -> Span {
        self.0.ingress(input_tokens)
    }

    fn output(&self, seqs: u32) -> Span {
        self.0.output(seqs)
    }

    fn context_free(&self) -> bool {
        self.0.context_free()
    }

    fn repeats(&self, shape: &StepShape) -> u32 {
        self.0.repeats(shape)
    }

    fn wants_spread(&self) -> bool {
        self.0.wants_spread()
    }

    fn beyond(&self, shape: &StepShape) -> u32 {
        self.0.beyond(shape)
    }
}

/// A fitted model that looks at contexts by blocks, at the longest of them and at what is shared,
/// and of which some steps are an extrapolation.
fn fitted() -> Profile {
    let terms_us = [
        60.0, 0.3, 0.1, 0.2, 0.11, 0.03, 0.02, 0.05, 2.0, 9.0, 3.0, 0.7, 0.01, 1.3, 0.4, 0.9, 0.07,
        0.02, 0.05, 0.6,
    ];
    let mut ranges = [Some(Range { min: 0.0, max: 1e6 }); VARIABLES.len()];
    ranges[0] = Some(Range { min: 1.0, max: 3.0 });
    ranges[2] = Some(Range { min: 1.0, max: 40.0 });
    let parameters = Parameters {
        padding: Padding {
            decode: Sizes { listed: vec![1, 2, 4], then_multiples_of: 4 },
            prefill: Sizes { listed: vec![8, 20, 32], then_multiples_of: 16 },
        },
        usual_spread: 1.5,
        split_attention: false,
        terms_us,
        sizes_us: vec![(20, 11.0)],
        gap: Gap { step_us: 4.0, decode_seq_us: 0.3, prefill_seq_us: 1.1 },
        host: None,
        ranges,
        covariance: Vec::new(),
        drift: 0.0,
        provenance: Vec::new(),
    };
    Profile::new(parameters).expect("legal")
}

/// Runs `property` on `cases` random worlds, the same ones every time, and returns what happened in
/// all of them.
pub(crate) fn in_random_worlds(
    cases: u32,
    property: impl Fn(&Scenario) -> Result<Told, TestCaseError>,
) -> Coverage {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let coverage = std::cell::RefCell::new(Coverage::default());
    let outcome = TestRunner::new_with_rng(config, rng).run(&world(), |scenario| {
        let told = property(&scenario)?;
        coverage.borrow_mut().add(&scenario, &told);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    coverage.into_inner()
}

/// How many worlds had it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) worlds: u32,
    pub(crate) preemption: u32,
    pub(crate) chunked_prefill: u32,
    pub(crate) prefix_hit: u32,
    pub(crate) eviction: u32,
    pub(crate) judged_eviction: u32,
    pub(crate) foreseen_eviction: u32,
    pub(crate) chosen_victim: u32,
    pub(crate) priority_order: u32,
    pub(crate) queue: u32,
    pub(crate) rejection: u32,
    pub(crate) unservable: u32,
    pub(crate) horizon: u32,
    pub(crate) several_instances: u32,
    /// Two pools with different engines and latency models, both of which work.
    pub(crate) two_pools: u32,
    pub(crate) several_gateways: u32,
    pub(crate) stale_signals: u32,
    pub(crate) late_events: u32,
    pub(crate) uneven_steps: u32,
    pub(crate) extrapolation: u32,
    pub(crate) offload: u32,
    pub(crate) stall: u32,
    pub(crate) reload: u32,
    pub(crate) loading: u32,
    pub(crate) unloading: u32,
    /// By where the request was: on the way, waiting, loading, running, preempted.
    pub(crate) abandoned: [u32; 5],
    /// Asynchronous scheduling, and a host that holds up the GPU.
    pub(crate) ahead: u32,
    pub(crate) host_bound: u32,
    pub(crate) piped: u32,
    /// With a step under way: preempted before its first token, before its last, dropped.
    pub(crate) in_flight: [u32; 3],
}

impl Coverage {
    fn add(&mut self, scenario: &Scenario, told: &Told) {
        let queued = told.closed.iter().any(|ended| ended.split.queue > Span::ZERO);
        let hit = told.closed.iter().any(|ended| ended.cached.is_some_and(|cached| cached > 0));
        let longest = scenario.requests.iter().map(|r| r.content.prompt_tokens()).max();
        let engine = &scenario.engine;
        let chunk = match engine.long_prefill_token_threshold {
            0 => engine.max_num_scheduled_tokens,
            threshold => threshold.min(engine.max_num_scheduled_tokens),
        };
        self.worlds += 1;
        self.preemption += u32::from(told.count("Preempted") > 0);
        self.chunked_prefill += u32::from(longest > Some(chunk));
        self.prefix_hit += u32::from(hit);
        let evicts = told.count("Evicted") > 0;
        self.eviction += u32::from(evicts);
        self.judged_eviction += u32::from(evicts && scenario.evict != "lru");
        self.foreseen_eviction += u32::from(evicts && scenario.evict == "belady");
        let preempts = told.count("Preempted") > 0;
        self.chosen_victim += u32::from(preempts && scenario.preempt != "tail");
        self.priority_order += u32::from(queued && scenario.order != "fcfs");
        self.queue += u32::from(queued);
        self.rejection += u32::from(told.count("Rejected") > 0);
        self.unservable += u32::from(told.count("Unservable") > 0);
        self.horizon += u32::from(scenario.horizon.is_some());
        self.several_instances += u32::from(scenario.size() > 1);
        self.several_gateways += u32::from(scenario.size() > 1 && scenario.gateways > 1);
        let steps = |(_, lane, fact): &(Time, u32, String)| {
            fact.starts_with("Steps").then_some(*lane > scenario.instances)
        };
        let mut works = [false; 2];
        told.facts.iter().filter_map(steps).for_each(|second| works[usize::from(second)] = true);
        self.two_pools += u32::from(works == [true, true]);
        self.stale_signals += u32::from(scenario.signals.load != Freshness::Immediate);
        let precise = scenario.scorers.is_some_and(|s| s.contains("pp:") || s.contains("precise"));
        self.late_events += u32::from(precise && scenario.signals.event_delay > Span::ZERO && hit);
        self.uneven_steps += u32::from(!scenario.latency.context_free());
        self.extrapolation += u32::from(told.outcome.extrapolated.steps > 0);
        self.offload += u32::from(told.count("Offloaded") > 0);
        self.stall += u32::from(told.count("Stalled") > 0);
        self.reload += u32::from(told.count("Reloading") > 0);
        self.loading += u32::from(told.count("Reloaded") > 0);
        self.unloading += u32::from(told.count("Unloaded") > 0);
        for (worlds, met) in self.abandoned.iter_mut().zip(places_of_abandonment(told)) {
            *worlds += u32::from(met);
        }
        let ahead = engine.async_scheduling && told.count("Steps") > told.count("ahead: Span(0)");
        self.ahead += u32::from(ahead);
        let sync = engine.stages > 1 && !engine.async_scheduling;
        self.piped += u32::from(sync && told.count("Steps") > told.count("ahead: Span(0)"));
        let host = scenario.latency.host(&StepShape::default());
        self.host_bound += u32::from(ahead && host.launch > Span::from_micros(500));
        let in_flight = [
            first_token_after_preemption(told),
            told.count("ended: true") > 0,
            told.count("under_way: ") > told.count("under_way: 0"),
        ];
        for (worlds, met) in self.in_flight.iter_mut().zip(in_flight) {
            *worlds += u32::from(met);
        }
    }

    /// Panics unless at least `share` of the worlds had each of the things that make scheduling
    /// hard.
    pub(crate) fn guard(&self, share: f64) {
        let least = share * f64::from(self.worlds);
        for (what, worlds) in [
            ("preemption", self.preemption),
            ("chunked prefill", self.chunked_prefill),
            ("prefix hits", self.prefix_hit),
            ("eviction", self.eviction),
            ("priority orders", self.priority_order),
            ("queues", self.queue),
            ("rejection", self.rejection),
            ("unservable requests", self.unservable),
            ("horizon", self.horizon),
            ("several instances", self.several_instances),
            ("several gateways", self.several_gateways),
            ("two pools that work", self.two_pools),
            ("stale signals", self.stale_signals),
            ("late KV events", self.late_events),
            ("uneven steps", self.uneven_steps),
            ("extrapolated steps", self.extrapolation),
            ("offloading", self.offload),
            ("stalls", self.stall),
            ("reloads", self.reload),
            ("requests that load on their own", self.loading),
            ("clients that give up on the way", self.abandoned[0]),
            ("clients that give up in the queue", self.abandoned[1]),
            ("clients that give up in the batch", self.abandoned[3]),
            ("asynchronous scheduling", self.ahead),
            ("a host that holds up the GPU", self.host_bound),
            ("several steps in a pipeline", self.piped),
        ] {
            assert!(
                f64::from(worlds) >= least,
                "{what} in only {worlds} of {} worlds",
                self.worlds
            );
        }
    }
}

/// Whether somebody got its first token after it was preempted and before it was scheduled again.
fn first_token_after_preemption(told: &Told) -> bool {
    let mut preempted = Vec::new();
    told.facts.iter().any(|(_, _, fact)| {
        let request = fact.split("RequestId(").nth(1).and_then(|rest| rest.split(')').next());
        let Some(request) = request else { return false };
        match fact.split(' ').next() {
            Some("Preempted") => preempted.push(request),
            Some("Scheduled") => preempted.retain(|other| *other != request),
            Some("FirstToken") => return preempted.contains(&request),
            _ => {}
        }
        false
    })
}

/// Whether a client gave up on the way, in the queue, while loading, running, after a preemption.
fn places_of_abandonment(told: &Told) -> [bool; 5] {
    let any = |stage: Stage, preempted: bool| {
        told.closed.iter().any(|ended| {
            ended.status == Status::Abandoned(stage) && (ended.preemptions > 0) == preempted
        })
    };
    [
        any(Stage::Gateway, false),
        any(Stage::Waiting, false),
        any(Stage::Loading, false) || any(Stage::Loading, true),
        any(Stage::Running, false) || any(Stage::Running, true),
        any(Stage::Waiting, true),
    ]
}

prop_compose! {
    fn tier()(
        blocks in 1_u32..90,
        base in prop::sample::select(vec![0_u64, 0, 5, 30]),
        speeds in prop::sample::select(vec![(0.02, 0.02), (0.5, 0.1), (f64::INFINITY, 2.0)]),
        reload in prop::sample::select(vec![Reload::Blocking, Reload::Async, Reload::Async]),
        window in prop::sample::select(vec![0_u64, 500, 1_000_000]),
    ) -> KvTier {
        let link = |blocks_per_us| LinkSpeed { base: Span::from_micros(base), blocks_per_us };
        KvTier {
            blocks,
            out: link(speeds.0),
            back: link(speeds.1),
            reload,
            thrashing_window: Span::from_micros(window),
        }
    }
}

prop_compose! {
    fn engine()(
        total_kv_blocks in 6_u32..60,
        block_size in prop::sample::select(vec![1_u32, 2, 4, 8]),
        max_num_running_reqs in 1_u32..9,
        max_num_scheduled_tokens in 3_u32..50,
        long_prefill_token_threshold in prop::sample::select(vec![0_u32, 0, 2, 7]),
        reserve_full_prompt in any::<bool>(),
        watermark_blocks in prop::sample::select(vec![0_u32, 0, 1, 3]),
        async_scheduling in any::<bool>(),
        cache_on_allocation in any::<bool>(),
        prefill in any_prefill(),
        preemption in prop::sample::select(vec![Preemption::Recompute, Preemption::Swap]),
        tier in prop::option::weighted(0.7, tier()),
        speculation in any_drafts(),
        pipeline in prop::option::weighted(0.7, 2_u32..5),
    ) -> Engine {
        // Neither a tier nor drafts are modelled in a pipeline.
        let stages = pipeline.filter(|_| tier.is_none()).unwrap_or(1);
        let speculation = speculation.filter(|_| stages == 1);
        Engine {
            total_kv_blocks, block_size, max_num_running_reqs, max_num_scheduled_tokens,
            long_prefill_token_threshold, reserve_full_prompt, watermark_blocks, async_scheduling,
            cache_on_allocation, prefill, preemption, tier, speculation, stages,
        }
    }
}

prop_compose! {
    fn latency()(
        model in 0_u32..10,
        // A host that takes no time, little, about as long as the GPU, more.
        host in prop::sample::select(vec![
            None, None, Some([3, 5, 15, 2]), Some([60, 10, 30, 30]), Some([100, 0, 900, 60]),
            Some([20, 400, 1_500, 9]),
        ]),
    ) -> Arc<dyn StepTime> {
        let gpu: Arc<dyn StepTime> = match model {
            0..5 => small_world().latency,
            5..7 => Arc::new(ContextBound),
            _ => Arc::new(fitted()),
        };
        match host {
            None => gpu,
            Some(host) => Arc::new(Hosted(gpu, host)),
        }
    }
}

prop_compose! {
    fn pool()(count in 1_u32..3, engine in engine(), latency in latency()) -> Pool {
        Pool { name: "second".to_owned(), count, engine, latency }
    }
}

prop_compose! {
    fn arrival()(
        at_us in 0_u64..4_000,
        shared in (0_u64..3, 0_u32..24),
        own in 1_u32..24,
        output in prop::sample::select(vec![1_u32, 1, 2, 5, 13, 40]),
        class in prop::sample::select(SloClass::ALL.to_vec()),
        same_answer in prop::bool::weighted(0.1),
        session in prop::option::weighted(0.3, 0_u64..5),
        patience_us in prop::option::weighted(0.12, prop_oneof![1_u64..160, 160_u64..9_000]),
    ) -> Request {
        let mut request = prompted(at_us, &[shared, (u64::MAX, own)], output);
        request.class = class;
        request.session = session.map(SessionId);
        request.patience = patience_us.map(Span::from_micros);
        if same_answer {
            // Twins: prompt and answer are one shared stream, so equal blocks are computed side by
            // side.
            let segment = Segment { stream: StreamId(shared.0), tokens: shared.1 + own };
            request.content = Content::new(vec![segment], StreamId(shared.0));
        }
        request
    }
}

prop_compose! {
    fn world()(
        engine in engine(),
        requests in prop::collection::vec(arrival(), 1..24),
        instances in 1_u32..4,
        gateways in prop::sample::select(vec![1_u32, 1, 1, 2, 3]),
        routing in prop::sample::select(vec![
            ("round-robin", None), ("least-loaded", None), ("random", None),
            ("weighted", None), ("weighted", Some("pa:1,kv:1")), ("weighted", Some("lb:1")),
            ("weighted", Some("pp:2,qd:1")), ("weighted", Some("pp:1,session:1,token-load:1")),
            ("weighted", Some("predicted-latency[knowledge=precise,error=0.5]:1,no-hit-lru:1")),
            ("weighted", Some("cost-benefit:2,slo-headroom:1,kv-pressure-slo:1")),
            ("power-of-two", None), ("consistent-hash", None), ("session-affinity", None),
            ("kv-adaptive", None), ("epoch-adaptive", None),
        ]),
        event_delay_us in prop::sample::select(vec![0_u64, 40, 800, 6_000]),
        speculation_us in prop::option::of(0_u64..3_000),
        order in prop::sample::select(vec![
            "fcfs", "fcfs", "priority-fcfs", "priority-fcfs", "sjf", "reverse-priority",
            "edf[horizon=0.004]", "cache-first[patience=0.003]",
            "cache-first[by=expected,patience=0.003]",
        ]),
        priority in prop::sample::select(vec![
            "constant", "slo-class", "slo-tiered[age-weight=1000,grace-batch=2]", "age",
            "deadline[horizon=0.006]",
        ]),
        preempt in prop::sample::select(vec![
            "tail", "lowest-priority", "least-progress", "fewest-blocks",
        ]),
        evict in prop::sample::select(vec![
            "lru", "lru", "lfu", "slo-aware", "session-aware[grace=0.002]", "belady",
            "intent-aware[routed=0.003,live=0.005,per-priority=0.001]",
        ]),
        offload in prop::sample::select(vec![
            "threshold[threshold=0]", "threshold[threshold=0.6]", "on-evict", "write-through",
            "vllm", "vllm",
        ]),
        interval_us in prop::sample::select(vec![0_u64, 0, 1, 77, 900]),
        admission in prop::sample::select(vec![
            "always-admit", "always-admit", "always-admit",
            "token-bucket[capacity=60,refill-rate=9000]", "kv-gate[standard=true]",
            "all-of(slo-gated[threshold=1]; latency-slo[ttft=8,cached=events,cold=0])",
            "any-of(probabilistic; burst-throttle[slack=1]; session-backpressure[threshold=2])",
        ]),
        latencies in prop::sample::select(vec![(0_u64, 0_u64), (0, 0), (13, 5)]),
        latency in latency(),
        beside in prop::option::weighted(0.3, pool()),
        horizon in prop::option::weighted(0.2, 0_u64..20_000),
        patience_us in prop::option::weighted(0.15, 1_000_u64..12_000),
        seed in any::<u64>(),
    ) -> Scenario {
        let (admission_us, routing_us) = latencies;
        let block_size = engine.block_size;
        let adjusted = |mut engine: Engine| {
            engine.block_size = block_size;
            if let (Some(tier), "vllm") = (&mut engine.tier, offload) {
                (tier.reload, engine.preemption) = (Reload::Async, Preemption::Recompute);
                // Otherwise requests that begin in each other's way are all preempted, for ever.
                engine.reserve_full_prompt |= engine.async_scheduling;
            }
            engine
        };
        Scenario {
            engine: adjusted(engine),
            latency,
            beside: beside.map(|pool| Pool { engine: adjusted(pool.engine), ..pool }),
            instances,
            gateways,
            routing: routing.0,
            scorers: routing.1,
            order,
            priority,
            preempt,
            evict,
            offload,
            admission,
            seed,
            gateway: Gateway {
                admission_latency: Span::from_micros(admission_us),
                routing_latency: Span::from_micros(routing_us),
            },
            signals: Signals {
                event_delay: Span::from_micros(event_delay_us),
                speculation: speculation_us.map(Span::from_micros),
                ..match interval_us {
                    0 => Signals::IMMEDIATE,
                    micros => Signals::periodic(Span::from_micros(micros)),
                }
            },
            horizon: horizon.map(Time::from_micros),
            warmup: Time::from_micros(seed % 3_000),
            patience: patience_us.map(Span::from_micros),
            pace: Pace::FastForward,
            ..small_world().with(requests)
        }
    }
}
