//! Bayesian optimisation: measure where a model of all that was told promises most.
//!
//! The first points fill the space evenly. Then each proposal is the place of the greatest expected
//! improvement that is likely to meet the constraints; while nothing is known to meet them, the
//! place most likely to. Further points of a batch are proposed as if the earlier ones had turned
//! out as expected.

use crate::Optimizer;
use crate::acquire::{Acquisition, Front, Goal};
use crate::history::{History, Observation, Problem, TellError};
use crate::model::{Model, Role, Samples};
use crate::pareto;
use crate::search::{Effort, Search, unknown_place};
use crate::sobol::Sobol;
use crate::space::Point;
use crate::warp::quantile;
use blis_core::Dice;
use blis_core::random::Purpose;

/// How a [`Bayes`] engine searches.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Seed of everything random.
    pub seed: u64,
    /// How many points fill the space before a model is trusted.
    pub initial: usize,
    /// Points to measure first, such as what is deployed today.
    pub start: Vec<Point>,
    /// How several objectives become one promise.
    pub several: Several,
}

/// What is promised when there are several objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// Growth of the dominated area for two objectives, and `Weighted` for more.
    Area,
    /// Improvement of the objectives under random weights, new ones for each proposal (`ParEGO`).
    Weighted,
}

/// A Bayesian optimiser.
#[derive(Clone, Debug)]
pub struct Bayes {
    history: History,
    settings: Settings,
}

/// How much of its deviation a model of one objective gets credit for. With all of it, a search of
/// 30 to 50 calls spends most of them where little is known; with half, exact functions are
/// followed further down, and noisy ones as far (decision 13). Weighted objectives get all of it: a
/// front wants width.
const DOUBT: f64 = 0.5;

const EFFORT: Effort = Effort { spread: 512, around: 24, climbs: 6 };

/// How many of the best known points are searched around.
const INCUMBENTS: usize = 4;

/// Weight of the sum beside the maximum, as `ParEGO` has it.
const AUGMENT: f64 = 0.05;

impl Settings {
    /// The usual settings: ten initial points, the area for two objectives.
    pub fn new(seed: u64) -> Settings {
        Settings { seed, initial: 10, start: Vec::new(), several: Several::Area }
    }
}

impl Bayes {
    /// An engine that knows nothing yet.
    pub fn new(problem: Problem, settings: Settings) -> Bayes {
        Bayes { history: History::new(problem), settings }
    }

    /// Initial points that are neither told nor out yet, at most `count`.
    fn initial(&self, count: usize) -> Vec<Vec<f64>> {
        let space = &self.history.problem().space;
        let mut units: Vec<Vec<f64>> =
            self.settings.start.iter().filter_map(|point| space.unit(point).ok()).collect();
        let sobol = Sobol::new(space.len(), self.settings.seed);
        let wanted = self.settings.initial.max(units.len());
        let mut index = 0;
        // A small space repeats itself: a few rounds find what there is.
        while units.len() < wanted && index < 8 * wanted as u64 {
            let mut unit = sobol.point(index);
            space.snap(&mut unit);
            if !units.iter().any(|known| crate::history::near(known, &unit)) {
                units.push(unit);
            }
            index += 1;
        }
        let missing = wanted.saturating_sub(self.history.known());
        units.retain(|unit| !self.history.is_known(unit));
        units.truncate(missing.min(count));
        units
    }

    fn guided(&self, count: usize) -> Vec<Vec<f64>> {
        let key = self.history.known() as u64;
        let mut dice = Dice::new(self.settings.seed, Purpose::Search, key);
        let space = &self.history.problem().space;
        let mut known: Vec<Vec<f64>> =
            self.history.units().iter().chain(self.history.pending()).cloned().collect();
        let mut proposals = Vec::new();
        let mut acquisition: Option<Acquisition> = None;
        for index in 0..count {
            let fresh = acquisition.is_none() || self.weighs();
            let mut current = if fresh {
                self.acquisition(&mut dice)
            } else {
                acquisition.take().expect("made for an earlier proposal")
            };
            if fresh {
                let out = &known[self.history.units().len()..];
                for unit in out {
                    current = current.believing(unit);
                }
            }
            let search = Search {
                space,
                known: known.clone(),
                incumbents: self.incumbents(&current),
                effort: EFFORT,
                seed: blis_core::random::mix(self.settings.seed, key + index as u64),
            };
            let found = search.best(&current, &mut dice);
            let is_known = |unit: &[f64]| known.iter().any(|k| crate::history::near(k, unit));
            let Some(unit) = found.or_else(|| unknown_place(space, is_known, &mut dice)) else {
                break;
            };
            acquisition = (!self.weighs()).then(|| current.believing(&unit));
            known.push(unit.clone());
            proposals.push(unit);
        }
        proposals
    }

    /// Whether objectives are weighted anew for each proposal.
    fn weighs(&self) -> bool {
        let objectives = self.history.problem().objectives;
        objectives > 2 || (objectives == 2 && self.settings.several == Several::Weighted)
    }

    fn acquisition(&self, dice: &mut Dice) -> Acquisition {
        let problem = self.history.problem();
        let choices = problem.space.choices();
        let inputs = self.history.inputs();
        let fit = |samples: &Samples, role: Role| Model::fit(&choices, &inputs, samples, role);
        let constraints: Vec<Model> = (0..problem.constraints)
            .map(|k| fit(&self.history.constraint(k), Role::Constraint))
            .collect();
        let feasible: Vec<usize> = (0..self.history.observations().len())
            .filter(|&i| self.history.observations()[i].is_feasible())
            .collect();
        if feasible.is_empty() {
            return Acquisition { objectives: Vec::new(), constraints, goal: Goal::Feasible };
        }
        if problem.objectives == 1 || self.weighs() {
            let samples = if problem.objectives == 1 {
                self.history.objective(0)
            } else {
                self.weighted(dice)
            };
            let model = fit(&samples, Role::Objective);
            let best = best_of(&model, &feasible);
            let doubt = if problem.objectives == 1 { DOUBT } else { 1.0 };
            let goal = Goal::Below { best, doubt };
            return Acquisition { objectives: vec![model], constraints, goal };
        }
        let objectives: Vec<Model> =
            (0..2).map(|k| fit(&self.history.objective(k), Role::Plain)).collect();
        let points: Vec<Vec<f64>> = feasible
            .iter()
            .map(|&i| objectives.iter().map(|model| model.gp.outputs()[i]).collect())
            .collect();
        let reference = reference(&points);
        let goal = Goal::Beyond(Front::new(&points, reference));
        Acquisition { objectives, constraints, goal }
    }

    /// All objectives as one: the augmented Chebyshev norm under random weights.
    fn weighted(&self, dice: &mut Dice) -> Samples {
        let problem = self.history.problem();
        let weights: Vec<f64> = (0..problem.objectives).map(|_| dice.exponential()).collect();
        let total: f64 = weights.iter().sum();
        let mut values = vec![0.0_f64; self.history.observations().len()];
        let mut sums = vec![0.0; values.len()];
        for (k, weight) in weights.iter().enumerate() {
            let samples = self.history.objective(k).values;
            let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
            let most = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let range = if most > least { most - least } else { 1.0 };
            for (i, sample) in samples.iter().enumerate() {
                let term = weight / total * (sample - least) / range;
                values[i] = values[i].max(term);
                sums[i] += term;
            }
        }
        for (value, sum) in values.iter_mut().zip(sums) {
            *value += AUGMENT * sum;
        }
        let variances = vec![None; values.len()];
        Samples { values, variances }
    }

    /// The known points that are worth searching around, best first.
    fn incumbents(&self, acquisition: &Acquisition) -> Vec<Vec<f64>> {
        let units = self.history.units();
        let mut order: Vec<usize> = (0..units.len()).collect();
        let of_constraints = |i: usize| -> f64 {
            let constraints = acquisition.constraints.iter();
            constraints.map(|c| (c.gp.outputs()[i] - c.warp.apply(0.0)).max(0.0)).sum()
        };
        let scores: Vec<f64> = match &acquisition.goal {
            Goal::Feasible => order.iter().map(|&i| of_constraints(i)).collect(),
            Goal::Below { .. } => order
                .iter()
                .map(|&i| acquisition.objectives[0].gp.mean(&units[i]) + 1e3 * of_constraints(i))
                .collect(),
            Goal::Beyond(_) => {
                let points: Vec<Vec<f64>> = order
                    .iter()
                    .map(|&i| acquisition.objectives.iter().map(|m| m.gp.outputs()[i]).collect())
                    .collect();
                let front = pareto::front(&points);
                let on = |i: &usize| if front.contains(i) { 0.0 } else { 1.0 };
                order.iter().map(|i| on(i) + 1e3 * of_constraints(*i)).collect()
            }
        };
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)));
        order.into_iter().take(INCUMBENTS).map(|i| units[i].clone()).collect()
    }
}

impl Optimizer for Bayes {
    fn history(&self) -> &History {
        &self.history
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        let units = self.initial(count);
        let mut points: Vec<Point> = units.iter().map(|unit| self.history.expect(unit)).collect();
        let missing = count - points.len();
        if missing > 0 {
            let guided = if self.history.observations().is_empty() {
                self.spread(missing)
            } else {
                self.guided(missing)
            };
            points.extend(guided.iter().map(|unit| self.history.expect(unit)));
        }
        points
    }

    fn tell(&mut self, observation: Observation) -> Result<(), TellError> {
        self.history.tell(observation)
    }
}

impl Bayes {
    /// More points than the initial ones, before anything was told.
    fn spread(&self, count: usize) -> Vec<Vec<f64>> {
        let key = self.history.known() as u64;
        let mut dice = Dice::new(self.settings.seed, Purpose::Search, key);
        let mut found: Vec<Vec<f64>> = Vec::new();
        for _ in 0..count {
            let is_known = |unit: &[f64]| {
                self.history.is_known(unit) || found.iter().any(|k| crate::history::near(k, unit))
            };
            let place = unknown_place(&self.history.problem().space, is_known, &mut dice);
            let Some(unit) = place else { break };
            found.push(unit);
        }
        found
    }
}

/// The least output among `feasible`, as measured.
fn best_of(model: &Model, feasible: &[usize]) -> f64 {
    feasible.iter().map(|&i| model.gp.outputs()[i]).fold(f64::INFINITY, f64::min)
}

/// A point that most others dominate: in each objective a little worse than the worst of the front,
/// and than three quarters of all. A front that is still narrow must not narrow the search.
fn reference(points: &[Vec<f64>]) -> [f64; 2] {
    let front = pareto::front(points);
    let of = |k: usize| {
        let on: Vec<f64> = front.iter().map(|&i| points[i][k]).collect();
        let all: Vec<f64> = points.iter().map(|point| point[k]).collect();
        let (least, most) = ends(&on);
        let worst = most.max(quantile(&all, 0.75));
        worst + (0.1 * (worst - least)).max(1e-6)
    };
    [of(0), of(1)]
}

fn ends(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}
