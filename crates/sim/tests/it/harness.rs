//! Small worlds for tests: requests by hand, policies by name, every fact written down, audited.

use blis_core::{
    Content, InstanceId, Request, RequestId, Segment, SloClass, Source, Span, StreamId, TenantId,
    Time,
};
use blis_latency::{Coefficients, StepTime};
use blis_metrics::{
    Audit, Fact, Fanout, Listener, Lives, Reading, Record, RunEnd, Status, Transcript, TtftSplit,
};
use blis_policy::{Chosen, Cluster, Gate, Guests, Needs, PartsText, Router, Routing};
use blis_sim::{
    Config, Engine, Future, Gateway, Instead, Oracles, Outcome, Pace, Policies, Pool, Preemption,
    Prefill, Signals, Unobserved,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

/// A scenario for tests. Change what matters, then [`Scenario::run`].
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// Instances of the first pool, which has the engine and the latency model below.
    pub(crate) instances: u32,
    /// The second pool.
    pub(crate) beside: Option<Pool>,
    pub(crate) gateways: u32,
    pub(crate) engine: Engine,
    pub(crate) gateway: Gateway,
    pub(crate) signals: Signals,
    pub(crate) patience: Option<Span>,
    pub(crate) admission: &'static str,
    pub(crate) routing: &'static str,
    pub(crate) evict: &'static str,
    pub(crate) preempt: &'static str,
    pub(crate) offload: &'static str,
    pub(crate) scorers: Option<&'static str>,
    pub(crate) order: &'static str,
    pub(crate) priority: &'static str,
    pub(crate) latency: Arc<dyn StepTime>,
    pub(crate) oracles: Oracles,
    pub(crate) overrule: Option<(RequestId, Instead)>,
    pub(crate) horizon: Option<Time>,
    pub(crate) warmup: Time,
    pub(crate) pace: Pace,
    pub(crate) seed: u64,
    pub(crate) sample_interval: Option<Span>,
    pub(crate) requests: Vec<Request>,
}

/// What a run said.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// Every fact, as (time, lane, text): lane 0 is the gateway, lane n + 1 instance n. In order of
    /// time and lane; runs of equal steps are told step by step, so that how they were taken makes
    /// no difference.
    pub(crate) facts: Vec<(Time, u32, String)>,
    /// How each request ended, by id.
    pub(crate) closed: Vec<Ended>,
    /// Blocks in use at the end of steps, by time and lane. A run of steps tells only its last.
    pub(crate) blocks_in_use: BTreeMap<(Time, u32), u32>,
    /// Samples in the order in which they were stated.
    pub(crate) samples: Vec<(Time, InstanceId, Reading)>,
    /// Who was preempted, in that order for each instance.
    pub(crate) victims: Vec<Victim>,
    pub(crate) outcome: Outcome,
}

/// A preempted request, and those that ran beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Victim {
    pub(crate) request: u64,
    pub(crate) beside: Vec<u64>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) request: u64,
    pub(crate) status: Status,
    pub(crate) instance: Option<u32>,
    pub(crate) ttft: Option<Span>,
    pub(crate) e2e: Option<Span>,
    pub(crate) cached: Option<u32>,
    pub(crate) preemptions: u32,
    pub(crate) output_tokens: u32,
    pub(crate) split: TtftSplit,
}

/// One instance with 16-token blocks and coefficients that are easy to add up: ingress 100 + 1 per
/// prompt token, step 1000 + 2 per prefill token + 3 per decode token, output 10, all in
/// microseconds.
pub(crate) fn small_world() -> Scenario {
    Scenario {
        instances: 1,
        beside: None,
        gateways: 1,
        engine: Engine {
            total_kv_blocks: 1000,
            block_size: 16,
            max_num_running_reqs: 256,
            max_num_scheduled_tokens: 2048,
            long_prefill_token_threshold: 0,
            reserve_full_prompt: true,
            watermark_blocks: 0,
            async_scheduling: false,
            stages: 1,
            cache_on_allocation: false,
            prefill: Prefill::Mixed,
            preemption: Preemption::Recompute,
            tier: None,
            speculation: None,
        },
        gateway: Gateway::default(),
        signals: Signals::IMMEDIATE,
        patience: None,
        admission: "always-admit",
        routing: "round-robin",
        evict: "lru",
        preempt: "tail",
        offload: "threshold",
        scorers: None,
        order: "fcfs",
        priority: "constant",
        latency: Arc::new(
            Coefficients::new([100.0, 1.0, 10.0], [1000.0, 2.0, 3.0]).expect("legal"),
        ),
        oracles: Oracles::default(),
        overrule: None,
        horizon: None,
        warmup: Time::ZERO,
        pace: Pace::FastForward,
        seed: 1,
        sample_interval: None,
        requests: Vec::new(),
    }
}

/// A request of one private stream.
pub(crate) fn request(arrival_us: u64, prompt: u32, output: u32) -> Request {
    prompted(arrival_us, &[(u64::MAX, prompt)], output)
}

/// A request whose prompt is the given (stream, tokens) segments; stream `u64::MAX` is private to
/// the request.
pub(crate) fn prompted(arrival_us: u64, segments: &[(u64, u32)], output: u32) -> Request {
    let segment = |&(stream, tokens): &(u64, u32)| Segment { stream: StreamId(stream), tokens };
    Request {
        id: RequestId(0),
        name: None,
        arrival: Time::from_micros(arrival_us),
        content: Content::new(segments.iter().map(segment), StreamId(u64::MAX)),
        output_tokens: output,
        class: SloClass::Standard,
        tenant: TenantId(0),
        session: None,
        round: 0,
        attempt: 0,
        deadline: None,
        patience: None,
    }
}

impl Scenario {
    pub(crate) fn with(mut self, requests: Vec<Request>) -> Scenario {
        self.requests = requests;
        self
    }

    pub(crate) fn paced(&self, pace: Pace) -> Scenario {
        Scenario { pace, ..self.clone() }
    }

    /// Runs with `router` instead of the one that is named; it may read everything but `events`,
    /// and these if so told.
    pub(crate) fn run_routed_by(&self, router: Box<dyn Router>, events: bool) -> Outcome {
        let mut config = self.config();
        config.policies.gateways[0].router = router;
        config.policies.router_needs = Needs {
            load: true,
            classes: true,
            kv: true,
            hit_rate: true,
            transfers: self.engine.tier.is_some(),
            events,
            ..Needs::NONE
        };
        let mut source = Listed::new(self.requests.clone());
        let mut nobody = Fanout::new(Vec::new());
        blis_sim::run(config, &mut source, &mut nobody, &mut Unobserved).expect("cannot fail")
    }

    /// The pools of the cluster.
    pub(crate) fn pools(&self) -> Vec<Pool> {
        let (name, latency) = ("first".to_owned(), Arc::clone(&self.latency));
        let first = Pool { name, count: self.instances, engine: self.engine, latency };
        [first].into_iter().chain(self.beside.clone()).collect()
    }

    /// The pool of an instance.
    pub(crate) fn pool_of(&self, instance: u32) -> Pool {
        self.pools().swap_remove(usize::from(instance >= self.instances))
    }

    /// How many instances there are.
    pub(crate) fn size(&self) -> u32 {
        self.pools().iter().map(|pool| pool.count).sum()
    }

    pub(crate) fn config(&self) -> Config {
        let cluster = Cluster {
            instances: self.size(),
            blocks: self.engine.total_kv_blocks,
            block_size: self.engine.block_size,
            ..Cluster::SMALL
        };
        let parts = PartsText { scorers: self.scorers, ..PartsText::default() };
        let policies = blis_policy::Policies {
            admission: Gate::new(self.admission, &[], &Guests::NONE).expect("legal"),
            routing: Routing::new(self.routing, &[], &parts, &Guests::NONE).expect("legal"),
            order: Chosen::parse(self.order).expect("legal"),
            priority: Chosen::parse(self.priority).expect("legal"),
            preempt: Chosen::parse(self.preempt).expect("legal"),
            evict: Chosen::parse(self.evict).expect("legal"),
            offload: Chosen::parse(self.offload).expect("legal"),
        };
        let future = policies.evict.needs().future.then(|| {
            let mut source = Listed::new(self.requests.clone());
            let mut future = Future::new(self.engine.block_size);
            while let Some(request) = source.next_request().expect("a list cannot fail") {
                future.add(&request.content);
            }
            future
        });
        Config {
            pools: self.pools(),
            gateway: self.gateway,
            signals: self.signals,
            patience: self.patience,
            policies: Policies::new(&policies, self.gateways, &cluster)
                .detailed(&policies, &cluster),
            oracles: self.oracles,
            future,
            seed: self.seed,
            overrule: self.overrule,
            horizon: self.horizon,
            warmup: self.warmup,
            pace: self.pace,
            audit: true,
            sample_interval: self.sample_interval,
        }
    }

    pub(crate) fn run(&self) -> Told {
        self.run_with(&mut Listed::new(self.requests.clone()))
    }

    /// Runs with requests from `source` instead of the list.
    pub(crate) fn run_with(&self, source: &mut dyn Source) -> Told {
        self.tell(self.config(), source)
    }

    /// Runs with a `router` that reads nothing instead of the one that is named.
    pub(crate) fn run_sent_by(&self, router: Box<dyn Router>) -> Told {
        let mut config = self.config();
        config.policies.gateways[0].router = router;
        config.policies.router_needs = Needs::NONE;
        self.tell(config, &mut Listed::new(self.requests.clone()))
    }

    fn tell(&self, config: Config, source: &mut dyn Source) -> Told {
        let mut scribe = Scribe {
            transcript: Transcript::new(|_| {}),
            lives: Lives::default(),
            closed: Vec::new(),
            clocks: Vec::new(),
            samples: Vec::new(),
            running: Vec::new(),
            victims: Vec::new(),
        };
        let outcome = self.audited(config, source, &mut scribe);
        scribe.closed.sort_by_key(|ended| ended.request);
        let Scribe { transcript, closed, samples, victims, .. } = scribe;
        let (facts, blocks_in_use) = transcript.into_parts();
        Told { facts, closed, blocks_in_use, samples, victims, outcome }
    }

    /// How all requests ended, and how many blocks were evicted, as told to a listener that wants
    /// no details; `private`: the source says so if no request has tokens that another generates.
    pub(crate) fn run_briefly(&self, private: bool) -> (Brief, Outcome) {
        let mut config = self.config();
        for gateway in &mut config.policies.gateways {
            gateway.shadow = None;
        }
        let mut brief = Brief::default();
        let source = &mut Listed::new(self.requests.clone());
        source.private &= private;
        let outcome = blis_sim::run(config, source, &mut brief, &mut Unobserved);
        brief.closed.sort_by_key(|(_, record)| record.request);
        (brief, outcome.expect("a list cannot fail"))
    }

    /// Runs and tells `listener` everything; the audit must find nothing.
    pub(crate) fn run_audited(
        &self,
        source: &mut dyn Source,
        listener: &mut dyn Listener,
    ) -> Outcome {
        self.audited(self.config(), source, listener)
    }

    fn audited(
        &self,
        config: Config,
        source: &mut dyn Source,
        listener: &mut dyn Listener,
    ) -> Outcome {
        let fcfs = self.order == "fcfs" && !self.oracles.scheduler;
        let connector = self.offload == "vllm";
        let pools: Vec<_> = config.pools.iter().map(|pool| pool.audited(fcfs, connector)).collect();
        let mut audit = Audit::new(&pools);
        let mut both = Fanout::new(vec![listener, &mut audit]);
        let outcome =
            blis_sim::run(config, source, &mut both, &mut Unobserved).expect("a list cannot fail");
        let end =
            RunEnd { ended_at: outcome.ended_at, end: outcome.end.clone(), instances: self.size() };
        let found = audit.finish(&end);
        assert!(found.is_clean(), "the audit found {:#?}", found.first);
        outcome
    }
}

impl Told {
    /// TTFT of each request in microseconds, in order of arrival.
    pub(crate) fn ttfts_us(&self) -> Vec<u64> {
        self.closed.iter().filter_map(|ended| Some(whole_micros(ended.ttft?))).collect()
    }

    /// E2E of each finished request in microseconds, in order of arrival.
    pub(crate) fn e2es_us(&self) -> Vec<u64> {
        self.closed.iter().filter_map(|ended| Some(whole_micros(ended.e2e?))).collect()
    }

    /// Cached tokens that each request found when it was first scheduled, in order of arrival.
    pub(crate) fn found(&self) -> Vec<u32> {
        self.closed.iter().map(|ended| ended.cached.expect("it was scheduled")).collect()
    }

    /// How many facts contain `word`.
    pub(crate) fn count(&self, word: &str) -> usize {
        self.facts.iter().filter(|(_, _, fact)| fact.contains(word)).count()
    }
}

fn whole_micros(span: Span) -> u64 {
    assert_eq!(span, Span::from_micros(span.as_micros()), "whole microseconds");
    span.as_micros()
}

/// A source that gives a list, with ids and private streams numbered.
pub(crate) struct Listed {
    requests: std::vec::IntoIter<Request>,
    private: bool,
}

impl Listed {
    pub(crate) fn new(mut requests: Vec<Request>) -> Listed {
        requests.sort_by_key(|request| request.arrival);
        let own = |request: &Request| request.content.output_stream() == StreamId(u64::MAX);
        let private = requests.iter().all(own);
        for (id, request) in (0..).zip(&mut requests) {
            request.id = RequestId(id);
            let own = |stream: StreamId| {
                if stream == StreamId(u64::MAX) { StreamId((1 << 40) + id) } else { stream }
            };
            let content = &request.content;
            let segments = content
                .segments()
                .iter()
                .map(|segment| Segment { stream: own(segment.stream), tokens: segment.tokens });
            request.content = Content::new(segments, own(content.output_stream()));
        }
        Listed { requests: requests.into_iter(), private }
    }
}

impl Source for Listed {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        Ok(self.requests.next())
    }

    fn has_private_streams(&self) -> bool {
        self.private
    }

    fn expected(&self) -> Option<u64> {
        Some(self.requests.len() as u64)
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        tenant.0.to_string()
    }
}

/// What a listener that wants no details can tell of a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Brief {
    closed: Vec<(Status, Record<'static>)>,
    pub(crate) evicted: u32,
    most_blocks: u32,
    steps: u64,
}

impl Listener for Brief {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        match fact {
            Fact::Closed { status, record } => self.closed.push((*status, record.nameless())),
            Fact::Evicted { blocks, .. } => self.evicted += blocks,
            Fact::Steps { count, blocks_in_use, .. } => {
                self.most_blocks = self.most_blocks.max(*blocks_in_use);
                self.steps += count;
            }
            _ => {}
        }
    }

    fn wants_details(&self) -> bool {
        false
    }
}

struct Scribe {
    transcript: Transcript,
    closed: Vec<Ended>,
    /// Of each lane, when it last said something: lanes are in order of time.
    clocks: Vec<Time>,
    samples: Vec<(Time, InstanceId, Reading)>,
    /// Who runs, and in which lane.
    running: Vec<(u64, u32)>,
    victims: Vec<Victim>,
    lives: Lives,
}

impl Listener for Scribe {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let lane = lane(fact);
        self.clocks.resize(self.clocks.len().max(lane as usize + 1), Time::ZERO);
        assert!(self.clocks[lane as usize] <= at, "lane {lane} goes back in time with {fact:?}");
        self.clocks[lane as usize] = at;
        self.follow(lane, fact);
        self.transcript.hear(at, fact);
        // Which checks that the life of every request adds up to its latencies.
        self.lives.hear(at, fact);
        match *fact {
            // Kept apart: without samples the other facts are the same.
            Fact::Sample { instance, reading } => self.samples.push((at, instance, reading)),
            Fact::Closed { status, record } => self.close(status, &record),
            _ => {}
        }
    }
}

impl Scribe {
    /// Keeps track of who runs.
    fn follow(&mut self, lane: u32, fact: &Fact<'_>) {
        match *fact {
            Fact::Scheduled { request, .. } => self.running.push((request.0, lane)),
            Fact::Preempted { request, .. } => {
                self.running.retain(|&(running, _)| running != request.0);
                let here = self.running.iter().filter(|&&(_, other)| other == lane);
                let beside = here.map(|&(running, _)| running).collect();
                self.victims.push(Victim { request: request.0, beside });
            }
            Fact::Closed { record, .. } => {
                self.running.retain(|&(running, _)| running != record.request.0);
            }
            _ => {}
        }
    }

    fn close(&mut self, status: Status, record: &Record<'_>) {
        let adds_up = record.ttft.is_none_or(|ttft| ttft == record.split.total());
        assert!(adds_up, "the parts of TTFT add up");
        self.closed.push(Ended {
            request: record.request.0,
            status,
            instance: record.instance.map(|instance| instance.0),
            ttft: record.ttft,
            e2e: record.e2e,
            cached: record.cached_tokens,
            preemptions: record.preemptions,
            output_tokens: record.output_tokens,
            split: record.split,
        });
    }
}

fn lane(fact: &Fact<'_>) -> u32 {
    fact.instance().map_or(0, |instance| instance.0 + 1)
}
