//! Clients that give up: where a request can be when it is abandoned, and what becomes of what it
//! held.
//!
//! The world of `small_world`: a prompt of I tokens joins the queue 100 + I us after routing; a
//! step takes 1000 + 2 per prefill token + 3 per decoding request us; a token leaves the server 10
//! us after its step.

use crate::harness::{Ended, Listed, Scenario, Told, prompted, request, small_world};
use crate::worlds::in_random_worlds;
use blis_core::{Ending, Request, Source, Span, TenantId, Time};
use blis_kv::LinkSpeed;
use blis_metrics::{Stage, Status};
use blis_sim::{End, Gateway, KvTier, Pace, Reload};
use proptest::prelude::*;
use std::cell::Cell;
use std::error::Error;

fn us(micros: u64) -> Span {
    Span::from_micros(micros)
}

/// `request` of a client that waits so long for the first token.
fn patient(patience_us: u64, request: Request) -> Request {
    Request { patience: Some(us(patience_us)), ..request }
}

/// Runs both ways, which must agree to the last fact.
fn run(scenario: &Scenario) -> Told {
    let told = scenario.run();
    let stepwise = scenario.paced(Pace::Stepwise).run();
    assert_eq!(told.facts, stepwise.facts, "fast-forward and stepwise agree");
    assert_eq!(told.outcome, stepwise.outcome);
    assert_eq!(told.outcome.end, End::Drained);
    told
}

/// How each request ended.
fn ends(told: &Told) -> Vec<Status> {
    told.closed.iter().map(|ended| ended.status).collect()
}

/// When the request that was abandoned at `stage` was closed, in microseconds.
fn abandoned_at(told: &Told, stage: Stage) -> u64 {
    let word = format!("status: Abandoned({stage:?})");
    let mut found = told.facts.iter().filter(|(_, _, fact)| fact.contains(&word));
    let (at, _, _) = found.next().expect("somebody gave up there");
    assert!(found.next().is_none(), "only one did");
    at.as_nanos() / 1_000
}

const DONE: Status = Status::Finished;

const fn gave_up(stage: Stage) -> Status {
    Status::Abandoned(stage)
}

/// The admission decision is due at 300, and the client is gone at 250; that of the second, who
/// arrives with it, is made.
#[test]
fn a_request_whose_admission_is_pending_is_forgotten_at_once() {
    let gateway = Gateway { admission_latency: us(300), routing_latency: us(0) };
    let requests = vec![patient(250, request(0, 100, 1)), request(0, 100, 1)];
    let told = run(&Scenario { gateway, ..small_world() }.with(requests));
    assert_eq!(ends(&told), [gave_up(Stage::Gateway), DONE]);
    assert_eq!(abandoned_at(&told, Stage::Gateway), 250);
    assert_eq!((told.count("Admitted"), told.count("Routed")), (1, 1));
    assert_eq!(told.closed[0].instance, None);
    assert_eq!(told.ttfts_us(), [300 + 200 + 1200 + 10]);
}

/// Admitted at once, to be routed at 300.
#[test]
fn a_request_whose_routing_is_pending_is_forgotten_at_once() {
    let gateway = Gateway { admission_latency: us(0), routing_latency: us(300) };
    let told =
        run(&Scenario { gateway, ..small_world() }.with(vec![patient(250, request(0, 100, 1))]));
    assert_eq!(ends(&told), [gave_up(Stage::Gateway)]);
    assert_eq!((told.count("Admitted"), told.count("Routed")), (1, 0));
    assert_eq!(told.outcome.ended_at, Time::from_micros(250), "no pending decision holds it up");
}

/// Both are routed at 0, to different instances, and are on the way until 200. The client of the
/// first gives up at 150, so that `least-loaded` sends the third to where the first was to go.
#[test]
fn a_request_on_the_way_is_taken_off_the_books_of_the_router() {
    for seed in 0..8 {
        let mut scenario = Scenario { seed, ..small_world() };
        scenario.instances = 2;
        scenario.routing = "least-loaded";
        let requests =
            vec![patient(150, request(0, 100, 1)), request(0, 100, 1), request(160, 100, 1)];
        let told = run(&scenario.with(requests));
        assert_eq!(ends(&told), [gave_up(Stage::Gateway), DONE, DONE]);
        assert_eq!(told.count("Enqueued"), 2);
        assert_ne!(told.closed[0].instance, told.closed[1].instance);
        assert_eq!(told.closed[0].instance, told.closed[2].instance, "seed {seed}");
    }
}

/// One place: the first runs 200..1400, then decodes in steps of 1003. The second joins the queue
/// at 200 behind it and gives up at 3000, in the middle of the step 2403..3406, when the engine
/// hears of it. The third has its place.
#[test]
fn a_waiting_request_leaves_the_queue_at_the_end_of_the_step() {
    let mut scenario = small_world();
    scenario.engine.max_num_running_reqs = 1;
    let requests =
        vec![request(0, 100, 4), patient(3_000, request(0, 100, 1)), request(10, 100, 1)];
    let told = run(&scenario.clone().with(requests.clone()));
    assert_eq!(ends(&told), [DONE, gave_up(Stage::Waiting), DONE]);
    assert_eq!(abandoned_at(&told, Stage::Waiting), 3_406);
    assert_eq!((told.closed[1].cached, told.closed[1].output_tokens), (None, 0));
    // The first ends at 1400 + 3 * 1003 = 4409; the third runs next.
    assert_eq!(told.ttfts_us(), [1_410, 4_409 + 1_200 + 10 - 10]);
    // Without the second, the others fare the same: it has cost them nothing.
    let without = run(&scenario.with(vec![requests[0].clone(), requests[2].clone()]));
    assert_eq!(without.ttfts_us(), told.ttfts_us());
}

/// Alone in the batch from 200 on, two chunks of 50 tokens: 200..1300..2400. The client is gone at
/// 500; the engine hears of it at 1300, with 50 tokens computed: 3 full blocks stay in the cache.
/// The next with the same prompt finds them.
#[test]
fn a_running_request_is_dropped_at_the_end_of_the_step_and_leaves_its_blocks_cached() {
    let mut scenario = small_world();
    scenario.engine.max_num_scheduled_tokens = 50;
    let same = |at| prompted(at, &[(7, 100)], 1);
    let told = run(&scenario.with(vec![patient(500, same(0)), same(5_000)]));
    assert_eq!(ends(&told), [gave_up(Stage::Running), DONE]);
    assert_eq!(abandoned_at(&told, Stage::Running), 1_300);
    assert_eq!(
        told.count(
            "Dropped { request: RequestId(0), instance: InstanceId(0), \
                           computed_tokens: 50, under_way: 0 }"
        ),
        1
    );
    assert_eq!(told.closed[1].cached, Some(48));
    assert_eq!(told.count("FirstToken"), 1);
}

/// A token that leaves the engine at 1400 leaves the server at 1410. Who waits until 1410 has it in
/// time; who waits until 1409 gives up, and the step under way, to 2403, is for nobody.
#[test]
fn a_first_token_counts_when_it_leaves_the_server() {
    let told = run(&small_world().with(vec![patient(1_410, request(0, 100, 5))]));
    assert_eq!((ends(&told), told.ttfts_us()), (vec![DONE], vec![1_410]));
    let told = run(&small_world().with(vec![patient(1_409, request(0, 100, 5))]));
    assert_eq!(ends(&told), [gave_up(Stage::Running)]);
    assert_eq!(abandoned_at(&told, Stage::Running), 2_403);
    let Ended { ttft, e2e, output_tokens, .. } = told.closed[0];
    assert_eq!((ttft, e2e, output_tokens), (None, None, 2), "two tokens that nobody saw");
}

/// All is done at 1400, but leaves the server at 1410: nobody aborts what is complete.
#[test]
fn an_answer_that_the_engine_has_finished_in_time_is_delivered() {
    let told = run(&small_world().with(vec![patient(1_405, request(0, 100, 1))]));
    assert_eq!((ends(&told), told.ttfts_us()), (vec![DONE], vec![1_410]));
}

/// The token of the step under way comes too late, although it is the last.
#[test]
fn an_answer_that_is_complete_when_the_engine_hears_of_the_abort_is_abandoned() {
    let told = run(&small_world().with(vec![patient(1_300, request(0, 100, 1))]));
    assert_eq!(ends(&told), [gave_up(Stage::Running)]);
    assert_eq!((abandoned_at(&told, Stage::Running), told.closed[0].output_tokens), (1_400, 1));
}

/// 11 blocks of 16. The first, 100 tokens (7 blocks), decodes; the second, a prompt of 64 in chunks
/// of 16, is preempted when the first needs a block more. Both are checked by the audit; here is
/// what becomes of the second.
#[test]
fn a_preempted_request_leaves_the_queue() {
    let mut scenario = small_world();
    scenario.engine.total_kv_blocks = 10;
    scenario.engine.long_prefill_token_threshold = 8;
    scenario.engine.reserve_full_prompt = false;
    let requests = |patience| vec![request(0, 96, 60), patient(patience, request(15_000, 64, 2))];
    let calm = run(&scenario.clone().with(requests(1_000_000)));
    assert!(calm.closed[1].preemptions > 0 && calm.count("FirstToken") == 2, "{:?}", calm.closed);
    let preempted = calm.facts.iter().find(|(_, _, fact)| fact.starts_with("Preempted"));
    let (at, _, _) = preempted.expect("it is preempted");
    let patience = at.since(Time::from_micros(15_000)).as_micros() + 100;
    let told = run(&scenario.with(requests(patience)));
    assert_eq!(ends(&told), [DONE, gave_up(Stage::Waiting)]);
    assert!(told.closed[1].preemptions > 0 && told.closed[1].cached.is_some());
}

/// Stream 7 is in the CPU tier (see `golden_tier`), and is copied back on its own from 10,165 on
/// for 193.847 us. The client gives up at 10,200, while the copy writes: the blocks are free when
/// it is done, at 10,358.847, and nothing of them is cached.
#[test]
fn a_loading_request_leaves_when_its_copy_is_done() {
    let link = LinkSpeed { base: us(40), blocks_per_us: 0.026 };
    let mut scenario = small_world();
    scenario.offload = "write-through";
    scenario.engine.total_kv_blocks = 12;
    scenario.engine.tier = Some(KvTier {
        blocks: 100,
        out: LinkSpeed { base: Span::ZERO, blocks_per_us: f64::INFINITY },
        back: link,
        reload: Reload::Async,
        thrashing_window: us(1_000_000),
    });
    let asks = |at| prompted(at, &[(7, 65)], 1);
    let wall = request(5_000, 180, 1);
    let told = run(&scenario.clone().with(vec![asks(0), wall.clone(), patient(200, asks(10_000))]));
    assert_eq!(ends(&told), [DONE, DONE, gave_up(Stage::Loading)]);
    let last = told.facts.last().expect("facts");
    assert_eq!(last.0, Time::from_nanos(10_165_000 + 193_847), "{}", last.2);
    assert_eq!((told.count("Reloading"), told.count("Reloaded")), (1, 1));
    // Whoever asks again has to load again: the aborted copy is not in the prefix cache.
    let again = vec![asks(0), wall, patient(200, asks(10_000)), asks(20_000)];
    assert_eq!(run(&scenario.with(again)).count("Reloading"), 2);
}

/// A source whose only client tries again after whatever end, and writes it down.
struct Stubborn {
    first: Option<Request>,
    heard: Vec<(Ending, u64)>,
}

impl Source for Stubborn {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        Ok(self.first.take())
    }

    fn is_closed_loop(&self) -> bool {
        true
    }

    fn follow_up(&mut self, ended: &Request, ending: Ending, at: Time) -> Option<Request> {
        self.heard.push((ending, at.as_nanos() / 1_000));
        let again = Request { arrival: at + us(100), patience: None, ..ended.clone() };
        (ending != Ending::Finished).then_some(again)
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        tenant.0.to_string()
    }
}

/// The client gives up at 500, not when the engine hears of it at 1400, and comes back at 600. It
/// joins the queue at 800 and runs 1400..2400 on what its first attempt has left in the cache: 6
/// full blocks of 100 tokens, so 4 tokens, a step of 1008.
#[test]
fn the_source_hears_of_it_when_the_client_gives_up() {
    let mut first = patient(500, prompted(0, &[(7, 100)], 1));
    let own = Listed::new(vec![first.clone()]).next_request().expect("a list").expect("one");
    first = own;
    let mut source = Stubborn { first: Some(first), heard: Vec::new() };
    let told = small_world().run_with(&mut source);
    assert_eq!(ends(&told), [gave_up(Stage::Running), DONE]);
    assert_eq!(source.heard, [(Ending::Abandoned, 500), (Ending::Finished, 1_400 + 1_008 + 10)]);
    assert_eq!(told.closed[1].cached, Some(96));
}

/// A thousand clients that give up at one instant are no livelock.
#[test]
fn many_clients_may_give_up_at_one_instant() {
    let mut scenario = small_world();
    scenario.engine.max_num_running_reqs = 1;
    scenario.patience = Some(us(3_000));
    let told = run(&scenario.with((0..1_000).map(|_| request(0, 100, 30)).collect()));
    let waiting = ends(&told).iter().filter(|end| **end == gave_up(Stage::Waiting)).count();
    assert_eq!(waiting, 999);
}

/// A run that stops before the engine hears of it: the client has given up, the engine is at it.
#[test]
fn a_run_that_ends_before_the_engine_hears_of_it_leaves_the_request_running() {
    let mut scenario = small_world().with(vec![patient(500, request(0, 100, 5))]);
    scenario.horizon = Some(Time::from_micros(1_000));
    assert_eq!(ends(&scenario.run()), [Status::Running]);
    scenario.horizon = Some(Time::from_micros(1_400));
    assert_eq!(ends(&scenario.run()), [gave_up(Stage::Running)]);
}

/// Each way to be abandoned is met in the random worlds, whose audit is always on, and nobody is
/// answered later than they wait.
#[test]
fn in_every_world_nobody_is_answered_who_would_have_given_up() {
    let coverage = in_random_worlds(1_200, |world| {
        let mut world = world.clone();
        if let Some(tier) = &mut world.engine.tier {
            // So that clients have the time to give up while their blocks are copied.
            tier.back.base = us(3_000);
        }
        world.patience = world.patience.or(Some(us(2_500 + 300 * world.requests.len() as u64)));
        let told = world.run();
        let mut requests = world.requests.clone();
        requests.sort_by_key(|request| request.arrival);
        for (request, ended) in requests.iter().zip(&told.closed) {
            let patience = request.patience.or(world.patience).unwrap_or(Span::LONGEST);
            match ended.status {
                Status::Finished => {
                    let [ttft, e2e] = [ended.ttft, ended.e2e].map(|span| span.expect("an answer"));
                    prop_assert!(ttft <= patience || e2e <= patience + ended.split.output);
                }
                Status::Abandoned(_) => prop_assert!(ended.ttft.is_none() && ended.e2e.is_none()),
                _ => {}
            }
        }
        Ok(told)
    });
    assert!(coverage.abandoned.iter().all(|&worlds| worlds >= 5), "{:?}", coverage.abandoned);
}

/// Who waits for ever, and who waits ten years, fare the same in every world, to the last fact.
#[test]
fn unlimited_patience_is_no_patience_at_all() {
    let abandoned = Cell::new(0);
    in_random_worlds(400, |world| {
        let with = |patience: Option<Span>| {
            let mut world = Scenario { patience, ..world.clone() };
            world.requests.iter_mut().for_each(|request| request.patience = None);
            let told = world.run();
            // The records say what the patience was.
            let said = format!("patience: {patience:?}");
            let fact = |fact: &String| fact.replace(&said, "patience: None");
            let facts = told.facts.iter().map(|(at, lane, text)| (*at, *lane, fact(text)));
            (facts.collect::<Vec<_>>(), told.outcome)
        };
        prop_assert_eq!(with(None), with(Some(Span::LONGEST)));
        let told = world.run();
        abandoned.set(abandoned.get() + told.count("Abandoned"));
        Ok(told)
    });
    assert!(abandoned.get() > 100, "only {} gave up", abandoned.get());
}
