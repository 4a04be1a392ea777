//! Prefix hits of traces and conversations against counts made by hand.

use crate::harness::{plan, run_audited};
use blis_core::random::{Dice, Purpose};
use blis_metrics::{Fact, Listener};
use blis_scenario::{Draft, RunResult};
use blis_sim::Pace;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Hears nothing.
struct Deaf;

impl Listener for Deaf {
    fn hear(&mut self, _: blis_core::Time, _: &Fact<'_>) {}
}

/// A request of a trace in Mooncake's format: prompt length and the ids of its 512-token blocks.
struct Row {
    input: usize,
    ids: Vec<u64>,
}

/// Conversations that go on, branch off and start anew, like Mooncake's.
fn rows(seed: u64) -> Vec<Row> {
    let mut dice = Dice::new(seed, Purpose::Sampling, 0);
    let mut rows: Vec<Row> = Vec::new();
    for number in 0..300 {
        // All share the first block; most go on from somewhere in an earlier prompt.
        let mut ids = vec![0];
        if !rows.is_empty() && dice.unit() < 0.7 {
            let before = &rows[dice.below(rows.len())].ids;
            ids = before[..=dice.below(before.len())].to_vec();
        }
        let fresh = dice.below(6) as u64;
        ids.extend((0..fresh).map(|new| 1_000 * (number + 1) + new));
        let last = 1 + dice.below(512);
        rows.push(Row { input: 512 * (ids.len() - 1) + last, ids });
    }
    rows
}

/// Tokens found by a cache of 16-token blocks that never forgets, one for each of `instances`
/// served in turn. A block is known by all ids up to its own and its place within that one.
fn naive_hits(rows: &[Row], instances: usize) -> usize {
    let mut caches: Vec<BTreeSet<(&[u64], usize)>> = vec![BTreeSet::new(); instances];
    let mut hits = 0;
    for (number, Row { input, ids }) in rows.iter().enumerate() {
        let cache = &mut caches[number % instances];
        let block = |index: usize| (&ids[..=index * 16 / 512], index * 16 % 512);
        // At least the last token is computed.
        hits += 16 * (0..(input - 1) / 16).take_while(|&at| cache.contains(&block(at))).count();
        cache.extend((0..input / 16).map(block));
    }
    hits
}

fn write(name: &str, rows: &[Row]) -> PathBuf {
    let mut text = String::new();
    for (number, Row { input, ids }) in rows.iter().enumerate() {
        // Far enough apart that one is done before the next comes.
        let at = number * 20_000;
        writeln!(
            text,
            r#"{{"timestamp":{at},"input_length":{input},"output_length":3,"hash_ids":{ids:?}}}"#
        )
        .expect("writing to a string cannot fail");
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.jsonl"));
    std::fs::write(&path, text).expect("the folder for such files can be written to");
    path
}

fn run_trace(path: &Path, instances: usize) -> RunResult {
    let text = format!(
        "cluster: {{instances: {instances}}}\nengine: {{total_kv_blocks: 10000000}}\n\
         workload: {{trace: {}}}",
        path.display()
    );
    let draft = Draft::from_text("trace.yaml", &text).expect("well-formed");
    let plan = draft.plan().unwrap_or_else(|problem| panic!("{problem}"));
    run_audited(&plan, Pace::FastForward, &mut Deaf)
}

#[test]
fn a_trace_hits_what_a_cache_that_never_forgets_would_hit() {
    for seed in 0..4 {
        let rows = rows(seed);
        let path = write(&format!("hits-{seed}"), &rows);
        for instances in [1, 3] {
            let kv = run_trace(&path, instances).report.kv;
            let prompt: usize = rows.iter().map(|row| row.input).sum();
            let hits = naive_hits(&rows, instances);
            assert_eq!((kv.cached_tokens, kv.prompt_tokens), (hits as u64, prompt as u64));
            assert!(hits > prompt / 10, "sharing matters: {hits} of {prompt}");
        }
        std::fs::remove_file(path).expect("it was just written");
    }
}

/// Of the 6,656 prompt tokens of a conversation, 752 + 1,520 + 2,288 were seen before in full
/// blocks whose KV was written: 68.5 %.
#[test]
fn conversations_that_are_followed_hit_all_that_was_said_before() {
    let text = "cluster: {instances: 4}\nrouting: {policy: weighted, scorers: 'pa:1'}\n\
                workload: {preset: multi-turn-4x512, rate: 10, num_requests: 2000}";
    let result = run_audited(&plan(text), Pace::FastForward, &mut Deaf);
    let kv = &result.report.kv;
    assert_eq!(kv.evicted_blocks, 0, "there is room for all");
    assert_eq!((kv.prompt_tokens, kv.cached_tokens), (500 * 6_656, 500 * 4_560));
    // Sent anywhere, a round finds its past only where it happens to have been before.
    let scattered = text.replace("policy: weighted, scorers: 'pa:1'", "policy: random");
    let result = run_audited(&plan(&scattered), Pace::FastForward, &mut Deaf);
    assert!(result.report.kv.hit_rate.expect("there were prompts") < 0.5);
}
