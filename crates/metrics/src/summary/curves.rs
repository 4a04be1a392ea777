//! The distributions of latencies, for those who draw them.
//!
//! Only the summary calls it, once at the end of a run and only if it was asked to.

use super::{NEVER, Row, Summary};
use crate::report::{Curves, Distributions};
use crate::sample::{Groups, distribution};
use blis_core::SloClass;

impl Summary {
    /// The distributions of all requests and of each class, whose rows are in `by_class`.
    pub(super) fn distributions(&self, by_class: &Groups) -> Distributions {
        let cluster = curves(self.rows.iter(), self.gaps.all().curve().as_ref());
        let mut seen: Vec<SloClass> = SloClass::ALL.into_iter().collect();
        seen.retain(|class| self.classes[class.index()].counts.offered > 0);
        if seen.len() < 2 {
            return Distributions { cluster, ..Distributions::default() };
        }
        let class = |class: SloClass| {
            let rows = by_class.members(class.index()).map(|index| &self.rows[index]);
            (class, curves(rows, self.gaps.column(class.index()).curve().as_ref()))
        };
        let classes = seen.into_iter().map(class).collect();
        Distributions { cluster, classes, over_time: None }
    }
}

fn curves<'a>(rows: impl Iterator<Item = &'a Row> + Clone, gaps: Option<&[f64; 101]>) -> Curves {
    let ttft: Vec<u64> = rows.clone().filter(|row| row.first_token).map(Row::ttft).collect();
    let e2e: Vec<u64> = rows.map(|row| row.e2e).filter(|&e2e| e2e != NEVER).collect();
    Curves {
        ttft_ms: ms(distribution(&ttft).curve().as_ref()),
        itl_ms: ms(gaps),
        e2e_ms: ms(distribution(&e2e).curve().as_ref()),
    }
}

/// Nanoseconds as milliseconds of six digits.
fn ms(nanos: Option<&[f64; 101]>) -> Vec<f64> {
    let rounded = |nanos: f64| {
        // Through text, because that is rounded in the same way everywhere.
        format!("{:.5e}", nanos / 1e6).parse().expect("what was formatted is a number")
    };
    nanos.map_or_else(Vec::new, |nanos| nanos.map(rounded).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ttft: u64, e2e: u64) -> Row {
        Row {
            e2e,
            split: [ttft, 0, 0, 0, 0, 0],
            request: 0,
            tenant: 0,
            instance: 0,
            output_tokens: 0,
            class: SloClass::Standard,
            first_token: ttft != NEVER,
            counts: true,
        }
    }

    #[test]
    fn a_curve_goes_from_the_least_to_the_most_with_six_digits() {
        let rows: Vec<Row> = (0..=1_000).map(|n| row(n * 1_234_567, NEVER)).collect();
        let Curves { ttft_ms, itl_ms, e2e_ms } = curves(rows.iter(), None);
        assert_eq!((ttft_ms.len(), itl_ms.len(), e2e_ms.len()), (101, 0, 0));
        assert_eq!((ttft_ms[0], ttft_ms[1], ttft_ms[100]), (0.0, 12.3457, 1_234.57));
        assert!(ttft_ms.is_sorted());
    }
}
