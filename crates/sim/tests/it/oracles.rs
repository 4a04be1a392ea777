//! What oracles promise: that they use what they know well, that they change nothing but their
//! decisions, and that nobody, oracles included, goes below the floor.

use crate::harness::{Listed, Scenario, Told, prompted, request, small_world};
use crate::worlds::in_random_worlds;
use blis_core::random::Purpose;
use blis_core::{Dice, InstanceId, Request, RequestId, RequestView, Source, Span, Time};
use blis_metrics::Status;
use blis_policy::{Choice, ClusterView, Router};
use blis_sim::{Floor, Floors, Instead, Oracles, Pace, Pool};
use proptest::prelude::*;
use std::cell::Cell;

const BOTH: Oracles = Oracles { routing: true, scheduler: true };

fn foreseen(world: &Scenario, oracles: Oracles) -> Scenario {
    Scenario { oracles, ..world.clone() }
}

/// The floors of the requests of a world in a pool, in order of arrival.
fn floors(world: &Scenario, pool: Pool) -> Vec<Floor> {
    let mut floors = Floors::new(pool.engine, world.gateway, pool.latency);
    let mut source = Listed::new(world.requests.clone());
    let mut all = Vec::new();
    while let Some(request) = source.next_request().expect("a list") {
        all.push(floors.next(&request));
    }
    all
}

fn arrivals(told: &Told) -> Vec<&(Time, u32, String)> {
    told.facts.iter().filter(|(_, _, fact)| fact.starts_with("Arrived")).collect()
}

#[test]
fn oracles_change_nothing_of_what_is_sent() {
    let changed = Cell::new(0);
    let coverage = in_random_worlds(300, |world| {
        let (told, foreseen) = (world.run(), foreseen(world, BOTH).run());
        prop_assert_eq!(arrivals(&told), arrivals(&foreseen));
        changed.set(changed.get() + u32::from(told.facts != foreseen.facts));
        Ok(foreseen)
    });
    coverage.guard(0.05);
    assert!(changed.get() >= 150, "oracles decided otherwise in only {} worlds", changed.get());
}

#[test]
fn fast_forward_tells_the_same_facts_as_stepping_under_oracles() {
    let coverage = in_random_worlds(300, |world| {
        let world = foreseen(world, BOTH);
        let (fast, slow) = (world.run(), world.paced(Pace::Stepwise).run());
        prop_assert_eq!(&fast.facts, &slow.facts);
        Ok(fast)
    });
    coverage.guard(0.05);
}

/// Nobody comes after the last request, so what the router foresees of it is what happens: of all
/// places it takes the one with the earliest first token. Always, whatever the engine does: with
/// others on their way there, copies under way, blocks that others are computing, and policies that
/// read what the router expected.
#[test]
fn the_last_request_has_no_better_place_than_the_one_foreseen() {
    let (compared, worse, router_worse) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let (intents, on_the_way, mended) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let coverage = in_random_worlds(900, |world| {
        // Looking ahead is not told what `belady` would keep, nor who will give up.
        let evict = if world.evict == "belady" { "lru" } else { world.evict };
        let mut world = Scenario { evict, horizon: None, patience: None, ..world.clone() };
        for request in &mut world.requests {
            request.patience = None;
        }
        let scheduler = world.seed.is_multiple_of(3);
        let seen = foreseen(&world, Oracles { routing: true, scheduler });
        let told = seen.run();
        let last = *told.closed.last().expect("there are requests");
        let Some(ttft) = last.ttft else { return Ok(told) };
        for place in 0..world.size() {
            let overrule = Some((RequestId(last.request), Instead::At(InstanceId(place))));
            let elsewhere = Scenario { overrule, ..seen.clone() }.run();
            let Some(other) = elsewhere.closed.last().expect("the same").ttft else { continue };
            prop_assert!(ttft <= other, "{} at {:?}, {} at {}", ttft, last.instance, other, place);
            compared.set(compared.get() + 1);
            worse.set(worse.get() + u32::from(ttft < other));
        }
        let reads = world.order.contains("expected") || evict.contains("intent");
        intents.set(intents.get() + u32::from(reads && world.size() > 1));
        on_the_way.set(on_the_way.get() + u32::from(others_on_the_way(&told, last.request)));
        let plain = world.run();
        let plain = plain.closed.last().and_then(|ended| ended.ttft);
        router_worse.set(router_worse.get() + u32::from(plain.is_some_and(|other| other > ttft)));
        // The same for one decision alone, if nobody reads what the router expected.
        let overrule = Some((RequestId(last.request), Instead::Foreseen));
        let once = Scenario { overrule, ..world.clone() }.run();
        if let (false, Some(once), Some(plain)) =
            (reads, once.closed.last().and_then(|ended| ended.ttft), plain)
        {
            prop_assert!(once <= plain, "{} foreseen, {} as routed", once, plain);
            mended.set(mended.get() + u32::from(once < plain));
        }
        Ok(told)
    });
    assert!(coverage.several_instances > 300, "{coverage:?}");
    assert!(coverage.loading > 80 && coverage.preemption > 100, "{coverage:?}");
    let counts = [compared, worse, router_worse, intents, on_the_way, mended];
    let counts = counts.map(Cell::into_inner);
    let least = [800, 250, 80, 60, 60, 60];
    assert!(counts.iter().zip(least).all(|(&count, least)| count > least), "{counts:?}");
}

/// Whether somebody else joined a queue after that request was routed.
fn others_on_the_way(told: &Told, request: u64) -> bool {
    let of = |word: &str| format!("{word} {{ request: RequestId({request})");
    let (routed, joins) = (of("Routed"), of("Enqueued"));
    let mut after = told.facts.iter().skip_while(|(_, _, fact)| !fact.contains(&routed));
    after.any(|(_, _, fact)| fact.contains("Enqueued") && !fact.contains(&joins))
}

/// Whatever the policies and oracles, and however steps are timed.
#[test]
fn nobody_goes_below_the_floor() {
    let (met, checked, hits) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let coverage = in_random_worlds(1_000, |world| {
        let floors: Vec<_> = world.pools().into_iter().map(|pool| floors(world, pool)).collect();
        let mut last = world.run();
        for oracles in [Oracles::default(), BOTH] {
            let told = foreseen(world, oracles).run();
            for ended in &told.closed {
                let (Some(ttft), Status::Finished) = (ended.ttft, ended.status) else { continue };
                let second = usize::from(ended.instance >= Some(world.instances));
                let floor = floors[second][usize::try_from(ended.request).expect("small")];
                let e2e = ended.e2e.expect("finished");
                prop_assert!(ttft >= floor.ttft, "{:?} below {:?}", ended, floor);
                prop_assert!(e2e >= floor.e2e, "{:?} below {:?}", ended, floor);
                checked.set(checked.get() + 1);
                met.set(met.get() + u32::from(ttft == floor.ttft));
                hits.set(hits.get() + u32::from(ended.cached > Some(0)));
            }
            last = told;
        }
        Ok(last)
    });
    coverage.guard(0.05);
    let counts = [checked.get(), met.get(), hits.get()];
    assert!(counts[0] > 5_000 && counts[1] > 500 && counts[2] > 500, "{counts:?}");
}

/// Sends each request where a list says.
struct Assigned(Vec<u32>);

impl Router for Assigned {
    fn route(&mut self, request: &RequestView<'_>, _: &ClusterView<'_>, _: &mut Dice) -> Choice {
        let index = usize::try_from(request.id.0).expect("small");
        Choice::because("assigned", InstanceId(self.0[index]))
    }
}

fn crowd(seed: u64, length: u64) -> Vec<Request> {
    let mut dice = Dice::new(seed, Purpose::Sampling, 0);
    let mut below = |most: usize| u32::try_from(dice.below(most)).expect("small");
    let mut one = |_| {
        let shared = (u64::from(below(2)), 64 * below(8));
        let own = (u64::MAX, 8 + 100 * below(8));
        prompted(u64::from(below(6_000)), &[shared, own], 1 + below(6))
    };
    (0..length).map(&mut one).collect()
}

fn mean_ttft(told: &Told) -> f64 {
    let ttfts: Vec<f64> = told.closed.iter().filter_map(|ended| ended.ttft).map(seconds).collect();
    ttfts.iter().sum::<f64>() / blis_core::math::float(ttfts.len() as u64)
}

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

/// Every way of sending seven requests to two instances.
#[test]
fn looking_ahead_comes_near_the_best_of_all_assignments_and_none_goes_below_the_floor() {
    let (mut best_sum, mut seen_sum, mut router_sum) = (0.0, 0.0, 0.0);
    let mut reached = 0;
    for seed in 0..60 {
        let mut world = small_world().with(crowd(seed, 7));
        world.instances = 2;
        world.engine.max_num_scheduled_tokens = 256;
        world.routing = "least-loaded";
        let sent = |bits: u32| Assigned((0..7).map(|at| bits >> at & 1).collect());
        let all = (0..128).map(|bits| mean_ttft(&world.run_sent_by(Box::new(sent(bits)))));
        let best = all.fold(f64::INFINITY, f64::min);
        let seen = mean_ttft(&foreseen(&world, Oracles { routing: true, scheduler: false }).run());
        let floors = floors(&world, world.pool_of(0));
        let floor = floors.iter().map(|floor| seconds(floor.ttft)).sum::<f64>() / 7.0;
        assert!(floor <= best && best <= seen + 1e-12, "{floor} {best} {seen}, crowd {seed}");
        reached += u32::from(seen <= best + 1e-12);
        best_sum += best;
        seen_sum += seen;
        router_sum += mean_ttft(&world.run());
    }
    // Most of what the router leaves on the table is what looking ahead picks up.
    assert!(
        seen_sum - best_sum < 0.5 * (router_sum - best_sum),
        "{best_sum} {seen_sum} {router_sum}"
    );
    assert!(reached >= 10, "the best was reached {reached} times of 60");
}

/// One place, so that requests are served one after the other: no order of them ends sooner in the
/// mean, and none has the first tokens sooner unless it is another measure of work.
#[test]
fn the_least_work_left_first_is_the_best_of_all_orders() {
    let mut beaten = 0;
    for seed in 0..40 {
        let mut dice = Dice::new(seed, Purpose::Sampling, 0);
        let mut below = |most: usize| u32::try_from(dice.below(most)).expect("small");
        let kinds: Vec<(u32, u32)> = (0..5).map(|_| (1 + below(3_000), 1 + below(9))).collect();
        let world = |order: &[usize]| {
            // Somebody else keeps the place until all wait.
            let mut requests = vec![request(0, 20, 30)];
            let waiting = (0..).zip(order);
            requests.extend(waiting.map(|(at, &kind)| {
                let (prompt, output) = kinds[kind];
                // All join the queue by 9 ms, in this order.
                request(9_000 - u64::from(prompt) + at, prompt, output)
            }));
            let mut world = small_world().with(requests);
            world.engine.max_num_running_reqs = 1;
            world
        };
        let total =
            |told: &Told| told.closed.iter().filter_map(|e| e.e2e).map(seconds).sum::<f64>();
        let orders = permutations(5);
        let all: Vec<f64> = orders.iter().map(|order| total(&world(order).run())).collect();
        let best = all.iter().copied().fold(f64::INFINITY, f64::min);
        let oracles = Oracles { routing: false, scheduler: true };
        let least = total(&foreseen(&world(&orders[0]), oracles).run());
        // Arrivals differ by microseconds between orders.
        assert!((least - best).abs() < 1e-4, "{least} instead of {best}, {kinds:?}");
        beaten += u32::from(all[0] > best + 1e-4);
    }
    assert!(beaten >= 30, "the order of arrival was not the best {beaten} times of 40");
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let longer = shorter.iter().flat_map(|order| {
        (0..count).map(move |at| {
            let mut order = order.clone();
            order.insert(at, count - 1);
            order
        })
    });
    longer.collect()
}
