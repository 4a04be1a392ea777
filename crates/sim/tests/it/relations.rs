//! Relations between runs that must hold whatever the numbers are.

use crate::harness::{Ended, Scenario, Told, prompted, request, small_world};
use crate::worlds::{Coverage, in_random_worlds};
use blis_core::{Content, Request, Segment, Span, StreamId, Time};
use blis_latency::{Coefficients, HostTime, StepShape, StepTime};
use blis_metrics::{Stage, Status};
use blis_sim::{Pace, Prefill, Signals};
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Arc;

#[test]
fn fast_forward_tells_the_same_facts_as_stepping() {
    let coverage = in_random_worlds(1_500, |world| {
        let fast = world.run();
        let slow = world.paced(Pace::Stepwise).run();
        same_facts(&fast, &slow, Time::NEVER)?;
        prop_assert_eq!(&fast.closed, &slow.closed);
        prop_assert_eq!(&fast.outcome, &slow.outcome);
        for (place, blocks) in &fast.blocks_in_use {
            prop_assert_eq!(Some(blocks), slow.blocks_in_use.get(place), "blocks at {:?}", place);
        }
        Ok(fast)
    });
    coverage.guard(0.05);
    let rare = [coverage.judged_eviction, coverage.foreseen_eviction, coverage.chosen_victim];
    assert!(rare.iter().all(|&worlds| worlds >= 75), "{rare:?} of {} worlds", coverage.worlds);
    let in_flight = coverage.in_flight;
    assert!(in_flight.iter().all(|&worlds| worlds >= 5), "{in_flight:?} in {coverage:?}");
}

#[test]
fn runs_of_steps_that_evict_and_blocks_that_are_only_counted_change_nothing() {
    let evicting = Cell::new(0);
    let coverage = in_random_worlds(600, |world| {
        let fast = world.run_briefly(true);
        prop_assert_eq!(&fast, &world.run_briefly(false));
        prop_assert_eq!(&fast, &world.paced(Pace::Stepwise).run_briefly(false));
        evicting.set(evicting.get() + u32::from(fast.0.evicted > 0));
        Ok(world.run())
    });
    coverage.guard(0.05);
    assert!(evicting.get() > 75, "{} worlds evict", evicting.get());
}

#[test]
fn a_world_run_twice_tells_the_same() {
    let coverage = in_random_worlds(300, |world| {
        let (once, twice) = (world.run(), world.run());
        same_facts(&once, &twice, Time::NEVER)?;
        Ok(once)
    });
    coverage.guard(0.05);
}

/// No clairvoyance: what happens before a request arrives cannot depend on it, whatever the
/// policies, unless one is an oracle.
#[test]
fn a_request_changes_nothing_before_it_arrives() {
    let later = Cell::new(0);
    let coverage = in_random_worlds(600, |world| {
        let world = &without_oracle(world);
        let told = world.run();
        for cut in arrivals(world).into_iter().step_by(5) {
            let mut without = world.clone();
            without.requests.retain(|request| request.arrival < cut);
            same_facts(&told, &without.run(), cut)?;
            let mut altered = world.clone();
            for request in altered.requests.iter_mut().filter(|r| r.arrival >= cut) {
                *request = Request { arrival: request.arrival, ..prompted(0, &[(1, 9)], 3) };
            }
            same_facts(&told, &altered.run(), cut)?;
            later.set(later.get() + u32::from(cut > Time::ZERO));
        }
        Ok(told)
    });
    coverage.guard(0.05);
    assert!(later.get() > 500, "only {} cuts were in the middle of a run", later.get());
}

/// With separate prefill no step has both, though there was somebody to decode. (Who comes back
/// after a preemption and finds all but its last token decodes at once.)
#[test]
fn prompts_and_decodes_share_no_step_if_prefill_is_separate() {
    let left_out = Cell::new(0);
    let coverage = in_random_worlds(600, |world| {
        let told = world.run();
        if told.count("Preempted") > 0 {
            return Ok(told);
        }
        for (at, lane, fact) in told.facts.iter().filter(|(_, _, fact)| fact.starts_with("Steps")) {
            let number = |field: &str| -> u32 {
                let rest = fact.split(field).nth(1).expect("a field of a batch");
                rest.split(|c: char| !c.is_ascii_digit())
                    .next()
                    .and_then(|n| n.parse().ok())
                    .unwrap()
            };
            let [prompts, decodes] = ["prefill_seqs: ", "decode_seqs: "].map(number);
            if world.pool_of(lane - 1).engine.prefill == Prefill::Mixed || prompts == 0 {
                continue;
            }
            prop_assert_eq!(decodes, 0, "{} {}", at, fact);
            left_out.set(left_out.get() + u32::from(number("running: ") > prompts));
        }
        Ok(told)
    });
    coverage.guard(0.05);
    assert!(left_out.get() > 500, "only {} steps left somebody out", left_out.get());
}

/// The output length is unknown until it is reached: a longer answer changes nothing before the
/// shorter one would have ended. With asynchronous scheduling the engine knows a step before that
/// the last token is on its way, as vLLM knows `max_tokens`.
#[test]
fn an_output_length_changes_nothing_before_the_answer_ends() {
    let checked = Cell::new(0);
    let coverage = in_random_worlds(600, |world| {
        let told = world.run();
        let finished = told.closed.iter().filter(|ended| ended.status == Status::Finished);
        for ended in finished.step_by(3) {
            let mut longer = world.clone();
            longer.requests.sort_by_key(|request| request.arrival);
            longer.requests[usize::try_from(ended.request).expect("small")].output_tokens += 7;
            let other = longer.run();
            let same_end = |other: &Ended| other.request == ended.request;
            if other.closed.iter().any(|o| same_end(o) && o.status == Status::Unservable) {
                continue;
            }
            let arrival = longer.requests[usize::try_from(ended.request).expect("small")].arrival;
            let instance = ended.instance.expect("finished");
            let (pool, lane) = (world.pool_of(instance), instance + 1);
            let left = arrival + ended.e2e.expect("finished") - ended.split.output;
            let ahead = pool.engine.stages - 1 + u32::from(pool.engine.async_scheduling);
            let known = if let Some(others) = ahead.checked_sub(1) {
                let steps = |(at, of, fact): &&(Time, u32, String)| {
                    *at < left && *of == lane && fact.starts_with("Steps")
                };
                let mut before = told.facts.iter().rev().filter(steps);
                before.nth(others as usize).map_or(arrival, |&(at, _, _)| at)
            } else {
                left
            };
            same_facts(&told, &other, known)?;
            checked.set(checked.get() + 1);
        }
        Ok(told)
    });
    coverage.guard(0.05);
    assert!(checked.get() > 1_000, "only {} answers were lengthened", checked.get());
}

/// Every duration times c: every instant times c.
#[test]
fn a_world_in_slow_motion_tells_the_same_story() {
    let coverage = in_random_worlds(300, |world| {
        // Phases of pollers and shares of a link are rounded to nanoseconds: not exact when scaled.
        // A bucket refills in real time, and parameters of other policies are spans of it as well.
        let mut world = Scenario { admission: "always-admit", beside: None, ..world.clone() };
        world.signals = Signals::IMMEDIATE;
        world.engine.tier = None;
        for (policy, timeless) in [
            (&mut world.order, "fcfs"),
            (&mut world.priority, "slo-class"),
            (&mut world.evict, "lru"),
        ] {
            if policy.contains('[') {
                *policy = timeless;
            }
        }
        let told = world.run();
        for times in [2, 7] {
            let slow = slowed(&world, times).run();
            for (ended, slower) in told.closed.iter().zip(&slow.closed) {
                prop_assert_eq!(ended.ttft.map(|ttft| ttft * times), slower.ttft);
                prop_assert_eq!(ended.e2e.map(|e2e| e2e * times), slower.e2e);
                prop_assert_eq!(ended.instance, slower.instance);
            }
            prop_assert_eq!(told.facts.len(), slow.facts.len());
        }
        Ok(told)
    });
    covers(&coverage);
}

#[test]
fn a_world_that_starts_later_tells_the_same_story_later() {
    let shift = Span::from_micros(12_345);
    let coverage = in_random_worlds(300, |world| {
        let world = Scenario { signals: Signals::IMMEDIATE, ..world.clone() };
        let told = world.run();
        let mut later = world.clone();
        later.requests.iter_mut().for_each(|request| request.arrival += shift);
        later.horizon = later.horizon.map(|horizon| horizon + shift);
        later.warmup += shift;
        let told_later = later.run();
        for ((at, _, _), (later, _, _)) in told.facts.iter().zip(&told_later.facts) {
            prop_assert_eq!(*at + shift, *later);
        }
        prop_assert_eq!(&told.closed, &told_later.closed);
        Ok(told)
    });
    covers(&coverage);
}

/// Tokens, block size and budgets times k, costs per token divided by k: the same story, if prompts
/// are all there is.
#[test]
fn counting_in_other_units_changes_nothing() {
    let per_token = |cost| {
        Arc::new(Coefficients::new([100.0, cost, 10.0], [1000.0, 4.0 * cost, 0.0]).expect("legal"))
    };
    let coverage = in_random_worlds(300, |world| {
        let mut world = Scenario { admission: "always-admit", beside: None, ..without_hash(world) };
        if world.scorers.is_some_and(|s| s.contains("latency") || s.contains("cost")) {
            // Who predicts from the cost of a token is told another one here.
            world.scorers = None;
        }
        if world.offload == "vllm" {
            // A prompt that is in the tier to its end is computed from its last token on.
            world.offload = "write-through";
        }
        world.latency = per_token(4.0);
        // A draft is as long in any unit.
        world.engine.speculation = None;
        world.requests.iter_mut().for_each(|request| request.output_tokens = 1);
        let told = world.run();
        let mut finer = world.clone();
        finer.latency = per_token(1.0);
        finer.engine.block_size *= 4;
        finer.engine.max_num_scheduled_tokens *= 4;
        finer.engine.long_prefill_token_threshold *= 4;
        for request in &mut finer.requests {
            let longer = |s: &Segment| Segment { tokens: s.tokens * 4, ..*s };
            let segments = request.content.segments().iter().map(longer);
            request.content = Content::new(segments, request.content.output_stream());
        }
        for (ended, other) in told.closed.iter().zip(&finer.run().closed) {
            let finer = Ended { cached: ended.cached.map(|cached| cached * 4), ..*ended };
            prop_assert_eq!(&finer, other);
        }
        Ok(told)
    });
    assert!(coverage.chunked_prefill > 30 && coverage.prefix_hit > 30 && coverage.queue > 30);
}

/// The world with another router where a hash of names and lengths is all that it goes by.
fn without_hash(world: &Scenario) -> Scenario {
    let routing = match world.routing {
        "consistent-hash" => "session-affinity",
        other => other,
    };
    Scenario { routing, ..world.clone() }
}

#[test]
fn the_names_of_streams_do_not_matter() {
    let coverage = in_random_worlds(300, |world| {
        let world = without_hash(world);
        let told = world.run();
        let mut renamed = world.clone();
        for request in &mut renamed.requests {
            let rename = |stream: StreamId| match stream.0 {
                u64::MAX => stream,
                known => StreamId(known * 31 + 7),
            };
            let segment = |s: &Segment| Segment { stream: rename(s.stream), tokens: s.tokens };
            let segments = request.content.segments().iter().map(segment);
            request.content = Content::new(segments, rename(request.content.output_stream()));
        }
        same_facts(&told, &renamed.run(), Time::NEVER)?;
        Ok(told)
    });
    coverage.guard(0.05);
}

/// Round-robin over two instances is two separate clusters, each with every other request.
#[test]
fn two_instances_under_round_robin_are_two_separate_runs() {
    let coverage = in_random_worlds(300, |world| {
        // An oracle sees what is sent to the other instance, too.
        let mut world =
            Scenario { admission: "always-admit", beside: None, ..without_oracle(world) };
        (world.instances, world.routing, world.scorers) = (2, "round-robin", None);
        // Each replica of the gateway would have turns of its own.
        world.gateways = 1;
        // What of a draft is right goes by the number of the request.
        world.engine.speculation = None;
        world.horizon = None;
        world.requests.sort_by_key(|request| request.arrival);
        // Requests that are refused on arrival, or abandoned on the way, are not routed, and would
        // shift the turns.
        let servable = world.run().closed;
        let lost = [Status::Unservable, Status::Abandoned(Stage::Gateway)];
        let mut fits = servable.iter().map(|ended| !lost.contains(&ended.status));
        world.requests.retain(|_| fits.next().expect("one end a request"));
        let told = world.run();
        for half in 0..2 {
            let mut alone = world.clone();
            alone.instances = 1;
            let mut index = 0;
            alone.requests.retain(|_| {
                index += 1;
                index % 2 != half
            });
            let together = told.closed.iter().filter(|ended| ended.request % 2 == half);
            for (ended, other) in together.zip(&alone.run().closed) {
                let own = Ended { request: other.request, instance: other.instance, ..*ended };
                prop_assert_eq!(&own, other);
            }
        }
        Ok(told)
    });
    covers(&coverage);
}

/// One place, first come first served, no cache: a shorter or absent request never makes another
/// start later.
#[test]
fn less_work_in_a_plain_queue_makes_nobody_later() {
    let coverage = in_random_worlds(300, |world| {
        let mut world = Scenario { admission: "always-admit", order: "fcfs", ..world.clone() };
        (world.instances, world.beside) = (1, None);
        (world.horizon, world.patience) = (None, None);
        (world.engine.max_num_running_reqs, world.engine.total_kv_blocks) = (1, 10_000);
        for request in &mut world.requests {
            *request =
                Request { ..prompted(request.arrival.as_nanos() / 1000, &[(u64::MAX, 8)], 4) };
        }
        world.requests.sort_by_key(|request| request.arrival);
        let told = world.run();
        let mut fewer = world.clone();
        let removed = fewer.requests.len() / 2;
        fewer.requests.remove(removed);
        let others = told.closed.iter().filter(|e| e.request != removed as u64);
        for (ended, earlier) in others.zip(&fewer.run().closed) {
            prop_assert!(earlier.ttft <= ended.ttft, "{earlier:?} against {ended:?}");
        }
        Ok(told)
    });
    assert!(coverage.queue > 100, "queues in {} worlds", coverage.queue);
}

/// LRU is a stack: one request after the other, more blocks never lose a hit.
#[test]
fn more_blocks_never_lose_a_hit_of_lru() {
    let mut growing = 0;
    for seed in 0..20_u64 {
        let mut dice = blis_core::Dice::new(seed, blis_core::random::Purpose::Sampling, 0);
        let requests: Vec<Request> = (0..60)
            .map(|n| {
                let stream = dice.below(6) as u64;
                let tokens = 16 * (1 + u32::try_from(dice.below(6)).expect("small"));
                prompted(n * 100_000, &[(stream, tokens), (u64::MAX, 8)], 2)
            })
            .collect();
        let hits = |blocks: u32| -> u32 {
            let mut scenario = small_world().with(requests.clone());
            scenario.engine.total_kv_blocks = blocks;
            scenario.run().closed.iter().filter_map(|ended| ended.cached).sum()
        };
        let by_size: Vec<u32> = (8..60).step_by(3).map(hits).collect();
        assert!(by_size.is_sorted(), "hits by pool size: {by_size:?}");
        growing += u32::from(by_size.first() < by_size.last());
    }
    assert!(growing > 15, "the pool's size mattered in only {growing} of 20 sequences");
}

/// After the last arrival everything drains: nobody is left waiting.
#[test]
fn every_world_without_a_horizon_drains() {
    let coverage = in_random_worlds(400, |world| {
        let world = Scenario { horizon: None, ..world.clone() };
        let told = world.run();
        prop_assert_eq!(told.outcome.end.name(), "drained");
        let over = |ended: &Ended| {
            use Status::{Abandoned, Finished, Rejected, Unservable};
            matches!(ended.status, Finished | Rejected(_) | Unservable | Abandoned(_))
        };
        prop_assert!(told.closed.iter().all(over));
        prop_assert_eq!(told.closed.len(), world.requests.len());
        Ok(told)
    });
    assert!(coverage.preemption > 20 && coverage.queue > 100);
}

/// Little's law, exact by area: the sum of times in the system is the area under the number in the
/// system.
#[test]
fn the_area_under_the_number_in_system_is_the_sum_of_times_in_system() {
    let told = small_world().with((0..200).map(|n| request(n * 700, 60, 9)).collect()).run();
    let mut changes: Vec<(Time, i64)> = Vec::new();
    for ended in &told.closed {
        let arrival = Time::from_micros(ended.request * 700);
        changes.push((arrival, 1));
        changes.push((arrival + ended.e2e.expect("all finish"), -1));
    }
    changes.sort_unstable();
    let (mut area, mut present, mut last) = (0, 0, Time::ZERO);
    for (at, change) in changes {
        area += i128::from(present) * i128::from(at.since(last).as_nanos());
        (present, last) = (present + change, at);
    }
    let times: Span = told.closed.iter().filter_map(|ended| ended.e2e).sum();
    assert_eq!(area, i128::from(times.as_nanos()));
}

/// The facts of both runs before `until` are the same.
pub(crate) fn same_facts(a: &Told, b: &Told, until: Time) -> Result<(), TestCaseError> {
    let before = |told: &Told| {
        let end = told.facts.partition_point(|&(at, _, _)| at < until);
        told.facts[..end].to_vec()
    };
    let (a, b) = (before(a), before(b));
    for (a, b) in a.iter().zip(&b) {
        prop_assert_eq!(a, b, "the first fact that differs");
    }
    prop_assert_eq!(a.len(), b.len(), "one run has more to tell before {}", until);
    Ok(())
}

fn arrivals(world: &Scenario) -> Vec<Time> {
    let mut arrivals: Vec<Time> = world.requests.iter().map(|request| request.arrival).collect();
    arrivals.sort_unstable();
    arrivals
}

/// For relations that need immediate signals and no gate, the rest must still have been there.
fn covers(coverage: &Coverage) {
    let Coverage { preemption, chunked_prefill, prefix_hit, queue, uneven_steps, .. } = *coverage;
    for worlds in [preemption, chunked_prefill, prefix_hit, queue, uneven_steps] {
        assert!(worlds > 15, "{coverage:?}");
    }
}

#[derive(Debug)]
struct Slowed(Arc<dyn StepTime>, u64);

impl StepTime for Slowed {
    fn predict(&self, shape: &StepShape) -> Span {
        self.0.predict(shape) * self.1
    }

    fn divide(&self, shape: &StepShape, total: Span, stages: &mut [Span]) {
        self.0.divide(shape, total / self.1, stages);
        for span in stages.iter_mut() {
            *span = *span * self.1;
        }
    }

    fn host(&self, shape: &StepShape) -> HostTime {
        let HostTime { schedule, prepare, launch, update } = self.0.host(shape);
        let [schedule, prepare, launch, update] =
            [schedule, prepare, launch, update].map(|span| span * self.1);
        HostTime { schedule, prepare, launch, update }
    }

    fn ingress(&self, input_tokens: u32) -> Span {
        self.0.ingress(input_tokens) * self.1
    }

    fn output(&self, seqs: u32) -> Span {
        self.0.output(seqs) * self.1
    }

    fn context_free(&self) -> bool {
        self.0.context_free()
    }

    fn repeats(&self, shape: &StepShape) -> u32 {
        self.0.repeats(shape)
    }

    fn wants_spread(&self) -> bool {
        self.0.wants_spread()
    }

    fn beyond(&self, shape: &StepShape) -> u32 {
        self.0.beyond(shape)
    }
}

fn without_oracle(world: &Scenario) -> Scenario {
    let evict = if world.evict == "belady" { "lru" } else { world.evict };
    Scenario { evict, ..world.clone() }
}

fn slowed(world: &Scenario, times: u64) -> Scenario {
    let later = |at: Time| Time::from_nanos(at.as_nanos() * times);
    let mut slow = world.clone();
    for request in &mut slow.requests {
        request.arrival = later(request.arrival);
        request.patience = request.patience.map(|patience| patience * times);
    }
    slow.patience = slow.patience.map(|patience| patience * times);
    slow.gateway.admission_latency = slow.gateway.admission_latency * times;
    slow.gateway.routing_latency = slow.gateway.routing_latency * times;
    slow.horizon = slow.horizon.map(later);
    slow.warmup = later(slow.warmup);
    slow.latency = Arc::new(Slowed(Arc::clone(&world.latency), times));
    if let Some(drafts) = &mut slow.engine.speculation {
        (drafts.step, drafts.token) = (drafts.step * times, drafts.token * times);
    }
    if world.evict.starts_with("session-aware") {
        slow.evict = match times {
            2 => "session-aware[grace=0.004]",
            7 => "session-aware[grace=0.014]",
            _ => unreachable!("twice or seven times as slow"),
        };
    }
    slow
}
