//! What is there and not used changes nothing.

use crate::trace::{Evictor, LARGEST, Offload, Policies, Served, Trace};
use blis_kv::Pool;

const EVICTORS: [Evictor; 3] = [Evictor::Lru, Evictor::Lfu, Evictor::Random(7)];
const OFFLOADS: [Offload; 3] = [Offload::Never, Offload::OnEvict, Offload::OnRelease];

/// All policies on a trace each.
fn cases() -> impl Iterator<Item = (Trace, Policies)> {
    let policies = EVICTORS
        .into_iter()
        .flat_map(|evictor| OFFLOADS.map(|offload| Policies { evictor, offload, by_block: false }));
    let traces = |policies| {
        (0..60).map(move |seed| (Trace::random(seed, 10 + seed % 50, 2 + seed % 3), policies))
    };
    policies.flat_map(traces)
}

#[test]
fn a_tier_of_no_blocks_is_no_tier_to_the_last_bit() {
    for (trace, policies) in cases() {
        let (mut none, mut empty) = (Pool::new(LARGEST + 2), Pool::with_tier(LARGEST + 2, 0));
        assert_eq!(trace.serve(&mut none, policies), trace.serve(&mut empty, policies));
        assert!(!empty.has_tier());
        assert_eq!(format!("{none:?}"), format!("{empty:?}"));
    }
}

#[test]
fn a_tier_that_is_never_copied_to_changes_nothing() {
    for (trace, policies) in cases().filter(|(_, policies)| policies.offload == Offload::Never) {
        let (mut none, mut unused) = (Pool::new(LARGEST + 2), Pool::with_tier(LARGEST + 2, 50));
        assert_eq!(trace.serve(&mut none, policies), trace.serve(&mut unused, policies));
        assert!(unused.has_tier() && unused.copied() == 0);
        let seen = |pool: &Pool| (pool.free(), pool.idle(), pool.in_use(), pool.runs());
        assert_eq!(seen(&none), seen(&unused));
    }
}

#[test]
fn a_pool_that_never_evicts_never_uses_its_tier() {
    for (trace, policies) in cases().filter(|(_, policies)| policies.offload == Offload::OnEvict) {
        let (mut none, mut behind) = (Pool::new(100_000), Pool::with_tier(100_000, 50));
        assert_eq!(trace.serve(&mut none, policies), trace.serve(&mut behind, policies));
        assert_eq!(behind.copied(), 0);
    }
}

/// Of `lru` only: other evictors judge runs, and a tier cuts them elsewhere.
#[test]
fn whatever_is_copied_the_pool_itself_keeps_the_same_blocks() {
    let mut reloaded = 0;
    for (trace, policies) in cases().filter(|(_, policies)| policies.evictor == Evictor::Lru) {
        let (mut none, mut tiered) = (Pool::new(LARGEST + 2), Pool::with_tier(LARGEST + 2, 5));
        let alone = trace.serve(&mut none, policies);
        let with_tier = trace.serve(&mut tiered, policies);
        let blocks =
            |served: &[Served]| -> Vec<u32> { served.iter().map(|found| found.blocks).collect() };
        assert_eq!(blocks(&alone), blocks(&with_tier), "{policies:?}");
        let counts = |pool: &Pool| (pool.free(), pool.idle(), pool.in_use());
        assert_eq!(counts(&none), counts(&tiered), "{policies:?}");
        reloaded += with_tier.iter().map(|found| found.copied).sum::<u32>();
    }
    assert!(reloaded >= 500, "{reloaded} blocks were reloaded");
}
