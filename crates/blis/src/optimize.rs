//! `blis optimize`: runs a search file and shows what it recommends, on fresh seeds.

mod file;

use crate::args::lab::OptimizeArgs;
use crate::failure::{self, Failure};
use crate::output::{self, Output};
use crate::progress::Trials;
use crate::show::Pages;
use crate::trials::Trying;
use blis_lab::optimize;
use blis_report::search;
use blis_scenario::problems::Together;

/// Runs the search that `args` name, prints what it found and writes the strategy.
pub(crate) fn optimize(args: &OptimizeArgs) -> Result<u8, Failure> {
    let outline = optimize::read(&args.search)?;
    let out = Output::open("--out", args.out.as_deref());
    let (out, pages) = (out, Pages::open(&args.shown)).together()?;
    if out.is_some() && outline.search().objectives.len() > 1 {
        let message = "--out: several objectives give a front, not one best strategy; keep one \
            and turn the others into constraints";
        return Err(Failure::Input(message.to_owned()));
    }
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.search().trials(args.control) as u64, args.shown.quiet);
    let settled = outline.settle(&trying.runner(&watch));
    let search = settled.map_err(|failure| trying.kept(failure))?;
    output::notes(args.shown.quiet, &search.notes);
    let found = search.run(&trying.runner(&watch), args.control);
    let findings = found.map_err(|failure| trying.kept(failure))?;
    drop(watch);
    match (out, findings.chosen.first()) {
        (Some(out), Some(chosen)) => out.fill(&file::text(&search, &findings, chosen))?,
        (Some(_), None) => output::note("note: no point is recommended, so --out was not written"),
        (None, _) => {}
    }
    let file = args.search.display().to_string();
    pages.put(&search::document(&search, &findings, Some(&file)))?;
    if findings.is_feasible() {
        return Ok(failure::DONE);
    }
    output::note(&format!("check failed: {}", search::NONE_MET));
    Ok(failure::CHECK_FAILED)
}
