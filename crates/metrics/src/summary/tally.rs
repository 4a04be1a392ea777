//! Sums that need no samples: requests by their end, steps of an instance, the prefix cache.
//!
//! Only the summary uses them. All sums are whole numbers until they are reported.

use super::large::Moments;
use super::{Latencies, float_sum, per};
use crate::fact::{Fact, Record, Status};
use crate::report::{EngineTime, InstanceSection, KvSection, Latency, Section, TierSection};
use blis_core::math::float;
use blis_core::{InstanceId, Span, Time};

/// Requests of a group, by how they ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// How many they were; rates and latencies are not known yet.
    pub(super) counts: Section,
    attained: u64,
    /// Whether anything was promised to any of them.
    promised: bool,
    /// Time between first and last token of completed requests, in ns, and the tokens after the
    /// first ones.
    decode: (u128, u64),
    /// Of their latencies, if those are counted.
    pub(super) moments: [Moments; 3],
}

/// The area under the number of requests that wait at an instance.
#[derive(Clone, Copy, Debug, Default)]
struct QueueTally {
    waiting: u64,
    since: Time,
    area: u128,
}

impl QueueTally {
    fn pass(&mut self, now: Time) {
        let time = now.saturating_since(self.since).as_nanos();
        self.area += u128::from(self.waiting) * u128::from(time);
        self.since = now;
    }
}

/// The steps of an instance.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTally {
    count: u64,
    busy: u64,
    gpu: u64,
    running: u64,
    tokens: u64,
    queue: QueueTally,
    blocks_peak: u32,
    pub(super) evicted_blocks: u64,
    pub(super) tier: TierTally,
}

/// What the prefix cache gave, and what the router thought it would.
#[derive(Clone, Debug, Default)]
pub(super) struct CacheTally {
    prompt_tokens: u64,
    cached_tokens: u64,
    /// Over requests with an expectation: expected, found, promised in vain, found unexpectedly.
    expected: u64,
    found: u64,
    phantom: u64,
    missed: u64,
    pub(super) lost_tokens: u64,
}

/// The CPU tier of an instance, or of all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TierTally {
    pub(super) offloaded: u64,
    pub(super) abandoned: u64,
    pub(super) reloaded: u64,
    pub(super) reloaded_soon: u64,
    pub(super) stall: Span,
    /// Of a step that has not ended; if the run ends first, it is not counted, as the step is not.
    stalling: Span,
    pub(super) cpu_blocks_peak: u32,
}

impl Tally {
    /// A request ended; `attained` whether it got what it was promised, `None` if that is nothing.
    pub(super) fn close(&mut self, status: Status, record: &Record<'_>, attained: Option<bool>) {
        let counts = &mut self.counts;
        counts.offered += 1;
        self.promised |= attained.is_some();
        let (place, joined_queue) = match status {
            Status::Finished => (&mut counts.completed, true),
            Status::Rejected(_) => (&mut counts.rejected, false),
            Status::Unservable => (&mut counts.unservable, false),
            Status::Abandoned(_) => (&mut counts.abandoned, status.is_at_instance()),
            Status::InTransit => (&mut counts.in_transit, false),
            Status::Queued => (&mut counts.still_queued, true),
            Status::Running => (&mut counts.still_running, true),
        };
        *place += 1;
        self.attained += u64::from(attained.unwrap_or(status == Status::Finished));
        counts.preemptions += u64::from(record.preemptions);
        counts.total_output_tokens += u64::from(record.output_tokens);
        if joined_queue {
            counts.total_input_tokens += u64::from(record.input_tokens);
        }
        if let (Some(ttft), Some(e2e)) = (record.ttft, record.e2e) {
            self.decode.0 += u128::from(e2e.as_nanos().saturating_sub(ttft.as_nanos()));
            self.decode.1 += u64::from(record.output_tokens.saturating_sub(1));
        }
    }

    /// Mean inter-token latency in ms, pooled over completed requests.
    pub(super) fn itl_mean_ms(&self) -> Option<f64> {
        per(float_sum(self.decode.0) / 1e6, float(self.decode.1))
    }

    /// All numbers of the group over a time of `elapsed`.
    pub(super) fn section(&self, latencies: &Latencies, itl: Latency, elapsed: Span) -> Section {
        let rate = |n: u64| per(float(n), elapsed.as_secs_f64());
        let share = per(float(self.attained), float(self.counts.offered));
        Section {
            ttft: latencies.ttft,
            e2e: latencies.e2e,
            itl,
            scheduling_delay: latencies.delay,
            responses_per_sec: rate(self.counts.completed),
            tokens_per_sec: rate(self.counts.total_output_tokens),
            goodput_per_sec: rate(self.attained).filter(|_| self.promised),
            slo_attainment: share.filter(|_| self.promised),
            ..self.counts.clone()
        }
    }
}

impl StepTally {
    /// The engine took steps.
    pub(super) fn ran(&mut self, steps: &Fact<'_>) {
        let Fact::Steps { count, duration, gpu, batch, blocks_in_use, .. } = *steps else { return };
        self.count += count;
        self.busy += count * duration.as_nanos();
        self.gpu += count * gpu.as_nanos();
        self.running += count * u64::from(batch.running);
        self.tokens += count * batch.tokens();
        self.blocks_peak = self.blocks_peak.max(blocks_in_use);
        self.tier.hear(steps);
    }

    /// A request begins to wait.
    pub(super) fn joined(&mut self, now: Time) {
        self.queue.pass(now);
        self.queue.waiting += 1;
    }

    /// A request stops waiting.
    pub(super) fn left(&mut self, now: Time) {
        self.queue.pass(now);
        self.queue.waiting = self.queue.waiting.saturating_sub(1);
    }

    pub(super) fn section(
        &self,
        instance: InstanceId,
        requests: Section,
        elapsed: Span,
    ) -> InstanceSection {
        let mut queue = self.queue;
        queue.pass(Time::ZERO + elapsed);
        let mean = |sum: u64| per(float(sum), float(self.count));
        InstanceSection {
            instance,
            requests,
            steps: self.count,
            utilization: per(float(self.busy), float(elapsed.as_nanos())),
            engine_time: self.engine_time(float(elapsed.as_nanos())),
            mean_batch: mean(self.running),
            mean_step_tokens: mean(self.tokens),
            mean_queue_depth: per(float_sum(queue.area), float(elapsed.as_nanos())),
            peak_blocks_in_use: self.blocks_peak,
            evicted_blocks: self.evicted_blocks,
            tier: self.tier.section(self.busy),
        }
    }

    /// How long steps took so far, in ns.
    pub(super) fn busy(&self) -> u64 {
        self.busy
    }

    /// What the time went to, as shares of `elapsed` ns; absent if the host took none of it.
    fn engine_time(&self, elapsed: f64) -> Option<EngineTime> {
        // Copies that a step waits for are heard of before the step.
        let waited = self.busy.saturating_sub(self.gpu);
        let host = waited.saturating_sub(self.tier.stall.as_nanos());
        let share = |part| per(float(part), elapsed);
        let gpu_bound = share(self.gpu).filter(|_| host > 0)?;
        Some(EngineTime { gpu_bound, host_bound: share(host)? })
    }
}

impl TierTally {
    /// Something happened to the tier of an instance.
    pub(super) fn hear(&mut self, fact: &Fact<'_>) {
        match *fact {
            Fact::Offloaded { blocks, abandoned, cpu_blocks, .. } => {
                self.offloaded += u64::from(blocks);
                self.abandoned += u64::from(abandoned);
                self.cpu_blocks_peak = self.cpu_blocks_peak.max(cpu_blocks);
            }
            Fact::Reloading { blocks, recent, .. } => {
                self.reloaded += u64::from(blocks);
                self.reloaded_soon += u64::from(recent);
            }
            Fact::Stalled { span, .. } => self.stalling += span,
            Fact::Steps { .. } => self.stall += std::mem::take(&mut self.stalling),
            _ => {}
        }
    }

    /// Adds those of another instance.
    pub(super) fn add(&mut self, other: &TierTally) {
        self.offloaded += other.offloaded;
        self.abandoned += other.abandoned;
        self.reloaded += other.reloaded;
        self.reloaded_soon += other.reloaded_soon;
        self.stall += other.stall;
        self.cpu_blocks_peak = self.cpu_blocks_peak.max(other.cpu_blocks_peak);
    }

    /// The numbers of tiers whose engines were `busy` for so many ns.
    pub(super) fn section(&self, busy: u64) -> TierSection {
        TierSection {
            offloaded_blocks: self.offloaded,
            abandoned_blocks: self.abandoned,
            reloaded_blocks: self.reloaded,
            // A block that is copied back twice within the window counts twice.
            thrashing_rate: per(
                float(self.reloaded_soon.min(self.offloaded)),
                float(self.offloaded),
            ),
            transfer_stall_ms: self.stall.as_millis_f64(),
            transfer_stall_share: per(float(self.stall.as_nanos()), float(busy)),
            peak_cpu_blocks: self.cpu_blocks_peak,
        }
    }
}

impl CacheTally {
    pub(super) fn close(&mut self, record: &Record<'_>) {
        let Some(cached) = record.cached_tokens else { return };
        self.prompt_tokens += u64::from(record.input_tokens);
        self.cached_tokens += u64::from(cached);
        if let Some(expected) = record.expected_cached_tokens {
            self.expected += u64::from(expected);
            self.found += u64::from(cached);
            self.phantom += u64::from(expected.saturating_sub(cached));
            self.missed += u64::from(cached.saturating_sub(expected));
        }
    }

    pub(super) fn section(&self, evicted_blocks: u64, tier: TierSection) -> KvSection {
        KvSection {
            hit_rate: per(float(self.cached_tokens), float(self.prompt_tokens)),
            phantom_hit_rate: per(float(self.phantom), float(self.expected)),
            missed_hit_rate: per(float(self.missed), float(self.found)),
            cached_tokens: self.cached_tokens,
            prompt_tokens: self.prompt_tokens,
            evicted_blocks,
            lost_tokens: self.lost_tokens,
            tier,
        }
    }
}
