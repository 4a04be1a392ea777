//! `blis capacity --search`: the machines that are compared, and what they cost.

use crate::args::CapacityArgs;
use crate::failure::Failure;
use blis_lab::capacity::Rent;
use blis_latency::Catalogue;
use blis_scenario::problem::unknown;
use blis_scenario::{Checked, Draft};

/// Tensor parallelism, token budgets and numbers of sequences that are tried.
const PARALLELISM: [u32; 4] = [1, 2, 4, 8];
const TOKENS: [u32; 3] = [512, 2_048, 8_192];
const SEQUENCES: [u32; 2] = [256, 1_024];

/// A machine to try: its name, what its GPUs cost, and the scenario on it.
type Machine = (String, Option<Rent>, Checked, Draft);

/// `draft` on every machine that has room for its model.
pub(super) fn machines(args: &CapacityArgs, draft: &Draft) -> Result<Vec<Machine>, Failure> {
    let catalogue = Catalogue::shipped();
    let known: Vec<&str> = catalogue.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let prices = prices(args, &known)?;
    let mut machines = Vec::new();
    for text in &args.search {
        let (most, name) = limited(text.trim());
        let gpu = catalogue.gpu(name);
        let gpu = gpu
            .ok_or_else(|| Failure::Input(format!("--search: {}", unknown("GPU", name, &known))))?;
        let given = prices.iter().find(|(name, _)| name.eq_ignore_ascii_case(&gpu.name));
        let dollars = given.map(|(_, price)| *price).or(gpu.dollars_per_hour).ok_or_else(|| {
            let message = format!("no price of {0} is known; give it: --price {0}=2.5", gpu.name);
            Failure::Input(message)
        })?;
        let mut refused = None;
        let before = machines.len();
        for tp in PARALLELISM.into_iter().filter(|&tp| most.is_none_or(|most| tp <= most)) {
            for tokens in TOKENS {
                for sequences in SEQUENCES {
                    let mut draft = draft.clone();
                    draft.set("--search", "hardware", &gpu.name);
                    draft.set("--search", "tp", &tp.to_string());
                    let (budget, places) = (tokens.to_string(), sequences.to_string());
                    draft.set("--search", "engine.max_num_scheduled_tokens", &budget);
                    draft.set("--search", "engine.max_num_running_reqs", &places);
                    let name = format!("{} tp {tp}, {tokens} tokens, {sequences} seqs", gpu.name);
                    match draft.resolve() {
                        Ok(checked) => {
                            let rent = Some(Rent { dollars, most });
                            machines.push((name, rent, checked, draft));
                        }
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

/// `8xH200` is at most eight of them.
fn limited(text: &str) -> (Option<u32>, &str) {
    let split = text.split_once('x').and_then(|(most, gpu)| Some((most.trim().parse().ok()?, gpu)));
    split.filter(|(most, _)| *most > 0).map_or((None, text), |(most, gpu)| (Some(most), gpu.trim()))
}

/// Prices as given.
fn prices<'a>(args: &'a CapacityArgs, known: &[&str]) -> Result<Vec<(&'a str, f64)>, Failure> {
    let wrong = |message: String| Failure::Input(format!("--price: {message}"));
    let mut prices: Vec<(&str, f64)> = Vec::new();
    for text in &args.price {
        let legal = || wrong(format!("found `{text}`; legal: e.g. `H100=2.5`"));
        let (name, dollars) = parse(text).ok_or_else(legal)?;
        let same = |other: &str| other.eq_ignore_ascii_case(name);
        if !known.iter().any(|gpu| same(gpu)) {
            return Err(wrong(unknown("GPU", name, known)));
        }
        if prices.iter().any(|(other, _)| same(other)) {
            return Err(wrong(format!("found `{name}` twice; keep one")));
        }
        prices.push((name, dollars));
    }
    Ok(prices)
}

/// `GPU=DOLLARS`.
fn parse(text: &str) -> Option<(&str, f64)> {
    let (gpu, dollars) = text.split_once('=')?;
    let dollars =
        dollars.trim().parse().ok().filter(|dollars: &f64| (0.0..1e6).contains(dollars))?;
    Some((gpu.trim(), dollars))
}
