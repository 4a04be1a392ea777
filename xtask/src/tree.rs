//! The files that the checks look at: those that git tracks or would track, read once.

use crate::source::Source;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that are not looked into where there is no git to ask.
const SKIPPED: &[&str] = &["target", ".git", ".blis"];

/// All text files of a checkout.
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<File>,
}

/// A text file.
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
    /// What is known of a Rust file; empty for others.
    pub(crate) rust: Source,
}

impl Tree {
    /// Reads the files under `root`. Files that are not UTF-8 text are left out.
    pub(crate) fn read(root: &Path) -> Tree {
        let mut paths = git_files(root).unwrap_or_else(|| walk(root));
        paths.sort();
        paths.dedup();
        let files = paths
            .into_iter()
            .filter_map(|path| {
                let text = std::fs::read_to_string(root.join(&path)).ok()?;
                let is_rust = ending(&path) == "rs";
                let rust = if is_rust { Source::read(&text) } else { Source::default() };
                (!text.contains('\0')).then_some(File { path, text, rust })
            })
            .collect();
        Tree { root: root.to_owned(), files }
    }

    /// All files, by path.
    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// The Rust files.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.ending() == "rs")
    }

    /// The file at `path`.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        let index = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        Some(&self.files[index])
    }

    /// Whether a file or folder is there, be it text or not.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

impl File {
    /// The folder of the workspace crate that the file is in: `sim`, ... or `xtask`.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        if self.path.starts_with("xtask/") {
            return Some("xtask");
        }
        self.path.strip_prefix("crates/")?.split_once('/').map(|(folder, _)| folder)
    }

    /// What follows the last point of the file's name.
    pub(crate) fn ending(&self) -> &str {
        ending(&self.path)
    }

    /// The file's name without folders.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// `path` seen from `folder`, relative to the root; `None` if it leaves it or is absolute.
pub(crate) fn resolve(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// What git tracks or would track; `None` without git.
fn git_files(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let paths = text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned);
    output.status.success().then(|| paths.collect())
}

/// Everything under `root` but build results and hidden stores.
fn walk(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_file() => paths.push(path),
                Ok(kind) if kind.is_dir() && !SKIPPED.contains(&name.as_str()) => {
                    folders.push(path);
                }
                _ => {}
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use crate::fixture::Fixture;

    #[test]
    fn build_results_and_binary_files_are_not_looked_at() {
        let fixture = Fixture::empty();
        fixture.write("a/b.md", "x");
        fixture.write("target/c.md", "x");
        fixture.write("d.bin", "x\0y");
        let tree = fixture.tree();
        let paths: Vec<_> = tree.files().iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a/b.md"]);
        assert!(tree.exists("d.bin") && tree.file("a/b.md").is_some());
    }

    #[test]
    fn git_decides_what_is_tracked_where_there_is_git() {
        let fixture = Fixture::empty();
        fixture.write("kept.md", "x");
        fixture.write("ignored.md", "x");
        fixture.write(".gitignore", "ignored.md\n");
        let git = std::process::Command::new("git")
            .args(["init", "--quiet", "."])
            .current_dir(fixture.root())
            .status();
        if !git.is_ok_and(|status| status.success()) {
            return;
        }
        let tree = fixture.tree();
        let paths: Vec<_> = tree.files().iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".gitignore", "kept.md"]);
    }
}
