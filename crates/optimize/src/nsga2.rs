//! NSGA-II: a population that evolves, for thousands of cheap measurements.
//!
//! After each generation the better half of parents and children survives: feasible before
//! infeasible, less violation before more, then by front, then by distance to the neighbours. As
//! everywhere, what is proposed follows from what was told and from the seed.

use crate::Optimizer;
use crate::history::{History, Observation, Problem, TellError};
use crate::kind::{Kind, middle_of};
use crate::pareto::{crowding, dominates, ranks};
use crate::search::unknown_place;
use crate::sobol::Sobol;
use crate::space::Point;
use blis_core::Dice;
use blis_core::math::{float, pow};
use blis_core::random::Purpose;

/// An engine with a population of `population`, at least four.
///
/// # Panics
/// If the population is smaller.
pub fn evolution(problem: Problem, seed: u64, population: usize) -> Box<dyn Optimizer> {
    assert!(population >= 4, "a population has at least four members");
    let history = History::new(problem);
    Box::new(Nsga2 { history, seed, population, survivors: Vec::new(), counted: 0 })
}

/// An evolving population.
#[derive(Clone, Debug)]
struct Nsga2 {
    history: History,
    seed: u64,
    population: usize,
    /// Members of the current generation, by their index among the observations.
    survivors: Vec<Member>,
    /// How many observations the survivors were chosen from.
    counted: usize,
}

/// A survivor, with what selection needs.
#[derive(Clone, Debug)]
struct Member {
    unit: Vec<f64>,
    objectives: Vec<f64>,
    violation: f64,
    rank: usize,
    distance: f64,
}

/// Spread of children around parents: larger is closer.
const CROSSOVER_INDEX: f64 = 15.0;
const MUTATION_INDEX: f64 = 20.0;

/// Share of couples that exchange anything.
const CROSSOVER: f64 = 0.9;

impl Nsga2 {
    /// The next generation, once as many were told as the population has members.
    fn advance(&mut self) {
        let observations = self.history.observations();
        if observations.len() - self.counted < self.population {
            return;
        }
        let mut members = std::mem::take(&mut self.survivors);
        for (index, observation) in observations.iter().enumerate().skip(self.counted) {
            members.push(member(observation, &self.history.units()[index]));
        }
        self.counted = observations.len();
        self.survivors = select(members, self.population);
    }

    fn child(&self, dice: &mut Dice) -> Vec<f64> {
        let (mother, father) = (self.parent(dice), self.parent(dice));
        let space = &self.history.problem().space;
        let mix = dice.unit() < CROSSOVER;
        let mutation = 1.0 / float(space.len() as u64);
        let mut child = mother.unit.clone();
        for (j, dimension) in space.dimensions().iter().enumerate() {
            let other = father.unit[j];
            let mixed = mix && dice.unit() < 0.5;
            let mutated = dice.unit() < mutation;
            child[j] = if let Kind::Choice { options } = &dimension.kind {
                let inherited = if mixed { other } else { child[j] };
                // An option that neither parent has is below 0.
                if mutated || inherited < 0.0 {
                    middle_of(dice.below(options.len()), options.len())
                } else {
                    inherited
                }
            } else {
                let inherited = if mixed { crossed(child[j], other, dice) } else { child[j] };
                if mutated { mutant(inherited, dice) } else { inherited }
            };
        }
        space.snap(&mut child);
        child
    }

    /// The better of two members taken at random.
    fn parent(&self, dice: &mut Dice) -> &Member {
        let a = &self.survivors[dice.below(self.survivors.len())];
        let b = &self.survivors[dice.below(self.survivors.len())];
        let a_wins = a.rank < b.rank || (a.rank == b.rank && a.distance >= b.distance);
        if a_wins { a } else { b }
    }

    fn propose(&self) -> Option<Vec<f64>> {
        let key = self.history.known() as u64;
        let mut dice = Dice::new(self.seed, Purpose::Search, key);
        let space = &self.history.problem().space;
        for _ in 0..20 {
            let unit = if self.survivors.is_empty() {
                let mut unit = Sobol::new(space.len(), self.seed).point(key);
                space.snap(&mut unit);
                unit
            } else {
                self.child(&mut dice)
            };
            if !self.history.is_known(&unit) {
                return Some(unit);
            }
        }
        unknown_place(space, |unit| self.history.is_known(unit), &mut dice)
    }
}

impl Optimizer for Nsga2 {
    fn history(&self) -> &History {
        &self.history
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        let mut points = Vec::new();
        while points.len() < count {
            let Some(unit) = self.propose() else { break };
            points.push(self.history.expect(&unit));
        }
        points
    }

    fn tell(&mut self, observation: Observation) -> Result<(), TellError> {
        self.history.tell(observation)?;
        self.advance();
        Ok(())
    }
}

fn member(observation: &Observation, unit: &[f64]) -> Member {
    let bad = |x: f64| if x.is_nan() { f64::INFINITY } else { x };
    Member {
        unit: unit.to_vec(),
        objectives: observation.objectives.iter().map(|m| bad(m.mean)).collect(),
        violation: observation.constraints.iter().map(|m| bad(m.mean).max(0.0)).sum(),
        rank: 0,
        distance: 0.0,
    }
}

/// The `count` best members, with their ranks and distances.
fn select(mut members: Vec<Member>, count: usize) -> Vec<Member> {
    let rank = ranks(members.len(), |a, b| better(&members[a], &members[b]));
    let layers = rank.iter().copied().max().map_or(0, |last| last + 1);
    for layer in 0..layers {
        let of: Vec<usize> = (0..members.len()).filter(|&i| rank[i] == layer).collect();
        let points: Vec<&[f64]> = of.iter().map(|&i| members[i].objectives.as_slice()).collect();
        let distance = crowding(&points);
        for (&i, distance) in of.iter().zip(distance) {
            members[i].rank = layer;
            members[i].distance = if distance.is_nan() { 0.0 } else { distance };
        }
    }
    // Stable: of equals the older stays.
    members.sort_by(|a, b| a.rank.cmp(&b.rank).then(b.distance.total_cmp(&a.distance)));
    members.truncate(count);
    members
}

/// Dominance under constraints: the less violation the better, then by objectives.
fn better(a: &Member, b: &Member) -> bool {
    if a.violation > 0.0 || b.violation > 0.0 {
        return a.violation < b.violation;
    }
    dominates(&a.objectives, &b.objectives)
}

/// Simulated binary crossover of two coordinates; one child.
fn crossed(a: f64, b: f64, dice: &mut Dice) -> f64 {
    let u = dice.unit();
    let power = 1.0 / (CROSSOVER_INDEX + 1.0);
    let beta = if u < 0.5 { pow(2.0 * u, power) } else { pow(0.5 / (1.0 - u), power) };
    let sign = if dice.unit() < 0.5 { 1.0 } else { -1.0 };
    (0.5 * ((a + b) + sign * beta * (a - b))).clamp(0.0, 1.0)
}

/// Polynomial mutation of a coordinate.
fn mutant(x: f64, dice: &mut Dice) -> f64 {
    let u = dice.unit();
    let power = 1.0 / (MUTATION_INDEX + 1.0);
    let step = if u < 0.5 { pow(2.0 * u, power) - 1.0 } else { 1.0 - pow(2.0 - 2.0 * u, power) };
    (x + step).clamp(0.0, 1.0)
}
