//! Clients that give up, against theory and from scenario texts.

use crate::harness::{plan, run_audited};
use blis_core::Time;
use blis_core::math::{count, exp, float, pow};
use blis_metrics::{Fact, Listener, Status};
use blis_sim::Pace;

/// How each request ended, by id.
#[derive(Debug, Default)]
struct Ends(Vec<Option<Status>>);

impl Listener for Ends {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let Fact::Closed { status, record } = fact else { return };
        let index = usize::try_from(record.request.0).expect("it fits memory");
        self.0.resize(self.0.len().max(index + 1), None);
        self.0[index] = Some(*status);
    }
}

impl Ends {
    fn of(text: &str) -> Ends {
        let mut ends = Ends::default();
        run_audited(&plan(text), Pace::FastForward, &mut ends);
        ends
    }

    fn abandoned(&self) -> usize {
        let gave_up = |end: &&Option<Status>| matches!(end, Some(Status::Abandoned(_)));
        self.0.iter().filter(gave_up).count()
    }
}

/// Erlang's function of M/D/1: the share of time with no more than `x` services to do, but for a
/// factor.
fn erlang(x: f64, rate: f64) -> f64 {
    let mut sum = 0.0;
    let mut factorial = 1.0;
    for done in 0..=count(x) {
        let j = float(done);
        factorial *= if done == 0 { 1.0 } else { j };
        sum += pow(-rate, j) * pow(x - j, j) / factorial * exp(rate * (x - j));
    }
    sum
}

/// The share of customers that give up, in M/D/1 with services of 1, `rate` arrivals in one of
/// them, and customers who leave unless their service is complete `patience` after their arrival.
///
/// The work V that an arrival finds is its wait. Whoever finds less than `patience` is begun with
/// and adds 1 to it, whoever finds more leaves the queue before. By level crossing, V has up to
/// `patience` the distribution of M/D/1 but for a factor, and beyond it the density `rate
/// (F(patience) - F(x - 1))`; the whole of it gives the factor. Who finds more than `patience - 1`
/// gives up (as in Baccelli and Hebuterne, On queues with impatient customers, 1981, where service
/// is exponential).
fn share_that_gives_up(rate: f64, patience: f64) -> f64 {
    const PIECES: u32 = 1_000;
    let piece = 1.0 / f64::from(PIECES);
    let simpson: f64 = (0..=PIECES)
        .map(|n| {
            let weight = if n == 0 || n == PIECES { 1.0 } else { f64::from(2 + 2 * (n % 2)) };
            weight * erlang(patience - 1.0 + f64::from(n) * piece, rate)
        })
        .sum();
    let last_unit = simpson * piece / 3.0;
    let most = erlang(patience, rate);
    1.0 - erlang(patience - 1.0, rate) / (most + rate * (most - last_unit))
}

/// One engine that serves one request at a time, one step of 100 us each; the prompt's step gives
/// the only token. At rates above 1 most of what the server does is for clients who are about to
/// leave: it serves first come first served, and those have waited longest.
///
/// The share has a standard error of about sqrt(p (1 - p) c / n), where c, what neighbours have in
/// common, is below 10 here; with 100,000 requests that is at most 0.005.
#[test]
fn the_share_that_gives_up_is_that_of_m_d_1_with_constant_patience() {
    for (rate, patience) in [(0.5, 2.0), (0.8, 3.0), (1.2, 4.0), (2.0, 2.5)] {
        let requests = 100_000;
        let text = format!(
            "seed: {seed}\nmodel: a queue\nlatency: {{model: constant, step_us: 100}}\n\
             engine: {{total_kv_blocks: 100000, block_size: 65536, max_num_running_reqs: 1}}\n\
             workload:\n  patience_ms: {ms}\n  mix:\n    aggregate_rate: {per_sec}\n    \
             num_requests: {requests}\n    clients:\n      - id: all\n        rate_fraction: 1\n        \
             arrival: {{process: poisson}}\n        \
             input_distribution: {{type: constant, params: {{value: 1}}}}\n        \
             output_distribution: {{type: constant, params: {{value: 1}}}}\n",
            seed = count(10.0 * rate),
            ms = patience * 0.1,
            per_sec = rate * 1e4,
        );
        let measured = float(Ends::of(&text).abandoned() as u64) / float(requests);
        let expected = share_that_gives_up(rate, patience);
        assert!(
            (measured - expected).abs() < 0.012,
            "rate {rate}, patience {patience}: {measured} gave up, {expected} expected"
        );
    }
}

/// Three requests a second for a server that takes a second for each, one at a time.
fn busy(more: &str, client: &str) -> String {
    format!(
        "model: a queue\nlatency: {{model: constant, step_us: 1000000}}\n\
         engine: {{total_kv_blocks: 1000, max_num_running_reqs: 1}}\nworkload:\n{more}  mix:\n    \
         aggregate_rate: 3\n    num_requests: 30\n    clients:\n      - {{id: a, rate_fraction: 1, \
         {client}arrival: {{process: constant}}, input_distribution: {{type: constant, params: \
         {{value: 9}}}}, output_distribution: {{type: constant, params: {{value: 1}}}}}}\n"
    )
}

#[test]
fn a_client_says_how_long_it_waits_or_the_workload_does() {
    let all = |text: String| Ends::of(&text).0;
    let calm = all(busy("", ""));
    assert!(calm.iter().all(|end| *end == Some(Status::Finished)));
    let own = all(busy("", "patience_ms: 2500, "));
    let everybody = all(busy("  patience_ms: 2500\n", ""));
    assert_eq!(own, everybody);
    let gave_up = Ends(own).abandoned();
    // Nearly all: who is begun with has waited so long that the answer comes too late.
    assert!((20..30).contains(&gave_up), "{gave_up} of 30 gave up");
    // Who says it is not asked.
    assert_eq!(all(busy("  patience_ms: 1\n", "patience_ms: 2500, ")), everybody);
    assert_eq!(all(busy("  patience_ms: 315360000000\n", "")), calm);
}

#[test]
fn who_gives_up_comes_back_as_whoever_is_turned_away() {
    let once = Ends::of(&busy("  patience_ms: 2500\n", ""));
    assert_eq!(once.0.len(), 30);
    let again = Ends::of(&busy("  patience_ms: 2500\n", "retry: {retries: 2, backoff_ms: 100}, "));
    // Each of 30 finishes in the end, or has given up three times.
    let finished = again.0.len() - again.abandoned();
    assert!((1..30).contains(&finished), "{finished} finished");
    assert_eq!(again.0.iter().filter(|end| end.is_none()).count(), 0);
    let attempts = again.0.len();
    assert!(attempts > 60 && attempts <= 90, "{attempts} attempts");
    assert!(again.abandoned() >= 3 * (30 - finished), "{} gave up", again.abandoned());
}

#[test]
fn a_round_that_is_given_up_ends_a_closed_loop_or_is_sent_again() {
    let sessions = |on_rejection: &str| {
        busy(
            "  patience_ms: 2500\n",
            &format!(
                "reasoning: {{multi_turn: {{max_rounds: 2, closed_loop: true{on_rejection}}}}}, "
            ),
        )
    };
    let ends = Ends::of(&sessions(""));
    let retried = Ends::of(&sessions(", on_rejection: retry, retry_after_us: 1000, retries: 5"));
    assert!(ends.abandoned() > 0 && ends.0.len() < 30, "{} rounds", ends.0.len());
    assert!(retried.0.len() > ends.0.len() + 5, "{} rounds", retried.0.len());
}

#[test]
fn the_saturation_of_a_cluster_is_that_with_clients_who_wait() {
    let text = |patience: &str| {
        format!("workload:\n{patience}  preset: chatbot\n  num_requests: 50\n  rate: 50%\n")
    };
    let calm = plan(&text(""));
    let hasty = plan(&text("  patience_ms: 10\n"));
    assert!(calm.saturation.is_some());
    assert_eq!(calm.saturation, hasty.saturation);
    assert_ne!(calm.hash(), hasty.hash(), "they are different scenarios");
}
