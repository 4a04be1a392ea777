//! `blis optimize`: runs a search file and shows what it recommends, on fresh seeds.

mod file;

use crate::args::lab::OptimizeArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Bar, Trials};
use crate::show::{self, Pages};
use crate::target::Target;
use crate::trials::Trying;
use blis_lab::optimize;
use blis_report::search;

/// Runs the search that `args` name, prints what it found and writes the strategy.
pub(crate) fn optimize(args: &OptimizeArgs) -> Result<(), Failure> {
    let outline = optimize::read(&args.search)?;
    let out = args.out.as_deref().map(|path| Target::new("--out", path, &args.search));
    let out = out.transpose()?.as_ref().map(Output::create).transpose()?;
    let pages = Pages::open(&args.report, &args.search)?;
    if out.is_some() && outline.search().objectives.len() > 1 {
        let message = "--out: several objectives have a front, not one best strategy; search for \
                       one of them under constraints on the others";
        return Err(Failure::Input(message.to_owned()));
    }
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.search().trials(args.control) as u64, Bar::of(args.quiet));
    let settled = outline.settle(&trying.runner(), &watch);
    let search = settled.map_err(|failure| trying.kept(failure))?;
    output::notes(args.quiet, &search.notes);
    let found = search.run(&trying.runner(), &watch, args.control);
    let findings = found.map_err(|failure| trying.kept(failure))?;
    drop(watch);
    match (out, findings.chosen.first()) {
        (Some(out), Some(chosen)) => out.fill(&file::text(&search, &findings, chosen))?,
        (Some(_), None) => output::note("note: nothing is recommended, so --out was not written"),
        (None, _) => {}
    }
    let file = args.search.display().to_string();
    let document = search::document(&search, &findings, Some(&file));
    pages.put(&document)?;
    show::print(&document, args.format)
}
