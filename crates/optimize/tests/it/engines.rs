//! Promises that hold for every engine.

use crate::standard::by_name;
use crate::{measure, search};
use blis_core::Value;
use blis_core::math::ln;
use blis_optimize::{
    Bayes, Dimension, Grid, Kind, Measured, Observation, Optimizer, Point, Problem, Quasi, Random,
    Settings, Several, Space, TellError, evolution, recommend,
};

fn engines(problem: &Problem, seed: u64) -> Vec<(&'static str, Box<dyn Optimizer>)> {
    let p = || problem.clone();
    let mut settings = Settings::new(seed);
    settings.initial = 5;
    let mut weighted = settings.clone();
    weighted.several = Several::Weighted;
    vec![
        ("bayes", Box::new(Bayes::new(p(), settings))),
        ("weighted", Box::new(Bayes::new(p(), weighted))),
        ("nsga2", evolution(p(), seed, 6)),
        ("quasi", Box::new(Quasi::new(p(), seed))),
        ("random", Box::new(Random::new(p(), seed))),
        ("grid", Box::new(Grid::new(p(), 4))),
    ]
}

fn words(all: &[&str]) -> Kind {
    Kind::Choice { options: all.iter().map(|&word| Value::Word(word.to_owned())).collect() }
}

/// Two policies, each with a parameter of its own.
fn conditional() -> Problem {
    let space = Space::new(vec![
        Dimension::new("policy", words(&["fixed", "tuned"])),
        Dimension::new("level", Kind::Int { min: 1, max: 4 }).under(0, 0),
        Dimension::new("gain", Kind::Log { min: 0.01, max: 10.0 }).under(0, 1),
        Dimension::new("rate", Kind::Float { min: 0.0, max: 1.0 }),
    ]);
    Problem { space: space.expect("a legal space"), objectives: 1, constraints: 0 }
}

fn conditional_cost(point: &Point) -> f64 {
    let number = |index: usize| match point.values[index] {
        Some(Value::Float(x)) => x,
        Some(Value::Int(n)) => f64::from(u8::try_from(n).expect("small")),
        _ => f64::NAN,
    };
    let rate = number(3) - 0.3;
    let own = match &point.values[0] {
        Some(Value::Word(word)) if word == "fixed" => 0.6 + 0.1 * number(1),
        _ => 0.2 * ln(number(2) / 0.5) * ln(number(2) / 0.5),
    };
    own + rate * rate
}

#[test]
fn the_same_seed_and_tells_give_the_same_asks_and_another_seed_does_not() {
    for name in ["serving6n", "gardner", "serving2"] {
        let standard = by_name(name).expect("a standard problem");
        let problem = standard.problem();
        let run = |seed: u64| -> Vec<(&'static str, Vec<Point>)> {
            let all = engines(&problem, seed).into_iter();
            all.map(|(engine, mut optimizer)| {
                search(&mut *optimizer, standard, (1, 12, 3));
                (engine, optimizer.ask(2))
            })
            .collect()
        };
        let (one, same, other) = (run(1), run(1), run(2));
        for (index, (engine, points)) in one.iter().enumerate() {
            assert_eq!(points.len(), 2, "{name} {engine}");
            assert_eq!(*points, same[index].1, "{name} {engine}");
            assert!(*engine == "grid" || *points != other[index].1, "{name} {engine}");
        }
    }
}

#[test]
fn a_search_is_resumed_by_telling_everything_again() {
    for name in ["serving6n", "gardner", "serving2"] {
        let standard = by_name(name).expect("a standard problem");
        let problem = standard.problem();
        let fresh = engines(&problem, 7);
        for ((engine, mut first), (_, mut second)) in engines(&problem, 7).into_iter().zip(fresh) {
            search(&mut *first, standard, (3, 14, 4));
            for observation in first.history().observations().to_vec() {
                second.tell(observation).expect("a point of the problem");
            }
            assert_eq!(first.ask(3), second.ask(3), "{name} {engine}");
        }
    }
}

#[test]
fn no_point_is_proposed_twice_and_a_small_space_is_exhausted() {
    let space = Space::new(vec![
        Dimension::new("n", Kind::Int { min: 2, max: 6 }),
        Dimension::new("policy", words(&["a", "b"])),
        Dimension::new("depth", Kind::Int { min: 1, max: 3 }).under(1, 1),
    ])
    .expect("a legal space");
    assert_eq!(space.size(1000), Some(20));
    let problem = Problem { space, objectives: 1, constraints: 0 };
    for (engine, mut optimizer) in engines(&problem, 5) {
        let mut seen: Vec<Point> = Vec::new();
        loop {
            let points = optimizer.ask(3);
            if points.is_empty() {
                break;
            }
            for point in points {
                assert!(!seen.contains(&point), "{engine} proposed {point} again");
                seen.push(point.clone());
                let cost = Measured::noisy(f64::from(u8::try_from(seen.len() % 5).expect("small")));
                optimizer.tell(Observation::of(point, cost)).expect("a point of the problem");
            }
        }
        // Four steps of `n` are on the grid, with four combinations each.
        let expected = if engine == "grid" { 16 } else { 20 };
        assert_eq!(seen.len(), expected, "{engine}");
    }
}

#[test]
fn asking_again_before_telling_gives_other_points() {
    let standard = by_name("branin").expect("a standard problem");
    for (engine, mut optimizer) in engines(&standard.problem(), 4) {
        search(&mut *optimizer, standard, (4, 6, 1));
        let mut points = optimizer.ask(1);
        points.extend(optimizer.ask(1));
        points.extend(optimizer.ask(1));
        for (i, point) in points.iter().enumerate() {
            assert!(!points[..i].contains(point), "{engine} proposed {point} again");
        }
        // They may come back in any order.
        for (i, point) in points.into_iter().rev().enumerate() {
            optimizer.tell(measure(standard, point, 4, 6 + i)).expect("a point of the problem");
        }
        assert_eq!(optimizer.history().observations().len(), 9, "{engine}");
    }
}

#[test]
fn parameters_exist_only_under_their_choice() {
    let problem = conditional();
    for (engine, mut optimizer) in engines(&problem, 2) {
        let mut tuned = 0;
        while optimizer.history().observations().len() < 30 {
            let Some(point) = optimizer.ask(1).pop() else { break };
            let fixed = point.values[0] == Some(Value::Word("fixed".to_owned()));
            assert_eq!(point.values[1].is_some(), fixed, "{engine}: {point}");
            assert_eq!(point.values[2].is_none(), fixed, "{engine}: {point}");
            tuned += usize::from(!fixed);
            let cost = Measured::exact(conditional_cost(&point));
            optimizer.tell(Observation::of(point, cost)).expect("a point of the problem");
        }
        assert!(tuned > 1, "{engine} tried the other policy {tuned} times");
    }
}

#[test]
fn the_better_policy_is_found_from_every_seed() {
    for seed in 0..20 {
        let mut engine = Bayes::new(conditional(), Settings::new(seed));
        for _ in 0..30 {
            let point = engine.ask(1).pop().expect("there are more points");
            let cost = Measured::exact(conditional_cost(&point));
            engine.tell(Observation::of(point, cost)).expect("a point of the problem");
        }
        let best = recommend(engine.history(), 0).expect("something was told");
        let best = &engine.history().observations()[best].point;
        let cost = conditional_cost(best);
        assert!(cost < 0.02, "seed {seed}: {best}: {cost}");
    }
}

#[test]
fn a_start_is_measured_first() {
    let problem = conditional();
    let start = problem.space.point(&[0.9, 0.5, 0.5, 0.5]);
    let mut settings = Settings::new(1);
    settings.start = vec![start.clone()];
    let mut engine = Bayes::new(problem, settings);
    assert_eq!(engine.ask(3)[0], start);
}

#[test]
fn a_measurement_that_failed_is_as_bad_as_the_worst_and_is_not_recommended() {
    let standard = by_name("branin").expect("a standard problem");
    for (engine, mut optimizer) in engines(&standard.problem(), 3) {
        for call in 0..16 {
            let Some(point) = optimizer.ask(1).pop() else { break };
            let mut observation = measure(standard, point, 3, call);
            if call % 4 == 1 {
                observation.objectives[0].mean = [f64::NAN, f64::INFINITY][call / 4 % 2];
            }
            optimizer.tell(observation).expect("a point of the problem");
        }
        let best = recommend(optimizer.history(), 0).expect("something was told");
        assert_ne!(best % 4, 1, "{engine}");
    }
}

#[test]
fn observations_that_do_not_fit_the_problem_are_refused() {
    let standard = by_name("gardner").expect("a standard problem");
    for (engine, mut optimizer) in engines(&standard.problem(), 3) {
        let point = optimizer.ask(1).pop().expect("a point");
        let good = measure(standard, point, 0, 0);
        let mut lacking = good.clone();
        lacking.constraints.clear();
        let refused = optimizer.tell(lacking).expect_err("must be refused");
        assert!(refused.to_string().contains("1 constraints, but 0 were told"), "{engine}");
        let mut wild = good.clone();
        wild.objectives[0].variance = Some(-1.0);
        assert_eq!(optimizer.tell(wild), Err(TellError::Variance(-1.0)), "{engine}");
        let mut outside = good.clone();
        outside.point.values[0] = Some(Value::Float(7.0));
        let refused = optimizer.tell(outside).expect_err("must be refused");
        assert!(refused.to_string().contains("a number from 0 to 6"), "{engine}");
        assert_eq!(optimizer.history().observations().len(), 0, "{engine}");
        optimizer.tell(good).expect("legal");
    }
}
