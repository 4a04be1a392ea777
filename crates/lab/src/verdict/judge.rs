//! The judge: looks when it is time to, and answers what can be answered.

use super::contrast::{Contrast, Effect, Part, places};
use super::{ALPHA, Doubt, Evidence, Outcome, Verdict, sentence};
use crate::design::Design;
use crate::hypothesis::{Expr, Hypothesis, Reference};
use crate::stats::{Sequence, step_down};
use std::collections::{BTreeMap, BTreeSet};

/// Gives verdicts on the hypotheses of a study as its seeds come in.
#[derive(Debug)]
pub struct Judge<'a> {
    hypotheses: &'a [Hypothesis],
    design: &'a Design,
    sequence: Sequence,
    /// The look that is next.
    look: usize,
    open: Vec<usize>,
    /// How many are closed of which nothing is said that could be wrong: they count as open ones.
    silent: usize,
    verdicts: Vec<Option<Verdict>>,
}

impl<'a> Judge<'a> {
    /// A judge that looks after `first` seeds and then up to `most`, and is wrong about any of the
    /// hypotheses with probability `alpha`.
    pub fn new(
        hypotheses: &'a [Hypothesis],
        design: &'a Design,
        (first, most): (usize, usize),
        alpha: f64,
    ) -> Judge<'a> {
        let count = hypotheses.len();
        let sequence = Sequence::new(first, most, count, alpha);
        let open = (0..count).collect();
        let verdicts = vec![None; count];
        Judge { hypotheses, design, sequence, look: 0, open, silent: 0, verdicts }
    }

    /// After how many seeds to look next; `None` if everything is answered, or no look is left.
    pub fn next_look(&self) -> Option<usize> {
        let wanted = self.look == 0 || !self.open.is_empty();
        self.sequence.looks().get(self.look).copied().filter(|_| wanted)
    }

    /// The cells that the next look is about: all at first, then those of open hypotheses.
    pub fn asked(&self) -> BTreeSet<usize> {
        if self.look == 0 {
            return (0..self.design.cells()).collect();
        }
        let open = self.open.iter().map(|&index| &self.hypotheses[index]);
        open.flat_map(|hypothesis| cells_of(hypothesis, self.design)).collect()
    }

    /// Looks at `evidence`, which has as many seeds as [`Judge::next_look`] asked for in each of
    /// the cells that were [asked](Judge::asked) for.
    ///
    /// # Panics
    /// If there is no look left.
    pub fn look(&mut self, evidence: &dyn Evidence) {
        let seeds = self.sequence.looks()[self.look];
        let case = |&index: &usize| {
            (index, Case::new(&self.hypotheses[index], self.design, evidence, seeds))
        };
        let cases: BTreeMap<usize, Case<'_>> = self.open.iter().map(case).collect();
        let (sequence, look) = (&self.sequence, self.look);
        let verdicts = &mut self.verdicts;
        for index in std::mem::take(&mut self.open) {
            match cases[&index].without_verdict() {
                Some(outcome) => {
                    let level = sequence.level(look, 1);
                    verdicts[index] = Some(cases[&index].verdict(outcome, level));
                    self.silent += 1;
                }
                None => self.open.push(index),
            }
        }
        let silent = self.silent;
        step_down(&mut self.open, |index, open| {
            let level = sequence.level(look, open + silent);
            let outcome = cases[&index].outcome(level);
            if outcome != Outcome::Inconclusive {
                verdicts[index] = Some(cases[&index].verdict(outcome, level));
            }
            outcome != Outcome::Inconclusive
        });
        if look + 1 == sequence.looks().len() {
            for &index in &self.open {
                let level = sequence.level(look, self.open.len() + silent);
                verdicts[index] = Some(cases[&index].verdict(Outcome::Inconclusive, level));
            }
        }
        self.look += 1;
    }

    /// The verdicts, in the order of the hypotheses.
    ///
    /// # Panics
    /// If it wants another look.
    pub fn finish(self) -> Vec<Verdict> {
        let given = |verdict: Option<Verdict>| verdict.expect("there is no look left");
        self.verdicts.into_iter().map(given).collect()
    }
}

/// A hypothesis and what was found about it.
pub(super) struct Case<'a> {
    pub(super) hypothesis: &'a Hypothesis,
    pub(super) design: &'a Design,
    pub(super) parts: Vec<(Part<'a>, Contrast)>,
    pub(super) seeds: usize,
    pub(super) evidence: &'a dyn Evidence,
    /// The mean of each counter of the mechanism.
    pub(super) fired: Vec<Option<f64>>,
    /// The cells whose latencies it is about, and why they say nothing.
    pub(super) doubts: Vec<(usize, Doubt)>,
}

impl<'a> Case<'a> {
    fn new(
        hypothesis: &'a Hypothesis,
        design: &'a Design,
        evidence: &'a dyn Evidence,
        seeds: usize,
    ) -> Case<'a> {
        let with = |part: Part<'a>| {
            let contrast = part.contrast(design, evidence, seeds);
            (part, contrast)
        };
        let parts: Vec<(Part<'_>, Contrast)> =
            Part::all(&hypothesis.claim, design).into_iter().map(with).collect();
        let mut cells: Vec<usize> =
            parts.iter().flat_map(|(part, _)| part.latencies_of(design)).collect();
        cells.sort_unstable();
        cells.dedup();
        let doubts = cells.into_iter().map(|cell| (cell, evidence.doubt(cell, seeds))).collect();
        let fired = hypothesis
            .fires
            .iter()
            .map(|(_, counter)| fired(counter, design, evidence, seeds))
            .collect();
        Case { hypothesis, design, parts, seeds, evidence, fired, doubts }
    }

    /// A counter of the mechanism that stood still in every run.
    pub(super) fn silent(&self) -> Option<&'a str> {
        let mut counters = self.hypothesis.fires.iter().zip(&self.fired);
        let still = |mean: &Option<f64>| mean.is_none_or(|mean| mean.total_cmp(&0.0).is_eq());
        counters.find(|(_, mean)| still(mean)).map(|((text, _), _)| text.as_str())
    }

    /// Why there is none, whatever the numbers say.
    fn without_verdict(&self) -> Option<Outcome> {
        let identical = self.parts.iter().all(|(_, contrast)| contrast.is_equality());
        // A claim that holds of equal numbers is true of them; another is not worth refuting.
        let fails = |(_, contrast): &(Part<'_>, Contrast)| contrast.answer(ALPHA) == Some(false);
        if identical && (self.silent().is_some() || self.parts.iter().any(fails)) {
            return Some(Outcome::NoEffect);
        }
        let doubts = || self.doubts.iter().map(|(_, doubt)| doubt);
        if doubts().any(|doubt| doubt.overloaded) {
            return Some(Outcome::Overloaded);
        }
        doubts().any(|doubt| doubt.too_short).then_some(Outcome::TooShort)
    }

    fn outcome(&self, level: f64) -> Outcome {
        if self.silent().is_some() {
            return Outcome::Inconclusive;
        }
        // That all parts hold is wrong only if each of them is: no correction. That one of them
        // fails is wrong if any of these is: their number counts.
        let shared = level / f64::from(u32::try_from(self.parts.len()).unwrap_or(u32::MAX));
        if self.parts.iter().all(|(_, contrast)| contrast.answer(level) == Some(true)) {
            Outcome::Confirmed
        } else if self.parts.iter().any(|(_, contrast)| contrast.answer(shared) == Some(false)) {
            Outcome::Refuted
        } else if self.parts.iter().all(|(_, contrast)| {
            contrast.is_equivalent(level) || contrast.answer(level) == Some(true)
        }) {
            Outcome::Equivalent
        } else {
            Outcome::Inconclusive
        }
    }

    fn verdict(&self, outcome: Outcome, level: f64) -> Verdict {
        let effect =
            |(part, contrast): &(Part<'_>, Contrast)| part.effect(self.design, contrast, level);
        let effects: Vec<Effect> = self.parts.iter().map(effect).collect();
        let telling = sentence::telling(self, outcome, level);
        let why = sentence::why(self, outcome, telling, &effects);
        Verdict { outcome, why, seeds: self.seeds, level, effects, telling }
    }
}

/// The cells that `hypothesis` is about, with those of its mechanism.
fn cells_of(hypothesis: &Hypothesis, design: &Design) -> Vec<usize> {
    let parts = Part::all(&hypothesis.claim, design);
    let compared = parts.iter().flat_map(|part| part.cells(design));
    let counted = hypothesis.fires.iter().flat_map(|(_, counter)| {
        let references = counter.references();
        let at = |levels: Vec<usize>| {
            let cell = |reference: &&Reference| design.cell(&reference.at(&levels));
            references.iter().map(cell).collect::<Vec<usize>>()
        };
        places(&references, design).into_iter().flat_map(at).collect::<Vec<usize>>()
    });
    compared.chain(counted).collect()
}

/// The mean of `counter` over all seeds and over everything that it does not name.
fn fired(counter: &Expr, design: &Design, evidence: &dyn Evidence, seeds: usize) -> Option<f64> {
    let (mut sum, mut runs) = (0.0, 0.0);
    for levels in places(&counter.references(), design) {
        for seed in 0..seeds {
            let of = |reference: &Reference| {
                evidence.value(design.cell(&reference.at(&levels)), seed, &reference.metric)
            };
            if let Some(value) = counter.value(&of) {
                sum += value;
                runs += 1.0;
            }
        }
    }
    (runs > 0.0).then(|| sum / runs)
}
