//! Measures the costs that the project promises and says whether the promises hold.
//!
//! The release binary is run as a user would run it, several times; the kernel says what it cost.
//! This is a chore and not a test: a timed test fails for reasons that are not in the code.

mod measure;
mod rows;

use measure::Program;
use rows::{Measured, Promise, Row, Value};
use std::path::{Path, PathBuf};

/// What to measure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    row: Option<usize>,
    runs: Option<usize>,
    traces: Option<PathBuf>,
}

/// Where real traces are looked for, from the project's root.
const TRACES: &str = "../shared/traces";

/// Whether all promises that were measured hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of them.
    Met,
    /// Not all of them.
    Missed,
}

impl Options {
    /// Reads `--row N` (one row of the table only), `--runs N` (repetitions of each run) and
    /// `--traces DIR` (where real traces are).
    ///
    /// # Errors
    /// If an option is unknown or its value is no number from 1 on.
    pub fn parse(words: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut rest = words;
        while let [name, after @ ..] = rest {
            if *name == "--traces" {
                let folder = after.first().ok_or("`--traces` takes the path of a folder")?;
                options.traces = Some(PathBuf::from(folder));
                rest = &after[1..];
                continue;
            }
            let value = after.first().and_then(|text| text.parse().ok()).filter(|&n| n > 0);
            let value: usize =
                value.ok_or_else(|| format!("`{name}` takes a whole number from 1 on"))?;
            match *name {
                "--row" if value <= rows::ALL.len() => options.row = Some(value),
                "--row" => return Err(format!("there is no row {value}: see the table")),
                "--runs" => options.runs = Some(value),
                _ => return Err(format!("unknown option `{name}`")),
            }
            rest = &after[1..];
        }
        Ok(options)
    }
}

/// Measures and hands the lines of a Markdown table to `print` as they come.
///
/// # Errors
/// If the program cannot be built, fails, or does not serve every request.
pub fn run(options: &Options, root: &Path, print: &mut dyn FnMut(&str)) -> Result<Verdict, String> {
    let program = Program::build(root)?;
    let traces = options.traces.clone().unwrap_or_else(|| root.join(TRACES));
    let mut verdict = Verdict::Met;
    print("| row | work | measured (median, minimum) | target | met |");
    print("|---|---|---|---|---|");
    for (number, row) in (1..).zip(rows::ALL.iter()) {
        if options.row.is_some_and(|only| only != number) {
            continue;
        }
        let Row { work, target, .. } = row;
        let absent = row.cases.iter().filter_map(|case| case.needs(&traces));
        if let Some(file) = absent.into_iter().find(|file| !file.exists()) {
            let why = format!("not measured: there is no `{}`; give --traces DIR", file.display());
            print(&format!("| {number} | {work} | {why} | {target} | |"));
            continue;
        }
        let mut measured = Vec::new();
        for case in &row.cases {
            let runs = options.runs.unwrap_or(case.runs);
            let samples = program.samples(&case.arguments(&traces), case.requests, runs)?;
            measured.push(Measured { requests: case.requests, samples });
        }
        for (text, met) in judge(row, &measured) {
            verdict = if met { verdict } else { Verdict::Missed };
            let met = if met { "yes" } else { "**no**" };
            print(&format!("| {number} | {work} | {text} | {target} | {met} |"));
        }
    }
    Ok(verdict)
}

/// One line for each promise of `row`: what was measured, and whether that is good enough.
fn judge(row: &Row, measured: &[Measured]) -> Vec<(String, bool)> {
    row.promises
        .iter()
        .map(|promise| {
            let Value { median, minimum, note } = promise.value.of(measured);
            let Promise { at_most, at_least, ref unit, digits, .. } = *promise;
            let met = at_most.is_none_or(|most| median <= most)
                && at_least.is_none_or(|least| median >= least);
            let mut text = format!("{median:.digits$} {unit}");
            if let Some(minimum) = minimum {
                text = format!("{text}, {minimum:.digits$}");
            }
            if let Some(note) = note {
                text = format!("{text} ({note})");
            }
            (text, met)
        })
        .collect()
}

/// The middle of `values`, or the mean of the middle two; NaN of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The least of `values`; infinite of none.
fn minimum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::measure::Sample;
    use super::*;

    fn runs(requests: u64, cpu_seconds: &[f64]) -> Measured {
        let sample =
            |&cpu_s| Sample { cpu_s, wall_s: 2.0 * cpu_s, peak_mb: 30.0, own_cpu_s: Some(cpu_s) };
        Measured { requests, samples: cpu_seconds.iter().map(sample).collect() }
    }

    fn verdicts(number: usize, measured: &[Measured]) -> Vec<(String, bool)> {
        judge(&rows::ALL[number - 1], measured)
    }

    #[test]
    fn options_are_read_and_nonsense_is_refused() {
        let both = Options { row: Some(2), runs: Some(3), traces: None };
        assert_eq!(Options::parse(&["--row", "2", "--runs", "3"]), Ok(both));
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
        for bad in [&["--row"][..], &["--row", "9"], &["--runs", "0"], &["--fast", "1"]] {
            assert!(Options::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn medians_and_minima_are_those_of_the_sorted_values() {
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < 1e-12);
        assert!((median([4.0, 1.0, 2.0, 3.0].into_iter()) - 2.5).abs() < 1e-12);
        assert!((minimum([3.0, 1.0].into_iter()) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_promise_is_missed_by_the_median_not_by_one_slow_run() {
        let fine = verdicts(1, &[runs(20_000, &[0.05, 0.9, 0.04])]);
        assert!(fine.iter().all(|(_, met)| *met), "{fine:?}");
        let slow = verdicts(1, &[runs(20_000, &[0.05, 0.07, 0.07])]);
        assert!(!slow[0].1, "{slow:?}");
        assert!(slow[1].1, "memory is within its bound: {slow:?}");
    }

    #[test]
    fn requests_per_cpu_second_are_promised_for_both_sizes() {
        let measured = [runs(50_000, &[0.1]), runs(50_000, &[0.25])];
        let found = verdicts(2, &measured);
        assert_eq!(found.iter().map(|(_, met)| *met).collect::<Vec<_>>(), [true, false]);
        assert!(found[0].0.starts_with("500000 requests/CPU-s"), "{found:?}");
    }

    #[test]
    fn time_that_grows_faster_than_the_requests_is_not_linear() {
        let linear = [runs(250_000, &[1.0]), runs(500_000, &[2.1]), runs(1_000_000, &[4.4])];
        assert!(verdicts(4, &linear).iter().all(|(_, met)| *met));
        let quadratic = [runs(250_000, &[0.4]), runs(500_000, &[1.6]), runs(1_000_000, &[6.4])];
        let found = verdicts(4, &quadratic);
        assert!(found[0].1, "6.4 us are within 7 us: {found:?}");
        assert!(!found[1].1, "4 times the time per request: {found:?}");
    }
}
