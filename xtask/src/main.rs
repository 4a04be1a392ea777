//! `cargo xtask <chore>`: reads the arguments, runs a chore and prints what it says.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal of a developer; the library beside it does not print"
)]

use std::path::Path;
use std::process::ExitCode;
use xtask::{archive, bench, lines, reference, same, soak, tidy, workspace_root};

const USAGE: &str = "\
usage: cargo xtask <chore>

  archive DIR BLIS            run the scripts of a checkout of the Go program's archive with a build
                              of `blis`; exit 1 if too few of them are accepted
  tidy                        list what breaks the rules of the house; nothing: all is well
  reference                   write the generated pages under `docs/reference`
  bench [--row N] [--runs N] [--traces DIR]
                              measure the promised costs; exit 1 if one is missed
  lines [FOLDER]              count the lines of code of this checkout, or another; exit 1 if a
                              limit is exceeded
  same BEFORE AFTER           run the same command lines with two builds of `blis`; exit 1 if
                              their results differ
  soak --minutes M [--jobs N] [--seed N] [--blis PATH] [--out DIR]
                              try random worlds and command lines; exit 1 if one fails
  soak --again FILE           check a world that has failed once more";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    match words.as_slice() {
        ["archive", folder, build] => {
            let print = |line: &dyn std::fmt::Display| println!("{line}");
            let wrong = archive::run(Path::new(folder), Path::new(build), &print);
            or_problem(wrong.map(|wrong| verdict("", &wrong)))
        }
        ["tidy"] => verdict("", &tidy::check(&root)),
        ["reference"] => or_problem(reference::write(&root).map(|paths| {
            for path in paths {
                println!("wrote {}", path.display());
            }
            ExitCode::SUCCESS
        })),
        ["bench", options @ ..] => match bench::Options::parse(options) {
            Ok(options) => run_bench(&options, &root),
            Err(problem) => refuse(&problem),
        },
        ["lines"] => run_lines(&root),
        ["lines", folder] => run_lines(Path::new(folder)),
        ["same", before, after] => {
            let found = same::run(Path::new(before), Path::new(after), &root);
            or_problem(found.map(|found| verdict(&format!("{found}\n"), &found.differences)))
        }
        ["soak", options @ ..] => match soak::Options::parse(options) {
            Ok(options) => {
                let found = soak::run(&options, &|line| println!("{line}"));
                or_problem(found.map(|found| verdict(&found.to_string(), &found.wrong())))
            }
            Err(problem) => refuse(&problem),
        },
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        [] => refuse("no chore given"),
        [chore, ..] => refuse(&format!("unknown chore or too many arguments: `{chore}`")),
    }
}

fn run_bench(options: &bench::Options, root: &Path) -> ExitCode {
    let verdict = bench::run(options, root, &mut |line| println!("{line}"));
    or_problem(verdict.map(|verdict| match verdict {
        bench::Verdict::Met => ExitCode::SUCCESS,
        bench::Verdict::Missed => ExitCode::FAILURE,
    }))
}

fn run_lines(root: &Path) -> ExitCode {
    let count = lines::count(root);
    verdict(&count.table(), &count.above_limits())
}

/// Prints what was found and what is wrong with it.
fn verdict(found: &str, wrong: &[String]) -> ExitCode {
    print!("{found}");
    for problem in wrong {
        println!("{problem}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A chore that could not be done.
fn or_problem(done: Result<ExitCode, impl std::fmt::Display>) -> ExitCode {
    done.unwrap_or_else(|problem| {
        eprintln!("{problem}");
        ExitCode::from(3)
    })
}

fn refuse(problem: &str) -> ExitCode {
    eprintln!("{problem}\n{USAGE}");
    ExitCode::from(2)
}
