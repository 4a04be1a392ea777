//! Profiles, the roofline, `blis calibrate` and `blis validate`, as users meet them.

use crate::Bench;
use crate::page::{browser, rendered};
use std::path::{Path, PathBuf};

/// The measured runs of the project.
fn data() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/h200").display().to_string()
}

/// The file of a profile that ships.
fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/profiles");
    path.join(format!("{name}.yaml")).display().to_string()
}

const VLLM: &str = "h200-vllm-0.26-llama-3.1-8b";
const HOME_MADE: &str = "llama-3.1-8b-h200-tp1";

#[test]
fn a_machine_with_a_profile_uses_it_and_its_file_means_the_same() {
    let bench = Bench::new();
    let some = "--rate 20 --num-requests 50 --format json --quiet";
    let by_machine = bench.blis(&format!("run --hardware H200 {some}")).json();
    let with_tp = bench.blis(&format!("run --hardware H200 --tp 1 {some}")).json();
    let by_file = bench.blis(&format!("run --latency-model {} {some}", shipped(VLLM))).json();
    let by_name = bench.blis(&format!("run --hardware H200 --latency-model profile {some}")).json();
    assert_eq!(by_machine, with_tp);
    assert_eq!(by_machine, by_file);
    assert_eq!(by_machine, by_name);
    let blocks = by_machine["run"]["total_kv_blocks"].as_u64();
    let linear = bench.blis(&format!("run {some}")).json();
    assert_ne!(by_machine["cluster"], linear["cluster"], "coefficients of the H100; {blocks:?}");
}

#[test]
fn a_scenario_names_a_profile_beside_it() {
    let bench = Bench::new();
    bench.write("p.yaml", std::fs::read_to_string(shipped(VLLM)).expect("it ships"));
    std::fs::create_dir(bench.path().join("elsewhere")).expect("a folder");
    bench.write("s.yaml", "latency: {model: ./p.yaml}\nworkload: {distribution: {rate: 5}}\n");
    let ran = bench.blis("run s.yaml --format json --quiet");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mut inside = bench.command("run ../s.yaml --format json --quiet");
    let ran = inside.current_dir(bench.path().join("elsewhere")).output().expect("it starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let ran = bench.blis("run s.yaml --requests-out p.yaml");
    assert_eq!(ran.code, Some(2), "an input is not written over");
    assert!(ran.err.contains("it is the input"), "{}", ran.err);
}

#[test]
fn steps_outside_the_fitted_range_are_counted_and_give_one_warning() {
    let bench = Bench::new();
    let prompts = "--prompt-tokens 20000 --prompt-tokens-stdev 0 --prompt-tokens-min 20000 \
                   --prompt-tokens-max 20000 --num-requests 5 --rate 1 --hardware H200";
    let ran = bench.blis(&format!("run {prompts} --format blis"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let warnings: Vec<&str> = ran.err.lines().filter(|l| l.contains("were outside")).collect();
    assert_eq!(warnings.len(), 1, "{}", ran.err);
    assert!(warnings[0].contains("decode_context_mean"), "{}", ran.err);
    let quiet = bench.blis(&format!("run {prompts} --quiet"));
    assert!(quiet.err.is_empty(), "{}", quiet.err);
    let numbers = bench.blis(&format!("run {prompts} --format json")).json();
    let steps = numbers["instances"][0]["steps"].as_u64().expect("steps");
    let outside = numbers["run"]["extrapolated_steps"].as_u64().expect("counted");
    let share = format!("{} % of the steps", (100 * outside).div_ceil(steps));
    assert!(warnings[0].contains(&share), "{share}: {}", warnings[0]);
}

#[test]
fn the_roofline_serves_any_machine_of_the_catalogue() {
    let bench = Bench::new();
    bench.write(
        "config.json",
        r#"{"num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32,
            "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256,
            "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}"#,
    );
    for machine in [
        "--hardware B200",
        "--hardware H100 --tp 2 --model qwen2.5-32b",
        "--hardware H100 --tp 2 --model mixtral-8x7b",
        "--hardware H200 --tp 2 --model llama-3.1-70b",
        "--hardware L40S --model ./config.json",
    ] {
        let ran = bench.blis(&format!(
            "run --latency-model roofline {machine} --rate 2 --num-requests 20 --format json \
             --quiet"
        ));
        let ttft = ran.json()["cluster"]["ttft_mean_ms"].as_f64().expect("a number");
        assert!((1.0..2000.0).contains(&ttft), "{machine}: {ttft}");
    }
    let ran =
        bench.blis("run --latency-model roofline --hardware H100 --tp 1 --model llama-3.1-70b");
    assert_eq!(ran.code, Some(1), "a call of the Go program");
    assert!(ran.err.contains("take more or larger GPUs"), "{}", ran.err);
}

#[test]
fn calibrate_writes_a_profile_and_says_how_good_it_is() {
    let bench = Bench::new();
    let data = data();
    let ran = bench.blis(&format!(
        "calibrate {data} --grid {data}/steps_grid.csv --grid {data}/steps_sizes.csv \
         --model llama-3.1-8b --hardware H200 --tp 1 --out p.yaml"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let home_made = std::fs::read_to_string(shipped(HOME_MADE)).expect("it ships");
    assert_eq!(bench.read("p.yaml"), home_made);
    for expected in ["prefix40", "decode only", "context >= 1500", "batch >= 128", "kv_read"] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    let steps = format!("{data}/prefix40.steps.csv {data}/independent15.steps.csv");
    let ran =
        bench.blis(&format!("calibrate {steps} --out - --requests {data}/prefix40.requests.csv"));
    assert!(ran.out.starts_with("# How long an engine step takes"), "{}", ran.out);
    let ran = bench.blis(&format!("calibrate {steps} --requests {data}/pressure60.requests.csv"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("belongs to no run"), "{}", ran.err);
    bench.write("x.steps.csv", "start_us,duration_us\n1,2\n");
    let ran = bench.blis("calibrate x.steps.csv --out y.yaml");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("x.steps.csv:1:1: prefill_seqs: the header lacks it"), "{}", ran.err);
    assert!(!bench.files().contains(&"y.yaml".to_owned()));
}

#[test]
fn validate_compares_and_writes_pages() {
    let bench = Bench::new();
    let data = data();
    let ran = bench.blis(&format!(
        "validate prefix40 --data {data} --resamples 8 --format json --report p.md --report p.html"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let one = &found["workloads"][0];
    assert_eq!((&one["workload"], &one["requests"]), (&"prefix40".into(), &1180.into()));
    let mean = &one["numbers"]["e2e_mean_ms"];
    let error = mean["error"].as_f64().expect("a number");
    assert!(error.abs() < 0.05, "{mean}");
    assert!(mean["low"].as_f64() < mean["predicted"].as_f64(), "{mean}");
    let drawing = "p-distributions-of-prefix40.svg";
    assert_eq!(bench.files(), [drawing, "p.html", "p.md"]);
    assert!(bench.read("p.md").contains(&format!("![distributions of prefix40]({drawing})")));
    assert!(bench.read("p.html").contains("<figcaption>distributions of prefix40"));
    let other = bench.blis(&format!("validate prefix40 --data {data} --resamples 8 --jobs 1"));
    let again = bench.blis(&format!("validate prefix40 --data {data} --resamples 8 --jobs 3"));
    assert_eq!(other.out, again.out, "the number of workers changes nothing");
    let given = bench.blis(&format!(
        "validate {data} multiturn8 --profile {} --resamples 0 --format json",
        shipped(HOME_MADE)
    ));
    assert_eq!(given.code, Some(0), "{}", given.err);
    assert!(!given.out.contains("\"low\""), "no interval was asked for");
}

fn parsed(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

/// Copies the run `from` of the measured runs into the bench as `to`.
fn copy(bench: &Bench, from: &str, to: &str) {
    for kind in ["steps", "requests"] {
        let text = std::fs::read_to_string(format!("{}/{from}.{kind}.csv", data()));
        bench.write(&format!("{to}.{kind}.csv"), text.expect("part of the project"));
    }
}

#[test]
fn validate_predicts_runs_that_nobody_fitted_to_from_their_files() {
    let bench = Bench::new();
    let data = data();
    std::fs::create_dir(bench.path().join("new")).expect("a folder");
    copy(&bench, "prefix40", "new/held");
    let rest = "--resamples 0 --format json";
    let by_file = bench.blis(&format!("validate --data {data} new/held.requests.csv {rest}"));
    assert_eq!(by_file.code, Some(0), "{}", by_file.err);
    let found = parsed(&by_file.out);
    let one = &found["workloads"];
    assert_eq!((one.as_array().map(Vec::len), &one[0]["workload"]), (Some(1), &"held".into()));
    assert!(one[0]["numbers"]["e2e_mean_ms"]["error"].as_f64().expect("one").abs() < 0.05);
    let by_folder = bench.blis(&format!("validate --data {data} new {rest}"));
    assert_eq!(by_file.out, by_folder.out);
    // Under its own name it takes the place of the run that was measured, and is not fitted to.
    copy(&bench, "prefix40", "new/prefix40");
    let left_out = bench.blis(&format!("validate --data {data} prefix40 {rest}"));
    let replaced = bench.blis(&format!("validate --data {data} new/prefix40.steps.csv {rest}"));
    let of = |out: &str| parsed(out)["workloads"].clone();
    assert_eq!(of(&left_out.out), of(&replaced.out));
    let shipped = bench.blis(&format!("validate new/held.steps.csv --profile {HOME_MADE} {rest}"));
    assert_eq!(shipped.code, Some(0), "{}", shipped.err);
    assert!(of(&shipped.out)[0]["cached_equal"].as_f64().expect("one") >= 0.99);
    let none = bench.blis(&format!("validate --data {data} new/nothing.requests.csv {rest}"));
    assert_eq!(none.code, Some(2));
    assert!(none.err.contains("nothing.steps.csv: cannot read"), "{}", none.err);
}

/// A bench with the project's data, and where the project's pages of validation are.
fn with_data() -> (Bench, PathBuf) {
    let bench = Bench::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the project");
    std::os::unix::fs::symlink(root.join("data"), bench.path().join("data")).expect("a link");
    (bench, root.join("docs/validation"))
}

#[test]
fn the_page_of_published_measurements_is_what_the_command_writes() {
    let (bench, docs) = with_data();
    let ran = bench.blis("validate --public --report public.md");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let page = std::fs::read_to_string(docs.join("public-tables.md")).expect("part of the project");
    let remedy =
        "cargo run --release -- validate --public --report docs/validation/public-tables.md";
    assert!(bench.read("public.md") == page, "out of date: {remedy}");
    let refused = bench.blis("validate --public data/public/no-such.yaml");
    assert_eq!(refused.code, Some(2), "{}", refused.out);
}

#[test]
fn the_page_of_fidelity_is_what_the_command_writes() {
    let (bench, docs) = with_data();
    let page =
        std::fs::read_to_string(docs.join("fidelity-tables.md")).expect("part of the project");
    // Intervals take sixty times as long, so they are compared with a part of the page.
    let ran = bench.blis("validate --resamples 0 --report fidelity.md");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let remedy = "cargo run --release -- validate --report docs/validation/fidelity-tables.md";
    let without_intervals = |page: &str| -> Vec<String> {
        let parts = page.split("\n\n").filter(|part| !part.contains("90 % intervals"));
        let lines = parts.flat_map(str::lines);
        let cells = lines.map(|line| {
            let cell = |cell: &str| match (line.starts_with('|'), cell.split_once(" (")) {
                (true, Some((number, _))) => number.trim().to_owned(),
                _ => cell.trim().to_owned(),
            };
            line.split('|').map(cell).collect::<Vec<_>>().join("|")
        });
        cells.filter(|line| !line.is_empty()).collect()
    };
    let (old, new) = (without_intervals(&page), without_intervals(&bench.read("fidelity.md")));
    assert!(new.len() > 50, "a short page");
    let differs = old.iter().zip(&new).find(|(old, new)| old != new);
    assert!(differs.is_none() && old.len() == new.len(), "out of date: {remedy}; {differs:?}");
}

#[test]
fn validate_refuses_a_page_over_a_measured_file_before_anything_runs() {
    let bench = Bench::new();
    for part in ["steps", "requests"] {
        let name = format!("prefix40.{part}.csv");
        std::fs::copy(Path::new(&data()).join(&name), bench.path().join(&name)).expect("copied");
    }
    let before = bench.read("prefix40.steps.csv");
    // So many replays would take long.
    let profile = format!("--profile {HOME_MADE} --resamples 10000");
    let ran =
        bench.blis(&format!("validate prefix40.steps.csv {profile} --report prefix40.steps.csv"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.starts_with("error: --report: "), "{}", ran.err);
    assert_eq!(bench.read("prefix40.steps.csv"), before);
}

#[test]
fn validate_refuses_what_it_cannot_compare() {
    let bench = Bench::new();
    let data = data();
    let ran = bench.blis(&format!("validate prefix4 --data {data}"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `prefix40`?"), "{}", ran.err);
    let ran = bench.blis("validate");
    assert_eq!(ran.code, Some(2), "there is no data/vllm here");
    let ran = bench.blis("validate --profile a.yaml --refit");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let ran =
        bench.blis(&format!("validate prefix40 --data {data} --resamples 0 --total-kv-blocks 10"));
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("can never be served"), "{}", ran.err);
}

#[test]
fn measured_operators_serve_quantised_models_and_say_how_well_they_are_known() {
    let bench = Bench::new();
    let run = |model: &str, more: &str| {
        let args = format!(
            "run --latency-model operators --hardware H200 --tp 4 --model {model} --rate 4 \
             --num-requests 40 --format json {more}"
        );
        let ran = bench.blis(&args);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.err.contains("composed of operators measured one at a time"), "{}", ran.err);
        parsed(&ran.out)["cluster"]["e2e_mean_ms"].as_f64().expect("a number")
    };
    let fp8 = run("Llama-3.1-70B-FP8", "");
    let plain = run("llama-3.1-70b", "");
    assert!(fp8 < 0.9 * plain, "{fp8} ms in FP8, {plain} ms in bf16");
    let wide = run("Llama-3.1-70B-FP8", "--kv-cache-dtype bf16");
    assert!((wide - fp8).abs() > 1.0, "{wide} ms with a KV cache in bf16, {fp8} ms in FP8");
}

#[test]
fn latency_models_that_do_not_fit_the_machine_are_refused() {
    let bench = Bench::new();
    for (args, message) in [
        (
            "--latency-model roofline --hardware H2000",
            "--hardware: unknown GPU `H2000`, did you mean `H200`?; known: `H100`, `H200`, \
             `A100-80`, `L40S`, `RTX-4090`, `B200`, `B300`, `GB200`, `RTX-PRO-6000`",
        ),
        (
            "--latency-model operators --hardware H200 --tp 16",
            "--tp: an all-reduce of 16 GPUs (`tp` may be 1, 2, 4, 8) was not measured on `H200`",
        ),
        (
            "--latency-model roofline --tp 3 --hardware H100",
            "--tp: tensor parallelism `3` does not divide 32 query heads; legal: 1 or a divisor",
        ),
        (
            "--latency-model profile --hardware H100",
            "--latency-model: no profile ships for this machine; give the path of one, or \
             `roofline`",
        ),
        (
            "--latency-model profile --hardware H200 --beta-coeffs 1,2,3",
            "--beta-coeffs: the latency model `profile` does not read it; remove it",
        ),
    ] {
        let ran = bench.blis(&format!("run {args}"));
        assert_eq!((ran.code, ran.err.trim_end()), (Some(2), &*format!("error: {message}")));
    }
    let ran = bench.blis("run --latency-model missing.yaml");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("missing.yaml: cannot read"), "{}", ran.err);
}

#[test]
fn a_browser_shows_the_page_of_a_comparison_at_any_width() {
    let Some(browser) = browser() else { return };
    let bench = Bench::new();
    let ran = bench.blis(&format!(
        "validate prefix80 multiturn8 --data {} --resamples 4 --report p.html",
        data()
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // This script only says how wide the page got.
    let measure = "<script>document.title = `${document.documentElement.scrollWidth} of \
                   ${innerWidth}`</script></body>";
    bench.write("p.html", bench.read("p.html").replace("</body>", measure));
    for width in [1200, 800, 500] {
        let (shown, complaints) = rendered(&browser, &bench, width);
        assert_eq!(complaints, "");
        let panels: Vec<&str> = shown.split("<div class=\"panel\">").skip(1).collect();
        assert_eq!(panels.len(), 6, "two workloads");
        for panel in &panels {
            let (panel, _) = panel.split_once("</svg>").expect("an end");
            let curves = panel.matches("aria-label=\"line\"").count();
            assert!(curves >= 2 && !panel.contains("NaN"), "{panel}");
        }
        let (_, title) = shown.split_once("<title>").expect("a title");
        let (title, _) = title.split_once("</title>").expect("an end");
        let (page, window) = title.split_once(" of ").expect("the script ran");
        let number = |text: &str| text.parse::<u32>().expect("a number");
        assert!(number(page) <= number(window), "wider than its window: {title}");
        assert_eq!(number(window), width, "the window is as asked for");
    }
}

#[test]
fn a_folder_of_runs_with_any_names_is_predicted_and_says_what_is_outside() {
    let bench = Bench::new();
    let data = data();
    std::fs::create_dir(bench.path().join("new")).expect("a folder");
    copy(&bench, "prefix40", "new/ctx8k rate1.5");
    copy(&bench, "prefix40", "new/ctx8k rate1.7");
    copy(&bench, "prefix80", "new/only.repeat");
    let args = "--resamples 0 --format json";
    let ran = bench.blis(&format!("validate --data {data} new {args}"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let found = parsed(&ran.out);
    let one = |at: usize| &found["workloads"][at];
    let names = [0, 1, 2].map(|at| one(at)["workload"].as_str().expect("a name"));
    assert_eq!(names, ["ctx8k rate1.5", "ctx8k rate1.7", "only"]);
    // Nothing is fitted to new runs, not even to predict other new ones: copies fare alike, and as
    // if they were alone.
    assert_eq!(one(0)["numbers"], one(1)["numbers"]);
    let file = "new/only.repeat.requests.csv";
    let alone = bench.blis(&format!("validate --data {data} {file} {args}"));
    assert_eq!(&parsed(&alone.out)["workloads"][0], one(2));
    assert_eq!(one(2)["steps_outside_fit"], 0, "single steps were measured up to batches of 256");
    std::fs::create_dir(bench.path().join("few")).expect("a folder");
    copy(&bench, "prefix40", "few/small");
    let beyond = bench.blis(&format!("validate --data few {file} {args}"));
    assert_eq!(beyond.code, Some(0), "{}", beyond.err);
    let warning = "are outside the fitted range (farthest: decode_seqs 256";
    assert!(
        beyond.err.starts_with("warning: only: ") && beyond.err.contains(warning),
        "{}",
        beyond.err
    );
    let steps = parsed(&beyond.out)["workloads"][0]["steps_outside_fit"].as_u64();
    assert!(steps.is_some_and(|steps| steps > 100), "{steps:?}");
    let lonely = bench.blis(&format!("validate few {args}"));
    assert_eq!(lonely.code, Some(2), "there is nothing else to fit to");
    assert!(lonely.err.contains("name more runs to fit to with `--data`"), "{}", lonely.err);
}

#[test]
fn files_that_are_not_what_they_should_be_are_refused_with_their_place() {
    let bench = Bench::new();
    let data = data();
    copy(&bench, "prefix40", "x");
    let requests = bench.read("x.requests.csv");
    let steps = bench.read("x.steps.csv");
    let refuses = |requests: &str, steps: &str| {
        bench.write("x.requests.csv", requests);
        bench.write("x.steps.csv", steps);
        let ran = bench.blis(&format!("validate --data {data} x.steps.csv --resamples 0"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
        ran.err
    };
    let message = refuses(&requests.replacen("e2e_us", "e2e_ms", 1), &steps);
    assert!(message.contains("x.requests.csv:1:1: e2e_us: the header lacks it"), "{message}");
    let message = refuses(&requests.replacen("prefix_tokens", "prefix", 1), &steps);
    assert!(message.contains("x.requests.csv") && message.contains("prefix_tokens"), "{message}");
    let first = requests.lines().nth(1).expect("a request");
    let torn = requests.replacen(first, &first[..first.len() / 2], 1);
    assert!(refuses(&torn, &steps).contains("x.requests.csv:2:1: found"), "a torn line");
    let first = steps.lines().nth(1).expect("a step");
    let wrong = steps.replacen(first, &first.replacen(',', ",-", 1), 1);
    assert!(refuses(&requests, &wrong).contains("x.steps.csv:2:6: duration_us: found `-"));
    assert!(refuses(&requests, "").contains("x.steps.csv: the file is empty"));
    std::fs::remove_file(bench.path().join("x.requests.csv")).expect("it is there");
    bench.write("x.steps.csv", &steps);
    let ran = bench.blis(&format!("validate --data {data} x.steps.csv --resamples 0"));
    assert!(ran.err.contains("put `NAME.requests.csv` beside"), "{}", ran.err);
    std::fs::create_dir(bench.path().join("empty")).expect("a folder");
    for command in ["validate empty", "calibrate empty"] {
        let ran = bench.blis(command);
        assert_eq!(ran.code, Some(2));
        assert!(ran.err.contains("legal: a folder with files `NAME.steps.csv`"), "{}", ran.err);
    }
}

#[test]
fn a_gpu_with_borrowed_efficiencies_gives_one_warning() {
    let bench = Bench::new();
    let some = "run --latency-model roofline --rate 2 --num-requests 20 --format json";
    let ran = bench.blis(&format!("{some} --hardware L40S"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let words = "warning: how much of its data sheet L40S reaches (ada) is not measured: borrowed \
                 from hopper";
    assert_eq!(ran.err.lines().filter(|line| *line == words).count(), 1, "{}", ran.err);
    let ran = bench.blis(&format!("{some} --hardware H200"));
    assert!(!ran.err.contains("borrowed"), "{}", ran.err);
}
