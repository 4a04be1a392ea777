//! `blis study`: runs a study file and shows its cells side by side.

use crate::args::{StudyArgs, TextFormat};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Output};
use crate::progress::{Bar, Trials};
use crate::report::json;
use crate::report::plot::{Chart, Line};
use crate::report::table::{bold, grouped, percent, plain, table};
use crate::shard::Shard;
use crate::target::Target;
use blis_core::math::count;
use blis_lab::json::Fields;
use blis_lab::study::{self, Findings, Study};
use blis_lab::{Ledger, Metric, RunFailure, Runner};
use blis_metrics::Saturation;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Runs the study that `args` name and prints what it found.
pub(crate) fn study(args: &StudyArgs) -> Result<(), Failure> {
    let study = study::read(&args.study)?;
    let shard = args.shard.as_deref().map(Shard::parse).transpose()?;
    let drawn = drawn(args, &study)?;
    let csv = open("--csv", args.csv.as_deref(), &args.study)?;
    let plot = open("--plot", args.plot.as_deref(), &args.study)?;
    if !args.quiet {
        tell_notes(&study);
    }
    interrupt::listen();
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let ledger = if args.no_ledger { None } else { Some(Ledger::open(&args.ledger)?) };
    let ledger = ledger.as_ref();
    if let Some(ledger) = ledger {
        ledger.record_study(&name(&args.study), &study)?;
    }
    let runner = Runner { jobs: args.jobs.into(), audit: args.audit, ledger };
    let kept = |failure: RunFailure| match (failure, ledger) {
        (RunFailure::Interrupted, Some(ledger)) => Failure::Resumable(ledger.path().to_owned()),
        (failure, _) => failure.into(),
    };
    if let Some((shard, ledger)) = shard.zip(ledger) {
        let trials = shard.of(&study.all_trials());
        let watch = Trials::new(trials.len() as u64, bar);
        runner.rows(&trials, &watch).map_err(kept)?;
        drop(watch);
        return output::print(&part(shard, &study, trials.len(), ledger));
    }
    let watch = Trials::new(study.trials() as u64, bar);
    let findings = study.run(&runner, &watch).map_err(kept)?;
    drop(watch);
    write(csv, || rows(&study, &findings))?;
    write(plot, || chart(&study, &findings, &drawn).svg())?;
    output::print(&match args.format {
        TextFormat::Table => report(&study, &findings),
        TextFormat::Json => json::text(&object(&study, &findings)),
    })
}

/// What the ledger calls the study: the name of its file.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What is said of a part that was run: the whole has no findings yet.
fn part(shard: Shard, study: &Study, trials: usize, ledger: &Ledger) -> String {
    let Shard { index, count } = shard;
    format!(
        "part {index} of {count}: {} of {} runs are finished and kept in {}\njoin the ledgers of \
         all parts with `blis ledger merge`, then run the study without `--shard`\n",
        grouped(trials as u64),
        grouped(study.trials() as u64),
        ledger.path().display()
    )
}

/// Opens an output before anything runs.
fn open(flag: &str, path: Option<&Path>, input: &Path) -> Result<Option<Output>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let target = Target::of(path)?;
    if target.is_input(input) {
        return Err(Failure::Input(format!("{flag}: it is the study itself; name another file")));
    }
    Output::create(&target).map(Some)
}

fn write(output: Option<Output>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(mut output) = output else { return Ok(()) };
    output.write_all(text().as_bytes()).map_err(|error| output.failure(&error))?;
    output.finish()
}

/// The number that is drawn.
fn drawn(args: &StudyArgs, study: &Study) -> Result<Metric, Failure> {
    let Some(name) = &args.plot_metric else { return Ok(study.metrics[0]) };
    Metric::parse(name).map_err(|text| Failure::Input(format!("--plot-metric: {text}")))
}

/// A line for each combination of all factors but the last, a point for each level of that one.
fn chart(study: &Study, findings: &Findings, metric: &Metric) -> Chart {
    let others = study.factors.len().saturating_sub(1);
    let columns = columns(study);
    let point = |cell: usize| {
        findings.mean(cell, metric).map(|(mean, half_width)| (mean, half_width.unwrap_or(0.0)))
    };
    let line = |first: usize| Line {
        name: study.cells[first].levels[..others].join(", "),
        points: (first..first + columns.len()).map(point).collect(),
    };
    Chart {
        title: format!("{} by {}", heading(metric), study.factors.join(", ")),
        x: study.factors.last().cloned().unwrap_or_default(),
        lines: (0..study.cells.len()).step_by(columns.len()).map(line).collect(),
        levels: columns,
    }
}

/// The levels of the last factor.
fn columns(study: &Study) -> Vec<String> {
    let others = study.factors.len().saturating_sub(1);
    let first = &study.cells[0].levels;
    let same = |cell: &&study::Cell| cell.levels[..others] == first[..others];
    let level = |cell: &study::Cell| cell.levels.get(others).cloned().unwrap_or_default();
    study.cells.iter().take_while(same).map(level).collect()
}

/// What the user should know, once, whichever cell it is about.
fn tell_notes(study: &Study) {
    let mut told = Vec::new();
    for cell in &study.cells {
        for note in &cell.plan.notes {
            if !told.contains(&note) {
                told.push(note);
            }
        }
    }
    for note in told {
        output::note(&format!("note: {note}"));
    }
}

fn report(study: &Study, findings: &Findings) -> String {
    let seeds = study.seeds.len();
    let cells = study.cells.len();
    let head = format!(
        "{}\n{cells} cells, {seeds} seeds each; means ± half of a 95 % interval\n",
        bold(&study.question),
    );
    let tables = match study.factors.len() {
        0 | 1 => vec![by_metric(study, findings)],
        _ => pivots(study, findings),
    };
    let mut parts = vec![head];
    parts.extend(tables);
    parts.join("\n") + "\n"
}

/// One row a cell, one column a number.
fn by_metric(study: &Study, findings: &Findings) -> String {
    let metrics: Vec<String> = study.metrics.iter().map(heading).collect();
    let mut header: Vec<&str> = study.factors.iter().map(String::as_str).collect();
    header.extend(metrics.iter().map(String::as_str));
    header.push("load");
    let mut table = table(&header);
    for (number, cell) in study.cells.iter().enumerate() {
        let mut row = cell.levels.clone();
        row.extend(study.metrics.iter().map(|metric| entry(metric, findings.mean(number, metric))));
        row.push(load(findings, number));
        table.add_row(row);
    }
    format!("{table}")
}

/// One table a number: a column for each level of the last factor, a row for each combination of
/// the others.
fn pivots(study: &Study, findings: &Findings) -> Vec<String> {
    let (last, others) = study.factors.split_last().expect("there are several factors");
    let names = columns(study);
    let pivot = |title: &str, entry: &dyn Fn(usize) -> String| {
        // The last step of a path says enough.
        let short = last.rsplit('.').next().unwrap_or(last);
        let corner = format!("{} \\ {short}", others.join(", "));
        let mut header = vec![corner.as_str()];
        header.extend(names.iter().map(String::as_str));
        let mut table = table(&header);
        for row in (0..study.cells.len()).step_by(names.len()) {
            let mut entries = vec![study.cells[row].levels[..others.len()].join(", ")];
            entries.extend((row..row + names.len()).map(entry));
            table.add_row(entries);
        }
        format!("{}\n{table}\n", bold(title))
    };
    let mut tables: Vec<String> = study
        .metrics
        .iter()
        .map(|metric| pivot(&heading(metric), &|cell| entry(metric, findings.mean(cell, metric))))
        .collect();
    tables.push(pivot("load", &|cell| load(findings, cell)));
    tables
}

fn heading(metric: &Metric) -> String {
    match metric.unit() {
        "" => metric.name(),
        unit => format!("{}, {unit}", metric.name()),
    }
}

fn entry(metric: &Metric, mean: Option<(f64, Option<f64>)>) -> String {
    let share = metric.name().ends_with("rate") || metric.name().ends_with("attainment");
    // Several columns of means and intervals have to fit a line.
    let show = |value: f64| match value {
        value if share => percent(Some(value)),
        value if value >= 99.95 => grouped(count(value)),
        value => plain(Some(value)),
    };
    match mean {
        None => "-".to_owned(),
        // Counts that no seed has need no interval.
        Some((mean, Some(half_width))) if mean != 0.0 || half_width != 0.0 => {
            let half_width = show(half_width);
            format!("{} ±{half_width}", show(mean).trim_end_matches(" %"))
        }
        Some((mean, _)) => show(mean),
    }
}

/// Whether the cluster kept up, in the worst of a cell's runs.
fn load(findings: &Findings, cell: usize) -> String {
    let verdicts = findings.rows[cell].iter().map(|row| row.report.saturation);
    let severity = |verdict: &Option<Saturation>| match verdict {
        None => 0,
        Some(Saturation::Stable) => 1,
        Some(Saturation::Backlogged) => 2,
        Some(Saturation::Overloaded) => 3,
    };
    verdicts.max_by_key(severity).flatten().map_or("-", Saturation::name).to_owned()
}

/// One row a run: the levels of its cell, its seed, and every number that was asked for.
fn rows(study: &Study, findings: &Findings) -> String {
    let quote = |text: &str| {
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let names = study.metrics.iter().map(Metric::name);
    let factors = study.factors.iter().map(|factor| quote(factor));
    let header: Vec<String> = factors.chain(["seed".to_owned()]).chain(names).collect();
    let mut lines = vec![header.join(",")];
    for (cell, rows) in study.cells.iter().zip(&findings.rows) {
        for row in rows {
            let levels = cell.levels.iter().map(|level| quote(level));
            let number = |metric: &Metric| {
                metric.of(&row.report).map_or_else(String::new, |value| value.to_string())
            };
            let numbers = study.metrics.iter().map(number);
            let fields: Vec<String> =
                levels.chain([row.run.seed.to_string()]).chain(numbers).collect();
            lines.push(fields.join(","));
        }
    }
    lines.join("\n") + "\n"
}

fn object(study: &Study, findings: &Findings) -> Value {
    let cell = |(number, cell): (usize, &study::Cell)| {
        let mut fields = Fields::default();
        for (factor, level) in study.factors.iter().zip(&cell.levels) {
            fields.text(factor, level.clone());
        }
        fields.text("scenario_hash", cell.plan.hash());
        fields.text("load", load(findings, number));
        for metric in &study.metrics {
            let mut numbers = Fields::default();
            let mean = findings.mean(number, metric);
            numbers.number("mean", mean.map(|(mean, _)| mean));
            numbers.number("half_width", mean.and_then(|(_, half_width)| half_width));
            numbers.value("values", findings.values(number, metric));
            fields.value(&metric.name(), numbers.into_value());
        }
        fields.into_value()
    };
    let mut all = Fields::default();
    all.text("question", study.question.clone());
    all.value("seeds", study.seeds.clone());
    all.value("cells", study.cells.iter().enumerate().map(cell).collect::<Vec<Value>>());
    all.into_value()
}
