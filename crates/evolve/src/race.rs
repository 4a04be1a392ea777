//! The race: generations that are bred, looked at, measured, and the finals.
//!
//! Whoever runs a race brings an [`Arena`], which measures genomes. What is bred next follows from
//! what it says and from the seed alone.

use crate::breed::Breeder;
use crate::genome::{Genome, Space};
use blis_core::Dice;
use blis_core::math::float;
use blis_core::random::Purpose;
use std::collections::BTreeSet;

/// The first generation has so many times the genomes that live, the others so many,
const START: usize = 40;
const CHILDREN: usize = 2;
/// and after a look at each, one in so many goes on to be measured, but no more than live.
const LOOKED_AT: usize = 4;
/// So many genomes of a generation compete for being a parent.
const TOURNAMENT: usize = 3;
/// One in so many is drawn at random in every generation.
const FOREIGN: usize = 8;
/// No more than one in so many of those that live stem from the same random genome.
const FAMILIES: usize = 4;
/// So many are run with more seeds at the end,
const FINALISTS: usize = 6;
/// and so many steps are taken from the best at most.
const STEPS: usize = 6;

/// How much an evolution may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// How many genomes live at a time.
    pub population: usize,
    /// How many generations there are, the random one included.
    pub generations: usize,
    /// How many seeds each that lives is measured with.
    pub seeds: usize,
    /// The seed of the breeding.
    pub seed: u64,
    /// How much better a formula must be for each part that it has more.
    pub parsimony: f64,
}

impl Budget {
    /// About how many looks it takes, and how many measurements with one seed.
    pub fn cost(&self) -> (usize, usize) {
        let later = CHILDREN * self.population * (self.generations - 1);
        let looks = START * self.population + later;
        let measured = self.population + later / LOOKED_AT;
        (looks, measured * (1 + self.seeds) / 2 + self.population)
    }
}

/// What measures genomes. Entrants have numbers, from 0.
pub trait Arena {
    /// Why nothing was measured.
    type Failure;

    /// Whether `genome` can be run: formulas can be legal by themselves and not together with the
    /// parts, e.g. a priority that no scheduler reads.
    fn takes(&self, genome: &Genome) -> bool;

    /// A look at each where that is fastest: by how much it breaks a guard, and how much worse than
    /// the baseline it is.
    ///
    /// # Errors
    /// The failure of a run.
    fn look(&mut self, who: &[(usize, &Genome)]) -> Result<Vec<(f64, f64)>, Self::Failure>;

    /// Measures each with the seeds from number `have` to number `seeds`.
    ///
    /// # Errors
    /// The failure of a run.
    fn measure(
        &mut self,
        who: &[(usize, &Genome)],
        have: usize,
        seeds: usize,
    ) -> Result<(), Self::Failure>;

    /// How much worse than the baseline it is with its first `seeds` seeds.
    fn score(&self, one: usize, seeds: usize) -> f64;

    /// By how much it breaks the constraint or guard that it breaks most; 0 if none.
    fn broken(&self, one: usize) -> f64;

    /// Whether two did the same.
    fn same(&self, one: usize, other: usize) -> bool;
}

/// A genome that was entered.
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
    /// The random entrant that it stems from.
    root: usize,
}

/// What a race came to.
#[derive(Clone, Debug, Default)]
pub struct Raced {
    /// All that were bred, in order.
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

struct Race<'a, A> {
    arena: &'a mut A,
    space: &'a Space,
    budget: Budget,
    breeder: Breeder<'a>,
    dice: Dice,
    seen: BTreeSet<String>,
    raced: Raced,
}

/// Runs all generations, and the finals with `most` seeds.
///
/// # Errors
/// The first failure of the arena.
pub fn race<A: Arena>(
    arena: &mut A,
    space: &Space,
    budget: Budget,
    most: usize,
) -> Result<Raced, A::Failure> {
    let mut race = Race {
        arena,
        space,
        budget,
        breeder: Breeder::new(space, budget.seed),
        dice: Dice::new(budget.seed, Purpose::Search, 1),
        seen: BTreeSet::new(),
        raced: Raced::default(),
    };
    let mut population = Vec::new();
    for generation in 0..budget.generations {
        population = race.generation(generation, population)?;
    }
    race.finals(population, most)?;
    race.raced.drawn = race.breeder.drawn();
    Ok(race.raced)
}

impl<A: Arena> Race<'_, A> {
    /// Breeds a generation and races it; who lives after it, best first.
    fn generation(&mut self, number: usize, living: Vec<usize>) -> Result<Vec<usize>, A::Failure> {
        let Budget { population, seeds, .. } = self.budget;
        let wanted = population * if number == 0 { START } else { CHILDREN };
        let new: Vec<usize> = (0..wanted).filter_map(|at| self.bred(number, at, &living)).collect();
        let new = self.sifted(new)?;
        let all = self.ranked(living.into_iter().chain(new).collect(), seeds);
        let mut lives: Vec<usize> = Vec::new();
        let root = |of: usize| self.raced.entrants[of].root;
        for one in all {
            let kin = lives.iter().filter(|&&other| root(other) == root(one)).count();
            // What does the same on every seed as one that is shorter is that one.
            let new = !lives.iter().any(|&other| self.arena.same(one, other));
            if lives.len() < population && kin < population.div_ceil(FAMILIES) && new {
                lives.push(one);
            }
        }
        self.raced.best.extend(lives.first());
        Ok(lives)
    }

    /// The best of `new`: after a look, with one seed, and those of them with more seeds.
    fn sifted(&mut self, new: Vec<usize>) -> Result<Vec<usize>, A::Failure> {
        let count = new.len().div_ceil(LOOKED_AT).min(self.budget.population);
        let new = self.looked_at(new, count)?;
        self.measure(&new, 1)?;
        let mut new = self.ranked(new, 1);
        new.truncate(count.div_ceil(2));
        self.measure(&new, self.budget.seeds)?;
        Ok(self.ranked(new, self.budget.seeds))
    }

    /// The best `count` of `new` after a look.
    fn looked_at(&mut self, new: Vec<usize>, count: usize) -> Result<Vec<usize>, A::Failure> {
        let looks = self.arena.look(&genomes(&self.raced, &new))?;
        let order = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
        let mut all: Vec<((f64, f64), usize)> = looks.into_iter().zip(new).collect();
        all.sort_by(|a, b| order(a.0, b.0).then(a.1.cmp(&b.1)));
        // What did the same did so by the same decisions, mostly.
        all.dedup_by(|a, b| order(a.0, b.0).is_eq());
        Ok(all.into_iter().take(count).map(|(_, one)| one).collect())
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
        if !self.seen.insert(genome.text(self.space)) {
            self.raced.known += 1;
            return None;
        }
        if !self.arena.takes(&genome) {
            return None;
        }
        let number = self.raced.entrants.len();
        let root = parent.map_or(number, |parent| self.raced.entrants[parent].root);
        let (score, seeds, legal) = (f64::INFINITY, 0, false);
        let entrant = Entrant { genome, generation, parent, change, score, seeds, legal, root };
        self.raced.entrants.push(entrant);
        Some(number)
    }

    /// Runs `who` with so many seeds in all, those that have the same number of them together.
    fn measure(&mut self, who: &[usize], seeds: usize) -> Result<(), A::Failure> {
        for have in 0..seeds {
            let now = who.iter().copied().filter(|&one| self.raced.entrants[one].seeds == have);
            let now: Vec<usize> = now.collect();
            if now.is_empty() {
                continue;
            }
            self.arena.measure(&genomes(&self.raced, &now), have, seeds)?;
            for one in now {
                let entrant = &mut self.raced.entrants[one];
                entrant.seeds = seeds;
                entrant.score = self.arena.score(one, self.budget.seeds);
                entrant.legal = self.arena.broken(one) <= 0.0;
            }
        }
        Ok(())
    }

    /// `all` in order: what is legal first, then by score with so many seeds and by size.
    fn ranked(&self, all: Vec<usize>, seeds: usize) -> Vec<usize> {
        let size = |one: usize| float(self.raced.entrants[one].genome.size() as u64);
        let key = |one: usize| {
            // What breaks a constraint a little less must not be longer for it either.
            let (broken, longer) = (self.arena.broken(one), self.budget.parsimony * size(one));
            let broken = if broken > 0.0 { broken + longer } else { 0.0 };
            (broken, self.arena.score(one, seeds) + longer, one)
        };
        let mut keys: Vec<(f64, f64, usize)> = all.into_iter().map(key).collect();
        keys.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        keys.into_iter().map(|(.., one)| one).collect()
    }

    /// Runs the best with more seeds, and goes on to what is one step away while that is better.
    fn finals(&mut self, mut field: Vec<usize>, most: usize) -> Result<(), A::Failure> {
        let mut near = std::mem::take(&mut field);
        for step in 0..=STEPS {
            near.truncate(FINALISTS);
            self.measure(&near, most)?;
            let leader = field.first().copied();
            field = self.ranked(field.into_iter().chain(near).collect(), most);
            field.truncate(FINALISTS);
            let Some(&best) = field.first() else { break };
            if leader == Some(best) || step == STEPS {
                break;
            }
            let genome = self.raced.entrants[best].genome.clone();
            let mut new = Vec::new();
            for one in self.breeder.neighbours(&genome) {
                new.extend(self.enter(one, self.budget.generations, Some(best), "one step"));
            }
            near = self.sifted(new)?;
        }
        self.raced.finalists = field;
        Ok(())
    }
}

fn genomes<'a>(raced: &'a Raced, who: &[usize]) -> Vec<(usize, &'a Genome)> {
    who.iter().map(|&one| (one, &raced.entrants[one].genome)).collect()
}
