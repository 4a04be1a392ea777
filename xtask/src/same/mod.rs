//! Runs the same command lines with two builds of `blis` and lists where their results differ.
//!
//! For changes that must not change results: the first build is from before them, the second from
//! after. What programs read (JSON, CSV, YAML, exit codes) has to be equal; tables and pages, which
//! people read, are not looked at.

mod compare;
mod lines;

use lines::{Line, Lists, Plan};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Fewer command lines than this prove too little.
const LINES_MIN: usize = 200;

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Command lines whose results were compared.
    pub compared: usize,
    /// Command lines that both builds refused, as they may.
    pub refused: usize,
    /// Where they differ, or what could not be compared.
    pub differences: Vec<String>,
    /// The folders with the results of both, kept if they differ.
    pub kept: Vec<PathBuf>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { compared, refused, differences, kept } = self;
        let found = differences.len();
        writeln!(f, "{compared} command lines compared, {refused} refused, {found} differences")?;
        for folder in kept {
            writeln!(f, "results are kept in {}", folder.display())?;
        }
        write!(f, "not compared:")?;
        compare::EXPLAINED.iter().try_for_each(|(key, why)| write!(f, "\n  `{key}`: {why}"))
    }
}

/// Runs everything with both builds.
///
/// # Errors
/// If a build does not start or does not list what it knows, or if a file cannot be written.
pub fn run(before: &Path, after: &Path, root: &Path) -> Result<Summary, String> {
    let plan = Plan::new(root, &Lists::ask(before)?)?;
    let mut summary = run_plan(&plan, [before, after], root)?;
    if summary.compared < LINES_MIN {
        let problem = format!("{} command lines, at least {LINES_MIN} wanted", summary.compared);
        summary.differences.push(problem);
    }
    Ok(summary)
}

fn run_plan(plan: &Plan, builds: [&Path; 2], root: &Path) -> Result<Summary, String> {
    let run = |build| Ran::all(plan, build, root);
    let [before, after] = std::thread::scope(|scope| {
        let threads = builds.map(|build| scope.spawn(move || run(build)));
        threads.map(|thread| thread.join().expect("it returns its errors"))
    });
    let (before, after) = (before?, after?);
    let mut summary = Summary::default();
    for (index, line) in plan.lines.iter().enumerate() {
        let found = match (before.codes[index], after.codes[index]) {
            (a, b) if a != b => vec![format!("exit code {a}, then {b}")],
            // With 1 a check failed, e.g. a strategy is exported in part; the output is there.
            (0 | 1, _) => compare_outputs(line, index, [&before, &after]),
            (2, _) if line.may_be_refused => {
                summary.refused += 1;
                continue;
            }
            (code, _) => vec![format!("both exit with {code}, so there is nothing to compare")],
        };
        summary.compared += 1;
        let command = line.args.join(" ");
        summary.differences.extend(found.iter().map(|text| format!("blis {command}: {text}")));
    }
    if !summary.differences.is_empty() {
        summary.kept = [before, after].map(|ran| ran.folder.keep()).into();
    }
    Ok(summary)
}

fn compare_outputs(line: &Line, index: usize, ran: [&Ran; 2]) -> Vec<String> {
    let mut found = Vec::new();
    for name in line.outputs(index) {
        match ran.map(|ran| std::fs::read_to_string(ran.folder.path().join(&name))) {
            [Ok(before), Ok(after)] => {
                let lines = compare::differences(&name, &before, &after);
                found.extend(lines.into_iter().map(|text| format!("{name}: {text}")));
            }
            [Err(_), Ok(_)] => found.push(format!("{name}: only written by the second")),
            [_, Err(problem)] => found.push(format!("{name}: {problem}")),
        }
    }
    found
}

/// What one build left.
struct Ran {
    folder: TempDir,
    codes: Vec<i32>,
}

impl Ran {
    fn all(plan: &Plan, build: &Path, root: &Path) -> Result<Ran, String> {
        let build =
            build.canonicalize().map_err(|error| format!("{}: {error}", build.display()))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let link = folder.path().join(lines::ROOT);
        std::os::unix::fs::symlink(root, link).map_err(|error| error.to_string())?;
        for (name, text) in &plan.inputs {
            std::fs::write(folder.path().join(name), text).map_err(|error| error.to_string())?;
        }
        let code = |(index, line)| run_line(&build, folder.path(), line, index);
        let codes = plan.lines.iter().enumerate().map(code).collect::<Result<_, _>>()?;
        Ok(Ran { folder, codes })
    }
}

/// Runs a command line in `folder`, keeps what it prints there, and returns its exit code.
fn run_line(build: &Path, folder: &Path, line: &Line, index: usize) -> Result<i32, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", build.display());
    let mut child = Command::new(build)
        .args(&line.args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(problem)?;
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that reads nothing may be gone before this is written.
    let _ = stdin.write_all(line.stdin.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(problem)?;
    if let Some(name) = line.printed(index) {
        std::fs::write(folder.join(name), output.stdout).map_err(problem)?;
    }
    Ok(output.status.code().unwrap_or(-1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A build that prints a number, and refuses `bad`.
    fn build(folder: &Path, number: &str) -> PathBuf {
        let path = folder.join(number);
        let script = format!(
            "#!/bin/sh\ncase $1 in bad) exit 2;; esac\n\
             echo '{{\"ttft_ms\":{number},\"wall_seconds\":'$$'}}'\n"
        );
        std::fs::write(&path, script).expect("the folder can be written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
        path
    }

    fn summary(lines: Vec<Line>, numbers: [&str; 2]) -> Summary {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let builds = numbers.map(|number| build(folder.path(), number));
        let plan = Plan { lines, inputs: Vec::new() };
        run_plan(&plan, [&builds[0], &builds[1]], folder.path()).expect("both start")
    }

    #[test]
    fn a_build_is_like_itself_but_for_the_clock() {
        let same = summary(vec![Line::new("json", "run")], ["1.5", "1.5"]);
        assert_eq!(same, Summary { compared: 1, ..Summary::default() });
    }

    #[test]
    fn a_number_that_differs_is_told_with_its_command_line_and_its_key() {
        let changed = summary(vec![Line::new("json", "run --seed 3")], ["1.5", "1.25"]);
        assert_eq!(changed.differences, ["blis run --seed 3: 000.json: ttft_ms: 1.5, then 1.25"]);
        assert_eq!(changed.kept.len(), 2);
        for folder in changed.kept {
            assert!(folder.join("000.json").exists());
            std::fs::remove_dir_all(folder).expect("it is there");
        }
    }

    #[test]
    fn a_refused_line_compares_nothing_and_only_some_may_be_refused() {
        let mut may = Line::new("json", "bad");
        may.may_be_refused = true;
        let allowed = summary(vec![may], ["1", "1"]);
        assert_eq!((allowed.refused, allowed.differences.len()), (1, 0));
        let refused = summary(vec![Line::new("json", "bad")], ["1", "1"]);
        assert!(refused.differences[0].contains("both exit with 2"), "{refused:?}");
        refused
            .kept
            .iter()
            .for_each(|folder| std::fs::remove_dir_all(folder).expect("it is there"));
    }
}
