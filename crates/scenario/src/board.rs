//! How far predictions are from servers that others measured: the table `board.json`, which has the
//! mean absolute errors of the second half of `docs/validation/public-tables.md`.

use std::collections::BTreeMap;

/// Mean absolute errors, as shares of what was measured.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
pub struct Known {
    /// Of the time per output token.
    pub tpot: f64,
    /// Of the time to first token.
    pub ttft: f64,
}

/// All rows by GPU and what the model is, e.g. `B200, experts`, and `all`.
///
/// # Panics
/// Never: a test reads the table.
pub fn rows() -> BTreeMap<String, Known> {
    serde_json::from_str(include_str!("../board.json")).expect("it ships")
}

/// What is known of measured operators on a GPU with models that are `dense`, `experts` or `divided
/// experts`; of all together if that is not on the board.
///
/// # Panics
/// Never: a test reads the table.
pub fn operators(gpu: &str, models: &str) -> Known {
    let rows = rows();
    let row = rows.get(&format!("{gpu}, {models}")).or_else(|| rows.get("all"));
    *row.expect("all together are there")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_has_an_error_and_those_on_the_board_their_own() {
        let all = rows()["all"];
        assert_eq!(operators("A100-80", "dense"), all);
        assert_ne!(operators("H200", "dense"), all);
        assert!(rows().values().all(|it| it.tpot > 0.0 && it.ttft > 0.0 && it.tpot < 0.5));
    }
}
