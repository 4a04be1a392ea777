//! `blis capacity --report`: what was found, on one page.

use super::{json, tables};
use crate::markup::{escaped, push};
use crate::page::{Figure, digits, drawn, embedded, plots, section, table};
use crate::report::json::text;
use crate::study::quoted;
use blis_lab::capacity::{Answer, Findings, Search, Slo};
use blis_lab::stats::Estimate;

/// The page.
pub(super) fn page(search: &Search, findings: &Findings) -> String {
    let title = tables::question(search);
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"faint\">{}.</p>\n</header>\n<main>\n",
        escaped(&title),
        escaped(tables::conditions(search, findings).trim_end())
    );
    let mut told = String::new();
    for line in findings.answers.iter().flat_map(|answer| tables::told(search, answer)) {
        push(&mut told, format_args!("<p>{}</p>", escaped(line.trim_end())));
    }
    let answers = table(&tables::summary(search, findings)) + &told;
    section(&mut body, "Capacity", &(answers + &plots(&capacities(search, findings))));
    let slo = search.question.slo.iter().enumerate();
    let curves: Vec<Figure> =
        slo.filter_map(|(number, slo)| curve(search, findings, number, slo)).collect();
    let about = "<p class=\"faint\">Means over seeds with intervals; a full dot meets all SLOs with \
                 confidence, the dashed line is what is asked.</p>\n";
    let plots = plots(&curves);
    section(
        &mut body,
        "How it goes",
        &if plots.is_empty() { plots } else { about.to_owned() + &plots },
    );
    let grids = findings.answers.iter().filter_map(|answer| tables::curve(search, answer));
    section(&mut body, "Points", &grids.map(|grid| table(&grid)).collect::<String>());
    push(
        &mut body,
        format_args!("</main>\n<footer><p>blis {}</p></footer>", env!("CARGO_PKG_VERSION")),
    );
    body.push_str(&embedded("findings", &text(&json::object(search, findings))));
    drawn(&title, &body)
}

/// The capacities, with intervals.
fn capacities(search: &Search, findings: &Findings) -> Vec<Figure> {
    let row = |answer: &Answer| {
        let Estimate { mean, low, high, .. } = answer.estimate?;
        let numbers = [mean, low, high].map(digits).join(",");
        Some(format!("{},{numbers}\n", quoted(&answer.name)))
    };
    let rows: String = findings.answers.iter().filter_map(row).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    vec![Figure {
        kind: "interval",
        title: format!("capacity, {}", tables::unit(search)),
        file: "capacity".to_owned(),
        csv: format!("strategy,mean,low,high\n{rows}"),
        about: vec![("unit", tables::unit(search).to_owned()), ("names", "strategy".to_owned())],
        wide: false,
    }]
}

/// One SLO over what is varied.
fn curve(search: &Search, findings: &Findings, number: usize, slo: &Slo) -> Option<Figure> {
    let mut csv = "strategy,value,mean,low,high,verdict\n".to_owned();
    let mut bound = None;
    for answer in &findings.answers {
        for point in &answer.points {
            let effect = &point.slo[number].effect;
            let Some(Estimate { mean, low, high, .. }) = effect.estimate else { continue };
            bound = effect.at_most.or(effect.at_least);
            let numbers = [point.value, mean, low, high].map(digits).join(",");
            let line = format!("{},{numbers},{}", quoted(&answer.name), point.standing.name());
            push(&mut csv, format_args!("{line}"));
        }
    }
    let unit = findings.answers.iter().flat_map(|answer| &answer.points).next()?;
    let unit = unit.slo[number].effect.unit.to_owned();
    Some(Figure {
        kind: "curve",
        title: slo.text.clone(),
        file: slo.text.clone(),
        csv,
        about: vec![
            ("unit", unit),
            ("names", "strategy".to_owned()),
            ("across", tables::unit(search).to_owned()),
            ("bound", bound.map(digits).unwrap_or_default()),
        ],
        wide: false,
    })
}
