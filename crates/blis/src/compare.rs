//! `blis compare`: scenarios side by side, with paired differences.

use crate::args::TextFormat;
use crate::args::lab::CompareArgs;
use crate::failure::Failure;
use crate::output;
use crate::progress::{Bar, Trials};
use crate::report::grid::Grid;
use crate::report::json::text;
use crate::report::table::bold;
use crate::study::{entry, heading, settled, tell_notes};
use crate::trials::Trying;
use blis_lab::Metric;
use blis_lab::stats::Estimate;
use blis_lab::study::{self, Findings, Paired, Sides, Study};
use blis_lab::verdict::number;
use blis_scenario::json::Fields;
use serde_json::Value;

/// What is compared unless something else is asked for.
const METRICS: [&str; 12] = [
    "ttft_mean",
    "ttft_p99",
    "itl_mean",
    "e2e_mean",
    "e2e_p99",
    "completed",
    "rejected",
    "steady_tokens_per_sec",
    "goodput_per_sec",
    "slo_attainment",
    "hit_rate",
    "preemptions",
];
/// The probability that an interval leaves out the truth.
const LEVEL: f64 = 0.05;

/// Runs the scenarios that `args` name and prints how they compare.
pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let names: Vec<&str> = match args.metrics[..] {
        [] => METRICS.to_vec(),
        _ => args.metrics.iter().map(String::as_str).collect(),
    };
    let sides = Sides {
        files: &args.scenarios,
        arms: &args.arm,
        metrics: metrics(&names)?,
        seeds: args.seeds.into(),
        warmup: args.warmup.as_deref(),
    };
    let outline = study::compare(&sides)?;
    if outline.study().cells.len() < 2 {
        let message = "there is one scenario; name another, or give an `--arm`".to_owned();
        return Err(Failure::Input(message));
    }
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.study().trials() as u64, bar);
    let study = settled(outline, &trying, &watch)?;
    if !args.quiet {
        tell_notes(&study);
    }
    let findings = study.run(&trying.runner(), &watch).map_err(|failure| trying.kept(failure))?;
    drop(watch);
    output::print(&match args.format {
        TextFormat::Table => report(&study, &findings),
        TextFormat::Json => text(&object(&study, &findings)),
    })
}

/// The numbers called so on the command line.
pub(crate) fn metrics(names: &[&str]) -> Result<Vec<Metric>, Failure> {
    let parse = |name: &&str| {
        Metric::parse(name).map_err(|text| Failure::Input(format!("--metrics: {text}")))
    };
    names.iter().map(parse).collect()
}

fn report(study: &Study, findings: &Findings) -> String {
    let seeds = findings.seeds();
    let first = &study.cells[0].levels[0];
    let head = format!(
        "{}\n{seeds} seeds each, on the same requests; changes against {first}, seed by seed, with \
         95 % intervals\n\n",
        bold(&study.question)
    );
    let grids = (1..study.cells.len()).map(|cell| grid(study, findings, cell).text() + "\n");
    (head + &grids.collect::<String>()).trim_end().to_owned() + "\n"
}

/// The first arm and another one.
fn grid(study: &Study, findings: &Findings, cell: usize) -> Grid {
    let arm = |cell: usize| study.cells[cell].levels[0].clone();
    let row = |metric: &Metric| {
        let paired = findings.paired(cell, 0, metric, LEVEL);
        let change = paired.as_ref().map_or_else(|| "-".to_owned(), change);
        let mean = |cell: usize| entry(metric, findings.mean(cell, metric));
        vec![heading(metric), mean(0), mean(cell), change, clear(paired.as_ref()).to_owned()]
    };
    // What no run of either has is not worth a line.
    let present = |metric: &&Metric| {
        [0, cell]
            .iter()
            .any(|&cell| findings.mean(cell, metric).is_some_and(|(mean, _)| mean.abs() > 0.0))
    };
    let header = ["", &arm(0), &arm(cell), "change (95 % interval)", ""];
    Grid {
        title: format!("{} against {}", arm(cell), arm(0)),
        header: header.map(str::to_owned).to_vec(),
        rows: study.metrics.iter().filter(present).map(row).collect(),
    }
}

/// A change in percent if it can be, else in the number's unit.
pub(crate) fn change(paired: &Paired) -> String {
    let range = |found: &Estimate, show: &dyn Fn(f64) -> String| {
        format!("{} ({} to {})", show(found.mean), show(found.low), show(found.high))
    };
    match &paired.ratio {
        Some(ratio) => range(ratio, &|value| format!("{:+.1} %", 100.0 * (value - 1.0))),
        None => range(&paired.difference, &|value| {
            let sign = if value > 0.0 { "+" } else { "" };
            format!("{sign}{}", number(value))
        }),
    }
}

/// Whether the interval leaves zero out, in a word.
fn clear(paired: Option<&Paired>) -> &'static str {
    match paired.map(|paired| paired.difference) {
        Some(found) if found.low > 0.0 => "more",
        Some(found) if found.high < 0.0 => "less",
        Some(found) if found.low.abs() + found.high.abs() <= 0.0 => "same",
        _ => "",
    }
}

fn object(study: &Study, findings: &Findings) -> Value {
    let arm = |cell: usize| {
        let mut fields = Fields::default();
        fields.text("arm", study.cells[cell].levels[0].clone());
        fields.text("scenario_hash", findings.rows[cell][0].run.scenario_hash.clone());
        for metric in &study.metrics {
            let mut numbers = Fields::default();
            numbers.number("mean", findings.mean(cell, metric).map(|(mean, _)| mean));
            numbers.value("values", findings.values(cell, metric));
            if let Some(paired) = findings.paired(cell, 0, metric, LEVEL).filter(|_| cell > 0) {
                numbers.value("difference", &paired.difference);
                if let Some(ratio) = &paired.ratio {
                    numbers.value("ratio", ratio);
                }
            }
            fields.value(&metric.name(), numbers.into_value());
        }
        fields.into_value()
    };
    let mut all = Fields::default();
    all.value("seeds", findings.rows[0].iter().map(|row| row.run.seed).collect::<Vec<u64>>());
    all.number("warmup_s", findings.warmup);
    all.value("arms", (0..study.cells.len()).map(arm).collect::<Vec<Value>>());
    all.into_value()
}
