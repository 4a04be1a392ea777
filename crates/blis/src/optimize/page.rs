//! `blis optimize --report`: what a search has found, on one page.

mod figures;

use super::{heading, json, tables, workloads};
use crate::markup::{escaped, push};
use crate::page::{drawn, embedded, plots, section, table};
use crate::report::grid::Grid;
use crate::report::json::text;
use crate::study::entry;
use blis_lab::optimize::{Call, Findings, Search};

/// The page.
pub(super) fn page(search: &Search, findings: &Findings) -> String {
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"faint\">{}</p>\n</header>\n<main>\n",
        escaped(&search.question),
        escaped(tables::conditions(search, findings).trim_end())
    );
    section(&mut body, "What was found", &found(search, findings));
    let about = "<p class=\"faint\">The best legal value so far on the seeds of the search; a full \
                 dot is a point that met the constraints. The dashed line is the hand-set \
                 point.</p>\n";
    let curves = plots(&figures::progress(search, findings));
    section(&mut body, "How the search went", &with(about, &curves));
    let about = "<p class=\"faint\">Pairs of objectives. A ring is what the search measured, the dot \
                 at the end of its line what fresh seeds gave; small dots are other legal \
                 points.</p>\n";
    section(&mut body, "The front", &with(about, &plots(&figures::fronts(search, findings))));
    let about = "<p class=\"faint\">What was found over the hand-set point, in each workload, on fresh \
                 seeds. The dashed tick is no change.</p>\n";
    section(&mut body, "Workloads", &with(about, &plots(&figures::payers(search, findings))));
    let about = "<p class=\"faint\">What is bounded, as a multiple of its bound, on fresh seeds. The \
                 dashed tick is the bound.</p>\n";
    section(&mut body, "Constraints", &with(about, &plots(&figures::slack(search, findings))));
    let about = "<p class=\"faint\">The share of the variance that each parameter is part of, with \
                 its standard error.</p>\n";
    let matters = plots(&figures::importance(search, findings));
    section(&mut body, "What matters", &with(about, &matters));
    let about = "<p class=\"faint\">The whole range of each number that was searched. The thick bar \
                 is expected to be as good within the noise of one measurement, the thin one is not \
                 known to be worse than that; the others stay as found. The dot is what was found, \
                 the tick the hand-set value.</p>\n";
    section(&mut body, "What is as good", &with(about, &plots(&figures::ranges(search, findings))));
    section(&mut body, "All points", &table(&points(search, findings)));
    push(
        &mut body,
        format_args!("</main>\n<footer><p>blis {}</p></footer>", env!("CARGO_PKG_VERSION")),
    );
    body.push_str(&embedded("findings", &text(&json::object(search, findings))));
    drawn(&search.question, &body)
}

/// `content` with what has to be said about it, unless there is none.
fn with(about: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { [about, content].concat() }
}

fn found(search: &Search, findings: &Findings) -> String {
    let said = |text: String| match text.trim() {
        "" => String::new(),
        text => format!("<p>{}</p>\n", escaped(text)),
    };
    let by_workload = || workloads::tables(search, findings).iter().map(table).collect::<String>();
    match &findings.chosen[..] {
        [] => "<p>No point met the constraints: nothing is recommended.</p>\n".to_owned(),
        [chosen] if search.objectives.len() == 1 => [
            table(&tables::outcome(search, findings)),
            by_workload(),
            tables::held(search, findings).map(|grid| table(&grid)).unwrap_or_default(),
            said(tables::verdict(search, chosen)),
            table(&tables::parameters(search, findings, chosen)),
        ]
        .concat(),
        _ => [
            table(&tables::front(search, findings)),
            by_workload(),
            said(tables::volume(search, findings)),
            table(&tables::shares(search, findings)),
        ]
        .concat(),
    }
}

/// Every call, with what is free.
fn points(search: &Search, findings: &Findings) -> Grid {
    let mut header = vec!["call".to_owned()];
    header.extend(search.objectives.iter().map(|objective| heading(&objective.number)));
    header.extend(["seeds", "legal"].map(str::to_owned));
    if search.points.candidates.len() > 1 {
        header.push("strategy".to_owned());
    }
    header.push("parameters".to_owned());
    let row = |(number, call): (usize, &Call)| {
        let mut row = vec![(number + 1).to_string()];
        for (objective, mean) in search.objectives.iter().zip(&call.means) {
            row.push(entry(&objective.number.metric, mean.map(|mean| (mean, None))));
        }
        let legal = match (&call.refused, call.feasible) {
            (Some(_), _) => "no scenario",
            (None, true) => "yes",
            (None, false) => "no",
        };
        row.extend([call.seeds.to_string(), legal.to_owned()]);
        if search.points.candidates.len() > 1 {
            row.push(search.points.candidates[call.candidate].name().to_owned());
        }
        row.push(tables::free(search, call.candidate, &call.settings));
        row
    };
    Grid {
        title: String::new(),
        header,
        rows: findings.calls.iter().enumerate().map(row).collect(),
    }
}
