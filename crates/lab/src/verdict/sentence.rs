//! Why a verdict is what it is, in one sentence.

use super::contrast::{Effect, Scale};
use super::judge::Case;
use super::{Doubt, Outcome};
use blis_core::math::count;

/// The sentence of a case with this outcome; `effects` are those of its parts, and part `index` is
/// the telling one.
pub(super) fn why(case: &Case<'_>, outcome: Outcome, index: usize, effects: &[Effect]) -> String {
    let seeds = match case.seeds {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    if let Some(counter) = case.silent() {
        let silence = format!("the mechanism never fired: {counter} is 0 in all runs");
        return [silence, seeds].join("; ") + &doubts(case);
    }
    let effect = &effects[index];
    let what = if case.parts[index].1.is_equality() {
        format!("{} and {} are the same in every seed", effect.left, effect.right)
    } else {
        told(effect)
    };
    let which = match (case.parts.len(), outcome) {
        (1, _) => String::new(),
        (parts, Outcome::Confirmed) => format!(" (the closest of {parts})"),
        (parts, Outcome::Refuted) => format!(" (the clearest of {parts})"),
        (parts, Outcome::Inconclusive) => format!(" (the least clear of {parts})"),
    };
    let missing = match effect.missing {
        0 => String::new(),
        missing => format!(", {missing} of them without a sample"),
    };
    let about = [prediction(case, effect), mechanism(case), doubts(case)].concat();
    format!("{what}{which}; {seeds}{missing}{about}")
}

/// The part that the verdict hangs on.
pub(super) fn telling(case: &Case<'_>, outcome: Outcome, level: f64) -> usize {
    let mut least = (0, f64::INFINITY);
    for (index, (_, contrast)) in case.parts.iter().enumerate() {
        let clear = outcome == Outcome::Inconclusive && contrast.answer(level) == Some(true);
        let margin = contrast.margin(level);
        if !clear && margin < least.1 {
            least = (index, margin);
        }
    }
    least.0
}

fn told(effect: &Effect) -> String {
    let Effect { left, right, .. } = effect;
    let unit = if effect.unit.is_empty() { String::new() } else { format!(" {}", effect.unit) };
    let Some(found) = effect.estimate else {
        return format!("too few samples to compare {left} with {right}");
    };
    let range = format!("({} to {})", number(found.low), number(found.high));
    let mean = number(found.mean);
    let what = match effect.scale {
        Scale::Ratio => format!("{left} is {mean} {range} times {right}"),
        Scale::Value => format!("{left} is {mean}{unit} {range}"),
        Scale::Difference => format!("{left} - {right} is {mean}{unit} {range}"),
    };
    match effect.claimed() {
        Some(claimed) => format!("{what}, claimed: {claimed}"),
        None => what,
    }
}

fn prediction(case: &Case<'_>, effect: &Effect) -> String {
    let (Some(predicted), Some(found)) = (case.hypothesis.predict, effect.estimate) else {
        return String::new();
    };
    let word = if predicted.meets(found.low, found.high) { "agrees" } else { "differs" };
    let (low, high) = (bound(predicted.low), bound(predicted.high));
    let range = if low == high { low } else { format!("{low} to {high}") };
    format!("; predicted {range}, which {word}")
}

fn mechanism(case: &Case<'_>) -> String {
    let counters = case.hypothesis.fires.iter().zip(&case.fired);
    let counter = |((text, _), mean): (&(String, _), &Option<f64>)| {
        mean.map(|mean| format!("; {text}: {} per run", number(mean))).unwrap_or_default()
    };
    counters.map(counter).collect()
}

/// What makes the numbers of the runs that were looked at doubtful.
fn doubts(case: &Case<'_>) -> String {
    let mut cells: Vec<usize> =
        case.parts.iter().flat_map(|(part, _)| part.cells(case.design)).collect();
    cells.sort_unstable();
    cells.dedup();
    let named = |least: usize, has: fn(Doubt) -> bool| {
        let cell = |&cell: &usize| {
            let runs = (0..case.seeds).filter(|&seed| has(case.evidence.doubt(cell, seed))).count();
            let name = case.design.names(cell).join(", ");
            let place = if name.is_empty() { String::new() } else { format!("{name} in ") };
            (runs >= least).then(|| format!("{place}{runs} of {} runs", case.seeds))
        };
        cells.iter().filter_map(cell).collect::<Vec<String>>()
    };
    let overloaded = named(1, |doubt| doubt.overloaded);
    // One of a few may look so by chance.
    let short = named(1 + case.seeds / 4, |doubt| doubt.too_short);
    let overloaded = if overloaded.is_empty() {
        String::new()
    } else {
        format!("; overloaded: {}, so latencies grow with the run", some(&overloaded))
    };
    if short.is_empty() {
        return overloaded;
    }
    format!("{overloaded}; too short to be steady: {}", some(&short))
}

/// The first few of a list.
fn some(places: &[String]) -> String {
    match places {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}; {second}; {third} and {} more", rest.len())
        }
        _ => places.join("; "),
    }
}

/// A number that somebody chose: without the zeros that tell how exact a measured one is.
pub fn bound(value: f64) -> String {
    let text = number(value);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with three or four digits, thousands grouped.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.01 => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    if size < 99.95 {
        // Counts need no zeros, and nothing is less than nothing.
        let nothing = text.trim_matches(['-', '0', '.']).is_empty();
        let whole = value.round().total_cmp(&value).is_eq();
        return match (nothing, whole) {
            (true, _) => "0".to_owned(),
            (false, true) => format!("{value:.0}"),
            (false, false) => text,
        };
    }
    let whole = count(size).to_string();
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}
