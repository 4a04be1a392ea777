//! Runs the release binary and asks the kernel what it cost. Linux only: it reads `/proc`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a running child is looked at.
const POLL: Duration = Duration::from_millis(1);

/// Clock ticks of `/proc/<pid>/stat` per second, on every Linux of today.
const TICKS_PER_SECOND: f64 = 100.0;

/// What one run cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// CPU seconds of the whole process.
    pub(super) cpu_s: f64,
    /// Seconds from start to end.
    pub(super) wall_s: f64,
    /// Most memory held at once, in MB.
    pub(super) peak_mb: f64,
    /// CPU seconds by the program's own account.
    pub(super) own_cpu_s: Option<f64>,
}

/// The program under test.
pub(super) struct Program {
    executable: PathBuf,
    root: PathBuf,
}

impl Program {
    /// Builds the release binary of the workspace at `root`, wherever cargo is told to put it.
    pub(super) fn build(root: &Path) -> Result<Program, String> {
        let output = Command::new("cargo")
            .args(["build", "--release", "--package", "blis"])
            .arg("--message-format=json-render-diagnostics")
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot run `cargo`: {error}"))?;
        if !output.status.success() {
            return Err("`cargo build --release --package blis` failed".to_owned());
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let executable = messages
            .rsplit("\"executable\":\"")
            .next()
            .filter(|rest| rest.len() < messages.len())
            .and_then(|rest| rest.split('"').next())
            .ok_or("cargo did not say where it put the binary")?;
        Ok(Program { executable: PathBuf::from(executable), root: root.to_owned() })
    }

    /// Runs `arguments` several times; every run must complete all `requests`.
    pub(super) fn samples(
        &self,
        arguments: &[String],
        requests: u64,
        runs: usize,
    ) -> Result<Vec<Sample>, String> {
        (0..runs).map(|_| self.sample(arguments, requests)).collect()
    }

    fn sample(&self, arguments: &[String], requests: u64) -> Result<Sample, String> {
        let shown = || format!("`blis {}`", arguments.join(" "));
        // A file and not a pipe: nobody has to read while the child runs.
        let output = std::env::temp_dir().join(format!("blis-bench-{}.json", std::process::id()));
        let file = std::fs::File::create(&output)
            .map_err(|error| format!("cannot write `{}`: {error}", output.display()))?;
        let child = Command::new(&self.executable)
            .args(arguments)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(file)
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", shown()))?;
        let result = watch(child);
        let text = std::fs::read_to_string(&output).unwrap_or_default();
        // Best effort: what is left behind is a small file in the temporary folder.
        let _ = std::fs::remove_file(&output);
        let mut sample = result.map_err(|problem| format!("{}: {problem}", shown()))?;
        let completed = number(&text, "completed_requests").unwrap_or(0.0);
        if (completed - super::rows::float(requests)).abs() > 0.5 {
            return Err(format!("{} completed {completed} of {requests} requests", shown()));
        }
        sample.own_cpu_s = number(&text, "cpu_seconds");
        let own_peak_mb = number(&text, "peak_rss_mb").unwrap_or(0.0);
        sample.peak_mb = sample.peak_mb.max(own_peak_mb);
        Ok(sample)
    }
}

/// Waits for `child` to end and reads what it cost before it is reaped.
#[expect(clippy::disallowed_types, reason = "a bench is what wall clocks are for")]
fn watch(mut child: Child) -> Result<Sample, String> {
    let start = std::time::Instant::now();
    let pid = child.id();
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let mut peak_mb = 0.0;
    let cpu_s = loop {
        let stat = read("stat").map_err(|error| format!("cannot read `/proc`: {error}"))?;
        let (state, ticks_s) = state_and_ticks(&stat).ok_or("`/proc/<pid>/stat` is odd")?;
        if state == "Z" {
            break cpu_seconds(&read("schedstat").unwrap_or_default(), ticks_s);
        }
        // The mark only rises, so the last reading is the highest; it is gone once the child is.
        if let Some(mb) = read("status").ok().and_then(|status| high_water_mb(&status)) {
            peak_mb = mb;
        }
        std::thread::sleep(POLL);
    };
    let wall_s = start.elapsed().as_secs_f64();
    let status = child.wait().map_err(|error| format!("cannot wait for it: {error}"))?;
    if status.success() {
        Ok(Sample { cpu_s, wall_s, peak_mb, own_cpu_s: None })
    } else {
        Err(format!("failed with {status}"))
    }
}

/// State and CPU seconds (of all threads, in whole ticks) from `/proc/<pid>/stat`.
fn state_and_ticks(stat: &str) -> Option<(&str, f64)> {
    // The name of the program stands in parentheses and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok().map(f64::from);
    Some((fields.first()?, (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND))
}

/// The CPU seconds of an ended process. `schedstat` counts nanoseconds, but of the first thread
/// only; ticks count all threads, but in steps of 10 ms. If they disagree, there were threads.
fn cpu_seconds(schedstat: &str, ticks_s: f64) -> f64 {
    let nanoseconds = schedstat.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
    let fine_s = nanoseconds.map_or(0.0, |nanoseconds| nanoseconds / 1e9);
    if ticks_s > fine_s + 2.0 / TICKS_PER_SECOND { ticks_s } else { fine_s }
}

/// The most memory held so far, in MB, from `/proc/<pid>/status`.
fn high_water_mb(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(f64::from(kibibytes) * 1024.0 / 1e6)
}

/// The first number called `key` in a JSON text.
fn number(json: &str, key: &str) -> Option<f64> {
    let (_, rest) = json.split_once(&format!("\"{key}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_ticks_are_read_past_any_program_name() {
        let stat = "7 (a) b (c) Z 1 7 7 0 -1 4 130 0 1 0 25 5 0 0 20 0 1 0";
        let (state, ticks_s) = state_and_ticks(stat).unwrap();
        assert_eq!(state, "Z");
        assert!((ticks_s - 0.3).abs() < 1e-12);
        assert!(state_and_ticks("").is_none());
    }

    #[test]
    fn fine_time_counts_unless_other_threads_worked() {
        assert!((cpu_seconds("51000000 0 3", 0.06) - 0.051).abs() < 1e-12);
        assert!((cpu_seconds("51000000 0 3", 0.12) - 0.12).abs() < 1e-12);
        assert!((cpu_seconds("", 0.12) - 0.12).abs() < 1e-12);
    }

    #[test]
    fn the_high_water_mark_is_in_megabytes() {
        let mb = high_water_mb("Name: x\nVmHWM:\t   10000 kB\n").unwrap();
        assert!((mb - 10.24).abs() < 1e-12);
    }

    #[test]
    fn numbers_are_found_by_their_whole_key() {
        let json = "{\"run\": {\"my_cpu_seconds\": 9, \"cpu_seconds\": 1.5e-2}, \"n\":7}";
        assert!((number(json, "cpu_seconds").unwrap() - 0.015).abs() < 1e-12);
        assert!((number(json, "n").unwrap() - 7.0).abs() < 1e-12);
        assert!(number(json, "absent").is_none());
    }

    #[test]
    fn a_child_is_watched_to_its_end() {
        let quick = Command::new("true").spawn().unwrap();
        let sample = watch(quick).unwrap();
        assert!(sample.cpu_s < sample.wall_s + 1.0);
        let failing = Command::new("false").spawn().unwrap();
        assert!(watch(failing).unwrap_err().contains("failed with"));
    }
}
