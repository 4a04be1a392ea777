//! Every arrival process and length distribution against its exact distribution function:
//! Kolmogorov-Smirnov, mean and coefficient of variation, over keyed draws as the sources make
//! them.

use blis_core::math::{exp, float, gamma, ln, pow};
use blis_core::random::{Purpose, mix};
use blis_core::{Dice, Source, Time};
use blis_workload::{Arrival, ArrivalClock, Empirical, Length, Weibull};

const SEEDS: u64 = 20;
const DRAWS: u64 = 10_000;

/// The distance that a sample of `n` exceeds with a probability of 0.001.
fn critical_distance(n: u64) -> f64 {
    1.949 / float(n).sqrt()
}

/// Greatest distance between the sample's distribution function and a continuous `cdf`.
fn distance(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = float(sample.len() as u64);
    let mut greatest = 0.0_f64;
    for (below, x) in (0_u64..).zip(sample.iter()) {
        let exact = cdf(*x);
        greatest = greatest.max(exact - float(below) / n).max(float(below + 1) / n - exact);
    }
    greatest
}

/// The same for whole numbers, where only the steps themselves count.
fn discrete_distance(sample: &mut [u32], cdf: impl Fn(u32) -> f64) -> f64 {
    sample.sort_unstable();
    let n = float(sample.len() as u64);
    let mut greatest = 0.0_f64;
    let mut at_most = 0;
    for run in sample.chunk_by(|a, b| a == b) {
        let value = run[0];
        greatest = greatest.max((float(at_most) / n - cdf(value - 1)).abs());
        at_most += run.len() as u64;
        greatest = greatest.max((float(at_most) / n - cdf(value)).abs());
    }
    greatest
}

fn moments(sample: &[f64]) -> (f64, f64) {
    let n = float(sample.len() as u64);
    let mean = sample.iter().sum::<f64>() / n;
    let variance = sample.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, variance.sqrt() / mean)
}

/// The regularized lower incomplete gamma function: a series near 0, a continued fraction far out.
fn incomplete_gamma(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let factor = exp(shape * ln(x) - x) / gamma(shape);
    if x < shape + 1.0 {
        let (mut term, mut sum, mut over) = (1.0 / shape, 1.0 / shape, shape);
        while term > sum * 1e-15 {
            over += 1.0;
            term *= x / over;
            sum += term;
        }
        return factor * sum;
    }
    // Lentz's method, from the first denominator on.
    let mut partial = x + 1.0 - shape;
    let (mut upper, mut lower) = (f64::INFINITY, 1.0 / partial);
    let mut fraction = lower;
    for step in 1..500_u32 {
        let numerator = -f64::from(step) * (f64::from(step) - shape);
        partial += 2.0;
        lower = 1.0 / (numerator * lower + partial);
        upper = partial + numerator / upper;
        fraction *= lower * upper;
        if (lower * upper - 1.0).abs() < 1e-14 {
            break;
        }
    }
    1.0 - factor * fraction
}

fn normal_cdf(z: f64) -> f64 {
    let half = incomplete_gamma(0.5, z * z / 2.0) / 2.0;
    if z < 0.0 { 0.5 - half } else { 0.5 + half }
}

fn gaps(arrival: &Arrival, seed: u64) -> Vec<f64> {
    let dice = |index| Dice::new(seed, Purpose::Arrival, mix(0, index));
    (0..DRAWS).map(|index| arrival.gap(&mut dice(index))).collect()
}

#[track_caller]
fn check_gaps(arrival: &Arrival, cv: f64, cdf: impl Fn(f64) -> f64) {
    let mut all = Vec::new();
    for seed in 0..SEEDS {
        let mut sample = gaps(arrival, seed);
        all.extend_from_slice(&sample);
        let found = distance(&mut sample, &cdf);
        assert!(found < critical_distance(DRAWS), "{arrival:?}, seed {seed}: distance {found}");
    }
    let (mean, found_cv) = moments(&all);
    let standard_error = cv / float(all.len() as u64).sqrt();
    assert!((mean - 1.0).abs() < 4.5 * standard_error, "{arrival:?}: mean {mean}");
    assert!((found_cv / cv - 1.0).abs() < 0.03, "{arrival:?}: CV {found_cv}");
}

#[test]
fn poisson_gaps_are_exponential() {
    check_gaps(&Arrival::Poisson, 1.0, |x| 1.0 - exp(-x));
}

#[test]
fn gamma_gaps_are_gamma_distributed_from_regular_to_very_bursty() {
    for cv in [0.5, 1.0, 2.0, 3.5] {
        let shape = 1.0 / (cv * cv);
        check_gaps(&Arrival::Gamma { cv }, cv, |x| incomplete_gamma(shape, shape * x));
    }
}

#[test]
fn weibull_gaps_have_the_variation_that_was_asked_for() {
    for cv in [0.3, 1.0, 2.0] {
        let weibull = Weibull::new(cv).expect("legal");
        check_gaps(&Arrival::Weibull(weibull), cv, |x| weibull.cdf(x));
    }
    for bad in [0.0, -1.0, 11.0, f64::NAN] {
        let message = Weibull::new(bad).expect_err("must be refused").to_string();
        assert!(message.contains("legal: a number from 0.01 to 10.4"), "{message}");
    }
}

#[test]
fn constant_gaps_are_all_one() {
    assert!(gaps(&Arrival::Constant, 1).iter().all(|gap| (gap - 1.0).abs() < f64::EPSILON));
}

#[test]
fn rounding_to_nanoseconds_keeps_the_sum_of_the_gaps() {
    for arrival in [Arrival::Poisson, Arrival::Gamma { cv: 3.5 }, Arrival::Constant] {
        // At 300 million a second the mean gap is 3.3 ns, where rounding each gap would be fatal.
        for rate in [0.3, 400.0, 3e8] {
            let mut clock = ArrivalClock::new(rate);
            let (mut exact, mut lost, mut spans, mut last) = (0.0, 0.0, 0, Time::ZERO);
            for gap in gaps(&arrival, 7) {
                // Compensated summation, which the clock must match without it.
                let term = gap * (1e9 / rate) - lost;
                let sum: f64 = exact + term;
                lost = (sum - exact) - term;
                exact = sum;
                let now = clock.advance(gap);
                spans += now.since(last).as_nanos();
                last = now;
            }
            assert_eq!(spans, last.as_nanos(), "{arrival:?} at {rate}/s");
            let off = float(last.as_nanos()) - exact;
            assert!(off.abs() < 0.51, "{arrival:?} at {rate}/s: {off} ns off");
        }
    }
}

fn lengths(length: &Length, seed: u64) -> Vec<u32> {
    let dice = |index| Dice::new(seed, Purpose::OutputLength, mix(0, index));
    (0..DRAWS).map(|index| length.sample(&mut dice(index))).collect()
}

#[track_caller]
fn check_lengths(length: &Length, most: u32, cdf: impl Fn(u32) -> f64) {
    // Mean and variance come from the same exact function: sums over P(X >= k).
    let (mut mean, mut square) = (0.0, 0.0);
    for k in 1..=most {
        let at_least = 1.0 - cdf(k - 1);
        mean += at_least;
        square += (2.0 * f64::from(k) - 1.0) * at_least;
    }
    let cv = (square - mean * mean).sqrt() / mean;
    let mut all = Vec::new();
    for seed in 0..SEEDS {
        let mut sample = lengths(length, seed);
        all.extend(sample.iter().copied().map(f64::from));
        let found = discrete_distance(&mut sample, &cdf);
        assert!(found < critical_distance(DRAWS), "{length:?}, seed {seed}: distance {found}");
    }
    let (found_mean, found_cv) = moments(&all);
    let standard_error = cv * mean / float(all.len() as u64).sqrt();
    assert!((found_mean - mean).abs() < 4.5 * standard_error, "{length:?}: mean {found_mean}");
    assert!((found_cv / cv - 1.0).abs() < 0.02, "{length:?}: CV {found_cv}, exact {cv}");
    if let Some(stated) = length.mean() {
        assert!((stated / mean - 1.0).abs() < 1e-6, "{length:?}: states {stated}, exact {mean}");
    }
}

/// The distribution function of a rounded and clamped variable.
fn rounded(min: u32, max: u32, cdf: impl Fn(f64) -> f64) -> impl Fn(u32) -> f64 {
    move |k| {
        if k < min {
            0.0
        } else if k >= max {
            1.0
        } else {
            cdf(f64::from(k) + 0.5)
        }
    }
}

#[test]
fn gaussian_lengths_are_normal_rounded_and_clamped() {
    for (mean, std_dev, min, max) in
        [(256.0, 100.0, 2, 7_000), (20.0, 30.0, 5, 60), (4.3, 0.8, 1, 9)]
    {
        let length = Length::Gaussian { mean, std_dev, min, max };
        let cdf = rounded(min, max, |x| normal_cdf((x - mean) / std_dev));
        check_lengths(&length, max.min(1_200), cdf);
    }
}

#[test]
fn lognormal_lengths_are_lognormal_rounded_and_clamped() {
    let (mu, sigma) = (4.0, 0.7);
    let cdf = |x: f64| normal_cdf((ln(x) - mu) / sigma);
    for (min, max) in [(1, 4_000), (30, 100)] {
        let length = Length::Lognormal { mu, sigma, min, max };
        check_lengths(&length, max, rounded(min, max, cdf));
    }
}

#[test]
fn pareto_lognormal_lengths_have_a_pareto_tail_of_their_share() {
    let (alpha, xm, mu, sigma, mix_weight) = (4.0, 50.0, 4.0, 0.5, 0.3);
    let length = Length::ParetoLognormal { alpha, xm, mu, sigma, mix_weight };
    let pareto = |x: f64| if x < xm { 0.0 } else { 1.0 - pow(xm / x, alpha) };
    let lognormal = |x: f64| normal_cdf((ln(x) - mu) / sigma);
    let cdf = |x: f64| mix_weight * pareto(x) + (1.0 - mix_weight) * lognormal(x);
    check_lengths(&length, 20_000, rounded(1, 1 << 30, cdf));
}

#[test]
fn empirical_lengths_come_as_often_as_they_weigh() {
    let bins = [(500, 3.0), (100, 5.0), (7, 0.0), (1_000, 2.0)];
    let length = Length::Empirical(Empirical::new(bins).expect("legal"));
    let cdf = |k: u32| match k {
        0..100 => 0.0,
        100..500 => 0.5,
        500..1_000 => 0.8,
        _ => 1.0,
    };
    check_lengths(&length, 1_000, cdf);
    let refused = |bins: &[(u32, f64)]| {
        Empirical::new(bins.iter().copied()).expect_err("must be refused").to_string()
    };
    assert!(refused(&[]).contains("at least one length"));
    assert!(refused(&[(5, 0.0)]).contains("at least one length"));
    assert!(refused(&[(5, 1.0), (5, 2.0)]).contains("one a length"));
    assert!(refused(&[(0, 1.0)]).contains("a whole number from 1"));
    assert!(refused(&[(5, -1.0)]).contains("a number from 0"));
}

#[test]
fn exponential_lengths_are_exponential_rounded_and_clamped() {
    for (mean, min, max) in [(128.0, 1, 1 << 30), (128.0, 16, 300), (1.5, 1, 1_000)] {
        let length = Length::Exponential { mean, min, max };
        check_lengths(&length, 6_000, rounded(min, max, |x| 1.0 - exp(-x / mean)));
    }
}

#[test]
fn geometric_lengths_are_exactly_geometric() {
    for mean in [1.25, 4.0, 128.0] {
        let go_on = 1.0 - 1.0 / mean;
        let cdf = |k: u32| 1.0 - pow(go_on, f64::from(k));
        check_lengths(&Length::Geometric { mean }, 6_000, cdf);
    }
}

#[test]
fn poisson_clients_together_are_a_poisson_process_of_the_whole_rate() {
    for clients in [5, 40] {
        for seed in 0..SEEDS {
            let mut source = super::mix::poisson_clients(clients, 1_000.0, seed).source();
            let mut last = Time::ZERO;
            let mut sample = Vec::new();
            for _ in 0..DRAWS {
                let arrival = source.next_request().unwrap().expect("enough requests").arrival;
                sample.push(arrival.since(last).as_secs_f64() * 1_000.0);
                last = arrival;
            }
            let found = distance(&mut sample, |x| 1.0 - exp(-x));
            assert!(found < critical_distance(DRAWS), "{clients} clients, seed {seed}: {found}");
        }
    }
}
