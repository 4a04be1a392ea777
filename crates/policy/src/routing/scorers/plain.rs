//! Scorers that look at nothing but an instance: the request is all the same to them, so between
//! two requests they look again only at what has changed.

use crate::prelude::*;
use std::marker::PhantomData;

/// What a scorer says of an instance, whatever the others are like.
pub(super) trait Score: Send {
    fn score(view: &InstanceView) -> f64;
}

/// The scorer that says so.
pub(super) struct Absolute<S>(PhantomData<S>);

impl<S: Score + 'static> Absolute<S> {
    pub(super) fn boxed() -> Box<dyn Scorer> {
        Box::new(Absolute::<S>(PhantomData))
    }
}

impl<S: Score> Scorer for Absolute<S> {
    fn score(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        cluster.each(scores, S::score);
    }

    fn rescore(
        &mut self,
        _: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        changed: &[usize],
        scores: &mut [f64],
    ) -> Rescored<'_> {
        for &place in changed {
            scores[place] = S::score(&cluster.instances[place]);
        }
        Rescored::Changed(&[])
    }
}

/// What instances have of something.
pub(super) trait Amount: Send {
    fn amount(view: &InstanceView) -> u32;
}

/// The place of each instance between the most of something, which scores 0, and the least, which
/// scores 1; 1 for all if all are equal.
pub(super) struct Relative<A> {
    of: PhantomData<A>,
    amounts: Vec<u32>,
    least: u32,
    most: u32,
    /// How many instances have the least, and the most, once that is asked.
    with_ends: Option<[usize; 2]>,
    /// The score of each amount from the least to the most; kept to save an allocation.
    levels: Vec<f64>,
}

impl<A: Amount + 'static> Relative<A> {
    pub(super) fn boxed() -> Box<dyn Scorer> {
        Box::new(Relative::<A> {
            of: PhantomData,
            amounts: Vec::new(),
            least: 0,
            most: 0,
            with_ends: None,
            levels: Vec::new(),
        })
    }

    /// Takes note of an amount that has changed; returns whether the least or the most has.
    fn replace(&mut self, place: usize, amount: u32) -> bool {
        let (ends, amounts) = ([self.least, self.most], &self.amounts);
        let count = |end| amounts.iter().filter(|amount| **amount == end).count();
        let with_ends = self.with_ends.get_or_insert_with(|| ends.map(count));
        let before = std::mem::replace(&mut self.amounts[place], amount);
        for (with, end) in with_ends.iter_mut().zip(ends) {
            *with -= usize::from(before == end);
            *with += usize::from(amount == end);
        }
        amount < self.least || amount > self.most || with_ends.contains(&0)
    }

    /// Finds the least and the most, and scores all.
    fn compare(&mut self, scores: &mut [f64]) {
        self.with_ends = None;
        let ends = (u32::MAX, 0);
        (self.least, self.most) =
            self.amounts.iter().fold(ends, |(least, most), n| (least.min(*n), most.max(*n)));
        let (least, most) = (self.least, self.most);
        let score = |amount| score_of(amount, least, most);
        if (most - least) as usize >= self.amounts.len() / 4 {
            for (place, amount) in scores.iter_mut().zip(&self.amounts) {
                *place = score(*amount);
            }
            return;
        }
        // A division for each amount that there is, not for each instance.
        self.levels.clear();
        self.levels.extend((least..=most).map(score));
        for (place, amount) in scores.iter_mut().zip(&self.amounts) {
            *place = self.levels[(amount - least) as usize];
        }
    }
}

fn score_of(amount: u32, least: u32, most: u32) -> f64 {
    if least == most { 1.0 } else { f64::from(most - amount) / f64::from(most - least) }
}

impl<A: Amount + 'static> Scorer for Relative<A> {
    fn score(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.amounts.clear();
        self.amounts.extend(cluster.instances.iter().map(A::amount));
        self.compare(scores);
    }

    fn rescore(
        &mut self,
        _: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        changed: &[usize],
        scores: &mut [f64],
    ) -> Rescored<'_> {
        let mut moved = false;
        for &place in changed {
            moved |= self.replace(place, A::amount(&cluster.instances[place]));
        }
        if moved {
            self.compare(scores);
            return Rescored::All;
        }
        for &place in changed {
            scores[place] = score_of(self.amounts[place], self.least, self.most);
        }
        Rescored::Changed(&[])
    }
}
