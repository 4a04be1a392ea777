//! Where the time to first token of two arms went, part by part.

use crate::stats::{Estimate, estimate};
use blis_core::SloClass;
use blis_core::math::float;
use blis_metrics::SplitMs;
use blis_scenario::row::Row;

/// Intervals leave out the truth with this probability, each by itself.
const LEVEL: f64 = 0.05;

/// One part of the mean time to first token, in two arms.
#[derive(Clone, Debug, PartialEq)]
pub struct PartDifference {
    /// `gateway`, `queue`, ..., or `ttft` for the sum of all.
    pub part: &'static str,
    /// Its mean in the arm, in ms.
    pub arm: f64,
    /// Its mean in the reference, in ms.
    pub reference: f64,
    /// The arm less the reference, seed by seed; absent for fewer than two seeds.
    pub difference: Option<Estimate>,
}

/// The parts of the mean time to first token of the rows `arm` and `reference`, seed by seed, of
/// one class or of all requests; their sum is last. Seeds in which one of them has none are left
/// out; `None` if all are.
pub fn decompose(
    arm: &[Row],
    reference: &[Row],
    class: Option<SloClass>,
) -> Option<Vec<PartDifference>> {
    let both =
        |(arm, reference): (&Row, &Row)| Some((split(arm, class)?, split(reference, class)?));
    let pairs: Vec<([Named; 7], [Named; 7])> = arm.iter().zip(reference).filter_map(both).collect();
    let first = pairs.first()?;
    let n = float(pairs.len() as u64);
    let part = |index: usize| {
        let differences: Vec<f64> =
            pairs.iter().map(|(arm, reference)| arm[index].1 - reference[index].1).collect();
        PartDifference {
            part: first.0[index].0,
            arm: pairs.iter().map(|(arm, _)| arm[index].1).sum::<f64>() / n,
            reference: pairs.iter().map(|(_, reference)| reference[index].1).sum::<f64>() / n,
            difference: estimate(&differences, LEVEL),
        }
    };
    Some((0..7).map(part).collect())
}

type Named = (&'static str, f64);

/// The parts and their sum.
fn split(row: &Row, class: Option<SloClass>) -> Option<[Named; 7]> {
    let decomposition = &row.report.decomposition;
    let stats = match class {
        None => decomposition.cluster.as_ref()?,
        Some(class) => {
            let found = decomposition.classes.iter().find(|(other, _)| *other == class);
            found.map(|(_, stats)| stats)?
        }
    };
    let mean: SplitMs = stats.mean;
    let parts = mean.parts();
    Some(std::array::from_fn(|index| {
        parts.get(index).copied().unwrap_or_else(|| ("ttft", mean.total()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_metrics::SplitStats;

    fn row(queue: f64, prefill: f64) -> Row {
        let mean = SplitMs { queue, prefill, ..SplitMs::default() };
        let mut row = Row::default();
        let stats = SplitStats { mean, ..SplitStats::default() };
        row.report.decomposition.classes = vec![(SloClass::Critical, stats)];
        row
    }

    #[test]
    fn the_difference_is_told_part_by_part() {
        let arm = [row(10.0, 5.0), row(12.0, 5.0)];
        let reference = [row(20.0, 4.0), row(24.0, 4.0)];
        let found = decompose(&arm, &reference, Some(SloClass::Critical)).expect("samples");
        let of = |name| {
            let part = found.iter().find(|part| part.part == name).expect("a part");
            (part.arm, part.reference, part.difference.expect("two seeds").mean)
        };
        assert_eq!(of("queue"), (11.0, 22.0, -11.0));
        assert_eq!(of("prefill"), (5.0, 4.0, 1.0));
        assert_eq!(of("ttft"), (16.0, 26.0, -10.0));
        assert_eq!(decompose(&arm, &reference, None), None, "no sample of all requests");
    }
}
