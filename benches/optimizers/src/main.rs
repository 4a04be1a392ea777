//! Runs optimisers on standard problems, and judges what they and others measured.
//!
//! ```text
//! optimizers run METHOD PROBLEM CALLS FIRST_SEED SEEDS    measurements as CSV
//! optimizers serve PROBLEM SEED                           measures points read from standard input
//! optimizers judge [FILE...]                              regrets of measurements, as CSV
//! optimizers cost CALLS                                   milliseconds of one proposal
//! ```
//!
//! A measurement is `method,problem,seed,call,point,measured,truth`, with blanks inside the last
//! three. The noise of a call depends on the problem, the seed and the call only, so that all
//! methods meet the same luck.

use blis_core::Value;
use blis_core::random::{Dice, Purpose};
use blis_optimize::{
    Bayes, Kind, Measured, Observation, Optimizer, Point, Problem, Quasi, Random, Settings,
};
use standard::Standard;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::Instant;

#[cfg(feature = "egobox")]
mod ego;
mod judge;
#[path = "../../../crates/optimize/tests/it/standard.rs"]
mod standard;

/// How many points every method spreads before it learns.
const INITIAL: usize = 10;

/// A problem under one seed.
struct Bench {
    standard: &'static Standard,
    problem: Problem,
    seed: u64,
    calls: u64,
}

/// What one call gave.
struct Call {
    measured: Vec<f64>,
    truth: Vec<f64>,
}

impl Bench {
    fn new(name: &str, seed: u64) -> Bench {
        let standard = standard::by_name(name).unwrap_or_else(|| panic!("no problem `{name}`"));
        Bench { standard, problem: standard.problem(), seed, calls: 0 }
    }

    fn call(&mut self, point: &Point) -> Call {
        let truth = self.standard.truth(point);
        let mut dice = Dice::new(self.seed, Purpose::Sampling, self.calls);
        self.calls += 1;
        let measured = truth.iter().map(|y| y + self.standard.noise * dice.normal()).collect();
        Call { measured, truth }
    }

    /// What an optimiser is told: noise of unknown size, except that constraints are exact.
    fn observation(&self, point: Point, measured: &[f64]) -> Observation {
        let (objectives, constraints) = measured.split_at(self.problem.objectives);
        Observation {
            point,
            objectives: objectives.iter().map(|&y| Measured::noisy(y)).collect(),
            constraints: constraints.iter().map(|&y| Measured::exact(y)).collect(),
        }
    }
}

fn join(numbers: &[f64]) -> String {
    numbers.iter().map(|x| format!("{x:.17e}")).collect::<Vec<_>>().join(" ")
}

/// A point from words, one a dimension.
fn parse_point(problem: &Problem, text: &str) -> Point {
    let words = text.split_whitespace();
    let values = problem.space.dimensions().iter().zip(words).map(|(dimension, word)| {
        let number = || word.parse::<f64>().unwrap_or_else(|_| panic!("not a number: `{word}`"));
        Some(match &dimension.kind {
            Kind::Float { min, max } | Kind::Log { min, max } => {
                Value::Float(number().clamp(*min, *max))
            }
            Kind::Int { .. } => Value::Int(number().round() as u64),
            Kind::Choice { .. } => Value::Word(word.to_owned()),
        })
    });
    Point { values: values.collect() }
}

fn engine(method: &str, problem: Problem, seed: u64) -> Box<dyn Optimizer> {
    match method {
        "random" => Box::new(Random::new(problem, seed)),
        "sobol" => Box::new(Quasi::new(problem, seed)),
        "blis" => {
            let settings = Settings { initial: INITIAL, ..Settings::new(seed) };
            Box::new(Bayes::new(problem, settings))
        }
        other => panic!("no method `{other}`"),
    }
}

fn run(out: &mut impl Write, method: &str, name: &str, calls: usize, seed: u64) {
    let mut bench = Bench::new(name, seed);
    #[cfg(feature = "egobox")]
    if method.starts_with("egobox") {
        return ego::run(out, method, bench, calls);
    }
    let mut engine = engine(method, bench.problem.clone(), seed);
    for call in 0..calls {
        let point = engine.ask(1).pop().expect("the space has another point");
        let Call { measured, truth } = bench.call(&point);
        report(out, (method, name, seed, call), &point.to_string(), &measured, &truth);
        let observation = bench.observation(point, &measured);
        engine.tell(observation).expect("a point of the problem");
    }
}

fn report(
    out: &mut impl Write,
    (method, name, seed, call): (&str, &str, u64, usize),
    point: &str,
    measured: &[f64],
    truth: &[f64],
) {
    let (measured, truth) = (join(measured), join(truth));
    writeln!(out, "{method},{name},{seed},{call},{point},{measured},{truth}").expect("written");
}

/// Measures each line of standard input; other programs talk to this.
fn serve(out: &mut impl Write, name: &str, seed: u64) {
    let mut bench = Bench::new(name, seed);
    for line in std::io::stdin().lock().lines() {
        let point = parse_point(&bench.problem, &line.expect("a line"));
        let Call { measured, truth } = bench.call(&point);
        writeln!(out, "{point},{},{}", join(&measured), join(&truth)).expect("written");
        out.flush().expect("written");
    }
}

/// Milliseconds of the last proposals of a search on Hartmann's function.
fn cost(out: &mut impl Write, calls: usize) {
    for name in ["hartmann6", "serving6n", "g4", "zdt1"] {
        let mut times = Vec::new();
        for seed in 0..5 {
            let mut bench = Bench::new(name, seed);
            let mut engine = engine("blis", bench.problem.clone(), seed);
            for call in 0..calls + 5 {
                let start = Instant::now();
                let point = engine.ask(1).pop().expect("a point");
                if call >= calls {
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
                let measured = bench.call(&point).measured;
                engine.tell(bench.observation(point, &measured)).expect("a point of the problem");
            }
        }
        times.sort_by(f64::total_cmp);
        writeln!(out, "{name},{calls},{:.2}", times[times.len() / 2]).expect("written");
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("no number: `{word}`"));
    let mut out = std::io::stdout().lock();
    match words[..] {
        ["run", method, name, calls, first, seeds] => {
            for seed in number(first)..number(first) + number(seeds) {
                run(&mut out, method, name, number(calls) as usize, seed);
            }
        }
        ["serve", name, seed] => serve(&mut out, name, number(seed)),
        ["judge", ref files @ ..] => judge::judge(&mut out, files),
        ["cost", calls] => cost(&mut out, number(calls) as usize),
        _ => {
            eprintln!("usage: optimizers run|serve|judge|cost, see the head of src/main.rs");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
