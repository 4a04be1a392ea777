//! Reading the hypotheses of a study file.

use super::file::HypothesisFields;
use crate::design::{Design, Factor};
use crate::hypothesis::{Hypothesis, Mistake, Prediction, parse, parse_value};
use blis_scenario::problem::{Problem, hint, quoted};
use blis_scenario::problems::{Problems, Together, every};
use blis_scenario::yaml::{Node, OneOrMany};

/// `in: each` is every workload.
const EACH: &str = "each";

/// The hypotheses of a study of this design. One that says `in` is one for each of these workloads.
pub(super) fn hypotheses(
    tree: &Node,
    fields: &[HypothesisFields],
    design: &Design,
) -> Result<Vec<Hypothesis>, Problems> {
    let fields_before = |index: usize| fields[..index].iter().enumerate();
    let all = every(fields.iter().enumerate().map(|(index, fields)| {
        let listed = fields.workloads.as_ref().map(|listed| workloads(tree, index, listed, design));
        let (stated, listed) = (one(tree, index, fields, design), listed.transpose()).together()?;
        let named = |other: &HypothesisFields, at: usize| name(other, at) == stated.name;
        if fields_before(index).any(|(at, other)| named(other, at)) {
            let message = format!("found `{}` twice; rename one", stated.name);
            return Err(tree.problem(format!("hypotheses[{index}].name"), message));
        }
        Ok::<_, Problems>(match listed {
            None => vec![stated],
            Some((factor, workloads)) => {
                workloads.iter().map(|&level| at(&stated, factor, level, design)).collect()
            }
        })
    }))?;
    Ok(all.into_iter().flatten().collect())
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

/// The factor of workloads, and those of its levels that hypothesis number `index` lists.
fn workloads(
    tree: &Node,
    index: usize,
    listed: &OneOrMany<String>,
    design: &Design,
) -> Result<(usize, Vec<usize>), Problems> {
    let path = format!("hypotheses[{index}].in");
    let Some(factor) = design.factor("workload") else {
        let message = "the study has no workloads; remove it, or add `workloads:`";
        return Err(tree.problem(path, message));
    };
    let Factor { levels, .. } = &design.factors[factor];
    let legal = format!("legal: `{EACH}`, or a list of workloads: {}", quoted(levels));
    let named = |(number, text): (usize, &String)| {
        levels.iter().position(|level| level == text).ok_or_else(|| {
            let hint = hint(text, levels.iter().map(String::as_str));
            let place = tree.place_of(&format!("{path}[{number}]"));
            Problem::new(place, &path, format!("unknown workload `{text}`{hint}; {legal}"))
        })
    };
    let found = match &listed.0[..] {
        [] => return Err(tree.problem(path, legal)),
        [one] if one == EACH => (0..levels.len()).collect(),
        listed => every(listed.iter().enumerate().map(named))?,
    };
    let twice = (1..found.len()).find(|&number| found[..number].contains(&found[number]));
    if let Some(number) = twice {
        let place = tree.place_of(&format!("{path}[{number}]"));
        let message = format!("found `{}` twice; remove one", levels[found[number]]);
        return Err(Problem::new(place, path, message).into());
    }
    Ok((factor, found))
}

/// What hypothesis number `index` is called.
fn name(fields: &HypothesisFields, index: usize) -> String {
    fields.name.clone().unwrap_or_else(|| format!("H{}", index + 1))
}

fn one(
    tree: &Node,
    index: usize,
    fields: &HypothesisFields,
    design: &Design,
) -> Result<Hypothesis, Problems> {
    let at = |field: &str| format!("hypotheses[{index}].{field}");
    let pointed = |path: String, text: &str, Mistake { message, at }: Mistake| {
        let problems = tree.problem(path, message);
        problems.map(|problem| problem.pointing(text, &at))
    };
    let claim = tree.required(&format!("hypotheses[{index}]"), "claim", fields.claim.as_ref());
    let claim = claim.and_then(|text| {
        let read = parse(text, design).map_err(|mistake| pointed(at("claim"), text, mistake));
        Ok((text.clone(), read?))
    });
    let predict = fields.predict.as_deref().map(Prediction::parse).transpose();
    let predict = predict.map_err(|message| tree.problem(at("predict"), message));
    let fires = every(fields.fires.iter().enumerate().map(|(number, text)| {
        let counter = parse_value(text, design)
            .map_err(|mistake| pointed(at(&format!("fires[{number}]")), text, mistake))?;
        Ok::<_, Problems>((text.clone(), counter))
    }));
    let name = name(fields, index);
    let named = tree.check_name(at("name"), &name);
    let ((text, claim), predict, fires, ()) = (claim, predict, fires, named).together()?;
    Ok(Hypothesis { name, claim, text, predict, because: fields.because.clone(), fires })
}
