//! A small made-up checkout on disk, for showing that each check can fail.

use super::tree::Tree;
use super::{Finding, Rule};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own under the system's temporary folder, removed when dropped.
pub(crate) struct Fixture {
    root: PathBuf,
}

impl Fixture {
    /// A folder with nothing in it.
    pub(crate) fn empty() -> Fixture {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("blis-tidy-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&root).unwrap();
        Fixture { root }
    }

    /// A folder with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Fixture {
        let fixture = Fixture::empty();
        for (path, text) in files {
            fixture.write(path, text);
        }
        fixture
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::read(&self.root)
    }

    /// What `check` finds here, as text.
    pub(crate) fn findings(&self, check: fn(&Tree) -> Vec<Finding>) -> Vec<String> {
        check(&self.tree()).iter().map(ToString::to_string).collect()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // A fixture that cannot be removed is litter in the temporary folder, not a failed test.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Asserts that `check` objects to exactly one thing in `files`: by `rule`, saying `words`.
#[track_caller]
pub(crate) fn refuses(
    check: fn(&Tree) -> Vec<Finding>,
    files: &[(&str, &str)],
    rule: Rule,
    words: &str,
) {
    let found = Fixture::with(files).findings(check);
    assert_eq!(found.len(), 1, "one finding expected: {found:#?}");
    assert!(found[0].ends_with(&format!("[{}]", rule.name())), "{}", found[0]);
    assert!(found[0].contains(words), "`{words}` expected in: {}", found[0]);
}

/// Asserts that `check` has nothing to say about `files`.
#[track_caller]
pub(crate) fn accepts(check: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) {
    let found = Fixture::with(files).findings(check);
    assert!(found.is_empty(), "nothing expected: {found:#?}");
}
