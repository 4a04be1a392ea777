//! `blis explain`: why an arm of a study is better, and what is left to gain.

use crate::args::lab::ExplainArgs;
use crate::compare::metrics;
use crate::failure::Failure;
use crate::progress::Trials;
use crate::show::Pages;
use crate::study::settled;
use crate::trials::Trying;
use blis_core::SloClass;
use blis_lab::Metric;
use blis_lab::counterfactual::Options;
use blis_lab::explain::{
    Ablation, Decisions, Headroom, PartDifference, Question, decisions, decompose,
};
use blis_lab::study::{self, Study};
use blis_report::explain::{Explained, document};
use blis_scenario::problem::{hint, quoted};
use blis_scenario::row::Row;

/// What is asked, checked before anything runs.
struct Asked<'a> {
    args: &'a ExplainArgs,
    study: &'a Study,
    metrics: Vec<Metric>,
    levels: Vec<usize>,
    against: Vec<usize>,
    seeds: usize,
}

/// Explains the arm that `args` name.
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let outline = study::read(&args.study)?;
    let study = outline.study();
    let (levels, against) = levels(args, study)?;
    let metrics: Vec<Metric> = match args.metrics[..] {
        [] => {
            study.metrics.iter().find(|metric| !metric.is_searched()).copied().into_iter().collect()
        }
        _ => metrics(&args.metrics.iter().map(String::as_str).collect::<Vec<_>>())?,
    };
    let seeds = usize::from(args.seeds);
    let asked = Asked { args, study, metrics, levels, against, seeds };
    let trials = asked.trials()?;
    let pages = Pages::open(&args.shown)?;
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(trials as u64, args.shown.quiet);
    let study = settled(outline.clone(), &trying, &watch, args.shown.quiet)?;
    let asked = Asked { study: &study, ..asked };
    let explained = asked.answer(&trying, &watch).map_err(|failure| trying.kept(failure))?;
    drop(watch);
    pages.put(&document(&explained))
}

impl<'a> Asked<'a> {
    fn cells(&self) -> [usize; 2] {
        [&self.levels, &self.against].map(|levels| self.study.design.cell(levels))
    }

    fn ablation(&self, warmup: Option<f64>) -> Result<Option<Ablation>, blis_lab::Failure> {
        let question = Question { levels: self.levels.clone(), seeds: self.seeds, warmup };
        Ok(Ablation::of(self.study, &question)?)
    }

    fn headroom(&self, warmup: Option<f64>) -> Result<Option<Headroom>, blis_lab::Failure> {
        if self.args.no_oracles {
            return Ok(None);
        }
        Ok(Headroom::of(self.study, self.cells()[0], self.seeds, warmup)?)
    }

    fn options(&self) -> Options {
        Options {
            alternatives: self.args.counterfactual_k.into(),
            sample: usize::from(self.args.counterfactual_sample),
            jobs: self.args.trials.jobs.into(),
        }
    }

    /// How many runs it takes.
    fn trials(&self) -> Result<usize, Failure> {
        let pilots = self.study.trials() - self.study.cells.len() * self.study.seeds;
        let subsets = self.ablation(None)?.map_or(0, |ablation| ablation.trials());
        let informed = self.headroom(None)?.map_or(0, |headroom| headroom.trials());
        let Options { alternatives, sample, .. } = self.options();
        let otherwise = sample.div_ceil(self.seeds) * self.seeds * alternatives;
        Ok(pilots + 2 * self.seeds + subsets + informed + otherwise)
    }

    fn answer(self, trying: &Trying, watch: &Trials) -> Result<Explained<'a>, blis_lab::Failure> {
        let (study, seeds, cells) = (self.study, self.seeds, self.cells());
        let runner = trying.runner(watch);
        let warmup = study.settle(&runner)?;
        let rows = study.rows(&cells, seeds, warmup, &runner)?;
        let ablation = self.ablation(warmup)?;
        let mut shares = Vec::new();
        if let Some(ablation) = &ablation {
            let rows = ablation.run(&runner)?;
            let of = |&metric: &Metric| Some((metric, ablation.shares(&rows, &metric)?));
            shares = self.metrics.iter().filter_map(of).collect();
        }
        let headroom = self.headroom(warmup)?;
        let reached = headroom.map(|all| all.run(&rows[0], &runner)).transpose()?;
        Ok(Explained {
            study,
            arms: cells.map(|cell| study.design.names(cell).join(", ")),
            seeds,
            parts: parts(&rows[0], &rows[1]),
            components: ablation.map(|ablation| ablation.components).unwrap_or_default(),
            shares,
            reached,
            decisions: self.decisions(warmup, watch)?,
            metrics: self.metrics,
        })
    }

    /// What routing decisions were worth, as far as they are asked about.
    fn decisions(
        &self,
        warmup: Option<f64>,
        watch: &Trials,
    ) -> Result<Option<Decisions>, blis_lab::Failure> {
        let options = self.options();
        if options.sample == 0 || options.alternatives == 0 {
            return Ok(None);
        }
        let plan = self.study.plan(self.cells()[0], warmup);
        let seeds = self.study.first_seeds(self.seeds);
        decisions(&plan, &seeds, &options, || watch.watch())
    }
}

/// The levels of the arm that is explained, and of the one it is compared with.
fn levels(args: &ExplainArgs, study: &Study) -> Result<(Vec<usize>, Vec<usize>), Failure> {
    let design = &study.design;
    let Some(arm) = design.factor("arm") else {
        let message = "the study has no arms, so there is nothing to compare".to_owned();
        return Err(Failure::Input(message));
    };
    let mut levels = vec![0; design.factors.len()];
    for text in &args.at {
        let (factor, level) = place(study, text)?;
        levels[factor] = level;
    }
    let arms = &design.factors[arm];
    let named = |flag: &str, name: &Option<String>, default: usize| match name {
        None => Ok(default),
        Some(name) => level(flag, name, &arms.levels),
    };
    let mut against = levels.clone();
    levels[arm] = named("--arm", &args.arm, arms.stated - 1)?;
    against[arm] = named("--against", &args.against, 0)?;
    if levels == against {
        let message = format!("cannot compare `{}` with itself; name another arm", arms.levels[0]);
        return Err(Failure::Input(message));
    }
    Ok((levels, against))
}

/// The factor and level in `FIELD=VALUE`, or of the workload in `NAME`.
fn place(study: &Study, text: &str) -> Result<(usize, usize), Failure> {
    let design = &study.design;
    let (field, value) = match text.split_once('=') {
        Some((field, value)) => (field.trim(), value.trim()),
        None => ("workload", text.trim()),
    };
    let is = |path: &str| path == field || path.rsplit('.').next() == Some(field);
    let Some(factor) = design.factors.iter().position(|factor| is(&factor.name)) else {
        let names: Vec<&str> = design.factors.iter().map(|factor| factor.name.as_str()).collect();
        let hint = hint(field, names.iter().copied());
        let message = format!("--at: unknown field `{field}`{hint}; known: {}", quoted(&names));
        return Err(Failure::Input(message));
    };
    level("--at", value, &design.factors[factor].levels).map(|level| (factor, level))
}

fn level(flag: &str, name: &str, known: &[String]) -> Result<usize, Failure> {
    known.iter().position(|level| level == name).ok_or_else(|| {
        let hint = hint(name, known.iter().map(String::as_str));
        Failure::Input(format!("{flag}: unknown `{name}`{hint}; known: {}", quoted(known)))
    })
}

fn parts(arm: &[Row], against: &[Row]) -> Vec<(String, Vec<PartDifference>)> {
    let all = decompose(arm, against, None).map(|parts| ("all".to_owned(), parts));
    let class = |class: SloClass| {
        decompose(arm, against, Some(class)).map(|parts| (class.name().to_owned(), parts))
    };
    let classes: Vec<_> = SloClass::ALL.into_iter().filter_map(class).collect();
    // The only class is all there is.
    let classes = if classes.len() > 1 { classes } else { Vec::new() };
    all.into_iter().chain(classes).collect()
}
