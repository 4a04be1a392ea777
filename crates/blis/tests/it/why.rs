//! `blis why`, and the scorers' parts in `--decisions-out`.

use crate::Bench;
use blis_report::text::grouped;
use serde_json::Value;

const BUSY: &str = "--num-instances 3 --num-requests 200 --rate 120 --routing-policy weighted \
    --snapshot-refresh-interval 500000 --prompt-tokens 2000 --quiet";

#[test]
fn one_request_fits_a_screen_and_ends_in_its_cause() {
    let bench = Bench::new();
    let ran = bench.blis(&format!("why {BUSY}"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines.len() <= 40, "{} lines:\n{}", lines.len(), ran.out);
    assert!(lines[0].starts_with("Request ") && lines[0].contains(": TTFT "), "{}", lines[0]);
    let last = ran.out.trim_end().rsplit("\n\n").next().expect("a paragraph");
    assert!(last.contains(" of ") && last.contains('%') || last.contains(" instead of "), "{last}");
    for told in ["queue", "prefill of", "Alone on an idle instance", "kv-utilization", "step ended"]
    {
        assert!(ran.out.contains(told), "{told}:\n{}", ran.out);
    }
    assert_eq!(bench.blis(&format!("why {BUSY}")).out, ran.out, "the same bytes");
}

#[test]
fn the_bar_of_a_life_is_the_latency_that_is_asked_about() {
    let bench = Bench::new();
    let filled = |measure: &str, row: &str| {
        let ran = bench.blis(&format!("why {BUSY} --slowest {measure}"));
        let rows = ran.out.lines().filter(|line| line.starts_with(row));
        rows.flat_map(str::chars).filter(|&letter| letter == '█').count()
    };
    let before = ["ingress", "waiting", "prefill"].map(|row| filled("ttft", row));
    assert!((28..=33).contains(&before.iter().sum::<usize>()), "all of the bar: {before:?}");
    assert_eq!(filled("ttft", "decode"), 0);
    assert!(filled("itl", "decode") >= 29, "all of it is between the first token and the last");
    assert_eq!(filled("itl", "prefill"), 0);
}

#[test]
fn of_many_requests_each_cause_is_told_once() {
    let bench = Bench::new();
    let ran = bench.blis(&format!("why {BUSY} -n 10"));
    let found = bench.blis(&format!("why {BUSY} -n 10 --format json")).out;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let name = |one: &Value| one["request"].as_str().expect("a name").to_owned();
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |one: &Value| one["cause"].as_str().expect("a cause").to_owned();
    let all = found.as_array().expect("a list");
    let mut causes: Vec<String> = all.iter().map(of).collect();
    causes.sort();
    causes.dedup();
    assert!(causes.len() < all.len());
    for cause in causes {
        let same: Vec<String> = all.iter().filter(|one| of(one) == cause).map(name).collect();
        let told = match &same[..] {
            [one] => format!("Request {one}: "),
            _ => format!("Requests {}, e.g. {}: ", same.join(", "), same[0]),
        };
        assert_eq!(words.matches(&told).count(), 1, "{told}: {}", ran.out);
    }
}

#[test]
fn every_nanosecond_of_a_latency_has_a_cause() {
    let bench = Bench::new();
    for measure in ["ttft", "e2e", "itl"] {
        let ran = bench.blis(&format!("why {BUSY} --slowest {measure} -n 10 --format json"));
        let found: Value = serde_json::from_str(&ran.out).expect("JSON");
        let found = found.as_array().expect("a list");
        assert_eq!(found.len(), 10);
        for one in found {
            let parts = one["parts_ns"].as_object().expect("parts");
            let sum: i64 = parts.values().map(|part| part.as_i64().expect("whole")).sum();
            assert_eq!(Some(sum), one["took_ns"].as_i64(), "{one}");
            let parts = one["ttft_parts_ns"].as_object().expect("parts");
            let sum: i64 = parts.values().map(|part| part.as_i64().expect("whole")).sum();
            assert_eq!(Some(sum), one["ttft_ns"].as_i64(), "{one}");
        }
    }
}

#[test]
fn a_request_is_named_as_in_the_rows_of_a_run() {
    let bench = Bench::new();
    let scenario = "cluster: {instances: 2}\nworkload: {trace: t.jsonl}\n";
    bench.write("s.yaml", scenario);
    bench.write(
        "t.jsonl",
        "{\"id\":\"ann\",\"arrival_us\":0,\"input_tokens\":500,\"output_tokens\":3}\n\
         {\"id\":\"bob\",\"arrival_us\":5,\"input_tokens\":900,\"output_tokens\":1}\n",
    );
    let ran = bench.blis("why bob s.yaml --quiet");
    assert!(ran.out.starts_with("Request bob: TTFT "), "{}{}", ran.out, ran.err);
    let all = bench.blis("why s.yaml -n 5 --quiet");
    assert!(all.out.starts_with("The 2 slowest requests by TTFT"), "{}", all.out);
    let ran = bench.blis("why eve s.yaml --quiet");
    let error = "error: no request `eve` finished; `blis run --requests-out FILE` lists them all\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
    assert_eq!(bench.blis("why 7 --num-requests 8 --quiet").code, Some(0), "a number alone");
    let swapped = bench.blis("why s.yaml 7 --quiet");
    assert!(
        swapped.err.contains("the request comes first: `blis why 7 s.yaml`"),
        "{}",
        swapped.err
    );
}

#[test]
fn a_name_beside_a_trace_is_a_request_and_one_token_has_no_time_between() {
    let bench = Bench::new();
    let row = "{\"id\":\"abc\",\"arrival_us\":0,\"input_tokens\":64,\"output_tokens\":1}\n";
    bench.write("t.jsonl", row);
    let ran = bench.blis("why abc --trace t.jsonl --quiet");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("Request abc: TTFT"), "{}", ran.out);
    let ran = bench.blis("why --slowest itl --trace t.jsonl --quiet");
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("no request finished with two tokens"), "{}", ran.err);
    let ran = bench.blis("why nowhere.yaml --trace t.jsonl --quiet");
    assert!(ran.err.contains("nowhere.yaml: "), "a scenario is meant: {}", ran.err);
}

#[test]
fn the_parts_of_the_scorers_add_up_to_the_score() {
    let bench = Bench::new();
    let ran = bench.blis(&format!("run {BUSY} --decisions-out d.jsonl --format json"));
    let plain = bench.blis(&format!("run {BUSY} --format json"));
    assert_eq!(ran.json(), plain.json(), "who listens changes nothing");
    let mut stale = 0;
    for line in bench.read("d.jsonl").lines() {
        let decision: Value = serde_json::from_str(line).expect("JSON");
        let others = decision["alternatives"].as_array().expect("a list");
        for scored in others.iter().chain([&decision["chosen"]]) {
            let parts = scored["scores"].as_object().expect("scorers");
            assert_eq!(parts.len(), 3, "{line}");
            let sum: f64 = parts.values().map(|part| part.as_f64().expect("a number")).sum();
            let score = scored["score"].as_f64().expect("a number");
            assert!((sum - score).abs() < 1e-9, "{line}");
        }
        stale += usize::from(decision["chosen_if_fresh"] != decision["chosen"]["instance"]);
    }
    assert!(stale > 0, "some choices were stale");
}

#[test]
fn the_page_of_a_run_shows_it_over_time_and_its_slowest_requests() {
    let bench = Bench::new();
    let plain = bench.blis(&format!("run {BUSY} --format json"));
    let ran = bench.blis(&format!("run {BUSY} --format json --report r.html --report r.md"));
    assert_eq!((ran.json(), ran.err.as_str()), (plain.json(), ""));
    let page = bench.read("r.html");
    for told in ["What the instances did", "KV blocks in use", "Slowest requests by TTFT"] {
        assert!(page.contains(told) && bench.read("r.md").contains(told), "{told}");
    }
    let slowest: Value =
        serde_json::from_str(&bench.blis(&format!("why {BUSY} -n 10 --format json")).out)
            .expect("JSON");
    for one in slowest.as_array().expect("a list") {
        let name = format!("Request {}", one["request"].as_str().expect("a name"));
        assert!(page.contains(&name), "{name}");
    }
    let ran = bench.blis(&format!("run {BUSY} --report r.html --replications 2"));
    let error = "error: --report: it applies to one run; remove `--replications`\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
}

/// One GPU whose KV memory is full, as in the measured runs `tier8`.
const PRESSED: &str = "hardware: H200\ntp: 1\nengine: {total_kv_blocks: 2200}\n\
    workload: {preset: multi-turn-4x512, rate: 8, num_requests: 600}\n";
const TIER: &str = "kv_tier: {cpu_blocks: 12000, reload: async, offload: write-through, \
    bandwidth_blocks_per_us: 0.005}\n";

#[test]
fn the_sentence_of_a_slow_request_says_what_its_facts_prove() {
    let bench = Bench::new();
    bench.write("gpu.yaml", PRESSED);
    bench.write("cpu.yaml", format!("{PRESSED}{TIER}"));
    let tenants = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/many-tenants.yaml");
    let mut causes = std::collections::BTreeSet::new();
    for scenario in [tenants, "gpu.yaml", "cpu.yaml"] {
        for measure in ["ttft", "e2e", "itl"] {
            let args = format!("why {scenario} --slowest {measure} -n 10 --format json --quiet");
            let found: Value = serde_json::from_str(&bench.blis(&args).out).expect("JSON");
            let found = found.as_array().expect("a list");
            assert_eq!(found.len(), 10, "{scenario}");
            for one in found {
                assert!(is_proven(one), "{scenario}: {one}");
                causes.insert(one["cause"].as_str().expect("a name").to_owned());
            }
        }
    }
    for cause in ["own work", "queue", "prefill of others", "preemption"] {
        assert!(causes.contains(cause), "{causes:?}");
    }
}

/// Whether what the sentence says follows from what happened to the request: the cause is the
/// largest part, and the numbers in the sentence are those of its life.
fn is_proven(one: &Value) -> bool {
    let whole = |value: &Value| value.as_u64().unwrap_or(0);
    let list = |name: &str| one[name].as_array().cloned().unwrap_or_default();
    let (cause, why) = (one["cause"].as_str().unwrap_or(""), one["why"].as_str().unwrap_or(""));
    let says = |number: u64, what: &str| why.contains(&format!("{} {what}", grouped(number)));
    let spent = |doing: &str, preempted: bool| -> u64 {
        let is = |it: &&Value| {
            (doing.is_empty() || it["doing"] == doing) && it["preempted"] == preempted
        };
        let life = list("life");
        life.iter().filter(is).map(|it| whole(&it["to_ns"]) - whole(&it["from_ns"])).sum()
    };
    let parts = one["parts_ns"].as_object().expect("parts");
    let part = parts.get(&cause.replace(' ', "_")).and_then(Value::as_i64);
    let is_largest = part == parts.values().filter_map(Value::as_i64).max();
    let part = part.and_then(|part| u64::try_from(part).ok()).unwrap_or(0);
    let any_step = |is: &dyn Fn(&Value) -> bool| list("steps").iter().any(is);
    match cause {
        "own work" if one["measure"] == "TTFT" => {
            let computed = whole(&one["input_tokens"]) - whole(&one["cached_tokens"]);
            is_largest && says(computed, "prompt token")
        }
        "own work" => is_largest && says(whole(&one["output_tokens"]), "output token"),
        "queue" => {
            let ahead = list("ahead");
            let tokens = ahead.iter().map(|it| whole(&it["tokens"])).sum();
            let behind = match ahead.len() as u64 {
                0 => says(whole(&one["found"]["running"]), "running request"),
                many => says(many, "request") && says(tokens, "token"),
            };
            is_largest && spent("waiting", false) >= part && behind
        }
        "preemption" => {
            let all = part <= spent("", true) && says(whole(&one["preemptions"]), "time");
            is_largest && all && whole(&one["preemptions"]) > 0
        }
        "prefill of others" => {
            let is_named = |step: &Value| {
                let (tokens, id) = (&step["largest"]["tokens"], &step["largest"]["request"]);
                let named = format!(" of request {} in one step", whole(id));
                says(whole(tokens), "token") && why.contains(&named)
            };
            is_largest && any_step(&is_named)
        }
        "decodes of others" => is_largest && any_step(&|step| whole(&step["decodes"]) > 1),
        "host" => any_step(&|step| whole(&step["gpu_ns"]) < whole(&step["duration_ns"])),
        "reload" => spent("reload", false) > 0 || any_step(&|step| whole(&step["stall_ns"]) > 0),
        "stale routing" => whole(&one["elsewhere"]["took_ns"]) < whole(&one["took_ns"]),
        "phantom hit" => {
            let [expected, cached] =
                ["expected_cached_tokens", "cached_tokens"].map(|name| whole(&one[name]));
            expected > cached && says(expected, "expected") && says(cached, "found")
        }
        _ => false,
    }
}
