//! `blis compare`: scenarios side by side, with paired differences.

use crate::args::lab::CompareArgs;
use crate::failure::Failure;
use crate::progress::Trials;
use crate::show::Pages;
use crate::study::settled;
use crate::trials::Trying;
use blis_lab::Metric;
use blis_lab::study::{self, Sides};

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
        let message = "there is only one scenario; name another, or add an `--arm`".to_owned();
        return Err(Failure::Input(message));
    }
    let pages = Pages::open(&args.shown)?;
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.study().trials() as u64, args.shown.quiet);
    let study = settled(outline, &trying, &watch, args.shown.quiet)?;
    let findings = study.run(&trying.runner(&watch)).map_err(|failure| trying.kept(failure))?;
    drop(watch);
    pages.put(&blis_report::compare::document(&study, &findings))
}

/// The numbers called so on the command line.
pub(crate) fn metrics(names: &[&str]) -> Result<Vec<Metric>, Failure> {
    let parse = |name: &&str| {
        Metric::parse(name).map_err(|text| Failure::Input(format!("--metrics: {text}")))
    };
    names.iter().map(parse).collect()
}
