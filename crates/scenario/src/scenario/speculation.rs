//! Speculative decoding of a scenario: how long drafts are, how much of them is right, what they
//! cost.
//!
//! ```yaml
//! engine:
//!   num_speculative_tokens: 3
//!   acceptance_rate: 0.7             # or by position: [0.7, 0.5, 0.3]
//!   draft_step_us: 400
//! ```

use crate::problem::{Place, Problem};
use crate::problems::{Problems, Together};
use crate::scenario::schema::EngineFields;
use crate::yaml::{Amount, Node, Whole};
use blis_core::Span;
use blis_sim::{LONGEST_DRAFT, Speculation};

const TOKENS: &str = "engine.num_speculative_tokens";
const RATE: &str = "engine.acceptance_rate";

/// What `fields` say; `None` if there are no drafts.
pub(super) fn speculation(
    fields: &EngineFields,
    tree: &Node,
) -> Result<Option<Speculation>, Problems> {
    tree.whole(&[TOKENS])?;
    let tokens = fields.num_speculative_tokens.map_or(0, Whole::get_u32);
    if tokens == 0 {
        // Where drafts are switched off, what the base says of them does not matter.
        let off = fields.num_speculative_tokens.is_some();
        return if off { Ok(None) } else { without(tree).map(|()| None) };
    }
    let micros = |path: &str, us: Option<f64>| {
        tree.whole(&[path]).map(|()| Span::from_micros_f64(us.unwrap_or(0.0)))
    };
    let (accepted, step, token) = (
        accepted(fields, tokens as usize, tree),
        micros("engine.draft_step_us", fields.draft_step_us.map(|us| us.get())),
        micros("engine.draft_token_us", fields.draft_token_us.map(|us| us.get())),
    )
        .together()?;
    Ok(Some(Speculation { tokens, accepted, step, token }))
}

/// Refuses what is said about drafts that nobody makes.
fn without(tree: &Node) -> Result<(), Problems> {
    let unused = |path: &str| {
        if !tree.has(path) {
            return Ok(());
        }
        Err(tree.problem(path, "there are no drafts; set `num_speculative_tokens` as well"))
    };
    let [step, token] = ["engine.draft_step_us", "engine.draft_token_us"].map(unused);
    (unused(RATE), step, token).together().map(|_| ())
}

/// The chance that so many tokens of a draft are right, and one more. A single number is the chance
/// of each token whose predecessors are right.
fn accepted(
    fields: &EngineFields,
    tokens: usize,
    tree: &Node,
) -> Result<[f64; LONGEST_DRAFT], Problems> {
    tree.whole(&[RATE])?;
    let Some(rates) = &fields.acceptance_rate else {
        let message = "missing; give the share of draft tokens that are accepted, one number or \
            one for each position as vLLM logs them";
        // Where there are flags only, the flag that is missing is named, not the one that asks.
        let place = match tree.place_of(TOKENS) {
            Place::Flag(_) => Place::Flag("--acceptance-rate".into()),
            place => place,
        };
        return Err(Problem::new(place, RATE, message).into());
    };
    let rates: Vec<f64> = rates.0.iter().map(Amount::get).collect();
    let mut accepted = [0.0; LONGEST_DRAFT];
    if let [rate] = rates[..] {
        let powers = std::iter::successors(Some(rate), |power| Some(power * rate));
        accepted.iter_mut().zip(powers).take(tokens).for_each(|(chance, power)| *chance = power);
        return Ok(accepted);
    }
    if rates.len() != tokens {
        let message =
            format!("found {} numbers; legal: one, or one for each of {tokens}", rates.len());
        return Err(tree.problem(RATE, message));
    }
    if let Some(at) = (1..tokens).find(|&at| rates[at] > rates[at - 1]) {
        let message = format!(
            "found `{}` after `{}`; a token is accepted only if those before it are, so no share \
             is more than the one before",
            rates[at],
            rates[at - 1]
        );
        return Err(tree.problem(format!("{RATE}[{at}]"), message));
    }
    accepted[..tokens].copy_from_slice(&rates);
    Ok(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::schema::Scenario;
    use crate::yaml::{decode, read_text};

    fn read(fields: &str) -> Result<Option<Speculation>, String> {
        let tree = read_text("s.yaml", &format!("engine: {{{fields}}}")).expect("YAML");
        let scenario: Scenario = decode(&tree).map_err(|problems| problems.to_string())?;
        speculation(&scenario.engine, &tree).map_err(|problems| problems.to_string())
    }

    #[test]
    fn one_rate_is_of_each_token_and_several_are_by_position() {
        let rates = |fields: &str| {
            let found = read(&format!("num_speculative_tokens: 3, acceptance_rate: {fields}"));
            found.expect("legal").expect("some").accepted
        };
        let near = |found: f64, rate: f64| (found - rate).abs() < 1e-12;
        let powers = rates("0.5");
        assert!(near(powers[1], 0.25) && near(powers[2], 0.125) && near(powers[3], 0.0));
        let listed = rates("[0.9, 0.9, 0.2]");
        assert!(near(listed[0], 0.9) && near(listed[2], 0.2));
        assert_eq!(read("num_speculative_tokens: 0"), Ok(None));
        assert_eq!(read("num_speculative_tokens: 0, acceptance_rate: 0.5"), Ok(None), "off");
    }

    #[test]
    fn a_flag_that_is_missing_is_named() {
        let mut tree = Node::empty();
        tree.set(&["engine", "num_speculative_tokens"], Node::from_flag("--n", "3"));
        let scenario: Scenario = decode(&tree).expect("legal by itself");
        let found = speculation(&scenario.engine, &tree).expect_err("no rate").to_string();
        assert!(found.starts_with("--acceptance-rate: missing"), "{found}");
    }

    #[test]
    fn everything_that_is_wrong_with_drafts_is_said_at_once() {
        for (fields, words) in [
            ("num_speculative_tokens: 2", &["acceptance_rate: missing"][..]),
            ("num_speculative_tokens: 17", &["a whole number from 0 to 16"]),
            (
                "num_speculative_tokens: 2, acceptance_rate: [0.9, 1.2], draft_step_us: -1",
                &["acceptance_rate[1]: found `1.2`", "draft_step_us: found `-1`"],
            ),
            (
                "num_speculative_tokens: 3, acceptance_rate: [0.9, 0.8]",
                &["found 2 numbers; legal: one, or one for each of 3"],
            ),
            (
                "num_speculative_tokens: 2, acceptance_rate: [0.5, 0.6]",
                &["acceptance_rate[1]: found `0.6` after `0.5`"],
            ),
            (
                "acceptance_rate: 0.5, draft_token_us: 3",
                &["acceptance_rate: there are no drafts", "draft_token_us: there are no drafts"],
            ),
        ] {
            let message = read(fields).expect_err("illegal");
            for word in words {
                assert!(message.contains(word), "{message}");
            }
        }
    }
}
