//! `--perfetto`: a trace that a viewer can read.

use crate::Bench;
use serde_json::Value;
use std::collections::BTreeMap;

const BUSY: &str = "run --num-instances 2 --num-requests 80 --rate 60 --total-kv-blocks 200 \
    --max-num-running-reqs 16 --reserve-full-prompt false --prompt-tokens 500 --output-tokens 200 \
    --quiet --format json";

fn events(bench: &Bench, line: &str) -> Vec<Value> {
    let ran = bench.blis(line);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let trace: Value = serde_json::from_str(&bench.read("t.json")).expect("JSON");
    trace["traceEvents"].as_array().expect("a list").clone()
}

/// Checks what every viewer relies on; returns what is wrong.
fn wrong(events: &[Value]) -> Option<String> {
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    let mut open: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for event in events {
        let known = |key: &str| !event[key].is_null();
        let phase = event["ph"].as_str()?;
        let keys = match phase {
            "M" | "C" => "args",
            "X" => "dur",
            "b" | "e" => "id2 cat",
            _ => return Some(format!("an unknown phase: {event}")),
        };
        let all = "name pid tid ts".split(' ').chain(keys.split(' '));
        if let Some(key) = all.into_iter().find(|key| !known(key)) {
            return Some(format!("no {key}: {event}"));
        }
        let name = event["name"].as_str()?;
        let track = match phase {
            "M" => continue,
            "C" => format!("counter {name} of {}", event["pid"]),
            "X" => format!("thread {} of {}", event["tid"], event["pid"]),
            _ => format!("request {} of {}", event["id2"]["local"].as_str()?, event["pid"]),
        };
        let at = event["ts"].as_f64()?;
        let before = last.insert(track.clone(), at + event["dur"].as_f64().unwrap_or(0.0));
        // The end of a slice is a sum of floats.
        if before.is_some_and(|before| at < before - 1e-3) {
            return Some(format!("{track} goes back from {before:?}: {event}"));
        }
        let stack = open.entry(track).or_default();
        match phase {
            "b" => stack.push(name),
            "e" if stack.pop() != Some(name) => return Some(format!("ends unbegun: {event}")),
            _ => {}
        }
    }
    open.iter().find(|(_, stack)| !stack.is_empty()).map(|it| format!("never ends: {it:?}"))
}

#[test]
fn a_trace_has_all_keys_in_order_and_ends_what_it_begins() {
    let bench = Bench::new();
    let found = events(&bench, &format!("{BUSY} --perfetto t.json"));
    assert_eq!(wrong(&found), None);
    let count = |phase: &str, name: &str| {
        let is = |event: &&Value| event["ph"] == phase && event["name"] == name;
        found.iter().filter(is).count()
    };
    assert_eq!((count("M", "process_name"), count("b", "request 7")), (3, 1));
    for (phase, name) in [("X", "decode"), ("C", "requests"), ("C", "KV blocks"), ("b", "waiting")]
    {
        assert!(count(phase, name) > 0, "{name}");
    }
    let preempted = |event: &&Value| event["args"]["preempted"] == true;
    assert!(found.iter().filter(preempted).count() > 0, "somebody was preempted");
    let mut broken = found.clone();
    broken.pop();
    assert!(wrong(&broken).is_some(), "a request that never ends is noticed");
    let mut broken = found.clone();
    broken.reverse();
    assert!(wrong(&broken).is_some(), "time that goes back is noticed");
}

#[test]
fn a_trace_changes_nothing() {
    let bench = Bench::new();
    let plain = bench.blis(BUSY).json();
    assert_eq!(bench.blis(&format!("{BUSY} --perfetto t.json")).json(), plain);
    let first = bench.read("t.json");
    bench.blis(&format!("{BUSY} --perfetto t.json --audit"));
    assert_eq!(bench.read("t.json"), first, "the same bytes");
}
