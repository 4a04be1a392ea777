//! What a run was like over time, for those who draw it.

use serde::{Deserialize, Serialize};

/// The course of a run in [`OverTime::PARTS`] parts of the same length, warm-up included, each
/// value rounded to three digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverTime {
    /// From the start until the last request was closed, in s.
    pub seconds: f64,
    /// Mean time to first token of those that arrived in a part; absent if none has one.
    pub ttft_ms: Vec<Option<f64>>,
    /// How many requests were between arrival and first scheduling, on average over a part.
    pub waiting: Vec<f64>,
    /// How many were between that and their close.
    pub running: Vec<f64>,
}

impl OverTime {
    /// How many parts there are.
    pub const PARTS: usize = 60;
}
