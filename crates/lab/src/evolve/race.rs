//! Where genomes are measured: on the training workloads, beside the baseline, seed by seed.

use super::Evolution;
use crate::failure::Failure;
use crate::optimize::sample::{Hand, Sample, paired};
use crate::optimize::search::by_point;
use crate::optimize::{Number, Runs, Search};
use crate::trial::Runner;
use blis_core::math::float;
use blis_evolve::{Arena, Genome, Raced, race};
use blis_scenario::scenario::Plan;
use std::collections::BTreeMap;
use std::iter::zip;

struct Training<'a> {
    evolution: &'a Evolution,
    runner: &'a Runner<'a>,
    hand: Hand,
    /// The objective of the baseline in the workload that is looked at.
    looks: Vec<Option<f64>>,
    samples: BTreeMap<usize, Sample>,
}

/// Runs all generations and the finals.
pub(super) fn run(evolution: &Evolution, runner: &Runner<'_>) -> Result<Raced, Failure> {
    let search = &evolution.train;
    let seeds = Search::first_seeds(search.most_seeds());
    let plans = [search.plans_by_hand()?];
    search.note(runner, &[(0, "baseline".to_owned())], &plans, &seeds)?;
    let runs = by_point(&plans, &seeds, runner)?;
    let guards = search.guards_on(&runs[0]);
    let hand = Hand { sample: search.sample(&runs[0], &guards), guards };
    search.check_samples(&hand.sample)?;
    let looks = Number::of_all(search.objectives[0].number.metric).values(&runs[0][..1]);
    let samples = BTreeMap::new();
    let mut training = Training { evolution, runner, hand, looks, samples };
    race(&mut training, &evolution.space, evolution.budget, search.most_seeds())
}

impl Training<'_> {
    /// The runs of `who` on the first workloads with these seeds.
    fn runs(
        &self,
        who: &[(usize, &Genome)],
        loads: usize,
        seeds: &[u64],
    ) -> Result<Vec<Runs>, Failure> {
        let search = &self.evolution.train;
        let plans = who.iter().map(|(_, it)| self.evolution.plans(it, &search.loads[..loads]));
        let plans = plans.collect::<Result<Vec<Vec<Plan>>, _>>()?;
        let labels: Vec<_> = who.iter().map(|(one, _)| (one + 1, format!("bred {one}"))).collect();
        search.note(self.runner, &labels, &plans, seeds)?;
        by_point(&plans, seeds, self.runner)
    }

    /// How much worse `own` is than `hand` with so many seeds.
    fn mean(&self, own: &[Option<f64>], hand: &[Option<f64>], seeds: usize) -> f64 {
        let objective = &self.evolution.train.objectives[0];
        let scores = paired(own, hand, |value, hand| objective.score(value, hand));
        let scores = &scores[..scores.len().min(seeds)];
        let mean = scores.iter().sum::<f64>() / float(scores.len() as u64);
        if mean.is_finite() { mean } else { f64::INFINITY }
    }
}

impl Arena for Training<'_> {
    type Failure = Failure;

    fn takes(&self, genome: &Genome) -> bool {
        self.evolution.plans(genome, &self.evolution.train.loads[..1]).is_ok()
    }

    /// One seed on the first workload.
    fn look(&mut self, who: &[(usize, &Genome)]) -> Result<Vec<(f64, f64)>, Failure> {
        let search = &self.evolution.train;
        let number = Number::of_all(search.objectives[0].number.metric);
        let look = |runs: &Runs| {
            let broken = self.hand.guarded(&search.sample(runs, &self.hand.guards));
            (broken, self.mean(&number.values(runs), &self.looks, 1))
        };
        Ok(self.runs(who, 1, &Search::first_seeds(1))?.iter().map(look).collect())
    }

    fn measure(
        &mut self,
        who: &[(usize, &Genome)],
        have: usize,
        seeds: usize,
    ) -> Result<(), Failure> {
        let search = &self.evolution.train;
        let more = Search::first_seeds(seeds).split_off(have);
        let found = self.runs(who, search.loads.len(), &more)?;
        for (&(one, _), runs) in who.iter().zip(found) {
            let sample = search.sample(&runs, &self.hand.guards);
            match self.samples.get_mut(&one) {
                Some(known) => known.extend(sample),
                None => drop(self.samples.insert(one, sample)),
            }
        }
        Ok(())
    }

    fn score(&self, one: usize, seeds: usize) -> f64 {
        self.mean(&self.samples[&one].objectives[0], &self.hand.sample.objectives[0], seeds)
    }

    fn broken(&self, one: usize) -> f64 {
        self.evolution.train.harm(&self.samples[&one], &self.hand)
    }

    fn same(&self, one: usize, other: usize) -> bool {
        let mut both = zip(&self.samples[&one].objectives[0], &self.samples[&other].objectives[0]);
        both.all(|(one, other)| one == other)
    }
}
