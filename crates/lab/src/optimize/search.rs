//! The loop: ask, run, tell; then conclude, and run what is recommended again.

use super::findings::{Call, Chosen, Control, Findings, Front};
use super::{Engine, Objective, Search};
use crate::metric::Metric;
use crate::row::Row;
use crate::run::RunFailure;
use crate::scenario::{Draft, Plan};
use crate::study::{self, Study, by_plan};
use crate::trial::{Runner, Watch};
use blis_core::math::ln;
use blis_optimize::{
    Bayes, Grid, Measured, Nsga2, Observation, Optimizer, Point, Problem, Quasi, Random, Settings,
    pareto, recommend, sensitivity,
};

/// Points that fill the space before a model is trusted.
const INITIAL: usize = 10;
/// Points that engines which do not learn are asked for at a time.
const HEAP: usize = 16;
/// With more measurements, models take longer than they are worth.
const MOST_MODELLED: usize = 400;

/// The values of some metrics, one a seed, where a run has a sample.
type Values = Vec<Vec<Option<f64>>>;

/// What was measured at a point.
#[derive(Clone, Debug)]
struct Sample {
    objectives: Values,
    constraints: Values,
}

/// What an engine came to.
struct Explored {
    optimizer: Box<dyn Optimizer>,
    calls: Vec<Call>,
}

impl Search {
    /// About how many runs it takes, with those of a control if there is to be one.
    pub fn trials(&self, control: bool) -> usize {
        let searches = 1 + usize::from(control);
        searches * (self.budget.calls * self.budget.seeds + self.confirm) + self.confirm
    }

    /// Searches, and runs what is recommended on fresh seeds; with `control`, also an engine that
    /// asks at random, with the same budget.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    ///
    /// # Panics
    /// Never: an engine is told what fits its own space.
    pub fn run(
        &self,
        runner: &Runner<'_>,
        watch: &dyn Watch,
        control: bool,
    ) -> Result<Findings, RunFailure> {
        let hand_plan = self.plan(0, &self.points.candidates[0].hand)?;
        let seeds = Study::first_seeds(self.budget.seeds);
        let rows = by_plan(std::slice::from_ref(&hand_plan), &seeds, runner, watch)?;
        let hand = self.sample(&rows[0]);
        let found = self.explore(self.budget.engine, &hand, runner, watch)?;
        let random = || self.explore(Engine::Random, &hand, runner, watch);
        let random = control.then(random).transpose()?;
        let chosen = self.choose(&found);
        let of_control = random.as_ref().map(|random| self.choose(random));
        let all = chosen.iter().chain(of_control.iter().flatten());
        let mut plans = vec![hand_plan];
        for one in all {
            plans.push(self.plan(one.candidate, &one.settings)?);
        }
        let fresh = self.fresh_seeds();
        let rows = by_plan(&plans, &fresh, runner, watch)?;
        let fronts = self.fronts(&found, random.as_ref());
        let sensitivities = match found.calls.len() {
            count if count > MOST_MODELLED => Vec::new(),
            _ => (0..self.objectives.len())
                .filter_map(|k| sensitivity(found.optimizer.history(), k))
                .collect(),
        };
        let control = random.map(|random| Control {
            chosen: of_control.unwrap_or_default(),
            front: fronts.as_ref().map(|(_, front)| front.clone()),
            calls: random.calls,
        });
        Ok(Findings {
            hand: hand.means(),
            calls: found.calls,
            chosen,
            front: fronts.map(|(front, _)| front),
            sensitivities,
            fresh: study::Findings { rows, ..study::Findings::default() },
            control,
        })
    }

    /// The seeds that the outcome is confirmed with: none of them was seen by the search.
    pub fn fresh_seeds(&self) -> Vec<u64> {
        Study::first_seeds(self.budget.seeds + self.confirm).split_off(self.budget.seeds)
    }

    pub(super) fn problem(&self) -> Problem {
        Problem {
            space: self.points.space.clone(),
            objectives: self.objectives.len(),
            constraints: self.constraints.len(),
        }
    }

    /// The finest grid that the budget pays for; `None` if there is none.
    pub(super) fn grid_steps(&self) -> Option<usize> {
        let fits = |steps: usize| {
            let size = Grid::new(self.problem(), steps).size();
            size.is_some_and(|size| size <= self.budget.calls as u64)
        };
        let finest = (2..=self.budget.calls).take_while(|&steps| fits(steps)).last();
        finest.filter(|_| fits(2))
    }

    fn engine(&self, engine: Engine) -> Box<dyn Optimizer> {
        let (problem, seed) = (self.problem(), self.budget.seed);
        match engine {
            Engine::Gp => {
                let hands = (0..self.points.candidates.len()).filter_map(|k| self.points.hand(k));
                let initial = INITIAL.min(self.budget.calls / 2);
                let settings = Settings { initial, start: hands.collect(), ..Settings::new(seed) };
                Box::new(Bayes::new(problem, settings))
            }
            Engine::Random => Box::new(Random::new(problem, seed)),
            Engine::Sobol => Box::new(Quasi::new(problem, seed)),
            Engine::Grid => Box::new(Grid::new(problem, self.grid_steps().unwrap_or(2))),
            Engine::Nsga2 => {
                Box::new(Nsga2::new(problem, seed, (self.budget.calls / 10).clamp(8, 100)))
            }
        }
    }

    /// How many points to ask for when `known` were told. How many run at a time has no say: the
    /// same file must ask for the same points on every machine.
    fn batch(&self, engine: Engine, known: usize) -> usize {
        let left = self.budget.calls - known;
        let wanted = match engine {
            Engine::Gp if known < INITIAL => INITIAL.min(self.budget.calls / 2) - known.min(1),
            Engine::Gp => self.budget.batch,
            Engine::Nsga2 => (self.budget.calls / 10).clamp(8, 100),
            Engine::Random | Engine::Sobol | Engine::Grid => HEAP,
        };
        wanted.clamp(1, left)
    }

    /// Lets `engine` spend the budget.
    fn explore(
        &self,
        engine: Engine,
        hand: &Sample,
        runner: &Runner<'_>,
        watch: &dyn Watch,
    ) -> Result<Explored, RunFailure> {
        let optimizer = self.engine(engine);
        let mut explored = Explored { optimizer, calls: Vec::new() };
        if let Some(point) = self.points.hand(0) {
            self.tell(&mut explored, point, hand, hand);
        }
        let seeds = Study::first_seeds(self.budget.seeds);
        while explored.calls.len() < self.budget.calls {
            let count = self.batch(engine, explored.calls.len());
            let points = explored.optimizer.ask(count);
            if points.is_empty() {
                break;
            }
            let plan = |point: &Point| {
                let (candidate, settings) = self.points.settings(point);
                self.plan(candidate, &settings)
            };
            let plans: Vec<Result<Plan, RunFailure>> = points.iter().map(plan).collect();
            let legal: Vec<Plan> = plans.iter().flatten().cloned().collect();
            let mut rows = by_plan(&legal, &seeds, runner, watch)?.into_iter();
            for (point, plan) in points.into_iter().zip(plans) {
                match (plan, rows.len()) {
                    (Ok(_), 1..) => {
                        let rows = rows.next().unwrap_or_default();
                        self.tell(&mut explored, point, &self.sample(&rows), hand);
                    }
                    // Ranges can hold what is illegal together, e.g. weights that are all 0.
                    (refused, _) => self.tell_refused(&mut explored, point, refused.err()),
                }
            }
        }
        Ok(explored)
    }

    fn tell(&self, explored: &mut Explored, point: Point, sample: &Sample, hand: &Sample) {
        let observation = self.observation(point, sample, hand);
        let (candidate, settings) = self.points.settings(&observation.point);
        explored.calls.push(Call {
            candidate,
            settings,
            means: sample.means(),
            scores: observation.objectives.iter().map(|measured| measured.mean).collect(),
            feasible: observation.is_feasible(),
            refused: None,
        });
        explored.optimizer.tell(observation).expect("the point is one of the space");
    }

    /// A point that is no legal scenario counts as bad as the worst, and breaks all constraints.
    fn tell_refused(&self, explored: &mut Explored, point: Point, why: Option<RunFailure>) {
        let none = Sample {
            objectives: vec![vec![None]; self.objectives.len()],
            constraints: vec![vec![None]; self.constraints.len()],
        };
        self.tell(explored, point, &none, &none);
        if let Some(call) = explored.calls.last_mut() {
            call.refused = why.map(|why| why.to_string());
        }
    }

    fn plan(&self, candidate: usize, settings: &[(String, String)]) -> Result<Plan, RunFailure> {
        let tree = self.points.tree(&self.base, candidate, settings);
        Draft::from_tree(tree).resolve().map_err(RunFailure::Input)
    }

    fn sample(&self, rows: &[Row]) -> Sample {
        let values = |metric: &Metric| rows.iter().map(|row| metric.of(&row.report)).collect();
        Sample {
            objectives: self.objectives.iter().map(|objective| values(&objective.metric)).collect(),
            constraints: self.constraints.iter().map(|bound| values(&bound.metric)).collect(),
        }
    }

    /// What an engine is told about `point`. Requests are the same at every point, so most of what
    /// differs between seeds goes when each is compared with the hand-set point's run of that seed.
    fn observation(&self, point: Point, sample: &Sample, hand: &Sample) -> Observation {
        let objectives = self.objectives.iter().zip(&sample.objectives).zip(&hand.objectives);
        let constraints = self.constraints.iter().zip(&sample.constraints).zip(&hand.constraints);
        Observation {
            point,
            objectives: objectives
                .map(|((objective, values), hand)| {
                    measured(values, hand, |value, hand| objective.score(value, hand))
                })
                .collect(),
            constraints: constraints
                .map(|((constraint, values), hand)| {
                    measured(values, hand, |value, hand| {
                        constraint.excess(value, hand.unwrap_or(0.0))
                    })
                })
                .collect(),
        }
    }

    /// What is recommended: a point for one objective, the front for several.
    fn choose(&self, explored: &Explored) -> Vec<Chosen> {
        let history = explored.optimizer.history();
        let chosen = |call: usize| Chosen {
            call,
            candidate: explored.calls[call].candidate,
            settings: explored.calls[call].settings.clone(),
            expected: None,
            feasibility: None,
        };
        if self.objectives.len() > 1 {
            let front = explored.front();
            if !front.is_empty() {
                return front.into_iter().map(chosen).collect();
            }
        }
        if explored.calls.len() > MOST_MODELLED {
            let feasible = (0..explored.calls.len()).filter(|&i| explored.calls[i].feasible);
            let score = |i: &usize| explored.calls[*i].scores[0];
            let best = feasible.filter(|i| score(i).is_finite());
            let best = best.min_by(|a, b| score(a).total_cmp(&score(b)));
            return best.map(chosen).into_iter().collect();
        }
        let found = recommend(history, 0);
        // A point that measured no better is no reason to change anything.
        let hand = explored.calls.first().filter(|first| {
            first.is_usable()
                && self.points.hand(0) == Some(history.observations()[0].point.clone())
        });
        if let (Some(_), Some(found)) = (hand, &found)
            && explored.calls[found.index].scores[0] >= 0.0
        {
            return vec![chosen(0)];
        }
        let with = found.map(|found| Chosen {
            expected: Some(found.objective),
            feasibility: Some(found.feasibility),
            ..chosen(found.index)
        });
        with.into_iter().collect()
    }

    /// For several objectives, what the points of the search and of its control dominate, below a
    /// reference that both share: the worst that either has measured among legal points.
    fn fronts(&self, found: &Explored, control: Option<&Explored>) -> Option<(Front, Front)> {
        if self.objectives.len() < 2 {
            return None;
        }
        let all = found.calls.iter().chain(control.iter().flat_map(|control| &control.calls));
        let legal: Vec<&Vec<f64>> =
            all.filter(|call| call.is_usable()).map(|call| &call.scores).collect();
        let reference: Vec<f64> = (0..self.objectives.len())
            .map(|k| legal.iter().map(|scores| scores[k]).fold(f64::NEG_INFINITY, f64::max))
            .collect();
        let front = |explored: &Explored| {
            let points = explored.front();
            let scores: Vec<Vec<f64>> =
                points.iter().map(|&i| explored.calls[i].scores.clone()).collect();
            let hand = vec![0.0; self.objectives.len()];
            let below = hand.iter().zip(&reference).all(|(hand, worst)| hand <= worst);
            Front {
                hypervolume: pareto::hypervolume(&scores, &reference),
                of_hand: if below { pareto::hypervolume(&[hand], &reference) } else { 0.0 },
                points,
            }
        };
        let own = front(found);
        Some((own.clone(), control.map_or(own, front)))
    }
}

impl Sample {
    /// The mean of each objective; `None` if a seed has no sample.
    fn means(&self) -> Vec<Option<f64>> {
        let mean = |values: &Vec<Option<f64>>| {
            let all: Option<Vec<f64>> = values.iter().copied().collect();
            all.map(|values| Measured::of(&values).mean)
        };
        self.objectives.iter().map(mean).collect()
    }
}

impl Explored {
    /// The legal points that no other dominates.
    fn front(&self) -> Vec<usize> {
        let legal: Vec<usize> =
            (0..self.calls.len()).filter(|&i| self.calls[i].is_usable()).collect();
        let scores: Vec<Vec<f64>> = legal.iter().map(|&i| self.calls[i].scores.clone()).collect();
        pareto::front(&scores).into_iter().map(|k| legal[k]).collect()
    }
}

impl Objective {
    /// How much worse `value` is than the hand-set point's: the logarithm of the ratio where only
    /// ratios mean something, else the difference.
    pub fn score(&self, value: f64, hand: Option<f64>) -> f64 {
        let sign = if self.maximise { -1.0 } else { 1.0 };
        if self.metric.is_ratio() {
            let hand = hand.filter(|hand| *hand > 0.0).unwrap_or(1.0);
            return if value > 0.0 { sign * ln(value / hand) } else { f64::NAN };
        }
        sign * (value - hand.unwrap_or(0.0))
    }
}

/// The mean over seeds of what `score` makes of a value and the hand-set point's value, which is
/// left out for all seeds if one of them has none. A seed without a sample leaves no number.
fn measured(
    values: &[Option<f64>],
    hand: &[Option<f64>],
    score: impl Fn(f64, Option<f64>) -> f64,
) -> Measured {
    let paired = hand.iter().all(Option::is_some);
    let scores = values.iter().zip(hand).map(|(value, hand)| match value {
        Some(value) => score(*value, hand.filter(|_| paired)),
        None => f64::NAN,
    });
    let scores: Vec<f64> = scores.collect();
    if scores.iter().any(|score| !score.is_finite()) {
        return Measured { mean: f64::INFINITY, variance: None };
    }
    Measured::of(&scores)
}
