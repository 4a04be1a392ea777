//! What an evolution found: the best strategy beside others on held-out workloads, and its line.

use crate::chart::{Axis, Chart, Form, Point, Scale};
use crate::model::{Block, Document, Table};
use crate::search::{by_workload, gain, heading, tables};
use crate::text::{change, dash, entry, grouped};
use blis_core::math::exp;
use blis_lab::evolve::{Cell, CellSort, Entrant, Evolution, Findings};
use blis_lab::optimize::Number;
use blis_lab::study::Paired;
use blis_scenario::problem::quoted;
use serde_json::{Value, json};

/// What there is to say of an evolution of which nothing can be recommended, and what to do.
pub fn none_fits(findings: &Findings) -> (&'static str, &'static str) {
    match findings.overloaded[..] {
        [] => (
            "no strategy that was bred keeps to the constraints and guards",
            "loosen them, or breed longer",
        ),
        _ => (
            "no strategy that was bred keeps up with the held-out workloads and to the guards",
            "lower their rates, or add instances",
        ),
    }
}

/// What `evolution`, which stands in the file `file`, found.
pub fn document(evolution: &Evolution, findings: &Findings, file: Option<&str>) -> Document {
    let (mut result, mut costs) = (warnings(findings), Vec::new());
    if let Some(winner) = findings.winner {
        let genome = &findings.raced.entrants[winner].genome;
        let settings = genome.settings(&evolution.space, &evolution.knowledge);
        let lines = settings.iter().map(|(path, text)| format!("{}: {text}", path.join(".")));
        result.push(Block::Code(lines.collect::<Vec<_>>().join("\n")));
        result.push(compared(evolution, findings).into());
        result.extend(each(evolution, findings).map(Into::into));
        costs.push(tables::costs(&evolution.test, &findings.held_out).into());
        result.extend(tables::constraints(&evolution.test, &findings.held_out).map(Into::into));
    }
    let mut line = vec![Block::prose(LINE)];
    line.push(genealogy(evolution, findings).into());
    let mut progress: Vec<Block> = chart(evolution, findings).map(Into::into).into_iter().collect();
    progress.extend(file.map(|file| Block::Code(format!("blis evolve {file}"))));
    let discussion = evolution.train.discussion.iter().map(Block::prose);
    let blocks = vec![
        Block::prose(conditions(evolution, findings)),
        Block::group("Result", result),
        Block::folded("What it costs whom", costs),
        Block::group("Discussion", discussion.collect()),
        Block::group("What each change gained", line),
        Block::group("Progress", progress),
        Block::folded("The finals", vec![finals(evolution, findings).into()]),
    ];
    let data = data(evolution, findings);
    Document::new(evolution.train.question.clone(), blocks, data)
}

/// What is not recommended and why, and what is doubtful about what is.
fn warnings(findings: &Findings) -> Vec<Block> {
    let mut all = Vec::new();
    for (one, guard) in &findings.taken_back {
        let text = format!("entrant {one} does harm on held-out workloads: `{guard}` fails");
        all.push(Block::warning(text, "it is not recommended"));
    }
    for (one, workload) in &findings.overloaded {
        let text = format!("entrant {one} is overloaded on the held-out workload `{workload}`");
        all.push(Block::warning(text, "its latencies grow with the run; it is not recommended"));
    }
    if !findings.growing.is_empty() {
        let text = format!("requests pile up on {}", quoted(&findings.growing));
        let short = "the runs are too short to tell whether it is overloaded; add requests";
        all.push(Block::warning(text, short));
    }
    if findings.winner.is_none() {
        let (text, todo) = none_fits(findings);
        all.push(Block::warning(text, todo));
    }
    all
}

const LINE: &str = "From the random formula at the top, change by change, to what is recommended. \
                    Scores are changes against the baseline on the training workloads and seeds; \
                    they chose the line, so they are too good. Believe the held-out numbers.";

fn number(evolution: &Evolution) -> &Number {
    &evolution.test.objectives[0].number
}

fn conditions(evolution: &Evolution, findings: &Findings) -> String {
    let (raced, budget) = (&findings.raced, &evolution.budget);
    let refused = grouped(raced.drawn.1 as u64);
    format!(
        "{} strategies bred in {} generations with seed {} on {}; {} that lived had {} seeds or \
         more. {} draws were known already, and the checker refused {refused} of {} formulas. \
         Confirmed on {} with {} fresh seeds; means have 95 % intervals.",
        grouped(raced.entrants.len() as u64),
        budget.generations,
        budget.seed,
        evolution.train.workloads().join(", "),
        raced.entrants.iter().filter(|it| it.seeds >= budget.seeds).count(),
        budget.seeds,
        grouped(raced.known as u64),
        grouped(raced.drawn.0 as u64),
        evolution.test.workloads().join(", "),
        findings.held_out.fresh_seeds(),
    )
}

/// Whether less or more is better, the sign of a better change is this.
fn verdict(evolution: &Evolution, paired: &Paired) -> &'static str {
    let sign = if evolution.test.objectives[0].maximise { -1.0 } else { 1.0 };
    let (low, high) = match &paired.ratio {
        Some(ratio) => (ratio.low - 1.0, ratio.high - 1.0),
        None => (paired.difference.low, paired.difference.high),
    };
    let (low, high) = if sign > 0.0 { (low, high) } else { (-high, -low) };
    match (low, high) {
        (_, high) if high < 0.0 => "better",
        (low, _) if low > 0.0 => "worse",
        _ => "no sure difference",
    }
}

/// Everything that ran on held-out workloads, over all of them.
fn compared(evolution: &Evolution, findings: &Findings) -> Table {
    let number = number(evolution);
    let row = |(at, cell): (usize, &Cell)| {
        let paired = findings.held_out.between(1, at, number).filter(|_| at != 1);
        let bred = matches!(cell.sort, CellSort::Bred(_));
        let name = if at == 1 { "recommended".to_owned() } else { cell.name.clone() };
        let word = paired.as_ref().map(|paired| verdict(evolution, paired)).filter(|_| !bred);
        [
            name,
            entry(&number.metric, findings.held_out.mean(at, number)),
            dash(paired, |paired| change(&paired)),
            word.unwrap_or_default().to_owned(),
        ]
    };
    let rows = findings.cells.iter().enumerate().map(row);
    let header = ["", "held-out workloads", "recommended against it (95 %)", "verdict"];
    Table::new(heading(number), header, rows)
}

/// The same by workload: how what is recommended compares with each of the others.
fn each(evolution: &Evolution, findings: &Findings) -> Option<Table> {
    let metric = number(evolution).metric;
    let numbers = by_workload(&evolution.test, metric);
    let others =
        findings.cells.iter().enumerate().filter(|(_, it)| !matches!(it.sort, CellSort::Bred(_)));
    let others: Vec<(usize, &str)> = others.map(|(at, cell)| (at, cell.name.as_str())).collect();
    let row = |(name, number): (&str, &Number)| {
        let cell = |&(at, _): &(usize, &str)| {
            dash(findings.held_out.between(1, at, number), |paired| change(&paired))
        };
        let mean = entry(&metric, findings.held_out.mean(1, number));
        [name.to_owned(), mean].into_iter().chain(others.iter().map(cell)).collect::<Vec<_>>()
    };
    let names = evolution.test.workloads();
    let rows: Vec<Vec<String>> = names.into_iter().zip(&numbers).map(row).collect();
    let header = ["workload", "recommended"].into_iter().map(str::to_owned);
    let header = header.chain(others.iter().map(|(_, name)| format!("against {name}")));
    let title = format!("{}, change by workload", heading(number(evolution)));
    (numbers.len() > 1).then(|| Table::new(title, header, rows))
}

/// The ancestors of what is recommended, first to last.
fn ancestors(findings: &Findings) -> Vec<usize> {
    let last = findings.winner.or_else(|| findings.raced.finalists.first().copied());
    let mut line: Vec<usize> =
        std::iter::successors(last, |&one| findings.raced.entrants[one].parent).collect();
    line.reverse();
    line
}

fn genealogy(evolution: &Evolution, findings: &Findings) -> Table {
    let objective = &evolution.train.objectives[0];
    let entrant = |one: usize| &findings.raced.entrants[one];
    let row = |one: usize| {
        let Entrant { genome, generation, parent, change, score, .. } = entrant(one);
        let gained = parent.map(|parent| gain(objective, score - entrant(parent).score));
        [
            generation.to_string(),
            (*change).to_owned(),
            evolution.text(genome),
            gain(objective, *score),
            gained.unwrap_or_default(),
        ]
    };
    let header = ["generation", "change", "formula", "against the baseline", "gained"];
    Table::new("", header, ancestors(findings).into_iter().map(row)).keyed(3)
}

fn finals(evolution: &Evolution, findings: &Findings) -> Table {
    let row = |&one: &usize| {
        let entrant = &findings.raced.entrants[one];
        let score = gain(&evolution.train.objectives[0], entrant.score);
        [evolution.text(&entrant.genome), entrant.genome.size().to_string(), score]
    };
    let header = ["formula", "parts", "against the baseline, training"];
    Table::new("", header, findings.raced.finalists.iter().map(row))
}

fn chart(evolution: &Evolution, findings: &Findings) -> Option<Chart> {
    const NOTE: &str = "The best of each generation against the baseline, on training workloads.";
    let objective = &evolution.train.objectives[0];
    let is_ratio = objective.number.metric.is_ratio();
    let value = |one: usize| match findings.raced.entrants[one].score {
        score if is_ratio => 100.0 * (exp(score) - 1.0),
        score => score,
    };
    let points = (0_u32..).zip(&findings.raced.best);
    let points = points.map(|(at, &one)| Point::at(f64::from(at), value(one)).of("best")).collect();
    let unit = if is_ratio { "change (%)" } else { "change" };
    let axes = [Axis::new("generation", Scale::Zero), Axis::new(unit, Scale::Fit)];
    Some(Chart::new(heading(&objective.number), Form::Lines, axes, points)?.noted(NOTE))
}

/// The same for programs.
fn data(evolution: &Evolution, findings: &Findings) -> Value {
    let number = number(evolution);
    let ratio = |at: usize, number: &Number| {
        findings.held_out.between(1, at, number).and_then(|paired| paired.ratio)
    };
    let workloads = by_workload(&evolution.test, number.metric);
    let cell = |(at, cell): (usize, &Cell)| {
        let tuned = match &cell.sort {
            CellSort::Reference(tuned) => tuned.clone(),
            _ => None,
        };
        let bred = match cell.sort {
            CellSort::Bred(one) => Some(evolution.text(&findings.raced.entrants[one].genome)),
            _ => None,
        };
        json!({
            "name": cell.name,
            "formula": bred,
            "tuned": tuned,
            "mean": findings.held_out.mean(at, number).map(|(mean, _)| mean),
            "recommended_over_it": ratio(at, number),
            "by_workload": workloads.iter().map(|one| json!({
                "workload": one.workload.as_ref().map(|(_, name)| name),
                "mean": findings.held_out.mean(at, one).map(|(mean, _)| mean),
                "recommended_over_it": ratio(at, one),
            })).collect::<Vec<_>>(),
        })
    };
    let entrant = |one: usize| {
        let entrant = &findings.raced.entrants[one];
        json!({
            "entrant": one,
            "generation": entrant.generation,
            "change": entrant.change,
            "formula": evolution.text(&entrant.genome),
            "score": entrant.score,
        })
    };
    let winner = findings.winner.map(|one| {
        let genome = &findings.raced.entrants[one].genome;
        let settings = genome.settings(&evolution.space, &evolution.knowledge);
        settings.into_iter().map(|(path, text)| (path.join("."), Value::String(text))).collect()
    });
    json!({
        "question": evolution.train.question,
        "seed": evolution.budget.seed,
        "objective": number.name(),
        "bred": findings.raced.entrants.len(),
        "recommended": winner.map(Value::Object),
        "taken_back": findings.taken_back,
        "overloaded": findings.overloaded,
        "growing": findings.growing,
        "held_out": findings.cells.iter().enumerate().map(cell).collect::<Vec<_>>(),
        "line": ancestors(findings).into_iter().map(entrant).collect::<Vec<_>>(),
        "best": findings.raced.best.iter().map(|&one| entrant(one)).collect::<Vec<_>>(),
    })
}
