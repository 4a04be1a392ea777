//! The workload that a few flags describe: one kind of client with normal lengths.
//!
//! The lab fills it from `--rate`, `--num-requests`, `--prompt-tokens...`, `--output-tokens...` and
//! `--prefix-tokens`. It only makes a [`Mix`]; it must never draw or check anything by itself.

use crate::arrival::Arrival;
use crate::length::Length;
use crate::mix::{Client, Mix};
use crate::rate::Rate;
use blis_core::Time;

/// Normal lengths in tokens, clamped to `min..=max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimpleLength {
    /// Mean in tokens.
    pub mean: f64,
    /// Standard deviation in tokens; 0 is a constant.
    pub std_dev: f64,
    /// Least length in tokens (>= 1).
    pub min: u32,
    /// Greatest length in tokens (>= `min`).
    pub max: u32,
}

/// One kind of client, as flags describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct SimpleWorkload {
    /// Requests per second.
    pub rate: Rate,
    /// Ends after this many requests.
    pub num_requests: Option<u64>,
    /// Ends before the first request that arrives at or after this time.
    pub horizon: Option<Time>,
    /// Seed of all draws.
    pub seed: u64,
    /// Arrival process; the Go program's flags mean [`Arrival::Constant`].
    pub arrival: Arrival,
    /// Tokens that all prompts have in common, before the sampled ones.
    pub prefix_tokens: u32,
    /// Prompt length after the prefix.
    pub prompt: SimpleLength,
    /// Output length.
    pub output: SimpleLength,
}

impl Mix {
    /// The mix of one client, class standard, tenant `default`, that `workload` describes.
    pub fn simple(workload: SimpleWorkload) -> Mix {
        let (prompt, output) = (workload.prompt.length(), workload.output.length());
        let client = Client {
            arrival: workload.arrival,
            prefix_group: (workload.prefix_tokens > 0).then(|| "prefix".to_owned()),
            prefix_tokens: workload.prefix_tokens,
            ..Client::plain("default".to_owned(), "default".to_owned(), prompt, output)
        };
        let mix = Mix::new(vec![client], workload.rate, workload.num_requests);
        Mix { horizon: workload.horizon, seed: workload.seed, ..mix }
    }
}

impl SimpleLength {
    fn length(self) -> Length {
        let SimpleLength { mean, std_dev, min, max } = self;
        Length::Gaussian { mean, std_dev, min, max }
    }
}
