//! `--timeline` on the command line.

use crate::Bench;
use crate::bad_input::refused;

const TIER: &str = "run --num-instances 2 --num-requests 60 --rate 30 --total-kv-blocks 200 \
    --kv-cpu-blocks 300 --kv-offload write-through --prefix-tokens 300 --quiet";

#[test]
fn bad_intervals_and_outputs_are_refused() {
    for text in ["0", "-5", "x", "1e10"] {
        refused(
            &format!("--timeline t.csv --timeline-interval-ms {text}"),
            &format!(
                "--timeline-interval-ms: `{text}`; legal: a number from 0.001 to 1e9 (milliseconds)"
            ),
        );
    }
    refused("--timeline-interval-ms 5", "--timeline-interval-ms: it needs `--timeline FILE`");
    refused(
        "--timeline ./rows.csv",
        "--timeline: it is also the file of `--requests-out`; name another",
    );
    let ran = Bench::new().blis("run --timeline t.csv --replications 2");
    let error = "error: --timeline: it applies to one run; remove `--replications`\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
}

#[test]
fn a_row_for_every_instance_and_instant_until_the_end() {
    let bench = Bench::new();
    let json = bench.blis(&format!("{TIER} --format json --timeline t.csv --audit")).json();
    let text = bench.read("t.csv");
    let (header, rows) = text.split_once('\n').expect("a header");
    assert_eq!(
        header,
        "time_us,instance,waiting,loading,running,blocks_free,blocks_cached,blocks_in_use,\
         cpu_blocks,out_transfers,back_transfers,pending_transfer_us,hit_rate,thrashing_rate"
    );
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows[0], ["0", "0", "0", "0", "0", "200", "0", "0", "0", "0", "0", "0", "", ""]);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row[0], (number / 2 * 100_000).to_string(), "100 ms apart");
        assert_eq!(row[1], (number % 2).to_string());
        let blocks: u32 = row[5..8].iter().map(|n| n.parse::<u32>().expect("a count")).sum();
        assert_eq!(blocks, 200, "{row:?}");
    }
    let last: f64 = rows.last().expect("rows")[0].parse().expect("a time");
    let end = json["run"]["simulated_seconds"].as_f64().expect("a number");
    assert!(last / 1e6 <= end && end < last / 1e6 + 0.1, "{last} us, {end} s");
    assert!(rows.iter().any(|row| row[8] != "0"), "the tier was used");
}

#[test]
fn the_same_bytes_whatever_the_pace_and_whoever_listens() {
    let bench = Bench::new();
    let plain = bench.blis(&format!("{TIER} --format json"));
    for reload in ["blocking", "async"] {
        let run = format!("{TIER} --format json --timeline-interval-ms 0.9 --kv-reload {reload}");
        bench.blis(&format!("{run} --timeline first.csv"));
        for extra in ["--stepwise", "--audit", "--jobs 1", "--requests-out r.csv"] {
            assert_eq!(bench.blis(&format!("{run} {extra} --timeline t.csv")).code, Some(0));
            assert!(bench.read("t.csv") == bench.read("first.csv"), "{reload}, {extra}");
        }
    }
    let with = bench.blis(&format!("{TIER} --format json --timeline t.csv")).json();
    assert_eq!(plain.json(), with, "a timeline changes no number");
}
