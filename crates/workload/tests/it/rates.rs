//! Rates that change: every process keeps its shape, and every stretch of time gets its share.

use crate::mix::{client, mix_of};
use blis_core::math::float;
use blis_core::random::{Purpose, mix};
use blis_core::{Dice, Source, Span, Time};
use blis_workload::{Activity, ActivityPart, Arrival, Client, Mix, Rate, Weibull};

fn seconds(secs: u64) -> Time {
    Time::from_micros(secs * 1_000_000)
}

fn span(secs: f64) -> Span {
    Span::from_secs_f64(secs)
}

fn arrivals(mix: &Mix) -> Vec<Time> {
    mix.validate().expect("the test's mix is legal");
    let mut source = mix.source();
    let next = || source.next_request().expect("a mix cannot fail");
    std::iter::from_fn(next).map(|request| request.arrival).collect()
}

fn alone(arrival: Arrival, rate: Rate) -> Mix {
    let client = Client { arrival, share: 1.0, ..client("alone") };
    Mix { rate, num_requests: None, ..mix_of(vec![client], 1.0) }
}

/// Counted in expected requests instead of seconds, the gaps are those that were drawn.
#[test]
fn a_ramp_stretches_time_and_leaves_every_process_as_it_is() {
    let weibull = Arrival::Weibull(Weibull::new(2.0).expect("legal"));
    let ramp = Rate::ramp(3.0, 60.0, span(600.0));
    for arrival in [Arrival::Poisson, Arrival::Gamma { cv: 3.5 }, weibull, Arrival::Constant] {
        let times = arrivals(&alone(arrival.clone(), ramp.clone()));
        assert!(times.len() > 15_000, "{arrival:?}: {} requests", times.len());
        let mut before = 0.0;
        for (index, &time) in (0..).zip(&times) {
            let so_far = ramp.requests_before(time);
            let drawn = arrival.gap(&mut Dice::new(42, Purpose::Arrival, mix(0, index)));
            // A nanosecond is at most 60e-9 requests.
            assert!((so_far - before - drawn).abs() < 1e-6, "{arrival:?}, number {index}");
            before = so_far;
        }
        // A ramp that nothing else ends, ends where it stops to change.
        assert!(times.last().is_some_and(|last| *last < seconds(600)));
    }
}

/// The counts of a Poisson process are Poisson: each within 4.5 standard deviations.
#[test]
fn each_step_of_a_rate_has_its_requests() {
    let steps = [(50.0, 100), (0.0, 50), (200.0, 20), (10.0, 100)];
    let rate = Rate::steps(steps.map(|(rate, secs)| (rate, span(float(secs)))));
    let times = arrivals(&alone(Arrival::Poisson, rate));
    let mut start = 0;
    for (rate, secs) in steps {
        let within = |time: &&Time| (seconds(start)..seconds(start + secs)).contains(*time);
        let found = float(times.iter().filter(within).count() as u64);
        let expected = rate * float(secs);
        assert!((found - expected).abs() <= 4.5 * expected.sqrt(), "{found}, not {expected}");
        start += secs;
    }
}

#[test]
fn a_number_of_requests_lets_the_last_rate_go_on() {
    let rate = Rate::ramp(1.0, 100.0, span(1.0));
    let times = arrivals(&Mix { num_requests: Some(5_000), ..alone(Arrival::Poisson, rate) });
    assert_eq!(times.len(), 5_000);
    assert!(times[4_999] > seconds(40), "it stays at 100 a second");
}

#[test]
fn a_client_has_its_own_rate_while_it_is_there_and_none_while_it_is_not() {
    let window = |from, until| ActivityPart::Window { from: seconds(from), until: seconds(until) };
    let parts = vec![window(100, 200), window(500, 900)];
    let mut mix = alone(Arrival::Gamma { cv: 2.0 }, Rate::Steady(40.0));
    mix.clients[0].activity = Activity { parts };
    mix.horizon = Some(seconds(2_000));
    let times = arrivals(&mix);
    let there = |time: &Time| {
        (seconds(100)..seconds(200)).contains(time) || (seconds(500)..seconds(900)).contains(time)
    };
    assert!(times.iter().all(there));
    // 500 s at 40 a second; the variance of a renewal process's count is CV squared times it.
    let found = float(times.len() as u64);
    assert!((found - 20_000.0).abs() < 4.5 * 2.0 * f64::sqrt(20_000.0), "{found} requests");
}

#[test]
fn a_workload_whose_clients_have_all_gone_ends() {
    let mut mix = alone(Arrival::Poisson, Rate::Steady(40.0));
    mix.num_requests = Some(1_000_000);
    mix.clients[0].activity =
        Activity { parts: vec![ActivityPart::Drain { from: seconds(10), over: span(10.0) }] };
    let times = arrivals(&mix);
    // Full for 10 s, then 10 steps from all to a tenth.
    assert!((times.len() as u64).abs_diff(400 + 220) < 120, "{}", times.len());
    assert!(times.last().is_some_and(|last| *last < seconds(20)));
    assert_eq!(mix.expected(), None, "how many there will be is not certain");
}

#[test]
fn days_are_busier_at_their_peak() {
    let mut mix = alone(Arrival::Poisson, Rate::Steady(1.0));
    mix.horizon = Some(seconds(2 * 86_400));
    mix.clients[0].activity =
        Activity { parts: vec![ActivityPart::Diurnal { peak_hour: 12, peak_to_trough: 5.0 }] };
    let times = arrivals(&mix);
    for day in 0..2 {
        let in_hour = |hour: u64| {
            let start = (24 * day + hour) * 3_600;
            let hour = seconds(start)..seconds(start + 3_600);
            float(times.iter().filter(|time| hour.contains(time)).count() as u64)
        };
        assert!((in_hour(12) - 3_600.0).abs() < 4.5 * 60.0, "{}", in_hour(12));
        assert!((in_hour(0) - 720.0).abs() < 4.5 * 27.0, "{}", in_hour(0));
    }
}
