//! Engines that do not learn: random and even spreads as controls, and all points of a small space.

use crate::Optimizer;
use crate::history::{History, Observation, Problem, TellError};
use crate::kind::Kind;
use crate::search::unknown_place;
use crate::sobol::Sobol;
use crate::space::{Point, Space};
use blis_core::Dice;
use blis_core::random::Purpose;

/// Uniform random points.
#[derive(Clone, Debug)]
pub struct Random {
    history: History,
    seed: u64,
}

/// Points of Sobol's sequence, scrambled by the seed.
#[derive(Clone, Debug)]
pub struct Quasi {
    history: History,
    sobol: Sobol,
}

/// All points of a grid, one after the other, the last dimension fastest.
#[derive(Clone, Debug)]
pub struct Grid {
    history: History,
    axes: Vec<Vec<f64>>,
}

impl Random {
    /// An engine with a seed.
    pub fn new(problem: Problem, seed: u64) -> Random {
        Random { history: History::new(problem), seed }
    }
}

impl Quasi {
    /// An engine with a seed.
    pub fn new(problem: Problem, seed: u64) -> Quasi {
        let sobol = Sobol::new(problem.space.len(), seed);
        Quasi { history: History::new(problem), sobol }
    }
}

impl Grid {
    /// The grid that has all values of choices, and `steps` values, evenly spread with both ends,
    /// of every other dimension that has more.
    ///
    /// # Panics
    /// If there are no steps.
    pub fn new(problem: Problem, steps: usize) -> Grid {
        assert!(steps > 0, "a grid needs a step");
        let dimensions = problem.space.dimensions();
        let axes = dimensions.iter().map(|dimension| axis(&dimension.kind, steps)).collect();
        Grid { history: History::new(problem), axes }
    }

    /// How many points the grid has, before those are dropped that conditions make equal; `None` if
    /// they cannot be counted.
    pub fn size(&self) -> Option<u64> {
        self.axes.iter().try_fold(1_u64, |product, axis| product.checked_mul(axis.len() as u64))
    }

    /// The grid's point `index`, not yet snapped.
    fn place(&self, mut index: u64) -> Vec<f64> {
        let mut unit = vec![0.0; self.axes.len()];
        for (slot, axis) in unit.iter_mut().zip(&self.axes).rev() {
            let steps = axis.len() as u64;
            *slot = axis[usize::try_from(index % steps).expect("an index of the axis")];
            index /= steps;
        }
        unit
    }
}

impl Optimizer for Random {
    fn history(&self) -> &History {
        &self.history
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        let mut points = Vec::new();
        while points.len() < count {
            let key = self.history.known() as u64;
            let mut dice = Dice::new(self.seed, Purpose::Search, key);
            let space = &self.history.problem().space;
            let place = unknown_place(space, |unit| self.history.is_known(unit), &mut dice);
            let Some(unit) = place else { break };
            points.push(self.history.expect(&unit));
        }
        points
    }

    fn tell(&mut self, observation: Observation) -> Result<(), TellError> {
        self.history.tell(observation)
    }
}

impl Optimizer for Quasi {
    fn history(&self) -> &History {
        &self.history
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        let sobol = &self.sobol;
        ask_in_order(&mut self.history, count, u64::from(u32::MAX), |index| sobol.point(index))
    }

    fn tell(&mut self, observation: Observation) -> Result<(), TellError> {
        self.history.tell(observation)
    }
}

impl Optimizer for Grid {
    fn history(&self) -> &History {
        &self.history
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        let end = self.size().unwrap_or(u64::MAX);
        let mut history = self.history.clone();
        let points = ask_in_order(&mut history, count, end, |index| self.place(index));
        self.history = history;
        points
    }

    fn tell(&mut self, observation: Observation) -> Result<(), TellError> {
        self.history.tell(observation)
    }
}

/// The next points of a fixed order that are not known yet. Told points that are on the order are
/// skipped, so the order goes on where it stopped.
fn ask_in_order(
    history: &mut History,
    count: usize,
    end: u64,
    place: impl Fn(u64) -> Vec<f64>,
) -> Vec<Point> {
    let mut points = Vec::new();
    let limit = end.min(64 * (history.known() + count) as u64 + (1 << 16));
    for index in 0..limit {
        if points.len() == count {
            break;
        }
        let mut unit = place(index);
        history.problem().space.snap(&mut unit);
        // Numbers without steps come back through their values.
        let unit = unit_of(&history.problem().space, &unit);
        if !history.is_known(&unit) {
            points.push(history.expect(&unit));
        }
    }
    points
}

fn unit_of(space: &Space, unit: &[f64]) -> Vec<f64> {
    space.unit(&space.point(unit)).expect("a point of this space")
}

/// The coordinates of one dimension of a grid.
fn axis(kind: &Kind, steps: usize) -> Vec<f64> {
    let few = kind.levels().is_some_and(|levels| levels <= steps as u64);
    if few || kind.is_choice() {
        return kind.coordinates();
    }
    let last = blis_core::math::float(steps.max(2) as u64 - 1);
    (0..steps)
        .map(|i| if steps == 1 { 0.5 } else { blis_core::math::float(i as u64) / last })
        .collect()
}
