//! Counts the lines of code and holds them to the limits of the house.
//!
//! A line counts if it holds anything but blanks and comments. Tests do not count: what is compiled
//! under `#[cfg(test)]`, and the folders `tests`, `benches` and `examples` of a crate. `fuzz` and
//! `benches`, which are outside the workspace, only test and do not count either; the chores do. A
//! function is as long as its lines of code from `fn` to the closing brace.

use crate::modules;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// All code together.
const SUM_MAX: usize = 50_000;
/// One crate.
const CRATE_MAX: usize = 11_000;
/// One file.
const FILE_MAX: usize = 500;
/// 99 of 100 functions.
const FUNCTION_P99_MAX: usize = 45;
/// One function.
const FUNCTION_MAX: usize = 70;

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Lines of code by crate.
    crates: BTreeMap<String, usize>,
    /// Lines of code by file, with where it is.
    files: Vec<(usize, String)>,
    /// Functions by length, with where they are.
    functions: Vec<(usize, String)>,
}

/// Counts the code under `root`.
pub fn count(root: &Path) -> Count {
    count_tree(&Tree::read(root))
}

fn count_tree(tree: &Tree) -> Count {
    let mut count = Count::default();
    let compiled: BTreeMap<&str, _> = modules::all(tree)
        .into_iter()
        .filter(|module| !module.is_test)
        .map(|module| (module.file.path.as_str(), module.file))
        .collect();
    for (path, file) in compiled {
        let lines = file.rust.code_lines();
        *count.crates.entry(file.crate_folder().unwrap_or_default().to_owned()).or_default() +=
            lines;
        count.files.push((lines, path.to_owned()));
        let functions = file.rust.functions.iter().filter(|f| !file.rust.lines[f.line - 1].is_test);
        count
            .functions
            .extend(functions.map(|f| (f.length, format!("{path}:{} {}", f.line, f.name))));
    }
    count.files.sort();
    count.functions.sort();
    count
}

impl Count {
    /// A Markdown table of what was counted, with the limits.
    pub fn table(&self) -> String {
        let mut table = String::from("| what | lines of code | at most |\n|---|---|---|\n");
        let mut row = |what: &str, lines: usize, most: &str| {
            writeln!(table, "| {what} | {lines} | {most} |")
                .expect("writing to a string cannot fail");
        };
        for (name, lines) in &self.crates {
            row(&format!("`{name}`"), *lines, &CRATE_MAX.to_string());
        }
        row("all crates", self.crates.values().sum(), &SUM_MAX.to_string());
        let (lines, file) = self.files.last().cloned().unwrap_or_default();
        let longest = format!("longest of {} files: `{file}`", self.files.len());
        row(&longest, lines, &FILE_MAX.to_string());
        let median = format!("median of {} functions", self.functions.len());
        row(&median, self.percentile(50), "");
        let p99 = self.percentile(99);
        row("99th percentile of functions", p99, &FUNCTION_P99_MAX.to_string());
        let (lines, function) = self.functions.last().cloned().unwrap_or_default();
        row(&format!("longest function: `{function}`"), lines, &FUNCTION_MAX.to_string());
        table
    }

    /// What is above a limit.
    pub fn above_limits(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut check = |what: &str, lines: usize, most: usize| {
            if lines > most {
                found.push(format!("{what}: {lines} lines of code, at most {most}"));
            }
        };
        check("all crates", self.crates.values().sum(), SUM_MAX);
        for (name, lines) in &self.crates {
            check(name, *lines, CRATE_MAX);
        }
        check("99th percentile of functions", self.percentile(99), FUNCTION_P99_MAX);
        for (lines, file) in &self.files {
            check(file, *lines, FILE_MAX);
        }
        for (lines, function) in &self.functions {
            check(function, *lines, FUNCTION_MAX);
        }
        found
    }

    /// The length that `percent` of the functions do not exceed.
    fn percentile(&self, percent: usize) -> usize {
        let rank = (self.functions.len() * percent).div_ceil(100).saturating_sub(1);
        self.functions.get(rank).map_or(0, |(length, _)| *length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn code_is_counted_by_crate_without_tests_comments_and_blanks() {
        let fixture = Fixture::with(&[
            ("crates/kv/src/lib.rs", "//! x\n\nmod pool;\n#[cfg(test)]\nmod toy;\nfn f() {}\n"),
            ("crates/kv/src/pool.rs", "fn g() {\n    // y\n}\n#[cfg(test)]\nmod tests {}\n"),
            ("crates/kv/src/toy.rs", "fn h() {}\n"),
            ("crates/kv/tests/it/main.rs", "fn i() {}\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
            ("fuzz/src/lib.rs", "fn j() {}\n"),
        ]);
        let count = count_tree(&fixture.tree());
        assert_eq!(count.crates, BTreeMap::from([("kv".to_owned(), 4), ("xtask".to_owned(), 1)]));
        let names = |all: &[(usize, String)]| {
            all.iter().map(|(lines, name)| format!("{lines} {name}")).collect::<Vec<_>>()
        };
        let files = ["1 xtask/src/main.rs", "2 crates/kv/src/lib.rs", "2 crates/kv/src/pool.rs"];
        assert_eq!(names(&count.files), files);
        let functions = [
            "1 crates/kv/src/lib.rs:6 f",
            "1 xtask/src/main.rs:1 main",
            "2 crates/kv/src/pool.rs:1 g",
        ];
        assert_eq!(names(&count.functions), functions);
        assert!(count.above_limits().is_empty());
        assert!(
            count.table().contains("| longest function: `crates/kv/src/pool.rs:1 g` | 2 | 70 |")
        );
    }

    #[test]
    fn everything_above_a_limit_is_named() {
        let crates = [("lab", CRATE_MAX + 1), ("sim", SUM_MAX - CRATE_MAX)];
        let functions = |length: usize, count: usize| vec![(length, "f".to_owned()); count];
        let count = Count {
            crates: crates.map(|(name, lines)| (name.to_owned(), lines)).into(),
            files: vec![(FILE_MAX, "a.rs".to_owned()), (FILE_MAX + 1, "b.rs".to_owned())],
            functions: [functions(1, 97), functions(46, 2), functions(71, 1)].concat(),
        };
        let expected = [
            "all crates: 50001 lines of code, at most 50000",
            "lab: 11001 lines of code, at most 11000",
            "sim: 39000 lines of code, at most 11000",
            "99th percentile of functions: 46 lines of code, at most 45",
            "b.rs: 501 lines of code, at most 500",
            "f: 71 lines of code, at most 70",
        ];
        assert_eq!(count.above_limits(), expected);
        assert_eq!(count.percentile(50), 1);
    }
}
