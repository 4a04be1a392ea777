//! Why an arm of a study is better, and what is left to gain.

mod components;
mod decisions;
mod headroom;

use crate::model::{Block, Document, blocks};
use crate::study::sent;
use crate::text::{counted, heading};
use blis_lab::Metric;
use blis_lab::explain::{Decisions, PartDifference, Reached, Shares};
use blis_lab::study::Study;
use blis_scenario::json::present;
use serde_json::{Map, Value, json};

/// What was found.
#[derive(Debug)]
pub struct Explained<'a> {
    /// The study.
    pub study: &'a Study,
    /// The arm, and what it is compared with.
    pub arms: [String; 2],
    /// How many seeds each was run with.
    pub seeds: usize,
    /// What was asked about.
    pub metrics: Vec<Metric>,
    /// Where the time went, for all requests and for each class.
    pub parts: Vec<(String, Vec<PartDifference>)>,
    /// What the arm is made of.
    pub components: Vec<String>,
    /// What each component does to each metric.
    pub shares: Vec<(Metric, Shares)>,
    /// What the arm reaches with oracles.
    pub reached: Option<Reached>,
    /// What its routing decisions were worth.
    pub decisions: Option<Decisions>,
}

/// What was found.
pub fn document(found: &Explained<'_>) -> Document {
    let [arm, against] = &found.arms;
    let (seeds, sent) = (counted(found.seeds as u64, "seed"), sent(found.study));
    let about = format!("{arm} against {against}, {seeds} each, with 95 % intervals; {sent}.");
    let parts = found.parts.iter().map(|(class, parts)| components::time(class, parts));
    let mut effects = Vec::new();
    for (metric, shares) in &found.shares {
        effects.push(components::effects(found, metric, shares).into());
        effects.extend(blocks(components::interactions(found, metric, shares)));
        effects.push(Block::prose(components::compound(metric, shares)));
    }
    if found.components.is_empty() {
        let text = "The arm has no components (`with:`), so there is nothing to leave out.";
        effects.push(Block::prose(text));
    }
    let left = found.reached.as_ref().map(|it| headroom::blocks(it, &found.metrics));
    let decided = found.decisions.as_ref().map(decisions::blocks);
    let blocks = vec![
        Block::prose(about),
        Block::group("Where the time went", blocks(parts)),
        Block::group("Effects of the components", effects),
        Block::group("Room for improvement", left.unwrap_or_default()),
        Block::group("Counterfactual decisions", decided.unwrap_or_default()),
    ];
    Document::new(found.study.question.clone(), blocks, object(found))
}

/// What was found, for programs.
fn object(found: &Explained<'_>) -> Value {
    let part = |part: &PartDifference| {
        let numbers = json!({
            "arm_ms": part.arm,
            "against_ms": part.reference,
            "difference_ms": part.difference,
        });
        (part.part.to_owned(), numbers)
    };
    let class = |(class, parts): &(String, Vec<PartDifference>)| {
        (class.clone(), Value::Object(parts.iter().map(part).collect()))
    };
    let effects = found.shares.iter();
    let effects: Map<String, Value> =
        effects.map(|(metric, it)| (metric.name(), components::object(found, it))).collect();
    present(json!({
        "arm": found.arms[0],
        "against": found.arms[1],
        "seeds": found.seeds,
        "decomposition": found.parts.iter().map(class).collect::<Map<_, _>>(),
        "ablation": effects,
        "headroom": found.reached.as_ref().map(|it| headroom::object(it, &found.metrics)),
        "decisions": found.decisions.as_ref().map(decisions::object),
    }))
}
