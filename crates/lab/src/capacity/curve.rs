//! The curve of one subject: points at rungs around its capacity, each with all seeds.

use super::climb::{Climb, Spot};
use super::points::judge;
use super::search::Stopped;
use super::{Point, Slo, Standing, Vary};
use crate::failure::Failure;
use crate::verdict::number;
use blis_scenario::row::Row;
use std::collections::{BTreeMap, BTreeSet};

/// The curve is shown at these shares of the capacity.
const SHARES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 1.0, 1.05, 1.2];
/// So many instances more and fewer than the answer are shown.
const AROUND: i64 = 2;
/// How often to go further down for a rung that meets with confidence.
const FURTHER: u32 = 8;

/// The points of one subject.
pub(super) struct Curve<'a, 'b> {
    pub(super) slo: &'a [Slo],
    pub(super) number: usize,
    pub(super) climb: &'a mut Climb<'b>,
    pub(super) stopped: &'a Stopped,
    /// By rung.
    pub(super) points: BTreeMap<i64, Point>,
}

impl Curve<'_, '_> {
    /// The hardest rung at which the SLOs hold with confidence, by bisection between what all seeds
    /// meet and what none does.
    pub(super) fn safe(&mut self, least: i64, most: i64) -> Result<Option<i64>, Failure> {
        let (mut low, mut high) = (least, most + 1);
        let mut stride = 1;
        for _ in 0..FURTHER {
            if self.meets(low)? {
                break;
            }
            if low <= self.climb.axis.lowest() {
                return Ok(None);
            }
            (high, low) = (low, (low - stride).max(self.climb.axis.lowest()));
            stride *= 2;
        }
        if !self.meets(low)? {
            return Ok(None);
        }
        high = high.min(self.climb.axis.highest() + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.meets(middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(Some(low))
    }

    fn meets(&mut self, rung: i64) -> Result<bool, Failure> {
        Ok(self.point(rung)?.standing == Standing::Meets)
    }

    fn point(&mut self, rung: i64) -> Result<&Point, Failure> {
        let spots: Vec<Spot> =
            self.stopped.seeds.iter().map(|&seed| (self.number, rung, seed)).collect();
        self.climb.visit(&spots.iter().copied().collect())?;
        let rows: Vec<&Row> = spots.iter().filter_map(|&spot| self.climb.row(spot)).collect();
        let value = self.climb.axis.value(rung);
        let judged = judge(value, self.slo, &rows, self.stopped.level, self.climb.is_trace());
        Ok(self.points.entry(rung).or_insert(judged))
    }

    /// Points that show how the numbers go.
    pub(super) fn shape(&mut self, mean: f64, safe: Option<i64>) -> Result<(), Failure> {
        let axis = self.climb.axis;
        let middle = safe.unwrap_or_else(|| axis.rung(mean));
        let rungs: Vec<i64> = match axis.vary() {
            Vary::Rate => SHARES.iter().map(|share| axis.rung(share * mean)).collect(),
            Vary::Instances => (middle - AROUND..=middle + AROUND).collect(),
        };
        let legal = axis.lowest()..=axis.highest();
        let mut all: BTreeSet<Spot> = BTreeSet::new();
        for &rung in rungs.iter().filter(|rung| legal.contains(rung)) {
            all.extend(self.stopped.seeds.iter().map(|&seed| (self.number, rung, seed)));
        }
        // All at once, so that they run side by side.
        self.climb.visit(&all)?;
        for rung in rungs.into_iter().filter(|rung| legal.contains(rung)) {
            self.point(rung)?;
        }
        Ok(())
    }

    /// What whoever reads the answer must know.
    pub(super) fn doubts(&self, safe: Option<i64>) -> Vec<String> {
        let mut doubts = Vec::new();
        let Some(safe) = safe else {
            doubts.push("no point meets the SLOs with confidence; add seeds".to_owned());
            return doubts;
        };
        let bad = [Standing::Misses, Standing::Saturated];
        let easier = self.points.range(..safe).find(|(_, point)| bad.contains(&point.standing));
        if let Some((_, point)) = easier {
            let value = number(point.value);
            doubts.push(format!(
                "not monotone: at {value}, which should be easier, it {}",
                point.standing.name()
            ));
        }
        let beyond = self.points.range(safe + 1..);
        let short = beyond.filter(|(_, point)| point.standing == Standing::TooShort).count();
        if short > 0 {
            doubts.push(
                "runs above the safe point are too short to be steady; add requests".to_owned(),
            );
        }
        if let Some(share) = self.points.get(&safe).and_then(|point| point.completed)
            && share < 0.995
        {
            doubts.push(format!(
                "{} % of the requests are not completed",
                number(100.0 - 100.0 * share)
            ));
        }
        doubts
    }
}
