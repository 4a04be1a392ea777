//! Reading the hypotheses of a study file.

use super::file::HypothesisFields;
use crate::design::{Design, Factor};
use crate::hypothesis::{Hypothesis, Mistake, Prediction, parse, parse_value};
use blis_scenario::problem::{Problem, hint, quoted};
use blis_scenario::yaml::{Kind, Node};

/// `in: each` is every workload.
const EACH: &str = "each";

/// The hypotheses of a study of this design. One that says `in` is one for each of these workloads.
pub(super) fn hypotheses(
    tree: &Node,
    fields: &[HypothesisFields],
    design: &Design,
) -> Result<Vec<Hypothesis>, Problem> {
    let mut all = Vec::new();
    for (index, fields) in fields.iter().enumerate() {
        let stated = one(tree, index, fields, design)?;
        let path = format!("hypotheses[{index}].in");
        match node(tree, index).and_then(|node| node.field("in")) {
            None => all.push(stated),
            Some(listed) => {
                let (factor, workloads) = workloads(listed, &path, design)?;
                let one = |&level: &usize| at(&stated, factor, level, design);
                all.extend(workloads.iter().map(one));
            }
        }
    }
    Ok(all)
}

/// Hypothesis number `index` as written.
fn node(tree: &Node, index: usize) -> Option<&Node> {
    match tree.field("hypotheses").map(|node| &node.kind) {
        Some(Kind::List(items)) => items.get(index),
        _ => None,
    }
}

/// `stated` about the workload `level` alone, which is a level of `factor`.
fn at(stated: &Hypothesis, factor: usize, level: usize, design: &Design) -> Hypothesis {
    let claim = stated.claim.clone().at(factor, level);
    let fires = stated.fires.iter().map(|(_, counter)| {
        let mut counter = counter.clone();
        counter.fix(factor, level);
        (counter.text(design), counter)
    });
    Hypothesis {
        name: format!("{} @ {}", stated.name, design.factors[factor].levels[level]),
        text: claim.text(design),
        fires: fires.collect(),
        claim,
        predict: stated.predict,
        because: stated.because.clone(),
    }
}

/// The factor of workloads, and those of its levels that `listed` names.
fn workloads(listed: &Node, path: &str, design: &Design) -> Result<(usize, Vec<usize>), Problem> {
    let illegal = |node: &Node, message: String| Problem::new(node.place.clone(), path, message);
    let Some(factor) = design.factor("workload") else {
        let message = "the study has no workloads; leave it out, or add `workloads:`".to_owned();
        return Err(illegal(listed, message));
    };
    let Factor { levels, .. } = &design.factors[factor];
    let legal = format!("legal: `{EACH}`, or a list of workloads: {}", quoted(levels));
    let named = |node: &Node| {
        let Kind::Scalar { text, .. } = &node.kind else {
            return Err(illegal(node, legal.clone()));
        };
        levels.iter().position(|level| level == text).ok_or_else(|| {
            let hint = hint(text, levels.iter().map(String::as_str));
            illegal(node, format!("unknown workload `{text}`{hint}; {legal}"))
        })
    };
    let found = match &listed.kind {
        Kind::Scalar { text, .. } if text == EACH => (0..levels.len()).collect(),
        Kind::List(items) if !items.is_empty() => {
            items.iter().map(named).collect::<Result<Vec<_>, _>>()?
        }
        _ => return Err(illegal(listed, legal)),
    };
    Ok((factor, found))
}

fn one(
    tree: &Node,
    index: usize,
    fields: &HypothesisFields,
    design: &Design,
) -> Result<Hypothesis, Problem> {
    let at = |field: &str| format!("hypotheses[{index}].{field}");
    let pointed = |path: String, text: &str, mistake: Mistake| {
        Problem::new(tree.place_of(&path), path, mistake.message).pointing(text, &mistake.at)
    };
    let claim = parse(&fields.claim, design)
        .map_err(|mistake| pointed(at("claim"), &fields.claim, mistake))?;
    let predict = fields.predict.as_deref().map(Prediction::parse).transpose();
    let predict = predict
        .map_err(|message| Problem::new(tree.place_of(&at("predict")), at("predict"), message))?;
    let counter = |(number, text): (usize, &String)| {
        let counter = parse_value(text, design)
            .map_err(|mistake| pointed(at(&format!("fires[{number}]")), text, mistake))?;
        Ok((text.clone(), counter))
    };
    let fires = fields.fires.iter().enumerate().map(counter).collect::<Result<_, Problem>>()?;
    Ok(Hypothesis {
        name: fields.name.clone().unwrap_or_else(|| format!("H{}", index + 1)),
        claim,
        text: fields.claim.clone(),
        predict,
        because: fields.because.clone(),
        fires,
    })
}
