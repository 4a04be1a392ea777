//! Finds Rust files that no `mod` line reaches: they look alive and are not compiled.

use super::{Finding, Rule};
use crate::modules;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Every Rust file of a crate is compiled.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let compiled = modules::all(tree);
    let reached: BTreeSet<&str> = compiled.iter().map(|module| module.file.path.as_str()).collect();
    tree.rust_files()
        .filter(|file| file.crate_folder().is_some() && !reached.contains(file.path.as_str()))
        .map(|file| {
            let message = "no `mod` line reaches this file: declare it, or remove it";
            Finding::new(Rule::DeadFiles, &file.path, 0, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::refuses;

    #[test]
    fn a_file_that_no_module_declares_is_found() {
        let files = [
            ("crates/kv/src/lib.rs", "//! x\npub mod pool;\n// mod old;\n"),
            ("crates/kv/src/pool.rs", "//! x\n"),
            ("crates/kv/src/old.rs", "//! x\n"),
        ];
        refuses(check, &files, Rule::DeadFiles, "crates/kv/src/old.rs: no `mod` line");
    }

    #[test]
    fn a_module_is_not_reached_through_a_dead_one() {
        let files = [
            ("crates/kv/src/lib.rs", "//! x\nmod a { mod b; }\n"),
            ("crates/kv/src/c/mod.rs", "//! x\npub mod d;\n"),
        ];
        refuses(check, &files, Rule::DeadFiles, "crates/kv/src/c/mod.rs");
    }
}
