//! The page of a study: whole, the same every time, and drawn.

use super::Bench;
use std::path::{Path, PathBuf};
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
max_seeds: 2
warmup: 0s
length: written
hypotheses:
  - {name: cheap, claim: critical.ttft_p99(by class) < 100 s, because: a <b> is no tag}
  - {name: same, claim: ttft_mean(by class @ calm) ~ ttft_mean(by class @ busy) within 1 %}
  - {name: slow, claim: ttft_mean(by class) > 100 s}
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
        "<span class=\"badge\">inconclusive</span> same",
        "<span class=\"badge\">refuted</span> slow",
        "<p>Because a &lt;b&gt; is no tag.</p>",
        "requests by class, per run",
        "data-form=\"rows\"",
        "data-form=\"lines\"",
        "data-form=\"bars\"",
        "effect and claim",
        "<summary>Mechanisms</summary>",
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
    assert!(!markup(&page).contains("NaN"), "there is a sample of everything that is shown");
    let ran = bench.blis("study s.yaml --report s.yaml");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--report: it is the input `s.yaml`"), "{}", ran.err);
}

/// The browser of this machine, if there is one.
#[expect(clippy::print_stderr, reason = "a test that checks nothing says so")]
pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        eprintln!("skipped: no Chromium on this machine");
    }
    found
}

/// What the page `p.html` is in a window of this width after its scripts ran, and what they
/// complained about.
pub(crate) fn rendered(browser: &Path, bench: &Bench, width: u32) -> (String, String) {
    let page = format!("file://{}", bench.path().join("p.html").display());
    let size = format!("--window-size={width},900");
    let profile = format!("--user-data-dir={}", bench.path().join("browser").display());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args([profile.as_str(), size.as_str(), "--dump-dom", page.as_str()])
        .output()
        .expect("the browser starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let log = text(&output.stderr);
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    (text(&output.stdout), console.join("\n"))
}

#[test]
fn a_browser_draws_every_figure_and_has_nothing_to_complain() {
    let Some(browser) = browser() else { return };
    let swept =
        STUDY.replace("workloads:", "sweep: {engine.total_kv_blocks: [3000, 2000]}\nworkloads:");
    for study in [STUDY, &swept] {
        let (bench, page, _) = page_of(study);
        assert_drawn(&browser, &bench, &page);
    }
    for (text, command) in [
        (super::capacity::SCENARIO, "capacity s.yaml --seeds 2 --max-seeds 2"),
        (super::optimize::SEARCH, "optimize s.yaml --control"),
        (&super::optimize::fronts(), "optimize s.yaml"),
        (&super::optimize::workloads(), "optimize s.yaml"),
    ] {
        let bench = Bench::new();
        bench.write("s.yaml", text);
        let ran = bench.blis(&format!("{command} --quiet --no-ledger --report p.html"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_drawn(&browser, &bench, &bench.read("p.html"));
    }
}

/// Asserts that a browser draws all figures of a page.
fn assert_drawn(browser: &Path, bench: &Bench, page: &str) {
    let figures = page.matches("<figure").count();
    let (shown, complaints) = rendered(browser, bench, 1200);
    assert_eq!(complaints, "");
    assert!(shown.contains("</html>"), "{shown}");
    assert!(!shown.contains("class=\"failed\""));
    let drawn: Vec<&str> = shown.split("<figure").skip(1).collect();
    assert_eq!(drawn.len(), figures);
    for figure in drawn {
        let (figure, _) = figure.split_once("</figure>").expect("an end");
        let marks = ["line", "dot", "bar", "cell"].map(|mark| format!("aria-label=\"{mark}\""));
        assert!(marks.iter().any(|mark| figure.contains(mark)), "{figure}");
        assert!(!figure.contains("NaN"), "{figure}");
    }
}

/// SHA-256 (FIPS 180-4), whose constants are the first bits of roots of the first primes.
#[expect(clippy::many_single_char_names, reason = "they are those of the standard")]
fn sha256(bytes: &[u8]) -> String {
    let primes = (2_u32..).filter(|n| (2..*n).all(|d| n % d != 0)).take(64);
    let root = |prime: u32, power: u32, limit: u128| {
        // The largest number whose power is at most the prime, with 32 bits after the point.
        let target = u128::from(prime) << (32 * power);
        let (mut low, mut high) = (0_u128, limit);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if middle.pow(power) <= target { low = middle } else { high = middle }
        }
        u32::try_from(low & 0xffff_ffff).expect("32 bits")
    };
    let primes: Vec<u32> = primes.collect();
    let k: Vec<u32> = primes.iter().map(|&prime| root(prime, 3, 1 << 36)).collect();
    let mut h: Vec<u32> = primes[..8].iter().map(|&prime| root(prime, 2, 1 << 37)).collect();
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    message.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in message.chunks(64) {
        let word = |word: &[u8]| u32::from_be_bytes(word.try_into().expect("four bytes"));
        let mut w: Vec<u32> = block.chunks(4).map(word).collect();
        for t in 16..64 {
            let (a, b) = (w[t - 15], w[t - 2]);
            let a = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let b = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            w.push(w[t - 16].wrapping_add(a).wrapping_add(w[t - 7]).wrapping_add(b));
        }
        let mut s = h.clone();
        for t in 0..64 {
            let (a, e) = (s[0], s[4]);
            let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & s[5]) ^ (!e & s[6]);
            let first = [s[7], sum, choice, k[t], w[t]].into_iter().fold(0, u32::wrapping_add);
            let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
            s.rotate_right(1);
            s[4] = s[4].wrapping_add(first);
            s[0] = first.wrapping_add(sum).wrapping_add(majority);
        }
        h = h.iter().zip(s).map(|(old, new)| old.wrapping_add(new)).collect();
    }
    h.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().concat()
}

#[test]
fn vendored_libraries_are_those_of_the_list() {
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256(b"abc"), abc, "the known answer");
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/assets");
    let read = |name: &str| std::fs::read(assets.join(name)).expect("the file is there");
    let list = String::from_utf8(read("README.md")).expect("text");
    for name in ["d3.min.js", "plot.umd.min.js"] {
        let line = list.lines().find(|line| line.starts_with(&format!("| `{name}`")));
        let line = line.expect("it is listed");
        assert!(line.contains(&sha256(&read(name))), "{line}");
    }
}

#[test]
fn a_page_of_as_many_cells_as_are_drawn_is_small_enough_to_mail() {
    let arms = (1..=4).map(|arm| format!("  - {{name: a router with a long name {arm}}}\n"));
    let rates = (1..=16).map(|rate| rate.to_string()).collect::<Vec<_>>().join(", ");
    let (_bench, page, _) = page_of(&format!(
        "question: how large is a page?\nbase: {{workload: {{preset: orthogonal-slo, num_requests: \
         30}}}}\narms:\n{}sweep: {{workload.rate: [{rates}]}}\nseeds: 2\nlength: written\nmetrics: [ttft_p99]\n",
        arms.collect::<String>()
    ));
    assert!(page.contains("TTFT distribution, critical"), "classes have distributions");
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
}
