//! The bound that `belady` gives, exactly.
//!
//! **Theorem.** Let one instance serve one request at a time, in order of arrival, without a tier,
//! and let no request be preempted or turned away. Let no prompt end at the end of a block, so that
//! each of its full blocks is looked up, and let no request generate blocks that are cached. Then
//! the blocks that a request needs, and those it leaves, do not depend on the evictor, and neither
//! does how many others there is room for. So what is cached after a request is all that it has
//! used and as many of the others as there is room for, and the choice of these is Belady's
//! problem: keeping those that are needed again first finds the most over the whole trace. Whoever
//! needs a block needs all before it, so that is also a choice that keeps prefixes.
//!
//! Tested: no evictor finds more on random traces, and on short ones `belady` finds as much as the
//! best of all choices, which is found by trying them all.

use crate::harness::{Listed, Scenario, prompted, small_world};
use crate::worlds::in_random_worlds;
use blis_core::random::Purpose;
use blis_core::{Content, Dice, Request, SessionId, SloClass, Source, StreamId};
use blis_latency::Coefficients;
use std::collections::BTreeMap;
use std::sync::Arc;

const BLOCK: u32 = 16;
/// Blocks that the largest request needs.
const LARGEST: u32 = 9;

/// Tokens of a request at its end; the last one is never in the cache.
fn tokens(request: &Request) -> u32 {
    request.content.prompt_tokens() + request.output_tokens - 1
}

/// Prompts of a small tree of blocks, with classes; and conversations, whose rounds continue what
/// was generated before.
fn trace(seed: u64, length: u64) -> Vec<Request> {
    let mut dice = Dice::new(seed, Purpose::Sampling, 0);
    let mut below = |most: usize| u32::try_from(dice.below(most)).expect("small");
    let mut rounds = [0_u32; 3];
    let mut requests = Vec::new();
    for at in 0..length {
        let output = 1 + below(3) * 14;
        let arrival_us = at * 1_000_000 + u64::from(below(1_000));
        let talker = below(8) as usize;
        let mut request = if let Some(said) = rounds.get_mut(talker) {
            let stream = 100 + talker as u64 + 10 * u64::from(*said / 80);
            let prompt = *said % 80 + 17 + below(12);
            let prompt = prompt + u32::from(prompt.is_multiple_of(BLOCK));
            *said += prompt - *said % 80 + output;
            let mut request = prompted(arrival_us, &[(stream, prompt)], output);
            request.content = Content::new(request.content.segments().to_vec(), StreamId(stream));
            request.session = Some(SessionId(stream));
            request
        } else {
            let blocks = 1 + below(4);
            let names = 2 + below(2) as usize;
            let mut segments: Vec<(u64, u32)> =
                (0..blocks).map(|_| (u64::from(below(names)), BLOCK)).collect();
            segments.push((u64::MAX, 3));
            prompted(arrival_us, &segments, output)
        };
        request.class = SloClass::ALL[below(5) as usize];
        requests.push(request);
    }
    requests
}

/// One request after the other, each long done before the next comes.
fn one_by_one(requests: &[Request], blocks: u32, evict: &'static str) -> Scenario {
    let mut scenario = small_world().with(requests.to_vec());
    scenario.engine.total_kv_blocks = blocks;
    scenario.engine.max_num_running_reqs = 1;
    let latency = Coefficients::new([0.0, 0.0, 0.0], [1000.0, 2.0, 3.0]).expect("legal");
    Scenario { evict, latency: Arc::new(latency), ..scenario }
}

fn finds(scenario: &Scenario) -> u32 {
    let told = scenario.run();
    assert!(told.victims.is_empty(), "nobody is preempted");
    told.found().iter().sum()
}

const OTHERS: [&str; 5] =
    ["lru", "lfu", "slo-aware", "session-aware[grace=4]", "session-aware[grace=40]"];

#[test]
fn no_evictor_finds_more_than_belady() {
    let mut beaten = [0; OTHERS.len()];
    for seed in 0..200 {
        let requests = trace(seed, 60);
        assert!(requests.iter().all(|request| tokens(request).div_ceil(BLOCK) <= LARGEST));
        for blocks in [LARGEST, LARGEST + 4, LARGEST + 10] {
            let oracle = finds(&one_by_one(&requests, blocks, "belady"));
            for (beaten, evict) in beaten.iter_mut().zip(OTHERS) {
                let other = finds(&one_by_one(&requests, blocks, evict));
                assert!(other <= oracle, "{evict} on trace {seed}, {blocks} blocks");
                *beaten += u32::from(other < oracle);
            }
        }
    }
    assert!(beaten.iter().all(|&times| times >= 300), "{beaten:?} times of 600 each");
}

/// The blocks of a request as bits: those it looks up, and those it leaves in the cache.
struct Needed {
    looked_up: u64,
    left: u64,
    /// Blocks of others that fit beside it.
    room: u32,
}

/// The blocks of a trace as bits, and what is above each of them.
fn needed(requests: &[Request], blocks: u32) -> (Vec<Needed>, Vec<u64>) {
    let mut bits: BTreeMap<Vec<(u64, u32)>, u64> = BTreeMap::new();
    let mut above = Vec::new();
    let mut source = Listed::new(requests.to_vec());
    let mut all = Vec::new();
    while let Some(request) = source.next_request().expect("a list") {
        let mut content = Vec::new();
        for segment in request.content.segments() {
            content.extend((0..segment.tokens).map(|at| (segment.stream.0, at)));
        }
        let output = request.content.output_stream().0;
        let said = content.iter().filter(|token| token.0 == output).count();
        content.extend(
            (0..request.output_tokens - 1)
                .zip(said..)
                .map(|(_, at)| (output, u32::try_from(at).expect("short"))),
        );
        let (mut looked_up, mut left, mut before) = (0, 0, 0);
        for end in
            (BLOCK..).step_by(BLOCK as usize).take_while(|&end| end as usize <= content.len())
        {
            let bit = *bits.entry(content[..end as usize].to_vec()).or_insert_with(|| {
                above.push(before);
                1 << (above.len() - 1)
            });
            left |= bit;
            looked_up |= if end < request.content.prompt_tokens() { bit } else { 0 };
            before = bit;
        }
        all.push(Needed { looked_up, left, room: blocks - tokens(&request).div_ceil(BLOCK) });
    }
    assert!(above.len() < 64, "{} blocks", above.len());
    (all, above)
}

/// The most blocks that can be found, by trying all that can be kept.
fn best(requests: &[Request], blocks: u32) -> u32 {
    let (requests, above) = needed(requests, blocks);
    let closed =
        |set: u64| (0..above.len()).all(|at| set >> at & 1 == 0 || set & above[at] == above[at]);
    let mut reached = BTreeMap::from([(0_u64, 0_u32)]);
    for Needed { looked_up, left, room } in requests {
        let mut next = BTreeMap::new();
        for (cached, found) in reached {
            let found = found + (cached & looked_up).count_ones();
            let others = cached & !left;
            let room = room.min(others.count_ones());
            let mut kept = others;
            loop {
                if kept.count_ones() == room && closed(kept | left) {
                    let known = next.entry(kept | left).or_insert(0);
                    *known = found.max(*known);
                }
                if kept == 0 {
                    break;
                }
                kept = (kept - 1) & others;
            }
        }
        reached = next;
    }
    reached.into_values().max().expect("something is always possible")
}

#[test]
fn belady_finds_as_much_as_is_possible() {
    let mut beaten = 0;
    for seed in 1_000..1_100 {
        let requests = trace(seed, 14);
        for blocks in [LARGEST, LARGEST + 2] {
            let best = best(&requests, blocks) * BLOCK;
            let finds = |evict| finds(&one_by_one(&requests, blocks, evict));
            assert_eq!(finds("belady"), best, "trace {seed}, {blocks} blocks");
            beaten += u32::from(finds("lru") < best);
        }
    }
    assert!(beaten >= 50, "lru was not the best {beaten} times of 200");
}

/// The audit checks after every step that what a run continues is needed no later than the run.
#[test]
fn what_is_needed_later_goes_first_in_random_worlds() {
    let coverage = in_random_worlds(3_000, |world| {
        let mut world = Scenario { evict: "belady", ..world.clone() };
        // In a few blocks two requests with drafts can preempt each other for ever.
        world.engine.speculation = None;
        Ok(world.run())
    });
    assert!(coverage.eviction > 300 && coverage.preemption > 300, "{coverage:?}");
}
