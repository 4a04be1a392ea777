//! Why a verdict is what it is, in one sentence.

use super::contrast::{Effect, Scale};
use super::judge::Case;
use super::{Doubt, Outcome};
use crate::metric::Metric;
use blis_core::math::{count, float};

/// The sentence of a case with this outcome; `effects` are those of its parts, and part `index` is
/// the telling one.
pub(super) fn why(case: &Case<'_>, outcome: Outcome, index: usize, effects: &[Effect]) -> String {
    let seeds = match case.seeds {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    let silence =
        case.silent().map(|it| format!("the mechanism never fired: {it} is 0 in all runs"));
    match (outcome, silence) {
        (Outcome::NoEffect, Some(silence)) => {
            return format!("{silence}, and the arms are identical; {seeds}");
        }
        (Outcome::Inconclusive, Some(silence)) => return format!("{silence}; {seeds}"),
        (Outcome::TooShort, _) => {
            let places = places(case, |doubt| doubt.too_short);
            return format!(
                "the number of requests inside still moves, in runs as long as are allowed: \
                 {places}; {seeds}"
            );
        }
        (Outcome::Overloaded, _) => return overloaded(case, index, &seeds),
        _ => {}
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
        (parts, _) => format!(" (the least clear of {parts})"),
    };
    let missing = match effect.missing {
        0 => String::new(),
        missing => format!(", {missing} of them without a sample"),
    };
    let about = [prediction(case, effect), mechanism(case)].concat();
    format!("{what}{which}; {seeds}{missing}{about}")
}

/// The part that the verdict hangs on.
pub(super) fn telling(case: &Case<'_>, outcome: Outcome, level: f64) -> usize {
    let mut least = (0, f64::INFINITY);
    for (index, (_, contrast)) in case.parts.iter().enumerate() {
        let open = matches!(outcome, Outcome::Inconclusive | Outcome::Equivalent);
        let clear = open && contrast.answer(level) == Some(true);
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

/// The cells that have a doubt.
fn places(case: &Case<'_>, has: fn(Doubt) -> bool) -> String {
    let doubtful = case.doubts.iter().filter(|(_, doubt)| has(*doubt));
    let name = |&(cell, _): &(usize, Doubt)| match case.design.names(cell).join(", ") {
        name if name.is_empty() => "all runs".to_owned(),
        name => name,
    };
    some(&doubtful.map(name).collect::<Vec<String>>())
}

/// What is compared where latencies grow with the run: of the cells of part `index`, in the order
/// of the claim, the mean over seeds of what does not.
fn overloaded(case: &Case<'_>, index: usize, seeds: &str) -> String {
    let cells = case.parts[index].0.sides(case.design);
    let number = |(name, words, scale, unit): &(&str, &str, f64, &str)| {
        let metric = Metric::parse(name).expect("it is in the table");
        let mean = |&cell: &usize| {
            let of = |seed| case.evidence.value(cell, seed, &metric);
            let values: Vec<f64> = (0..case.seeds).filter_map(of).collect();
            let count = float(values.len() as u64);
            (!values.is_empty()).then(|| scale * values.iter().sum::<f64>() / count)
        };
        let told = |mean: Option<f64>| mean.map_or_else(|| "-".to_owned(), number);
        let means: Vec<Option<f64>> = cells.iter().map(mean).collect();
        means.iter().any(Option::is_some).then(|| {
            let values: Vec<String> = means.into_iter().map(told).collect();
            format!("{words} {}{unit}", values.join(" and "))
        })
    };
    let told: Vec<String> = INSTEAD.iter().filter_map(number).collect();
    let names: Vec<String> = cells.iter().map(|&cell| case.design.names(cell).join(", ")).collect();
    format!(
        "queues grow without bound, and latencies with the length of the run: {}; instead, of {}: \
         {}; {seeds}",
        places(case, |doubt| doubt.overloaded),
        names.join(" and "),
        told.join(", ")
    )
}

/// What can be compared of overloaded clusters: name, words, factor and unit.
const INSTEAD: [(&str, &str, f64, &str); 4] = [
    ("goodput_per_sec", "goodput", 1.0, "/s"),
    ("responses_per_sec", "responses", 1.0, "/s"),
    ("refused_share", "refused", 100.0, " %"),
    ("time_to_overload", "overloaded after", 1e-3, " s"),
];

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
