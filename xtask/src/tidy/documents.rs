//! The documents are true: links lead somewhere, samples compile, the reference is fresh, reasons
//! are given.

use super::manifest;
use super::{Finding, Rule};
use crate::tree::{self, File, Tree};

/// Where the reason for each dependency is written down.
const DEPENDENCIES: &str = "docs/decisions/0003-dependencies.md";

const CHANGELOG: &str = "CHANGELOG.md";

/// Links, the changelog and the written reasons are in order.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().iter().filter(|file| file.ending() == "md") {
        check_links(tree, file, &mut findings);
        check_samples(tree, file, &mut findings);
    }
    if let Some(manifest) = tree.file("Cargo.toml") {
        check_changelog(tree, &manifest.text, &mut findings);
    }
    check_decisions(tree, &mut findings);
    findings
}

/// The generated page at `place` is `expected`.
pub(crate) fn check_reference(tree: &Tree, place: &str, expected: &str) -> Vec<Finding> {
    let actual = tree.file(place).map_or("", |file| file.text.as_str());
    if actual == expected {
        return Vec::new();
    }
    let differs = actual.lines().zip(expected.lines()).position(|(a, b)| a != b);
    let line = 1 + differs.unwrap_or(actual.lines().count().min(expected.lines().count()));
    let message = "out of date: run `cargo xtask reference`";
    vec![Finding::new(Rule::Reference, place, line, message)]
}

fn check_changelog(tree: &Tree, manifest: &str, findings: &mut Vec<Finding>) {
    let version = manifest::value(manifest, "workspace.package", "version").unwrap_or_default();
    let text = tree.file(CHANGELOG).map_or("", |file| file.text.as_str());
    let current = format!("## [{version}]");
    let found =
        text.lines().any(|line| line.starts_with("## [Unreleased]") || line.starts_with(&current));
    if !found {
        let message = format!("add a section `## [Unreleased]` or `{current}`");
        findings.push(Finding::new(Rule::Changelog, CHANGELOG, 0, message));
    }
}

fn check_decisions(tree: &Tree, findings: &mut Vec<Finding>) {
    let reasons = tree.file(DEPENDENCIES).map_or("", |file| file.text.as_str());
    for file in tree.files().iter().filter(|file| file.name() == "Cargo.toml") {
        for dependency in manifest::dependencies(&file.text) {
            let name = dependency.package.as_str();
            let is_ours = name.starts_with("blis-") || dependency.path.is_some();
            if !is_ours && !reasons.contains(&format!("`{name}`")) {
                let message = format!("`{name}` has no reason: say why in `{DEPENDENCIES}`");
                let finding = Finding::new(Rule::Decisions, &file.path, dependency.line, message);
                findings.push(finding);
            }
        }
    }
}

fn check_links(tree: &Tree, file: &File, findings: &mut Vec<Finding>) {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for (line, target) in links(&file.text) {
        let path = target.split('#').next().unwrap_or_default();
        let elsewhere = target.contains("://") || target.starts_with("mailto:");
        if path.is_empty() || elsewhere {
            continue;
        }
        let found = tree::resolve(folder, path).is_some_and(|path| tree.exists(&path));
        if !found {
            let message = format!("the link `{target}` leads nowhere: correct it");
            findings.push(Finding::new(Rule::Links, &file.path, line, message));
        }
    }
}

/// Every Rust sample is the text of a file, which the compiler checks: no file of a crate is left
/// uncompiled.
fn check_samples(tree: &Tree, file: &File, findings: &mut Vec<Finding>) {
    let mut lines = file.text.lines().enumerate();
    while let Some((start, fence)) = lines.by_ref().find(|(_, line)| line.trim() == "```rust") {
        let indent = fence.len() - fence.trim_start().len();
        let body = lines.by_ref().map_while(|(_, line)| (line.trim() != "```").then_some(line));
        let sample: Vec<&str> = body.map(|line| line.get(indent..).unwrap_or_default()).collect();
        if !tree.rust_files().any(|rust| rust.text.lines().eq(sample.iter().copied())) {
            let message = "no Rust file has exactly this text: keep the sample as a file of tests";
            findings.push(Finding::new(Rule::Samples, &file.path, start + 1, message));
        }
    }
}

/// The targets of `[text](target)` and `[label]: target`, outside code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let line = without_code(line);
        let targets = line.match_indices("](").filter_map(|(at, _)| {
            line[at + 2..].split([')', ' ']).next().map(|target| target.trim_matches(['<', '>']))
        });
        let definition = line
            .trim_start()
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
            .and_then(|(_, target)| target.split_whitespace().next());
        found.extend(targets.chain(definition).map(|target| (index + 1, target.to_owned())));
    }
    found
}

/// The line without its `code` spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, accepts, refuses};

    const MANIFEST: &str = "[workspace.package]\nversion = \"1.2.3\"\n[workspace.dependencies]\n\
                            blis-kv = { path = \"crates/kv\" }\nclap = \"4\"\n";

    #[test]
    fn a_relative_link_that_leads_nowhere_is_found() {
        let text = "# x\n[a](b.md#c) [self](#x) [web](https://x.org/y.md)\n";
        refuses(check, &[("docs/a.md", text)], Rule::Links, ":2: the link `b.md#c`");
        let outside = "[a](../../b.md)\n";
        refuses(check, &[("docs/a.md", outside)], Rule::Links, "`../../b.md`");
        let label = "[a]\n\n[a]: gone.md\n";
        refuses(check, &[("docs/a.md", label)], Rule::Links, ":3: the link `gone.md`");
    }

    #[test]
    fn links_to_files_and_folders_that_exist_are_fine_and_code_is_not_read() {
        let text = "[up](../b.md) [folder](./c) `[no](link.md)`\n```\n[no](link.md)\n```\n";
        accepts(check, &[("docs/a.md", text), ("b.md", "# b\n"), ("docs/c/d.md", "# d\n")]);
    }

    #[test]
    fn the_changelog_needs_a_section_for_what_is_being_built() {
        let reasons = (DEPENDENCIES, "`clap`");
        let files = [("Cargo.toml", MANIFEST), reasons, (CHANGELOG, "## [1.2.2]\n")];
        refuses(check, &files, Rule::Changelog, "`## [Unreleased]` or `## [1.2.3]`");
        for section in ["## [Unreleased]\n", "## [1.2.3] - 2026-01-01\n"] {
            accepts(check, &[("Cargo.toml", MANIFEST), reasons, (CHANGELOG, section)]);
        }
    }

    #[test]
    fn a_dependency_without_a_written_reason_is_found() {
        let files =
            [("Cargo.toml", MANIFEST), (CHANGELOG, "## [Unreleased]\n"), (DEPENDENCIES, "clap")];
        refuses(check, &files, Rule::Decisions, "Cargo.toml:5: `clap` has no reason");
        let direct = [("crates/kv/Cargo.toml", "[dev-dependencies]\nrand = \"1\"\n")];
        refuses(check, &direct, Rule::Decisions, "crates/kv/Cargo.toml:2: `rand` has no reason");
    }

    #[test]
    fn a_rust_sample_that_no_file_has_is_found() {
        let text = "# x\n1. a\n\n   ```rust\n   //! x\n\n   fn f() {}\n   ```\n\n```sh\nls\n```\n";
        accepts(check, &[("a.md", text), ("crates/kv/tests/a.rs", "//! x\n\nfn f() {}\n")]);
        let other = ("crates/kv/tests/a.rs", "//! x\n\nfn g() {}\n");
        refuses(check, &[("a.md", text), other], Rule::Samples, "a.md:4: no Rust file has");
    }

    const REFERENCE: &str = "docs/reference/policies.md";

    #[test]
    fn a_reference_that_differs_from_the_generated_one_is_found_at_its_line() {
        let fixture = Fixture::with(&[(REFERENCE, "# a\nb\nc\n")]);
        let tree = fixture.tree();
        assert!(check_reference(&tree, REFERENCE, "# a\nb\nc\n").is_empty());
        let found = check_reference(&tree, REFERENCE, "# a\nB\nc\n");
        assert_eq!(found.len(), 1);
        let text = found[0].to_string();
        assert!(text.contains(":2: out of date: run `cargo xtask reference`"), "{text}");
        assert_eq!(check_reference(&Fixture::empty().tree(), REFERENCE, "# a\n").len(), 1);
    }
}
