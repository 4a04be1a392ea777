//! The audit of samples: what the gauges show must be what the facts made of the instance.

use super::{Audit, Place};
use crate::fact::Reading;
use blis_core::InstanceId;

impl Audit {
    pub(super) fn sampled(&mut self, place: Place, id: InstanceId, reading: &Reading) {
        let Some(instance) = self.instance_heard(place, id) else { return };
        let facts = instance.population();
        let &Reading { waiting, loading, running, .. } = reading;
        self.log.check([waiting, loading, running].map(u64::from) == facts, "I1", place, || {
            format!("{waiting} waiting, {loading} loading, {running} running, the facts {facts:?}")
        });
        let &Reading { blocks_free, blocks_cached, blocks_in_use, cpu_blocks, .. } = reading;
        let blocks = [blocks_free, blocks_cached, blocks_in_use].map(u64::from).iter().sum::<u64>();
        let total = self.config.total_blocks;
        self.log.check(total.is_none_or(|total| blocks == total.into()), "I3", place, || {
            format!("{blocks} blocks are free, cached or in use, of {total:?}")
        });
        let room = self.config.cpu_blocks;
        self.log.check(cpu_blocks <= room, "I3", place, || {
            format!("the CPU tier holds {cpu_blocks} blocks, of {room}")
        });
        self.check_links(place, reading);
        let &Reading { prompt_tokens, cached_tokens, thrashing_rate, .. } = reading;
        let share = thrashing_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate));
        self.log.check(share && cached_tokens <= prompt_tokens, "I20", place, || {
            format!("{cached_tokens} of {prompt_tokens} cached, thrashing {thrashing_rate:?}")
        });
    }

    fn check_links(&mut self, place: Place, reading: &Reading) {
        let &Reading { loading, out_transfers, back_transfers, .. } = reading;
        let moving = out_transfers + back_transfers + loading > 0;
        self.log.check(self.config.cpu_blocks > 0 || !moving, "I5", place, || {
            format!("{out_transfers} transfers out and {back_transfers} back without a CPU tier")
        });
        // One for each request that waits on its own, or one that the step under way waits for.
        let most = if self.config.loads_beside { loading } else { 1 };
        self.log.check(back_transfers <= most, "I5", place, || {
            format!("{back_transfers} transfers back, and {loading} requests load")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AuditConfig, AuditReport};
    use super::*;
    use crate::engine::{Cluster, mixed_jobs, run, tell};
    use crate::fact::Fact;
    use blis_core::Time;

    const CONFIG: AuditConfig = AuditConfig {
        instances: 2,
        total_blocks: Some(100),
        cpu_blocks: 50,
        max_running: 4,
        max_step_tokens: 2_500,
        max_context_tokens: None,
        fcfs: true,
        loads_beside: false,
        async_scheduling: false,
        max_preemptions: 100,
    };

    /// A sample of an idle instance in front of a legal run.
    fn heard(config: AuditConfig, instance: u32, reading: Reading) -> AuditReport {
        let cluster = Cluster { instances: 2, max_running: 4, preempt_every: None, horizon: None };
        let (mut facts, end) = run(&mixed_jobs(30, 300_000.0, 1), cluster);
        facts.insert(0, (Time::ZERO, Fact::Sample { instance: InstanceId(instance), reading }));
        let mut audit = Audit::new(config);
        tell(&mut audit, &facts);
        audit.finish(&end)
    }

    #[test]
    fn a_sample_that_agrees_with_the_facts_passes() {
        let reading = Reading { blocks_free: 60, blocks_cached: 40, ..Reading::default() };
        for instance in [0, 1] {
            let full = Reading { cpu_blocks: 50, out_transfers: 3, back_transfers: 1, ..reading };
            for reading in [reading, full] {
                let report = heard(CONFIG, instance, reading);
                assert!(report.is_clean(), "{:#?}", report.first);
            }
        }
    }

    #[test]
    fn a_sample_that_does_not_is_found() {
        let idle = Reading { blocks_free: 100, ..Reading::default() };
        for (invariant, reading) in [
            ("I1", Reading { waiting: 1, ..idle }),
            ("I1", Reading { loading: 1, ..idle }),
            ("I1", Reading { running: 1, ..idle }),
            ("I3", Reading { blocks_in_use: 1, ..idle }),
            ("I3", Reading { cpu_blocks: 51, ..idle }),
            ("I5", Reading { back_transfers: 2, ..idle }),
            ("I20", Reading { cached_tokens: 1, ..idle }),
            ("I20", Reading { thrashing_rate: Some(1.5), ..idle }),
        ] {
            let found = heard(CONFIG, 0, reading).first;
            assert_eq!(found.len(), 1, "{reading:?}: {found:#?}");
            assert_eq!(found[0].invariant, invariant);
        }
        let none = AuditConfig { cpu_blocks: 0, ..CONFIG };
        assert_eq!(heard(none, 0, Reading { out_transfers: 1, ..idle }).first[0].invariant, "I5");
        let beside = AuditConfig { loads_beside: true, ..CONFIG };
        assert_eq!(heard(beside, 0, Reading { back_transfers: 1, ..idle }).count, 1);
        assert_eq!(heard(CONFIG, 2, idle).first[0].invariant, "I19");
    }
}
