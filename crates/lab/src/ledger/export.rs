//! The strategy ledger as a page: every study, what was predicted, what was found.
//!
//! The page is a function of the studies and of the code, so that it can be kept and compared: it
//! has studies by name, each once, and neither times nor paths nor versions.

use super::{StudyCell, StudyEntry};
use crate::interval::Interval;
use crate::metric::Metric;
use blis_scenario::CODE;
use blis_scenario::row::Row;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The page in Markdown.
///
/// # Panics
/// Never: writing to a string cannot fail.
pub fn export(studies: &[StudyEntry]) -> String {
    let studies = latest(studies);
    let mut page = String::from(
        "# Strategy ledger\n\nWritten by `blis ledger export`. A refuted claim is a result too.\n",
    );
    if studies.is_empty() {
        page.push_str("\nNo study has been run yet.\n");
        return page;
    }
    page.push_str("\n| study | question | trials | confirmed | refuted | other |\n");
    page.push_str("|---|---|---:|---:|---:|---:|\n");
    for study in &studies {
        let (finished, wanted) = progress(study);
        let count = |outcome: &str| {
            study.verdicts.iter().filter(|verdict| verdict.outcome == outcome).count()
        };
        let (confirmed, refuted) = (count("confirmed"), count("refuted"));
        let other = study.verdicts.len() - confirmed - refuted;
        let (name, question) = (cell(&study.name), cell(&study.question));
        let trials =
            if finished == wanted { wanted.to_string() } else { format!("{finished} of {wanted}") };
        line(
            &mut page,
            format_args!("| {name} | {question} | {trials} | {confirmed} | {refuted} | {other} |"),
        );
    }
    for study in &studies {
        section(study, &mut page);
    }
    page
}

/// Studies by name. A file that was changed is another study of the same name: the one that this
/// program has run counts, and of several the one that was begun last.
fn latest(studies: &[StudyEntry]) -> Vec<&StudyEntry> {
    let mut by_name: BTreeMap<&str, &StudyEntry> = BTreeMap::new();
    for study in studies {
        let known = by_name.get(study.name.as_str());
        if known.is_none_or(|known| study.code == CODE || known.code != CODE) {
            by_name.insert(&study.name, study);
        }
    }
    by_name.into_values().collect()
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a string cannot fail");
}

/// How many of a study's trials are finished, and how many it needs.
fn progress(study: &StudyEntry) -> (usize, usize) {
    let trials = || study.cells.iter().flat_map(|cell| cell.rows.values());
    (trials().filter(|row| row.is_some()).count(), trials().count())
}

fn section(study: &StudyEntry, page: &mut String) {
    let StudyEntry { name, question, factors, metrics, code, .. } = study;
    line(page, format_args!("\n## {}\n\n{}", inline(name), inline(question)));
    if code != CODE {
        line(page, format_args!("\nFound by another version of the code."));
    }
    if !study.verdicts.is_empty() {
        page.push_str(
            "\n| hypothesis | prediction | verdict | seeds | why |\n|---|---|---|---:|---|\n",
        );
    }
    for verdict in &study.verdicts {
        let named = match &verdict.mechanism {
            Some(mechanism) => format!("{} ({})", cell(&verdict.hypothesis), cell(mechanism)),
            None => cell(&verdict.hypothesis),
        };
        let (prediction, why) = (cell(&verdict.prediction), cell(&verdict.why));
        let (outcome, seeds) = (cell(&verdict.outcome), verdict.seeds);
        line(page, format_args!("| {named} | `{prediction}` | **{outcome}** | {seeds} | {why} |"));
    }
    let metrics: Vec<Metric> = metrics.iter().filter_map(|name| Metric::parse(name).ok()).collect();
    let mut header: Vec<String> = factors.iter().map(|factor| cell(factor)).collect();
    header.push("seeds".to_owned());
    header.extend(metrics.iter().map(heading));
    line(page, format_args!("\n| {} |", header.join(" | ")));
    line(page, format_args!("|{}", "---|".repeat(header.len())));
    // A search numbers its points by their calls, of which some were never made.
    for StudyCell { levels, rows } in study.cells.iter().filter(|cell| !cell.levels.is_empty()) {
        let mut fields: Vec<String> = levels.iter().map(|level| cell(level)).collect();
        fields.push(rows.values().flatten().count().to_string());
        fields.extend(metrics.iter().map(|metric| mean(metric, rows)));
        line(page, format_args!("| {} |", fields.join(" | ")));
    }
}

fn heading(metric: &Metric) -> String {
    match metric.unit() {
        "" => metric.name(),
        unit => format!("{}, {unit}", metric.name()),
    }
}

/// The mean over seeds, with its 95 % interval.
fn mean(metric: &Metric, rows: &BTreeMap<u64, Option<Row>>) -> String {
    let values: Vec<f64> = rows.values().flatten().filter_map(|row| metric.of_run(row)).collect();
    match (Interval::of(&values, metric.is_ratio()), values.first()) {
        (Some(Interval { mean, low, high }), _) => {
            format!("{} ({} to {})", digits(mean), digits(low), digits(high))
        }
        (None, Some(&value)) => digits(value),
        (None, None) => "-".to_owned(),
    }
}

/// A number with about four digits.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size > 0.0 => format!("{value:.4}"),
        _ => "0".to_owned(),
    }
}

/// Text that stays within its line.
fn inline(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text that stays within its cell of a table.
fn cell(text: &str) -> String {
    inline(text).replace('|', "\\|")
}
