//! `blis trace inspect`: what people see.

use crate::Bench;

/// Four rounds of two sessions on a system prompt of 64 tokens, one every second.
fn trace() -> String {
    (0..8)
        .map(|i: u32| {
            let (session, round) = (i % 2, i / 2);
            format!(
                "{{\"arrival_us\":{}000000,\"prompt\":[[\"sys\",64],[\"s{session}\",{}]],\
                 \"output_tokens\":20,\"output_stream\":\"s{session}\",\"class\":\"{}\",\
                 \"tenant\":\"t{session}\",\"session\":\"s{session}\",\"round\":{round}}}\n",
                i + 3,
                40 + 60 * round,
                ["critical", "batch"][session as usize],
            )
        })
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn the_table_says_what_is_in_the_trace() {
    let bench = Bench::new();
    bench.write("t.jsonl", trace());
    let ran = bench.blis("trace inspect t.jsonl");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ran.out, @"
t.jsonl: 8 requests in 7.00 s, native format
1.00 requests/s, 1.00 in the busiest second
CV of the gaps 0.00

  ████████████████████████████████████████████████████████████████████████████████████████████████
  ████████████████████████████████████████████████████████████████████████████████████████████████
  3.00 s                    1.14 to 1.14 requests/s, 875.0 ms per column                    10.0 s

tokens    sum   mean  min  p10  p50  p90  p99  max
──────────────────────────────────────────────────
input   1,552  194.0  104  104  164  284  284  284
output    160   20.0   20   20   20   20   20   20
total   1,712  214.0  124  124  184  304  304  304

Quantiles are within 0.4 %, everything else is exact.

input tokens
  104 to 111  ████████████████████████  25.0 %
  112 to 119                             0.0 %
  120 to 127                             0.0 %
  128 to 143                             0.0 %
  144 to 159                             0.0 %
  160 to 175  ████████████████████████  25.0 %
  176 to 191                             0.0 %
  192 to 207                             0.0 %
  208 to 223                             0.0 %
  224 to 239  ████████████████████████  25.0 %
  240 to 255                             0.0 %
  256 to 284  ████████████████████████  25.0 %

output tokens
  20  ████████████████████████ 100.0 %

Sharing: an unbounded cache would hit 72.2 % of all prompt tokens
blocks of 16 tokens, 1,120 of 1,552 tokens, 7 of 8 requests hit a block, 32 blocks to keep

prompt tokens  hits  tokens saved  share of all tokens
──────────────────────────────────────────────────────
0 to 64           7           448               28.9 %
64 to 112         3           144                9.3 %
64 to 112         3           144                9.3 %
112 to 176        2           128                8.2 %
112 to 176        2           128                8.2 %

Sessions: 2 with 100.0 % of the requests
per session            mean     min     p10     p50     p90     p99     max
───────────────────────────────────────────────────────────────────────────
rounds                 4.00       4       4       4       4       4       4
time between rounds  2.00 s  2.00 s  2.00 s  2.00 s  2.00 s  2.00 s  2.00 s

class     requests   share  mean input  mean output
───────────────────────────────────────────────────
critical         4  50.0 %       194.0         20.0
batch            4  50.0 %       194.0         20.0

tenant  requests   share  mean input  mean output
─────────────────────────────────────────────────
t0             4  50.0 %       194.0         20.0
t1             4  50.0 %       194.0         20.0
");
    for line in ran.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// Rounds have 104, 164, 224 and 284 prompt tokens. By hand, in blocks of 16: the first request
/// finds nothing, the other session's first round finds 64 tokens of the system prompt, and a later
/// round finds all whole blocks of the round before with its answer but for the last token: of
/// 104 + 19 = 123 tokens 112, of 183 176, of 243 240.
#[test]
fn sharing_is_what_can_be_worked_out_by_hand() {
    let bench = Bench::new();
    bench.write("t.jsonl", trace());
    let ran = bench.blis("trace inspect t.jsonl --format json");
    let value: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let sharing = &value["sharing"];
    assert_eq!(sharing["prompt_tokens"], 2 * (104 + 164 + 224 + 284));
    assert_eq!(sharing["hit_tokens"], 64 + 2 * (112 + 176 + 240));
    assert_eq!(sharing["requests_with_hit"], 7);
    assert_eq!(sharing["stretches"][0]["saved_tokens"], 7 * 64);
    assert_eq!(value["sessions"]["rounds"]["max"], 4);
    assert_eq!(value["sessions"]["gaps"]["p50_ms"], 2_000.0);
    assert_eq!(value["classes"]["batch"]["requests"], 4);
    assert_eq!(value["tenants"]["t1"]["output_tokens"], 80);
    let wide = bench.blis("trace inspect t.jsonl --format json --block-size 64");
    let wide: serde_json::Value = serde_json::from_str(&wide.out).expect("JSON");
    assert_eq!(wide["sharing"]["hit_tokens"], 64 + 2 * (64 + 128 + 192));
    let without = bench.blis("trace inspect t.jsonl --format json --no-sharing");
    let without: serde_json::Value = serde_json::from_str(&without.out).expect("JSON");
    assert!(without.get("sharing").is_none() && without["requests"] == 8);
}

#[test]
fn one_request_has_no_rate_and_no_chart() {
    let bench = Bench::new();
    bench.write("t.jsonl", "{\"arrival_us\":7,\"input_tokens\":9,\"output_tokens\":1}\n");
    let ran = bench.blis("trace inspect t.jsonl");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.starts_with("t.jsonl: 1 request in 0 s, native format\n"), "{}", ran.out);
    assert!(!ran.out.contains("requests/s"), "{}", ran.out);
    assert!(ran.out.ends_with("Sharing: no two prompts begin with the same 16 tokens.\n"));
}

#[test]
fn shipped_workloads_are_listed_and_printed_as_files() {
    let bench = Bench::new();
    let list = bench.blis("workloads").out;
    assert!(list.contains("orthogonal-slo") && list.contains("saas-150x6000"), "{list}");
    assert!(list.lines().any(|line| line.starts_with("chat ")), "sets of targets: {list}");
    for line in list.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let printed = bench.blis("workloads chatbot").out;
    bench.write("mine.yaml", &printed);
    let ran = bench.blis("run --workload-spec mine.yaml --rate 20 --num-requests 20 --format json");
    assert_eq!(ran.json()["cluster"]["injected_requests"], 20);
    let by_name = bench.blis("run --workload chatbot --rate 20 --num-requests 20 --format json");
    assert_eq!(ran.json()["cluster"], by_name.json()["cluster"], "by name and as a file");
    let ran = bench.blis("workloads chatbo");
    let start =
        "error: unknown preset `chatbo`, did you mean `chatbot`?; known: `orthogonal-slo`, ";
    assert!(ran.code == Some(2) && ran.err.starts_with(start), "{}", ran.err);
    let json: serde_json::Value =
        serde_json::from_str(&bench.blis("workloads --format json").out).expect("JSON");
    assert_eq!(json["workloads"][0]["name"], "orthogonal-slo");
    assert!(json["slo"][0]["classes"]["critical"]["ttft_ms"].is_number());
}
