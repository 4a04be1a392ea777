//! How to deploy what a study found: for each case, the best arm that llm-d can run.

use super::answer::{arm, cases};
use crate::model::Block;
use crate::text::listed;
use blis_export::llm_d;
use blis_lab::study::{Answer, Regret, Study};

/// Names of strategies that are no longer have what they are for below one another.
const WIDTH: usize = 20;

/// What an arm is for llm-d.
enum Export {
    /// The strategy to export.
    Strategy(String),
    /// What llm-d has no counterpart of.
    Missing(String),
}

/// What llm-d lacks of arms that are safer than all that it can run, in a sentence; empty if there
/// are none.
pub(super) fn lacking(study: &Study, found: &Answer) -> String {
    let missing = |regret: &Regret| match export(study, found, regret.arm, &[0])? {
        Export::Missing(what) => Some(Some(format!("{} ({what})", arm(study, regret.arm)))),
        Export::Strategy(_) => None,
    };
    match &listed(found.regrets.iter().map_while(missing))[..] {
        "" => String::new(),
        all => format!("llm-d has no counterpart of {all}."),
    }
}

/// A command for the safest arm that llm-d can run, and one for the best of each case. `None` if it
/// is not known how to export the safest arm.
pub(super) fn block(study: &Study, found: &Answer) -> Option<Block> {
    let everywhere: Vec<usize> = (0..found.places.len()).collect();
    let arms = || found.regrets.iter().map(|regret| regret.arm);
    export(study, found, arms().next()?, &[0])?;
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    let all = if everywhere.len() > 1 { "all cases" } else { "" };
    let several = Some(cases(study, found)).filter(|_| everywhere.len() > 1);
    let cases = [(all.to_owned(), everywhere)].into_iter().chain(several.into_iter().flatten());
    for (case, places) in cases {
        let best = arms().filter_map(|level| {
            let Some(Export::Strategy(strategy)) = export(study, found, level, &places) else {
                return None;
            };
            Some((found.worst(level, places.iter().copied())?, strategy))
        });
        let Some((_, strategy)) = best.min_by(|one, other| Regret::order(&one.0, &other.0)) else {
            continue;
        };
        match lines.iter_mut().find(|(known, _)| *known == strategy) {
            Some((_, cases)) => cases.push(case),
            None => lines.push((strategy, vec![case])),
        }
    }
    let quote = |strategy: &str| match strategy.contains('[') {
        true => format!("'{strategy}'"),
        false => strategy.to_owned(),
    };
    let line = |(strategy, cases): &(String, Vec<String>)| {
        let about = cases.join("; ");
        let about = if about.is_empty() { about } else { format!("# {about}") };
        format!("blis export llm-d --strategy {:WIDTH$} {about}", quote(strategy)).trim().to_owned()
    };
    let lines: Vec<String> = lines.iter().map(line).collect();
    let code = vec![Block::Code(lines.join("\n"))];
    (!lines.is_empty()).then(|| Block::group("To deploy the best that llm-d can run", code))
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
        return Some(Export::Missing(missing.join(", ")));
    }
    let strategy = first.tuned().or_else(|| written.cloned()).filter(|_| whole)?;
    let same = cells.all(|cell| cell.tuned() == first.tuned());
    same.then_some(Export::Strategy(strategy))
}
