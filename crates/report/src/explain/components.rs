//! Where the time of an arm went, and which of its components did it.

use super::{Explained, heading};
use crate::model::Table;
use crate::text::{dash, ranged};
use blis_lab::Metric;
use blis_lab::explain::{Pair, Part, PartDifference, Shares};
use blis_lab::verdict::number;
use serde_json::{Value, json};

/// The parts of the time to first token.
pub(super) fn time(class: &str, parts: &[PartDifference]) -> Table {
    let row = |part: &PartDifference| {
        let difference = dash(part.difference.as_ref(), ranged);
        [part.part.to_owned(), number(part.arm), number(part.reference), difference]
    };
    let title = format!("mean TTFT, ms, {class} requests");
    let header = ["part", "arm", "against", "difference (95 %)"];
    Table::new(title, header, parts.iter().map(row))
}

/// What each component does.
pub(super) fn effects(found: &Explained<'_>, metric: &Metric, shares: &Shares) -> Table {
    let row = |part: &Part| {
        [
            found.components[part.component].clone(),
            ranged(&part.alone),
            ranged(&part.last),
            dash(part.main.as_ref(), ranged),
            ranged(&part.shapley),
            format!("{:.0} %", 100.0 * part.shapley.mean / shares.total.mean),
        ]
    };
    let header = ["component", "alone", "added last", "on average", "Shapley share", "of total"];
    let title = format!("effect of each component on {}", heading(metric));
    Table::new(title, header, shares.parts.iter().map(row))
}

/// What pairs of components do beyond that; none if there is one component.
pub(super) fn interactions(
    found: &Explained<'_>,
    metric: &Metric,
    shares: &Shares,
) -> Option<Table> {
    let row = |pair: &Pair| {
        let names = [pair.first, pair.second].map(|index| found.components[index].as_str());
        [names.join(" and "), ranged(&pair.interaction)]
    };
    let title = format!("interaction of pairs, {}", heading(metric));
    let rows = shares.pairs.iter().map(row);
    let table = Table::new(title, ["pair", "interaction (95 %)"], rows);
    (!shares.pairs.is_empty()).then_some(table)
}

/// Whether the compound is more than its parts, in a sentence.
pub(super) fn compound(metric: &Metric, shares: &Shares) -> String {
    let beyond = &shares.beyond;
    let along = beyond.mean * shares.total.mean > 0.0;
    let answer = match (beyond.low > 0.0 || beyond.high < 0.0, along) {
        (true, true) => "The compound is more than the sum of its parts (super-additive)",
        (true, false) => "The compound is less than the sum of its parts (sub-additive)",
        (false, _) => "The compound is not clearly more or less than the sum of its parts",
    };
    format!(
        "{}: all components together change it by {}, from {} to {}. The single effects add up to \
         {}; the rest is {}. {answer}.",
        heading(metric),
        ranged(&shares.total),
        number(shares.none.mean),
        number(shares.all.mean),
        ranged(&shares.alone),
        ranged(beyond)
    )
}

/// The effects of components, for programs.
pub(super) fn object(found: &Explained<'_>, shares: &Shares) -> Value {
    let name = |index: usize| &found.components[index];
    let part = |part: &Part| {
        json!({
            "component": name(part.component),
            "alone": part.alone,
            "last": part.last,
            "main": part.main,
            "shapley": part.shapley,
        })
    };
    let pair = |pair: &Pair| {
        json!({
            "pair": [name(pair.first), name(pair.second)],
            "interaction": pair.interaction,
        })
    };
    json!({
        "none": shares.none,
        "all": shares.all,
        "total": shares.total,
        "alone": shares.alone,
        "beyond": shares.beyond,
        "components": shares.parts.iter().map(part).collect::<Vec<_>>(),
        "interactions": shares.pairs.iter().map(pair).collect::<Vec<_>>(),
    })
}
