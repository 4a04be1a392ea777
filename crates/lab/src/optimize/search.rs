//! The loop: ask, run, tell; then conclude, and run what is recommended again.

use super::findings::{Call, Control, Findings};
use super::guard;
use super::number::Runs;
use super::sample::{Hand, Sample};
use super::{Engine, Load, Objective, Search};
use crate::failure::Failure;
use crate::metric::Metric;
use crate::study::by_plan;
use crate::trial::Runner;
use blis_optimize::{
    Bayes, Grid, Noise, Observation, Optimizer, Point, Problem, Quasi, Random, Settings, evolution,
};
use blis_scenario::problem::Place;
use blis_scenario::scenario::Plan;

/// Points that fill the space before a model is trusted.
const INITIAL: usize = 10;
/// The first seed of a search: beyond all that a study may begin at and count up to.
const FIRST_SEED: u64 = 10_001;
/// Points that engines which do not learn are asked for at a time.
const HEAP: usize = 16;
/// With more measurements, models take longer than they are worth.
pub(super) const MOST_MODELLED: usize = 400;

/// What an engine came to.
pub(super) struct Explored {
    pub(super) engine: Engine,
    pub(super) optimizer: Box<dyn Optimizer>,
    pub(super) calls: Vec<Call>,
    /// What was measured at each of them.
    pub(super) samples: Vec<Sample>,
    noise: Noise,
    /// What met the constraints with all seeds.
    legal: Vec<Observation>,
}

/// A point that was asked for, with the scenario that it is in each workload.
struct Asked {
    point: Point,
    settings: (usize, Vec<(String, String)>),
    plans: Result<Vec<Plan>, Failure>,
}

impl Search {
    /// About how many runs it takes, with those of a control if there is to be one.
    pub fn trials(&self, control: bool) -> usize {
        let searches = 1 + usize::from(control);
        let race = self.most_seeds() - self.budget.seeds;
        let explored = self.budget.calls * self.budget.seeds + self.confirm;
        let runs = searches * (explored + 2 * race) + self.confirm;
        runs * self.loads.len()
    }

    /// The names of its workloads; empty if the file has no list of them.
    pub fn workloads(&self) -> Vec<&str> {
        self.loads.iter().filter_map(|load| load.name.as_deref()).collect()
    }

    /// What its objectives are numbers of, each once.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut all = Vec::new();
        for Objective { number, .. } in &self.objectives {
            if !all.contains(&number.metric) {
                all.push(number.metric);
            }
        }
        all
    }

    /// Searches, and runs what is recommended on fresh seeds; with `control`, also an engine that
    /// asks at random, with the same budget.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    ///
    /// # Panics
    /// Never: an engine is told what fits its own space.
    pub fn run(&self, runner: &Runner<'_>, control: bool) -> Result<Findings, Failure> {
        let mut points = vec![self.plans_by_hand()?];
        let seeds = self.seeds();
        self.note(runner, &[(0, "by hand".to_owned())], &points, &seeds)?;
        let runs = by_point(&points, &seeds, runner)?;
        let guards = self.guards_on(&runs[0]);
        let mut hand = Hand { sample: self.sample(&runs[0], &guards), guards };
        self.check_samples(&hand.sample)?;
        let by_hand = hand.sample.means(self.budget.seeds);
        let mut found = self.explore(self.budget.engine, &hand, runner)?;
        let random = || self.explore(Engine::Random, &hand, runner);
        let mut random = control.then(random).transpose()?;
        let (mut chosen, rivals) = self.recommend(&mut found, &mut hand, runner)?;
        let of_control = match &mut random {
            Some(random) => self.recommend(random, &mut hand, runner)?.0,
            None => Vec::new(),
        };
        for one in chosen.iter().chain(&of_control) {
            points.push(self.plans(one.candidate, &one.settings)?);
        }
        let fresh = self.fresh_seeds();
        let label = |cell| self.fresh_label(cell, chosen.len());
        let labels: Vec<_> = (0..points.len()).map(label).collect();
        self.note(runner, &labels, &points, &fresh)?;
        let mut fresh = by_point(&points, &fresh, runner)?;
        let needless_refusals = self.needless_refusals(&fresh, runner)?;
        let taken_back = self.take_back(&mut chosen, &mut fresh, &hand.guards);
        let fronts = self.fronts(&found, random.as_ref());
        let sensitivities = match found.calls.len() {
            count if count > MOST_MODELLED => Vec::new(),
            _ => (0..self.objectives.len())
                .filter_map(|k| self.sensitivity(&found, &chosen, k))
                .collect(),
        };
        let control = random.map(|random| Control {
            chosen: of_control,
            front: fronts.as_ref().map(|(_, front)| front.clone()),
            calls: random.calls,
        });
        Ok(Findings {
            hand: by_hand,
            calls: found.calls,
            chosen,
            rivals,
            taken_back,
            needless_refusals,
            front: fronts.map(|(front, _)| front),
            sensitivities,
            fresh,
            control,
        })
    }

    /// An objective of which the hand-set point has no sample says nothing about any point.
    pub(crate) fn check_samples(&self, hand: &Sample) -> Result<(), Failure> {
        let mut measured = self.objectives.iter().zip(&hand.objectives);
        let absent = measured.find(|(_, values)| values.iter().all(Option::is_none));
        let Some((objective, _)) = absent else { return Ok(()) };
        let field = if objective.maximise { "maximise" } else { "objective" };
        let name = objective.number.name();
        let message = format!(
            "no run of the hand-set point has a `{name}`: does every workload send such requests \
             after the warm-up?"
        );
        Err(Failure::from(blis_scenario::problem::Problem::new(Place::Unknown, field, message)))
    }

    /// The seeds that every point is measured with. No study runs with them, so that a study of
    /// what was found is not one of what it was fitted to.
    pub fn seeds(&self) -> Vec<u64> {
        Search::first_seeds(self.budget.seeds)
    }

    /// The first `count` seeds of every search.
    pub(crate) fn first_seeds(count: usize) -> Vec<u64> {
        (FIRST_SEED..).take(count).collect()
    }

    /// The seeds that the outcome is confirmed with: none of them was seen by the search.
    pub fn fresh_seeds(&self) -> Vec<u64> {
        (FIRST_SEED..).skip(self.most_seeds()).take(self.confirm).collect()
    }

    /// What an engine searches, where there are so many kinds of guards.
    pub(super) fn problem(&self, guards: usize) -> Problem {
        Problem {
            space: self.points.space.clone(),
            objectives: self.objectives.len(),
            constraints: self.constraints.len() + guards,
        }
    }

    /// The finest grid that the budget pays for; `None` if there is none.
    pub(super) fn grid_steps(&self) -> Option<usize> {
        let fits = |steps: usize| {
            let size = Grid::new(self.problem(0), steps).size();
            size.is_some_and(|size| size <= self.budget.calls as u64)
        };
        let finest = (2..=self.budget.calls).take_while(|&steps| fits(steps)).last();
        finest.filter(|_| fits(2))
    }

    fn engine(&self, engine: Engine, hand: &Hand) -> Box<dyn Optimizer> {
        let (problem, seed) = (self.problem(guard::kinds(&hand.guards).count()), self.budget.seed);
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
            Engine::Nsga2 => evolution(problem, seed, (self.budget.calls / 10).clamp(8, 100)),
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
        hand: &Hand,
        runner: &Runner<'_>,
    ) -> Result<Explored, Failure> {
        let mut explored = Explored {
            engine,
            optimizer: self.engine(engine, hand),
            calls: Vec::new(),
            samples: Vec::new(),
            noise: Noise::of(
                self.objectives.len(),
                self.constraints.len() + guard::kinds(&hand.guards).count(),
            ),
            legal: Vec::new(),
        };
        if let Some(point) = self.points.hand(0) {
            let observation = self.observation(point, &hand.sample, hand);
            let settings = (0, self.points.candidates[0].hand.clone());
            self.tell(&mut explored, observation, settings, hand.sample.clone());
        }
        while explored.calls.len() < self.budget.calls {
            let count = self.batch(engine, explored.calls.len());
            let points = explored.optimizer.ask(count);
            if points.is_empty() {
                break;
            }
            let asked = |point: Point| {
                let settings = self.points.settings(&point);
                let plans = self.plans(settings.0, &settings.1);
                Asked { point, settings, plans }
            };
            let asked: Vec<Asked> = points.into_iter().map(asked).collect();
            let mut runs = self.measure(&explored, &asked, hand, runner)?.into_iter();
            for Asked { point, settings, plans } in asked {
                match plans {
                    Ok(_) => {
                        let runs = runs.next().unwrap_or_default();
                        let sample = self.sample(&runs, &hand.guards);
                        let observation = self.observation(point, &sample, hand);
                        self.tell(&mut explored, observation, settings, sample);
                    }
                    // Ranges can hold what is illegal together, e.g. weights that are all 0.
                    Err(why) => {
                        self.tell_refused(&mut explored, point, settings, (&why, hand));
                    }
                }
            }
        }
        Ok(explored)
    }

    /// The runs of the legal ones of `asked`; those with the first seed alone if they are hopeless.
    /// A seed is run on all workloads: a mean over some of them would be no measure.
    fn measure(
        &self,
        explored: &Explored,
        asked: &[Asked],
        hand: &Hand,
        runner: &Runner<'_>,
    ) -> Result<Vec<Runs>, Failure> {
        let first = explored.calls.len() + 1;
        let legal: Vec<(usize, &Asked, &Vec<Plan>)> = (first..)
            .zip(asked)
            .filter_map(|(call, one)| Some((call, one, one.plans.as_ref().ok()?)))
            .collect();
        let all = self.seeds();
        let (now, later) = all.split_at(if self.budget.racing { 1 } else { all.len() });
        let points: Vec<Vec<Plan>> = legal.iter().map(|(.., plans)| (*plans).clone()).collect();
        let labels: Vec<_> =
            legal.iter().map(|(call, ..)| self.label(explored.engine, *call)).collect();
        self.note(runner, &labels, &points, now)?;
        let mut runs = by_point(&points, now, runner)?;
        if later.is_empty() {
            return Ok(runs);
        }
        let hopes = |number: &usize| {
            let observation = self.observation(
                legal[*number].1.point.clone(),
                &self.sample(&runs[*number], &hand.guards),
                hand,
            );
            !explored.noise.is_hopeless(&observation, &explored.legal, self.budget.seeds)
        };
        let kept: Vec<usize> = (0..points.len()).filter(hopes).collect();
        let points: Vec<Vec<Plan>> = kept.iter().map(|&number| points[number].clone()).collect();
        let labels: Vec<_> = kept.iter().map(|&number| labels[number].clone()).collect();
        self.note(runner, &labels, &points, later)?;
        let found = by_point(&points, later, runner)?;
        for (number, found) in kept.into_iter().zip(found) {
            let both = runs[number].iter_mut().zip(found);
            both.for_each(|(rows, found)| rows.extend(found));
        }
        Ok(runs)
    }

    pub(super) fn tell(
        &self,
        explored: &mut Explored,
        observation: Observation,
        (candidate, settings): (usize, Vec<(String, String)>),
        sample: Sample,
    ) {
        let seeds = sample.seeds();
        let all = seeds == self.budget.seeds;
        let observation = if all { observation } else { explored.noise.doubted(observation) };
        let call = Call {
            candidate,
            settings,
            means: sample.means(seeds),
            scores: observation.objectives.iter().map(|measured| measured.mean).collect(),
            feasible: observation.is_feasible(),
            seeds,
            refused: None,
        };
        // The hand-set point is its own measure: it says nothing about noise.
        if all && !explored.calls.is_empty() {
            explored.noise.learn(&observation, seeds);
        }
        if all && call.is_usable() {
            explored.legal.push(observation.clone());
        }
        explored.calls.push(call);
        explored.samples.push(sample);
        explored.optimizer.tell(observation).expect("the point is one of the space");
    }

    /// A point that is no legal scenario counts as bad as the worst, and breaks all constraints.
    fn tell_refused(
        &self,
        explored: &mut Explored,
        point: Point,
        settings: (usize, Vec<(String, String)>),
        (why, hand): (&Failure, &Hand),
    ) {
        let none = self.no_sample(hand);
        let observation = self.observation(point, &none, hand);
        self.tell(explored, observation, settings, none);
        if let Some(call) = explored.calls.last_mut() {
            call.seeds = 0;
            call.refused = Some(why.to_string());
        }
    }

    /// The scenarios of the hand-set point.
    pub(crate) fn plans_by_hand(&self) -> Result<Vec<Plan>, Failure> {
        self.plans(0, &self.points.candidates[0].hand)
    }

    /// The scenarios of a point: one for each workload.
    pub(super) fn plans(
        &self,
        candidate: usize,
        settings: &[(String, String)],
    ) -> Result<Vec<Plan>, Failure> {
        let plan = |load: &Load| load.plan(&self.points, candidate, settings);
        self.loads.iter().map(plan).collect()
    }
}

/// The runs of some points, each of which is the scenarios of its workloads.
pub(crate) fn by_point(
    points: &[Vec<Plan>],
    seeds: &[u64],
    runner: &Runner<'_>,
) -> Result<Vec<Runs>, Failure> {
    let mut rows = by_plan(&points.concat(), seeds, runner)?.into_iter();
    Ok(points.iter().map(|plans| rows.by_ref().take(plans.len()).collect()).collect())
}
