//! `blis study --report`: all that a study found, on one page.

mod figures;

use super::{conditions, grids, verdicts};
use crate::markup::{escaped, push};
use crate::page::{Figure, drawn, embedded, plots, section, table};
use crate::report::grid::Grid;
use crate::report::json::text;
use blis_core::math::float;
use blis_lab::hypothesis::Hypothesis;
use blis_lab::study::{Findings, Study, json};
use blis_lab::verdict::{Effect, Scale, Verdict, bound, number};
use std::collections::BTreeSet;

/// The page.
pub(super) fn page(study: &Study, findings: &Findings) -> String {
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"faint\">{}.</p>\n</header>\n<main>\n",
        escaped(&study.question),
        escaped(conditions(study, findings).trim_end())
    );
    body.push_str(&cards(study, findings));
    section(&mut body, "Numbers", &tables(&grids::every(study, findings)));
    section(&mut body, "Numbers by cell", &plots(&figures::numbers(study, findings)));
    let about = "<p class=\"faint\">The share of requests that had their first token within a time; \
                 each percentile is the mean over seeds.</p>\n";
    let curves = plots(&figures::distributions(study, findings));
    section(&mut body, "Time to first token", &with(about, &curves));
    let about = "<p class=\"faint\">Means over seeds of the parts that add up to the time to first \
                 token, on average and at its 99th percentile.</p>\n";
    let parts = plots(&figures::parts(study, findings));
    section(&mut body, "Where the time went", &with(about, &parts));
    let about = "<p class=\"faint\">How often each mechanism of the policies acted in a run, mean \
                 over seeds.</p>\n";
    let fired = mechanisms(study, findings).map(|grid| table(&grid)).unwrap_or_default();
    section(&mut body, "Mechanisms", &with(about, &fired));
    section(&mut body, "Warnings of the runs", &warnings(study, findings));
    section(&mut body, "Discussion", &paragraphs(study.discussion.as_deref().unwrap_or_default()));
    push(&mut body, format_args!("</main>\n<footer><p>blis {}</p></footer>", version()));
    body.push_str(&embedded("findings", &text(&json::object(study, findings))));
    drawn(&study.question, &body)
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// `content` with what has to be said about it, unless there is none.
fn with(about: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { [about, content].concat() }
}

/// Text with empty lines between its paragraphs.
fn paragraphs(text: &str) -> String {
    let parts = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    let parts: Vec<String> = parts.map(|part| format!("<p>{}</p>\n", escaped(part))).collect();
    parts.concat()
}

fn tables(grids: &[Grid]) -> String {
    grids.iter().map(table).collect()
}

/// A card for each verdict; empty if nothing was claimed.
fn cards(study: &Study, findings: &Findings) -> String {
    if study.hypotheses.is_empty() {
        return String::new();
    }
    let all: String = study.hypotheses.iter().zip(&findings.verdicts).map(card).collect();
    format!(
        "<section>\n<h2>Verdicts</h2>\n<p class=\"faint\">The study is {}.</p>\n\
         <div class=\"cards\">\n{all}</div>\n</section>\n",
        verdicts::CAUTION
    )
}

fn card((hypothesis, verdict): (&Hypothesis, &Verdict)) -> String {
    let Hypothesis { name, text, because, .. } = hypothesis;
    let because = because.as_ref().map(|text| format!("<p>Because {}.</p>\n", escaped(text)));
    let outcome = verdict.outcome.name();
    let figures: String = figures::effects(name, verdict).iter().map(Figure::html).collect();
    format!(
        "<article class=\"card {outcome}\">\n<h3><span class=\"badge\">{outcome}</span> {}</h3>\n\
         <p><code>{}</code></p>\n{}<p>{}.</p>\n{}{figures}</article>\n",
        escaped(name),
        escaped(text),
        because.unwrap_or_default(),
        escaped(&verdict.why),
        effects(verdict),
    )
}

/// The effects that a claim is about, in words.
fn effects(verdict: &Verdict) -> String {
    let item = |effect: &Effect| {
        let unit = if effect.unit.is_empty() { String::new() } else { format!(" {}", effect.unit) };
        let found = match effect.estimate {
            Some(found) => {
                let (low, high) = (number(found.low), number(found.high));
                format!("<b>{}{unit}</b> ({low} to {high}){}", number(found.mean), asked(effect))
            }
            None => "too few samples".to_owned(),
        };
        format!("<li><code>{}</code><br/>{found}</li>\n", escaped(&compared(effect)))
    };
    let items: String = verdict.effects.iter().map(item).collect();
    format!("<ul class=\"effects\">\n{items}</ul>\n")
}

/// What an effect is of.
fn compared(effect: &Effect) -> String {
    let Effect { left, right, scale, .. } = effect;
    match scale {
        Scale::Ratio => format!("{left} / {right}"),
        Scale::Value => left.clone(),
        Scale::Difference => format!("{left} - {right}"),
    }
}

fn asked(effect: &Effect) -> String {
    match (effect.at_least, effect.at_most) {
        (Some(low), Some(high)) => format!(", asked: {} to {}", bound(low), bound(high)),
        (Some(low), None) => format!(", asked: at least {}", bound(low)),
        (None, Some(high)) => format!(", asked: at most {}", bound(high)),
        (None, None) => String::new(),
    }
}

/// How often mechanisms acted: one row a cell, one column a mechanism that acted in any.
fn mechanisms(study: &Study, findings: &Findings) -> Option<Grid> {
    let all = findings.rows.iter().flatten().flat_map(|row| &row.report.mechanisms);
    let names: BTreeSet<&String> =
        all.filter(|(_, times)| **times > 0).map(|(name, _)| name).collect();
    if names.is_empty() {
        return None;
    }
    let row = |(cell, rows): (&blis_lab::study::Cell, &Vec<blis_scenario::Row>)| {
        let mean = |name: &&String| {
            let times = rows.iter().filter_map(|row| row.report.mechanisms.get(*name));
            let times: Vec<u64> = times.copied().collect();
            match times.len() {
                // Its policy is not in this cell.
                0 => "-".to_owned(),
                runs => number(float(times.iter().sum()) / float(runs as u64)),
            }
        };
        std::iter::once(cell.levels.join(", ")).chain(names.iter().map(mean)).collect()
    };
    Some(Grid {
        title: String::new(),
        header: std::iter::once(study.factors.join(", "))
            .chain(names.iter().map(|name| (*name).clone()))
            .collect(),
        rows: study.cells.iter().zip(&findings.rows).map(row).collect(),
    })
}

/// What the numbers do not show, once for all cells that have it.
fn warnings(study: &Study, findings: &Findings) -> String {
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    for (cell, rows) in study.cells.iter().zip(&findings.rows) {
        let name = cell.levels.join(", ");
        for warning in rows.iter().flat_map(|row| &row.warnings) {
            match told.iter_mut().find(|(text, _)| text == warning) {
                None => told.push((warning, vec![name.clone()])),
                Some((_, cells)) if cells.contains(&name) => {}
                Some((_, cells)) => cells.push(name.clone()),
            }
        }
    }
    let item = |(text, cells): &(&str, Vec<String>)| {
        let places = match &cells[..] {
            [one] if one.is_empty() => String::new(),
            cells => format!(" ({})", cells.join("; ")),
        };
        format!("<li>{}<span class=\"faint\">{}</span></li>\n", escaped(text), escaped(&places))
    };
    let items: String = told.iter().map(item).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}
