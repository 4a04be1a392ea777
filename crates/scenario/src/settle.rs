//! Settles rates that are shares of the cluster's saturation, by measuring it.
//!
//! Saturation is the highest rate at which the cluster keeps up. It is measured, because no formula
//! knows what a prefix cache or preemption does to it: the workload's own requests are sent at
//! steady rates, evenly spaced, to the scenario's own engines behind one fixed strategy (all enter,
//! [`REFERENCE_SCORERS`], first come first served), and the rate at which the number of requests
//! inside stops growing is found by bisection. Neither the seed nor the strategy of the scenario
//! has a say, so that strategies which are compared at 90 % of saturation are sent exactly the same
//! requests.

use crate::CODE;
use crate::hash::hash_long;
use crate::rate::Written;
use crate::run::{RunFailure, run_scenario};
use crate::scenario::canonical::canonical;
use crate::scenario::{Checked, Draft, Oracles, Plan, Trial, Workload};
use blis_core::math::{count, float};
use blis_core::{Span, Time};
use blis_metrics::{Fact, Listener, Status};
use blis_policy::{Guests, PartsText, Policies, Routing};
use blis_sim::{End, Observer, Unobserved};
use blis_workload::{Activity, Arrival, Client, Mix, Rate, Think};
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
const REFERENCE_SCORERS: &str = "pa:3,qd:2,kv:2";

/// Seed of all measurements.
const SEED: u64 = 42;
/// Requests of one measurement: so many for each instance, within these bounds.
const PER_INSTANCE: u64 = 1_000;
const LEAST_REQUESTS: u64 = 12_000;
const MOST_REQUESTS: u64 = 300_000;
/// A measurement lasts at least so many sessions, one after the other, as long as they take without
/// their answers. Near saturation answers take longer than thinking, and later rounds come up to
/// speed only after a whole session; with a third of this, that would be taken for a queue.
const SESSIONS_LONG: f64 = 12.0;
/// The cluster keeps up if the requests inside grow by no more than this share of the arrivals.
const GROWTH: f64 = 0.01;
/// The search ends when the bounds are as close as this.
const CLOSE: f64 = 1.005;
/// Doublings or halvings until the search gives up: from any guess to any machine.
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
                Rate::Steady(rate) => format!("the rate is {rate:.4} {unit} per second"),
                Rate::Shaped(_) => "the rates are shares of that".to_owned(),
            };
            plan.notes.push(format!(
                "this cluster saturates at {found} {unit} per second of this workload \
                 (measured with {REFERENCE_SCORERS}); {meant}"
            ));
            plan.saturation = Some(found);
            plan.workload = Workload::Mix(mix);
        }
        plan.name_itself();
        Ok(plan)
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
    let (oracles, warmup) = (Oracles::NONE, Time::ZERO);
    Plan { gateways, policies, oracles, horizon, warmup, patience, ..plan.clone() }
}

/// The mix without anything that makes its rate uneven, and with clients that wait.
fn steady(mix: &Mix) -> Mix {
    let even = |client: &Client| Client {
        arrival: Arrival::Constant,
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

    fn search(&self, observer: &mut dyn Observer) -> Result<f64, RunFailure> {
        let mut rate = self.first_guess(observer)?;
        let (mut low, mut high) = (None, None);
        for _ in 0..FARTHEST {
            if self.keeps_up(rate, observer)? {
                low = Some(rate);
            } else {
                high = Some(rate);
            }
            rate = match (low, high) {
                (Some(low), Some(high)) if high / low <= CLOSE => return Ok(three_digits(low)),
                (Some(low), Some(high)) => f64::sqrt(low * high),
                (Some(low), None) => low * 1.25,
                (None, Some(high)) => high / 1.25,
                (None, None) => unreachable!("one of them was just set"),
            };
        }
        let message = "saturation was not found; give the rate in requests per second";
        Err(self.written.problem(message).into())
    }

    /// Arrivals a second that get through when all come at once.
    fn first_guess(&self, observer: &mut dyn Observer) -> Result<f64, RunFailure> {
        let mut inside = Inside::default();
        let ended = self.run(1e6, &mut inside, observer)?;
        let finished = inside.finished;
        if finished == 0 || ended == Time::ZERO {
            let message = "none of the workload's requests can be served, so there is no \
                           saturation; give the rate in requests per second";
            return Err(self.written.problem(message).into());
        }
        Ok(float(finished) / ended.as_secs_f64() / self.session.1)
    }

    fn keeps_up(&self, rate: f64, observer: &mut dyn Observer) -> Result<bool, RunFailure> {
        let mut inside = Inside::default();
        self.run(rate, &mut inside, observer)?;
        if inside.arrivals.is_empty() {
            let message = "the cluster is too slow: at a rate it might keep up with, no request \
                           arrives within the longest run; give the rate in requests per second";
            return Err(self.written.problem(message).into());
        }
        // After the last session has begun, only later rounds come, fewer and fewer of them.
        let begun = float(self.requests(rate)) / self.session.1 / rate;
        Ok(inside.growth(Span::from_secs_f64(begun)) <= GROWTH)
    }

    /// How many requests are sent at `rate`.
    fn requests(&self, rate: f64) -> u64 {
        let instances = u64::from(self.plan.instances);
        let (lasting, rounds) = self.session;
        let whole_sessions = count(SESSIONS_LONG * lasting.as_secs_f64() * rate.min(1e5) * rounds);
        (PER_INSTANCE * instances).max(whole_sessions).clamp(LEAST_REQUESTS, MOST_REQUESTS)
    }

    /// Sends requests at `rate`; returns when the last of them ended.
    fn run(
        &self,
        rate: f64,
        inside: &mut Inside,
        observer: &mut dyn Observer,
    ) -> Result<Time, RunFailure> {
        let mix = Mix {
            rate: Rate::Steady(rate),
            num_requests: Some(self.requests(rate)),
            ..self.mix.clone()
        };
        let plan = Plan { workload: Workload::Mix(mix), ..self.plan.clone() };
        let result = run_scenario(&plan, Trial::new(SEED), &mut [inside], None, observer)?;
        match result.outcome.end {
            End::Interrupted => Err(RunFailure::Interrupted),
            _ => Ok(result.outcome.ended_at),
        }
    }
}

/// When requests came and went.
#[derive(Default)]
struct Inside {
    arrivals: Vec<u64>,
    ends: Vec<u64>,
    finished: u64,
}

impl Listener for Inside {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        match fact {
            Fact::Arrived { .. } => self.arrivals.push(at.as_nanos()),
            Fact::Closed { status, .. } => {
                self.ends.push(at.as_nanos());
                self.finished += u64::from(*status == Status::Finished);
            }
            _ => {}
        }
    }
}

impl Inside {
    /// By how much the number of requests inside grows in the second half of the first `lasting`,
    /// as a share of the arrivals: the slope of the straight line through it.
    fn growth(&mut self, lasting: Span) -> f64 {
        self.ends.sort_unstable();
        let (from, upto) = (lasting.as_nanos() / 2, lasting.as_nanos());
        let half = self.arrivals.partition_point(|&arrival| arrival < from);
        let last = self.arrivals.partition_point(|&arrival| arrival <= upto);
        let origin = self.arrivals.get(half).copied().unwrap_or(0);
        let (mut n, mut t1, mut t2, mut x1, mut tx) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (before, &arrival) in (half..).zip(&self.arrivals[half..last.max(half)]) {
            let gone = self.ends.partition_point(|&end| end <= arrival);
            let inside = float((before + 1).saturating_sub(gone) as u64);
            let t = float(arrival - origin);
            n += 1.0;
            t1 += t;
            t2 += t * t;
            x1 += inside;
            tx += t * inside;
        }
        let spread = n * t2 - t1 * t1;
        let lasting = float(upto.saturating_sub(origin));
        if spread > 0.0 { (n * tx - t1 * x1) / spread * lasting / n } else { 1.0 }
    }
}

/// The number to three digits, which is as much as a measurement knows.
fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().expect("a number reads back")
}

#[cfg(test)]
mod tests {
    use super::*;

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
