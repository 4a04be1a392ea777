//! The workload of a scenario: which of the four kinds it is, and its defaults.

use crate::problem::{Place, Problem, quoted};
use crate::scenario::plan::Workload;
use crate::scenario::schema::{DistributionFields, MixFields, Scenario, TokenFields};
use crate::workload_spec::{self, ClassNames, trace_problem};
use crate::yaml::{Node, Whole};
use blis_core::Time;
use blis_workload::{Mix, SimpleLength, SimpleWorkload, SpecError, TraceSource};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const DEFAULT_RATE: f64 = 1.0;
const DEFAULT_REQUESTS: u64 = 100;

/// The workload, and what its own file says about seed and horizon.
pub(super) struct Resolved {
    pub(super) workload: Workload,
    pub(super) seed: Option<u64>,
    pub(super) horizon: Option<Time>,
}

/// Reads and checks the workload of `scenario`, which was decoded from `tree` and ends at
/// `horizon`.
pub(super) fn workload(
    scenario: &Scenario,
    tree: &Node,
    horizon: Option<Time>,
) -> Result<Resolved, Problem> {
    let fields = &scenario.workload;
    let kinds = [
        ("spec", fields.spec.is_some()),
        ("trace", fields.trace.is_some()),
        ("distribution", fields.distribution.is_some()),
        ("mix", fields.mix.is_some()),
    ];
    let given: Vec<&str> =
        kinds.iter().filter(|(_, given)| *given).map(|(kind, _)| *kind).collect();
    if given.len() > 1 {
        let places = given.iter().map(|kind| tree.place_of(&format!("workload.{kind}")));
        let flag = places.into_iter().find(|place| matches!(place, Place::Flag(_)));
        let place = flag.unwrap_or_else(|| tree.place_of("workload"));
        let message = format!("{} are given together; keep exactly one", quoted(&given));
        return Err(Problem::new(place, "workload", message));
    }
    let replaced = [
        ("workload.rate", fields.rate.is_some(), given == ["spec"]),
        ("workload.num_requests", fields.num_requests.is_some(), given == ["spec"]),
    ];
    if let Some((path, ..)) = replaced.iter().find(|(_, given, legal)| *given && !legal) {
        let message = match given.first() {
            Some(&"trace") => "a trace has its own arrivals; remove it",
            _ => "it only replaces the value of `workload.spec`; remove it",
        };
        return Err(Problem::new(tree.place_of(path), *path, message));
    }
    match (&fields.spec, &fields.trace, &fields.mix) {
        (Some(path), ..) => spec(scenario, tree, &beside(tree, "workload.spec", path), horizon),
        (_, Some(path), _) => trace(&beside(tree, "workload.trace", path), horizon),
        (.., Some(fields)) => mix(fields, tree, horizon),
        _ => distribution(&fields.distribution.clone().unwrap_or_default(), tree, horizon),
    }
}

/// `path` as the one who wrote it sees it: relative to the file it stands in, or to the current
/// directory if it stands on the command line.
fn beside(tree: &Node, field: &str, path: &str) -> PathBuf {
    match tree.place_of(field) {
        Place::File { file, .. } => {
            Path::new(&*file).parent().map_or_else(|| PathBuf::from(path), |dir| dir.join(path))
        }
        Place::Flag(_) | Place::Unknown => PathBuf::from(path),
    }
}

fn spec(
    scenario: &Scenario,
    tree: &Node,
    path: &Path,
    horizon: Option<Time>,
) -> Result<Resolved, Problem> {
    let fields = &scenario.workload;
    let file = workload_spec::read(path)?;
    let mut mix = file.mix;
    match fields.rate {
        Some(rate) => mix.rate_per_sec = rate.get(),
        None if file.has_rate => {}
        None => {
            let message = "missing; write the requests per second of all clients, or give `--rate`";
            return Err(Problem::new(file.tree.place.clone(), "aggregate_rate", message));
        }
    }
    if let Some(requests) = fields.num_requests {
        mix.num_requests = Some(requests.get()).filter(|&n| n > 0);
    }
    // The scenario's own horizon wins over the specification's, even if it is later.
    let explicit = scenario.horizon_us.is_some();
    mix.horizon = if explicit { horizon } else { file.horizon };
    mix.validate().map_err(|error| {
        if error.field == "num_requests" && fields.num_requests.is_some() {
            return workload_spec::translate(tree, "workload", &error);
        }
        workload_spec::translate(&file.tree, "", &error)
    })?;
    Ok(Resolved { seed: file.seed, horizon: mix.horizon, workload: Workload::Mix(mix) })
}

fn trace(path: &Path, horizon: Option<Time>) -> Result<Resolved, Problem> {
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| Problem::unreadable(&name, &error);
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        // It is read twice, once to check it and once to run it.
        return Err(Problem::of_file(&name, "not a regular file; name a trace file"));
    }
    let hash = hash_file(path).map_err(unreadable)?;
    let summary = TraceSource::open(path)
        .and_then(TraceSource::summarize)
        .map_err(|error| trace_problem(&error))?;
    let workload = Workload::Trace { path: path.to_owned(), requests: summary.requests, hash };
    Ok(Resolved { workload, seed: None, horizon })
}

fn hash_file(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut state = super::canonical::START;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(state);
        }
        state = super::canonical::hash_more(state, &buffer[..read]);
    }
}

fn mix(fields: &MixFields, tree: &Node, horizon: Option<Time>) -> Result<Resolved, Problem> {
    const PATH: &str = "workload.mix.clients";
    let mix = Mix {
        clients: workload_spec::clients(tree, PATH, &fields.clients, ClassNames::Current)?,
        rate_per_sec: fields.aggregate_rate.map_or(DEFAULT_RATE, |rate| rate.get()),
        num_requests: requests(fields.num_requests),
        horizon,
        seed: 0,
    };
    mix.validate().map_err(|error| workload_spec::translate(tree, "workload.mix", &error))?;
    Ok(Resolved { workload: Workload::Mix(mix), seed: None, horizon })
}

fn requests<const MIN: u64, const MAX: u64>(given: Option<Whole<MIN, MAX>>) -> Option<u64> {
    Some(given.map_or(DEFAULT_REQUESTS, Whole::get)).filter(|&n| n > 0)
}

fn distribution(
    fields: &DistributionFields,
    tree: &Node,
    horizon: Option<Time>,
) -> Result<Resolved, Problem> {
    const PATH: &str = "workload.distribution";
    let process = fields.arrival.as_deref().unwrap_or("constant");
    let arrival =
        workload_spec::arrival(process, fields.cv.map(|cv| cv.get())).map_err(|text| {
            let path = format!("{PATH}.arrival");
            Problem::new(tree.place_of(&path), path, text)
        })?;
    if fields.cv.is_some() && process != "gamma" {
        let path = format!("{PATH}.cv");
        let message =
            format!("arrivals that are `{process}` have no `cv`; remove it, or use `gamma`");
        return Err(Problem::new(tree.place_of(&path), path, message));
    }
    let mix = Mix::simple(SimpleWorkload {
        rate_per_sec: fields.rate.map_or(DEFAULT_RATE, |rate| rate.get()),
        num_requests: requests(fields.num_requests),
        horizon,
        seed: 0,
        arrival,
        prefix_tokens: fields.prefix_tokens.map_or(0, Whole::get_u32),
        prompt: lengths(&fields.prompt_tokens),
        output: lengths(&fields.output_tokens),
    });
    mix.validate().map_err(|error| in_distribution(tree, &error))?;
    Ok(Resolved { workload: Workload::Mix(mix), seed: None, horizon })
}

fn lengths(fields: &TokenFields) -> SimpleLength {
    SimpleLength {
        mean: fields.mean.map_or(512.0, |mean| mean.get()),
        std_dev: fields.stdev.map_or(256.0, |stdev| stdev.get()),
        min: fields.min.map_or(2, Whole::get_u32),
        max: fields.max.map_or(7_000, Whole::get_u32),
    }
}

fn in_distribution(tree: &Node, error: &SpecError) -> Problem {
    let field = error
        .field
        .replace("clients[0].", "")
        .replace("input.", "prompt_tokens.")
        .replace("output.", "output_tokens.")
        .replace("arrival.", "")
        .replace("rate_per_sec", "rate")
        .replace("std_dev", "stdev");
    let path = format!("workload.distribution.{field}");
    let message = format!("found `{}`; legal: {}", error.found, error.legal);
    Problem::new(tree.place_of(&path), path, message)
}
