//! The run loop: takes the next event off the agenda and lets it happen.

mod foresight;
mod gateway;
mod patience;

use crate::agenda::{Agenda, Event, Phase};
use crate::config::{Config, Instead, Oracles, Pool};
use crate::future::Future;
use crate::instance::{Instance, Kit, Tally, Unseen};
use crate::live::{Ended, LiveRequests, Place, Slot};
use crate::outcome::{Extrapolated, Observer, Outcome, Progress, RunError};
use crate::signals::Boards;
use blis_core::{Ending, InstanceId, Request, RequestId, Source, Span, Time};
use blis_metrics::{End, Fact, Listener, Status};
use blis_policy::Answer;
use gateway::Counts;
use patience::Deadlines;
use std::collections::{BTreeMap, VecDeque};

/// After so many preemptions without a token in between there will be none.
const MOST_IN_VAIN: u64 = 100_000;

/// The observer is asked every so many events.
const EVENTS_BETWEEN_LOOKS: u64 = 4096;

/// No run lasts longer than a hundred years, so that instants never overflow.
pub(crate) const LATEST: Time = Time::from_nanos(10 * Span::LONGEST.as_nanos());

/// A run in progress.
pub(crate) struct World<'a> {
    pub(crate) config: Config,
    source: &'a mut dyn Source,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) agenda: Agenda,
    pub(crate) boards: Boards,
    pub(crate) live: LiveRequests,
    pub(crate) tally: Tally,
    pub(crate) counts: Counts,
    /// Answers that have not passed the gateway yet, in order of time, by replica.
    pub(crate) answers: Vec<VecDeque<Answer>>,
    /// What became of requests at the present boundary, by replica.
    ended: Vec<Ended>,
    hears_answers: bool,
    /// Those who wait at the gateway, by replica.
    pub(crate) held: Vec<BTreeMap<RequestId, Slot>>,
    /// When clients give up.
    pub(crate) deadlines: Deadlines,
    pub(crate) instances: Vec<Instance>,
    pub(crate) horizon: Time,
    next_request: Option<Request>,
    /// Whether the source may have more, now that a request has ended.
    asks_again: bool,
    /// Follow-ups that are known and have not arrived, each at the place that the agenda knows.
    follow_ups: Vec<Option<Request>>,
    vacant: Vec<usize>,
    /// Requests that finished at this boundary, if the source wants to hear of them.
    finished: Vec<(Request, Time)>,
    closed_loop: bool,
    pub(crate) unseen: Unseen,
    now: Time,
    /// Events at the present instant, to tell a livelock from work.
    events_now: u64,
    /// When the instances are looked at next for samples.
    next_sample: Time,
}

impl<'a> World<'a> {
    pub(crate) fn new(
        config: Config,
        source: &'a mut dyn Source,
        listener: &'a mut dyn Listener,
    ) -> World<'a> {
        assert!(config.pools.iter().all(|pool| pool.count > 0), "a pool has instances");
        let size = config.block_size();
        assert!(config.pools.iter().all(|pool| pool.engine.block_size == size), "one block size");
        let oracle = config.policies.engine_needs.future;
        let gateway_needs = config.policies.admission_needs.or(config.policies.router_needs);
        assert_eq!(config.future.is_some(), oracle, "oracles know the future, and nobody else");
        let replicas = config.policies.gateways.len();
        assert!(replicas > 0, "a gateway has replicas");
        let boards = Boards::new(&config);
        let instance =
            |(id, home)| Instance::new(InstanceId(id), home, &config.pools[home], replicas);
        let mut instances: Vec<Instance> = (0..).zip(config.homes()).map(instance).collect();
        if boards.wants_changes() {
            instances.iter_mut().for_each(Instance::tell_changes);
        }
        let foreseen = matches!(config.overrule, Some((_, Instead::Foreseen)));
        let oracles = oracle || foreseen || config.oracles != Oracles::default();
        let looked_into = boards.has_events() || oracles;
        let tiers = config.pools.iter().any(|pool| pool.engine.tier.is_some());
        let in_order = config.policies.evict.is_indifferent();
        let details = !listener.wants_details();
        let unseen = Unseen {
            details,
            evictions: details && !looked_into && !config.policies.are_detailed(),
            contents: source.has_private_streams() && in_order && !looked_into && !tiers,
        };
        World {
            listener,
            agenda: Agenda::new(instances.len()),
            boards,
            live: LiveRequests::default(),
            tally: Tally::default(),
            counts: Counts::default(),
            answers: vec![VecDeque::new(); replicas],
            ended: vec![Ended::default(); replicas],
            hears_answers: gateway_needs.answers,
            held: vec![BTreeMap::new(); replicas],
            deadlines: Deadlines::default(),
            instances,
            horizon: config.horizon.unwrap_or(LATEST).min(LATEST),
            next_request: None,
            asks_again: false,
            follow_ups: Vec::new(),
            vacant: Vec::new(),
            finished: Vec::new(),
            closed_loop: source.is_closed_loop(),
            unseen,
            now: Time::ZERO,
            events_now: 0,
            next_sample: config.sample_interval.map_or(Time::NEVER, |_| Time::ZERO),
            config,
            source,
        }
    }

    pub(crate) fn run(mut self, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
        self.fetch()?;
        let mut loops = 0_u64;
        let end = loop {
            if std::mem::take(&mut self.asks_again) {
                self.fetch()?;
            }
            let next = self.agenda.next();
            let at = next.0;
            if at == Time::NEVER {
                break self.nothing_left();
            }
            let deadline = self.deadlines.next();
            if deadline < at && deadline <= self.horizon {
                self.deadline();
            } else if at > self.horizon {
                break End::Horizon;
            } else {
                let event = self.agenda.pop(next);
                self.advance_clock(at);
                self.happen(event)?;
            }
            loops += 1;
            if loops.is_multiple_of(EVENTS_BETWEEN_LOOKS) {
                if self.tally.in_vain > MOST_IN_VAIN {
                    return Err(RunError::Endless { preemptions: self.tally.in_vain, at });
                }
                if !observer.go_on(self.progress()) {
                    break End::Interrupted;
                }
            }
        };
        Ok(self.finish(end))
    }

    fn happen(&mut self, event: Event) -> Result<(), RunError> {
        match event {
            Event::Arrival => {
                let request = self.next_request.take().expect("an arrival was announced");
                self.fetch()?;
                self.arrive(request, self.now);
            }
            Event::FollowUp(place) => {
                let request = self.follow_ups[place].take().expect("the agenda knows its place");
                self.vacant.push(place);
                self.arrive(request, self.now);
            }
            Event::Request(phase, slot) => self.decide(phase, slot, self.now),
            Event::Release => self.release_all(),
            Event::Step(instance) => self.boundary(instance),
        }
        Ok(())
    }

    /// A request at the gateway is due for its next phase.
    pub(crate) fn decide(&mut self, phase: Phase, slot: Slot, now: Time) {
        match phase {
            Phase::Admission => self.admit(slot, now),
            Phase::Routing => self.route(slot, now),
            Phase::Enqueue => self.enqueue(slot),
            Phase::Arrival | Phase::Release | Phase::Step => {
                unreachable!("not a phase of a request at the gateway")
            }
        }
    }

    fn enqueue(&mut self, slot: Slot) {
        self.tally.events += 1;
        let instance = self.live.get(slot).instance.expect("it was routed");
        let now = self.now;
        let (boards, instances, mut kit) = self.split();
        let engine = &mut instances[instance.index()];
        boards.before_change(instance.index(), engine, now);
        let boundary = engine.enqueue(slot, now, &mut kit);
        boards.after_change(instance.index(), engine, now);
        self.agenda.set_step(instance, boundary);
    }

    fn boundary(&mut self, instance: InstanceId) {
        let now = self.now;
        let (boards, instances, mut kit) = self.split();
        let engine = &mut instances[instance.index()];
        boards.before_change(instance.index(), engine, now);
        let next = engine.boundary(now, &mut kit);
        boards.after_change(instance.index(), engine, now);
        for (gateway, ended) in self.ended.iter_mut().enumerate() {
            if *ended != Ended::default() {
                self.boards.ended(gateway, instance, std::mem::take(ended));
            }
        }
        self.agenda.set_step(instance, next);
        while let Some(slot) = self.config.future.as_mut().and_then(Future::take_scheduled) {
            self.end_use(slot, Some(instance));
        }
        if !self.finished.is_empty() {
            let mut finished = std::mem::take(&mut self.finished);
            for (request, left) in finished.drain(..) {
                self.follow_up(&request, Ending::Finished, left);
            }
            self.finished = finished;
        }
    }

    /// The pool of that instance.
    pub(crate) fn pool(&self, instance: InstanceId) -> &Pool {
        &self.config.pools[self.instances[instance.index()].home()]
    }

    /// The engine of that instance.
    pub(crate) fn engine(&mut self, instance: InstanceId) -> &mut Instance {
        &mut self.instances[instance.index()]
    }

    /// Whether the source wants to hear how requests end.
    pub(crate) fn is_closed_loop(&self) -> bool {
        self.closed_loop
    }

    /// Brings the view that the gateway of a request has up to what it may know at `now`.
    pub(crate) fn look(&mut self, request: Slot, now: Time) {
        self.boards.look(&self.instances, self.live.get(request), now);
    }

    /// The story of a request ends before an instance had it.
    pub(crate) fn close(&mut self, slot: Slot, status: Status, now: Time) {
        let record = self.live.get(slot).record(self.config.block_size());
        self.listener.hear(now, &Fact::Closed { status, record });
        if matches!(status, Status::Rejected(_) | Status::Unservable | Status::Abandoned(_)) {
            self.end_use(slot, None);
        }
        let request = self.live.remove(slot);
        self.tally.closed += 1;
        let ending = match status {
            Status::Rejected(_) => Ending::Rejected,
            Status::Unservable => Ending::Unservable,
            Status::Abandoned(_) => Ending::Abandoned,
            Status::Finished | Status::InTransit | Status::Queued | Status::Running => return,
        };
        self.follow_up(&request, ending, now);
    }

    /// Lets the client of a request that ended at `at` send its next.
    pub(crate) fn follow_up(&mut self, ended: &Request, ending: Ending, at: Time) {
        if !self.closed_loop {
            return;
        }
        let next = self.source.follow_up(ended, ending, at);
        self.asks_again |= self.next_request.is_none() && self.source.is_waiting();
        let Some(next) = next else { return };
        assert!(next.arrival > at, "a client asks again after the answer");
        let arrival = next.arrival;
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.follow_ups.push(None);
            self.follow_ups.len() - 1
        });
        self.follow_ups[place] = Some(next);
        self.agenda.add_follow_up(arrival, place);
    }

    /// A request that oracles expected is scheduled at `instance`, or nowhere: what the others have
    /// of its prompt is needed later than they thought.
    pub(crate) fn end_use(&mut self, slot: Slot, instance: Option<InstanceId>) {
        let Some(future) = &mut self.config.future else { return };
        future.end(self.live.get(slot).request.id);
        let now = self.now;
        let (_, instances, mut kit) = self.split();
        for (index, other) in instances.iter_mut().enumerate() {
            if instance.is_none_or(|instance| instance.index() != index) {
                other.judge_again(slot, now, &mut kit);
            }
        }
    }

    /// The boards, the instances, and what instances work with: disjoint parts of the world.
    fn split(&mut self) -> (&mut Boards, &mut [Instance], Kit<'_>) {
        let pools = &self.config.pools[..];
        let kit = Kit {
            pools,
            home: 0,
            engine: &pools[0].engine,
            latency: &*pools[0].latency,
            policies: &self.config.policies,
            oracles: self.config.oracles,
            future: self.config.future.as_mut(),
            pace: self.config.pace,
            seed: self.config.seed,
            unseen: self.unseen,
            horizon: self.horizon,
            audit: self.config.audit,
            live: &mut self.live,
            listener: self.listener,
            tally: &mut self.tally,
            finished: self.closed_loop.then_some(&mut self.finished),
            answers: self.hears_answers.then_some(&mut self.answers),
            ended: &mut self.ended,
            sessions: self.config.policies.engine_needs.sessions,
        };
        (&mut self.boards, &mut self.instances, kit)
    }

    /// Asks the source for the request after this one and announces its arrival.
    fn fetch(&mut self) -> Result<(), RunError> {
        self.next_request = self.source.next_request().map_err(RunError::Source)?;
        let arrival = self.next_request.as_ref().map_or(Time::NEVER, |request| request.arrival);
        assert!(arrival >= self.now, "arrivals come in order");
        self.agenda.set_arrival(arrival);
        Ok(())
    }

    fn advance_clock(&mut self, at: Time) {
        self.pass_time(at);
        self.events_now += 1;
        let live = self.tally.arrived - self.tally.closed;
        let limit = 64 + 16 * (live + self.instances.len() as u64);
        assert!(self.events_now <= limit, "more than {limit} events at {at}: a livelock");
    }

    /// It is `at` now.
    pub(crate) fn pass_time(&mut self, at: Time) {
        assert!(at >= self.now, "time runs backwards, from {} to {at}", self.now);
        if at >= self.next_sample {
            self.sample(at);
        }
        if at > self.now {
            self.events_now = 0;
        }
        self.now = at;
    }

    /// States the samples that are due at `until` or before, when nothing else is left to happen
    /// before it: instant by instant, so that they come in order of time over all instances.
    #[cold]
    fn sample(&mut self, until: Time) {
        let Some(interval) = self.config.sample_interval else { return };
        assert!(interval > Span::ZERO, "samples are some time apart");
        while self.next_sample <= until {
            let at = self.next_sample;
            self.next_sample = at + interval;
            let (boards, instances, mut kit) = self.split();
            for (index, engine) in instances.iter_mut().enumerate() {
                // Catching up is a change to those who look at the instance now and then.
                boards.before_change(index, engine, at);
                if engine.catch_up(at, &mut kit) {
                    boards.after_change(index, engine, at);
                }
                engine.state_sample(at, &mut kit);
            }
        }
    }

    fn progress(&self) -> Progress {
        Progress { now: self.now, arrived: self.tally.arrived, closed: self.tally.closed }
    }

    fn nothing_left(&self) -> End {
        match self.instances.iter().position(Instance::is_stuck) {
            None => End::Drained,
            Some(index) => {
                End::Stalled { why: format!("instance {index} has work and no step under way") }
            }
        }
    }

    /// Closes the books: lands what has ended, and states where every unfinished request was left.
    fn finish(mut self, end: End) -> Outcome {
        let ended_at = match end {
            End::Drained => self.now.max(self.tally.last_output),
            End::Horizon => self.horizon,
            End::Interrupted | End::Stalled { .. } => self.now,
        };
        self.sample(ended_at);
        let (_, instances, mut kit) = self.split();
        for instance in instances {
            // A step that ends at the very end has ended.
            instance.catch_up(ended_at + Span::from_nanos(1), &mut kit);
            for (slot, generated) in instance.batch() {
                kit.live.get_mut(slot).generated = generated;
            }
        }
        for slot in self.live.in_order_of_arrival() {
            let status = match self.live.get(slot).place {
                Place::Gateway => Status::InTransit,
                Place::Waiting | Place::Loading => Status::Queued,
                Place::Running | Place::Ended => Status::Running,
            };
            self.close(slot, status, ended_at);
        }
        let Tally { arrived, events, beyond_steps, beyond, .. } = self.tally;
        let extrapolated = Extrapolated { steps: beyond_steps, beyond };
        let mechanisms = self.mechanisms();
        Outcome { end, ended_at, arrived, events, extrapolated, mechanisms }
    }
}
