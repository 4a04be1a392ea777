//! `blis optimize`: runs a search file and shows what it recommends, on fresh seeds.

mod drawing;
mod file;
mod page;
mod tables;
mod workloads;

use crate::args::TextFormat;
use crate::args::lab::OptimizeArgs;
use crate::failure::Failure;
use crate::output;
use crate::progress::{Bar, Trials};
use crate::report::json::text;
use crate::study::{open, titled, write};
use crate::trials::Trying;
use blis_lab::optimize::{self, Findings, Number, Search, json};
use serde_json::Value;

/// Runs the search that `args` name, prints what it found and writes the strategy.
pub(crate) fn optimize(args: &OptimizeArgs) -> Result<(), Failure> {
    let outline = optimize::read(&args.search)?;
    let out = open("--out", args.out.as_deref(), &args.search)?;
    let html = open("--report", args.report.as_deref(), &args.search)?;
    if out.is_some() && outline.search().objectives.len() > 1 {
        let message = "--out: several objectives have a front, not one best strategy; search for \
                       one of them under constraints on the others";
        return Err(Failure::Input(message.to_owned()));
    }
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.search().trials(args.control) as u64, bar);
    let settled = outline.settle(&trying.runner(), &watch);
    let search = settled.map_err(|failure| trying.kept(failure))?;
    if !args.quiet {
        search.notes.iter().for_each(|note| output::note(&format!("note: {note}")));
    }
    let found = search.run(&trying.runner(), &watch, args.control);
    let findings = found.map_err(|failure| trying.kept(failure))?;
    drop(watch);
    match (out, findings.chosen.first()) {
        (Some(out), Some(chosen)) => write(Some(out), || file::text(&search, &findings, chosen))?,
        (Some(_), None) => output::note("note: nothing is recommended, so --out was not written"),
        (None, _) => {}
    }
    write(html, || page::page(&search, &findings))?;
    output::print(&match args.format {
        TextFormat::Table => tables::report(&search, &findings),
        TextFormat::Json => text(&json::object(&search, &findings)),
    })
}

/// What a number is called, with its unit.
pub(crate) fn heading(number: &Number) -> String {
    titled(number.name(), number.metric.unit())
}

/// What a search found as the body of a Markdown page.
pub(crate) fn markdown(search: &Search, findings: &Findings) -> String {
    tables::markdown(search, findings)
}

/// A search as an SVG document.
pub(crate) fn drawing(search: &Search, findings: &Findings) -> String {
    drawing::drawing(search, findings)
}

/// What came of a search, in a few words.
pub(crate) fn gist(search: &Search, findings: &Findings) -> String {
    tables::gist(search, findings)
}

/// All that a search found, as JSON.
pub(crate) fn object(search: &Search, findings: &Findings) -> Value {
    json::object(search, findings)
}
