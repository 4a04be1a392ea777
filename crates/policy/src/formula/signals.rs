//! What formulas may read: every signal with its unit, its range, and how old it may be.
//!
//! One table. From it come the check of names and units, what a formula needs to be computed, its
//! values, and the list in the reference. A signal is as fresh as for any other policy, because it
//! is read from the same views.

use super::units::{BLOCKS, MS, PLAIN, REQUESTS, TOKENS, Unit};
use crate::predict::Predictor;
use crate::spec::Cluster;
use crate::view::{InstanceView, Needs, WaitingView};
use blis_core::{RequestView, Span, Time, math};

/// What a formula decides, and so what it may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The score of an instance.
    Scorer,
    /// Whether a request is admitted.
    Gate,
    /// The priority of a waiting request.
    Priority,
    /// The rank of a waiting request.
    Order,
}

/// What a formula is evaluated for.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The request in question.
    pub request: &'a RequestView<'a>,
    /// The instant of the decision.
    pub now: Time,
    /// What is known of the cluster beforehand.
    pub facts: &'a Facts,
    /// The instances in question; none for a request in a queue.
    pub instances: &'a [InstanceView],
    /// Blocks of the prompt that are believed to be cached at each of them, as far as the formula
    /// reads them.
    pub hits: &'a [f64],
    /// The request as it waits in a queue, and its priority.
    pub waiting: Option<(&'a WaitingView<'a>, f64)>,
}

/// What is known of the cluster when a formula is built.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    cluster: Cluster,
    predictor: Predictor,
}

impl Facts {
    /// Of `cluster`.
    pub fn new(cluster: &Cluster) -> Facts {
        Facts { cluster: *cluster, predictor: Predictor::new(cluster) }
    }
}

/// When a request without a deadline and a target is due, as for `edf`.
const HORIZON: Span = Span::from_micros(60_000_000);

impl<'a> Moment<'a> {
    /// For a request in a queue.
    pub fn in_queue(
        waiting: &'a WaitingView<'a>,
        priority: f64,
        now: Time,
        facts: &'a Facts,
    ) -> Moment<'a> {
        let request = &waiting.request;
        let waiting = Some((waiting, priority));
        Moment { request, now, facts, instances: &[], hits: &[], waiting }
    }

    fn each(&self, out: &mut [f64], of: impl Fn(&InstanceView) -> f64) {
        for (place, view) in out.iter_mut().zip(self.instances) {
            *place = of(view);
        }
    }

    fn each_hit(&self, out: &mut [f64], of: impl Fn(&InstanceView, f64) -> f64) {
        for ((place, view), hits) in out.iter_mut().zip(self.instances).zip(self.hits) {
            *place = of(view, *hits);
        }
    }

    fn uncached(&self, hits: f64) -> f64 {
        self.facts.predictor.uncached_tokens(self.request, hits)
    }

    fn tokens(&self, blocks: f64) -> f64 {
        blocks * f64::from(self.facts.cluster.block_size)
    }

    fn deadline(&self) -> Span {
        let target = self.facts.cluster.ttft_targets[self.request.class.index()];
        self.request.deadline.or(target).unwrap_or(HORIZON)
    }

    fn waiting(&self) -> &WaitingView<'_> {
        self.waiting.expect("only queues are asked for what waits in them").0
    }
}

/// One value, or one for each instance.
#[derive(Clone, Copy)]
pub(super) enum Get {
    One(fn(&Moment<'_>) -> f64),
    Each(fn(&Moment<'_>, &mut [f64])),
}

/// Where a signal can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Everywhere,
    AtTheGateway,
    InQueues,
    ToOrders,
}

/// A signal.
#[derive(Clone, Copy)]
pub struct Signal {
    /// How formulas spell it.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// One phrase: what it is.
    pub help: &'static str,
    /// Its age.
    pub age: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) needs: Needs,
    /// Whether it needs to be known what is cached where.
    pub(super) hits: bool,
    /// Whether it changes while a request waits.
    pub(super) varies: bool,
    pub(super) get: Get,
    known: Known,
}

const MOST_COUNT: f64 = math::float(1 << 34);
const MOST_AMOUNT: f64 = 2e19;
const LOAD: Needs = Needs { load: true, ..Needs::NONE };
const CLASSES: Needs = Needs { classes: true, ..Needs::NONE };
const KV: Needs = Needs { kv: true, ..Needs::NONE };
const HIT_RATE: Needs = Needs { hit_rate: true, ..Needs::NONE };
const TRANSFERS: Needs = Needs { transfers: true, ..Needs::NONE };
const CACHED: Needs = Needs { cached: true, ..Needs::NONE };
const PRIORITY: Needs = Needs { priority: true, ..Needs::NONE };

impl Signal {
    const fn new(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Signal {
        let known = match get {
            Get::One(_) => Known::Everywhere,
            Get::Each(_) => Known::AtTheGateway,
        };
        let (low, high) = (0.0, if unit.is_an_amount() { MOST_AMOUNT } else { MOST_COUNT });
        let (needs, age, hits, varies) = (Needs::NONE, "live", false, false);
        Signal { name, unit, help, age, low, high, needs, hits, varies, get, known }
    }

    /// Of an instance.
    const fn each(
        name: &'static str,
        unit: Unit,
        help: &'static str,
        get: fn(&Moment<'_>, &mut [f64]),
    ) -> Signal {
        Signal::new(name, unit, help, Get::Each(get))
    }

    /// Of the request or the cluster.
    const fn one(
        name: &'static str,
        unit: Unit,
        help: &'static str,
        get: fn(&Moment<'_>) -> f64,
    ) -> Signal {
        Signal::new(name, unit, help, Get::One(get))
    }

    const fn within(self, low: f64, high: f64) -> Signal {
        Signal { low, high, ..self }
    }

    const fn needs(self, needs: Needs) -> Signal {
        Signal { needs, ..self }
    }

    const fn polled(self, needs: Needs) -> Signal {
        Signal { needs, age: "last poll", ..self }
    }

    const fn hits(self) -> Signal {
        Signal { hits: true, age: "by `knowledge`", ..self }
    }

    const fn in_queues(self) -> Signal {
        Signal { known: Known::InQueues, ..self }
    }

    const fn varying(self) -> Signal {
        Signal { varies: true, ..self }
    }

    /// The service class, which is no number: only `==` and `!=` are for it.
    pub(super) const CLASS: &'static Signal = &Signal::one("class", PLAIN, "service class", |m| {
        math::float(m.request.class.index() as u64)
    })
    .within(0.0, 4.0);

    /// Whether formulas of `role` may read it.
    pub fn is_known_to(&self, role: Role) -> bool {
        match self.known {
            Known::Everywhere => true,
            Known::AtTheGateway => matches!(role, Role::Scorer | Role::Gate),
            Known::InQueues => matches!(role, Role::Priority | Role::Order),
            Known::ToOrders => role == Role::Order,
        }
    }

    /// Whether it has a value for each instance.
    pub fn is_each(&self) -> bool {
        matches!(self.get, Get::Each(_))
    }
}

/// All signals: of instances, of the request, of the cluster, of a request in a queue.
pub static SIGNALS: &[Signal] = &[
    Signal::each("waiting", REQUESTS, "requests in its queue", |m, out| {
        m.each(out, |view| f64::from(view.queue_depth));
    })
    .polled(LOAD),
    Signal::each("running", REQUESTS, "requests in its batch", |m, out| {
        m.each(out, |view| f64::from(view.running));
    })
    .polled(LOAD),
    Signal::each("unseen", REQUESTS, "requests sent there since the last poll", |m, out| {
        m.each(out, |view| f64::from(view.unseen));
    })
    .needs(LOAD),
    Signal::each("load", REQUESTS, "waiting, running and unseen requests", |m, out| {
        m.each(out, |view| f64::from(view.load()));
    })
    .polled(LOAD),
    Signal::each(
        "waiting_ahead",
        REQUESTS,
        "waiting requests of the same class and of more important ones",
        |m, out| {
            m.each(out, |view| {
                let ahead = &view.waiting_by_class[..=m.request.class.index()];
                ahead.iter().copied().map(f64::from).sum()
            });
        },
    )
    .polled(CLASSES),
    Signal::each("in_flight", REQUESTS, "requests sent there that have not ended", |m, out| {
        m.each(out, |view| f64::from(view.in_flight));
    }),
    Signal::each("in_flight_tokens", TOKENS, "their prompt tokens", |m, out| {
        m.each(out, |view| math::float(view.in_flight_tokens));
    }),
    Signal::each(
        "unstarted_tokens",
        TOKENS,
        "uncached prompt tokens sent there of requests without a first token",
        |m, out| m.each(out, |view| math::float(view.unstarted_tokens)),
    ),
    Signal::each("kv_utilization", PLAIN, "share of its KV blocks in use", |m, out| {
        m.each(out, |view| view.kv_utilization.clamp(0.0, 1.0));
    })
    .within(0.0, 1.0)
    .polled(KV),
    Signal::each("free_blocks", BLOCKS, "KV blocks not in use", |m, out| {
        m.each(out, |view| f64::from(view.free_blocks));
    })
    .polled(KV),
    Signal::each("cache_hit_rate", PLAIN, "share of prompt tokens it found cached", |m, out| {
        m.each(out, |view| view.cache_hit_rate.clamp(0.0, 1.0));
    })
    .within(0.0, 1.0)
    .polled(HIT_RATE),
    Signal::each("pending_transfer_ms", MS, "copies from its CPU tier under way", |m, out| {
        m.each(out, |view| (view.pending_transfer_us / 1e3).clamp(0.0, MOST_AMOUNT));
    })
    .polled(TRANSFERS),
    Signal::each("thrashing_rate", PLAIN, "share of offloaded blocks soon read back", |m, out| {
        m.each(out, |view| view.thrashing_rate.clamp(0.0, 1.0));
    })
    .within(0.0, 1.0)
    .polled(TRANSFERS),
    Signal::each("cached_blocks", BLOCKS, "blocks of the prompt cached there", |m, out| {
        m.each_hit(out, |_, hits| hits);
    })
    .hits(),
    Signal::each("cached_tokens", TOKENS, "prompt tokens cached there", |m, out| {
        m.each_hit(out, |_, hits| m.tokens(hits));
    })
    .hits(),
    Signal::each("uncached_tokens", TOKENS, "prompt tokens to compute, at least 1", |m, out| {
        m.each_hit(out, |_, hits| m.uncached(hits));
    })
    .within(1.0, MOST_AMOUNT)
    .hits(),
    Signal::each("cached_share", PLAIN, "share of the prompt's blocks cached there", |m, out| {
        let blocks = f64::from(m.request.prompt_blocks.len().max(1));
        m.each_hit(out, |_, hits| (hits / blocks).clamp(0.0, 1.0));
    })
    .within(0.0, 1.0)
    .hits(),
    Signal::each("ttft_ms", MS, "predicted time to first token there", |m, out| {
        m.each_hit(out, |view, hits| {
            m.facts.predictor.ttft_ms(view, m.uncached(hits)).clamp(0.0, MOST_AMOUNT)
        });
    })
    .hits(),
    Signal::each("backlog_ms", MS, "predicted time for the prompts sent there", |m, out| {
        m.each(out, |view| m.facts.predictor.backlog_ms(view).clamp(0.0, MOST_AMOUNT));
    }),
    Signal::each("tpot_ms", MS, "predicted time per output token there", |m, out| {
        m.each(out, |view| m.facts.predictor.tpot_ms(view).clamp(0.0, MOST_AMOUNT));
    })
    .polled(LOAD),
    Signal::one("input_tokens", TOKENS, "length of the prompt, at least 1", |m| {
        f64::from(m.request.input_tokens.max(1))
    })
    .within(1.0, MOST_COUNT),
    Signal::one("round", PLAIN, "round of its session, from 0", |m| f64::from(m.request.round)),
    Signal::one("attempt", PLAIN, "how often it was sent before", |m| f64::from(m.request.attempt)),
    Signal::one("arrival_ms", MS, "its arrival since the start", |m| {
        m.request.arrival.as_micros_f64() / 1e3
    }),
    Signal::one("age_ms", MS, "time since its arrival", |m| {
        m.now.saturating_since(m.request.arrival).as_millis_f64()
    })
    .varying(),
    Signal::one(
        "deadline_ms",
        MS,
        "its deadline after arrival, else the TTFT target of its class, else 60,000",
        |m| m.deadline().as_millis_f64(),
    ),
    Signal::one("instances", PLAIN, "instances of the cluster", |m| {
        f64::from(m.facts.cluster.instances.max(1))
    })
    .within(1.0, MOST_COUNT),
    Signal::one("kv_blocks", BLOCKS, "KV blocks of an instance", |m| {
        f64::from(m.facts.cluster.blocks.max(1))
    })
    .within(1.0, MOST_COUNT),
    Signal::one("max_running", REQUESTS, "most requests in a batch", |m| {
        f64::from(m.facts.cluster.max_running.max(1))
    })
    .within(1.0, MOST_COUNT),
    Signal::one("token_budget", TOKENS, "most tokens of a step", |m| {
        f64::from(m.facts.cluster.token_budget.max(1))
    })
    .within(1.0, MOST_COUNT),
    Signal::one("waited_ms", MS, "time in this queue", |m| {
        m.now.saturating_since(m.waiting().enqueued).as_millis_f64()
    })
    .in_queues()
    .varying(),
    Signal::one("generated_tokens", TOKENS, "tokens generated before a preemption", |m| {
        f64::from(m.waiting().generated)
    })
    .within(0.0, MOST_COUNT)
    .in_queues(),
    Signal::one("expected_tokens", TOKENS, "prompt tokens the router expected cached", |m| {
        m.tokens(f64::from(m.waiting().intent.expected_hit_blocks.unwrap_or(0)))
    })
    .in_queues(),
    Signal { needs: CACHED, known: Known::InQueues, ..CACHED_HERE }.varying(),
    Signal { needs: CACHED, known: Known::InQueues, ..UNCACHED_HERE }.varying(),
    Signal { needs: PRIORITY, known: Known::ToOrders, ..PRIORITY_HERE }.within(-1e15, 1e15),
];

const CACHED_HERE: Signal =
    Signal::one("cached_tokens", TOKENS, "prompt tokens cached here now", |m| {
        m.tokens(f64::from(m.waiting().cached_blocks))
    });
const UNCACHED_HERE: Signal =
    Signal::one("uncached_tokens", TOKENS, "prompt tokens to compute, at least 1", |m| {
        m.uncached(f64::from(m.waiting().cached_blocks))
    })
    .within(1.0, MOST_AMOUNT);
const PRIORITY_HERE: Signal =
    Signal::one("priority", PLAIN, "its priority, higher is sooner", |m| {
        m.waiting.map_or(0.0, |(_, priority)| priority).clamp(-1e15, 1e15)
    });
