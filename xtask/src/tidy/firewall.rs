//! Words that only some crates may use: serde at the edges, the outside world in the binary.

use super::{Finding, Rule};
use crate::source::find_word;
use crate::tree::{File, Tree};
use std::collections::BTreeSet;

/// Modules of the standard library that reach the outside world.
const WORLD_MODULES: &[&str] = &["env", "process", "time"];

/// Macros that print.
const PRINTERS: &[&str] = &["print!", "println!", "eprint!", "eprintln!"];

/// No crate uses what only an outer crate may use.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        if !may_use_serde(file) {
            check_serde(file, &mut findings);
        }
        if !may_touch_the_world(file) {
            check_world(file, &mut findings);
        }
    }
    findings
}

fn may_use_serde(file: &File) -> bool {
    let path = file.path.as_str();
    let in_trace = path.strip_prefix("crates/workload/src/").is_some_and(|rest| {
        rest.starts_with("trace/") || (rest.starts_with("trace") && !rest.contains('/'))
    });
    let at_the_edge = matches!(
        file.crate_folder(),
        Some(
            "scenario" | "lab" | "fidelity" | "export" | "report" | "web" | "blis" | "py" | "xtask"
        )
    );
    let in_report = path.strip_prefix("crates/metrics/src/report");
    let in_catalogue = path.strip_prefix("crates/latency/src/catalogue");
    let in_tables = path == "crates/latency/src/operators/tables.rs";
    let in_estimate = path == "crates/optimize/src/stats/estimate.rs";
    let written = in_report.is_some() || in_estimate;
    at_the_edge || in_trace || written || in_catalogue.is_some() || in_tables
}

/// A build script runs where the program is built, not where it runs, and talks to cargo.
fn may_touch_the_world(file: &File) -> bool {
    let outside = file.name() == "build.rs" || file.path.starts_with("benches/");
    outside || matches!(file.crate_folder(), Some("blis" | "py" | "xtask"))
}

fn check_serde(file: &File, findings: &mut Vec<Finding>) {
    for (index, line) in file.rust.lines.iter().enumerate() {
        if find_word(&line.code, "serde").is_some() {
            let message = "serde stays above `sim`, in the trace readers, the catalogue and the report: \
                           hand over a plain value instead";
            findings.push(Finding::new(Rule::Serde, &file.path, index + 1, message));
        }
    }
}

fn check_world(file: &File, findings: &mut Vec<Finding>) {
    let mut found = BTreeSet::new();
    for (index, line) in file.rust.lines.iter().enumerate() {
        let printers = PRINTERS.iter().filter(|word| find_word(&line.code, word).is_some());
        found.extend(printers.map(|word| (index + 1, (*word).to_owned())));
        for module in WORLD_MODULES {
            let path = format!("std::{module}");
            let after = find_word(&line.code, &path).map(|at| &line.code[at + path.len()..]);
            let continues = |c: char| c.is_alphanumeric() || c == '_';
            if after.is_some_and(|after| !after.starts_with(continues)) {
                found.insert((index + 1, path));
            }
        }
    }
    for used in &file.rust.uses {
        if let [(first, _), (module, line), ..] = used.path.as_slice()
            && first == "std"
            && WORLD_MODULES.contains(&module.as_str())
        {
            found.insert((*line, format!("std::{module}")));
        }
    }
    for (line, what) in found {
        let message = format!("`{what}` is for the binary: return a value and let it do this");
        findings.push(Finding::new(Rule::World, &file.path, line, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{accepts, refuses};

    #[test]
    fn a_wrong_file_may_talk_about_serde_but_not_use_it() {
        let text = "//! x\nuse serde::Deserialize;\n";
        for path in ["crates/core/src/lib.rs", "crates/metrics/src/fact.rs"] {
            refuses(check, &[(path, text)], Rule::Serde, ":2: serde stays");
        }
        refuses(check, &[("crates/latency/src/fit.rs", text)], Rule::Serde, ":2: serde stays");
        let allowed = [
            ("crates/latency/src/catalogue.rs", text),
            ("crates/metrics/src/report.rs", text),
            ("crates/metrics/src/report/latency.rs", text),
            ("crates/workload/src/trace.rs", text),
            ("crates/workload/src/trace/csv.rs", text),
            ("crates/workload/src/trace_native.rs", text),
            ("crates/lab/src/yaml.rs", text),
            ("xtask/src/lib.rs", text),
            ("crates/core/src/lib.rs", "//! Knows nothing of serde.\n"),
        ];
        accepts(check, &allowed);
    }

    #[test]
    fn clocks_the_environment_and_processes_are_for_the_binary() {
        for (code, words) in [
            ("use std::time::Instant;", "std::time"),
            ("let home = std::env::var(\"HOME\");", "std::env"),
            ("std::process::exit(1);", "std::process"),
        ] {
            let text = format!("//! x\n{code}\n");
            refuses(check, &[("crates/sim/src/lib.rs", &text)], Rule::World, words);
            let outer = ["crates/blis/src/main.rs", "xtask/src/main.rs", "benches/a/src/main.rs"];
            accepts(check, &outer.map(|path| (path, text.as_str())));
        }
    }

    #[test]
    fn grouped_imports_do_not_hide_anything() {
        let text =
            "//! x\nuse std::{\n    collections::{BTreeMap, env},\n    process::Command,\n};\n";
        refuses(check, &[("crates/lab/src/lib.rs", text)], Rule::World, ":4: `std::process`");
        let one_line = "//! x\nuse std::{env, fmt};\n";
        refuses(check, &[("crates/lab/src/lib.rs", one_line)], Rule::World, "`std::env`");
    }

    #[test]
    fn printing_is_for_the_binary() {
        let text = "//! x\nfn f() {\n    println!(\"x\");\n}\n";
        refuses(check, &[("crates/metrics/src/lib.rs", text)], Rule::World, ":3: `println!`");
        accepts(check, &[("crates/metrics/src/lib.rs", "//! x\n// println! is for the binary\n")]);
        accepts(check, &[("crates/metrics/build.rs", text)]);
    }
}
