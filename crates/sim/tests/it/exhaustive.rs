//! Every small world with a CPU tier, or with asynchronous scheduling: up to 4 requests on up to 6
//! blocks.
//!
//! Small numbers are where the odd cases are: a block that is the only one, two requests that stand
//! in each other's way. Each world is run step by step and at once, with the audit and the pool's
//! own checks on; all requests must finish, and both ways must agree.

use crate::harness::{Listed, Scenario, prompted, small_world};
use crate::worlds::Hosted;
use blis_core::{Request, Span, Time};
use blis_kv::LinkSpeed;
use blis_latency::Coefficients;
use blis_metrics::{Fact, Listener, Status};
use blis_sim::{KvTier, Pace, Preemption, Reload};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const OFFLOADS: [&str; 3] = ["threshold[threshold=0.5]", "on-evict", "write-through"];
/// Microseconds between arrivals: at once, or while the one before is at work.
const GAPS: [u64; 2] = [0, 30];

/// A request: stream, prompt tokens, output tokens.
type Kind = (u64, u32, u32);

/// What happened in all worlds.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    worlds: u64,
    preemptions: u64,
    swaps: u64,
    hits: u64,
    evictions: u64,
    offloads: u64,
    abandoned: u64,
    reloads: u64,
    loads: u64,
    unloads: u64,
    stalls: u64,
}

/// How a request ended: who, its TTFT and E2E, its cached tokens and its preemptions.
type End = (u64, [Option<Span>; 2], Option<u32>, u32);

/// How each request ended, and what happened on the way.
#[derive(Default)]
struct Ends {
    ended: Vec<End>,
    unfinished: u64,
    seen: Seen,
}

impl Listener for Ends {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let seen = &mut self.seen;
        match *fact {
            Fact::Preempted { .. } => seen.preemptions += 1,
            Fact::Evicted { .. } => seen.evictions += 1,
            Fact::Offloaded { abandoned, .. } => {
                seen.offloads += 1;
                seen.abandoned += u64::from(abandoned > 0);
            }
            Fact::Reloading { beside, .. } => {
                seen.reloads += 1;
                seen.loads += u64::from(beside);
            }
            Fact::Unloaded { .. } => seen.unloads += 1,
            Fact::Stalled { .. } => seen.stalls += 1,
            Fact::Closed { status, ref record } => {
                self.unfinished += u64::from(status != Status::Finished);
                seen.hits += u64::from(record.cached_tokens.is_some_and(|cached| cached > 0));
                let times = [record.ttft, record.e2e];
                let end = (record.request.0, times, record.cached_tokens, record.preemptions);
                self.ended.push(end);
            }
            _ => {}
        }
    }
}

/// All lists of `length` requests; streams have no names, so the first is of stream 0.
fn lists(kinds: &[Kind], length: usize) -> Vec<Vec<Kind>> {
    let mut lists: Vec<Vec<Kind>> = vec![Vec::new()];
    for place in 0..length {
        let longer = |list: &Vec<Kind>| {
            let next = kinds.iter().filter(|kind| place > 0 || kind.0 == 0);
            next.map(|&kind| [list.as_slice(), &[kind]].concat()).collect::<Vec<_>>()
        };
        lists = lists.iter().flat_map(longer).collect();
    }
    lists
}

/// The requests of a list, with every choice of gaps between their arrivals.
fn arrivals(list: &[Kind]) -> Vec<Vec<Request>> {
    let choices = GAPS.len().pow(u32::try_from(list.len() - 1).expect("few requests"));
    let request =
        |at: u64, &(stream, prompt, output): &Kind| prompted(at, &[(stream, prompt)], output);
    let arrive = |mut choice: usize| {
        let mut at = 0;
        let mut requests = Vec::new();
        for (place, kind) in list.iter().enumerate() {
            if place > 0 {
                at += GAPS[choice % GAPS.len()];
                choice /= GAPS.len();
            }
            requests.push(request(at, kind));
        }
        requests
    };
    (0..choices).map(arrive).collect()
}

/// Every engine with one of `memories` (tokens of a block, blocks): without a tier, and with each
/// kind of one.
fn engines(memories: &[(u32, u32)]) -> Vec<Scenario> {
    let mut base = small_world();
    // A step takes about as long as the copy of a block.
    base.latency = Arc::new(Coefficients::new([0.0; 3], [10.0, 1.0, 1.0]).expect("legal"));
    (base.engine.max_num_running_reqs, base.engine.max_num_scheduled_tokens) = (4, 8);
    let mut engines = Vec::new();
    for &(block_size, total_kv_blocks) in memories {
        for reserve_full_prompt in [true, false] {
            let mut engine = base.clone();
            engine.engine.block_size = block_size;
            engine.engine.total_kv_blocks = total_kv_blocks;
            engine.engine.reserve_full_prompt = reserve_full_prompt;
            engines.push(engine.clone());
            engines.extend(with_tiers(&engine));
            engine.engine.async_scheduling = true;
            engines.push(engine.clone());
            // A host that sometimes holds up the GPU.
            let latency = Arc::new(Hosted(engine.latency.clone(), [2, 3, 7, 1]));
            engines.push(Scenario { latency, ..engine });
        }
    }
    engines
}

fn with_tiers(engine: &Scenario) -> Vec<Scenario> {
    let link = |base, blocks_per_us| LinkSpeed { base: Span::from_micros(base), blocks_per_us };
    let mut engines = Vec::new();
    for blocks in [2, 4] {
        for reload in [Reload::Blocking, Reload::Async] {
            for preemption in [Preemption::Recompute, Preemption::Swap] {
                for offload in OFFLOADS {
                    let mut engine = Scenario { offload, ..engine.clone() };
                    engine.engine.preemption = preemption;
                    engine.engine.tier = Some(KvTier {
                        blocks,
                        out: link(3, 0.1),
                        back: link(5, 0.2),
                        reload,
                        thrashing_window: Span::from_micros(40),
                    });
                    engines.push(engine);
                }
            }
        }
    }
    engines
}

/// Runs a world; what happened in it.
fn run(world: &Scenario) -> Ends {
    let mut ends = Ends::default();
    let outcome = world.run_audited(&mut Listed::new(world.requests.clone()), &mut ends);
    assert_eq!(outcome.end.name(), "drained");
    assert_eq!(ends.unfinished, 0, "all requests finish");
    ends.ended.sort_unstable();
    ends
}

/// Runs a world both ways.
fn check(world: &Scenario, seen: &mut Seen) {
    let both = || (run(world), run(&world.paced(Pace::Stepwise)));
    let Ok((fast, slow)) = catch_unwind(AssertUnwindSafe(both)) else {
        panic!("in the world {world:#?}");
    };
    assert_eq!(fast.ended, slow.ended, "fast-forward and stepwise agree in {world:#?}");
    let swaps = world.engine.tier.is_some() && world.engine.preemption == Preemption::Swap;
    let here = fast.seen;
    seen.worlds += 1;
    seen.swaps += if swaps { here.preemptions } else { 0 };
    seen.preemptions += here.preemptions;
    seen.hits += here.hits;
    seen.evictions += here.evictions;
    seen.offloads += here.offloads;
    seen.abandoned += here.abandoned;
    seen.reloads += here.reloads;
    seen.loads += here.loads;
    seen.unloads += here.unloads;
    seen.stalls += here.stalls;
}

fn check_all(kinds: &[Kind], lengths: &[usize], memories: &[(u32, u32)]) -> Seen {
    let mut seen = Seen::default();
    let worlds: Vec<Vec<Request>> = lengths
        .iter()
        .flat_map(|&length| lists(kinds, length))
        .flat_map(|list| arrivals(&list))
        .collect();
    for engine in engines(memories) {
        for requests in &worlds {
            check(&engine.clone().with(requests.clone()), &mut seen);
        }
    }
    seen
}

/// Everything that makes a tier hard must have been there.
fn guard(seen: &Seen, least: u64) {
    for (what, count) in [
        ("preemptions", seen.preemptions),
        ("swaps", seen.swaps),
        ("hits", seen.hits),
        ("evictions", seen.evictions),
        ("offloads", seen.offloads),
        ("abandoned copies", seen.abandoned),
        ("reloads", seen.reloads),
        ("loads beside", seen.loads),
        ("stalls", seen.stalls),
    ] {
        assert!(count >= least, "only {count} {what} in {seen:?}");
    }
}

/// Kinds of both streams.
fn kinds(lengths: &[(u32, u32)]) -> Vec<Kind> {
    let of = |stream| lengths.iter().map(move |&(prompt, output)| (stream, prompt, output));
    of(0).chain(of(1)).collect()
}

#[test]
fn every_world_of_three_requests_holds() {
    let kinds = kinds(&[(2, 1), (2, 3), (3, 1), (3, 3)]);
    guard(&check_all(&kinds, &[1, 2, 3], &[(1, 5), (2, 3)]), 1_000);
}

#[test]
fn every_world_of_two_requests_holds_with_room_to_spare() {
    let kinds = kinds(&[(1, 3), (2, 1), (2, 3), (3, 2), (4, 1), (4, 3)]);
    let seen = check_all(&kinds, &[1, 2], &[(1, 6), (2, 3), (2, 4)]);
    assert!(seen.hits > 1_000 && seen.evictions > 1_000 && seen.preemptions > 100, "{seen:?}");
}

/// Each of these needs all 4 blocks before it is done, so that they stand in each other's way.
#[test]
fn every_world_of_four_requests_that_need_everything_holds() {
    let seen = check_all(&kinds(&[(1, 4), (3, 2)]), &[4], &[(1, 4)]);
    guard(&seen, 1_000);
    assert!(seen.unloads > 0, "nobody gave way in {seen:?}");
}
