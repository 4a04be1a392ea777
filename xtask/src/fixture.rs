//! A small made-up checkout on disk, for showing that each check can fail.

use crate::tidy::{Finding, Rule};
use crate::tree::Tree;
use std::path::Path;
use tempfile::TempDir;

/// A temporary folder.
pub(crate) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// A folder with nothing in it.
    pub(crate) fn empty() -> Fixture {
        Fixture { folder: tempfile::tempdir().expect("a temporary folder") }
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
        self.folder.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::read(self.root())
    }

    /// What `check` finds here, as text.
    pub(crate) fn findings(&self, check: fn(&Tree) -> Vec<Finding>) -> Vec<String> {
        check(&self.tree()).iter().map(ToString::to_string).collect()
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
    assert!(found[0].ends_with(&format!("[{rule:?}]")), "{}", found[0]);
    assert!(found[0].contains(words), "`{words}` expected in: {}", found[0]);
}

/// Asserts that `check` has nothing to say about `files`.
#[track_caller]
pub(crate) fn accepts(check: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) {
    let found = Fixture::with(files).findings(check);
    assert!(found.is_empty(), "nothing expected: {found:#?}");
}
