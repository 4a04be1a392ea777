//! What a search recommends: a measured point than which no other measured point is surely better.
//!
//! All points are run with the same seeds, so two of them are compared seed by seed. The last
//! rounds of a search race the leading points: they are run with more seeds until one is surely
//! better than the others, or the budget is spent. Then parameters go back to their hand-set values
//! as long as no measured point is surely better than what that gives, so that what is recommended
//! differs from the hand-set point only where that can be measured.

use super::findings::{Chosen, Rival};
use super::sample::{Hand, Sample, paired};
use super::search::{Explored, by_point};
use super::{LEVEL, Search};
use crate::failure::Failure;
use crate::stats::{Estimate, estimate};
use crate::trial::Runner;
use blis_core::math::float;

/// So many of the best points are raced.
const FINALISTS: usize = 4;
/// Finalists are run with so many times the seeds of other points at most,
const MOST_TIMES: usize = 4;
/// or with this many, if that is more.
const FEW: usize = 8;
/// With fewer seeds nothing is clear: so little would be sure that parameters with an effect went
/// back to their hand-set values.
const ENOUGH: usize = 6;

/// The last rounds of a search.
struct Finals<'a> {
    search: &'a Search,
    explored: &'a mut Explored,
    hand: &'a mut Hand,
    runner: &'a Runner<'a>,
    /// How many seeds each finalist is run with.
    seeds: usize,
    /// How many runs the race may still take.
    left: usize,
}

impl Search {
    /// With how many seeds a point is run at most.
    pub(crate) fn most_seeds(&self) -> usize {
        (MOST_TIMES * self.budget.seeds).max(FEW)
    }

    /// What is recommended of what was measured, and the points that it was compared with last: a
    /// point for one objective, the front for several. If no point is legal, it is the one that
    /// breaks the constraints least.
    pub(super) fn recommend(
        &self,
        explored: &mut Explored,
        hand: &mut Hand,
        runner: &Runner<'_>,
    ) -> Result<(Vec<Chosen>, Vec<Rival>), Failure> {
        let front = if self.objectives.len() > 1 { explored.front() } else { Vec::new() };
        if !front.is_empty() {
            let chosen = front.into_iter().map(|call| explored.chosen(call, true));
            return Ok((chosen.collect(), Vec::new()));
        }
        let (seeds, left) = (self.budget.seeds, self.budget.calls * self.budget.seeds);
        let mut finals = Finals { search: self, explored, hand, runner, seeds, left };
        let Some(best) = finals.race()? else {
            let least = finals.least_broken().map(|call| finals.explored.chosen(call, false));
            return Ok((least.into_iter().collect(), Vec::new()));
        };
        let chosen = finals.put_back(best)?;
        Ok((vec![finals.explored.chosen(chosen, true)], finals.rivals(chosen)))
    }
}

impl Finals<'_> {
    /// The best legal point; `None` if there is none.
    fn race(&mut self) -> Result<Option<usize>, Failure> {
        loop {
            let mut ranked: Vec<usize> =
                (0..self.explored.calls.len()).filter(|&call| self.is_legal(call)).collect();
            ranked.sort_by(|&a, &b| self.mean(a).total_cmp(&self.mean(b)));
            let Some(&leader) = ranked.first() else { return Ok(None) };
            let is_finalist = |(place, call): &(usize, usize)| {
                *place < FINALISTS || *call == 0 || self.is_surely_better(*call, leader)
            };
            let field: Vec<usize> =
                ranked.into_iter().enumerate().filter(is_finalist).map(|(_, call)| call).collect();
            if self.run(&field)? {
                continue;
            }
            let told_apart = |&call: &usize| {
                self.worse(call, leader).is_some_and(|it| it.low > 0.0 || it.low >= it.high)
            };
            let next = (2 * self.seeds).min(self.search.most_seeds());
            let cost = field.len() * (next - self.seeds);
            let is_clear = self.seeds >= ENOUGH && field[1..].iter().all(told_apart);
            if is_clear || cost == 0 || cost > self.left {
                return Ok(Some(leader));
            }
            self.seeds = next;
        }
    }

    /// The point of call `best` with all those parameters at their hand-set values that can be put
    /// back without a measured point being surely better; the hand-set point, if none is.
    fn put_back(&mut self, best: usize) -> Result<usize, Failure> {
        if self.search.points.hand(0).is_some() && self.is_legal(0) && !self.is_beaten(0) {
            return Ok(0);
        }
        let call = &self.explored.calls[best];
        let hand = &self.search.points.candidates[call.candidate].hand;
        let changed: Vec<usize> =
            (0..hand.len()).filter(|&index| call.settings[index] != hand[index]).collect();
        self.put_back_some(best, &changed)
    }

    /// The same for the parameters `changed`: all at once if that does, else one half and then the
    /// other.
    fn put_back_some(&mut self, call: usize, changed: &[usize]) -> Result<usize, Failure> {
        if changed.is_empty() {
            return Ok(call);
        }
        if let Some(found) = self.with_hand(call, changed)?
            && self.is_legal(found)
            && !self.is_beaten(found)
        {
            return Ok(found);
        }
        if changed.len() == 1 {
            return Ok(call);
        }
        let (some, others) = changed.split_at(changed.len() / 2);
        let call = self.put_back_some(call, some)?;
        self.put_back_some(call, others)
    }

    /// Measures the point of `call` with the hand-set values of `parameters`; `None` if it is not
    /// legal.
    fn with_hand(&mut self, call: usize, parameters: &[usize]) -> Result<Option<usize>, Failure> {
        let call = &self.explored.calls[call];
        let points = &self.search.points;
        let Some((point, settings)) = points.with_hand(call.candidate, &call.settings, parameters)
        else {
            return Ok(None);
        };
        let candidate = call.candidate;
        let same = |known: &super::Call| known.candidate == candidate && known.settings == settings;
        let found = if let Some(found) = self.explored.calls.iter().position(same) {
            found
        } else {
            let Ok(plans) = self.search.plans(candidate, &settings) else { return Ok(None) };
            let number = self.explored.calls.len();
            let label = self.search.label(self.explored.engine, number + 1);
            let (plans, seeds) = ([plans], self.search.seeds());
            self.search.note(self.runner, &[label], &plans, &seeds)?;
            let runs = by_point(&plans, &seeds, self.runner)?;
            let sample = self.search.sample(&runs[0], &self.hand.guards);
            let observation = self.search.observation(point, &sample, self.hand);
            self.search.tell(self.explored, observation, (candidate, settings), sample);
            number
        };
        if !self.is_beaten(found) {
            self.run(&[found])?;
        }
        Ok(Some(found))
    }

    /// Runs `calls` with as many seeds as finalists have; whether there was anything to run.
    fn run(&mut self, calls: &[usize]) -> Result<bool, Failure> {
        let hand = (0, self.search.points.candidates[0].hand.clone());
        let have = self.hand.sample.seeds();
        if have < self.seeds {
            let more = self.more(&[(0, "by hand".to_owned())], &[hand], have)?;
            for more in more {
                self.hand.sample.extend(more);
            }
        }
        if self.search.points.hand(0).is_some() {
            self.explored.samples[0].clone_from(&self.hand.sample);
        }
        let seeds_of = |finals: &Finals<'_>, call: usize| finals.explored.samples[call].seeds();
        let mut short: Vec<usize> =
            calls.iter().copied().filter(|&call| seeds_of(self, call) < self.seeds).collect();
        let any = !short.is_empty();
        while let Some(&first) = short.first() {
            let have = seeds_of(self, first);
            let (now, later) = short.iter().partition(|&&call| seeds_of(self, call) == have);
            short = later;
            let now: Vec<usize> = now;
            let engine = self.explored.engine;
            let labels: Vec<_> =
                now.iter().map(|&call| self.search.label(engine, call + 1)).collect();
            let points: Vec<_> = now
                .iter()
                .map(|&call| &self.explored.calls[call])
                .map(|call| (call.candidate, call.settings.clone()))
                .collect();
            let found = self.more(&labels, &points, have)?;
            for (call, more) in now.into_iter().zip(found) {
                self.explored.samples[call].extend(more);
            }
        }
        Ok(any)
    }

    /// What `points` give with the seeds that follow the first `have`.
    fn more(
        &mut self,
        labels: &[(usize, String)],
        points: &[(usize, Vec<(String, String)>)],
        have: usize,
    ) -> Result<Vec<Sample>, Failure> {
        let search = self.search;
        let plans = points.iter().map(|(candidate, settings)| search.plans(*candidate, settings));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let seeds = Search::first_seeds(self.seeds).split_off(have);
        search.note(self.runner, labels, &plans, &seeds)?;
        self.left = self.left.saturating_sub(plans.len() * seeds.len());
        let runs = by_point(&plans, &seeds, self.runner)?;
        Ok(runs.iter().map(|runs| search.sample(runs, &self.hand.guards)).collect())
    }

    /// How much worse than the hand-set point `call` is with each of its seeds.
    fn scores(&self, call: usize) -> Vec<f64> {
        let objective = &self.search.objectives[0];
        let values = &self.explored.samples[call].objectives[0];
        paired(values, &self.hand.sample.objectives[0], |value, hand| objective.score(value, hand))
    }

    fn mean(&self, call: usize) -> f64 {
        let scores = self.scores(call);
        scores.iter().sum::<f64>() / float(scores.len() as u64)
    }

    /// Whether `call` meets the constraints with all of its seeds, as measured, and has numbers.
    fn is_legal(&self, call: usize) -> bool {
        let broken = self.broken(call);
        self.explored.calls[call].refused.is_none()
            && self.mean(call).is_finite()
            && broken.is_none_or(|broken| broken <= 0.0)
    }

    /// By how much `call` breaks the constraint that it breaks most; `None` without constraints.
    fn broken(&self, call: usize) -> Option<f64> {
        let excesses = self.search.excesses(&self.explored.samples[call], self.hand);
        excesses.into_iter().map(|excess| excess.mean).reduce(f64::max)
    }

    fn least_broken(&self) -> Option<usize> {
        let run = |call: &usize| self.explored.calls[*call].refused.is_none();
        let broken = |call: usize| self.broken(call).unwrap_or(0.0);
        let all = (0..self.explored.calls.len()).filter(run);
        all.min_by(|&a, &b| broken(a).total_cmp(&broken(b)))
    }

    /// How much worse `call` is than `other`, on the seeds that both were run with.
    fn worse(&self, call: usize, other: usize) -> Option<Estimate> {
        let both = self.scores(call).into_iter().zip(self.scores(other));
        let differences: Vec<f64> = both.map(|(call, other)| call - other).collect();
        estimate(&differences, LEVEL).filter(|found| found.mean.is_finite())
    }

    fn is_surely_better(&self, call: usize, other: usize) -> bool {
        self.worse(other, call).is_some_and(|found| found.low > 0.0)
    }

    /// Whether a legal point that was measured is surely better than `call`.
    fn is_beaten(&self, call: usize) -> bool {
        let mut others = (0..self.explored.calls.len()).filter(|&other| other != call);
        others.any(|other| self.is_surely_better(other, call) && self.is_legal(other))
    }

    /// The other points that were run with more seeds, best first.
    fn rivals(&self, chosen: usize) -> Vec<Rival> {
        let raced = |&call: &usize| {
            call != chosen && self.explored.samples[call].seeds() > self.search.budget.seeds
        };
        let mut rivals: Vec<Rival> = (0..self.explored.calls.len())
            .filter(raced)
            .map(|call| Rival {
                call,
                seeds: self.explored.samples[call].seeds(),
                worse: self.worse(call, chosen),
                legal: self.is_legal(call),
            })
            .collect();
        let mean = |rival: &Rival| rival.worse.map_or(f64::INFINITY, |worse| worse.mean);
        rivals.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        rivals
    }
}

impl Explored {
    fn chosen(&self, call: usize, legal: bool) -> Chosen {
        let found = &self.calls[call];
        let (candidate, settings) = (found.candidate, found.settings.clone());
        Chosen { call, candidate, settings, legal }
    }
}
