//! `cargo xtask <chore>`: reads the arguments, runs a chore and prints what it says.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal of a developer; the library beside it does not print"
)]

use std::path::Path;
use std::process::ExitCode;
use xtask::{bench, lines, reference, same, tidy, workspace_root};

const USAGE: &str = "\
usage: cargo xtask <chore>

  tidy                        list what breaks the rules of the house; nothing: all is well
  reference                   write the generated pages under `docs/reference`
  bench [--row N] [--runs N] [--traces DIR]
                              measure the promised costs; exit 1 if one is missed
  lines [FOLDER]              count the lines of code of this checkout, or another; exit 1 if a
                              limit is exceeded
  same BEFORE AFTER           run the same command lines with two builds of `blis`; exit 1 if
                              their results differ";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => run_tidy(),
        ["reference"] => run_reference(),
        ["bench", options @ ..] => match bench::Options::parse(options) {
            Ok(options) => run_bench(&options),
            Err(problem) => refuse(&problem),
        },
        ["lines"] => run_lines(&workspace_root()),
        ["lines", folder] => run_lines(Path::new(folder)),
        ["same", before, after] => run_same(Path::new(before), Path::new(after)),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        [] => refuse("no chore given"),
        [chore, ..] => refuse(&format!("unknown chore or too many arguments: `{chore}`")),
    }
}

fn run_tidy() -> ExitCode {
    let findings = tidy::check(&workspace_root());
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("{} findings", findings.len());
    ExitCode::FAILURE
}

fn run_reference() -> ExitCode {
    match reference::write(&workspace_root()) {
        Ok(paths) => {
            for path in paths {
                println!("wrote {}", path.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write the pages under `docs/reference`: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_bench(options: &bench::Options) -> ExitCode {
    match bench::run(options, &workspace_root(), &mut |line| println!("{line}")) {
        Ok(bench::Verdict::Met) => ExitCode::SUCCESS,
        Ok(bench::Verdict::Missed) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(3)
        }
    }
}

fn run_lines(root: &Path) -> ExitCode {
    let count = lines::count(root);
    print!("{}", count.table());
    let above = count.above_limits();
    for line in &above {
        eprintln!("{line}");
    }
    if above.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_same(before: &Path, after: &Path) -> ExitCode {
    let summary = match same::run(before, after, &workspace_root()) {
        Ok(summary) => summary,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(3);
        }
    };
    for difference in &summary.differences {
        println!("{difference}");
    }
    println!("{summary}");
    if summary.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(problem: &str) -> ExitCode {
    eprintln!("{problem}\n{USAGE}");
    ExitCode::from(2)
}
