//! A toy cluster for tests: states the facts of a legal run, so that the summary and the audit can
//! be tried without the simulator. First come first served, whole prompts in one step, and now and
//! then the request that was scheduled last is preempted.

use blis_core::random::Purpose;
use blis_core::{Dice, InstanceId, RequestId, SloClass, Span, TenantId, Time};
use blis_metrics::{Batch, End, Fact, Listener, Record, RunEnd, Status, TtftSplit};
use std::collections::VecDeque;

/// Arrival to routing, and to the instance's queue.
const ROUTED_AFTER: u64 = 10;
const ENQUEUED_AFTER: u64 = 25;
const OUTPUT: u64 = 5;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) arrival: u64,
    pub(crate) class: SloClass,
    pub(crate) tenant: u32,
    pub(crate) input: u32,
    pub(crate) output: u32,
    /// What it adds to the duration of a step in ns: its prompt, and each further token.
    pub(crate) prefill: u64,
    pub(crate) decode: u64,
    pub(crate) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Served,
    Rejected,
    Unservable,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub(crate) instances: u32,
    pub(crate) max_running: usize,
    pub(crate) preempt_every: Option<u64>,
    pub(crate) horizon: Option<u64>,
}

pub(crate) type Facts = Vec<(Time, Fact<'static>)>;

/// One request on its instance.
#[derive(Clone, Debug)]
struct Task {
    id: u64,
    job: Job,
    generated: u32,
    since: u64,
    first_token: Option<u64>,
    last_token: u64,
    cached: Option<u32>,
    preemptions: u32,
    split: TtftSplit,
}

struct Instance {
    id: InstanceId,
    cluster: Cluster,
    pending: VecDeque<Task>,
    waiting: VecDeque<Task>,
    running: Vec<Task>,
    now: u64,
    steps: u64,
    facts: Facts,
}

pub(crate) fn tell(listener: &mut dyn Listener, facts: &Facts) {
    for (at, fact) in facts {
        listener.hear(*at, fact);
    }
}

/// Jobs with one token each that are one exponential step: an M/M/1 queue at utilisation `rho`.
pub(crate) fn single_server_jobs(n: u64, rho: f64, seed: u64) -> Vec<Job> {
    let mut arrival = 0.0;
    (0..n)
        .map(|i| {
            arrival += 1e6 / rho * Dice::new(seed, Purpose::Arrival, i).exponential();
            let service = 1e6 * Dice::new(seed, Purpose::OutputLength, i).exponential();
            Job {
                arrival: Span::from_nanos_f64(arrival).as_nanos(),
                class: SloClass::Standard,
                tenant: 0,
                input: 16,
                output: 1,
                prefill: Span::from_nanos_f64(service).as_nanos().max(1),
                decode: 1,
                fate: Fate::Served,
            }
        })
        .collect()
}

/// A varied workload: three classes, four tenants, some rejected or unservable.
pub(crate) fn mixed_jobs(n: u64, mean_gap: f64, seed: u64) -> Vec<Job> {
    let mut arrival = 0.0;
    (0..n)
        .map(|i| {
            let mut dice = Dice::new(seed, Purpose::InputLength, i);
            arrival += mean_gap * dice.exponential();
            Job {
                arrival: Span::from_nanos_f64(arrival).as_nanos(),
                class: SloClass::ALL[dice.below(3)],
                tenant: u32::try_from(dice.below(4)).expect("small"),
                input: 2 + u32::try_from(dice.below(500)).expect("small"),
                output: 1 + u32::try_from(dice.below(60)).expect("small"),
                prefill: 100_000 + dice.bits() % 2_000_000,
                decode: 10_000 + dice.bits() % 90_000,
                fate: match dice.below(20) {
                    0 => Fate::Rejected,
                    1 => Fate::Unservable,
                    _ => Fate::Served,
                },
            }
        })
        .collect()
}

/// The facts of a run of `jobs`, and its end.
pub(crate) fn run(jobs: &[Job], cluster: Cluster) -> (Facts, RunEnd) {
    let until = cluster.horizon.unwrap_or(u64::MAX);
    let mut facts = Facts::new();
    let mut instances: Vec<Instance> = (0..cluster.instances)
        .map(|id| Instance {
            id: InstanceId(id),
            cluster,
            pending: VecDeque::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            now: 0,
            steps: 0,
            facts: Facts::new(),
        })
        .collect();
    let mut cut = Vec::new();
    let mut routed = Vec::new();
    let mut last = 0;
    for (id, job) in (0..).zip(jobs).filter(|(_, job)| job.arrival <= until) {
        let task = Task::new(id, *job);
        let request = RequestId(id);
        let at = Time::from_nanos(job.arrival);
        last = job.arrival;
        let class = job.class;
        facts.push((at, Fact::Arrived { request, class, input_tokens: job.input, round: 0 }));
        let refused = match job.fate {
            Fate::Served => None,
            Fate::Rejected => Some(Status::Rejected("full")),
            Fate::Unservable => Some(Status::Unservable),
        };
        if let Some(status) = refused {
            facts.push((at, Fact::Closed { status, record: task.record(None) }));
            continue;
        }
        facts.push((at, Fact::Admitted { request }));
        if job.arrival + ENQUEUED_AFTER > until {
            cut.push(task);
            continue;
        }
        let instance = InstanceId(u32::try_from(id % u64::from(cluster.instances)).expect("small"));
        routed.push((at + Span::from_nanos(ROUTED_AFTER), request, instance));
        instances[instance.index()].pending.push_back(task);
    }
    // Arrivals and routings of the gateway in order of time.
    facts.extend(routed.iter().map(|&(at, request, instance)| {
        let routed = Fact::Routed {
            request,
            instance,
            expected_cached_tokens: Some(1),
            because: "",
            totals: &[],
        };
        (at, routed)
    }));
    facts.sort_by_key(|&(at, _)| at);
    for instance in &mut instances {
        instance.serve(until);
        last = last.max(instance.now);
    }
    let ended_at = Time::from_nanos(cluster.horizon.unwrap_or(last));
    for instance in &mut instances {
        instance.close_all(ended_at);
        facts.append(&mut instance.facts);
    }
    facts.extend(cut.iter().map(|task| {
        (ended_at, Fact::Closed { status: Status::InTransit, record: task.record(None) })
    }));
    let end = if cluster.horizon.is_some() { End::Horizon } else { End::Drained };
    (facts, RunEnd { ended_at, end, instances: cluster.instances })
}

impl Task {
    fn new(id: u64, job: Job) -> Task {
        Task {
            id,
            job,
            generated: 0,
            since: 0,
            first_token: None,
            last_token: 0,
            cached: None,
            preemptions: 0,
            split: TtftSplit::default(),
        }
    }

    fn record(&self, instance: Option<InstanceId>) -> Record<'static> {
        let since_arrival = |at: u64| Span::from_nanos(at + OUTPUT - self.job.arrival);
        let finished = self.generated == self.job.output;
        Record {
            request: RequestId(self.id),
            name: None,
            arrival: Time::from_nanos(self.job.arrival),
            class: self.job.class,
            tenant: TenantId(self.job.tenant),
            session: None,
            round: 0,
            deadline: None,
            patience: None,
            instance,
            input_tokens: self.job.input,
            output_tokens: self.generated,
            cached_tokens: self.cached,
            expected_cached_tokens: instance.map(|_| 1),
            preemptions: self.preemptions,
            ttft: self.first_token.map(since_arrival),
            e2e: finished.then(|| since_arrival(self.last_token)),
            split: self.split,
        }
    }
}

impl Instance {
    fn state(&mut self, at: u64, fact: Fact<'static>) {
        self.facts.push((Time::from_nanos(at), fact));
    }

    fn serve(&mut self, until: u64) {
        loop {
            self.enqueue_until(self.now);
            if self.waiting.is_empty() && self.running.is_empty() {
                let Some(next) = self.pending.front() else { return };
                self.now = next.job.arrival + ENQUEUED_AFTER;
                self.enqueue_until(self.now);
            }
            if !self.step(until) {
                return;
            }
        }
    }

    fn enqueue_until(&mut self, until: u64) {
        let due = |task: &mut Task| task.job.arrival + ENQUEUED_AFTER <= until;
        while let Some(mut task) = self.pending.pop_front_if(due) {
            let at = task.job.arrival + ENQUEUED_AFTER;
            task.split.gateway = Span::from_nanos(ENQUEUED_AFTER);
            task.since = at;
            self.state(at, Fact::Enqueued { request: RequestId(task.id), instance: self.id });
            self.waiting.push_back(task);
        }
    }

    /// One step from `now` on; `false` if it would end after `until`.
    fn step(&mut self, until: u64) -> bool {
        let begin = self.now;
        self.steps += 1;
        let preempts = self.cluster.preempt_every.is_some_and(|n| self.steps.is_multiple_of(n));
        if preempts && self.running.len() > 1 {
            self.preempt(begin);
        } else {
            self.schedule(begin);
        }
        let mut batch = Batch {
            running: u32::try_from(self.running.len()).expect("small"),
            waiting: u32::try_from(self.waiting.len()).expect("small"),
            ..Batch::default()
        };
        let mut nanos = 0;
        for task in &self.running {
            if task.since == begin {
                batch.prefill_seqs += 1;
                batch.prefill_tokens += task.job.input + task.generated - task.job.input / 4;
                nanos += task.job.prefill;
            } else {
                batch.decode_seqs += 1;
                nanos += task.job.decode;
            }
        }
        let end = begin + nanos;
        self.enqueue_until(end.min(until));
        if end > until {
            return false;
        }
        self.now = end;
        self.finish(begin, batch);
        true
    }

    fn preempt(&mut self, begin: u64) {
        let mut task = self.running.pop().expect("somebody runs");
        let lost_tokens = task.job.input + task.generated - 1;
        task.preemptions += 1;
        task.since = begin;
        let request = RequestId(task.id);
        self.state(
            begin,
            Fact::Preempted { request, instance: self.id, lost_tokens, ended: false },
        );
        self.state(begin, Fact::Evicted { instance: self.id, blocks: 1 });
        self.waiting.push_front(task);
    }

    fn schedule(&mut self, begin: u64) {
        while self.running.len() < self.cluster.max_running {
            let Some(mut task) = self.waiting.pop_front() else { return };
            if task.first_token.is_none() {
                task.split.queue += Span::from_nanos(begin - task.since);
            }
            task.since = begin;
            let cached_tokens = task.job.input / 4;
            task.cached = task.cached.or(Some(cached_tokens));
            let fact = Fact::Scheduled {
                request: RequestId(task.id),
                instance: self.id,
                cached_tokens,
                total_tokens: task.job.input + task.generated,
            };
            self.state(begin, fact);
            self.running.push(task);
        }
    }

    fn finish(&mut self, begin: u64, batch: Batch) {
        let end = self.now;
        let instance = self.id;
        let steps = Fact::Steps {
            instance,
            count: 1,
            duration: Span::from_nanos(end - begin),
            ahead: Span::ZERO,
            gpu: Span::from_nanos(end - begin),
            batch,
            blocks_in_use: batch.running,
        };
        self.state(end, steps);
        for mut task in std::mem::take(&mut self.running) {
            task.generated += 1;
            let request = RequestId(task.id);
            if task.first_token.is_none() {
                task.first_token = Some(end);
                task.split.prefill = Span::from_nanos(end - task.since);
                task.split.output = Span::from_nanos(OUTPUT);
                self.state(end, Fact::FirstToken { request, instance });
            } else {
                let gap = Span::from_nanos(end - task.last_token);
                let class = task.job.class;
                let (count, tokens) = (1, 1);
                let early = false;
                self.state(end, Fact::Tokens { instance, class, early, gap, count, tokens });
            }
            task.last_token = end;
            if task.generated == task.job.output {
                let record = task.record(Some(instance));
                self.state(end, Fact::Closed { status: Status::Finished, record });
            } else {
                self.running.push(task);
            }
        }
    }

    fn close_all(&mut self, at: Time) {
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|t| (Status::Queued, t));
        let running = std::mem::take(&mut self.running).into_iter().map(|t| (Status::Running, t));
        for (status, task) in waiting.chain(running) {
            let record = task.record(Some(self.id));
            self.facts.push((at, Fact::Closed { status, record }));
        }
    }
}
