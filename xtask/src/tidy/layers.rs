//! The dependency table: `core <- {workload, latency, kv, policy, metrics, optimize} <- {sim,
//! evolve} <- scenario <- {lab, fidelity, export, web} <- report <- {blis, py}`, and beside it
//! `arrow <- py`.
//!
//! A crate may import crates of lower layers only, and the optimiser and `arrow` are for few.
//! Dependencies of tests count as well. serde may be imported by the crates that read or write
//! files.

use super::manifest::{self, Dependency};
use super::{Finding, Rule};
use crate::tree::Tree;

/// Folders under `crates`, lowest layer first.
const LAYERS: &[&[&str]] = &[
    &["core", "arrow"],
    &["workload", "latency", "kv", "policy", "metrics", "optimize"],
    &["sim", "evolve"],
    &["scenario"],
    &["lab", "fidelity", "export", "web"],
    &["report"],
    &["blis", "py"],
];

/// Crates that only these may import, whatever the layers say.
const ONLY_FOR: &[(&str, &[&str])] =
    &[("arrow", &["py"]), ("optimize", &["lab", "report", "blis", "py"]), ("evolve", &["lab"])];

/// Folders whose crates may import serde.
const SERDE: &[&str] = &[
    "workload", "latency", "metrics", "optimize", "scenario", "lab", "fidelity", "export",
    "report", "blis", "py", "web", "xtask",
];

/// What the chores may import of the workspace.
const XTASK_IMPORTS: [&str; 8] =
    ["core", "export", "latency", "metrics", "policy", "scenario", "sim", "workload"];

/// Every import of a workspace crate points down, and serde is imported at the edges only.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().iter().filter(|file| file.name() == "Cargo.toml") {
        let Some(folder) = file.crate_folder() else { continue };
        if folder != "xtask" && layer(folder).is_none() {
            let message = "a crate that the dependency table does not know: \
                           add it to `xtask/src/tidy/layers.rs` and to `ARCHITECTURE.md`";
            findings.push(Finding::new(Rule::Layers, &file.path, 0, message));
            continue;
        }
        check_name(folder, &file.path, &file.text, &mut findings);
        for dependency in manifest::dependencies(&file.text) {
            if let Some((rule, message)) = objection(folder, &dependency) {
                findings.push(Finding::new(rule, &file.path, dependency.line, message));
            }
        }
    }
    findings
}

fn check_name(folder: &str, path: &str, text: &str, findings: &mut Vec<Finding>) {
    let expected = match folder {
        "blis" | "xtask" => folder.to_owned(),
        _ => format!("blis-{folder}"),
    };
    let name = manifest::value(text, "package", "name").unwrap_or_default();
    if name != expected {
        let message = format!("the package is called `{name}`: call it `{expected}`");
        findings.push(Finding::new(Rule::Layers, path, 0, message));
    }
}

fn objection(folder: &str, dependency: &Dependency) -> Option<(Rule, String)> {
    let package = dependency.package.as_str();
    let section = &dependency.section;
    if package == "serde" || package.starts_with("serde_") || package.starts_with("serde-") {
        let message = format!("`{folder}` may not import `{package}`: serde stays at the edges");
        return (!SERDE.contains(&folder)).then_some((Rule::Serde, message));
    }
    let target = workspace_folder(dependency)?;
    let allowed = match (layer(folder), layer(&target)) {
        (Some(own), Some(other)) => {
            let is_for = |(name, few): &(&str, &[&str])| *name != target || few.contains(&folder);
            other < own && ONLY_FOR.iter().all(is_for)
        }
        _ => folder == "xtask" && XTASK_IMPORTS.contains(&target.as_str()),
    };
    let message = format!(
        "`{folder}` may not import `{target}` ([{section}]): crates import lower layers only"
    );
    (!allowed).then_some((Rule::Layers, message))
}

/// The folder of the workspace crate that `dependency` is, if it is one.
fn workspace_folder(dependency: &Dependency) -> Option<String> {
    if let Some(path) = &dependency.path {
        return path.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
    }
    match dependency.package.as_str() {
        "blis" => Some("blis".to_owned()),
        "xtask" => Some("xtask".to_owned()),
        package => package.strip_prefix("blis-").map(str::to_owned),
    }
}

fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{accepts, refuses};

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    #[track_caller]
    fn refuses_import(folder: &str, name: &str, dependencies: &str, words: &str) {
        let path = format!("crates/{folder}/Cargo.toml");
        refuses(check, &[(&path, &manifest(name, dependencies))], Rule::Layers, words);
    }

    #[test]
    fn arrows_that_point_down_are_fine() {
        let sim = manifest("blis-sim", "[dependencies]\nblis-core.workspace = true\n");
        let blis = manifest("blis", "[dependencies]\nblis-kv = { path = \"../kv\" }\nclap = \"4\"");
        accepts(check, &[("crates/sim/Cargo.toml", &sim), ("crates/blis/Cargo.toml", &blis)]);
    }

    #[test]
    fn the_five_may_not_import_one_another() {
        let import = "[dependencies]\nblis-policy.workspace = true\n";
        refuses_import("kv", "blis-kv", import, "`kv` may not import `policy`");
    }

    #[test]
    fn the_optimiser_is_for_the_lab_and_not_for_the_simulator() {
        let import = "[dependencies]\nblis-optimize.workspace = true\n";
        refuses_import("sim", "blis-sim", import, "`sim` may not import `optimize`");
        let lab = manifest("blis-lab", import);
        accepts(check, &[("crates/lab/Cargo.toml", &lab)]);
        refuses_import("scenario", "blis-scenario", import, "`scenario` may not import `optimize`");
        let back = "[dependencies]\nblis-policy.workspace = true\n";
        refuses_import("optimize", "blis-optimize", back, "`optimize` may not import `policy`");
    }

    #[test]
    fn only_python_hands_out_pointers_and_it_is_no_part_of_the_binary() {
        let import = "[dependencies]\nblis-arrow.workspace = true\n";
        refuses_import("lab", "blis-lab", import, "`lab` may not import `arrow`");
        refuses_import("core", "blis-core", import, "`core` may not import `arrow`");
        accepts(check, &[("crates/py/Cargo.toml", &manifest("blis-py", import))]);
        let binary = "[dependencies]\nblis = { path = \"../blis\" }\n";
        refuses_import("py", "blis-py", binary, "`py` may not import `blis`");
    }

    #[test]
    fn studies_fidelity_and_exports_do_not_know_one_another_and_reports_know_all() {
        let import = "[dependencies]\nblis-lab.workspace = true\n";
        refuses_import("fidelity", "blis-fidelity", import, "`fidelity` may not import `lab`");
        refuses_import("export", "blis-export", import, "`export` may not import `lab`");
        refuses_import("scenario", "blis-scenario", import, "`scenario` may not import `lab`");
        accepts(check, &[("crates/report/Cargo.toml", &manifest("blis-report", import))]);
        let report = "[dependencies]\nblis-report.workspace = true\n";
        refuses_import("lab", "blis-lab", report, "`lab` may not import `report`");
        refuses_import("web", "blis-web", report, "`web` may not import `report`");
    }

    #[test]
    fn an_upper_crate_is_refused_even_for_tests_and_under_another_name() {
        let tests = "[dev-dependencies.blis-lab]\nworkspace = true\n";
        refuses_import("sim", "blis-sim", tests, "[dev-dependencies]");
        let renamed = "[dependencies]\nworld = { package = \"blis-sim\", version = \"1\" }\n";
        refuses_import("core", "blis-core", renamed, "`core` may not import `sim`");
        let by_path = "[dependencies]\nworld = { path = \"../sim/\" }\n";
        refuses_import("core", "blis-core", by_path, "`core` may not import `sim`");
    }

    #[test]
    fn the_chores_import_nothing_but_what_they_document() {
        let text = manifest("xtask", "[dependencies]\nblis-lab.workspace = true\n");
        refuses(check, &[("xtask/Cargo.toml", &text)], Rule::Layers, "`xtask` may not import");
    }

    #[test]
    fn a_crate_outside_the_table_is_refused() {
        refuses_import("extra", "blis-extra", "", "does not know");
        refuses_import("kv", "blis-cache", "", "call it `blis-kv`");
    }

    #[test]
    fn only_the_edges_import_serde() {
        let text = manifest("blis-sim", "[dependencies]\nserde_json = \"1\"\n");
        refuses(check, &[("crates/sim/Cargo.toml", &text)], Rule::Serde, "`serde_json`");
    }
}
