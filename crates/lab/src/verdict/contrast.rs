//! Contrasts: what a comparison looks at in each seed, and what it asks of it.
//!
//! Numbers of one seed belong together, because all arms are sent the same requests: they are put
//! into one number first, and seeds are averaged then. Two positive numbers are compared by their
//! ratio (the geometric mean over seeds), a number with a bound by itself, and everything else by
//! its difference.

use super::{Evidence, bound};
use crate::design::Design;
use crate::hypothesis::{Claim, Comparison, Expr, Reference, Relation};
use crate::metric::Metric;
use crate::stats::{Estimate, by_student, estimate};
use blis_core::math::ln;

/// What is the same within this share is equivalent.
pub(crate) const EQUIVALENT: f64 = 0.02;

/// One comparison at one level of everything that it does not name.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    comparison: &'a Comparison,
    free: Vec<usize>,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The left divided by the right one.
    Ratio,
    /// The left one itself, against a number.
    Value,
    /// The left less the right one.
    Difference,
}

impl Scale {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Scale::Ratio => "ratio",
            Scale::Value => "value",
            Scale::Difference => "difference",
        }
    }
}

/// What a comparison is about, with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// What is compared.
    pub left: String,
    /// With what.
    pub right: String,
    /// Its unit; empty for ratios and counts.
    pub unit: &'static str,
    /// How.
    pub scale: Scale,
    /// The effect on that scale; `None` for fewer than two seeds with samples.
    pub estimate: Option<Estimate>,
    /// What the claim asks: at least this.
    pub at_least: Option<f64>,
    /// What the claim asks: at most this.
    pub at_most: Option<f64>,
    /// Seeds without a sample on one of the sides.
    pub missing: usize,
}

impl Effect {
    /// What it is of, e.g. `ttft_p99(a) / ttft_p99(b)`.
    pub fn compared(&self) -> String {
        let Effect { left, right, .. } = self;
        match self.scale {
            Scale::Ratio => format!("{left} / {right}"),
            Scale::Value => left.clone(),
            Scale::Difference => format!("{left} - {right}"),
        }
    }

    /// What the claim says of it, e.g. `<= 1`.
    pub fn claimed(&self) -> Option<String> {
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) if low < high => {
                Some(format!("{} to {}", bound(low), bound(high)))
            }
            (Some(low), None) => Some(format!(">= {}", bound(low))),
            (None, Some(high)) => Some(format!("<= {}", bound(high))),
            _ => None,
        }
    }
}

/// The values of a part and what is asked of them.
#[derive(Clone, Debug)]
pub(super) struct Contrast {
    scale: Scale,
    /// One a seed, on the scale; logarithms of ratios.
    values: Vec<f64>,
    checks: Vec<Check>,
    /// What is asked of equivalent sides; empty where the claim does not compare two of them.
    equal: Vec<Check>,
    missing: usize,
}

/// That the mean of values is on one side of a bound.
#[derive(Clone, Debug)]
struct Check {
    values: Vec<f64>,
    bound: f64,
    relation: Relation,
}

impl<'a> Part<'a> {
    /// The parts of `claim`: each comparison, at each combination of what it does not name.
    pub(super) fn all(claim: &'a Claim, design: &Design) -> Vec<Part<'a>> {
        claim.parts.iter().flat_map(|comparison| Part::of(comparison, design)).collect()
    }

    fn of(comparison: &'a Comparison, design: &Design) -> Vec<Part<'a>> {
        let free = places(&comparison.references(), design).into_iter();
        free.map(|free| Part { comparison, free }).collect()
    }

    /// The cells that it looks at.
    pub(super) fn cells(&self, design: &Design) -> Vec<usize> {
        self.cells_where(design, |_| true)
    }

    /// The cells whose latencies it looks at.
    pub(super) fn latencies_of(&self, design: &Design) -> Vec<usize> {
        self.cells_where(design, Metric::is_latency)
    }

    fn cells_where(&self, design: &Design, counts: fn(&Metric) -> bool) -> Vec<usize> {
        let references = self.comparison.references().into_iter();
        let counted = references.filter(|reference| counts(&reference.metric));
        counted.map(|reference| design.cell(&reference.at(&self.free))).collect()
    }

    /// The first cell of each side.
    pub(super) fn sides(&self, design: &Design) -> Vec<usize> {
        let Comparison { left, right, .. } = self.comparison;
        let first = |side: &Expr| {
            let cell = |reference: &&Reference| design.cell(&reference.at(&self.free));
            side.references().first().map(cell)
        };
        [left, right].into_iter().filter_map(first).collect()
    }

    fn value(
        &self,
        expr: &Expr,
        design: &Design,
        evidence: &dyn Evidence,
        seed: usize,
    ) -> Option<f64> {
        let of = |reference: &Reference| {
            evidence.value(design.cell(&reference.at(&self.free)), seed, &reference.metric)
        };
        expr.value(&of)
    }

    /// What it looks at in the first `seeds` seeds.
    pub(super) fn contrast(
        &self,
        design: &Design,
        evidence: &dyn Evidence,
        seeds: usize,
    ) -> Contrast {
        let Comparison { left, relation, right } = self.comparison;
        let both = |seed| {
            let side = |expr| self.value(expr, design, evidence, seed);
            Some((side(left)?, side(right)?))
        };
        let pairs: Vec<(f64, f64)> = (0..seeds).filter_map(both).collect();
        let missing = seeds - pairs.len();
        let scale = self.scale(&pairs);
        let unscaled = |side: &Expr| side.factored().0.total_cmp(&1.0).is_eq();
        let two = scale != Scale::Value && unscaled(left) && unscaled(right);
        let relations = [Some(*relation), two.then_some(Relation::About(EQUIVALENT))];
        let checks = |check: &dyn Fn(f64, Relation) -> Check| {
            relations.map(|asked| {
                let checks = asked.map(|asked| checks(asked, |side| check(side, asked)));
                checks.unwrap_or_default()
            })
        };
        let (values, [checks, equal]) = match scale {
            Scale::Value => {
                let bound = right.constant().unwrap_or_default();
                let values: Vec<f64> = pairs.iter().map(|&(left, _)| left).collect();
                let checks = checks(&|side, relation| Check {
                    values: values.clone(),
                    bound: bound * side,
                    relation,
                });
                (values, checks)
            }
            Scale::Ratio => {
                let asked = right.factored().0 / left.factored().0;
                let log = |&(left, right): &(f64, f64)| ln(left / right) + ln(asked);
                let values: Vec<f64> = pairs.iter().map(log).collect();
                let checks = checks(&|side, relation| Check {
                    values: values.clone(),
                    bound: ln(asked * side),
                    relation,
                });
                (values, checks)
            }
            Scale::Difference => {
                let values = pairs.iter().map(|&(left, right)| left - right).collect();
                let checks = checks(&|side, relation| Check {
                    values: pairs.iter().map(|&(left, right)| left - side * right).collect(),
                    bound: 0.0,
                    relation,
                });
                (values, checks)
            }
        };
        Contrast { scale, values, checks, equal, missing }
    }

    fn scale(&self, pairs: &[(f64, f64)]) -> Scale {
        let Comparison { left, right, .. } = self.comparison;
        if right.is_fixed() {
            return Scale::Value;
        }
        let factors = left.factored().0 > 0.0 && right.factored().0 > 0.0;
        let positive = pairs.iter().all(|&(left, right)| left > 0.0 && right > 0.0);
        if factors && positive && !left.subtracts() && !right.subtracts() {
            Scale::Ratio
        } else {
            Scale::Difference
        }
    }

    /// Its effect in words and numbers.
    pub(super) fn effect(&self, design: &Design, contrast: &Contrast, level: f64) -> Effect {
        let Comparison { left, relation, right } = self.comparison;
        let (left_factor, left_rest) = left.factored();
        let (right_factor, right_rest) = right.factored();
        let (left, right, asked) = match contrast.scale {
            Scale::Ratio => (left_rest, right_rest, right_factor / left_factor),
            Scale::Value => (left, right, right.constant().unwrap_or_default()),
            Scale::Difference => (left, right, 0.0),
        };
        let unit = match contrast.scale {
            Scale::Ratio => "",
            Scale::Value | Scale::Difference => unit(left),
        };
        let width = match (relation, contrast.scale) {
            (Relation::About(share), Scale::Ratio | Scale::Value) => asked.abs() * share,
            _ => 0.0,
        };
        let (least, most) = match relation {
            Relation::Below | Relation::AtMost => (None, Some(asked)),
            Relation::Above | Relation::AtLeast => (Some(asked), None),
            Relation::About(_) => (Some(asked - width), Some(asked + width)),
        };
        // What is never negative has no interval below 0.
        let is_negative = contrast.values.iter().any(|&value| value < 0.0);
        let shown = |estimate: Estimate| match contrast.scale {
            Scale::Ratio => estimate.exp(),
            Scale::Value if !is_negative => Estimate { low: estimate.low.max(0.0), ..estimate },
            Scale::Value | Scale::Difference => estimate,
        };
        Effect {
            left: self.filled(left, design).text(design),
            right: self.filled(right, design).text(design),
            unit,
            scale: contrast.scale,
            estimate: estimate(&contrast.values, level).map(shown),
            at_least: least,
            at_most: most,
            missing: contrast.missing,
        }
    }

    /// `expr` with the places written out that it leaves open.
    fn filled(&self, expr: &Expr, design: &Design) -> Expr {
        match expr {
            Expr::Number(..) => expr.clone(),
            Expr::Value(reference) => {
                let mut reference = reference.clone();
                for (index, factor) in design.factors.iter().enumerate() {
                    if factor.levels.len() > 1 {
                        reference.levels[index].get_or_insert(self.free[index]);
                    }
                }
                Expr::Value(reference)
            }
            Expr::Binary(left, op, right) => Expr::Binary(
                Box::new(self.filled(left, design)),
                *op,
                Box::new(self.filled(right, design)),
            ),
        }
    }
}

/// What the first `seeds` seeds of a single cell say about a comparison that names no place:
/// whether it holds at this level, and by how much.
pub(crate) fn seen(
    comparison: &Comparison,
    evidence: &dyn Evidence,
    seeds: usize,
    level: f64,
) -> (Option<bool>, Effect) {
    let design = Design::default();
    let part = Part { comparison, free: Vec::new() };
    let contrast = part.contrast(&design, evidence, seeds);
    (contrast.answer(level), part.effect(&design, &contrast, level))
}

/// Each combination of the levels that not all of `references` name, once: what all name is at its
/// first level.
pub(super) fn places(references: &[&Reference], design: &Design) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for (index, factor) in design.factors.iter().enumerate() {
        let open = references.iter().any(|reference| reference.levels[index].is_none());
        let levels = if open { factor.stated } else { 1 };
        let at_each =
            |free: Vec<usize>| (0..levels).map(move |level| [&free[..], &[level]].concat());
        all = all.into_iter().flat_map(at_each).collect();
    }
    all
}

/// One check, or two for a band around the bound: from below and from above.
fn checks(relation: Relation, check: impl Fn(f64) -> Check) -> Vec<Check> {
    match relation {
        Relation::About(share) => vec![
            Check { relation: Relation::AtLeast, ..check(1.0 - share) },
            Check { relation: Relation::AtMost, ..check(1.0 + share) },
        ],
        _ => vec![check(1.0)],
    }
}

/// The unit of the first metric in `expr`.
fn unit(expr: &Expr) -> &'static str {
    expr.references().first().map_or("", |reference| reference.metric.unit())
}

impl Contrast {
    /// Whether both sides are equivalent at this level.
    pub(super) fn is_equivalent(&self, level: f64) -> bool {
        let holds = |check: &Check| check.answer(level) == Some(true);
        !self.equal.is_empty() && self.equal.iter().all(holds)
    }

    /// Whether it holds at this level; `None`: nobody can tell.
    pub(super) fn answer(&self, level: f64) -> Option<bool> {
        let answers: Vec<Option<bool>> =
            self.checks.iter().map(|check| check.answer(level)).collect();
        if answers.contains(&Some(false)) {
            return Some(false);
        }
        answers.iter().all(|answer| *answer == Some(true)).then_some(true)
    }

    /// How far from undecided it is, in interval widths; what is nearest to its bound is smallest.
    pub(super) fn margin(&self, level: f64) -> f64 {
        let margin = |check: &Check| {
            by_student(&check.values, level).map_or(0.0, |found| {
                let width = (found.high - found.low).max(1e-12 * (1.0 + found.mean.abs()));
                let above = (found.mean - check.bound) / width;
                if matches!(check.relation, Relation::Above | Relation::AtLeast) {
                    above
                } else {
                    -above
                }
            })
        };
        self.checks.iter().map(margin).fold(f64::INFINITY, f64::min)
    }

    /// Whether both sides are the same in every seed.
    pub(super) fn is_equality(&self) -> bool {
        self.scale != Scale::Value
            && !self.values.is_empty()
            && self.values.iter().all(|value| value.abs() < 1e-12)
    }
}

impl Check {
    fn answer(&self, level: f64) -> Option<bool> {
        self.seen(&by_student(&self.values, level)?)?;
        self.seen(&estimate(&self.values, level)?)
    }

    fn seen(&self, &Estimate { low, high, .. }: &Estimate) -> Option<bool> {
        let (holds, fails) = match self.relation {
            Relation::Below => (high < self.bound, low >= self.bound),
            Relation::AtMost | Relation::About(_) => (high <= self.bound, low > self.bound),
            Relation::Above => (low > self.bound, high <= self.bound),
            Relation::AtLeast => (low >= self.bound, high < self.bound),
        };
        if holds || fails { Some(holds) } else { None }
    }
}
