//! Capacities, from the command line to the page.

use super::Bench;

/// Servers that take one request at a time, for 10 ms.
pub(super) const SCENARIO: &str = "\
latency: {model: constant, step_us: 1000}
cluster: {instances: 2}
engine: {max_num_running_reqs: 1, total_kv_blocks: 1000}
slo: {standard: {ttft_ms: 6}}
workload:
  distribution: {rate: 30, num_requests: 1000, prompt_tokens: {mean: 16, stdev: 0}, \
output_tokens: {mean: 10, stdev: 0}}
";

const QUICK: &str = "--seeds 2 --max-seeds 2 --quiet";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("s.yaml", SCENARIO);
    bench
}

#[test]
fn strategies_are_compared_on_a_page_and_again_for_nothing() {
    let bench = bench();
    let args = format!(
        "capacity s.yaml {QUICK} --strategy round-robin --strategy least-loaded --report p.html"
    );
    let ran = bench.blis(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in ["standard.slo_attainment >= 95%", "against round-robin", "meets", "overloaded"] {
        assert!(ran.out.contains(part), "no `{part}` in {}", ran.out);
    }
    let page = bench.read("p.html");
    assert!(page.contains("<h2>Curves</h2>") && page.contains("id=\"findings\""));
    let runs =
        |bench: &Bench| bench.blis("ledger list --last 1").out.lines().last().map(str::to_owned);
    let before = runs(&bench).expect("a summary");
    let again = bench.blis(&args);
    assert_eq!(again.out, ran.out, "the same question, the same answer");
    assert_eq!(runs(&bench), Some(before), "nothing was run again");
    assert_eq!(bench.read("p.html"), page);
    let list = bench.blis("ledger list --last 3").out;
    assert!(list.contains("capacity of s"), "{list}");
}

#[test]
fn the_json_has_every_point_and_the_capacity_of_each_seed() {
    let ran = bench().blis(&format!("capacity s.yaml {QUICK} --no-ledger --format json"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let answer = &all["strategies"][0];
    let mean = answer["capacity"]["mean"].as_f64().expect("a number");
    assert!((mean - 200.0).abs() < 6.0, "two servers of 100 a second: {mean}");
    assert_eq!(answer["values"].as_array().map(Vec::len), Some(2));
    let points = answer["points"].as_array().expect("points");
    let verdicts: Vec<&str> = points.iter().filter_map(|point| point["verdict"].as_str()).collect();
    assert!(verdicts.contains(&"meets") && verdicts.contains(&"overloaded"), "{verdicts:?}");
}

#[test]
fn the_fewest_instances_are_found_at_the_given_rate() {
    let args =
        format!("capacity s.yaml {QUICK} --no-ledger --vary instances --rate 350 --format json");
    let ran = bench().blis(&args);
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(all["strategies"][0]["safe"].as_f64(), Some(4.0), "{}", ran.out);
    assert_eq!(all["unit"], "instances");
}

#[test]
fn a_strategy_without_a_capacity_is_a_failed_check() {
    let bench = bench();
    let ran = bench.blis(&format!("capacity s.yaml {QUICK} --no-ledger --slo ttft_mean<=0.5ms"));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    for told in ["it is 1 ms there", "relax the SLO: an idle cluster misses it"] {
        assert!(words.join(" ").contains(told), "{}", ran.out);
    }
}

#[test]
fn nonsense_is_refused_with_advice_before_anything_runs() {
    let bench = bench();
    bench.write("t.jsonl", "{\"arrival_us\":0,\"input_tokens\":8,\"output_tokens\":2}\n");
    bench.write("free.yaml", SCENARIO.replace("slo: {standard: {ttft_ms: 6}}\n", ""));
    for (args, message) in [
        ("s.yaml --slo ttft_p98<=3ms", "--slo: unknown number `ttft_p98`, did you mean"),
        ("s.yaml --slo ttft_p99<=95%", "--slo: compares milliseconds with"),
        ("s.yaml --slo ttft_p99~3ms", "within"),
        ("free.yaml", "no class with requests has a target"),
        ("s.yaml --trace t.jsonl", "a trace has its own arrivals"),
        ("s.yaml --precision 0%", "--precision: found `0%`; legal: from 0.2% to 50%"),
        ("s.yaml --seeds 9 --max-seeds 4", "--max-seeds: found `4`; legal: at least --seeds"),
        ("s.yaml --warmup soon", "--warmup: found `soon`; legal: `auto`, or seconds"),
        ("s.yaml --strategy precise --strategy precise", "found `precise` twice"),
        ("s.yaml --search H100 --price H10=2", "--price: unknown GPU `H10`, did you mean `H100`?"),
        ("s.yaml --search H100 --price H100=2 --price h100=3", "--price: found `h100` twice"),
        ("s.yaml --search H100 --vary rate", "cannot be used with '--vary"),
        ("s.yaml --search H100 --tp 2", "cannot be used with '--tp"),
        ("s.yaml --search H100 --num-instances 2", "cannot be used with '--num-instances"),
        ("s.yaml --search H100 --max-num-running-reqs 2", "cannot be used with '--max-num-running"),
        (
            "s.yaml --slo tenants.acme.ttft_p99<1s",
            "--slo: no tenant `acme` sends requests; those that do: `default`",
        ),
        (
            "s.yaml --slo batch.ttft_p99<1s",
            "--slo: no class `batch` sends requests; those that do: ",
        ),
    ] {
        let ran = bench.blis(&format!("capacity {args}"));
        assert_eq!(ran.code, Some(2), "{args}: {}", ran.err);
        assert!(ran.err.contains(message), "{args}: {}\nnot: {message}", ran.err);
    }
    assert!(!bench.files().contains(&".blis".to_owned()), "nothing was begun");
}

#[test]
fn a_search_for_a_model_without_a_profile_needs_neither_gpu_nor_strategy() {
    let bench = Bench::new();
    let ran = bench.blis(
        "capacity --model llama-3.1-70b --workload chatbot --rate 2 --num-requests 1500 \
         --max-requests 1500 --search 4xH100 --slo ttft_p99<5s --seeds 2 --max-seeds 2 --warmup 1s \
         --no-ledger --quiet",
    );
    assert!(ran.code == Some(0) && ran.out.contains("H100"), "{}", ran.err);
}

#[test]
fn a_search_offers_machines_cheapest_first_and_counts_gpus_and_dollars() {
    let bench = Bench::new();
    let chat = "--workload chatbot --rate 40 --num-requests 1500 --max-requests 1500";
    let ran = bench.blis(&format!(
        "capacity {chat} --search H100,4xH200 --price H100=2 --slo ttft_p99<500ms --seeds 2 \
         --max-seeds 2 --warmup 1s --no-ledger --quiet --format json"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let offers = found["offers"].as_array().expect("offers");
    assert!(offers.len() > 10, "{}", offers.len());
    let number = |offer: &serde_json::Value, key: &str| offer[key].as_f64().expect("a number");
    for offer in offers {
        let gpus = number(offer, "instances") * number(offer, "tp");
        assert!((number(offer, "gpus") - gpus).abs() < 1e-9, "{offer}");
        let price = if offer["gpu"] == "H100" { 2.0 } else { 5.408 };
        assert!(offer["gpu"] == "H100" || gpus <= 4.0, "{offer}");
        assert!((number(offer, "dollars_per_hour") - gpus * price).abs() < 1e-9, "{offer}");
    }
    let dollars = offers.iter().map(|offer| number(offer, "dollars_per_hour"));
    assert!(dollars.is_sorted());
    let mut decided = 0;
    for pair in offers.windows(2) {
        let [a, b] =
            [&pair[0], &pair[1]].map(|it| (number(it, "dollars_per_hour"), number(it, "slack")));
        assert!(a.0 < b.0 || a.1 >= b.1, "of one price the one with more room: {pair:?}");
        decided += usize::from(a.0 >= b.0 && a.1 > b.1);
    }
    assert!(decided > 0, "some prices are the same");
}

#[test]
fn a_capacity_on_a_machine_that_nobody_measured_says_so_and_names_its_router() {
    let machine = "--model qwen/qwen3-8b --hardware A100-80 --tp 1 --latency-model roofline";
    let ran = Bench::new().blis(&format!(
        "capacity --workload chatbot --rate 5 --num-requests 300 --max-requests 300 {machine} \
         --slo ttft_p99<2s --seeds 2 --max-seeds 2 --warmup 0s --no-ledger --quiet"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("warning: ") && ran.out.contains("not measured"), "{}", ran.out);
    assert!(ran.out.lines().any(|line| line.starts_with("round-robin ")), "{}", ran.out);
    assert!(!ran.out.contains("as is"), "{}", ran.out);
}

#[test]
fn a_time_without_a_unit_is_refused_because_people_think_of_seconds() {
    let told = "a time has a unit; write `1s` or `1ms`";
    for slo in ["ttft_p99<1", "itl_p99 < 50ms and ttft_p99 <= 1"] {
        let bench = Bench::new();
        let mut command = bench.command("capacity --workload chatbot --slo");
        let ran = crate::Ran::from(command.arg(slo).output().expect("the program starts"));
        assert_eq!(ran.code, Some(2), "{slo}: {}", ran.out);
        assert!(ran.err.contains(told), "{slo}: {}", ran.err);
    }
}

#[test]
fn a_search_without_enough_gpus_is_no_offer() {
    let chat = "--workload chatbot --rate 200 --num-requests 1500 --max-requests 1500";
    let ran = Bench::new().blis(&format!(
        "capacity {chat} --search 1xH100 --price H100=2 --slo ttft_p99<500ms --seeds 2 \
         --max-seeds 2 --warmup 1s --no-ledger --quiet"
    ));
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(!ran.out.contains("/h serve"), "{}", ran.out);
}

#[test]
fn a_trace_can_be_sized_and_a_gpu_without_a_price_asks_for_one() {
    let bench = Bench::new();
    let chat = "--workload chatbot --rate 30 --num-requests 600";
    assert_eq!(bench.blis(&format!("run {chat} --trace-out t.jsonl")).code, Some(0));
    let sized = "capacity --trace t.jsonl --vary instances --slo e2e_p99<60s --no-ledger --quiet";
    let ran = bench.blis(sized);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("meets"), "{}", ran.out);
    assert!(ran.out.contains("on H100 with tp 2, 8,192 tokens and"), "its machine: {}", ran.out);
    let ran = bench.blis("capacity --trace t.jsonl --search L40S --slo e2e_p99<60s --no-ledger");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--price L40S="), "{}", ran.err);
}
