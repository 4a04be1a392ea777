//! `blis evolve`: breeds strategies and shows what the best is worth on held-out workloads.

use crate::args::lab::EvolveArgs;
use crate::failure::{self, Failure};
use crate::output::{self, Output};
use crate::progress::Trials;
use crate::show::Pages;
use crate::trials::Trying;
use blis_lab::evolve::{self, CellSort, Evolution, Findings};
use blis_report::evolve as report;
use blis_report::text::{change, dash};
use blis_scenario::problem::visible;
use blis_scenario::problems::Together;
use blis_scenario::strategy::Strategy;

/// Runs the evolution that `args` name, prints what it found and writes the strategy.
pub(crate) fn evolve(args: &EvolveArgs) -> Result<u8, Failure> {
    let outline = evolve::read(&args.file, args.seed)?;
    let out = Output::open("--out", args.out.as_deref());
    let (out, pages) = (out, Pages::open(&args.shown)).together()?;
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.evolution().trials() as u64, args.shown.quiet);
    let settled = outline.settle(&trying.runner(&watch));
    let evolution = settled.map_err(|failure| trying.kept(failure))?;
    output::notes(args.shown.quiet, &evolution.train.notes);
    let found = evolution.run(&trying.runner(&watch));
    let findings = found.map_err(|failure| trying.kept(failure))?;
    drop(watch);
    match (out, findings.winner) {
        (Some(out), Some(winner)) => out.fill(&text(&evolution, &findings, winner))?,
        (Some(_), None) => output::note("note: nothing is recommended, so --out was not written"),
        (None, _) => {}
    }
    let file = args.file.display().to_string();
    pages.put(&report::document(&evolution, &findings, Some(&file)))?;
    if findings.winner.is_some() {
        return Ok(failure::DONE);
    }
    output::note(&format!("check failed: {}", report::none_fits(&findings).0));
    Ok(failure::CHECK_FAILED)
}

/// The strategy file of entrant `winner`, with where it comes from.
fn text(evolution: &Evolution, findings: &Findings, winner: usize) -> String {
    let number = &evolution.test.objectives[0].number;
    let mut lines = vec![
        format!("Bred: {}", evolution.train.question),
        format!("Made by: {}", crate::command_line()),
        format!("Trained on: {}", evolution.train.workloads().join(", ")),
    ];
    let seeds = findings.held_out.fresh_seeds();
    let names = evolution.test.workloads().join(", ");
    lines.push(format!("{} on held-out {names}, {seeds} fresh seeds:", number.name()));
    let others = findings.cells.iter().enumerate();
    for (at, cell) in others.filter(|(_, cell)| !matches!(cell.sort, CellSort::Bred(_))) {
        let paired = findings.held_out.between(1, at, number);
        lines.push(format!("  against {}: {}", cell.name, dash(paired, |it| change(&it))));
    }
    // Nothing that a user writes may end the comment.
    let comment = |line: &String| format!("# {}\n", visible(line));
    let header: String = lines.iter().map(comment).collect();
    let help = format!("Bred for {}", number.name());
    let strategy = Strategy::of(
        format!("{}-bred", evolution.train.name),
        help,
        evolution.set(winner, findings),
    );
    header + &strategy.text(&strategy.name, &[])
}
