//! What a study found: verdicts, tables and charts, and its runs as CSV.

mod answer;
mod charts;
mod deploy;
mod explore;
mod setup;
mod targets;

pub use charts::chart;

use crate::chart::{Axis, Chart, Form, Mark, Point, Scale};
use crate::model::{Block, Card, Document, Table, blocks};
use crate::text::{counted, entry, heading, percent, quoted, ranged, rejoined, titled};
use blis_core::SloClass;
use blis_core::math::float;
use blis_lab::Metric;
use blis_lab::hypothesis::Hypothesis;
use blis_lab::study::{Cell, Findings, NeedlessGate, Study, json};
use blis_lab::verdict::{Effect, Outcome, Verdict, number};
use blis_metrics::Saturation;
use blis_scenario::Row;
use std::collections::BTreeSet;

/// What all verdicts of a study have in common.
const CAUTION: &str =
    "Intervals cover the seeds (95 % for all verdicts together), not errors of the model.";
/// Nobody reads a longer table by class; the explorer of a page has its numbers.
const MOST_CLASS_ROWS: usize = 64;
/// With more cells nobody can tell their curves apart, and the page gets heavy.
const MOST_DRAWN: usize = 64;
/// So many of the cells that a warning is about are named.
const MOST_PLACES: usize = 3;

/// A load of runs that are too short, and what it means.
const GROWING: &str = Saturation::Growing.name();
const EXPLAINED: &str = " A load that is growing: the runs are too short to tell whether it is \
                         overloaded.";

/// What `study`, which stands in the file `file`, found.
pub fn document(study: &Study, findings: &Findings, file: Option<&str>) -> Document {
    let mut numbers = blocks(answer::ranking(study, findings));
    numbers.extend(blocks(tables(study, findings)));
    let is_short = |table: &Table| table.rows.len() <= MOST_CLASS_ROWS;
    numbers.extend(blocks(by_class(study, findings).filter(is_short)));
    numbers.extend(blocks(setup::arms(study)));
    numbers.extend(blocks(setup::tuned(study)));
    let charts = study.metrics.iter().filter_map(|metric| chart(study, findings, metric));
    numbers.extend(blocks(charts));
    let discussion = study.discussion.iter().map(|text| Block::prose(rejoined(text)));
    let few = study.cells.len() <= MOST_DRAWN;
    let drawn = |charts: fn(&Study, &Findings) -> Vec<Chart>| {
        if few { blocks(charts(study, findings)) } else { Vec::new() }
    };
    let mut all = vec![Block::prose(conditions(study, findings))];
    all.extend(setup::workloads(study).map(Block::from));
    all.extend([
        Block::group("Verdicts", verdicts(study, findings)),
        Block::group("Gates", gates(study, findings)),
        Block::group("Discussion", discussion.collect()),
        Block::group("Numbers", numbers),
        Block::group("Time to first token", drawn(charts::distributions)),
        Block::group("TTFT breakdown", drawn(charts::breakdowns)),
        Block::folded("Mechanisms", blocks(mechanisms(study, findings))),
        Block::folded("Warnings of the runs", warnings(study, findings)),
        Block::folded("Setup", setup::blocks(study, file)),
    ]);
    Document::new(study.question.clone(), all, json::object(study, findings))
        .answered(answer::answer(study, findings, file))
        .explored(explore::data(study, findings))
}

/// How the numbers came about.
fn conditions(study: &Study, findings: &Findings) -> String {
    let (cells, seeds) = (study.cells.len(), findings.seeds());
    let least = findings.rows.iter().map(Vec::len).min().unwrap_or(seeds);
    let most = match study.max_seeds {
        most if most > seeds => format!(" (at most {most})"),
        _ => String::new(),
    };
    let from = match study.first_seed {
        Study::FIRST_SEED => String::new(),
        first => format!(" from {first} on"),
    };
    let warmup = match findings.lengths.warmup {
        Some(seconds) if seconds > 0.0 => {
            let own = study.cells.iter().any(|cell| cell.own_warmup);
            let except = if own { " (unless a case sets its own warm-up)" } else { "" };
            format!("; the first {} s of each run are cut as warm-up{except}", number(seconds))
        }
        _ => String::new(),
    };
    let times = findings.lengths.times.iter().copied().max().unwrap_or(1);
    let longer = match findings.lengths.times.iter().filter(|&&times| times > 1).count() {
        0 if study.as_written => "; runs are as long as written, steady or not".to_owned(),
        0 => String::new(),
        _ => format!("; runs are up to {times} times as long as written, to be steady"),
    };
    let arms = study.design.factor("arm").map(|arm| study.design.factors[arm].levels.len());
    let arms = arms.filter(|_| cells > 0);
    let cases = counted((cells / arms.unwrap_or(1)) as u64, "case");
    let cells = match arms {
        Some(arms) if arms == cells => counted(arms as u64, "arm"),
        Some(arms) => format!("{} in {cases}", counted(arms as u64, "arm")),
        None => cases,
    };
    let growing = (0..study.cells.len()).any(|cell| study.load(findings, cell) == GROWING);
    let growing = if growing { EXPLAINED } else { "" };
    let seeds = match seeds {
        1 => "1 seed".to_owned(),
        _ if least < seeds => format!("{least} to {seeds} seeds"),
        _ => format!("{seeds} seeds"),
    };
    format!(
        "{cells}, {seeds} each{from}{most}; means have 95 % intervals{warmup}{longer}; \
         {}.{growing}",
        sent(study)
    )
}

/// What was sent to what: each workload, cluster and model once, in the order of the cells.
pub(crate) fn sent(study: &Study) -> String {
    let plans = || study.cells.iter().map(|cell| &cell.plan);
    let distinct = |names: Vec<String>| {
        let mut known: Vec<String> = Vec::new();
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        known.join(", ")
    };
    let workloads = distinct(plans().map(|plan| plan.workload_name.clone()).collect());
    let instances = distinct(plans().map(|plan| plan.instances.to_string()).collect());
    let models = distinct(plans().map(|plan| plan.model.clone()).collect());
    let named = distinct(plans().filter_map(|plan| plan.name.clone()).collect());
    let named = if named.is_empty() { named } else { format!("; scenario {named}") };
    format!("workload {workloads} on {instances} instances of {models}{named}")
}

fn verdicts(study: &Study, findings: &Findings) -> Vec<Block> {
    let cards = study.hypotheses.iter().zip(&findings.verdicts).map(card);
    let mut blocks: Vec<Block> = cards.map(Block::Verdict).collect();
    if !blocks.is_empty() {
        blocks.insert(0, Block::prose(CAUTION));
    }
    blocks
}

/// The gates that refuse requests which could be served.
fn gates(study: &Study, findings: &Findings) -> Vec<Block> {
    let gate = |gate: NeedlessGate| {
        let [cell, other] = [gate.cell, gate.served_in].map(|it| study.cells[it].levels.join(", "));
        let (refused, class) = (percent(gate.refused), gate.class.name());
        let text = format!("`{cell}` refuses {refused} of the {class} requests");
        let served = format!("`{other}` and all other arms without refusals serve everybody");
        Block::warning(text, format!("{served}: the gate refuses what could be served"))
    };
    study.needless_gates(findings).into_iter().map(gate).collect()
}

fn card((hypothesis, verdict): (&Hypothesis, &Verdict)) -> Card {
    let effect = |effect: &Effect| {
        let unit = if effect.unit.is_empty() { String::new() } else { format!(" {}", effect.unit) };
        let claimed = effect.claimed().map_or_else(String::new, |it| format!(", claimed: {it}"));
        let found = effect.estimate.as_ref().map_or_else(
            || "too few samples".to_owned(),
            |found| format!("{}{unit}{claimed}", ranged(found)),
        );
        (effect.compared(), found)
    };
    Card {
        name: hypothesis.name.clone(),
        outcome: verdict.outcome.name(),
        claim: hypothesis.text.clone(),
        because: hypothesis.because.clone().unwrap_or_default(),
        found: verdict.why.clone(),
        effects: verdict.effects.iter().map(effect).collect(),
        charts: effects(verdict),
    }
}

/// The effects of a verdict: a chart for each scale and unit, as these have no common axis.
fn effects(verdict: &Verdict) -> Vec<Chart> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for effect in verdict.effects.iter().filter(|effect| effect.estimate.is_some()) {
        if !kinds.contains(&(effect.scale.name(), effect.unit)) {
            kinds.push((effect.scale.name(), effect.unit));
        }
    }
    let points = |effect: &Effect| {
        let at = effect.compared();
        let found = effect.estimate.map(|it| Point::named(&at, it.mean).between(it.low, it.high));
        let bounds = [effect.at_least, effect.at_most].into_iter().flatten();
        let bounds = bounds.map(|bound| Point::named(&at, bound).of("claimed").marked(Mark::Tick));
        found.map(|point| point.of("found")).into_iter().chain(bounds).collect::<Vec<_>>()
    };
    let chart = |(scale, unit): (&str, &str)| {
        let same = |effect: &&Effect| (effect.scale.name(), effect.unit) == (scale, unit);
        let points = verdict.effects.iter().filter(same).flat_map(points).collect();
        let axes = [
            Axis::new("effect", Scale::Names),
            Axis::new(titled(scale.to_owned(), unit), Scale::Tight),
        ];
        Chart::new("effect and claim", Form::Rows, axes, points)
    };
    kinds.into_iter().filter_map(chart).collect()
}

/// The numbers that the study looks at: one table with a row for each cell, or, where cells differ
/// in several things, one for each number with a column for each level of the last.
fn tables(study: &Study, findings: &Findings) -> Vec<Table> {
    let mean = |cell: usize, metric: &Metric| entry(metric, findings.mean(cell, metric));
    let load = |cell: usize| study.load(findings, cell).to_owned();
    let Some((last, others)) = study.factors.split_last().filter(|(_, rest)| !rest.is_empty())
    else {
        let header = study.factors.iter().cloned().chain(study.metrics.iter().map(heading));
        let row = |(number, cell): (usize, &Cell)| {
            let numbers = study.metrics.iter().map(|metric| mean(number, metric));
            let levels = cell.levels.iter().cloned();
            levels.chain(numbers).chain([load(number)]).collect::<Vec<_>>()
        };
        let rows = study.cells.iter().enumerate().map(row);
        return vec![Table::new("", header.chain(["load".to_owned()]), rows)];
    };
    let names = &study.design.factors[others.len()].levels;
    let pivot = |title: String, entry: &dyn Fn(usize) -> String| {
        // The last step of a path says enough.
        let short = last.rsplit('.').next().unwrap_or(last);
        let corner = format!("{} \\ {short}", others.join(", "));
        let row = |first: usize| {
            let name = study.cells[first].levels[..others.len()].join(", ");
            let cells = (first..first + names.len()).map(entry);
            std::iter::once(name).chain(cells).collect::<Vec<_>>()
        };
        let rows = (0..study.cells.len()).step_by(names.len()).map(row);
        Table::new(title, std::iter::once(corner).chain(names.iter().cloned()), rows)
    };
    let number = |metric: &Metric| pivot(heading(metric), &|cell| mean(cell, metric));
    let load = pivot("load".to_owned(), &load);
    study.metrics.iter().map(number).chain([load]).collect()
}

/// What became of the requests of each class; none if cells do not differ.
fn by_class(study: &Study, findings: &Findings) -> Option<Table> {
    const NAMES: [(&str, &str); 5] = [
        ("offered", "offered"),
        ("admitted", "admitted"),
        ("completed", "completed"),
        ("goodput_per_sec", "good/s"),
        ("slo_attainment", "SLO met"),
    ];
    let reports = || findings.rows.iter().flatten().map(|row| &row.report);
    let classes = SloClass::ALL
        .into_iter()
        .filter(|class| reports().flat_map(|report| &report.classes).any(|(it, _)| it == class));
    let classes: Vec<SloClass> = classes.collect();
    let row = |number: usize, cell: &Cell, class: SloClass| {
        let value = |(name, _): (&str, &str)| {
            let metric = Metric::parse(&format!("{}.{name}", class.name()));
            let metric = metric.expect("every class has these numbers");
            entry(&metric, findings.mean(number, &metric).map(|(mean, _)| (mean, None)))
        };
        let keys = [cell.levels.join(", "), class.name().to_owned()];
        keys.into_iter().chain(NAMES.map(value)).collect::<Vec<_>>()
    };
    let cells = study.cells.iter().enumerate();
    let rows: Vec<Vec<String>> = cells
        .flat_map(|(number, cell)| classes.iter().map(move |&class| (number, cell, class)))
        .map(|(number, cell, class)| row(number, cell, class))
        .collect();
    let keys = [study.factors.join(", "), "class".to_owned()];
    let header = keys.into_iter().chain(NAMES.map(|(_, name)| name.to_owned()));
    let table = Table::new("requests by class, per run", header, rows).keyed(2);
    (!study.factors.is_empty()).then_some(table)
}

/// How often mechanisms acted: one row a cell, one column a mechanism that acted in any.
fn mechanisms(study: &Study, findings: &Findings) -> Option<Table> {
    let all = findings.rows.iter().flatten().flat_map(|row| &row.report.mechanisms);
    let names: BTreeSet<&String> =
        all.filter(|(_, times)| **times > 0).map(|(name, _)| name).collect();
    let row = |(cell, rows): (&Cell, &Vec<Row>)| {
        let mean = |name: &&String| {
            let times = rows.iter().filter_map(|row| row.report.mechanisms.get(*name));
            let times: Vec<u64> = times.copied().collect();
            match times.len() {
                // Its policy is not in this cell.
                0 => "-".to_owned(),
                runs => number(float(times.iter().sum()) / float(runs as u64)),
            }
        };
        let means = names.iter().map(mean);
        std::iter::once(cell.levels.join(", ")).chain(means).collect::<Vec<_>>()
    };
    let title = "mechanism counts per run, mean over seeds";
    let header = std::iter::once(study.factors.join(", "));
    let header = header.chain(names.iter().map(|name| (*name).clone()));
    let rows = study.cells.iter().zip(&findings.rows).map(row);
    (!names.is_empty()).then(|| Table::new(title, header, rows))
}

/// What the numbers do not show, once for all cells that have it. Of warnings that differ in their
/// numbers and brackets only, the one with the largest number is told.
fn warnings(study: &Study, findings: &Findings) -> Vec<Block> {
    let mut told: Vec<(String, &str, Vec<String>)> = Vec::new();
    for (cell, rows) in study.cells.iter().zip(&findings.rows) {
        let name = cell.levels.join(", ");
        for warning in rows.iter().flat_map(|row| &row.warnings) {
            let shape = shape(warning);
            let Some((_, text, cells)) = told.iter_mut().find(|(known, ..)| *known == shape) else {
                told.push((shape, warning, vec![name.clone()]));
                continue;
            };
            cells.retain(|cell| *cell != name);
            if leading(warning) > leading(text) {
                *text = warning;
                cells.insert(0, name.clone());
            } else {
                cells.push(name.clone());
            }
        }
    }
    let warning = |(_, text, cells): (String, &str, Vec<String>)| match &cells[..] {
        [one] if one.is_empty() => Block::warning(text, ""),
        [some @ .., _] if some.len() >= MOST_PLACES => {
            let (named, more) = (some[..MOST_PLACES].join("; "), cells.len() - MOST_PLACES);
            Block::warning(format!("{text} ({named} and {more} more)"), "")
        }
        cells => Block::warning(format!("{text} ({})", cells.join("; ")), ""),
    };
    told.into_iter().map(warning).collect()
}

/// A warning without its numbers and what stands in brackets.
fn shape(warning: &str) -> String {
    let mut depth = 0_u32;
    let kept = |&letter: &char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && !letter.is_ascii_digit()
    };
    warning.chars().filter(kept).collect()
}

/// The number that a warning begins with; 0 if it begins with none.
fn leading(warning: &str) -> u64 {
    warning.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0)
}

/// One row a run: the levels of its cell, its seed, and every number that was asked for.
pub fn csv(study: &Study, findings: &Findings) -> String {
    let names = study.metrics.iter().map(Metric::name);
    let factors = study.factors.iter().map(|factor| quoted(factor));
    let header: Vec<String> = factors.chain(["seed".to_owned()]).chain(names).collect();
    let mut lines = vec![header.join(",")];
    for (number, (cell, rows)) in study.cells.iter().zip(&findings.rows).enumerate() {
        for (seed, row) in rows.iter().enumerate() {
            let levels = cell.levels.iter().map(|level| quoted(level));
            let value = |metric: &Metric| findings.value(number, seed, metric);
            let numbers = study.metrics.iter().map(value);
            let numbers = numbers.map(|value| value.map(|it| it.to_string()).unwrap_or_default());
            let seed = row.run.seed.to_string();
            lines.push(levels.chain([seed]).chain(numbers).collect::<Vec<_>>().join(","));
        }
    }
    lines.join("\n") + "\n"
}

/// How many verdicts there are of each kind, in words.
pub fn tally(outcomes: &[Outcome]) -> String {
    let count = |kind: Outcome| outcomes.iter().filter(|outcome| **outcome == kind).count();
    let told = Outcome::ALL.map(|kind| (count(kind), kind.name()));
    let told = told.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, name)| format!("{count} {name}")).collect();
    if told.is_empty() { "no claims".to_owned() } else { told.join(", ") }
}
