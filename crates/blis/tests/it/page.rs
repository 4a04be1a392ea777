//! The page of a study: whole, the same every time, and drawn.

use super::Bench;
use std::path::Path;
use std::process::Command;

/// Arms, workloads, classes, a ratio, a value and a mechanism; names that HTML would trip over.
const STUDY: &str = "\
question: does <order> help & whom?
base:
  cluster: {instances: 2}
  engine: {total_kv_blocks: 3000}
  workload: {preset: multi-turn-4x512, rate: 12, num_requests: 300}
arms:
  - {name: 'as they come, \"fcfs\"'}
  - {name: by class, set: {scheduler: priority-fcfs, priority: slo-class}}
references: false
workloads:
  - {name: calm}
  - {name: busy, set: {workload: {rate: 16}}}
metrics: [ttft_p99, critical.ttft_p99]
seeds: 2
hypotheses:
  - {name: cheap, claim: critical.ttft_p99(by class) < 100 s, because: a <b> is no tag}
  - {name: same, claim: ttft_mean(by class @ calm) ~ ttft_mean(by class @ busy) within 1 %}
";

fn page_of(study: &str) -> (Bench, String, String) {
    let bench = Bench::new();
    bench.write("s.yaml", study);
    let ran = bench.blis("study s.yaml --quiet --report p.html --format json");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let page = bench.read("p.html");
    (bench, page, ran.out)
}

/// The page without the content of scripts and styles, which is no markup.
fn markup(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(start) = ["<script", "<style"].iter().filter_map(|tag| rest.find(tag)).min() {
        let end = if rest[start..].starts_with("<script") { "</script>" } else { "</style>" };
        let open = start + rest[start..].find('>').expect("the tag ends") + 1;
        let close = open + rest[open..].find(end).expect("the element ends");
        out.push_str(&rest[..open]);
        rest = &rest[close..];
        out.push_str(end);
        rest = &rest[end.len()..];
    }
    out + rest
}

/// Checks that every element that begins ends, in order, and returns how many there were.
fn balanced(markup: &str) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut count = 0;
    let body = markup.strip_prefix("<!doctype html>").expect("a page");
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag that ends");
        assert!(!text.contains('>'), "a stray > after <{tag}>: {text}");
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> ends what began last");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a name"));
            count += 1;
        }
    }
    assert!(open.is_empty(), "{open:?}");
    count
}

#[test]
fn a_page_is_well_formed_and_holds_every_arm_and_verdict() {
    let (_bench, page, json) = page_of(STUDY);
    let markup = markup(&page);
    assert!(balanced(&markup) > 100);
    for text in [
        "<h1>does &lt;order&gt; help &amp; whom?</h1>",
        "as they come, &quot;fcfs&quot;",
        "by class",
        "<span class=\"badge\">confirmed</span> cheap",
        "<span class=\"badge\">refuted</span> same",
        "<p>Because a &lt;b&gt; is no tag.</p>",
        "requests by class, a run",
        "data-plot=\"interval\"",
        "data-plot=\"cdf\"",
        "data-plot=\"parts\"",
        "data-plot=\"effect\"",
        "<h2>Mechanisms</h2>",
    ] {
        assert!(markup.contains(text), "{text} is missing in\n{markup}");
    }
    let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for verdict in found["hypotheses"].as_array().expect("a list") {
        let escaped = |text: &serde_json::Value| {
            let text = text.as_str().expect("text").replace('&', "&amp;");
            text.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
        };
        assert!(markup.contains(&escaped(&verdict["why"])), "{verdict}");
        assert!(markup.contains(&escaped(&verdict["claim"])), "{verdict}");
    }
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn a_page_needs_no_network() {
    let (_bench, page, _) = page_of(STUDY);
    let markup = markup(&page);
    assert!(page.contains("default-src 'none'"));
    assert!(!markup.contains(" src=") && !markup.contains("<link"), "{markup}");
    let links = markup.matches(" href=").count();
    assert!(links > 0 && links == markup.matches(" href=\"data:text/csv;").count(), "{markup}");
    assert_eq!(links, markup.matches("<figure").count(), "each figure has its data");
}

#[test]
fn a_page_is_the_same_every_time_and_its_json_is_that_of_the_program() {
    let (bench, page, json) = page_of(STUDY);
    let (_, inside) = page
        .split_once("<script type=\"application/json\" id=\"findings\">")
        .expect("the findings are embedded");
    let (inside, _) = inside.split_once("</script>").expect("an end");
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!(parse(inside), parse(&json));
    let again = bench.blis("study s.yaml --quiet --no-ledger --jobs 1 --report q.html");
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(bench.read("q.html") == page, "the pages differ");
}

#[test]
fn a_study_of_one_cell_and_one_seed_has_a_page_too() {
    let study = "question: how fast?\nseeds: 1\nmetrics: [ttft_mean]\n\
                 base: {workload: {distribution: {rate: 10, num_requests: 50}}}\n";
    let (bench, page, _) = page_of(study);
    assert!(balanced(&markup(&page)) > 30);
    assert!(!page.contains("<h2>Verdicts</h2>"));
    assert!(!page.contains("NaN"), "there is a sample of everything that is shown");
    let ran = bench.blis("study s.yaml --report s.yaml");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--report: it is the study itself"), "{}", ran.err);
}

/// What the page is after its scripts ran, and what they complained about.
fn rendered(browser: &Path, bench: &Bench) -> (String, String) {
    let page = format!("file://{}", bench.path().join("p.html").display());
    let profile = format!("--user-data-dir={}", bench.path().join("browser").display());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args([profile.as_str(), "--dump-dom", page.as_str()])
        .output()
        .expect("the browser starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let log = text(&output.stderr);
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    (text(&output.stdout), console.join("\n"))
}

#[test]
fn a_browser_draws_every_figure_and_has_nothing_to_complain() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    let Some(browser) = found else {
        eprintln!("skipped: no Chromium on this machine");
        return;
    };
    let swept = STUDY.replace("workloads:", "sweep: {engine.total_kv_blocks: [3000, 2000]}\nworkloads:");
    for study in [STUDY, &swept] {
        let (bench, page, _) = page_of(study);
        let figures = page.matches("<figure").count();
        let (shown, complaints) = rendered(&browser, &bench);
        assert_eq!(complaints, "");
        assert!(shown.contains("</html>"), "{shown}");
        assert!(!shown.contains("class=\"failed\""));
        let drawn: Vec<&str> = shown.split("<figure").skip(1).collect();
        assert_eq!(drawn.len(), figures);
        for figure in drawn {
            let (figure, _) = figure.split_once("</figure>").expect("an end");
            let marks = ["aria-label=\"line\"", "aria-label=\"dot\"", "aria-label=\"bar\""];
            assert!(marks.iter().any(|mark| figure.contains(mark)), "{figure}");
            assert!(!figure.contains("NaN"), "{figure}");
        }
    }
}
