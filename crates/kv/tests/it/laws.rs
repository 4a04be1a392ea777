//! The laws of caches, exactly, on random traces.
//!
//! **Inclusion.** Requests come one at a time, and each has its whole prompt in memory at its end.
//! Then `lru` keeps, of all blocks in the order of their last use (of one request's, the trunk
//! last), as many from the end as there is room for. The order does not depend on the room, so a
//! larger pool has at every time all that a smaller one has: no request finds less. A tier is
//! written by what the pool evicts or releases and read by what it misses, neither of which depends
//! on the tier; so the same holds of tiers behind equal pools, because a copy that is made again
//! counts as used. It does not hold of larger pools before equal tiers: the larger pool evicts
//! other blocks, and what the tier has then is not more.
//!
//! **Belady.** Evicting the block that is needed again last is best of all, and goes from leaves to
//! trunks by itself: whoever needs a block needs those above it, so none above is needed later, and
//! of equals the deepest goes first. That is a law of *blocks*. An evictor judges runs, and a run
//! whose blocks are needed again at different times has no single next use: judged by its last
//! block, it may go though its beginning is needed soon. So the oracle is best only if runs are cut
//! where their next uses differ; if not, it may even lose to `lru`.

use crate::trace::{Evictor, LARGEST, Offload, Policies, Served, Trace, hits};
use blis_kv::Pool;
use std::collections::BTreeMap;

/// A trace for each seed: some of a tree with much in common, some of one with little.
fn traces(count: u64) -> impl Iterator<Item = Trace> {
    (0..count).map(|seed| Trace::random(seed, 10 + seed % 50, 2 + seed % 3))
}

fn found(trace: &Trace, mut pool: Pool, policies: Policies) -> Vec<Served> {
    trace.serve(&mut pool, policies)
}

#[test]
fn no_request_finds_less_in_a_larger_pool() {
    let (mut more, mut equal) = (0, 0);
    for (seed, trace) in traces(300).enumerate() {
        let of = |total| found(&trace, Pool::new(total), Policies::of(Evictor::Lru));
        let mut smaller = of(LARGEST);
        for total in LARGEST + 1..LARGEST + 12 {
            let larger = of(total);
            for (at, (less, found)) in smaller.iter().zip(&larger).enumerate() {
                assert!(found.blocks >= less.blocks, "trace {seed}, {total} blocks, request {at}");
            }
            *(if hits(&larger) > hits(&smaller) { &mut more } else { &mut equal }) += 1;
            smaller = larger;
        }
    }
    assert!(more >= 1_000 && equal >= 100, "{more} pools found more, {equal} as much");
}

#[test]
fn no_request_finds_less_with_a_larger_tier() {
    let mut more = [0, 0];
    for (seed, trace) in traces(300).enumerate() {
        for (which, offload) in [Offload::OnEvict, Offload::OnRelease].into_iter().enumerate() {
            let policies = Policies { offload, ..Policies::of(Evictor::Lru) };
            let of = |copies| found(&trace, Pool::with_tier(LARGEST + 2, copies), policies);
            let mut smaller = of(0);
            for copies in 1..10 {
                let larger = of(copies);
                for (at, (less, found)) in smaller.iter().zip(&larger).enumerate() {
                    let case = format!("trace {seed}, {copies} copies {offload:?}, request {at}");
                    assert_eq!(found.blocks, less.blocks, "the pool does not care: {case}");
                    assert!(found.copied >= less.copied, "{case}");
                    more[which] += u32::from(found.copied > less.copied);
                }
                smaller = larger;
            }
        }
    }
    assert!(more.iter().all(|&more| more >= 500), "{more:?} requests found more");
}

#[test]
fn a_request_can_find_less_in_a_larger_pool_before_an_equal_tier() {
    let trace = Trace::random(1_952, 12, 4);
    let policies = Policies { offload: Offload::OnEvict, ..Policies::of(Evictor::Lru) };
    let of = |total| found(&trace, Pool::with_tier(total, 7), policies)[5];
    assert_eq!([of(6), of(7)].map(|found| found.blocks), [0, 0]);
    assert_eq!([of(6), of(7)].map(|found| found.copied), [2, 1]);
}

/// The most blocks that any evictor can find, by trying all of them.
fn best(trace: &Trace, total: u32) -> u32 {
    let mut bits = BTreeMap::new();
    let mut above = Vec::new();
    let mut needed = Vec::new();
    for request in &trace.requests {
        let (mut path, mut before) = (0_u64, 0_u64);
        for &hash in &request.prompt.hashes {
            let bit = 1_u64 << *bits.entry(hash).or_insert(above.len());
            if bit == 1 << above.len() {
                above.push(before);
            }
            (path, before) = (path | bit, bit);
        }
        needed.push((path, total - request.generated));
    }
    // Whether what is above each block of a set is in it too.
    let closed =
        |set: u64| (0..above.len()).all(|at| set >> at & 1 == 0 || set & above[at] == above[at]);
    let mut reached = BTreeMap::from([(0_u64, 0_u32)]);
    for (path, most) in needed {
        let mut next = BTreeMap::new();
        for (cached, hits) in reached {
            let hits = hits + (cached & path).count_ones();
            let idle = cached & !path;
            let room = (most - path.count_ones()).min(idle.count_ones());
            let mut kept = idle;
            loop {
                if kept.count_ones() == room && closed(kept | path) {
                    let known = next.entry(kept | path).or_insert(0);
                    *known = hits.max(*known);
                }
                if kept == 0 {
                    break;
                }
                kept = (kept - 1) & idle;
            }
        }
        reached = next;
    }
    reached.into_values().max().expect("something is always possible")
}

fn belady(by_block: bool) -> Policies {
    Policies { by_block, ..Policies::of(Evictor::Belady) }
}

#[test]
fn judging_each_block_by_its_next_use_finds_as_much_as_is_possible() {
    let mut beaten = 0;
    for seed in 0..150 {
        let trace = Trace::random(seed, 12, 2 + seed % 2);
        for total in [LARGEST, LARGEST + 2] {
            let of = |policies| hits(&found(&trace, Pool::new(total), policies));
            let best = best(&trace, total);
            assert_eq!(of(belady(true)), best, "trace {seed}, {total} blocks");
            beaten += u32::from(of(Policies::of(Evictor::Lru)) < best);
        }
    }
    assert!(beaten >= 100, "lru was not the best {beaten} times");
}

#[test]
fn no_evictor_finds_more_than_the_oracle_that_judges_blocks() {
    let mut beaten = [0; 5];
    for (seed, trace) in traces(300).enumerate() {
        for total in [LARGEST, LARGEST + 3, LARGEST + 8] {
            let of = |policies| hits(&found(&trace, Pool::new(total), policies));
            let oracle = of(belady(true));
            let random = [1, 2].map(|draw| Policies::of(Evictor::Random(draw + seed as u64)));
            let others = [
                Policies::of(Evictor::Lru),
                Policies::of(Evictor::Lfu),
                random[0],
                Policies { by_block: true, ..random[1] },
                belady(false),
            ];
            for (beaten, policies) in beaten.iter_mut().zip(others) {
                let other = of(policies);
                assert!(other <= oracle, "{policies:?}, trace {seed}, {total} blocks");
                *beaten += u32::from(other < oracle);
            }
        }
    }
    assert!(beaten.iter().all(|&times| times >= 100), "{beaten:?} times of each");
}

#[test]
fn an_oracle_that_judges_runs_by_their_ends_can_lose_to_lru() {
    // Of the second prompt, the beginning is needed again and the end is not; as one run it goes.
    let prompts = [&[2, 2][..], &[0, 2], &[1, 0], &[0, 0, 2, 0], &[2, 2]].map(<[u64]>::to_vec);
    let trace = Trace::new(&prompts, |_| 0);
    let of = |policies| hits(&found(&trace, Pool::new(4), policies));
    assert_eq!(of(Policies::of(Evictor::Lru)), 1);
    assert_eq!((of(belady(false)), of(belady(true)), best(&trace, 4)), (0, 1, 1));
}
