//! The audit of samples: what the gauges show must be what the facts made of the instance.

use super::{Audit, AuditConfig, Loads, Place};
use crate::fact::Reading;
use blis_core::InstanceId;

impl Audit {
    pub(super) fn sampled(&mut self, place: Place, id: InstanceId, reading: &Reading) {
        let instance = &self.instances[id.index()];
        let (facts, config) = (instance.population(), instance.config);
        let &Reading { waiting, loading, running, .. } = reading;
        self.log.check([waiting, loading, running].map(u64::from) == facts, "I1", place, || {
            format!("{waiting} waiting, {loading} loading, {running} running, the facts {facts:?}")
        });
        let &Reading { blocks_free, blocks_cached, blocks_in_use, cpu_blocks, .. } = reading;
        let blocks = [blocks_free, blocks_cached, blocks_in_use].map(u64::from).iter().sum::<u64>();
        let total = config.total_blocks;
        self.log.check(total.is_none_or(|total| blocks == total.into()), "I3", place, || {
            format!("{blocks} blocks are free, cached or in use, of {total:?}")
        });
        let room = config.cpu_blocks;
        self.log.check(cpu_blocks <= room, "I3", place, || {
            format!("the CPU tier holds {cpu_blocks} blocks, of {room}")
        });
        self.check_links(place, reading, config);
        let &Reading { prompt_tokens, cached_tokens, thrashing_rate, .. } = reading;
        let share = thrashing_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate));
        self.log.check(share && cached_tokens <= prompt_tokens, "I20", place, || {
            format!("{cached_tokens} of {prompt_tokens} cached, thrashing {thrashing_rate:?}")
        });
    }

    fn check_links(&mut self, place: Place, reading: &Reading, config: AuditConfig) {
        let &Reading { loading, out_transfers, back_transfers, .. } = reading;
        let moving = out_transfers + back_transfers + loading > 0;
        self.log.check(config.cpu_blocks > 0 || !moving, "I5", place, || {
            format!("{out_transfers} transfers out and {back_transfers} back without a CPU tier")
        });
        // One for each request that waits on its own, or one that the step under way waits for.
        let most = if config.loads == Loads::Blocking { 1 } else { loading };
        self.log.check(back_transfers <= most, "I5", place, || {
            format!("{back_transfers} transfers back, and {loading} requests load")
        });
    }
}
