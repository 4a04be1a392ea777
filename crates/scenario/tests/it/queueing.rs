//! Queueing theory: scenarios whose mean waiting or response times are known exactly.
//!
//! All run through the ordinary product path. Times are in units of one engine step of 100 us,
//! which is also the only thing that takes time: the latency models used here have no ingress and
//! no output processing, so the time that occupies a server is (output tokens) x (step). Prompts
//! have one token, so the step that computes the prompt also gives the first output token. Arrivals
//! are Poisson. A step begins the instant a request joins an idle engine.
//!
//! **Sample sizes.** A 95 % interval of +-3 % on a mean wait needs, by rho = 0.3 / 0.5 / 0.7: 80 /
//! 140 / 300 thousand requests for M/M/1 and 50 / 60 / 160 thousand for M/D/1 (Lindley's recursion,
//! in agreement with Daley's asymptotic variance). Mean waits below are over at least 2.3 times as
//! many, so that 3 % is about three standard errors. Where fewer requests wait (several servers),
//! more are needed: see there. Every case has its own seed, so that cases do not deviate together;
//! it is fixed, so a case that passes passes always. The system starts empty: the first tenth is
//! discarded.

use crate::harness::{Estimate, Stories, Story, plan, run_audited};
use blis_core::math::{count, exp, float, pow};
use blis_core::{Span, Time};
use blis_metrics::{Fact, Listener, Saturation};
use blis_scenario::RunResult;
use blis_sim::Pace;

const STEP_US: f64 = 100.0;
const TOLERANCE: f64 = 0.03;
const LOADS: [f64; 3] = [0.3, 0.5, 0.7];

/// A scenario of this file; times in steps.
#[derive(Clone, Copy)]
struct Queue {
    /// Cases of one test add ten times their load.
    seed: u64,
    instances: u32,
    /// Most requests running on an instance.
    places: u32,
    routing: &'static str,
    /// Constant step time, or a cost per token.
    latency: &'static str,
    outputs: Outputs,
    /// Arrivals per step, all together; of no meaning with users.
    rate: f64,
    /// How many users send, and how long each thinks in the mean.
    users: Option<(u32, f64)>,
    requests: u64,
}

#[derive(Clone, Copy)]
enum Outputs {
    /// Always so many tokens.
    Constant(f64),
    /// Geometric on 1, 2, 3, ... with this mean.
    Geometric(f64),
}

const CONSTANT: &str = "{model: constant, step_us: 100}";
const PER_TOKEN: &str = "{alpha_us: [0, 0, 0], beta_us: [0, 100, 100]}";
/// A place for everyone.
const NO_CAP: u32 = 100_000;

/// One engine that serves one request at a time.
const SINGLE: Queue = Queue {
    seed: 0,
    instances: 1,
    places: 1,
    routing: "round-robin",
    latency: CONSTANT,
    outputs: Outputs::Constant(1.0),
    rate: 0.0,
    users: None,
    requests: 0,
};

impl Outputs {
    fn mean(self) -> f64 {
        let (Outputs::Constant(mean) | Outputs::Geometric(mean)) = self;
        mean
    }

    /// Mean of the square.
    fn square(self) -> f64 {
        match self {
            Outputs::Constant(tokens) => tokens * tokens,
            Outputs::Geometric(mean) => (2.0 - 1.0 / mean) * mean * mean,
        }
    }
}

impl Queue {
    /// With as many arrivals as load each server with `rho`.
    fn loaded(self, rho: f64, requests: u64) -> Queue {
        let servers = f64::from(self.instances) * f64::from(self.places);
        let seed = self.seed + count(10.0 * rho);
        Queue { seed, rate: rho * servers / self.outputs.mean(), requests, ..self }
    }

    fn text(&self) -> String {
        let Queue { seed, instances, places, routing, latency, requests, .. } = *self;
        let output = match self.outputs {
            Outputs::Constant(tokens) => format!("{{type: constant, params: {{value: {tokens}}}}}"),
            Outputs::Geometric(mean) => format!("{{type: geometric, params: {{mean: {mean}}}}}"),
        };
        let rate = match self.users {
            None => (self.rate * 1e6 / STEP_US).to_string(),
            Some((users, think)) => format!(
                "{{users: {{count: {users}, think_time: exponential, think_time_s: {}}}}}",
                think * STEP_US / 1e6
            ),
        };
        // Blocks that no request fills: nothing is ever cached, and memory never runs out.
        format!(
            "seed: {seed}\nmodel: a queue\n\
             latency: {latency}\n\
             cluster: {{instances: {instances}}}\n\
             engine: {{total_kv_blocks: {NO_CAP}, block_size: 65536, \
             max_num_running_reqs: {places}, max_num_scheduled_tokens: {NO_CAP}, \
             async_scheduling: false}}\n\
             routing: {routing}\n\
             workload:\n  mix:\n    aggregate_rate: {rate}\n    num_requests: {requests}\n    \
             clients:\n      - id: all\n        rate_fraction: 1\n        \
             arrival: {{process: poisson}}\n        \
             input_distribution: {{type: constant, params: {{value: 1}}}}\n        \
             output_distribution: {output}\n",
        )
    }

    #[track_caller]
    fn run(&self) -> (Vec<Story>, RunResult) {
        let mut stories = Stories::default();
        let result = run_audited(&plan(&self.text()), Pace::FastForward, &mut stories);
        assert_eq!(stories.0.len() as u64, self.requests, "every request was heard of");
        (stories.0, result)
    }

    /// Mean wait of M/G/1 by Pollaczek and Khinchine, at each of the instances.
    fn pollaczek_khinchine(&self) -> f64 {
        let rate = self.rate / f64::from(self.instances);
        rate * self.outputs.square() / (2.0 * (1.0 - rate * self.outputs.mean()))
    }

    /// Mean wait of M/M/k, with `places` servers on one instance or one on each of several.
    fn erlang_c(&self) -> f64 {
        let servers = self.instances * self.places;
        let offered = self.rate * self.outputs.mean();
        let (mut term, mut below) = (1.0, 0.0);
        for busy in 1..=servers {
            below += term;
            term *= offered / f64::from(busy);
        }
        let spare = f64::from(servers) - offered;
        let all_busy = term * f64::from(servers) / spare;
        all_busy / (below + all_busy) * self.outputs.mean() / spare
    }

    /// Mean wait of `E_k/M/1`: every k-th of Poisson arrivals comes to each of k instances.
    fn every_kth(&self) -> f64 {
        let service_rate = 1.0 / self.outputs.mean();
        let phases = f64::from(self.instances);
        let busy =
            fixed_point(|busy| pow(self.rate / (self.rate + service_rate * (1.0 - busy)), phases));
        busy / (service_rate * (1.0 - busy))
    }
}

/// Mean value analysis (Reiser and Lavenberg 1980): the mean response of `users` who think, then
/// are served at one of `servers` queues by chance. Exact where service is exponential.
fn mean_value_analysis(users: u32, think: f64, servers: f64, service: f64) -> f64 {
    let (mut response, mut queue) = (service, 0.0);
    for present in 1..=users {
        response = service * (1.0 + queue);
        queue = f64::from(present) * response / (response + think) / servers;
    }
    response
}

/// The x with x = f(x), found by repetition from 0.5.
fn fixed_point(f: impl Fn(f64) -> f64) -> f64 {
    (0..10_000).fold(0.5, |x, _| f(x))
}

fn steps(span: Span) -> f64 {
    span.as_micros_f64() / STEP_US
}

fn wait(story: &Story) -> f64 {
    steps(story.queue)
}

fn response(story: &Story) -> f64 {
    steps(story.e2e)
}

/// Mean utilisation over instances, as reported.
fn utilization(result: &RunResult) -> f64 {
    let instances = &result.report.instances;
    let shares = instances.iter().map(|instance| instance.utilization.expect("the run took time"));
    shares.sum::<f64>() / float(instances.len() as u64)
}

/// M/D/1: one server, service exactly one step. The engine begins a step the instant a request
/// joins it idle, and the next the instant one ends, so the model is exact. W = rho s / (2 (1 -
/// rho)).
#[test]
fn one_server_with_constant_service_waits_as_m_d_1() {
    for (rho, requests) in LOADS.into_iter().zip([150_000, 200_000, 400_000]) {
        let (stories, _) = Queue { seed: 100, ..SINGLE }.loaded(rho, requests).run();
        let expected = rho / (2.0 * (1.0 - rho));
        Estimate::of(&stories, wait).assert_near(expected, TOLERANCE, &format!("M/D/1 at {rho}"));
    }
}

/// M/G/1: one server, service n steps with n geometric (mean 4): E[S] = 1/p and E[S^2] = (2 -
/// p)/p^2 steps, p = 1/4, coefficient of variation 0.87. Arrivals are not bound to step boundaries,
/// the only server is held to the last token, so the formula of Pollaczek and Khinchine is exact.
/// The variance of service is checked too, which has a standard error of about sqrt(8/n), under 0.7
/// % here.
#[test]
fn one_server_with_geometric_service_waits_as_m_g_1() {
    for (rho, requests) in LOADS.into_iter().zip([200_000, 350_000, 700_000]) {
        let outputs = Outputs::Geometric(4.0);
        let queue = Queue { seed: 200, outputs, ..SINGLE }.loaded(rho, requests);
        let (stories, _) = queue.run();
        let what = |of| format!("M/G/1 at {rho}, {of}");
        let waits = Estimate::of(&stories, wait);
        waits.assert_near(queue.pollaczek_khinchine(), TOLERANCE, &what("wait"));
        let service = Estimate::of(&stories, |story| steps(story.service()));
        service.assert_near(outputs.mean(), TOLERANCE, &what("service"));
        let off = |story: &Story| steps(story.service()) - outputs.mean();
        let variance = Estimate::of(&stories, |story| off(story) * off(story));
        let exact = outputs.square() - outputs.mean() * outputs.mean();
        variance.assert_near(exact, TOLERANCE, &what("variance of service"));
    }
}

/// k x M/G/1: four servers with a queue each, requests sent at random. Thinning Poisson arrivals by
/// independent choices gives independent Poisson arrivals at a quarter of the rate, so each queue
/// is exactly an M/G/1 (service as above). The four are measured together.
#[test]
fn random_routing_waits_as_independent_m_g_1() {
    for (rho, requests) in LOADS.into_iter().zip([200_000, 350_000, 700_000]) {
        let outputs = Outputs::Geometric(4.0);
        let farm = Queue { seed: 300, instances: 4, routing: "random", outputs, ..SINGLE };
        let farm = farm.loaded(rho, requests);
        let (stories, _) = farm.run();
        let waits = Estimate::of(&stories, wait);
        let what = format!("4 x M/G/1 at {rho}");
        waits.assert_near(farm.pollaczek_khinchine(), TOLERANCE, &what);
    }
}

/// A closed network of product form: users think, then are sent to one of three servers by chance.
/// Service is geometric with mean 1,000 steps, which differs from exponential by 0.05 %. From a few
/// users who hardly wait to so many that the servers are never idle.
#[test]
fn users_who_wait_for_their_answers_are_served_as_by_mean_value_analysis() {
    let outputs = Outputs::Geometric(1_000.0);
    for (users, think) in [(1, 500.0), (4, 2_000.0), (16, 3_000.0), (16, 0.0), (60, 9_000.0)] {
        let farm = Queue { instances: 3, routing: "random", outputs, ..SINGLE };
        let sent = Some((users, think));
        let farm = Queue { seed: 900, users: sent, requests: 300_000, ..farm };
        let (stories, result) = farm.run();
        let expected = mean_value_analysis(users, think, 3.0, 1_000.0);
        let what = format!("{users} users who think for {think}");
        Estimate::of(&stories, response).assert_near(expected, 0.02, &what);
        let seconds = result.outcome.ended_at.as_secs_f64();
        let throughput = float(farm.requests) / seconds * STEP_US / 1e6;
        let law = f64::from(users) / (expected + think);
        assert!((throughput / law - 1.0).abs() < 0.02, "{what}: {throughput} of {law}");
    }
}

/// `E_4/M/1`: four servers with a queue each, requests sent in turn, so that a server's gaps are
/// sums of four exponential ones. Service is geometric with mean 1,000 steps, which differs from
/// exponential by 0.05 % in the mean wait. Fewer requests wait than in M/M/1 (11 % at rho 0.3), so
/// at the lowest load there are five times the table's requests.
#[test]
fn round_robin_waits_as_every_kth_arrival_at_each_server() {
    for (rho, requests) in LOADS.into_iter().zip([400_000, 400_000, 700_000]) {
        let outputs = Outputs::Geometric(1_000.0);
        let farm = Queue { seed: 400, instances: 4, outputs, ..SINGLE }.loaded(rho, requests);
        let (stories, _) = farm.run();
        let waits = Estimate::of(&stories, wait);
        waits.assert_near(farm.every_kth(), TOLERANCE, &format!("E_4/M/1 at {rho}"));
    }
}

/// M/M/k: one queue before k = 2 and k = 4 servers, which is one instance with k places and a step
/// time that does not depend on the batch. Service is geometric with mean 4,000 steps. Steps are
/// common to the k servers, so a request that meets a busy engine waits for the step under way, on
/// average half a step: added to Erlang's formula. The exact chain over step boundaries then
/// differs by 0.02 %. Few requests wait at low load (14 % for k = 2 and 4 % for k = 4 at rho 0.3),
/// so there are two to eleven times the table's requests, and k = 4 is measured at the highest load
/// only.
#[test]
fn one_queue_before_several_places_waits_as_m_m_k() {
    let cases = [(2, 0.3, 900_000), (2, 0.5, 600_000), (2, 0.7, 700_000), (4, 0.7, 1_100_000)];
    for (places, rho, requests) in cases {
        let outputs = Outputs::Geometric(4_000.0);
        let seed = 500 + 10 * u64::from(places);
        let queue = Queue { seed, places, outputs, ..SINGLE }.loaded(rho, requests);
        let (stories, result) = queue.run();
        let expected = queue.erlang_c() + utilization(&result) / 2.0;
        let what = format!("M/M/{places} at {rho}");
        Estimate::of(&stories, wait).assert_near(expected, TOLERANCE, &what);
    }
}

/// Joining the shortest of four queues is worse than one queue (M/M/4), because a server can be
/// idle while requests wait elsewhere, and better than taking turns (`E_4/M/1`). There is no
/// formula between the two, so only the order is asserted, with the whole interval of the estimate.
#[test]
fn the_shortest_queue_waits_less_than_turns_and_more_than_one_queue() {
    for rho in LOADS {
        let outputs = Outputs::Geometric(1_000.0);
        let routing = "least-loaded";
        let farm = Queue { seed: 600, instances: 4, routing, outputs, ..SINGLE };
        let farm = farm.loaded(rho, 200_000);
        let (stories, _) = farm.run();
        let waits = Estimate::of(&stories, wait);
        let (least, most) = (farm.erlang_c(), farm.every_kth());
        assert!(
            least < waits.mean - waits.half && waits.mean + waits.half < most,
            "at {rho}: {waits:?} is not between M/M/4 ({least}) and E_4/M/1 ({most})"
        );
    }
}

/// Processor sharing: one engine without caps whose step costs 100 us for each token in it. Every
/// request gets one token a step, so each of n requests advances at a speed of 1/n, and
/// E[T] = E[S] / (1 - rho) whatever the distribution of S. The model is fluid; the engine takes
/// turns token by token and a newcomer waits for the step under way, which with 512 tokens a
/// request is some 0.2 %. Mean response times are less noisy than mean waits, those of constant
/// sizes half as noisy as others: they have 0.6 times the table's requests, geometric sizes 1.2.
#[test]
fn a_step_cost_per_token_shares_the_processor() {
    let sizes = [Outputs::Constant(512.0), Outputs::Geometric(512.0)];
    let cases = sizes.into_iter().zip([("constant", 700, 1), ("geometric", 720, 2)]);
    for (outputs, (name, seed, times)) in cases {
        for (rho, requests) in LOADS.into_iter().zip([50_000, 100_000, 200_000]) {
            let requests = times * requests;
            let queue = Queue { seed, latency: PER_TOKEN, outputs, ..SINGLE };
            let queue = Queue { places: NO_CAP, ..queue.loaded(rho, requests) };
            let (stories, _) = queue.run();
            let times = Estimate::of(&stories, response);
            let what = format!("processor sharing, {name}, at {rho}");
            times.assert_near(outputs.mean() / (1.0 - rho), TOLERANCE, &what);
            if matches!(outputs, Outputs::Geometric(_)) {
                assert_flat_slowdown(&stories, rho);
            }
        }
    }
}

/// Under processor sharing the expected slowdown is 1 / (1 - rho) at every size. Four bands of
/// sizes, from an eighth of the mean on; below that the wait for the step under way shows.
#[track_caller]
fn assert_flat_slowdown(stories: &[Story], rho: f64) {
    for (least, most) in [(64, 192), (192, 512), (512, 1_024), (1_024, u32::MAX)] {
        let band = |story: &&Story| (least..most).contains(&story.output_tokens);
        let band: Vec<Story> = stories.iter().filter(band).copied().collect();
        let slowdown = |story: &Story| response(story) / f64::from(story.output_tokens);
        let what = format!("slowdown of {least}..{most} tokens at {rho}");
        Estimate::of(&band, slowdown).assert_near(1.0 / (1.0 - rho), TOLERANCE, &what);
    }
}

/// Infinite server: one engine without caps whose step takes one step time whatever the batch. A
/// request with n tokens takes n steps, and before them, if the engine is busy, half a step on
/// average until the step under way ends: E[T] = E[n] + busy / 2. The engine is idle while nobody
/// is present: busy = 1 - exp(-L), L = rate E[T]. Responses hardly depend on each other, so 400,000
/// geometric lengths (CV 0.97) have a standard error of 0.16 %: +-0.5 %. The half step is up to
/// 2.4 % of E[T] here; it is also checked by itself, where the lengths do not matter, to 3 %.
#[test]
fn a_constant_step_is_an_infinite_server() {
    for offered in [0.5, 3.0] {
        let mean = 20.0;
        let rate = offered / mean;
        let outputs = Outputs::Geometric(mean);
        let seed = 800 + count(10.0 * offered);
        let queue = Queue { seed, places: NO_CAP, outputs, rate, ..SINGLE };
        let (stories, result) = Queue { requests: 400_000, ..queue }.run();
        let busy = fixed_point(|busy| 1.0 - exp(-rate * (mean + busy / 2.0)));
        let what = |of| format!("infinite server, offered {offered}, {of}");
        let times = Estimate::of(&stories, response);
        times.assert_near(mean + busy / 2.0, 0.005, &what("response"));
        let waits = Estimate::of(&stories, wait);
        waits.assert_near(busy / 2.0, TOLERANCE, &what("wait for the step under way"));
        assert!((utilization(&result) / busy - 1.0).abs() < 0.01, "{}", what("utilisation"));
    }
}

/// The reported utilisation of servers that take one request at a time is lambda E[S] / k: exactly
/// the summed service times over the run's length, and within 1 % the load that was asked for
/// (standard error of 200,000 gaps and services together: 0.3 %).
#[test]
fn utilisation_is_the_offered_load() {
    for (rho, routing) in LOADS.into_iter().zip(["round-robin", "random", "least-loaded"]) {
        let outputs = Outputs::Geometric(4.0);
        let farm = Queue { seed: 900, instances: 3, routing, outputs, ..SINGLE };
        let farm = farm.loaded(rho, 200_000);
        let (stories, result) = farm.run();
        let served: Span = stories.iter().map(Story::service).sum();
        let used = utilization(&result);
        let exact = served.as_secs_f64() / result.report.duration_s / 3.0;
        assert!((used / exact - 1.0).abs() < 1e-9, "at {rho}: {used} against {exact}");
        assert!((used / rho - 1.0).abs() < 0.01, "at {rho}: {used}");
    }
}

/// A realistic stable cluster: the shipped latency model, four instances, a common system prompt,
/// and routing by cached prefix, load and memory.
const REALISTIC: &str = "
cluster: {instances: 4}
engine: {preset: vllm-a100}
routing: {policy: weighted, scorers: 'pa:3,qd:2,kv:2'}
workload:
  mix:
    aggregate_rate: 150
    num_requests: 40000
    clients:
      - id: chat
        slo_class: critical
        rate_fraction: 0.4
        arrival: {process: poisson}
        prefix_group: system-prompt
        prefix_length: 512
        input_distribution: {type: gaussian, params: {mean: 256, std_dev: 100, min: 32, max: 2048}}
        output_distribution: {type: exponential, params: {mean: 128}}
      - id: summaries
        slo_class: batch
        tenant_id: press
        rate_fraction: 0.6
        arrival: {process: poisson}
        prefix_group: system-prompt
        prefix_length: 512
        input_distribution: {type: exponential, params: {mean: 300}}
        output_distribution: {type: geometric, params: {mean: 64}}
";

/// Stories, and what the steps of all instances add up to.
#[derive(Default)]
struct Areas {
    stories: Stories,
    /// Requests running x time, in ns.
    running: u128,
    /// Time in steps.
    busy: Span,
}

impl Listener for Areas {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        self.stories.hear(at, fact);
        if let Fact::Steps { count, duration, batch, .. } = fact {
            let time = *duration * *count;
            self.busy += time;
            self.running += u128::from(batch.running) * u128::from(time.as_nanos());
        }
    }
}

/// Little's law L = lambda W in a cluster that has no formula of its own. Two ways to the number in
/// the system, by the clock and by the requests, must agree to the nanosecond: for the running
/// batches, L from the steps and W from the records; for the whole system, L as reported. Requests
/// are in the reported system until their last step ends; output processing follows.
#[test]
fn little_s_law_holds_in_a_realistic_cluster() {
    let plan = plan(REALISTIC);
    let mut areas = Areas::default();
    let RunResult { report, .. } = run_audited(&plan, Pace::FastForward, &mut areas);
    assert_eq!(report.saturation, Some(Saturation::Stable));
    assert!(report.kv.hit_rate > Some(0.4), "the prefix is shared: {:?}", report.kv.hit_rate);
    assert_eq!(report.cluster.preemptions, 0);
    let stories = &areas.stories.0;
    let running: Span = stories.iter().map(Story::service).sum();
    assert_eq!(areas.running, u128::from(running.as_nanos()));
    let reported: f64 = report.instances.iter().filter_map(|instance| instance.utilization).sum();
    let busy = areas.busy.as_secs_f64() / report.duration_s;
    assert!((reported / busy - 1.0).abs() < 1e-9, "{reported} against {busy}");
    let rate = float(report.cluster.offered) / report.duration_s;
    let mean = report.cluster.e2e.mean_ms.expect("all finished") / 1e3;
    let output: Span = stories.iter().map(|story| story.output).sum();
    let law = rate * (mean - output.as_secs_f64() / float(report.cluster.offered));
    let present = report.mean_in_system.expect("the run took time");
    assert!((present / law - 1.0).abs() < 1e-9, "L = {present}, lambda W = {law}");
}

/// Poisson arrivals see time averages: the mean number that an arrival meets is the mean number
/// over time, between the end of the warm-up and the last arrival. Both are taken over the same
/// stretch, so most of the noise is common: they differ by 0.06 % over a dozen seeds, and 0.3 % is
/// five times that.
#[test]
fn arrivals_see_the_time_average_of_a_realistic_cluster() {
    let mut stories = Stories::default();
    run_audited(&plan(REALISTIC), Pace::FastForward, &mut stories);
    let (seen, average) = seen_and_average(&stories.0);
    assert!((seen / average - 1.0).abs() < 0.003, "arrivals see {seen}, on average {average}");
}

/// How many requests an arrival meets on average, and how many there are on average over time.
fn seen_and_average(stories: &[Story]) -> (f64, f64) {
    let (from, to) = (stories[stories.len() / 10].arrival, stories[stories.len() - 1].arrival);
    let mut changes: Vec<(Time, bool)> = Vec::new();
    for story in stories {
        changes.extend([(story.arrival, true), (story.arrival + story.e2e, false)]);
    }
    changes.sort_unstable();
    let (mut present, mut seen, mut arrivals) = (0_u64, 0_u64, 0_u64);
    let (mut area, mut last) = (Span::ZERO, from);
    for (at, arrives) in changes.into_iter().take_while(|(at, _)| *at <= to) {
        if at >= from {
            area += at.since(last) * present;
            last = at;
            seen += if arrives { present } else { 0 };
            arrivals += u64::from(arrives);
        }
        present = if arrives { present + 1 } else { present - 1 };
    }
    let average = area.as_secs_f64() / to.since(from).as_secs_f64();
    (float(seen) / float(arrivals), average)
}
