//! A search as a drawing: what each call measured, and the best so far.

use super::heading;
use crate::report::plot::{Chart, Panel};
use blis_lab::optimize::{Call, Findings, Search};

/// Calls between two labels.
const LABELLED: usize = 5;

/// The first objective, call by call.
pub(super) fn drawing(search: &Search, findings: &Findings) -> String {
    let calls = &findings.calls;
    let measured = |call: &Call| call.means.first().copied().flatten().map(|mean| (mean, 0.0));
    let best = |count: usize| Findings::best(calls, count).map(|(_, mean)| (mean, 0.0));
    let label = |number: usize| match number % LABELLED {
        0 => number.to_string(),
        _ if number == 1 => number.to_string(),
        _ => String::new(),
    };
    let chart = Chart {
        title: heading(&search.objectives[0].number),
        x: "call".to_owned(),
        levels: (1..=calls.len()).map(label).collect(),
        lines: vec!["measured".to_owned(), "best that met the constraints".to_owned()],
        panels: vec![Panel {
            name: String::new(),
            lines: vec![
                calls.iter().map(measured).collect(),
                (1..=calls.len()).map(best).collect(),
            ],
        }],
    };
    chart.svg()
}
