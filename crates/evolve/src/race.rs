//! The race: generations that are bred, looked at, measured, and the finals.
//!
//! Whoever runs a race brings an [`Arena`], which measures genomes. What is bred next follows from
//! what it says and from the seed alone.

use crate::breed::Breeder;
use crate::genome::{Genome, Space};
use blis_core::Dice;
use blis_core::math::float;
use blis_core::random::Purpose;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

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
/// At the end so many of each length, that read different signals, are kept,
const ABREAST: usize = 3;
/// and after the climbs from them so many are named.
const FINALISTS: usize = 6;

/// How much an evolution may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// How many genomes live at a time.
    pub population: usize,
    /// How many generations there are, the random one included.
    pub generations: usize,
    /// How many seeds each that lives is measured with.
    pub seeds: usize,
    /// From how many of the best everything that is one step away is tried at the end.
    pub climbs: usize,
    /// The seed of the breeding.
    pub seed: u64,
    /// How much better a formula must be for each part that it has more.
    pub parsimony: f64,
}

impl Budget {
    /// About how many looks it takes, and how many measurements with one seed.
    pub fn cost(&self) -> (usize, usize) {
        let later = CHILDREN * self.population * (self.generations - 1);
        // A short formula has about eight steps for each that lives.
        let looks = (START + 8 * self.climbs) * self.population + later;
        let measured = self.population + later / LOOKED_AT;
        (looks, measured * (1 + self.seeds) / 2 + self.climbs * self.population)
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

    /// Whether two did the same with the seeds that both were run with.
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
    race.finals(most)?;
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
        let lives = self.different(all, population);
        self.raced.best.extend(lives.first());
        Ok(lives)
    }

    /// The first `count` of `all`, with no more than a share of one family.
    fn different(&self, all: Vec<usize>, count: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let root = |of: usize| self.raced.entrants[of].root;
        for one in all {
            let kin = found.iter().filter(|&&other| root(other) == root(one)).count();
            // What does the same on every seed as one that is shorter is that one.
            let new = || !found.iter().any(|&other| self.arena.same(one, other));
            if found.len() < count && kin < count.div_ceil(FAMILIES) && new() {
                found.push(one);
            }
        }
        found
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
        let mut all: Vec<(f64, f64, usize)> =
            looks.into_iter().zip(new).map(|((broken, score), one)| (broken, score, one)).collect();
        let size = |one: usize| self.raced.entrants[one].genome.size();
        all.sort_by(|a, b| ordered(a, b).then_with(|| (size(a.2), a.2).cmp(&(size(b.2), b.2))));
        // What did the same did so by the same decisions, mostly; the shortest stays.
        all.dedup_by(|a, b| ordered(a, b).is_eq());
        for (_, score, one) in &mut all {
            *score += self.longer(*one);
        }
        all.sort_by(|a, b| ordered(a, b).then(a.2.cmp(&b.2)));
        Ok(all.into_iter().take(count).map(|(.., one)| one).collect())
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

    /// By how much more an entrant must be better because of its length.
    fn longer(&self, one: usize) -> f64 {
        self.budget.parsimony * float(self.raced.entrants[one].genome.size() as u64)
    }

    /// `all` in order: what is legal first, then by score with so many seeds and by size.
    fn ranked(&self, all: Vec<usize>, seeds: usize) -> Vec<usize> {
        let key = |one: usize| {
            // What breaks a constraint a little less must not be longer for it either.
            let (broken, longer) = (self.arena.broken(one), self.longer(one));
            let broken = if broken > 0.0 { broken + longer } else { 0.0 };
            (broken, self.arena.score(one, seeds) + longer, one)
        };
        let mut keys: Vec<(f64, f64, usize)> = all.into_iter().map(key).collect();
        keys.sort_by(|a, b| ordered(a, b).then(a.2.cmp(&b.2)));
        keys.into_iter().map(|(.., one)| one).collect()
    }

    /// Climbs from the best of each length to what is one step away, the shortest first: it has the
    /// fewest steps, and what is good is often a short one and one more part. Then from the second
    /// best, and so on, until nothing is left that was not climbed from.
    fn finals(&mut self, most: usize) -> Result<(), A::Failure> {
        let mut climbed = BTreeSet::new();
        loop {
            let front = self.front(most)?;
            let next = front.into_iter().find(|one| !climbed.contains(one));
            let Some(from) = next.filter(|_| climbed.len() < self.budget.climbs) else { break };
            climbed.insert(from);
            let genome = self.raced.entrants[from].genome.clone();
            let mut new = Vec::new();
            for one in self.breeder.neighbours(&genome) {
                new.extend(self.enter(one, self.budget.generations, Some(from), "one step"));
            }
            let new = self.looked_at(new, self.budget.population)?;
            self.measure(&new, 1)?;
        }
        let sure = self.with_seeds(most);
        self.raced.finalists = self.different(self.ranked(sure, most), FINALISTS);
        Ok(())
    }

    /// The best of each length up to that of the best of all, the shortest first, then the second
    /// best and so on, each with `most` seeds. Who leads by the luck of a few seeds is given more
    /// of them and falls back behind those that were less lucky.
    fn front(&mut self, most: usize) -> Result<Vec<usize>, A::Failure> {
        loop {
            let front = self.abreast(&self.ranked(self.with_seeds(1), most));
            let seeds = |one: usize| self.raced.entrants[one].seeds;
            let unsure = front.iter().copied().filter(|&one| seeds(one) < most);
            let unsure: Vec<usize> = unsure.collect();
            let Some(have) = unsure.iter().map(|&one| seeds(one)).min() else {
                return Ok(front);
            };
            self.measure(&unsure, (2 * have).min(most))?;
        }
    }

    /// The first few of each length in `all`, without those that do the same as one before. They
    /// read different signals: where no step leads on from one, it may from another.
    fn abreast(&self, all: &[usize]) -> Vec<usize> {
        let genome = |one: usize| &self.raced.entrants[one].genome;
        let longest = all.first().map_or(0, |&best| genome(best).size());
        let mut kept: BTreeMap<usize, Vec<BTreeSet<&str>>> = BTreeMap::new();
        let mut front: Vec<(usize, usize, usize)> = Vec::new();
        for &one in all {
            let (size, signals) = (genome(one).size(), genome(one).signals());
            let others = kept.entry(size).or_default();
            let full = size > longest || others.len() == ABREAST || others.contains(&signals);
            if !full && !front.iter().any(|&(.., other)| self.arena.same(one, other)) {
                front.push((others.len(), size, one));
                others.push(signals);
            }
        }
        front.sort_unstable();
        front.into_iter().map(|(.., one)| one).collect()
    }

    /// All that were run with so many seeds.
    fn with_seeds(&self, seeds: usize) -> Vec<usize> {
        let entrants = &self.raced.entrants;
        (0..entrants.len()).filter(|&one| entrants[one].seeds >= seeds).collect()
    }
}

/// The order of what breaks constraints by so much and is so much worse than the baseline.
fn ordered(a: &(f64, f64, usize), b: &(f64, f64, usize)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
}

fn genomes<'a>(raced: &'a Raced, who: &[usize]) -> Vec<(usize, &'a Genome)> {
    who.iter().map(|&one| (one, &raced.entrants[one].genome)).collect()
}
