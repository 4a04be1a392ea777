//! Sizes, whitespace, headers, and words that may stand in no file.

use super::{Finding, Rule};
use crate::source::{self, Line};
use crate::tree::{File, Tree};

/// Most lines of a Rust file without its tests.
const LINES_MAX: usize = 500;

/// Most columns of a line of a Rust file.
const COLUMNS_MAX: usize = 100;

/// Endings of files that people write by hand, where whitespace is checked.
const HANDWRITTEN: &[&str] = &[".rs", ".toml", ".md", ".yaml", ".yml", ".sh", ".ci/run"];

/// Code that may not be there, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    ("todo!", "finish it, or leave it out"),
    ("unimplemented!", "finish it, or leave it out"),
    ("dbg!", "remove it"),
    ("#[ignore", "make the test fast, or assert what happens today"),
    ("#[should_panic", "test the value or the message that is returned"),
    ("fn test_", "name the test as a sentence"),
];

/// Top-level folders that differ from machine to machine; no file may point into them.
const MACHINE_FOLDERS: &[&str] = &["work", "home", "root", "tmp"];

/// Parts of the host names of package registries and their mirrors, cut in two so that this file
/// may name them.
const HOSTS: &[(&str, &str)] = &[
    ("crates", ".io"),
    ("pypi", ".org"),
    ("python", "hosted.org"),
    ("npm", "js."),
    ("proxy.golang", ".org"),
    ("ruby", "gems.org"),
    ("art", "ifactory"),
    ("jf", "rog"),
];

/// Every text file is tidy, and every Rust file is small and says what it is.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        check_paths(file, &mut findings);
        check_hosts(file, &mut findings);
        if HANDWRITTEN.iter().any(|ending| file.path.ends_with(ending)) {
            check_whitespace(file, &mut findings);
        }
    }
    for file in tree.rust_files() {
        check_sizes(file, &mut findings);
        check_banned(file, &mut findings);
        check_doc_tests(file, &mut findings);
        if !file.text.starts_with("//!") {
            let message = "begin with `//!`: purpose, who calls it, what it must never do";
            findings.push(Finding::new(Rule::Header, &file.path, 1, message));
        }
    }
    findings
}

fn check_sizes(file: &File, findings: &mut Vec<Finding>) {
    let lines = file.rust.lines.iter().filter(|line| !line.is_test).count();
    // `tests.rs` is a test module that was moved out of its file.
    if lines > LINES_MAX && file.name() != "tests.rs" {
        let message = format!("{lines} lines without tests, at most {LINES_MAX}: split it");
        findings.push(Finding::new(Rule::Length, &file.path, 0, message));
    }
    for (index, line) in file.rust.lines.iter().enumerate() {
        let columns = line.text.chars().count();
        if columns > COLUMNS_MAX && !may_be_wide(line) {
            let message = format!("{columns} columns, at most {COLUMNS_MAX}: break the line");
            findings.push(Finding::new(Rule::Columns, &file.path, index + 1, message));
        }
    }
}

/// Addresses, rows of tables and string literals are not broken.
fn may_be_wide(line: &Line) -> bool {
    let is_row =
        line.text.trim_start().trim_start_matches(['/', '!']).trim_start().starts_with('|');
    line.text.contains("://") || is_row || line.is_literal(COLUMNS_MAX)
}

fn check_banned(file: &File, findings: &mut Vec<Finding>) {
    for (index, line) in file.rust.lines.iter().enumerate() {
        for (word, advice) in BANNED {
            if source::find_word(&line.code, word).is_some() {
                let message = format!("`{word}`: {advice}");
                findings.push(Finding::new(Rule::Banned, &file.path, index + 1, message));
            }
        }
    }
}

/// Samples in doc comments are not run, so none may look as if it were.
fn check_doc_tests(file: &File, findings: &mut Vec<Finding>) {
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(language) = doc.and_then(|doc| doc.trim().strip_prefix("```")) else { continue };
        fenced = !fenced;
        if fenced && ["", "rust"].contains(&language) {
            let message = "a sample that is not run: make it a test, or name another language";
            findings.push(Finding::new(Rule::Samples, &file.path, index + 1, message));
        }
    }
}

fn check_whitespace(file: &File, findings: &mut Vec<Finding>) {
    for (index, line) in file.text.split('\n').enumerate() {
        let problem = if line.contains('\t') {
            "a tab: use spaces"
        } else if line.ends_with(char::is_whitespace) {
            "whitespace at the end of the line: remove it"
        } else {
            continue;
        };
        findings.push(Finding::new(Rule::Whitespace, &file.path, index + 1, problem));
    }
}

fn check_paths(file: &File, findings: &mut Vec<Finding>) {
    for (index, line) in file.text.lines().enumerate() {
        for folder in MACHINE_FOLDERS {
            if has_absolute_path(line, folder) {
                let message = format!("a path of one machine (`/{folder}`): use a relative one");
                findings.push(Finding::new(Rule::Paths, &file.path, index + 1, message));
            }
        }
    }
}

/// Whether `line` holds `/folder` as the beginning of a path, not as a part of a longer one.
fn has_absolute_path(line: &str, folder: &str) -> bool {
    let pattern = format!("/{folder}");
    line.match_indices(&pattern).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + pattern.len()..].chars().next();
        let continues = |c: char| c.is_alphanumeric() || "_-./~*$})]".contains(c);
        let longer = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        !before.is_some_and(continues) && !after.is_some_and(longer)
    })
}

fn check_hosts(file: &File, findings: &mut Vec<Finding>) {
    // The lock file names the default registry by its public index: that line is its own.
    let default_source =
        format!("source = \"registry+https://github.com/rust-lang/{}{}-index\"", "crates", ".io");
    let is_lock = file.name() == "Cargo.lock";
    for (index, line) in file.text.lines().enumerate() {
        let host = if is_lock {
            let foreign = line.starts_with("source = \"") && line != default_source;
            foreign.then(|| "a source other than the default registry".to_owned())
        } else {
            HOSTS
                .iter()
                .map(|(first, second)| format!("{first}{second}"))
                .find(|host| line.contains(host.as_str()))
        };
        if let Some(host) = host {
            let message = format!("a package registry (`{host}`): leave the host to cargo");
            findings.push(Finding::new(Rule::Hosts, &file.path, index + 1, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{accepts, refuses};

    #[test]
    fn a_file_of_more_than_500_lines_is_refused_and_its_tests_do_not_count() {
        let body = format!("//! x\n{}", "fn f() {}\n".repeat(499));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    fn g() {}\n".repeat(300));
        accepts(check, &[("a.rs", &format!("{body}{tests}"))]);
        accepts(check, &[("a/tests.rs", &format!("{body}{body}"))]);
        refuses(check, &[("a.rs", &format!("{body}fn f() {{}}\n"))], Rule::Length, "501 lines");
    }

    #[test]
    fn a_line_of_more_than_100_columns_is_refused_in_comments_too() {
        let fits = "é".repeat(97);
        accepts(check, &[("a.rs", &format!("//! x\n// {fits}\n"))]);
        let wide = format!("//! x\n// {fits}é\n");
        refuses(check, &[("a.rs", &wide)], Rule::Columns, ":2: 101 columns");
        let spread = "a + ".repeat(30);
        let code = format!("//! x\nlet x = {spread}1;\n");
        refuses(check, &[("a.rs", &code)], Rule::Columns, ":2: 130 columns");
    }

    #[test]
    fn addresses_rows_of_tables_and_strings_may_be_wide() {
        let word = "x".repeat(100);
        let text = format!("//! https://x/{word}\n//! | {word} | y |\nlet a = \"{word}\";\n");
        accepts(check, &[("a.rs", &text)]);
    }

    #[test]
    fn tabs_and_trailing_whitespace_are_refused_in_files_written_by_hand() {
        refuses(check, &[("a.rs", "//! x\n\tfn f() {}\n")], Rule::Whitespace, ":2: a tab");
        refuses(check, &[("a.md", "# x\ny  \n")], Rule::Whitespace, ":2: whitespace at the end");
        accepts(check, &[("a.snap", "y  \n"), ("b.csv", "a\tb\n")]);
    }

    #[test]
    fn a_rust_file_without_a_header_is_refused() {
        refuses(check, &[("a.rs", "/// x\nfn f() {}\n")], Rule::Header, ":1: begin with `//!`");
    }

    #[test]
    fn unfinished_and_hidden_code_is_refused_but_may_be_talked_about() {
        for code in [
            "todo!()",
            "unimplemented!()",
            "dbg!(x)",
            "#[ignore = \"slow\"]",
            "#[should_panic]",
            "fn test_it() {}",
        ] {
            refuses(check, &[("a.rs", &format!("//! x\n{code}\n"))], Rule::Banned, ":2: `");
        }
        accepts(check, &[("a.rs", "//! no todo!\nlet a = \"dbg!\"; my_dbg!(1);\n")]);
    }

    #[test]
    fn a_sample_in_a_doc_comment_that_nobody_runs_is_refused() {
        for fence in ["```", "```rust"] {
            let text = format!("//! x\n/// {fence}\n/// f()\n/// ```\n");
            refuses(check, &[("a.rs", &text)], Rule::Samples, "a.rs:2: a sample that is not run");
        }
        accepts(check, &[("a.rs", "//! x\n//!\n//! ```text\n//! f()\n//! ```\n")]);
    }

    #[test]
    fn paths_of_one_machine_are_refused_in_every_text_file() {
        for folder in MACHINE_FOLDERS {
            let text = format!("see `/{folder}/x`\n");
            refuses(check, &[("a.txt", &text)], Rule::Paths, ":1: a path of one machine");
            let end = format!("cd /{folder}\n");
            refuses(check, &[("a.txt", &end)], Rule::Paths, ":1: a path of one machine");
        }
        let fine =
            "a/work b/home/c ../tmp $HOME/tmp ${X}/tmp /workload /rooted https://x.org/home\n";
        accepts(check, &[("a.txt", fine)]);
    }

    #[test]
    fn hosts_of_registries_are_refused_but_the_lock_file_may_name_the_default_one() {
        for (first, second) in HOSTS {
            let text = format!("from {first}{second}\n");
            refuses(check, &[("a.md", &text)], Rule::Hosts, ":1: a package registry");
        }
        let source = |host: &str| format!("source = \"registry+https://{host}\"\n");
        let default = source(&format!("github.com/rust-lang/{}{}-index", "crates", ".io"));
        accepts(check, &[("Cargo.lock", &default)]);
        let mirror = source("mirror.example/index");
        refuses(check, &[("Cargo.lock", &mirror)], Rule::Hosts, "other than the default registry");
    }
}
