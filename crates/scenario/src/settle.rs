//! Settles rates that are shares of the cluster's saturation, by measuring it.
//!
//! Saturation is the highest rate at which queues do not grow. It is measured, because no formula
//! knows what a prefix cache or preemption does to it: the workload's own requests, with its own
//! arrival processes, are sent to the scenario's own engines behind one fixed strategy (all enter,
//! [`REFERENCE_SCORERS`], first come first served), a little faster than they can be served. The
//! strategy is `lmetric`: it has nothing to tune, finds cached prompts and avoids busy instances,
//! on clusters of any size.
//! What is served per second while the queue builds up is the saturation: the mean over as many
//! seeds as it takes to know it to 1 %. Decision 17 says why. Neither the seed nor the strategy of
//! the scenario has a say, so that strategies which are compared at 90 % of saturation are sent
//! exactly the same requests.

use crate::CODE;
use crate::hash::hash_long;
use crate::rate::Written;
use crate::run::{RunFailure, listen};
use crate::scenario::canonical::canonical;
use crate::scenario::{Checked, Draft, Oracles, Plan, Trial, Workload};
use blis_core::math::{count, float};
use blis_core::{Span, Time};
use blis_metrics::{Fact, Listener, SloTargets, Status};
use blis_policy::{Guests, PartsText, Policies, Routing};
use blis_sim::{End, Observer, Outcome, Progress, Signals, Unobserved};
use blis_workload::{Activity, Client, Mix, Rate, Think};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Saturations that were measured before, in arrivals per second, by a hash of all that they depend
/// on. Clones share them. Remembering one changes nothing but the time that settling takes.
#[derive(Clone, Debug, Default)]
pub struct Saturations {
    known: Arc<Mutex<BTreeMap<String, f64>>>,
}

impl Saturations {
    /// All that are known.
    pub fn all(&self) -> BTreeMap<String, f64> {
        self.lock().clone()
    }

    /// Adds what others have measured.
    pub fn extend(&self, found: BTreeMap<String, f64>) {
        self.lock().extend(found);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, f64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scorers of the strategy that saturation is measured with.
const REFERENCE_SCORERS: &str = "lmetric:1";

/// The first seed of all measurements; those after it count up.
const SEED: u64 = 42;
/// Seeds of a measurement: at least and at most so many.
const SEEDS: (usize, usize) = (4, 12);
/// The measurement ends when the standard error of the mean is this share of it.
const STANDARD_ERROR: f64 = 0.004;
/// How far above saturation the rate is. Far above, queues change what is cached, and with it what
/// is served; just above, the batches take long to fill.
const OVERLOAD: f64 = 1.07;
/// A measurement counts if the rate was so many times what was served.
const MILD: (f64, f64) = (1.03, 1.12);
/// Requests of one run: so many for each that runs at a time if all come at once, within these
/// bounds. Batches fill in the first half of them.
const TURNOVERS: u64 = 32;
const LEAST_REQUESTS: u64 = 24_000;
const MOST_REQUESTS: u64 = 300_000;
/// Requests for each instance that come at once for the first guess.
const AT_ONCE: u64 = 2_000;
/// A run lasts at least so many sessions, one after the other, as long as they take without their
/// answers: near saturation answers take longer than thinking, and later rounds come up to speed
/// only after a whole session.
const SESSIONS_LONG: f64 = 12.0;
/// Runs until the search for a mild overload gives up: from any guess to any machine.
const FARTHEST: u32 = 40;

impl Checked {
    /// The plan, with a rate that is a share of saturation turned into requests per second. What is
    /// not `known` is measured and added.
    ///
    /// # Errors
    /// If the workload has no saturation, cannot be read, or `observer` stops the measurement.
    pub fn settle(
        self,
        known: &Saturations,
        observer: &mut dyn Observer,
    ) -> Result<Plan, RunFailure> {
        let Checked { mut plan, rate } = self;
        if let (Some(written), Workload::Mix(mix)) = (rate, &plan.workload) {
            let bench = Bench::new(&plan, mix, &written);
            let found = bench.saturation(known, observer)?;
            let unit = if mix.has_sessions() { "sessions" } else { "requests" };
            let mix = Mix { rate: written.rate.rate(found), ..mix.clone() };
            mix.validate().map_err(|error| {
                written.problem(format!("{error}, where saturation is {found} per second"))
            })?;
            let meant = match mix.rate {
                Rate::Steady(rate) => {
                    format!("the rate is {} {unit} per second", three_digits(rate))
                }
                Rate::Shaped(_) | Rate::Users(_) => "the rates are shares of that".to_owned(),
            };
            plan.notes.push(format!(
                "this cluster saturates at {found} {unit} per second of this workload \
                 (measured to 1 % behind LMetric); {meant}"
            ));
            plan.saturation = Some(found);
            plan.workload = Workload::Mix(mix);
        }
        plan.name_itself();
        Ok(plan)
    }

    /// What tells the saturation that must be measured first from others, if one must.
    pub fn unmeasured(&self, known: &Saturations) -> Option<String> {
        let Checked { plan, rate } = self;
        let (Some(written), Workload::Mix(mix)) = (rate, &plan.workload) else { return None };
        let key = Bench::new(plan, mix, written).key();
        let is_known = known.lock().contains_key(&key);
        (!is_known).then_some(key)
    }
}

impl Draft {
    /// The plan of one scenario: resolved, and settled with nothing known.
    ///
    /// # Errors
    /// If anything in it is illegal, or there is no saturation that its rate could be a share of.
    pub fn plan(&self) -> Result<Plan, RunFailure> {
        self.resolve()?.settle(&Saturations::default(), &mut Unobserved)
    }
}

/// The plan with the strategy that saturation is measured with.
fn reference(plan: &Plan) -> Plan {
    let scorers = PartsText { scorers: Some(REFERENCE_SCORERS), ..PartsText::default() };
    let routing = Routing::new("weighted", &[], &scorers, &Guests::NONE);
    let routing = routing.expect("the reference scorers are legal");
    let policies = Policies { routing, ..Policies::default() };
    // One gateway that knows all it sends: what the engines can do, not how well they are fed.
    let (horizon, patience, gateways) = (None, None, 1);
    let (oracles, warmup, slo) = (Oracles::NONE, Time::ZERO, SloTargets::default());
    let (signals, hears_events) = (Signals::default(), false);
    Plan {
        gateways,
        signals,
        hears_events,
        policies,
        oracles,
        horizon,
        warmup,
        slo,
        patience,
        ..plan.clone()
    }
}

/// The mix at a rate that never changes but by chance, and with clients that wait.
fn steady(mix: &Mix) -> Mix {
    let even = |client: &Client| Client {
        activity: Activity::default(),
        patience: None,
        ..client.clone()
    };
    let clients = mix.clients.iter().map(even).collect();
    Mix { clients, horizon: None, num_requests: None, ..mix.clone() }
}

/// About how long the longest kind of session lasts, and the most rounds it is expected to have.
fn longest_session(mix: &Mix) -> (Span, f64) {
    let of = |client: &Client| {
        let sessions = client.sessions.as_ref()?;
        let rounds = sessions.rounds.mean().unwrap_or(8.0);
        let (Think::Constant(think) | Think::Exponential(think)) = sessions.think;
        Some((Span::from_secs_f64((think.as_secs_f64() * rounds).min(1e6)), rounds))
    };
    let longest = mix.clients.iter().filter_map(of).fold((Span::ZERO, 1.0), |most, session| {
        (most.0.max(session.0), f64::max(most.1, session.1))
    });
    (longest.0, longest.1)
}

/// A cluster and a workload whose rate is varied.
struct Bench<'a> {
    plan: Plan,
    mix: Mix,
    session: (Span, f64),
    /// The rate that is a share of what is measured.
    written: &'a Written,
}

impl<'a> Bench<'a> {
    fn new(plan: &Plan, mix: &Mix, written: &'a Written) -> Bench<'a> {
        let session = longest_session(mix);
        Bench { plan: reference(plan), mix: steady(mix), session, written }
    }

    /// The saturation of the cluster in arrivals per second: of requests, or of sessions for
    /// clients that have them.
    fn saturation(
        &self,
        known: &Saturations,
        observer: &mut dyn Observer,
    ) -> Result<f64, RunFailure> {
        let key = self.key();
        let remembered = known.lock().get(&key).copied();
        if let Some(found) = remembered {
            return Ok(found);
        }
        let found = self.search(observer)?;
        known.lock().insert(key, found);
        Ok(found)
    }

    /// A hash of all that the saturation depends on: the code, the cluster and the workload, whose
    /// rate and length have no say.
    fn key(&self) -> String {
        let mix = Mix { rate: Rate::Steady(1.0), num_requests: None, ..self.mix.clone() };
        let plan = Plan { workload: Workload::Mix(mix), ..self.plan.clone() };
        let text = format!("saturation {CODE}\n{}", canonical(&plan));
        format!("{:032x}", hash_long(text.as_bytes()))
    }

    /// Looks for a rate of mild overload, and measures there.
    fn search(&self, observer: &mut dyn Observer) -> Result<f64, RunFailure> {
        let (guess, running) = self.first_guess(observer)?;
        let mut rate = guess * OVERLOAD;
        let (mut low, mut high) = (None, None);
        for _ in 0..FARTHEST {
            let served = self.served(rate, running, SEED, observer)?;
            let overload = rate / served;
            let narrow = matches!((low, high), (Some(low), Some(high)) if high <= 1.02 * low);
            if narrow || (MILD.0 <= overload && overload <= MILD.1) {
                return self.measure(rate, running, served, observer);
            }
            if overload < MILD.0 {
                low = Some(rate);
            } else {
                high = Some(rate);
            }
            rate = match (low, high) {
                (Some(low), Some(high)) => f64::sqrt(low * high),
                (Some(low), None) => low * 1.1,
                (None, _) => served * OVERLOAD,
            };
        }
        let message = "saturation was not found; give the rate in requests per second";
        Err(self.written.problem(message).into())
    }

    /// The mean of what is served at `rate` over as many seeds as it takes, of which the first gave
    /// `first`.
    fn measure(
        &self,
        rate: f64,
        running: u64,
        first: f64,
        observer: &mut dyn Observer,
    ) -> Result<f64, RunFailure> {
        let mut all = vec![first];
        for seed in SEED + 1.. {
            all.push(self.served(rate, running, seed, observer)?);
            let n = float(all.len() as u64);
            let mean = all.iter().sum::<f64>() / n;
            let squares: f64 = all.iter().map(|one| (one - mean) * (one - mean)).sum();
            let error = (squares / (n - 1.0) / n).sqrt();
            let precise = all.len() >= SEEDS.0 && error <= STANDARD_ERROR * mean;
            if precise || all.len() == SEEDS.1 {
                return Ok(three_digits(mean));
            }
        }
        unreachable!("there are more seeds than a measurement takes")
    }

    /// Arrivals a second that get through when all come at once, and how many run at a time then.
    fn first_guess(&self, observer: &mut dyn Observer) -> Result<(f64, u64), RunFailure> {
        let at_once = AT_ONCE * u64::from(self.plan.instances);
        let mut flow = Flow { counts_running: true, ..Flow::default() };
        let at_once = at_once.min(MOST_REQUESTS);
        let outcome = self.run(1e6, at_once, SEED, &mut flow, observer)?;
        let ended = outcome.ended_at;
        if outcome.end == End::Interrupted {
            return Err(RunFailure::Interrupted);
        }
        if flow.finished == 0 || ended == Time::ZERO {
            let message = "none of the workload's requests can be served, so there is no \
                           saturation; give the rate in requests per second";
            return Err(self.written.problem(message).into());
        }
        let per_sec = float(flow.finished) / ended.as_secs_f64() * flow.openings_per_arrival();
        Ok((per_sec, flow.most_running))
    }

    /// Arrivals a second that are served at `rate`, where so many run at a time.
    fn served(
        &self,
        rate: f64,
        running: u64,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<f64, RunFailure> {
        let (lasting, rounds) = self.session;
        let whole_sessions = count(SESSIONS_LONG * lasting.as_secs_f64() * rate.min(1e5) * rounds);
        let requests = (TURNOVERS * running).max(whole_sessions);
        let requests = requests.clamp(LEAST_REQUESTS, MOST_REQUESTS);
        let mut arrivals = Arrivals { requests, since: None, enough: false, observer };
        let mut flow = Flow::default();
        let outcome = self.run(rate, requests, seed, &mut flow, &mut arrivals)?;
        if outcome.end == End::Interrupted && !arrivals.enough {
            return Err(RunFailure::Interrupted);
        }
        flow.served().ok_or_else(|| {
            let message = "the cluster is too slow: at a rate it might keep up with, no request is \
                           served while others arrive; give the rate in requests per second";
            self.written.problem(message).into()
        })
    }

    /// Sends so many requests at `rate`.
    fn run(
        &self,
        rate: f64,
        requests: u64,
        seed: u64,
        flow: &mut Flow,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, RunFailure> {
        let mix =
            Mix { rate: Rate::Steady(rate), num_requests: Some(requests), ..self.mix.clone() };
        let plan = Plan { workload: Workload::Mix(mix), ..self.plan.clone() };
        listen(&plan, Trial::new(seed), flow, None, observer)
    }
}

/// Stops a run some time after its last request has arrived: what is served then does not count.
struct Arrivals<'a> {
    requests: u64,
    /// When all of them were seen to have arrived.
    since: Option<Time>,
    /// Whether it stopped the run.
    enough: bool,
    observer: &'a mut dyn Observer,
}

impl Observer for Arrivals<'_> {
    fn go_on(&mut self, progress: Progress) -> bool {
        if progress.arrived == self.requests {
            // More may happen at the instant of the last arrival, which does count.
            self.enough = progress.now > *self.since.get_or_insert(progress.now);
        }
        !self.enough && self.observer.go_on(progress)
    }
}

/// How requests came, ran and went.
#[derive(Default)]
struct Flow {
    arrivals: u64,
    /// Arrivals that are no later rounds of a session.
    openings: u64,
    last_opening: u64,
    ends: Vec<u64>,
    finished: u64,
    /// Whether it is asked how many run at a time, over all instances. Steps that are taken at once
    /// may state the facts of instances in another order, in which that is another number.
    counts_running: bool,
    running: u64,
    most_running: u64,
}

impl Listener for Flow {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        match *fact {
            Fact::Arrived { round, .. } => {
                self.arrivals += 1;
                if round == 0 {
                    self.openings += 1;
                    self.last_opening = at.as_nanos();
                }
            }
            Fact::Scheduled { .. } => {
                self.running += 1;
                self.most_running = self.most_running.max(self.running);
            }
            Fact::Preempted { ended: false, .. } => self.running = self.running.saturating_sub(1),
            Fact::Closed { status, .. } => {
                self.ends.push(at.as_nanos());
                if status == Status::Finished {
                    self.finished += 1;
                    self.running = self.running.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    fn wants_details(&self) -> bool {
        self.counts_running
    }
}

impl Flow {
    fn openings_per_arrival(&self) -> f64 {
        float(self.openings) / float(self.arrivals)
    }

    /// Arrivals a second that were served in the best quarter of the time until the last opening.
    /// Before it the batches fill, and long after it queues may have changed what is cached. `None`
    /// if there are none.
    fn served(mut self) -> Option<f64> {
        self.ends.sort_unstable();
        let sixteenth = (self.last_opening / 16).max(1);
        let gone = |until: u64| self.ends.partition_point(|&end| end <= until * sixteenth);
        let most = (4..=16).map(|until| gone(until) - gone(until - 4)).max().unwrap_or(0);
        let quarter = Span::from_nanos(4 * sixteenth).as_secs_f64();
        let per_sec = float(most as u64) / quarter;
        (most > 0).then(|| per_sec * self.openings_per_arrival())
    }
}

/// The number to three digits, which is as much as a measurement knows.
fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().expect("a number reads back")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run_scenario;
    use blis_metrics::Saturation;

    fn saturation(text: &str) -> f64 {
        let mut draft = Draft::from_text("s.yaml", text).expect("well-formed");
        draft.set_amount("--rate", "rate", "100%");
        let plan = draft.plan().expect("there is a saturation");
        plan.saturation.expect("it was measured")
    }

    /// A server that takes one request at a time, for 10 steps of 1 ms each.
    const ONE_BY_ONE: &str = "
latency: {model: constant, step_us: 1000}
engine: {max_num_running_reqs: 1, total_kv_blocks: 1000, async_scheduling: false}
workload: {distribution: {rate: 1, prompt_tokens: {mean: 16, stdev: 0}, output_tokens: {mean: 10, stdev: 0}}}
";

    #[test]
    fn servers_of_a_known_service_time_saturate_at_its_inverse() {
        let one = saturation(ONE_BY_ONE);
        assert!((one - 100.0).abs() <= 2.0, "10 ms a request: 100 a second, not {one}");
        let four = saturation(&format!("cluster: {{instances: 4}}\n{ONE_BY_ONE}"));
        assert!((four - 400.0).abs() <= 8.0, "four of them: 400 a second, not {four}");
    }

    /// A batch of up to 32 whose steps take the longer the more run: near saturation it fills
    /// slowly, and its requests, of random lengths, come at random.
    const BATCHES: &str = "
model: a queue
latency: {alpha_us: [0, 0, 0], beta_us: [1000, 100, 100]}
engine: {max_num_running_reqs: 32, total_kv_blocks: 10000}
workload: {distribution: {rate: 1, prompt_tokens: {mean: 16, stdev: 0}, output_tokens: {mean: 20, stdev: 8}}}
";

    /// Conversations over 32 system prompts. Behind `pa:3,qd:2,kv:2` 32 instances serve a tenth
    /// more each than 4, because affinity counts more where loads differ more.
    const CONVERSATIONS: &str = "
hardware: H200
tp: 1
workload: {preset: orthogonal-slo-32}
";

    #[test]
    fn saturation_scales_with_the_instances() {
        for (text, sizes) in [(BATCHES, [1.0, 4.0, 16.0]), (CONVERSATIONS, [4.0, 8.0, 32.0])] {
            let of = |instances: f64| {
                saturation(&format!("cluster: {{instances: {instances}}}\n{text}")) / instances
            };
            let each = sizes.map(of);
            for (found, instances) in each.iter().zip(sizes) {
                let off = (found / each[0] - 1.0).abs();
                assert!(off <= 0.05, "{instances}: {found} each, not {}", each[0]);
            }
        }
    }

    /// Whether the cluster keeps up at `rate` over so many requests.
    fn load(text: &str, rate: &str, requests: &str) -> Option<Saturation> {
        let mut draft = Draft::from_text("s.yaml", text).expect("well-formed");
        draft.set_amount("--rate", "rate", rate);
        draft.set_amount("--num-requests", "num_requests", requests);
        let plan = draft.plan().expect("there is a saturation");
        let found = run_scenario(&plan, Trial::new(7), &mut [], None, &mut Unobserved);
        found.expect("it runs").report.saturation
    }

    #[test]
    fn queues_grow_above_saturation_and_not_below() {
        let stable = Some(Saturation::Stable);
        // Not as shares, so that the runs alone decide.
        let rate = |share: f64| (share * saturation(BATCHES)).to_string();
        assert_eq!(load(BATCHES, &rate(0.97), "60000"), stable);
        assert_ne!(load(BATCHES, &rate(1.03), "60000"), stable);
    }

    #[test]
    fn a_short_run_above_saturation_is_not_called_stable() {
        let above = (1.1 * saturation(BATCHES)).to_string();
        assert_eq!(load(BATCHES, &above, "100"), Some(Saturation::Stable));
        assert_eq!(load(BATCHES, "110%", "100"), Some(Saturation::Growing));
        assert_eq!(load(BATCHES, "90%", "100"), Some(Saturation::Stable));
    }

    #[test]
    fn batches_without_a_limit_that_grow_are_not_stable() {
        let unlimited = BATCHES
            .replace("max_num_running_reqs: 32", "max_num_running_reqs: 100000")
            .replace("total_kv_blocks: 10000", "total_kv_blocks: 1000000");
        // A prompt of 16 tokens and 20 steps, 0.1 ms for each token: about 280 a second at most.
        let stable = Some(Saturation::Stable);
        for rate in ["195", "250", "270"] {
            assert_eq!(load(&unlimited, rate, "20000"), stable, "{rate} a second");
        }
        for rate in ["305", "340"] {
            assert_ne!(load(&unlimited, rate, "20000"), stable, "{rate} a second");
        }
    }

    #[test]
    fn conversations_saturate_too_counted_by_sessions() {
        // Four rounds of 10 ms each, one after the other.
        let text = ONE_BY_ONE.replace(
            "workload: {distribution: {rate: 1, prompt_tokens: {mean: 16, stdev: 0}, \
             output_tokens: {mean: 10, stdev: 0}}}",
            "workload: {mix: {clients: [{rate_fraction: 1, arrival: {process: poisson}, \
             input_distribution: {type: constant, params: {value: 16}}, \
             output_distribution: {type: constant, params: {value: 10}}, \
             reasoning: {multi_turn: {max_rounds: 4, think_time_us: 300000, \
             context_growth: none, closed_loop: true}}}]}}",
        );
        assert_ne!(text, ONE_BY_ONE);
        for text in [text.clone(), text.replace("closed_loop: true", "closed_loop: false")] {
            let found = saturation(&text);
            assert!((found - 25.0).abs() <= 0.75, "25 sessions a second, not {found}");
        }
    }

    #[test]
    fn the_strategy_the_seed_and_the_rate_of_the_scenario_have_no_say() {
        let one = saturation(ONE_BY_ONE);
        let other = format!("admission: reject-all\nscheduler: sjf\nseed: 7\n{ONE_BY_ONE}");
        assert_eq!(saturation(&other.replace("rate: 1,", "rate: 9999,")).to_bits(), one.to_bits());
    }

    #[test]
    fn answers_that_take_longer_than_thinking_are_no_queue() {
        // A step of 50 ms serves all 2,000 who run: an answer of 40 tokens takes 2 s, and four
        // rounds 8 s beside 2 s of thinking. 1,000 answers a second. A measurement of 12 s, which
        // is 12,000 requests, would see nothing but sessions that come up to speed.
        let text = "
latency: {model: constant, step_us: 50000}
engine: {max_num_running_reqs: 2000, max_num_scheduled_tokens: 100000, total_kv_blocks: 10000}
workload: {mix: {clients: [{rate_fraction: 1, arrival: {process: poisson}, input_distribution: \
{type: constant, params: {value: 16}}, output_distribution: {type: constant, params: {value: 40}}, \
reasoning: {multi_turn: {max_rounds: 4, think_time_us: 500000, context_growth: none, closed_loop: \
true}}}]}}";
        let found = saturation(text);
        assert!((found - 250.0).abs() <= 12.0, "250 sessions a second, not {found}");
    }

    #[test]
    fn what_is_measured_once_is_not_confused_with_anything_else() {
        let one = saturation(ONE_BY_ONE);
        for (from, to, expected) in [
            ("step_us: 1000", "step_us: 2000", 50.0),
            ("output_tokens: {mean: 10", "output_tokens: {mean: 5", 200.0),
            ("reqs: 1", "reqs: 2", 200.0),
        ] {
            let text = ONE_BY_ONE.replacen(from, to, 1);
            assert_ne!(text, ONE_BY_ONE, "{from}");
            let found = saturation(&text);
            assert!((found - expected).abs() <= 0.03 * expected, "{to}: {found}");
        }
        assert_eq!(saturation(ONE_BY_ONE).to_bits(), one.to_bits());
    }

    #[test]
    fn a_cluster_too_slow_for_any_request_has_no_saturation() {
        let slow = "latency: {model: constant, step_us: 1e9}
engine: {max_num_running_reqs: 1, total_kv_blocks: 1000000}
workload: {distribution: {rate: 90%, num_requests: 5, output_tokens: {mean: 1e6, max: 4e6}}}";
        let refused = Draft::from_text("s.yaml", slow).expect("well-formed").plan();
        let message = refused.expect_err("nothing can be measured").to_string();
        let start = "s.yaml:3:33: workload.distribution.rate: the cluster is too slow";
        assert!(message.starts_with(start), "{message}");
    }

    #[test]
    fn numbers_are_told_to_three_digits() {
        let texts = [three_digits(123.456), three_digits(0.98765)].map(|x| x.to_string());
        assert_eq!(texts, ["123", "0.988"]);
    }
}
