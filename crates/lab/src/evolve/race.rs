//! The race: generations that are bred, run on few seeds and then on more, and the finals.

use super::Evolution;
use crate::failure::Failure;
use crate::optimize::sample::{Hand, Sample, paired};
use crate::optimize::search::by_point;
use crate::optimize::{Objective, Search};
use crate::trial::{Runner, Watch};
use blis_core::Dice;
use blis_core::math::float;
use blis_core::random::Purpose;
use blis_evolve::{Breeder, Genome};
use std::collections::BTreeSet;

/// The first generation has so many times the genomes that live.
const START: usize = 4;
/// So many genomes of a generation compete for being a parent.
const TOURNAMENT: usize = 3;
/// One in so many is drawn at random in every generation.
const FOREIGN: usize = 8;
/// So many are run with more seeds at the end,
const FINALISTS: usize = 6;
/// and the best is cut so often at most.
const CUTS: usize = 6;

/// A genome that was measured.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// What it is.
    pub genome: Genome,
    /// When it was bred, from 0.
    pub generation: usize,
    /// The entrant that it is a change of.
    pub parent: Option<usize>,
    /// What was changed.
    pub change: &'static str,
    /// How much worse than the baseline it is, on the seeds of the generations: the mean over
    /// seeds of the logarithm of a ratio, or of a difference.
    pub score: f64,
    /// With how many seeds it was run.
    pub seeds: usize,
    /// Whether it met the constraints and guards.
    pub legal: bool,
}

/// What a race came to.
#[derive(Clone, Debug, Default)]
pub struct Raced {
    /// All that were measured, in order.
    pub entrants: Vec<Entrant>,
    /// The best after each generation.
    pub best: Vec<usize>,
    /// Those of the finals, best first.
    pub finalists: Vec<usize>,
    /// How many formulas were drawn, and how many of them the checker refused.
    pub drawn: (usize, usize),
    /// How many were drawn that were known already.
    pub known: usize,
}

struct Race<'a> {
    evolution: &'a Evolution,
    runner: &'a Runner<'a>,
    watch: &'a dyn Watch,
    hand: Hand,
    breeder: Breeder<'a>,
    dice: Dice,
    seen: BTreeSet<String>,
    samples: Vec<Sample>,
    raced: Raced,
}

/// Runs all generations and the finals.
pub(super) fn run(
    evolution: &Evolution,
    runner: &Runner<'_>,
    watch: &dyn Watch,
) -> Result<Raced, Failure> {
    let search = &evolution.train;
    let seeds = Search::first_seeds(search.most_seeds());
    let plans = [search.plans_by_hand()?];
    search.note(runner, &[(0, "baseline".to_owned())], &plans, &seeds)?;
    let runs = by_point(&plans, &seeds, runner, watch)?;
    let guards = search.guards_on(&runs[0]);
    let hand = Hand { sample: search.sample(&runs[0], &guards), guards };
    search.check_samples(&hand.sample)?;
    let seed = evolution.budget.seed;
    let mut race = Race {
        evolution,
        runner,
        watch,
        hand,
        breeder: Breeder::new(&evolution.space, seed),
        dice: Dice::new(seed, Purpose::Search, 1),
        seen: BTreeSet::new(),
        samples: Vec::new(),
        raced: Raced::default(),
    };
    let mut population = Vec::new();
    for generation in 0..evolution.budget.generations {
        population = race.generation(generation, population)?;
    }
    race.finals(population)?;
    race.raced.drawn = race.breeder.drawn();
    Ok(race.raced)
}

impl Race<'_> {
    /// Breeds a generation and races it; who lives after it, best first.
    fn generation(&mut self, number: usize, living: Vec<usize>) -> Result<Vec<usize>, Failure> {
        let budget = self.evolution.budget;
        let wanted = if number == 0 { START * budget.population } else { budget.population };
        let new: Vec<usize> = (0..wanted).filter_map(|at| self.bred(number, at, &living)).collect();
        self.measure(&new, 1)?;
        let mut new = self.ranked(new, 1);
        new.truncate(budget.population.div_ceil(if number == 0 { 1 } else { 2 }));
        self.measure(&new, budget.seeds)?;
        let all = self.ranked(living.into_iter().chain(new).collect(), budget.seeds);
        let mut lives: Vec<usize> = Vec::new();
        for one in all {
            // What does the same on every seed as one that is shorter is that one.
            let values = |of: usize| &self.samples[of].objectives[0];
            if lives.len() < budget.population && !lives.iter().any(|&it| values(it) == values(one))
            {
                lives.push(one);
            }
        }
        self.raced.best.extend(lives.first());
        Ok(lives)
    }

    /// A genome that nobody has seen, as a new entrant.
    fn bred(&mut self, generation: usize, at: usize, living: &[usize]) -> Option<usize> {
        for _ in 0..TOURNAMENT * FOREIGN {
            let foreign = living.is_empty() || at.is_multiple_of(FOREIGN);
            let (parent, found) = if foreign {
                (None, self.breeder.random().map(|genome| (genome, "random")))
            } else {
                let (one, other) = (self.parent(living), self.parent(living));
                let genome = |of: usize| &self.raced.entrants[of].genome;
                (Some(one), self.breeder.child(genome(one), genome(other)))
            };
            let Some((genome, change)) = found else { continue };
            if let Some(entrant) = self.enter(genome, generation, parent, change) {
                return Some(entrant);
            }
        }
        None
    }

    /// The best of a few at random; those that live are in order.
    fn parent(&mut self, living: &[usize]) -> usize {
        let draws = (0..TOURNAMENT).map(|_| self.dice.below(living.len()));
        living[draws.min().unwrap_or_default()]
    }

    fn enter(
        &mut self,
        genome: Genome,
        generation: usize,
        parent: Option<usize>,
        change: &'static str,
    ) -> Option<usize> {
        if !self.seen.insert(self.evolution.text(&genome)) {
            self.raced.known += 1;
            return None;
        }
        // Formulas can be legal by themselves and not together with the parts, e.g. a priority that
        // no scheduler reads.
        let first = &self.evolution.train.loads[..1];
        self.evolution.plans(&genome, first).ok()?;
        let score = f64::INFINITY;
        let entrant = Entrant { genome, generation, parent, change, score, seeds: 0, legal: false };
        self.raced.entrants.push(entrant);
        self.samples.push(self.evolution.train.no_sample(&self.hand));
        Some(self.raced.entrants.len() - 1)
    }

    /// Runs `who` with so many seeds in all, those that have the same number of them together.
    fn measure(&mut self, who: &[usize], seeds: usize) -> Result<(), Failure> {
        let search = &self.evolution.train;
        let mut left: Vec<usize> = who.to_vec();
        while let Some(have) = left.iter().map(|&one| self.raced.entrants[one].seeds).min() {
            let (now, later): (Vec<usize>, Vec<usize>) =
                left.iter().partition(|&&one| self.raced.entrants[one].seeds == have);
            left = later;
            if have >= seeds {
                break;
            }
            let genomes = now.iter().map(|&one| &self.raced.entrants[one].genome);
            let plans = genomes.map(|genome| self.evolution.plans(genome, &search.loads));
            let plans = plans.collect::<Result<Vec<_>, _>>()?;
            let more = Search::first_seeds(seeds).split_off(have);
            let labels: Vec<_> = now.iter().map(|&one| (one + 1, format!("bred {one}"))).collect();
            search.note(self.runner, &labels, &plans, &more)?;
            let found = by_point(&plans, &more, self.runner, self.watch)?;
            for (one, runs) in now.into_iter().zip(found) {
                let sample = search.sample(&runs, &self.hand.guards);
                if have == 0 {
                    self.samples[one] = sample;
                } else {
                    self.samples[one].extend(sample);
                }
                let score = self.score(one, self.evolution.budget.seeds);
                let legal = self.broken(one) <= 0.0;
                let entrant = &mut self.raced.entrants[one];
                (entrant.seeds, entrant.score, entrant.legal) = (seeds, score, legal);
            }
        }
        Ok(())
    }

    /// How much worse than the baseline it is with the first `seeds` seeds.
    fn score(&self, one: usize, seeds: usize) -> f64 {
        let objective: &Objective = &self.evolution.train.objectives[0];
        let (own, hand) = (&self.samples[one].objectives[0], &self.hand.sample.objectives[0]);
        let scores = paired(own, hand, |value, hand| objective.score(value, hand));
        let scores = &scores[..scores.len().min(seeds)];
        let mean = scores.iter().sum::<f64>() / float(scores.len() as u64);
        if mean.is_finite() { mean } else { f64::INFINITY }
    }

    /// By how much it breaks the constraint or guard that it breaks most; 0 if none.
    fn broken(&self, one: usize) -> f64 {
        self.evolution.train.harm(&self.samples[one], &self.hand)
    }

    /// `all` in order: what is legal first, then by score with so many seeds and by size.
    fn ranked(&self, all: Vec<usize>, seeds: usize) -> Vec<usize> {
        let parsimony = self.evolution.budget.parsimony;
        let size = |one: usize| float(self.raced.entrants[one].genome.size() as u64);
        let key =
            |one: usize| (self.broken(one), self.score(one, seeds) + parsimony * size(one), one);
        let mut keys: Vec<(f64, f64, usize)> = all.into_iter().map(key).collect();
        keys.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        keys.into_iter().map(|(.., one)| one).collect()
    }

    /// Runs the best with more seeds, and cuts away what does not earn its place.
    fn finals(&mut self, mut field: Vec<usize>) -> Result<(), Failure> {
        let (most, few) = (self.evolution.train.most_seeds(), self.evolution.budget.seeds);
        field.truncate(FINALISTS);
        self.measure(&field, most)?;
        field = self.ranked(field, most);
        for _ in 0..CUTS {
            let Some(&leader) = field.first() else { break };
            let genome = self.raced.entrants[leader].genome.clone();
            let generation = self.evolution.budget.generations;
            let mut cut = Vec::new();
            for pruned in self.breeder.prunings(&genome) {
                cut.extend(self.enter(pruned, generation, Some(leader), "cut"));
            }
            self.measure(&cut, few)?;
            cut.push(leader);
            let mut cut = self.ranked(cut, few);
            cut.truncate(FINALISTS);
            self.measure(&cut, most)?;
            field.extend(cut.into_iter().filter(|one| *one != leader));
            field = self.ranked(field, most);
            if field[0] == leader {
                break;
            }
        }
        field.truncate(FINALISTS);
        self.raced.finalists = field;
        Ok(())
    }
}
