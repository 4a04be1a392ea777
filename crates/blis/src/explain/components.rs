//! Where the time of an arm went, and which of its components did it: tables, a sentence, JSON.

use super::{Explained, ranged};
use crate::report::grid::Grid;
use crate::study::heading;
use blis_lab::Metric;
use blis_lab::explain::{Pair, Part, PartDifference, Shares};
use blis_lab::stats::Estimate;
use blis_lab::verdict::number;
use blis_scenario::json::Fields;
use serde_json::Value;

/// The parts of the time to first token.
pub(super) fn time(class: &str, parts: &[PartDifference]) -> Grid {
    let row = |part: &PartDifference| {
        let difference = part.difference.as_ref().map_or_else(|| "-".to_owned(), ranged);
        vec![part.part.to_owned(), number(part.arm), number(part.reference), difference]
    };
    Grid {
        title: format!("mean time to first token, ms, {class} requests"),
        header: ["part", "arm", "against", "difference (95 % interval)"].map(str::to_owned).into(),
        rows: parts.iter().map(row).collect(),
    }
}

/// What each component does.
pub(super) fn effects(found: &Explained<'_>, metric: &Metric, shares: &Shares) -> Grid {
    let share = |part: &Estimate| format!("{:.0} %", 100.0 * part.mean / shares.total.mean);
    let row = |part: &Part| {
        vec![
            found.components[part.component].clone(),
            ranged(&part.alone),
            ranged(&part.last),
            part.main.as_ref().map_or_else(|| "-".to_owned(), ranged),
            ranged(&part.shapley),
            share(&part.shapley),
        ]
    };
    let header = ["component", "alone", "last", "on average", "Shapley share", "of all"];
    Grid {
        title: format!("what components do to {}", heading(metric)),
        header: header.map(str::to_owned).into(),
        rows: shares.parts.iter().map(row).collect(),
    }
}

/// What pairs of components do beyond that.
pub(super) fn interactions(found: &Explained<'_>, metric: &Metric, shares: &Shares) -> Grid {
    let row = |pair: &Pair| {
        let names = [pair.first, pair.second].map(|index| found.components[index].as_str());
        vec![names.join(" and "), ranged(&pair.interaction)]
    };
    Grid {
        title: format!("what pairs do to {} beyond what each does", heading(metric)),
        header: ["pair", "interaction (95 % interval)"].map(str::to_owned).into(),
        rows: shares.pairs.iter().map(row).collect(),
    }
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
        "{}: all together change it by {}, from {} to {}; alone they add up to {}; beyond that: {}. \
         {answer}.",
        heading(metric),
        ranged(&shares.total),
        number(shares.none.mean),
        number(shares.all.mean),
        ranged(&shares.alone),
        ranged(beyond)
    )
}

/// The effects of components, for other programs.
pub(super) fn ablation(found: &Explained<'_>, shares: &Shares) -> Value {
    let mut fields = Fields::default();
    let Shares { none, all, total, alone, beyond, parts, pairs } = shares;
    for (name, value) in
        [("none", none), ("all", all), ("total", total), ("alone", alone), ("beyond", beyond)]
    {
        fields.value(name, value);
    }
    let part = |part: &Part| {
        let mut fields = Fields::default();
        fields.text("component", found.components[part.component].clone());
        fields.value("alone", &part.alone);
        fields.value("last", &part.last);
        if let Some(main) = &part.main {
            fields.value("main", main);
        }
        fields.value("shapley", &part.shapley);
        fields.into_value()
    };
    fields.value("components", parts.iter().map(part).collect::<Vec<Value>>());
    let pair = |pair: &Pair| {
        let mut fields = Fields::default();
        let names = [pair.first, pair.second].map(|index| found.components[index].clone());
        fields.value("pair", names.to_vec());
        fields.value("interaction", &pair.interaction);
        fields.into_value()
    };
    fields.value("interactions", pairs.iter().map(pair).collect::<Vec<Value>>());
    fields.into_value()
}
