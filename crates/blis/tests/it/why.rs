//! `blis why`, and the scorers' parts in `--decisions-out`.

use crate::Bench;
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
