//! `cargo xtask soak`: random worlds and random command lines for as long as one likes, each of
//! which must hold what the project promises.
//!
//! Most worlds run in this process (`check`), a fifth of the time goes to the real binary
//! (`program`). World n of a seed is always the same one. What fails is made small and written to a
//! folder, with the command that repeats it.

mod check;
mod line;
mod maker;
mod program;
mod shrink;
mod workload;
mod world;

use check::{Failure, Verdict, check};
use program::Program;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::World;

/// The share of the worlds that must have each feature.
const LEAST_SHARE: f64 = 0.01;
/// The share of the worlds that may be refused: those prove nothing.
const MOST_REFUSED: f64 = 0.1;
/// Fewer worlds than this say nothing about shares.
const FEW: u64 = 2_000;
/// The share of the time that the binary gets.
const PROGRAM_SHARE: f64 = 0.2;
/// Failures of one kind that are made small and written.
const KEPT: u64 = 3;

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    minutes: f64,
    jobs: Option<usize>,
    seed: Option<u64>,
    blis: Option<PathBuf>,
    out: Option<PathBuf>,
    /// Ends after so many worlds, whatever the clock says.
    worlds: Option<u64>,
    /// A world to check, and nothing else.
    again: Option<PathBuf>,
}

impl Options {
    /// Reads `--minutes M`, `--jobs N`, `--seed N`, `--blis PATH`, `--out DIR`, `--worlds N` and
    /// `--again FILE`.
    ///
    /// # Errors
    /// If an option is unknown or its value is not legal, or if there is no end.
    pub fn parse(words: &[&str]) -> Result<Options, String> {
        let mut options = Options { minutes: f64::INFINITY, ..Options::default() };
        let mut rest = words;
        while let [name, after @ ..] = rest {
            let value = *after.first().ok_or_else(|| format!("`{name}` takes a value"))?;
            let wrong = || format!("`{name}`: found `{value}`; legal: a number");
            let number = || value.parse::<u64>().map_err(|_| wrong());
            match *name {
                "--minutes" => {
                    let minutes = value.parse::<f64>().ok().filter(|m| m.is_finite() && *m > 0.0);
                    options.minutes = minutes.ok_or_else(wrong)?;
                }
                "--jobs" => options.jobs = Some(value.parse().map_err(|_| wrong())?),
                "--seed" => options.seed = Some(number()?),
                "--worlds" => options.worlds = Some(number()?),
                "--blis" => options.blis = Some(PathBuf::from(value)),
                "--out" => options.out = Some(PathBuf::from(value)),
                "--again" => options.again = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown option `{name}`")),
            }
            rest = &after[1..];
        }
        let ends = options.minutes.is_finite() || options.worlds.is_some();
        if !ends && options.again.is_none() {
            return Err("`--minutes` is missing".to_owned());
        }
        Ok(options)
    }
}

/// What was done and found.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    seed: u64,
    seconds: f64,
    worlds: u64,
    /// Why worlds were refused, and how many.
    refused: BTreeMap<String, u64>,
    /// In how many worlds each feature was.
    features: BTreeMap<String, u64>,
    /// What was done with the binary, and how often.
    checks: BTreeMap<&'static str, u64>,
    /// Kinds of failures, and how many.
    failures: BTreeMap<String, u64>,
    /// Where the small ones are.
    kept: Vec<PathBuf>,
}

impl Summary {
    /// What is wrong.
    pub fn wrong(&self) -> Vec<String> {
        let failed = self.failures.iter().map(|(kind, count)| format!("{count} x {kind}"));
        let mut wrong: Vec<String> = failed.collect();
        wrong.extend(self.kept.iter().map(|path| format!("kept in {}", path.display())));
        let refused = share(self.refused.values().sum(), self.worlds);
        if refused > MOST_REFUSED {
            wrong.push(format!("{:.1} % of the worlds are refused", 100.0 * refused));
        }
        if self.worlds >= FEW {
            let rare = self.features.iter().filter(|(_, n)| share(**n, self.worlds) < LEAST_SHARE);
            wrong.extend(rare.map(|(feature, n)| format!("{feature}: in {n} worlds only")));
        }
        wrong
    }
}

fn share(part: u64, of: u64) -> f64 {
    blis_core::math::float(part) / blis_core::math::float(of.max(1))
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = blis_core::math::float(self.worlds) / self.seconds.max(1e-9);
        let refused: u64 = self.refused.values().sum();
        let failed: u64 = self.failures.values().sum();
        writeln!(
            f,
            "seed {}: {} worlds in {:.1} s ({rate:.0} a second), {refused} refused, {failed} \
             failures",
            self.seed, self.worlds, self.seconds
        )?;
        for (what, count) in &self.checks {
            writeln!(f, "{count:>9}          {what}")?;
        }
        writeln!(f, "{} features:", self.features.len())?;
        for (feature, count) in &self.features {
            writeln!(f, "{count:>9} {:>6.2} %  {feature}", 100.0 * share(*count, self.worlds))?;
        }
        let mut refused: Vec<(&String, &u64)> = self.refused.iter().collect();
        refused.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (why, count) in refused.into_iter().take(12) {
            writeln!(f, "{count:>9} refused: {why}")?;
        }
        Ok(())
    }
}

/// Soaks.
///
/// # Errors
/// If files cannot be written, or there is no binary where one is said to be.
pub fn run(options: &Options, print: &(dyn Fn(&str) + Sync)) -> Result<Summary, String> {
    check::keep_panics();
    let seed = options.seed.map_or_else(fresh_seed, Ok)?;
    let folder = options.out.clone();
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join(format!("blis-soak-{seed}")));
    let program = options.blis.clone().or_else(neighbour).map(|path| Program::new(&path, seed));
    let soak = Soak {
        seed,
        folder,
        program: program.transpose()?,
        clock: Clock::start(),
        seconds: options.minutes * 60.0,
        most: options.worlds.unwrap_or(u64::MAX),
        next: [AtomicU64::new(0), AtomicU64::new(0)],
        summary: Mutex::new(Summary { seed, features: listed(), ..Summary::default() }),
        print,
    };
    if let Some(path) = &options.again {
        return soak.again(path);
    }
    match &soak.program {
        Some(program) => print(&format!("seed {seed}, with {}", program.path().display())),
        None => print(&format!("seed {seed}, without a binary: give one as `--blis PATH`")),
    }
    // A second call would fail; the first handler does.
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    let jobs = options.jobs.filter(|&jobs| jobs > 0);
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| soak.work())).collect();
        let broken = |_| Err("a worker panicked".to_owned());
        let ended = workers.into_iter().map(|worker| worker.join().unwrap_or_else(broken));
        ended.collect::<Result<Vec<()>, String>>()
    })?;
    Ok(soak.finished())
}

/// The policies of all kinds and what can happen, none of which has been seen.
fn listed() -> BTreeMap<String, u64> {
    let kinds = blis_policy::kinds();
    let policies = kinds
        .iter()
        .flat_map(|kind| kind.entries.iter().map(|entry| format!("{} {}", kind.name, entry.name)));
    policies.chain(check::EVENTS.map(str::to_owned)).map(|name| (name, 0)).collect()
}

fn fresh_seed() -> Result<u64, String> {
    let mut bytes = [0; 4];
    let mut random = std::fs::File::open("/dev/urandom").map_err(|error| error.to_string())?;
    random.read_exact(&mut bytes).map_err(|error| error.to_string())?;
    Ok(u32::from_le_bytes(bytes).into())
}

/// The `blis` beside this program.
fn neighbour() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name("blis");
    path.is_file().then_some(path)
}

/// A wall clock.
#[expect(clippy::disallowed_types, reason = "a soak ends by the clock")]
struct Clock(std::time::Instant);

impl Clock {
    fn start() -> Clock {
        #[expect(clippy::disallowed_types, reason = "a soak ends by the clock")]
        let now = std::time::Instant::now();
        Clock(now)
    }

    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// A soak under way.
struct Soak<'a> {
    seed: u64,
    /// Where failures go.
    folder: PathBuf,
    program: Option<Program>,
    clock: Clock,
    seconds: f64,
    most: u64,
    /// The number of the next world, and of the next check of the binary.
    next: [AtomicU64; 2],
    summary: Mutex<Summary>,
    print: &'a (dyn Fn(&str) + Sync),
}

impl Soak<'_> {
    fn work(&self) -> Result<(), String> {
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut with_program = 0.0;
        while !STOP.load(Ordering::Relaxed) && self.clock.seconds() < self.seconds {
            let begun = self.clock.seconds();
            if let Some(program) = &self.program
                && with_program < PROGRAM_SHARE * begun
            {
                self.try_program(program)?;
                with_program += self.clock.seconds() - begun;
                continue;
            }
            let number = self.next[0].fetch_add(1, Ordering::Relaxed);
            if number >= self.most {
                break;
            }
            self.try_world(number, scratch.path())?;
        }
        Ok(())
    }

    fn try_world(&self, number: u64, scratch: &Path) -> Result<(), String> {
        let World { tree, tags } = World::new(self.seed, number);
        let verdict = check(&tree, scratch);
        let mut summary = self.summary();
        summary.worlds += 1;
        match verdict {
            Verdict::Holds(seen) => {
                for tag in tags.into_iter().chain(seen) {
                    *summary.features.entry(tag).or_default() += 1;
                }
                Ok(())
            }
            Verdict::Refused(why) => {
                let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
                *summary.refused.entry(why.to_owned()).or_default() += 1;
                Ok(())
            }
            Verdict::Fails(failure) => {
                drop(summary);
                self.fail(&failure, |folder| {
                    let yaml = |tree| serde_json::to_string_pretty(tree).expect("plain values");
                    // Making it small takes long, and may be cut short.
                    let _ = std::fs::write(folder.join("world.yaml"), yaml(&tree));
                    let same = |tree: &Value| {
                        !STOP.load(Ordering::Relaxed)
                            && matches!(check(tree, scratch),
                                Verdict::Fails(found) if found.kind == failure.kind)
                    };
                    let small = shrink::tree(&tree, same);
                    let text = match check(&small, scratch) {
                        Verdict::Fails(found) => found.text,
                        _ => failure.text.clone(),
                    };
                    let told = format!("world {number} of seed {}: {text}\n", self.seed);
                    vec![
                        ("world.yaml".to_owned(), yaml(&small).into()),
                        ("failure.txt".to_owned(), told.into()),
                    ]
                })
            }
        }
    }

    fn try_program(&self, program: &Program) -> Result<(), String> {
        let number = self.next[1].fetch_add(1, Ordering::Relaxed);
        let (counts, found) = program.check(number)?;
        if STOP.load(Ordering::Relaxed) {
            // Ctrl-C reaches the children, too.
            return Ok(());
        }
        let mut summary = self.summary();
        for (what, count) in counts {
            *summary.checks.entry(what).or_default() += count;
        }
        drop(summary);
        match found {
            Some((failure, mut files)) => {
                files.push(("failure.txt".to_owned(), failure.text.clone().into_bytes()));
                self.fail(&failure, |_| files)
            }
            None => Ok(()),
        }
    }

    /// Counts a failure, and writes `files` if it is one of the first of its kind.
    fn fail(
        &self,
        failure: &Failure,
        files: impl FnOnce(&Path) -> Vec<(String, Vec<u8>)>,
    ) -> Result<(), String> {
        let count = {
            let mut summary = self.summary();
            let count = summary.failures.entry(failure.kind.clone()).or_default();
            *count += 1;
            *count
        };
        if count > KEPT {
            return Ok(());
        }
        let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = failure.kind.chars().map(safe).take(60).collect();
        let folder = self.folder.join(format!("{name}-{count}"));
        let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(problem)?;
        let mut again = String::new();
        for (name, text) in files(&folder) {
            if name == "world.yaml" {
                let path = folder.join(&name);
                again = format!("\n  again: cargo xtask soak --again {}", path.display());
            }
            std::fs::write(folder.join(name), text).map_err(problem)?;
        }
        let line: String = failure.text.chars().take(400).collect();
        (self.print)(&format!("FAILED {}: {line}\n  {}{again}", failure.kind, folder.display()));
        self.summary().kept.push(folder);
        Ok(())
    }

    /// Checks the world in a file.
    fn again(&self, path: &Path) -> Result<Summary, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let tree = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let verdict = check(&tree, scratch.path());
        let mut summary = self.summary();
        (summary.worlds, summary.features) = (1, BTreeMap::new());
        match verdict {
            Verdict::Holds(seen) => {
                let seen: BTreeSet<String> = seen;
                summary.features.extend(seen.into_iter().map(|tag| (tag, 1)));
            }
            Verdict::Refused(why) => {
                summary.refused.insert(why, 1);
            }
            Verdict::Fails(failure) => {
                (self.print)(&failure.text);
                summary.failures.insert(failure.kind, 1);
            }
        }
        drop(summary);
        Ok(self.finished())
    }

    fn summary(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finished(&self) -> Summary {
        let summary = self.summary().clone();
        Summary { seconds: self.clock.seconds(), ..summary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_soak_finds_nothing_and_meets_every_feature() {
        let words = ["--worlds", "500", "--seed", "1", "--jobs", "2"];
        let options = Options::parse(&words).expect("legal");
        let summary = run(&options, &|_| {}).expect("it ends");
        assert_eq!(summary.wrong(), Vec::<String>::new(), "{summary}");
        assert_eq!(summary.worlds, 500);
        let unseen: Vec<_> = summary.features.iter().filter(|(_, count)| **count == 0).collect();
        assert!(unseen.is_empty(), "{unseen:?}");
        assert!(summary.features.len() > 100, "{}", summary.features.len());
    }

    #[test]
    fn options_are_read_and_an_end_is_asked_for() {
        let options = Options::parse(&["--minutes", "0.5", "--jobs", "3"]).expect("legal");
        assert_eq!((options.jobs, options.seed), (Some(3), None));
        for wrong in [&["--jobs", "2"][..], &["--minutes", "-1"], &["--minutes"], &["--x", "1"]] {
            Options::parse(wrong).expect_err("it is not legal");
        }
    }
}
