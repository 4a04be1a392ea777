//! Reading the hypotheses of a study file.

use super::design::Design;
use super::file::HypothesisFields;
use crate::hypothesis::{Hypothesis, Mistake, Prediction, parse, parse_value};
use crate::problem::Problem;
use crate::yaml::Node;

/// The hypotheses of a study of this design.
pub(super) fn hypotheses(
    tree: &Node,
    fields: &[HypothesisFields],
    design: &Design,
) -> Result<Vec<Hypothesis>, Problem> {
    fields.iter().enumerate().map(|(index, fields)| one(tree, index, fields, design)).collect()
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
