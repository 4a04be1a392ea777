//! What `vllm bench serve --save-detailed` wrote: when the tokens of each request came.
//!
//! All tokens of an engine's step come together, so the steps can be told from them: what each
//! computed, and how long after the one before. What the prefix cache held and when the host did
//! what cannot.

use blis_latency::StepShape;
use blis_latency::fit::log::LoggedStep;
use blis_scenario::input;
use blis_scenario::problem::Problem;
use serde::Deserialize;
use std::path::Path;

/// Tokens that come so much later than others are those of the next step, in microseconds: those
/// of one step come 20 to 50 after one another.
const APART_US: f64 = 1500.0;

/// What is read of the file; times are in seconds.
#[derive(Deserialize)]
struct Detailed {
    input_lens: Vec<u32>,
    ttfts: Vec<f64>,
    itls: Vec<Vec<f64>>,
    start_times: Vec<f64>,
}

/// A token: when it came, whose it is, and how many that request had before.
struct Token {
    at_us: f64,
    request: usize,
    before: u32,
}

/// The steps that the file tells of.
///
/// # Errors
/// If it cannot be read, or is not such a file.
pub(super) fn read_steps(path: &Path) -> Result<Vec<LoggedStep>, Problem> {
    let name = path.display().to_string();
    let text = input::open(path)
        .and_then(std::io::read_to_string)
        .map_err(|e| Problem::unreadable(&name, &e))?;
    let all: Detailed = serde_json::from_str(&text).map_err(|error| {
        let remedy = "write it with `vllm bench serve --save-result --save-detailed`";
        Problem::of_file(&name, format!("{error}; {remedy}"))
    })?;
    let requests = all.input_lens.len();
    let others = [all.ttfts.len(), all.itls.len(), all.start_times.len()];
    if requests == 0 || others.iter().any(|&other| other != requests) {
        let message = "`input_lens`, `ttfts`, `itls` and `start_times` must have one entry for \
                       each request";
        return Err(Problem::of_file(&name, message));
    }
    Ok(steps(&all))
}

fn steps(all: &Detailed) -> Vec<LoggedStep> {
    let tokens = tokens(all);
    let mut steps: Vec<LoggedStep> = Vec::new();
    let mut ends = vec![false; all.input_lens.len()];
    let mut from = 0;
    while from < tokens.len() {
        ends.fill(false);
        let mut to = from;
        while let Some(token) = tokens.get(to) {
            let late = to > from && token.at_us - tokens[to - 1].at_us > APART_US;
            if late || std::mem::replace(&mut ends[token.request], true) {
                break;
            }
            to += 1;
        }
        let before =
            steps.last().map_or(f64::NEG_INFINITY, |step| step.start_us + step.duration_us);
        steps.push(step(all, &tokens[from..to], before));
        from = to;
    }
    for at in 2..steps.len() {
        undo_delay(&mut steps[at - 2..=at]);
    }
    steps
}

/// With asynchronous scheduling the launch of a step with prefill delays the tokens of the step
/// before. So what that one took longer than the one before it is the last one's time.
fn undo_delay(steps: &mut [LoggedStep]) {
    let [first, second, third] = steps else { return };
    let is_delayed = first.shape.only_decodes() && second.shape.only_decodes();
    if is_delayed && !third.shape.only_decodes() {
        let delay = (second.duration_us - first.duration_us).max(0.0);
        second.duration_us -= delay;
        third.start_us -= delay;
        third.duration_us += delay;
    }
}

/// All tokens in the order in which they came.
fn tokens(all: &Detailed) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (request, (&start, &ttft)) in all.start_times.iter().zip(&all.ttfts).enumerate() {
        // A request that failed has no token.
        if ttft <= 0.0 {
            continue;
        }
        let mut at_us = 1e6 * (start + ttft);
        tokens.push(Token { at_us, request, before: 0 });
        for (before, gap) in (1..).zip(&all.itls[request]) {
            at_us += 1e6 * gap;
            tokens.push(Token { at_us, request, before });
        }
    }
    tokens.sort_by(|a, b| a.at_us.total_cmp(&b.at_us).then(a.request.cmp(&b.request)));
    tokens
}

/// The step that made `tokens`; the tokens of the one before came at `before`. If nobody was
/// running then, it began when the first of its requests was sent.
fn step(all: &Detailed, tokens: &[Token], before: f64) -> LoggedStep {
    let mut shape = StepShape::default();
    let mut sent = f64::INFINITY;
    for token in tokens {
        let prompt = all.input_lens[token.request];
        if token.before == 0 {
            // Prompts of one benchmark are alike, so the cost of attention pairs cannot be told
            // from that of tokens, and counts as part of it: no pairs.
            shape.prefill_seqs += 1;
            shape.prefill_tokens += prompt;
            sent = sent.min(1e6 * all.start_times[token.request]);
        } else {
            let context = prompt + token.before;
            shape.decode_seqs += 1;
            shape.decode_context += u64::from(context);
            shape.decode_longest = shape.decode_longest.max(context);
        }
    }
    let end = tokens[0].at_us;
    let start_us = if shape.decode_seqs == 0 { before.max(sent) } else { before };
    LoggedStep {
        start_us,
        duration_us: (end - start_us).max(1.0),
        shape,
        // Not known, and so that nothing is taken to be shared.
        waiting_after: 1,
        ..LoggedStep::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::math::count;

    #[test]
    fn tokens_that_come_together_are_of_one_step() {
        let all = Detailed {
            input_lens: vec![100, 50],
            ttfts: vec![0.020, 0.015],
            itls: vec![vec![0.010, 0.010], vec![0.0101]],
            start_times: vec![1.0, 1.015],
        };
        let found = steps(&all);
        let shapes = found.iter().map(|step| {
            let shape = &step.shape;
            (shape.prefill_tokens, shape.decode_seqs, shape.decode_context)
        });
        assert_eq!(shapes.collect::<Vec<_>>(), [(100, 0, 0), (50, 1, 101), (0, 2, 102 + 51)]);
        let micros = found.iter().map(|step| count(step.duration_us));
        assert_eq!(micros.collect::<Vec<_>>(), [20_000, 10_000, 10_000]);
    }
}
