//! Samples: what an instance looks like at instants that are given from outside.
//!
//! The world asks at every sample instant, before anything happens at it. A sample lands the steps
//! that have ended, as a poll of the signals does, and changes nothing else; so a run is the same
//! with and without samples.

use super::{Instance, Kit, count};
use blis_core::Time;
use blis_metrics::{Fact, Reading};

impl Instance {
    /// States what the instance looks like just before `now`. It has caught up to then.
    pub(crate) fn state_sample(&self, now: Time, kit: &mut Kit<'_>) {
        let reading = self.reading(now);
        kit.listener.hear(now, &Fact::Sample { instance: self.id, reading });
    }

    fn reading(&self, now: Time) -> Reading {
        let mut reading = Reading {
            waiting: count(self.queue.len()),
            running: count(self.running.len()),
            blocks_free: self.pool.free(),
            blocks_cached: self.pool.idle(),
            blocks_in_use: self.pool.in_use(),
            cpu_blocks: self.pool.copied(),
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            ..Reading::default()
        };
        if let Some(tier) = &self.tier {
            let (out, back) = tier.transfers(now);
            reading.loading = count(tier.loads());
            (reading.out_transfers, reading.back_transfers) = (count(out), count(back));
            reading.pending_transfer = tier.backlog(now);
            reading.thrashing_rate = tier.thrashing_rate();
        }
        reading
    }
}
