//! The live audit: listens to a run and says where its facts are impossible.
//!
//! The invariants and their numbers are those of the reliability plan:
//!
//! | id | what is checked here |
//! |---|---|
//! | I1 | ids are dense; a request is in one place; at the end arrived = the sum of all endings |
//! | I2 | a first prefill covers the prompt; computed and emitted tokens add up to the records |
//! | I3 | blocks in use, or evicted at once, are at most all blocks |
//! | I4 | per instance busy + idle + held up = elapsed, in ns; steps never overlap; at most two are
//! in flight, formed in order; the GPU computes no longer than the engine is busy |
//! | I5 | copies to and from the CPU tier: no more ended than began |
//! | I7 | records agree with the facts; instances and classes add up to the cluster |
//! | I8 | time never decreases, at an instance and at the gateway, nor passes the run's end |
//! | I9 | a request's times are in order; TTFT, its split, E2E and the gaps agree exactly |
//! | I10 | only legal transitions |
//! | I11 | a router expects no more cached tokens than the prompt has |
//! | I14 | an instance with work computes, one without does not |
//! | I15 | preemptions of a request, and facts at one instant, are bounded |
//! | I16 | first come first served: first schedules in the order of joining the queue |
//! | I17 | a drained run has no unfinished request |
//! | I18 | running requests and tokens of a step are within their limits; chunks add up to it |
//! | I19 | the router picks an instance that exists |
//! | I20 | reported numbers are finite, not negative and in order ([`check_report`]) |
//!
//! The audit must never stop a run, and must cost little enough to be left on: it keeps the
//! requests between their arrival and their close, and a few sums.

mod instance;
mod numbers;
mod report;
mod request;
mod samples;
mod totals;
mod transfers;

pub use numbers::check_report;
pub use report::{AuditReport, Violation};

use crate::end::RunEnd;
use crate::fact::{Batch, Fact, Listener, Record, Status};
use blis_core::{InstanceId, SloClass, Span, Time};
use instance::Instance;
use report::Place;
use request::{Happening, Live, State, Story};
use totals::Totals;

/// Who waits for blocks from the CPU tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loads {
    /// A step.
    #[default]
    Blocking,
    /// The request, while others run.
    Beside,
    /// The same by a connector: a request may also be passed over while copies are under way, and
    /// no copy out is abandoned.
    Connector,
}

/// What the audit needs to know of a pool: instances that are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditConfig {
    /// How many instances there are.
    pub instances: u32,
    /// KV blocks of an instance; `None`: without limit.
    pub total_blocks: Option<u32>,
    /// Blocks of the CPU tier of an instance; 0: there is none.
    pub cpu_blocks: u32,
    /// Most requests running on an instance at once.
    pub max_running: u32,
    /// Most tokens computed in a step.
    pub max_step_tokens: u32,
    /// Whether instances serve first come first served, so that I16 holds.
    pub fcfs: bool,
    /// Who waits for blocks from the CPU tier.
    pub loads: Loads,
    /// How many steps may be under way when another is formed: 1 with asynchronous scheduling.
    pub ahead: u32,
    /// Most tokens of a draft; 0: there are none.
    pub draft_tokens: u32,
    /// Preemptions of one request beyond which it is considered livelocked, e.g. 10,000.
    pub max_preemptions: u32,
}

/// Checks the facts of a run as they are stated.
#[derive(Debug)]
pub struct Audit {
    log: AuditReport,
    gateway: Time,
    live: Live,
    instances: Vec<Instance>,
    totals: Totals,
}

impl Audit {
    /// An audit of a cluster of these pools; the first ids are those of the first pool.
    pub fn new(pools: &[AuditConfig]) -> Audit {
        let alike = |pool: &AuditConfig| vec![Instance::new(*pool); pool.instances as usize];
        Audit {
            log: AuditReport::default(),
            gateway: Time::ZERO,
            live: Live::default(),
            instances: pools.iter().flat_map(alike).collect(),
            totals: Totals::default(),
        }
    }

    /// What was found, after checking that the run could end so.
    pub fn finish(mut self, end: &RunEnd) -> AuditReport {
        let log = &mut self.log;
        let place = Place::run(end.ended_at);
        log.check(self.gateway <= end.ended_at, "I8", place, || {
            format!("the gateway was active at {}, after the run's end", self.gateway)
        });
        let open = self.live.len();
        log.check(open == 0, "I1", place, || format!("{open} requests were never closed"));
        self.totals.check(end, &self.instances, log);
        for (id, instance) in (0..).map(InstanceId).zip(&self.instances) {
            instance.check_end(id, end.ended_at, log);
        }
        self.log
    }

    /// Advances the gateway's clock.
    fn gateway_heard(&mut self, place: Place) {
        let clock = self.gateway;
        self.log.check(place.at >= clock, "I8", place, || {
            format!("the gateway was already at {clock}")
        });
        self.gateway = clock.max(place.at);
    }

    /// Notes that a fact of an instance or the gateway comes in its turn; whether there is such an
    /// instance.
    fn heard(&mut self, place: Place) -> bool {
        let Some(id) = place.instance else {
            self.gateway_heard(place);
            return true;
        };
        let Some(instance) = self.instances.get_mut(id.index()) else {
            self.log.note("I19", place, || format!("there is no instance {}", id.0));
            return false;
        };
        instance.heard(place, &mut self.log);
        true
    }

    /// Moves a request on; `None` if it cannot do that.
    fn moves(&mut self, place: Place, happening: Happening) -> Option<(&mut Story, State)> {
        let request = place.request?;
        let log = &mut self.log;
        let Some(story) = self.live.get_mut(request) else {
            log.note("I10", place, || {
                format!("{} is not possible: it is not alive", happening.name())
            });
            return None;
        };
        let before = story.state;
        let Some(after) = before.after(happening) else {
            log.note("I10", place, || {
                format!("{} is not possible while {}", happening.name(), before.name())
            });
            return None;
        };
        let last = story.last;
        log.check(place.at >= last, "I9", place, || {
            format!("{} came before the request's fact at {last}", happening.name())
        });
        if let (Some(at), Some(own)) = (place.instance, story.instance) {
            log.check(at == own, "I1", place, || format!("the request is on instance {}", own.0));
        }
        story.state = after;
        Some((story, before))
    }

    fn arrived(&mut self, place: Place, class: SloClass, input_tokens: u32) {
        let Some(request) = place.request else { return };
        self.totals.arrived += 1;
        let next = self.live.next();
        let story = Story::new(place.at, class, input_tokens);
        if request == next {
            self.live.push(story);
        } else {
            self.log.note("I1", place, || format!("the next request to arrive is {}", next.0));
        }
    }

    fn admitted(&mut self, place: Place) {
        if let Some((story, _)) = self.moves(place, Happening::Admitted) {
            story.last = place.at;
        }
    }

    fn routed(&mut self, place: Place, instance: InstanceId, expected: Option<u32>) {
        let instances = self.instances.len();
        self.log.check(instance.index() < instances, "I19", place, || {
            format!("routed to an instance that does not exist: there are {instances}")
        });
        let Some((story, _)) = self.moves(place, Happening::Routed) else { return };
        story.last = place.at;
        story.instance = Some(instance);
        story.expected = expected;
        let input = story.input_tokens;
        self.log.check(expected.is_none_or(|tokens| tokens <= input), "I11", place, || {
            format!("expects {expected:?} cached tokens of a prompt of {input}")
        });
    }

    fn enqueued(&mut self, place: Place, id: InstanceId) {
        let turn = self.instances[id.index()].next_turn();
        let Some((story, _)) = self.moves(place, Happening::Enqueued) else { return };
        story.last = place.at;
        story.enqueued = place.at;
        story.turn = turn;
        self.instances[id.index()].enqueue(place.at);
    }

    fn scheduled(&mut self, place: Place, id: InstanceId, cached: u32, total: u32) {
        let (fcfs, at) = (self.instances[id.index()].config.fcfs, place.at);
        let Some((story, before)) = self.moves(place, Happening::Scheduled) else { return };
        if story.first_token.is_none() && before == State::Waiting {
            story.waited += at.saturating_since(story.last);
        }
        story.last = at;
        let first = !std::mem::replace(&mut story.turn_taken, true);
        story.cached = story.cached.or(Some(cached));
        let (turn, input, least) = (story.turn, story.input_tokens, story.total_least);
        // How much it generated is not in the facts; a first token means that there is something.
        let covers = if story.first_token.is_some() { total > input } else { total == input };
        story.total_least = total.max(least);
        let instance = &mut self.instances[id.index()];
        self.log.check(covers && total >= least, "I2", place, || {
            format!("is to catch up on {total} tokens with a prompt of {input}, had {least}")
        });
        self.log.check(cached < total, "I2", place, || {
            format!("{cached} of {total} tokens cached leaves nothing to compute")
        });
        let due = instance.schedule(before, cached, first.then_some(turn));
        self.log.check(!fcfs || due == turn || !first, "I16", place, || {
            format!("was number {turn} in the queue while number {due} had not been scheduled")
        });
        instance.begins(place, &mut self.log);
        instance.recurs(place, &mut self.log);
    }

    fn preempted(&mut self, place: Place, id: InstanceId, lost: u32, ended: bool) {
        let AuditConfig { max_preemptions: most, ahead, .. } = self.instances[id.index()].config;
        let happening = if ended { Happening::PreemptedAtEnd } else { Happening::Preempted };
        self.log.check(!ended || ahead > 0, "I10", place, || "no step is under way".to_owned());
        let Some((story, _)) = self.moves(place, happening) else { return };
        story.last = place.at;
        story.preemptions += 1;
        // The token to be computed next was not computed, so it is not among the lost.
        story.total_least = story.total_least.max(lost.saturating_add(1));
        let times = story.preemptions;
        self.log.check(times <= most, "I15", place, || {
            format!("was preempted {times} times, more than {most}")
        });
        let instance = &mut self.instances[id.index()];
        instance.preempt(lost, ended);
        self.begins(place, id);
        let instance = &mut self.instances[id.index()];
        instance.recurs(place, &mut self.log);
    }

    fn evicted(&mut self, place: Place, id: InstanceId, blocks: u32) {
        let total = self.instances[id.index()].config.total_blocks;
        self.begins(place, id);
        let instance = &mut self.instances[id.index()];
        instance.recurs(place, &mut self.log);
        self.log.check(total.is_none_or(|total| blocks <= total), "I3", place, || {
            format!("{blocks} blocks evicted of {total:?}")
        });
    }

    /// Something happened that only happens when a step begins, or when blocks are made room for
    /// that a request waits for on its own, or when all that could be computed is under way.
    fn begins(&mut self, place: Place, id: InstanceId) {
        let instance = &mut self.instances[id.index()];
        if instance.config.loads == Loads::Blocking && instance.config.ahead == 0 {
            instance.begins(place, &mut self.log);
        }
    }

    fn first_token(&mut self, place: Place, id: InstanceId) {
        let in_flight = self.instances[id.index()].config.ahead > 0;
        let Some((story, before)) = self.moves(place, Happening::FirstToken) else { return };
        if before == State::Waiting {
            story.waited += place.at.saturating_since(story.last);
        }
        story.last = place.at;
        let again = story.first_token.replace(place.at).is_some();
        let under_way = before == State::Running || (in_flight && story.preemptions > 0);
        let class = story.class;
        self.log.check(!again, "I10", place, || "had its first token already".to_owned());
        self.log.check(under_way, "I10", place, || "no step of it is under way".to_owned());
        let instance = &mut self.instances[id.index()];
        instance.emit(1);
        instance.ends(place, &mut self.log);
        self.totals.emit(class, Span::ZERO, 1, 1);
    }

    fn overran(&mut self, place: Place, id: InstanceId) {
        let instance = &mut self.instances[id.index()];
        let story = place.request.and_then(|request| self.live.get_mut(request));
        let runs = story.is_some_and(|story| story.state == State::Running);
        let drafts = instance.config.ahead > 0 && instance.config.draft_tokens > 0;
        self.log.check(runs && drafts, "I10", place, || {
            "a step computes more for it than it can have known".to_owned()
        });
        instance.overrun();
    }

    fn dropped(&mut self, place: Place, id: InstanceId, computed: u32, under_way: u32) {
        let between_steps = self.instances[id.index()].config.ahead == 0;
        let Some((story, _)) = self.moves(place, Happening::Dropped) else { return };
        story.last = place.at;
        self.log.check(!between_steps || under_way == 0, "I10", place, || {
            "dropped during a step".to_owned()
        });
        let instance = &mut self.instances[id.index()];
        instance.drop_running(computed, under_way);
        if between_steps {
            instance.ends(place, &mut self.log);
        }
    }

    /// `handed` says at how many hand-outs how many tokens left.
    fn tokens(
        &mut self,
        place: Place,
        id: InstanceId,
        class: SloClass,
        gap: Span,
        handed: (u64, u64),
    ) {
        let (count, tokens) = handed;
        let instance = &mut self.instances[id.index()];
        let most = count * (1 + u64::from(instance.config.draft_tokens));
        self.log.check((count..=most).contains(&tokens), "I18", place, || {
            format!("{tokens} tokens at {count} hand-outs of at most {most}")
        });
        instance.emit(tokens);
        instance.ends(place, &mut self.log);
        instance.recurs(place, &mut self.log);
        self.totals.emit(class, gap, count, tokens);
    }

    fn closed(&mut self, place: Place, status: Status, record: &Record<'_>) {
        let Some((story, before)) = self.moves(place, Happening::from(status)) else { return };
        let story = *story;
        story.check_record(status, record, place, &mut self.log);
        self.totals.close(status, record);
        if let Some(id) = place.instance {
            let instance = &mut self.instances[id.index()];
            if !story.turn_taken {
                instance.skip_turn(story.turn);
            }
            instance.leave(place.at, before, status, record);
            match status {
                Status::Finished => instance.ends(place, &mut self.log),
                Status::Abandoned(_) => instance.gave_up(place, &mut self.log),
                _ => {}
            }
        }
        self.live.close(record.request);
    }

    fn steps(&mut self, place: Place, id: InstanceId, run: &Steps) {
        self.check_limits(place, run, self.instances[id.index()].config);
        let instance = &mut self.instances[id.index()];
        instance.ran(place, run, &mut self.log);
        instance.recurs(place, &mut self.log);
    }

    fn check_limits(&mut self, place: Place, run: &Steps, config: AuditConfig) {
        let AuditConfig { max_running, max_step_tokens, total_blocks, .. } = config;
        let Batch { prefill_seqs, prefill_tokens, decode_seqs, running, .. } = run.batch;
        let Batch { draft_tokens, wasted_tokens, .. } = run.batch;
        let log = &mut self.log;
        log.check(running <= max_running, "I18", place, || {
            format!("{running} requests are running, more than {max_running}")
        });
        let tokens = run.batch.tokens();
        log.check(tokens <= max_step_tokens.into(), "I18", place, || {
            format!("{tokens} tokens in a step, more than {max_step_tokens}")
        });
        let seqs = u64::from(prefill_seqs) + u64::from(decode_seqs);
        log.check(seqs <= running.into() && prefill_tokens >= prefill_seqs, "I18", place, || {
            format!("an inconsistent batch: {:?}", run.batch)
        });
        let most = u64::from(decode_seqs) * u64::from(config.draft_tokens);
        let decoded = u64::from(decode_seqs) + u64::from(draft_tokens);
        let drafts = u64::from(draft_tokens) <= most && u64::from(wasted_tokens) <= decoded;
        let drafts = drafts && (config.draft_tokens > 0 || wasted_tokens == 0);
        log.check(drafts, "I18", place, || format!("inconsistent drafts: {:?}", run.batch));
        log.check(seqs > 0, "I14", place, || "a step that computes nothing".to_owned());
        let blocks = run.blocks_in_use;
        log.check(total_blocks.is_none_or(|total| blocks <= total), "I3", place, || {
            format!("{blocks} blocks in use of {total_blocks:?}")
        });
    }
}

/// A fact [`Fact::Steps`], less its instance.
#[derive(Clone, Copy, Debug)]
struct Steps {
    count: u64,
    duration: Span,
    ahead: Span,
    gpu: Span,
    batch: Batch,
    blocks_in_use: u32,
}

impl Listener for Audit {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let (request, instance) = fact.place();
        let place = Place { at, request, instance };
        if !self.heard(place) {
            return;
        }
        match *fact {
            Fact::Arrived { class, input_tokens, .. } => self.arrived(place, class, input_tokens),
            Fact::Admitted { .. } => self.admitted(place),
            Fact::Routed { instance, expected_cached_tokens, .. } => {
                self.routed(place, instance, expected_cached_tokens);
            }
            Fact::Considered { fresh, candidates, .. } => {
                let all = fresh.index() < candidates.len();
                let all = all && candidates.len() == self.instances.len();
                self.log.check(all, "I19", place, || {
                    format!("{} instances were considered, and {fresh:?}", candidates.len())
                });
            }
            Fact::Enqueued { instance, .. } => self.enqueued(place, instance),
            Fact::Scheduled { instance, cached_tokens, total_tokens, .. } => {
                self.scheduled(place, instance, cached_tokens, total_tokens);
            }
            Fact::Preempted { instance, lost_tokens, ended, .. } => {
                self.preempted(place, instance, lost_tokens, ended);
            }
            Fact::Evicted { instance, blocks } => self.evicted(place, instance, blocks),
            Fact::Offloading { instance, .. }
            | Fact::Offloaded { instance, .. }
            | Fact::Reloading { instance, .. }
            | Fact::Reloaded { instance, .. }
            | Fact::Unloaded { instance, .. }
            | Fact::Stalled { instance, .. } => self.transfer(place, instance, fact),
            Fact::Formed { instance, chunks } => {
                let tokens = chunks.iter().map(|&(_, tokens)| u64::from(tokens)).sum();
                self.instances[instance.index()].chunks.push_back(tokens);
            }
            Fact::Sample { instance, ref reading } => self.sampled(place, instance, reading),
            Fact::Steps { instance, count, duration, ahead, gpu, batch, blocks_in_use } => {
                let steps = Steps { count, duration, ahead, gpu, batch, blocks_in_use };
                self.steps(place, instance, &steps);
            }
            Fact::Tokens { instance, class, gap, count, tokens, .. } => {
                self.tokens(place, instance, class, gap, (count, tokens));
            }
            Fact::FirstToken { instance, .. } => self.first_token(place, instance),
            Fact::Overran { instance, .. } => self.overran(place, instance),
            Fact::Dropped { instance, computed_tokens, under_way, .. } => {
                self.dropped(place, instance, computed_tokens, under_way);
            }
            Fact::Closed { status, ref record } => self.closed(place, status, record),
        }
    }
}
