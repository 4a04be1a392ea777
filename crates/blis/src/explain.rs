//! `blis explain`: why an arm of a study is better, and what is left to gain.

mod components;
mod headroom;
mod page;
mod regret;

use crate::args::TextFormat;
use crate::args::lab::ExplainArgs;
use crate::compare::metrics;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress::{Bar, Trials};
use crate::report::grid::folded;
use crate::report::json::text;
use crate::report::table::bold;
use crate::study::{open, sent, settled, tell_notes, write};
use crate::trials::Trying;
use blis_core::SloClass;
use blis_lab::Metric;
use blis_lab::counterfactual::Options;
use blis_lab::explain::{
    Ablation, Decisions, Headroom, PartDifference, Question, Reached, Shares, decisions, decompose,
};
use blis_lab::stats::Estimate;
use blis_lab::study::{self, Study};
use blis_lab::verdict::number;
use blis_scenario::json::Fields;
use blis_scenario::problem::{hint, quoted};
use blis_scenario::row::Row;
use serde_json::Value;

/// What was found.
struct Explained<'a> {
    study: &'a Study,
    /// The arm, and what it is compared with.
    arms: [String; 2],
    seeds: usize,
    /// What was asked about.
    metrics: Vec<Metric>,
    /// Where the time went, for all requests and for each class.
    parts: Vec<(String, Vec<PartDifference>)>,
    components: Vec<String>,
    shares: Vec<(Metric, Shares)>,
    /// What the arm reaches with oracles.
    reached: Option<Reached>,
    /// What its routing decisions were worth.
    decisions: Option<Decisions>,
}

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
    let page = open("--report", args.report.as_deref(), &args.study)?;
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(trials as u64, bar);
    let study = settled(outline.clone(), &trying, &watch)?;
    if !args.quiet {
        tell_notes(&study);
    }
    let asked = Asked { study: &study, ..asked };
    let explained = asked.answer(&trying, &watch).map_err(|failure| trying.kept(failure))?;
    drop(watch);
    write(page, || page::page(&explained))?;
    output::print(&match args.format {
        TextFormat::Table => report(&explained),
        TextFormat::Json => text(&object(&explained)),
    })
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
        let runner = trying.runner();
        let warmup = study.settle(&runner, watch)?;
        let rows = study.rows(&cells, seeds, warmup, &runner, watch)?;
        let ablation = self.ablation(warmup)?;
        let mut shares = Vec::new();
        if let Some(ablation) = &ablation {
            let rows = ablation.run(&runner, watch)?;
            let of = |&metric: &Metric| Some((metric, ablation.shares(&rows, &metric)?));
            shares = self.metrics.iter().filter_map(of).collect();
        }
        let headroom = self.headroom(warmup)?;
        let reached = headroom.map(|all| all.run(&rows[0], &runner, watch)).transpose()?;
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
        let found = decisions(&plan, &seeds, &options, || watch.watch())?;
        // Runs that were stopped have told less than they should.
        if interrupt::asked() { Err(blis_lab::Failure::INTERRUPTED) } else { Ok(found) }
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
        let message = format!("`{}` is compared with itself; name another arm", arms.levels[0]);
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

/// What is explained, in a line.
fn title(found: &Explained<'_>) -> String {
    let [arm, against] = &found.arms;
    let (seeds, sent) = (found.seeds, sent(found.study));
    format!(
        "{arm} against {against}, {seeds} seeds each; intervals are of 95 %, each by itself; {sent}"
    )
}

fn report(found: &Explained<'_>) -> String {
    let mut text = format!("{}\n{}\n\n", bold(&found.study.question), folded(&title(found), 0, 0));
    for (class, parts) in &found.parts {
        text += &(components::time(class, parts).text() + "\n");
    }
    if found.components.is_empty() {
        text += "The arm is not put together from components, so none can be left out; see `with:`.\n\n";
    }
    for (metric, shares) in &found.shares {
        text += &(components::effects(found, metric, shares).text() + "\n");
        if !shares.pairs.is_empty() {
            text += &(components::interactions(found, metric, shares).text() + "\n");
        }
        text += &paragraph(&components::compound(metric, shares));
    }
    if let Some(reached) = &found.reached {
        text += &paragraph(headroom::ABOUT);
        for metric in &found.metrics {
            let grids = [headroom::gaps(reached, metric), headroom::classes(reached, metric)];
            text.extend(grids.into_iter().flatten().map(|grid| grid.text() + "\n"));
            text.extend(headroom::sentence(reached, metric).map(|text| paragraph(&text)));
        }
    }
    if let Some(decisions) = &found.decisions {
        text += &paragraph(regret::ABOUT);
        text += &(regret::grid(decisions).text() + "\n");
        text += &paragraph(&regret::sentence(decisions));
    }
    text.trim_end().to_owned() + "\n"
}

fn paragraph(text: &str) -> String {
    folded(text, 0, 0) + "\n\n"
}

fn ranged(found: &Estimate) -> String {
    format!("{} ({} to {})", number(found.mean), number(found.low), number(found.high))
}

fn object(found: &Explained<'_>) -> Value {
    let mut all = Fields::default();
    all.text("arm", found.arms[0].clone());
    all.text("against", found.arms[1].clone());
    all.count("seeds", found.seeds as u64);
    let mut classes = Fields::default();
    for (class, parts) in &found.parts {
        let mut fields = Fields::default();
        for part in parts {
            let mut numbers = Fields::default();
            numbers.number("arm_ms", Some(part.arm));
            numbers.number("against_ms", Some(part.reference));
            if let Some(difference) = &part.difference {
                numbers.value("difference_ms", difference);
            }
            fields.value(part.part, numbers.into_value());
        }
        classes.value(class, fields.into_value());
    }
    all.value("decomposition", classes.into_value());
    let mut effects = Fields::default();
    for (metric, shares) in &found.shares {
        effects.value(&metric.name(), components::ablation(found, shares));
    }
    all.value("ablation", effects.into_value());
    if let Some(reached) = &found.reached {
        all.value("headroom", headroom::object(reached, &found.metrics));
    }
    if let Some(decisions) = &found.decisions {
        all.value("decisions", regret::object(decisions));
    }
    all.into_value()
}
