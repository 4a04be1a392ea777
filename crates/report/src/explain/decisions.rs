//! What routing decisions were worth.

use crate::model::{Block, Table};
use crate::text::{dash, grouped, ranged};
use blis_lab::explain::{Decisions, Mean, Worth};
use blis_lab::verdict::number;
use serde_json::{Map, Value, json};

/// How to read it.
const ABOUT: &str = "A sample of the arm's routing decisions, each repeated in its own run. \
     Runner-up: delay of first tokens if the request goes to the instance with the second best \
     score, to this request and in total to all others; above 0, the choice was right. Hindsight: \
     how much sooner its own first token came at the best instance tried, including luck.";

/// All of it.
pub(super) fn blocks(found: &Decisions) -> Vec<Block> {
    vec![Block::prose(ABOUT), table(found).into(), Block::prose(sentence(found))]
}

/// By what made the difference.
fn table(found: &Decisions) -> Table {
    let row = |because: &str, worth: &Worth| {
        [
            because.to_owned(),
            worth.tried.to_string(),
            dash(worth.own.as_ref(), mean),
            dash(worth.others.as_ref(), mean),
            format!("{:.0} %", 100.0 * worth.better_elsewhere),
            mean(&worth.regret),
            dash(worth.score_regret, number),
        ]
    };
    let reasons = found.reasons.iter().filter(|_| found.reasons.len() > 1);
    let rows = reasons.map(|(because, worth)| row(because, worth));
    let header = [
        "decided by",
        "tried",
        "runner-up: this request, ms",
        "runner-up: all others, ms",
        "better elsewhere",
        "hindsight, ms",
        "hindsight, by score",
    ];
    let rows = std::iter::once(row("all", &found.all)).chain(rows);
    Table::new("value of routing decisions", header, rows)
}

fn mean(found: &Mean) -> String {
    found.interval.as_ref().map_or_else(|| number(found.mean), ranged)
}

/// What it means, in a few sentences.
fn sentence(found: &Decisions) -> String {
    let Decisions { taken, all, .. } = found;
    let (tried, taken) = (grouped(all.tried as u64), grouped(*taken as u64));
    let mut told = vec![format!("{tried} of {taken} decisions were repeated.")];
    if let (Some(own), Some(others)) = (&all.own, &all.others) {
        let word = |sign: i8| match sign {
            1 => "right",
            -1 => "wrong",
            _ => "not clearly right or wrong",
        };
        told.push(format!(
            "On average the choice is {} for the request itself ({} ms) and {} for all others \
             together ({} ms).",
            word(own.sign()),
            mean(own),
            word(others.sign()),
            mean(others)
        ));
    }
    let score = match all.score_regret {
        Some(score) if score <= 0.0 => {
            "; by the router's own scores no other instance was better".to_owned()
        }
        Some(score) => format!("; by the router's own scores at most {}", number(score)),
        None => String::new(),
    };
    told.push(format!(
        "In hindsight {:.0} % had a better instance, worth {} ms per decision{score}.",
        100.0 * all.better_elsewhere,
        mean(&all.regret)
    ));
    told.join(" ")
}

/// The same for programs.
pub(super) fn object(found: &Decisions) -> Value {
    let reasons = found.reasons.iter();
    let reasons: Map<String, Value> =
        reasons.map(|(because, of)| (because.clone(), worth(of))).collect();
    json!({"decisions": found.taken, "all": worth(&found.all), "because": reasons})
}

fn worth(found: &Worth) -> Value {
    let mean = |mean: &Mean| match &mean.interval {
        Some(interval) => json!(interval),
        None => json!(mean.mean),
    };
    json!({
        "tried": found.tried,
        "better_elsewhere": found.better_elsewhere,
        "runner_up_own_ms": found.own.as_ref().map(mean),
        "runner_up_others_ms": found.others.as_ref().map(mean),
        "regret_ms": mean(&found.regret),
        "regret_of_all_ms": mean(&found.regret_of_all),
        "score_regret_max": found.score_regret,
    })
}
