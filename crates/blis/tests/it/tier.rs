//! The CPU tier on the command line.

use crate::Bench;
use crate::bad_input::refused;
use serde_json::Value;

#[test]
fn settings_of_a_tier_that_is_not_there() {
    let absent = "there is no CPU tier; set `cpu_blocks` (or `--kv-cpu-blocks`), or \
                  remove it";
    for flag in ["--kv-reload async", "--kv-link h200-pcie", "--kv-transfer-bandwidth 10"] {
        let name = flag.split(' ').next().expect("a flag");
        refused(flag, &format!("{name}: {absent}"));
    }
    refused(
        "--preemption-mode swap",
        "--preemption-mode: there is no CPU tier to swap to; set `kv_tier.cpu_blocks` (or \
         `--kv-cpu-blocks`), or `recompute`",
    );
    refused(
        "--kv-cpu-blocks 9 --kv-link h20-pcie",
        "--kv-link: unknown link `h20-pcie`, did you mean `h200-pcie`?; known: `h200-pcie`, \
         `h200-pcie-per-block`, `h200-pcie-per-layer`, `h100-pcie`, `a100-pcie`, `gb200-c2c`; or \
         give `bandwidth_blocks_per_us`",
    );
    refused(
        "--kv-cpu-blocks 9 --kv-offload thresold",
        "--kv-offload: unknown offload policy `thresold`, did you mean `threshold`?; known: \
         `on-evict`, `threshold`, `vllm`, `write-through`",
    );
    refused(
        "--kv-cpu-blocks 9 --kv-offload-threshold 2",
        "--kv-offload-threshold: offload policy `threshold`: `threshold` is `2`; legal: a \
         number from 0 to 1",
    );
    refused(
        "--total-kv-blocks 100 --gpu-memory-utilization 0.9",
        "--gpu-memory-utilization: `total_kv_blocks` is given as well; keep one of the two",
    );
}

const BUSY: &str = "run --num-instances 2 --num-requests 200 --rate 30 --total-kv-blocks 200 \
    --kv-cpu-blocks 4000 --prefix-tokens 300 --preemption-mode swap --quiet";

#[test]
fn every_layout_tells_what_the_tier_did() {
    let bench = Bench::new();
    let value = bench.blis(&format!("{BUSY} --format json --audit")).json();
    let kv = &value["kv"];
    let count = |of: &Value, key: &str| of[key].as_u64().expect("a count");
    let number = |of: &Value, key: &str| of[key].as_f64().expect("a number");
    for key in ["offloaded_blocks", "reloaded_blocks"] {
        let instances = value["instances"].as_array().expect("a list");
        let sum: u64 = instances.iter().map(|instance| count(instance, key)).sum();
        assert!(sum > 0 && sum == count(kv, key), "{key}");
    }
    let (stall, share) = (number(kv, "transfer_stall_ms"), number(kv, "transfer_stall_share"));
    let seconds = number(&value["run"], "simulated_seconds");
    assert!(stall > 0.0 && share > 0.0 && share >= stall / 1e3 / (2.0 * seconds), "{kv}");
    let peaks = [0, 1].map(|index| count(&value["instances"][index], "peak_cpu_blocks"));
    assert_eq!(count(kv, "peak_cpu_blocks"), peaks[0].max(peaks[1]));

    let thrashing = number(kv, "thrashing_rate");
    assert!(thrashing > 0.0, "{kv}");
    let text = bench.blis(&format!("{BUSY} --format blis")).out;
    assert!(text.contains(&format!("KV Thrashing Rate: {thrashing:.4}\n")), "{text}");

    let table = bench.blis(&format!("{BUSY} --format table")).out;
    let (_, tier) = table.split_once("CPU tier: 4,000 blocks per instance, at most ").expect("it");
    let tier = tier.split("\nrouting").next().expect("a line");
    for word in [" % in use, ", " offloaded, ", " reloaded,", "thrashing ", "steps stalled "] {
        assert!(tier.contains(word), "{word}: {tier}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let without = bench.blis("run --num-requests 5 --format table").out;
    assert!(!without.contains("CPU tier"), "{without}");
}

/// A stall counts as far as the horizon, as the time that it is a share of does.
#[test]
fn a_stall_that_the_horizon_cuts_is_no_more_than_all_the_time() {
    let slow = "--kv-transfer-bandwidth 0.0001 --kv-reload blocking --format json --audit";
    let mut cut = 0;
    for horizon in [700_000, 1_000_000, 2_000_000, 4_000_000] {
        let ran = Bench::new().blis(&format!("{BUSY} {slow} --horizon {horizon}"));
        let share = ran.json()["kv"]["transfer_stall_share"].as_f64().expect("a number");
        assert!(share <= 1.0, "{share} at {horizon}");
        cut += u32::from(share > 0.1);
    }
    assert!(cut > 1, "it was stalled");
}

/// Two prompts in turn, of which the GPU holds one: each is copied out before the other comes.
#[test]
fn rows_of_requests_say_how_long_they_waited_for_their_blocks() {
    let bench = Bench::new();
    let line = |n: u32| {
        let (at, stream) = (n * 300_000, n % 2);
        format!("{{\"arrival_us\":{at},\"prompt\":[[\"s{stream}\",1601]],\"output_tokens\":2}}\n")
    };
    bench.write("t.jsonl", (0..10).map(line).collect::<String>());
    for reload in ["blocking", "async"] {
        let value = bench.blis(&format!(
            "run --trace t.jsonl --total-kv-blocks 110 --kv-cpu-blocks 400 --kv-offload \
             write-through --kv-transfer-bandwidth 0.01 --kv-transfer-base-latency 50 --kv-reload \
             {reload} --format json --requests-out r.csv"
        ));
        let rows = bench.read("r.csv");
        let column = |row: &str| row.split(',').nth(14).expect("reload_us").to_owned();
        let waited: Vec<String> = rows.lines().skip(1).map(column).collect();
        // Of its 100 full blocks 9 are left: the other prompt took 101 of the 110.
        assert_eq!(waited[..3], ["0", "0", "9150"], "{reload}: 50 us and 91 blocks at 0.01 a us");
        let sum: f64 = waited.iter().map(|text| text.parse::<f64>().expect("a number")).sum();
        let mean = value.json()["decomposition"]["mean_ms"]["reload"].as_f64().expect("a number");
        assert!((sum / 1e4 - mean).abs() < 1e-9, "{reload}: {sum} us in rows, {mean} ms");
    }
}
