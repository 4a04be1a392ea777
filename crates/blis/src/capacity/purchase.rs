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
        let most = most.or(args.gpus);
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
        for (fields, budget) in tried(draft, most) {
            let mut draft = draft.clone();
            draft.set("--search", "hardware", &gpu.name);
            for (field, value) in &fields {
                draft.set("--search", field, value);
            }
            match draft.resolve() {
                Ok(checked) => {
                    let name = format!("{} {}, {budget}", gpu.name, checked.plan().shared());
                    machines.push((name, Some(Rent { dollars, most }), checked, draft));
                }
                Err(problems) => refused = Some(problems),
            }
        }
        if let Some(problems) = refused.filter(|_| machines.len() == before) {
            return Err(problems.into());
        }
    }
    Ok(machines)
}

/// What is set on each machine that is tried, of at most so many GPUs an instance, and its budget
/// in words. Only measured operators know how long a pipeline and divided experts take, and what
/// an FP8 KV cache saves.
fn tried(draft: &Draft, most: Option<u32>) -> Vec<(Vec<(&'static str, String)>, String)> {
    let tree = draft.clone().into_tree();
    let model = tree.field("latency").and_then(|latency| latency.field("model"));
    let composed = model.is_some_and(|model| model.to_json() == "\"operators\"");
    let mut shared: Vec<[u32; 4]> = PARALLELISM.iter().map(|&tp| [tp, 1, 1, 0]).collect();
    if composed {
        shared.extend(PARALLELISM.iter().map(|&tp| [tp, 2, 1, 0]));
        shared.extend(PARALLELISM[1..].iter().map(|&tp| [tp, 1, 1, 1]));
        shared.extend(PARALLELISM[1..].iter().map(|&dp| [1, 1, dp, 1]));
    }
    let open = composed && !tree.has("engine.kv_cache_dtype");
    let caches: &[Option<&str>] = if open { &[None, Some("fp8")] } else { &[None] };
    let mut tried = Vec::new();
    for [tp, pp, dp, expert] in shared {
        if most.is_some_and(|most| tp * pp * dp > most) {
            continue;
        }
        let budgets = TOKENS.into_iter().flat_map(|tokens| SEQUENCES.map(|seqs| (tokens, seqs)));
        for (tokens, sequences) in budgets {
            for cache in caches {
                let mut fields = vec![("tp", tp.to_string())];
                fields.extend((pp > 1).then(|| ("pp", pp.to_string())));
                fields.extend((dp > 1).then(|| ("dp", dp.to_string())));
                fields.extend((expert > 0).then(|| ("expert_parallel", "true".to_owned())));
                // Budgets are those of a rank.
                fields.push(("engine.max_num_scheduled_tokens", tokens.to_string()));
                fields.push(("engine.max_num_running_reqs", sequences.to_string()));
                fields.extend(cache.map(|cache| ("engine.kv_cache_dtype", cache.to_owned())));
                let cache = cache.map_or(String::new(), |cache| format!(", {cache} KV cache"));
                tried.push((fields, format!("{tokens} tokens, {sequences} seqs{cache}")));
            }
        }
    }
    tried
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
