//! Tests of the audit of samples.

use crate::toy::{Cluster, mixed_jobs, run, tell};
use blis_core::{InstanceId, Time};
use blis_metrics::{Audit, AuditConfig, AuditReport, Fact, Loads, Reading};

const CONFIG: AuditConfig = AuditConfig {
    instances: 2,
    total_blocks: Some(100),
    cpu_blocks: 50,
    max_running: 4,
    max_step_tokens: 2_500,
    fcfs: true,
    loads: Loads::Blocking,
    ahead: 0,
    draft_tokens: 0,
    max_preemptions: 100,
};

/// A sample of an idle instance in front of a legal run.
fn heard(config: AuditConfig, instance: u32, reading: Reading) -> AuditReport {
    let cluster = Cluster { instances: 2, max_running: 4, preempt_every: None, horizon: None };
    let (mut facts, end) = run(&mixed_jobs(30, 300_000.0, 1), cluster);
    facts.insert(0, (Time::ZERO, Fact::Sample { instance: InstanceId(instance), reading }));
    let mut audit = Audit::new(&[config]);
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
    let beside = AuditConfig { loads: Loads::Beside, ..CONFIG };
    assert_eq!(heard(beside, 0, Reading { back_transfers: 1, ..idle }).count, 1);
    assert_eq!(heard(CONFIG, 2, idle).first[0].invariant, "I19");
}
