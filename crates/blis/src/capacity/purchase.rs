//! `blis capacity --search`: the machines that are compared, and what they cost.

use crate::args::CapacityArgs;
use crate::failure::Failure;
use blis_latency::Catalogue;
use blis_scenario::problem::unknown;
use blis_scenario::{Checked, Draft};

/// Tensor parallelism, token budgets and numbers of sequences that are tried.
const PARALLELISM: [u32; 4] = [1, 2, 4, 8];
const TOKENS: [u32; 3] = [512, 2_048, 8_192];
const SEQUENCES: [u32; 2] = [256, 1_024];

/// A machine to try: its name, dollars an hour of one GPU, and the scenario on it.
type Machine = (String, Option<f64>, Checked, Draft);

/// `draft` on every machine that has room for its model.
pub(super) fn machines(args: &CapacityArgs, draft: &Draft) -> Result<Vec<Machine>, Failure> {
    let catalogue = Catalogue::shipped();
    let known: Vec<&str> = catalogue.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let prices = prices(args)?;
    let mut machines = Vec::new();
    for name in &args.search {
        let gpu = catalogue.gpu(name.trim());
        let gpu = gpu.ok_or_else(|| {
            Failure::Input(format!("--search: {}", unknown("GPU", name.trim(), &known)))
        })?;
        let given = prices.iter().find(|(name, _)| name.eq_ignore_ascii_case(&gpu.name));
        let price = given.map(|(_, price)| *price).or(gpu.dollars_per_hour).ok_or_else(|| {
            let message = format!("no price of {0} is known; give it: --price {0}=2.5", gpu.name);
            Failure::Input(message)
        })?;
        let mut refused = None;
        let before = machines.len();
        for tp in PARALLELISM {
            for tokens in TOKENS {
                for sequences in SEQUENCES {
                    let mut draft = draft.clone();
                    draft.set("--search", "hardware", &gpu.name);
                    draft.set("--search", "tp", &tp.to_string());
                    let (budget, most) = (tokens.to_string(), sequences.to_string());
                    draft.set("--search", "engine.max_num_scheduled_tokens", &budget);
                    draft.set("--search", "engine.max_num_running_reqs", &most);
                    let name = format!("{} tp {tp}, {tokens} tokens, {sequences} seqs", gpu.name);
                    match draft.resolve() {
                        Ok(checked) => machines.push((name, Some(price), checked, draft)),
                        Err(problems) => refused = Some(problems),
                    }
                }
            }
        }
        if let Some(problems) = refused.filter(|_| machines.len() == before) {
            return Err(problems.into());
        }
    }
    Ok(machines)
}

/// Prices as given.
fn prices(args: &CapacityArgs) -> Result<Vec<(&str, f64)>, Failure> {
    args.price
        .iter()
        .map(|text| {
            parse(text).ok_or_else(|| {
                Failure::Input(format!("--price: found `{text}`; legal: e.g. `H100=2.5`"))
            })
        })
        .collect()
}

/// `GPU=DOLLARS`.
fn parse(text: &str) -> Option<(&str, f64)> {
    let (gpu, dollars) = text.split_once('=')?;
    let dollars =
        dollars.trim().parse().ok().filter(|dollars: &f64| (0.0..1e6).contains(dollars))?;
    Some((gpu.trim(), dollars))
}
