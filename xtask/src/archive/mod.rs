//! Replays the experiment scripts of the Go program against a build of ours, as they are.
//!
//! The archive is the branch `hypothesis-archive` of the Go program's repository, which is no part
//! of this one: give a checkout. Its scripts build a program with `go build` and call it; here they
//! get a stand-in that calls ours and keeps a record of it. They run in a copy, because they write
//! beside themselves.

use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seconds that a script may take.
const LIMIT: &str = "540";

/// Scripts that the Go program itself does not run: they need policies and flags of branches that
/// were never merged.
const OF_BRANCHES: [&str; 13] = [
    "h-adaptive-routing",
    "h-compound-strategy",
    "h-deadline-urgency",
    "h-disagg-compound",
    "h-elastic-batching",
    "h-elastic-generalization",
    "h-elastic-stress",
    "h-heterogeneous-pools",
    "h-joint-kv-scheduling",
    "h-joint-slo-optimization",
    "h-precise-routing",
    "h-priority-preemption",
    "h-slo-admission",
];

/// Scripts without the data that they replay, which the archive does not have.
const WITHOUT_DATA: [&str; 3] =
    ["h30-replay-fidelity", "h31-replay-generalization", "h32-replay-capacity"];

/// What a script wants to be told.
const ARGUMENTS: [(&str, &str); 1] = [("h-joint-slo-optimization", "all")];

/// Calls that a script makes to see them fail.
const MEANT_TO_FAIL: [(&str, usize); 1] = [("h22-zero-blocks", 5)];

/// Fewer scripts of the Go program than this are not enough.
const ENOUGH: usize = 34;

/// The stand-in: what the program prints goes where it would, and a line about it into the record.
const PROGRAM: &str = r#"#!/bin/sh
said=$(mktemp)
"$BLIS_BUILD" "$@" 2> "$said"
code=$?
cat "$said" >&2
printf '%s\t%s\n' "$code" "$(grep -m 1 -E '^error|level=fatal' "$said")" >> "$BLIS_RECORD"
rm "$said"
exit $code
"#;

/// A compiler that makes the stand-in of everything.
const COMPILER: &str = r#"#!/bin/sh
if [ "$1" = version ]; then echo "go version go1.24 linux/amd64"; fi
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then cp "$BLIS_STAND_IN" "$2"; fi
  shift
done
"#;

/// What became of a script.
struct Replayed {
    name: String,
    calls: usize,
    /// Calls that failed and should not have.
    failed: usize,
    /// The first message of a call that failed.
    message: String,
    /// What went wrong besides.
    trouble: Option<&'static str>,
    /// Lines of its analysis that say that requests were lost.
    lost: usize,
}

impl Replayed {
    fn is_accepted(&self) -> bool {
        self.failed == 0 && self.trouble.is_none()
    }
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replayed { name, calls, failed, message, trouble, lost } = self;
        write!(f, "{name:27} {calls:4} calls")?;
        match (failed, trouble) {
            (0, None) => write!(f, ", accepted")?,
            (0, Some(trouble)) => write!(f, ", {trouble}")?,
            _ => write!(f, ", {failed} refused: {message}")?,
        }
        if *lost > 0 {
            write!(f, ", {lost} conservation checks fail")?;
        }
        Ok(())
    }
}

/// Replays the scripts of `archive` against `build` and prints what became of each; the value is
/// whether enough of them were accepted, and what is wrong.
///
/// # Errors
/// If the archive cannot be read or copied, or a script does not start.
pub fn run(
    archive: &Path,
    build: &Path,
    print: &dyn Fn(&dyn fmt::Display),
) -> Result<Vec<String>, String> {
    let stage = Stage::new(archive, build).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for name in stage.scripts().map_err(|error| error.to_string())? {
        let replayed = stage.replay(&name).map_err(|error| format!("{name}: {error}"))?;
        print(&replayed);
        all.push(replayed);
    }
    Ok(judge(&all, print))
}

fn judge(all: &[Replayed], print: &dyn Fn(&dyn fmt::Display)) -> Vec<String> {
    let count = |what: &dyn Fn(&Replayed) -> bool| all.iter().filter(|one| what(one)).count();
    let of_branch = |one: &Replayed| OF_BRANCHES.contains(&one.name.as_str());
    let calls: usize = all.iter().map(|one| one.calls).sum();
    let own = count(&|one| !of_branch(one));
    let accepted = count(&|one| !of_branch(one) && one.is_accepted());
    let more = count(&|one| of_branch(one) && one.is_accepted());
    let lost: usize = all.iter().map(|one| one.lost).sum();
    let failed = count(&|one| one.failed == 0 && one.trouble.is_some());
    let refused = count(&|one| one.failed > 0);
    print(&format_args!(
        "{} scripts, {calls} calls\n{accepted} of {own} scripts of the Go program accepted as they \
         are, and {more} of {} of its branches\n{refused} refused, {failed} with an analysis that \
         fails, {lost} conservation checks fail",
        all.len(),
        all.len() - own,
    ));
    let few = (accepted < ENOUGH).then(|| format!("at least {ENOUGH} are to be accepted"));
    let lost = (lost > 0).then(|| "no conservation check is to fail".to_owned());
    few.into_iter().chain(lost).collect()
}

/// A copy of the archive with stand-ins.
struct Stage {
    folder: tempfile::TempDir,
    build: PathBuf,
}

impl Stage {
    fn new(archive: &Path, build: &Path) -> std::io::Result<Stage> {
        let stage = Stage { folder: tempfile::tempdir()?, build: build.canonicalize()? };
        let copied = Command::new("cp").arg("-r").arg(archive).arg(stage.tree()).status()?;
        if !copied.success() {
            return Err(std::io::Error::other("the archive cannot be copied"));
        }
        fs::create_dir(stage.at("bin"))?;
        for (path, text) in
            [("bin/stand-in", PROGRAM), ("bin/go", COMPILER), ("tree/blis", PROGRAM)]
        {
            fs::write(stage.at(path), text)?;
            fs::set_permissions(stage.at(path), Permissions::from_mode(0o755))?;
        }
        // One script compares with the main branch.
        let commit = "rm -rf .git && git init -q -b archive && git add -A && git -c user.name=x \
                      -c user.email=x commit -qm x && git branch main";
        let made = Command::new("sh").args(["-c", commit]).current_dir(stage.tree()).status()?;
        made.success().then_some(stage).ok_or_else(|| std::io::Error::other("git does not work"))
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn tree(&self) -> PathBuf {
        self.at("tree")
    }

    /// The names of the experiments that have a script and their data.
    fn scripts(&self) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at("tree/hypotheses"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().join("run.sh").exists() && !WITHOUT_DATA.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn replay(&self, name: &str) -> std::io::Result<Replayed> {
        let record = self.at(&format!("{name}.record"));
        fs::write(&record, "")?;
        let folder = format!("hypotheses/{name}");
        let script = fs::read_to_string(self.tree().join(&folder).join("run.sh"))?;
        // Some leave the analysis to who runs them.
        let calls =
            |line: &str| line.contains("analyze.py") && !line.trim().starts_with(['#', 'e']);
        let analysis = if script.lines().any(calls) { "true" } else { "python3 analyze.py" };
        let told = ARGUMENTS.iter().find(|(script, _)| *script == name).map_or("", |told| told.1);
        let shell = format!(
            "export PATH={}:$PATH; bash {folder}/run.sh {told} && cd {folder} && {analysis}",
            self.at("bin").display()
        );
        let done = Command::new("timeout")
            .args(["-k", "5", LIMIT, "bash", "-c", &shell])
            .current_dir(self.tree())
            .env("BLIS_BUILD", &self.build)
            .env("BLIS_STAND_IN", self.at("bin/stand-in"))
            .env("BLIS_RECORD", &record)
            // Packages are those that are installed, also for scripts that ask for their own.
            .envs([("PIP_NO_INDEX", "1"), ("PYTHONPATH", &packages()?)])
            .stdin(Stdio::null())
            .output()?;
        let said = [done.stdout, done.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let record = fs::read_to_string(&record)?;
        let failed: Vec<&str> = record.lines().filter(|call| !call.starts_with("0\t")).collect();
        let meant = MEANT_TO_FAIL.iter().find(|(script, _)| *script == name);
        // Any other exit code is the verdict of an experiment.
        let trouble = match done.status.code() {
            Some(124 | 137) => Some("too slow"),
            _ if said.contains("Traceback") => Some("its analysis fails"),
            _ => record.is_empty().then_some("it makes no call"),
        };
        Ok(Replayed {
            name: name.to_owned(),
            calls: record.lines().count(),
            failed: failed.len().saturating_sub(meant.map_or(0, |(_, calls)| *calls)),
            message: failed
                .first()
                .and_then(|call| call.split_once('\t'))
                .map_or("", |c| c.1)
                .into(),
            trouble,
            lost: said.lines().filter(|line| is_loss(line)).count(),
        })
    }
}

/// Where Python keeps its packages.
fn packages() -> std::io::Result<String> {
    let ask = "import site; print(':'.join(site.getsitepackages()))";
    let found = Command::new("python3").args(["-c", ask]).output()?;
    Ok(String::from_utf8_lossy(&found.stdout).trim().to_owned())
}

/// Whether a line of an analysis says that requests were lost.
fn is_loss(line: &str) -> bool {
    let line = line.to_lowercase().replace("zero conservation", "");
    let rest = line.split_once("conserv").or_else(|| line.split_once("inv-1"));
    rest.is_some_and(|(_, rest)| ["fail", "violat"].iter().any(|word| rest.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_report_lost_requests_are_told_from_those_that_do_not() {
        for line in ["  INV-1: CONSERVATION VIOLATION detected", "  Conservation (INV-1): FAIL"] {
            assert!(is_loss(line), "{line}");
        }
        for line in
            ["zero panics, zero conservation violations.", "FAIL | INV-1 OK", "pass/fail: INV-1"]
        {
            assert!(!is_loss(line), "{line}");
        }
    }
}
