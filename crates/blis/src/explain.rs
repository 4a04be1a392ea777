//! `blis explain`: why an arm of a study is better.

use crate::args::TextFormat;
use crate::args::lab::ExplainArgs;
use crate::compare::metrics;
use crate::failure::Failure;
use crate::output;
use crate::progress::{Bar, Trials};
use crate::report::grid::{Grid, folded};
use crate::report::json::{estimate, text};
use crate::report::table::bold;
use crate::study::{heading, tell_notes};
use crate::trials::{Trying, consult};
use blis_core::SloClass;
use blis_lab::Metric;
use blis_lab::explain::{Ablation, PartDifference, Question, Shares, decompose};
use blis_lab::json::Fields;
use blis_lab::problem::{hint, quoted};
use blis_lab::row::Row;
use blis_lab::stats::Estimate;
use blis_lab::study::{self, Study};
use blis_lab::verdict::number;
use serde_json::Value;

/// What was found.
struct Explained<'a> {
    study: &'a Study,
    /// The arm, and what it is compared with.
    arms: [String; 2],
    seeds: usize,
    /// Where the time went, for all requests and for each class.
    parts: Vec<(String, Vec<PartDifference>)>,
    components: Vec<String>,
    shares: Vec<(Metric, Shares)>,
}

/// Explains the arm that `args` name.
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    consult(&args.trials);
    let study = study::read(&args.study)?;
    let (levels, against) = levels(args, &study)?;
    let asked: Vec<Metric> = match args.metrics[..] {
        [] => {
            study.metrics.iter().find(|metric| !metric.is_searched()).copied().into_iter().collect()
        }
        _ => metrics(&args.metrics.iter().map(String::as_str).collect::<Vec<_>>())?,
    };
    let seeds = usize::from(args.seeds);
    let question = |warmup| Question { levels: levels.clone(), seeds, warmup };
    // Checked before anything runs.
    let subsets = Ablation::of(&study, &question(None))?;
    if !args.quiet {
        tell_notes(&study);
    }
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let pilots = study.trials() - study.cells.len() * study.seeds;
    let count = pilots + 2 * seeds + subsets.as_ref().map_or(0, Ablation::trials);
    let watch = Trials::new(count as u64, bar);
    let trying = Trying::new(&args.trials)?;
    let (runner, kept) = (trying.runner(), |failure| trying.kept(failure));
    let warmup = study.settle(&runner, &watch).map_err(kept)?;
    let cells = [&levels, &against].map(|levels| study.design.cell(levels));
    let rows = study.rows(&cells, seeds, warmup, &runner, &watch).map_err(kept)?;
    let ablation = Ablation::of(&study, &question(warmup))?;
    let mut shares = Vec::new();
    if let Some(ablation) = &ablation {
        let rows = ablation.run(&runner, &watch).map_err(kept)?;
        let of = |metric: Metric| Some((metric, ablation.shares(&rows, &metric)?));
        shares = asked.into_iter().filter_map(of).collect();
    }
    drop(watch);
    let explained = Explained {
        study: &study,
        arms: cells.map(|cell| study.design.names(cell).join(", ")),
        seeds,
        parts: parts(&rows[0], &rows[1]),
        components: ablation.map(|ablation| ablation.components).unwrap_or_default(),
        shares,
    };
    output::print(&match args.format {
        TextFormat::Table => report(&explained),
        TextFormat::Json => text(&object(&explained)),
    })
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

fn report(found: &Explained<'_>) -> String {
    let [arm, against] = &found.arms;
    let head = format!(
        "{}\n{arm} against {against}, {} seeds each; intervals are of 95 %, each by itself\n\n",
        bold(&found.study.question),
        found.seeds
    );
    let mut text = head;
    for (class, parts) in &found.parts {
        text += &(time(class, parts).text() + "\n");
    }
    if found.components.is_empty() {
        text +=
            "The arm is not put together from components, so none can be left out; see `with:`.\n";
    }
    for (metric, shares) in &found.shares {
        text += &(effects(found, metric, shares).text() + "\n");
        if !shares.pairs.is_empty() {
            text += &(interactions(found, metric, shares).text() + "\n");
        }
        text += &(folded(&compound(metric, shares), 0, 0) + "\n\n");
    }
    text.trim_end().to_owned() + "\n"
}

fn time(class: &str, parts: &[PartDifference]) -> Grid {
    let row = |part: &PartDifference| {
        let difference = part.difference.as_ref().map_or_else(|| "-".to_owned(), ranged);
        vec![part.part.to_owned(), number(part.arm), number(part.reference), difference]
    };
    Grid {
        title: format!("mean time to first token, ms, {class} requests"),
        header: ["part", "arm", "against", "difference (95 % interval)"].map(str::to_owned).into(),
        rows: parts.iter().map(row).collect(),
    }
}

fn effects(found: &Explained<'_>, metric: &Metric, shares: &Shares) -> Grid {
    let share = |part: &Estimate| format!("{:.0} %", 100.0 * part.mean / shares.total.mean);
    let row = |part: &blis_lab::explain::Part| {
        vec![
            found.components[part.component].clone(),
            ranged(&part.alone),
            ranged(&part.last),
            part.main.as_ref().map_or_else(|| "-".to_owned(), ranged),
            ranged(&part.shapley),
            share(&part.shapley),
        ]
    };
    let header = ["component", "alone", "last", "on average", "Shapley share", "of all"];
    Grid {
        title: format!("what components do to {}", heading(metric)),
        header: header.map(str::to_owned).into(),
        rows: shares.parts.iter().map(row).collect(),
    }
}

fn interactions(found: &Explained<'_>, metric: &Metric, shares: &Shares) -> Grid {
    let row = |pair: &blis_lab::explain::Pair| {
        let names = [pair.first, pair.second].map(|index| found.components[index].as_str());
        vec![names.join(" and "), ranged(&pair.interaction)]
    };
    Grid {
        title: format!("what pairs do to {} beyond what each does", heading(metric)),
        header: ["pair", "interaction (95 % interval)"].map(str::to_owned).into(),
        rows: shares.pairs.iter().map(row).collect(),
    }
}

/// Whether the compound is more than its parts, in a sentence.
fn compound(metric: &Metric, shares: &Shares) -> String {
    let beyond = &shares.beyond;
    let along = beyond.mean * shares.total.mean > 0.0;
    let answer = match (beyond.low > 0.0 || beyond.high < 0.0, along) {
        (true, true) => "The compound is more than the sum of its parts (super-additive)",
        (true, false) => "The compound is less than the sum of its parts (sub-additive)",
        (false, _) => "The compound is not clearly more or less than the sum of its parts",
    };
    format!(
        "{}: all together change it by {}, from {} to {}; alone they add up to {}; beyond that: {}. \
         {answer}.",
        heading(metric),
        ranged(&shares.total),
        number(shares.none.mean),
        number(shares.all.mean),
        ranged(&shares.alone),
        ranged(beyond)
    )
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
                numbers.value("difference_ms", estimate(difference));
            }
            fields.value(part.part, numbers.into_value());
        }
        classes.value(class, fields.into_value());
    }
    all.value("decomposition", classes.into_value());
    let mut effects = Fields::default();
    for (metric, shares) in &found.shares {
        effects.value(&metric.name(), ablation(found, shares));
    }
    all.value("ablation", effects.into_value());
    all.into_value()
}

fn ablation(found: &Explained<'_>, shares: &Shares) -> Value {
    let mut fields = Fields::default();
    let Shares { none, all, total, alone, beyond, parts, pairs } = shares;
    for (name, value) in
        [("none", none), ("all", all), ("total", total), ("alone", alone), ("beyond", beyond)]
    {
        fields.value(name, estimate(value));
    }
    let part = |part: &blis_lab::explain::Part| {
        let mut fields = Fields::default();
        fields.text("component", found.components[part.component].clone());
        fields.value("alone", estimate(&part.alone));
        fields.value("last", estimate(&part.last));
        if let Some(main) = &part.main {
            fields.value("main", estimate(main));
        }
        fields.value("shapley", estimate(&part.shapley));
        fields.into_value()
    };
    fields.value("components", parts.iter().map(part).collect::<Vec<Value>>());
    let pair = |pair: &blis_lab::explain::Pair| {
        let mut fields = Fields::default();
        let names = [pair.first, pair.second].map(|index| found.components[index].clone());
        fields.value("pair", names.to_vec());
        fields.value("interaction", estimate(&pair.interaction));
        fields.into_value()
    };
    fields.value("interactions", pairs.iter().map(pair).collect::<Vec<Value>>());
    fields.into_value()
}
