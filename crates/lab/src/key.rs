//! What names a trial: the key that the ledger finds it by, and the document that says what to run.

use blis_scenario::CODE;
use blis_scenario::hash::hash_long;
use blis_scenario::row;
use blis_scenario::scenario::Plan;

/// The version of the layout of trial documents.
pub(crate) const SCHEMA: u64 = 1;

/// What makes two trials the same: a hash of the code, the layout of rows, the scenario with the
/// content of its files, and the seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// The key of `plan` with `seed`.
    pub fn of(plan: &Plan, seed: u64) -> Key {
        let text = format!("{CODE} {} {seed} {:032x}", row::SCHEMA, plan.identity);
        Key(format!("{:032x}", hash_long(text.as_bytes())))
    }

    /// The key that `text` is, 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Key> {
        let digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(digit)).then(|| Key(text.to_owned()))
    }

    /// The key as 32 hexadecimal digits.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The document of the trial of a scenario, itself a document, with `seed`.
pub fn document(scenario: &str, scenario_hash: &str, seed: u64) -> String {
    format!(
        "{{\"schema\":{SCHEMA},\"scenario\":{scenario},\"scenario_hash\":\"{scenario_hash}\",\
         \"seed\":{seed}}}"
    )
}
