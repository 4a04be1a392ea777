//! How to deploy what a study found: for each case, the safest arm that llm-d can run.

use super::answer::{arm, cases, loses};
use super::targets::missed;
use crate::model::Block;
use crate::text::listed;
use blis_export::{llm_d, shell_word};
use blis_lab::study::{Answer, Findings, Regret, Study};

/// Names of strategies that are no longer have what they are for below one another.
const WIDTH: usize = 20;

/// A case gets a command of its own if the one for any other workload loses more there by this
/// share.
const WORTH: f64 = 0.1;

/// Of strategies whose worst cases are within this share of each other the first is taken.
const HARDLY: f64 = 0.02;

/// What an arm is for llm-d.
enum Export {
    /// The strategy to export.
    Strategy(String),
    /// Nothing: it lacks a part of it.
    Missing,
}

impl Export {
    fn strategy(self) -> Option<String> {
        match self {
            Export::Strategy(strategy) => Some(strategy),
            Export::Missing => None,
        }
    }
}

/// What llm-d lacks of arms that are safer than all that it can run, and how far the safest that it
/// can run is from the best, in a sentence; empty if it lacks nothing.
pub(super) fn lacking(study: &Study, found: &Answer) -> String {
    let missing = |regret: &Regret| match export(study, found, regret.arm, &[0])? {
        Export::Missing => Some(Some(arm(study, regret.arm).to_owned())),
        Export::Strategy(_) => None,
    };
    let all: Vec<_> = found.regrets.iter().map_while(missing).collect();
    if all.is_empty() {
        return String::new();
    }
    let next = found.regrets.get(all.len()).filter(|_| found.places.len() > 1);
    let next = next.map(|next| format!("; {} {}", arm(study, next.arm), loses(found, next)));
    format!("llm-d cannot run {}{}.", listed(all), next.unwrap_or_default())
}

/// A command for the safest arm that llm-d can run, and one for the safest of each case. `None` if
/// it is not known how to export the safest arm. The model and the machine are those of the study
/// in `file`.
pub(super) fn block(
    study: &Study,
    findings: &Findings,
    found: &Answer,
    file: Option<&str>,
) -> Option<Block> {
    if found.places.iter().all(|place| place.ranked.is_empty()) {
        return None;
    }
    let everywhere: Vec<usize> = (0..found.places.len()).collect();
    export(study, found, found.regrets.first()?.arm, &[0])?;
    // The command exports the base, which must be what was run.
    let swept = ["model", "hardware", "tp", "latency.model"];
    if swept.iter().any(|path| study.is_varied(path)) {
        return None;
    }
    let (title, arms) = candidates(study, findings, found)?;
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    let all = if everywhere.len() > 1 { "all cases" } else { "" };
    let each = Some(cases(study, found)).filter(|_| everywhere.len() > 1);
    let cases = [(all.to_owned(), everywhere)].into_iter().chain(each.into_iter().flatten());
    for (case, places) in cases {
        let strategies = arms.iter().filter_map(|&level| {
            let strategy = export(study, found, level, &places)?.strategy()?;
            Some((found.worst(level, places.iter().copied())?, strategy))
        });
        let strategies: Vec<(Regret, String)> = strategies.collect();
        let usual = lines.first().map(|(strategy, _)| strategy.clone());
        let Some(strategy) = safest(strategies, usual.as_deref()) else { continue };
        match lines.iter_mut().find(|(known, _)| *known == strategy) {
            Some((_, cases)) => cases.push(case),
            None => lines.push((strategy, vec![case])),
        }
    }
    let code = || vec![Block::Code(commands(&lines, all, file))];
    (!lines.is_empty()).then(|| Block::group(title, code()))
}

/// Of the arms that llm-d can run those that miss the fewest targets, the safest first, and what
/// to say of them.
fn candidates(
    study: &Study,
    findings: &Findings,
    found: &Answer,
) -> Option<(&'static str, Vec<usize>)> {
    let arms = found.regrets.iter().map(|regret| regret.arm);
    let runs = |level: &usize| {
        export(study, found, *level, &[0]).is_some_and(|export| export.strategy().is_some())
    };
    let arms = arms.filter(runs).map(|level| (missed(study, findings, level), level));
    let arms: Vec<(usize, usize)> = arms.collect();
    let fewest = arms.iter().map(|(missed, _)| *missed).min()?;
    let best: Vec<usize> =
        arms.iter().filter(|(missed, _)| *missed == fewest).map(|(_, level)| *level).collect();
    let title = if fewest > 0 {
        "Every arm that llm-d can run misses a target; the safest of those that miss fewest"
    } else if best.len() < arms.len() {
        "To deploy the safest that llm-d can run and that is not shown to miss a target"
    } else {
        "To deploy the safest that llm-d can run"
    };
    Some((title, best))
}

/// The first strategy that loses hardly more at its worst than the one that loses least, or the
/// `usual` one, if another is not worth it.
fn safest(strategies: Vec<(Regret, String)>, usual: Option<&str>) -> Option<String> {
    let least = strategies
        .iter()
        .map(|(lost, _)| lost)
        .reduce(|least, next| if next.is_less_than(least, 0.0) { next } else { least })?;
    let least = least.clone();
    let usual = strategies.iter().find(|(_, strategy)| Some(strategy.as_str()) == usual);
    if let Some((lost, strategy)) = usual
        && (lost.is_level(&least) || !least.is_less_than(lost, WORTH))
    {
        return Some(strategy.clone());
    }
    let mut near = strategies.into_iter().filter(|(lost, _)| !least.is_less_than(lost, HARDLY));
    near.next().map(|(_, strategy)| strategy)
}

/// A line for each strategy and its cases; the first, which is the safest in `all` of them, is for
/// those that no other line names.
fn commands(lines: &[(String, Vec<String>)], all: &str, file: Option<&str>) -> String {
    let several = lines.len() > 1;
    let of = file.map_or_else(String::new, |file| format!(" {}", shell_word(file)));
    let line = |(strategy, cases): &(String, Vec<String>)| {
        let about = match &cases[..] {
            [first, ..] if first == all && several => "any other workload",
            [first, ..] if first == all => all,
            _ => &cases.join("; "),
        };
        let about = if about.is_empty() { String::new() } else { format!("# {about}") };
        let strategy = shell_word(strategy);
        format!("blis export llm-d{of} --strategy {strategy:WIDTH$} {about}").trim().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What an arm is for llm-d, if it is the same at all `places` and sets nothing but a strategy.
fn export(study: &Study, found: &Answer, level: usize, places: &[usize]) -> Option<Export> {
    let factor = study.design.factor("arm")?;
    let fields = study.level_fields(factor, level);
    let only = |(path, _): &(String, String)| path == "strategy" || path.starts_with("signals");
    let whole = fields.iter().all(only) && study.with(level).is_empty();
    let written = fields.iter().find(|(path, _)| path == "strategy").map(|(_, name)| name);
    let mut cells = places.iter().map(|&at| &study.cells[found.places[at].cells[level]]);
    let first = cells.next()?;
    let missing = llm_d::export(&first.plan, "").missing;
    if !missing.is_empty() {
        return Some(Export::Missing);
    }
    let strategy = first.tuned().or_else(|| written.cloned()).filter(|_| whole)?;
    let same = cells.all(|cell| cell.tuned() == first.tuned());
    same.then_some(Export::Strategy(strategy))
}
