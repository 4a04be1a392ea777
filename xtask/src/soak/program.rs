//! Checks of the real binary: results do not depend on `--jobs`, on kills or on damaged ledgers,
//! and whatever it is given, it neither panics nor hangs.

use super::check::Failure;
use super::line::Grammar;
use super::maker::Maker;
use super::shrink;
use super::world::{BESIDE, World};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How often a child is looked at.
const POLL: Duration = Duration::from_millis(2);
/// After so many looks a command is told to end, and after so many more it must have.
const PATIENCE: u32 = 2_000;
const GRACE: u32 = 15_000;
/// In kB: the bound on a scenario's memory is 4 GB.
const MEMORY: &str = "ulimit -v 8000000; exec \"$0\" \"$@\"";

/// Damages and command lines of one check.
const DAMAGES: usize = 8;
const LINES: usize = 12;
const KILLS: usize = 4;

/// Files, and commands that read them once they are damaged.
const READERS: [(&str, &str); 11] = [
    ("s.yaml", "run d.yaml --quiet"),
    ("s.yaml", "run d.yaml --quiet --audit --stepwise --requests-out r.csv"),
    ("s.yaml", "compare s.yaml d.yaml --quiet --seeds 1 --no-ledger"),
    ("s.yaml", "export vllm d.yaml"),
    ("s.yaml", "export llm-d d.yaml"),
    ("study.yaml", "study d.yaml --quiet --no-ledger"),
    ("study.yaml", "explain d.yaml --quiet --no-ledger --seeds 1"),
    ("search.yaml", "optimize d.yaml --quiet --no-ledger"),
    ("t.jsonl", "trace inspect d.yaml"),
    ("t.jsonl", "run --quiet --trace d.yaml"),
    ("t.jsonl", "trace convert d.yaml --out c.jsonl"),
];

/// Files of a failure, by name.
type Files = Vec<(String, Vec<u8>)>;
/// What was done, and what went wrong.
pub(super) type Found = (Vec<(&'static str, u64)>, Option<(Failure, Files)>);

/// What was done, how often, and what went wrong.
type Done = (&'static str, u64, Option<Failure>);

/// The binary under test.
pub(super) struct Program {
    path: PathBuf,
    seed: u64,
    grammar: Grammar,
}

/// What a command left.
struct Ran {
    code: Option<i32>,
    /// Whether it was told to end.
    stopped: bool,
    out: String,
    err: String,
}

impl Ran {
    /// Whether it was more than a refusal.
    fn ran(&self) -> bool {
        matches!(self.code, Some(0 | 1))
    }

    /// Whether both came to an end by themselves, and not to the same.
    fn differs(&self, other: &Ran) -> bool {
        let same = (self.code, &self.out) == (other.code, &other.out);
        !(self.stopped || other.stopped || same)
    }

    /// What it must never do, whatever it was given.
    fn wrong(&self) -> Option<String> {
        let Ran { code, stopped, err, .. } = self;
        let first = err.lines().find(|line| line.contains("panicked at")).or(err.lines().next());
        let first = first.unwrap_or_default();
        match code {
            Some(0..=3) => None,
            Some(130) | None if *stopped => None,
            Some(code) => Some(format!("exit {code}: {first}")),
            None => Some(format!("a signal: {first}")),
        }
    }
}

impl Program {
    pub(super) fn new(path: &Path, seed: u64) -> Result<Program, String> {
        let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
        let grammar = Grammar::ask(&path)?;
        Ok(Program { path, seed, grammar })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Check `number` of the seed.
    pub(super) fn check(&self, number: u64) -> Result<Found, String> {
        // Far from the numbers of the worlds.
        let number = number | 1 << 40;
        let bench = Bench::new(self, number).map_err(|error| error.to_string())?;
        bench.check(number).map_err(|error| error.to_string())
    }
}

/// A folder with a scenario, a study, a search and a trace, and the commands that were run in it.
struct Bench<'a> {
    program: &'a Program,
    folder: TempDir,
    /// What children print.
    printed: TempDir,
}

impl Bench<'_> {
    fn new(program: &Program, number: u64) -> io::Result<Bench<'_>> {
        let mut world = World::new(program.seed, number).tree;
        let fields = world.as_object_mut().expect("a scenario is an object");
        fields.shift_remove(BESIDE);
        fields.shift_remove("seed");
        for kind in ["distribution", "mix"] {
            if let Some(many) = world["workload"].get_mut(kind).and_then(Value::as_object_mut) {
                many.insert("num_requests".to_owned(), json!(12 + number % 20));
            }
        }
        let two = json!({ "name": "two", "set": { "cluster": { "instances": 2 } } });
        let mut study = json!({
            "question": "what is it like with two instances?", "base": world, "seeds": 3,
            "arms": [{ "name": "one" }, two],
            "metrics": ["ttft_mean", "e2e_p99"],
        });
        let mut base = world.clone();
        let replaced = ["admission", "routing", "scheduler", "priority", "oracles"];
        let fields = base.as_object_mut().expect("a scenario is an object");
        for key in replaced {
            fields.shift_remove(key);
        }
        let mut search = json!({
            "question": "which weights?", "base": base, "strategy": "slo-compound",
            "parameters": ["pa", "qd", "gate"], "objective": "ttft_mean",
            "budget": { "calls": 5, "seeds": 1 }, "confirm": { "seeds": 2 },
        });
        if evolves(number) {
            let tuned = json!({ "strategy": "slo-compound", "budget": 5 });
            study["arms"][1] = json!({ "name": "tuned", "tuned": tuned });
            study["base"] = base;
            search["objective"] = json!(["ttft_mean", "e2e_p99"]);
            search["budget"] = json!({ "calls": 12, "seeds": 1, "engine": "nsga2" });
        }
        let bench = Bench { program, folder: tempfile::tempdir()?, printed: tempfile::tempdir()? };
        for (name, tree) in [("s.yaml", &world), ("study.yaml", &study), ("search.yaml", &search)] {
            fs::write(bench.path(name), serde_json::to_string_pretty(tree)?)?;
        }
        bench.run("run s.yaml --quiet --trace-out t.jsonl")?;
        Ok(bench)
    }

    fn check(&self, number: u64) -> io::Result<Found> {
        let maker = &mut Maker::new(self.program.seed, number);
        let study = "study study.yaml --quiet --format json";
        let search = "optimize search.yaml --quiet --format json";
        let (what, count, found) = match number % 6 {
            2 if evolves(number) => self.kills("kills of tuned arms", study, maker)?,
            3 if evolves(number) => self.kills("kills of evolving searches", search, maker)?,
            0 => self.jobs("studies with 1 and 2 jobs", study)?,
            1 => self.jobs("searches with 1 and 2 jobs", search)?,
            2 => self.kills("kills of studies", study, maker)?,
            3 => self.kills("kills of searches", search, maker)?,
            4 => self.ledgers(study, maker)?,
            _ => self.files(maker)?,
        };
        let found = match found {
            Some(found) => Some(found),
            None => self.lines(maker)?,
        };
        let files = |failure| self.kept().map(|files| (failure, files));
        Ok((vec![(what, count), ("command lines", LINES as u64)], found.map(files).transpose()?))
    }

    /// Whether one and two jobs give the same.
    fn jobs(&self, what: &'static str, command: &str) -> io::Result<Done> {
        let command = format!("{command} --no-ledger --jobs");
        let [one, two] = [1, 2].map(|jobs| self.run(&format!("{command} {jobs}")));
        let (one, two) = (one?, two?);
        let wrong = one.wrong().or(two.wrong());
        let differs = one.differs(&two);
        let wrong = wrong.or(differs.then(|| "1 and 2 jobs differ".to_owned()));
        let found = wrong.map(|text| failed("jobs", &text, &format!("{command} 2")));
        Ok((what, u64::from(one.ran()), found))
    }

    /// Kills a command at random moments; what it finds in the end is what it finds undisturbed.
    fn kills(&self, what: &'static str, command: &str, maker: &mut Maker) -> io::Result<Done> {
        let whole = self.run(&format!("{command} --ledger whole.db --jobs 1"))?;
        let command = format!("{command} --ledger killed.db --jobs 2");
        let mut hits = 0;
        for _ in 0..KILLS {
            let mut child = self.start(&split(&command))?;
            let looks = maker.between(0, 25);
            hits += u64::from(!(0..looks).any(|_| ended(&mut child)) && whole.ran());
            child.kill()?;
            child.wait()?;
        }
        let resumed = self.run(&command)?;
        let differs = whole.differs(&resumed);
        let wrong = resumed.wrong().or(differs.then(|| "another result after kills".to_owned()));
        let found = |text| failed("kills", &format!("{text}\n{}", resumed.err), &command);
        Ok((what, hits, wrong.map(found)))
    }

    /// Damages a finished ledger; whoever reads it finds the same, or says what is wrong.
    fn ledgers(&self, command: &str, maker: &mut Maker) -> io::Result<Done> {
        let what = "damaged ledgers";
        let whole = self.run(&format!("{command} --ledger whole.db"))?;
        let rows = self.run("ledger export --ledger whole.db")?;
        if whole.code != Some(0) {
            return Ok((what, 0, None));
        }
        let sound = fs::read(self.path("whole.db"))?;
        for _ in 0..DAMAGES {
            for name in ["d.db", "d.db-wal", "d.db-shm"] {
                // It need not be there.
                let _ = fs::remove_file(self.path(name));
            }
            fs::write(self.path("d.db"), maker.damage_pages(&sound))?;
            let exported = self.run("ledger export --ledger d.db")?;
            let known = |line: &str| rows.out.lines().any(|known| known == line);
            let invented = exported.code == Some(0) && !exported.out.lines().all(known);
            let command = format!("{command} --ledger d.db");
            // The study may mend the file, so that it must be kept as it was.
            fs::copy(self.path("d.db"), self.path("damaged.db"))?;
            let ran = self.run(&command)?;
            let differs = ran.code == Some(0) && ran.out != whole.out;
            let wrong = ran.wrong().or(exported.wrong());
            let wrong = wrong.or(differs.then(|| "another result, and exit 0".to_owned()));
            let wrong = wrong.or(invented.then(|| "an invented row, and exit 0".to_owned()));
            if let Some(text) = wrong {
                return Ok((what, 1, Some(failed(what, &text, &command))));
            }
        }
        Ok((what, DAMAGES as u64, None))
    }

    /// Damages a file that is read.
    fn files(&self, maker: &mut Maker) -> io::Result<Done> {
        let what = "damaged files";
        for _ in 0..DAMAGES {
            let (name, command) = *maker.one(&READERS);
            let sound = fs::read(self.path(name)).unwrap_or_default();
            fs::write(self.path("d.yaml"), maker.damage_text(&sound))?;
            let ran = self.run(command)?;
            if let Some(text) = ran.wrong() {
                return Ok((what, 1, Some(failed(what, &text, command))));
            }
        }
        Ok((what, DAMAGES as u64, None))
    }

    /// Runs random command lines.
    fn lines(&self, maker: &mut Maker) -> io::Result<Option<Failure>> {
        for _ in 0..LINES {
            let line = self.program.grammar.line(maker);
            let Some(text) = self.run_words(&line)?.wrong() else { continue };
            let fails =
                |words: &[String]| self.run_words(words).is_ok_and(|ran| ran.wrong().is_some());
            let small = shrink::words(&line, fails);
            return Ok(Some(failed("command line", &text, &small.join(" "))));
        }
        Ok(None)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The files of the folder, and how they were made.
    fn kept(&self) -> io::Result<Files> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.folder.path())? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_file() && fs::metadata(&path)?.len() < 10_000_000 {
                files.push((name, fs::read(&path)?));
            }
        }
        Ok(files)
    }

    fn run(&self, command: &str) -> io::Result<Ran> {
        self.run_words(&split(command))
    }

    fn start(&self, words: &[String]) -> io::Result<Child> {
        let printed = |name: &str| fs::File::create(self.printed.path().join(name));
        Command::new("sh")
            .args(["-c", MEMORY])
            .arg(&self.program.path)
            .args(words)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(printed("out")?)
            .stderr(printed("err")?)
            .spawn()
    }

    /// Runs a command, and tells it to end if it takes long.
    fn run_words(&self, words: &[String]) -> io::Result<Ran> {
        let mut child = self.start(words)?;
        let mut stopped = false;
        if !(0..PATIENCE).any(|_| ended(&mut child)) {
            stopped = true;
            let id = child.id().to_string();
            Command::new("kill").args(["-TERM", &id]).stderr(Stdio::null()).status()?;
            if !(0..GRACE).any(|_| ended(&mut child)) {
                child.kill()?;
                stopped = false;
            }
        }
        let status = child.wait()?;
        let read = |name: &str| -> io::Result<String> {
            let bytes = fs::read(self.printed.path().join(name))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut err = read("err")?;
        if status.signal() == Some(9) && !stopped {
            err = format!("it does not end when it is told to\n{err}");
        }
        Ok(Ran { code: status.code(), stopped, out: read("out")?, err })
    }
}

/// Whether the study of a check has a tuned arm, and its search an evolving population.
fn evolves(number: u64) -> bool {
    (number / 6).is_multiple_of(2)
}

fn ended(child: &mut Child) -> bool {
    let ended = child.try_wait().is_ok_and(|status| status.is_some());
    if !ended {
        std::thread::sleep(POLL);
    }
    ended
}

fn split(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}

fn failed(what: &str, text: &str, command: &str) -> Failure {
    let place = text.split_once("panicked at ").map_or(text, |(_, place)| place);
    let place: String = place.lines().next().unwrap_or_default().chars().take(80).collect();
    Failure { kind: format!("{what}: {place}"), text: format!("{text}\n  blis {command}") }
}

/// Damage.
impl Maker {
    /// Bytes as a failing disk or a careless copy would leave them.
    fn damage_pages(&mut self, sound: &[u8]) -> Vec<u8> {
        const PAGE: usize = 4_096;
        let mut bytes = sound.to_vec();
        let pages = bytes.len() / PAGE;
        match self.between(0, 5) {
            0 => bytes.truncate(self.between(0, sound.len())),
            1 if pages > 1 => {
                let [a, b] = [0; 2].map(|_| PAGE * self.between(0, pages - 1));
                bytes[b..b + PAGE].copy_from_slice(&sound[a..a + PAGE]);
                bytes[a..a + PAGE].copy_from_slice(&sound[b..b + PAGE]);
            }
            2 if pages > 1 => {
                let a = PAGE * self.between(0, pages - 1);
                bytes[a..a + PAGE].fill(0);
            }
            _ => {
                for _ in 0..self.between(1, 4) {
                    let at = self.between(0, bytes.len() - 1);
                    bytes[at] ^= 1 << self.between(0, 7);
                }
            }
        }
        bytes
    }

    /// A text with a few changes.
    fn damage_text(&mut self, sound: &[u8]) -> Vec<u8> {
        const NASTY: [&str; 14] = [
            "-1",
            "1e400",
            "nan",
            "null",
            "[",
            "}",
            "\u{202e}",
            "\u{0}",
            "\u{1b}[2J",
            "99999999999",
            "&a",
            "*a",
            "~",
            "\n\t",
        ];
        let mut bytes = sound.to_vec();
        for _ in 0..self.between(1, 5) {
            let at = self.between(0, bytes.len());
            let end = (at + self.between(1, 12)).min(bytes.len());
            match self.between(0, 4) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.between(0, 7),
                1 => drop(bytes.drain(at..end)),
                2 => drop(bytes.splice(at..at, sound[..end.min(sound.len())].to_vec())),
                3 => bytes.truncate(end),
                _ => drop(bytes.splice(at..at, self.one(&NASTY).bytes())),
            }
        }
        bytes
    }
}
