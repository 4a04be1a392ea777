//! Gates that refuse requests which could be served.
//!
//! Refusing is for overload. An arm that refuses requests of a class, where every arm without
//! refusals keeps up with the same requests on as many instances, only does harm, whatever its
//! latencies say.

use super::{Findings, Study};
use crate::stats::estimate;
use blis_core::SloClass;
use blis_core::math::float;
use blis_metrics::Saturation;
use blis_scenario::row::Row;

/// A smaller share of a class is not worth a warning.
const WORTH_TELLING: f64 = 0.01;
/// The probability that a warning is about noise.
const LEVEL: f64 = 0.05;

/// A gate that refuses requests which could be served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeedlessGate {
    /// The cell in which it stands.
    pub cell: usize,
    /// Whom it refuses.
    pub class: SloClass,
    /// The share of the requests of that class that it refuses, mean over seeds.
    pub refused: f64,
    /// A cell in which the same requests are all served.
    pub served_in: usize,
}

impl Study {
    /// The gates that refuse requests which could be served, by cell and class.
    pub fn needless_gates(&self, findings: &Findings) -> Vec<NeedlessGate> {
        let mut found = Vec::new();
        for cell in 0..self.cells.len() {
            let refused = refused_by_class(&findings.rows[cell]);
            if refused.is_empty() {
                continue;
            }
            let open: Vec<usize> = (0..self.cells.len())
                .filter(|&other| self.differ_in_arm(cell, other))
                .filter(|&other| findings.rows[other].iter().all(refuses_nobody))
                .collect();
            let serves = |&other: &usize| findings.rows[other].iter().all(serves_everybody);
            if let (Some(&served_in), true) = (open.first(), open.iter().all(serves)) {
                let gate = |(class, refused)| NeedlessGate { cell, class, refused, served_in };
                found.extend(refused.into_iter().map(gate));
            }
        }
        found
    }

    /// Whether two cells differ in their arms alone, and have as many instances.
    fn differ_in_arm(&self, cell: usize, other: usize) -> bool {
        let [one, two] = [cell, other].map(|cell| &self.cells[cell]);
        let levels = || self.factors.iter().zip(one.levels.iter().zip(&two.levels));
        let others_equal = levels().all(|(factor, (a, b))| factor == "arm" || a == b);
        cell != other && others_equal && one.plan.instances == two.plan.instances
    }
}

fn refuses_nobody(row: &Row) -> bool {
    row.report.cluster.rejected == 0
}

/// Whether nobody is refused, and the cluster keeps up.
pub(crate) fn serves_everybody(row: &Row) -> bool {
    refuses_nobody(row) && row.report.saturation == Some(Saturation::Stable)
}

/// The classes of which more than so much is refused, surely, and how much.
pub(crate) fn refused_by_class(rows: &[Row]) -> Vec<(SloClass, f64)> {
    let share = |row: &Row, wanted: SloClass| {
        let mut classes = row.report.classes.iter();
        classes.find(|(class, _)| *class == wanted).and_then(|(_, section)| section.refused_share())
    };
    let refused = |class: SloClass| {
        let shares: Vec<f64> = rows.iter().filter_map(|row| share(row, class)).collect();
        let mean = shares.iter().sum::<f64>() / float(shares.len() as u64);
        let least = estimate(&shares, LEVEL).map_or(mean, |found| found.low);
        (least > WORTH_TELLING).then_some((class, mean))
    };
    SloClass::ALL.into_iter().filter_map(refused).collect()
}
