//! How well the engines search: with slack, so that only a broken engine fails.

use crate::search;
use crate::standard::{Standard, by_name};
use blis_optimize::{
    Bayes, Optimizer, Random, Settings, Several, evolution, pareto, recommend, sensitivity,
};

const SEEDS: u64 = 5;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Median regret of what is recommended after `calls`.
fn regret(
    standard: &Standard,
    (calls, batch): (usize, usize),
    engine: impl Fn(u64) -> Box<dyn Optimizer>,
) -> f64 {
    let of_seed = |seed: u64| {
        let mut engine = engine(seed);
        search(&mut *engine, standard, (seed, calls, batch));
        let best = recommend(engine.history(), 0).expect("something was told");
        let truth = standard.truth(&engine.history().observations()[best].point);
        let feasible = truth[1..].iter().all(|&c| c <= 0.0);
        if feasible { truth[0] - standard.best[0] } else { f64::INFINITY }
    };
    median((0..SEEDS).map(of_seed).collect())
}

fn bayes(standard: &Standard) -> impl Fn(u64) -> Box<dyn Optimizer> {
    let problem = standard.problem();
    move |seed| Box::new(Bayes::new(problem.clone(), Settings::new(seed)))
}

fn random(standard: &Standard) -> impl Fn(u64) -> Box<dyn Optimizer> {
    let problem = standard.problem();
    move |seed| Box::new(Random::new(problem.clone(), seed))
}

#[test]
fn bayes_beats_chance_by_far_on_one_objective() {
    for (name, calls, factor) in
        [("branin", 30, 0.1), ("hartmann6", 40, 0.7), ("ackley5m", 40, 0.8), ("serving6n", 40, 0.8)]
    {
        let standard = by_name(name).expect("a standard problem");
        let guided = regret(standard, (calls, 1), bayes(standard));
        let chance = regret(standard, (calls, 1), random(standard));
        assert!(guided < factor * chance, "{name}: {guided}, by chance {chance}");
    }
}

#[test]
fn batches_of_four_still_beat_chance() {
    let standard = by_name("branin").expect("a standard problem");
    let guided = regret(standard, (34, 4), bayes(standard));
    let chance = regret(standard, (34, 4), random(standard));
    assert!(guided < 0.3 * chance, "{guided}, by chance {chance}");
}

#[test]
fn constraints_are_met_and_the_best_feasible_value_is_approached() {
    for name in ["gardner", "g4"] {
        let standard = by_name(name).expect("a standard problem");
        let guided = regret(standard, (30, 1), bayes(standard));
        let chance = regret(standard, (30, 1), random(standard));
        assert!(guided < 0.3 * chance, "{name}: {guided}, by chance {chance}");
    }
}

/// Median hypervolume of what was measured after `calls`.
fn volume(standard: &Standard, calls: usize, engine: impl Fn(u64) -> Box<dyn Optimizer>) -> f64 {
    let of_seed = |seed: u64| {
        let mut engine = engine(seed);
        search(&mut *engine, standard, (seed, calls, 1));
        let observations = engine.history().observations().iter();
        let points: Vec<Vec<f64>> =
            observations.map(|o| o.objectives.iter().map(|m| m.mean).collect()).collect();
        pareto::hypervolume(&points, standard.best)
    };
    median((0..3).map(of_seed).collect())
}

#[test]
fn fronts_grow_beyond_those_of_chance() {
    for name in ["zdt1", "serving2"] {
        let standard = by_name(name).expect("a standard problem");
        let chance = volume(standard, 40, random(standard));
        let area = volume(standard, 40, bayes(standard));
        let problem = standard.problem();
        let weighted = volume(standard, 40, |seed| {
            let settings = Settings { several: Several::Weighted, ..Settings::new(seed) };
            Box::new(Bayes::new(problem.clone(), settings))
        });
        assert!(area > chance && weighted > chance, "{name}: {area} {weighted} {chance}");
    }
}

#[test]
fn a_population_beats_chance_after_hundreds_of_measurements() {
    let standard = by_name("zdt1").expect("a standard problem");
    let problem = standard.problem();
    let evolved = volume(standard, 400, |seed| evolution(problem.clone(), seed, 20));
    let chance = volume(standard, 400, random(standard));
    // What chance leaves of the ideal volume, evolution at least halves.
    let ideal = 1.1 * 11.0 - 1.0 / 3.0;
    assert!(ideal - evolved < 0.5 * (ideal - chance), "{evolved}, by chance {chance} of {ideal}");
    let constrained = by_name("gardner").expect("a standard problem");
    let problem = constrained.problem();
    let evolved = regret(constrained, (200, 1), |seed| evolution(problem.clone(), seed, 20));
    assert!(evolved < 0.1, "{evolved}");
}

#[test]
fn a_search_tells_which_parameters_matter() {
    let standard = by_name("serving6n").expect("a standard problem");
    let mut engine = bayes(standard)(1);
    search(&mut *engine, standard, (1, 60, 1));
    let found = sensitivity(engine.history(), 0).expect("enough was told");
    let of = |name: &str| {
        let influence = found.dimensions.iter().find(|d| d.name == name).expect("a dimension");
        influence.total.value
    };
    assert!(of("batch") > of("order"), "{found:?}");
    assert!(of("weight") > of("order"), "{found:?}");
}
