//! Finds Rust files that no `mod` line reaches: they look alive and are not compiled.

use super::source::find_word;
use super::tree::{File, Tree};
use super::{Finding, Rule};
use std::collections::BTreeSet;

/// Every Rust file of a crate is compiled.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&File> = tree.rust_files().filter(|file| is_root(&file.path)).collect();
    while let Some(file) = pending.pop() {
        if reached.insert(file.path.as_str()) {
            let modules = declared(file).into_iter();
            pending.extend(modules.filter_map(|name| module_file(tree, file, &name)));
        }
    }
    tree.rust_files()
        .filter(|file| file.crate_folder().is_some() && !reached.contains(file.path.as_str()))
        .map(|file| {
            let message = "no `mod` line reaches this file: declare it, or remove it";
            Finding::new(Rule::DeadFiles, &file.path, 0, message)
        })
        .collect()
}

/// Whether cargo compiles the file by itself: `src/lib.rs`, `src/main.rs`, `src/bin/*.rs`,
/// `build.rs`, and in `tests`, `benches` and `examples` the files themselves or `*/main.rs`.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let inside = match parts.first() {
        Some(&"crates") => parts.get(2..),
        Some(&"xtask") => parts.get(1..),
        _ => None,
    };
    let Some(inside) = inside else { return false };
    match inside {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", rest @ ..] | ["tests" | "benches" | "examples", rest @ ..] => {
            matches!(rest, [_] | [_, "main.rs"])
        }
        _ => false,
    }
}

/// The modules that `file` declares without a body.
fn declared(file: &File) -> Vec<String> {
    let mut names = Vec::new();
    for line in &file.rust {
        let mut code = line.code.as_str();
        while let Some(at) = find_word(code, "mod ") {
            code = &code[at + "mod ".len()..];
            let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
            if code[end..].trim_start().starts_with(';') {
                names.push(code[..end].to_owned());
            }
        }
    }
    names
}

/// The file of the module `name` that `parent` declares.
fn module_file<'a>(tree: &'a Tree, parent: &File, name: &str) -> Option<&'a File> {
    let (folder, file) = parent.path.rsplit_once('/')?;
    let owns_folder = matches!(file, "lib.rs" | "main.rs" | "mod.rs") || is_root(&parent.path);
    let folder = if owns_folder {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    };
    tree.file(&format!("{folder}/{name}.rs"))
        .or_else(|| tree.file(&format!("{folder}/{name}/mod.rs")))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{accepts, refuses};
    use super::*;

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

    #[test]
    fn folders_test_binaries_and_nested_modules_are_followed() {
        let files = [
            ("crates/sim/src/lib.rs", "//! x\nmod instance;\npub(crate) mod world;\n"),
            ("crates/sim/src/instance/mod.rs", "//! x\n#[cfg(test)] mod queue;\n"),
            ("crates/sim/src/instance/queue.rs", "//! x\n"),
            ("crates/sim/src/world.rs", "//! x\nmod clock;\n"),
            ("crates/sim/src/world/clock.rs", "//! x\n"),
            ("crates/sim/tests/it/main.rs", "//! x\nmod oracle;\n"),
            ("crates/sim/tests/it/oracle.rs", "//! x\n"),
            ("xtask/src/main.rs", "//! x\n"),
        ];
        accepts(check, &files);
    }
}
