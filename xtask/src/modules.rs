//! Which file of a crate holds which module, found from the `mod` lines as the compiler does.

use crate::source;
use crate::tree::{self, File, Tree};
use std::collections::BTreeSet;

/// A file that is compiled.
pub(crate) struct Module<'a> {
    pub(crate) file: &'a File,
    /// The file that cargo compiles: `src/lib.rs` and the like.
    pub(crate) root: &'a File,
    /// Its modules, from that file on.
    pub(crate) path: Vec<String>,
    /// Whether it is compiled for tests alone.
    pub(crate) is_test: bool,
}

/// All files that are compiled, once for each way in which they are.
pub(crate) fn all(tree: &Tree) -> Vec<Module<'_>> {
    let roots = tree.rust_files().filter(|file| is_root(&file.path));
    let mut pending: Vec<Module<'_>> = roots
        .map(|file| Module { file, root: file, path: Vec::new(), is_test: is_test(&file.path) })
        .collect();
    let mut reached = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(module) = pending.pop() {
        if !reached.insert((&module.root.path, &module.file.path)) {
            continue;
        }
        for declared in &module.file.rust.modules {
            let Some(file) = file_of(tree, module.file, declared) else { continue };
            let mut path = module.path.clone();
            path.extend(declared.inside.iter().chain([&declared.name]).cloned());
            let is_test = module.is_test || declared.is_test;
            pending.push(Module { file, root: module.root, path, is_test });
        }
        found.push(module);
    }
    found
}

/// The path inside its crate.
fn inside(path: &str) -> Vec<&str> {
    let parts: Vec<&str> = path.split('/').collect();
    let start = match parts.first() {
        Some(&"crates") => 2,
        Some(&"xtask") => 1,
        _ => parts.len(),
    };
    parts.get(start..).unwrap_or_default().to_vec()
}

/// Whether cargo compiles the file by itself: `src/lib.rs`, `src/main.rs`, `src/bin/*.rs`,
/// `build.rs`, and in `tests`, `benches` and `examples` the files themselves or `*/main.rs`.
fn is_root(path: &str) -> bool {
    match inside(path).as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", rest @ ..] | ["tests" | "benches" | "examples", rest @ ..] => {
            matches!(rest, [_] | [_, "main.rs"])
        }
        _ => false,
    }
}

fn is_test(path: &str) -> bool {
    matches!(inside(path).first(), Some(&("tests" | "benches" | "examples")))
}

/// The file of a module that `parent` declares.
fn file_of<'a>(tree: &'a Tree, parent: &File, module: &source::Module) -> Option<&'a File> {
    let (folder, name) = parent.path.rsplit_once('/')?;
    if let Some(path) = &module.path {
        return tree.file(&tree::resolve(folder, path)?);
    }
    let owns_folder = matches!(name, "lib.rs" | "main.rs" | "mod.rs") || is_root(&parent.path);
    let own = (!owns_folder).then(|| name.trim_end_matches(".rs"));
    let parts = [folder].into_iter().chain(own).chain(module.inside.iter().map(String::as_str));
    let stem = parts.chain([module.name.as_str()]).collect::<Vec<_>>().join("/");
    tree.file(&format!("{stem}.rs")).or_else(|| tree.file(&format!("{stem}/mod.rs")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    /// Path, modules and whether it is a test, of all files that are compiled.
    fn compiled(files: &[(&str, &str)]) -> Vec<String> {
        let fixture = Fixture::with(files);
        let tree = fixture.tree();
        let show = |module: &Module<'_>| {
            let test = if module.is_test { " (test)" } else { "" };
            format!("{} {}{test}", module.file.path, module.path.join("::"))
        };
        let mut shown: Vec<String> = all(&tree).iter().map(show).collect();
        shown.sort();
        shown
    }

    #[test]
    fn folders_test_binaries_and_nested_modules_are_followed() {
        let files = [
            ("crates/sim/src/lib.rs", "mod instance;\npub(crate) mod world { mod clock; }\n"),
            ("crates/sim/src/instance/mod.rs", "#[cfg(test)] mod queue;\n"),
            ("crates/sim/src/instance/queue.rs", "mod deep;\n"),
            ("crates/sim/src/instance/queue/deep.rs", ""),
            ("crates/sim/src/world/clock.rs", ""),
            ("crates/sim/src/unreached.rs", ""),
            ("crates/sim/tests/it/main.rs", "mod oracle;\n"),
            ("crates/sim/tests/it/oracle.rs", ""),
            ("xtask/src/main.rs", ""),
        ];
        let expected = [
            "crates/sim/src/instance/mod.rs instance",
            "crates/sim/src/instance/queue.rs instance::queue (test)",
            "crates/sim/src/instance/queue/deep.rs instance::queue::deep (test)",
            "crates/sim/src/lib.rs ",
            "crates/sim/src/world/clock.rs world::clock",
            "crates/sim/tests/it/main.rs  (test)",
            "crates/sim/tests/it/oracle.rs oracle (test)",
            "xtask/src/main.rs ",
        ];
        assert_eq!(compiled(&files), expected);
    }

    #[test]
    fn a_module_may_say_where_its_file_is() {
        let files = [
            ("crates/kv/src/lib.rs", "#[cfg(test)]\n#[path = \"../tests/toy/mod.rs\"]\nmod toy;\n"),
            ("crates/kv/tests/toy/mod.rs", ""),
        ];
        let expected = ["crates/kv/src/lib.rs ", "crates/kv/tests/toy/mod.rs toy (test)"];
        assert_eq!(compiled(&files), expected);
    }
}
