//! A policy's file, its name in scenario files, its header and its registry agree.

use super::{Finding, Rule};
use crate::tree::{File, Tree};

/// Folders of `crates/policy/src` whose files are policies, at any depth.
const FOLDERS: &[&str] =
    &["admission", "batch", "evict", "offload", "order", "preempt", "priority", "routing"];

/// What a policy's header says, in this order.
const HEADINGS: &[&str] = &["**Prefers**", "**Reads**", "**Parameters**", "**Origin**"];

/// Every policy file is named after its policy, introduces it and is registered.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        let Some(folder) = policy_folder(file) else { continue };
        if file.name() == "mod.rs" {
            check_order(file, &mut findings);
        } else if let Some((line, name)) = spec_name(file) {
            check_name(file, line, &name, &mut findings);
            check_header(file, &mut findings);
            check_registered(tree, folder, file, &mut findings);
        }
    }
    findings
}

/// The folder of `file`, if policies live there. Not every file there is a policy.
fn policy_folder(file: &File) -> Option<&str> {
    let (folder, _) = file.path.rsplit_once('/')?;
    let kind = folder.strip_prefix("crates/policy/src/")?.split('/').next()?;
    FOLDERS.contains(&kind).then_some(folder)
}

/// The line and value of the first `name: "..."` after `const SPEC`.
fn spec_name(file: &File) -> Option<(usize, String)> {
    let start = file.rust.lines.iter().position(|line| line.code.contains("const SPEC"))?;
    file.rust.lines.iter().enumerate().skip(start).find_map(|(index, line)| {
        let (_, value) = line.text.split_once("name: \"")?;
        let (name, _) = value.split_once('"')?;
        Some((index + 1, name.to_owned()))
    })
}

fn stem(file: &File) -> &str {
    file.name().trim_end_matches(".rs")
}

fn check_name(file: &File, line: usize, name: &str, findings: &mut Vec<Finding>) {
    let expected = stem(file).replace('_', "-");
    if name != expected {
        let wanted = name.replace('-', "_");
        let message =
            format!("holds the policy `{name}`: call the file `{wanted}.rs`, or it `{expected}`");
        findings.push(Finding::new(Rule::PolicyFiles, &file.path, line, message));
    }
}

fn check_registered(tree: &Tree, folder: &str, file: &File, findings: &mut Vec<Finding>) {
    let registry = tree.file(&format!("{folder}/mod.rs"));
    let known = registry.is_some_and(|registry| registered(registry).contains(&stem(file)));
    if !known {
        let message =
            format!("not registered: add `&{}::SPEC` to `ALL` in `{folder}/mod.rs`", stem(file));
        findings.push(Finding::new(Rule::PolicyFiles, &file.path, 0, message));
    }
}

fn check_order(registry: &File, findings: &mut Vec<Finding>) {
    if !registered(registry).is_sorted() {
        let message = "`ALL` is not in alphabetical order: sort it";
        findings.push(Finding::new(Rule::PolicyFiles, &registry.path, 0, message));
    }
}

/// The modules whose `SPEC` a registry lists, in its order.
fn registered(registry: &File) -> Vec<&str> {
    let items = registry.rust.lines.iter().flat_map(|line| line.code.split([',', '[', ']']));
    items.filter_map(|item| item.trim().strip_prefix('&')?.strip_suffix("::SPEC")).collect()
}

fn check_header(file: &File, findings: &mut Vec<Finding>) {
    let header: Vec<&str> = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
    let header = header.join("\n");
    let mut from = 0;
    for heading in HEADINGS {
        if let Some(at) = header[from..].find(heading) {
            from += at;
        } else {
            let message = format!(
                "the header lacks `{heading}`, or has it in another place: write {}",
                HEADINGS.join(", ")
            );
            return findings.push(Finding::new(Rule::PolicyFiles, &file.path, 1, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{accepts, refuses};

    const HEADER: &str =
        "//! x\n//!\n//! **Prefers** a. **Reads** b.\n//! **Parameters** c.\n//! **Origin** d.\n";

    const REGISTRY: (&str, &str) =
        ("crates/policy/src/order/mod.rs", "//! x\npub const ALL: X = &[&fcfs::SPEC];\n");
    const FCFS: &str = "crates/policy/src/order/fcfs.rs";

    fn policy(name: &str) -> String {
        let spec = "/// x\npub const SPEC: Spec<dyn Order> = Spec {";
        format!("{HEADER}{spec}\n    name: \"{name}\",\n}};\n")
    }

    #[test]
    fn a_registered_policy_named_like_its_file_with_a_full_header_is_fine() {
        let scorers = "//! x\npub const ALL: X = &[\n    &kv::SPEC,\n    &queue_depth::SPEC,\n];\n";
        accepts(
            check,
            &[
                REGISTRY,
                (FCFS, &policy("fcfs")),
                ("crates/policy/src/routing/scorers/mod.rs", scorers),
                ("crates/policy/src/routing/scorers/queue_depth.rs", &policy("queue-depth")),
                ("crates/policy/src/routing/ties.rs", "//! No policy, but shared by some.\n"),
            ],
        );
    }

    #[test]
    fn a_policy_in_a_file_of_another_name_is_refused() {
        let files = [REGISTRY, (FCFS, &policy("sjf"))];
        refuses(check, &files, Rule::PolicyFiles, ":8: holds the policy `sjf`");
    }

    #[test]
    fn a_policy_that_is_not_registered_is_refused() {
        let files = [REGISTRY, ("crates/policy/src/order/sjf.rs", &policy("sjf"))];
        refuses(check, &files, Rule::PolicyFiles, "add `&sjf::SPEC` to `ALL`");
    }

    #[test]
    fn a_registry_out_of_order_is_refused() {
        let text = "//! x\npub const ALL: X = &[&sjf::SPEC, &fcfs::SPEC];\n";
        refuses(check, &[(REGISTRY.0, text)], Rule::PolicyFiles, "alphabetical");
    }

    #[test]
    fn a_header_without_one_of_the_four_headings_is_refused() {
        for heading in HEADINGS {
            let text = policy("fcfs").replace(heading, "");
            refuses(check, &[REGISTRY, (FCFS, &text)], Rule::PolicyFiles, heading);
        }
    }
}
