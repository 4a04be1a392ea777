//! The workload of a scenario: which of the four kinds it is, and its defaults.

use crate::files::Files;
use crate::presets;
use crate::problem::{Place, Problem, none_of, quoted};
use crate::problems::{Problems, Together, every};
use crate::rate::{Level, RateSpec, Written};
use crate::scenario::WORKLOAD_KINDS;
use crate::scenario::latency::{is_config, is_path};
use crate::scenario::plan::Workload;
use crate::scenario::schema::{
    DistributionFields, MixFields, Scenario, TokenFields, WorkloadFields,
};
use crate::workload_spec::{self, ClassNames, ClientContext, Clients, Section, SpecFile};
use crate::yaml::{Kind, Node, Whole};
use blis_core::{Span, Time};
use blis_metrics::SloTargets;
use blis_workload::{
    Arrival, MAX_TOKENS, Mix, Rate, Sample, SimpleLength, SimpleWorkload, SpecError, TraceEdit,
    TraceFormat, TraceOptions,
};
use std::path::{Path, PathBuf};

const DISTRIBUTION: &str = "workload.distribution";
const DEFAULT_RATE: RateSpec = RateSpec::Level(Level::PerSecond(1.0));
/// What is taken for the cluster's saturation while it is not known. Only the checks see it, and it
/// is high so that no number of requests takes too long.
const UNKNOWN_SATURATION: f64 = 1e6;
const DEFAULT_REQUESTS: u64 = 100;

/// The workload, and what its own file says about seed and horizon.
pub(super) struct Resolved {
    pub(super) workload: Workload,
    /// The rate as written. Until saturation is measured, where it is a share of that, the
    /// workload's is the share itself.
    pub(super) rate: Option<Written>,
    pub(super) notes: Vec<String>,
    /// Targets that go with the workload.
    pub(super) slo: Option<SloTargets>,
    pub(super) seed: Option<u64>,
    pub(super) horizon: Option<Time>,
    /// The files that a specification is read from besides its own.
    pub(super) files: Vec<PathBuf>,
}

impl Resolved {
    fn new(workload: Workload, rate: Option<Written>, horizon: Option<Time>) -> Resolved {
        let (notes, files) = (Vec::new(), Vec::new());
        Resolved { workload, rate, notes, slo: None, seed: None, horizon, files }
    }
}

/// A workload on its way: the scenario, the tree it was decoded from, and what else is known.
pub(super) struct Reader<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) tree: &'a Node,
    /// The model that is simulated, by its name in the catalogue, if it is known.
    pub(super) model: Option<&'a str>,
    /// When the scenario ends.
    pub(super) horizon: Option<Time>,
    /// What was read before.
    pub(super) files: &'a Files,
}

/// The paths of the files that `tree` is read from besides itself, as they were written.
pub(super) fn files(tree: &Node) -> Vec<PathBuf> {
    paths(tree).into_iter().map(|(_, path)| path).collect()
}

/// What the workload is called.
pub(super) fn name(fields: &WorkloadFields) -> String {
    let file = |path: &String| match Path::new(path).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.clone(),
    };
    match fields {
        WorkloadFields { preset: Some(name), .. } => name.clone(),
        WorkloadFields { spec: Some(path), .. } => format!("specification {}", file(path)),
        WorkloadFields { trace: Some(path), .. } => format!("trace {}", file(path)),
        WorkloadFields { mix: Some(_), .. } => "a mix of clients".to_owned(),
        _ => "a distribution".to_owned(),
    }
}

/// The fields that name files, and these.
pub(super) fn paths(tree: &Node) -> Vec<(&'static [&'static str], PathBuf)> {
    type Means = fn(&str) -> bool;
    let fields: [(&[&str], Means); 4] = [
        (&["workload", "spec"], |_| true),
        (&["workload", "trace"], |_| true),
        (&["latency", "model"], is_path),
        (&["model"], is_config),
    ];
    let path = |(field, means): (&'static [&'static str], Means)| {
        let node = field.iter().try_fold(tree, |node, step| node.field(step))?;
        match &node.kind {
            Kind::Scalar { text, .. } if !text.is_empty() && means(text) => {
                Some((field, beside(tree, &field.join("."), text)))
            }
            _ => None,
        }
    };
    fields.into_iter().filter_map(path).collect()
}

impl Reader<'_> {
    /// Reads and checks the workload.
    pub(super) fn read(&self) -> Result<Resolved, Problems> {
        let fields = &self.scenario.workload;
        let kind = self.kind()?;
        let sent = match kind {
            Some("preset") => self.preset(given(fields.preset.as_ref())?),
            Some("spec") => {
                let path = self.path("workload.spec", given(fields.spec.as_ref())?);
                path.and_then(|path| self.spec(self.files.spec(&path, self.model)?))
            }
            Some("trace") => {
                let path = self.path("workload.trace", given(fields.trace.as_ref())?);
                let whole = (path.and_then(regular), self.trace_options()).together();
                whole.and_then(|(path, options)| self.trace(&path, options))
            }
            Some("mix") => self.mix(given(fields.mix.as_ref())?),
            _ => self.distribution(&fields.distribution.clone().unwrap_or_default()),
        };
        Ok((self.check_amounts(kind), sent).together()?.1)
    }

    fn preset(&self, name: &str) -> Result<Resolved, Problems> {
        let preset = presets::find(name);
        let preset = preset.map_err(|text| self.tree.problem("workload.preset", text))?;
        self.spec(preset.read(self.model)?)
    }

    fn path(&self, field: &str, path: &str) -> Result<PathBuf, Problems> {
        if path.is_empty() {
            return Err(self.tree.problem(field, "found ``; legal: the path of a file"));
        }
        Ok(beside(self.tree, field, path))
    }

    /// The kind of workload that is given; refuses more than one.
    fn kind(&self) -> Result<Option<&'static str>, Problems> {
        let tree = self.tree;
        let given = WORKLOAD_KINDS.into_iter().filter(|kind| tree.has(&format!("workload.{kind}")));
        let given: Vec<&str> = given.collect();
        if given.len() < 2 {
            return Ok(given.first().copied());
        }
        let lengths = tree.place_of("workload.distribution");
        if matches!(lengths, Place::Flag(_)) {
            let others: Vec<&str> =
                given.iter().copied().filter(|kind| *kind != "distribution").collect();
            let message = format!(
                "it applies to the workload `distribution`, but the workload is {}; remove it",
                quoted(&others)
            );
            return Err(Problem::new(lengths, "workload", message).into());
        }
        let message = format!("{} are given together; keep exactly one", quoted(&given));
        Err(Problem::new(tree.place_of("workload"), "workload", message).into())
    }

    /// Refuses amounts that replace nothing in a workload of `kind`.
    fn check_amounts(&self, kind: Option<&str>) -> Result<(), Problems> {
        let replacing = ["rate", "num_requests"];
        let trace_only = [
            "trace_format",
            "speedup",
            "trace_start_s",
            "trace_end_s",
            "trace_sample",
            "trace_limit",
        ];
        let (specified, traced) = (matches!(kind, Some("spec" | "preset")), kind == Some("trace"));
        let replaces_nothing = if traced {
            "a trace has its own arrivals; remove it, or use `speedup` or `trace_limit`"
        } else {
            "it only applies to `workload.spec` or `workload.preset`; remove it"
        };
        let no_trace = "it only applies to traces; remove it, or set `workload.trace`";
        let unread = replacing.iter().filter(|_| !specified).map(|field| (field, replaces_nothing));
        let unread = unread.chain(trace_only.iter().filter(|_| !traced).map(|f| (f, no_trace)));
        let unread = unread.map(|(field, message)| (format!("workload.{field}"), message));
        let refuse = |(path, message)| Err::<(), _>(self.tree.problem(path, message));
        every(unread.filter(|(path, _)| self.tree.has(path)).map(refuse)).map(drop)
    }

    fn spec(&self, file: SpecFile) -> Result<Resolved, Problems> {
        self.tree.whole(&["workload.rate", "workload.num_requests", "horizon_us"])?;
        let (scenario, tree) = (self.scenario, self.tree);
        let fields = &scenario.workload;
        let mut mix = file.mix;
        let own = fields.rate.clone().map(|rate| Written::at(tree, "workload.rate", rate));
        let rate = own.or(file.rate.map(|rate| Written::at(&file.tree, "aggregate_rate", rate)));
        let Some(written) = &rate else {
            let message = "missing; write the requests per second of all clients, or give `--rate`";
            return Err(file.tree.problem("aggregate_rate", message));
        };
        mix.rate = provisional(&written.rate);
        if let Some(requests) = fields.num_requests {
            mix.num_requests = Some(requests.get()).filter(|&n| n > 0);
        }
        // The scenario's own horizon wins over the specification's, even if it is later.
        let explicit = scenario.horizon_us.is_some();
        mix.horizon = if explicit { self.horizon } else { file.horizon };
        mix.validate().map_err(|error| {
            // What the scenario replaces is the scenario's fault.
            let replaced = match error.field.as_str() {
                "rate" if fields.rate.is_some() => Some("workload.rate"),
                "rate" | "num_requests" if fields.num_requests.is_some() => {
                    Some("workload.num_requests")
                }
                _ => None,
            };
            match replaced {
                Some(path) => tree.problem(path, workload_spec::message(&error)),
                None => workload_spec::translate(&file.tree, "", &error),
            }
        })?;
        let SpecFile { notes, seed, slo, files, .. } = file;
        let horizon = mix.horizon;
        Ok(Resolved { workload: Workload::Mix(mix), rate, notes, seed, slo, horizon, files })
    }

    fn mix(&self, fields: &MixFields) -> Result<Resolved, Problems> {
        const BASE: &str = "workload.mix";
        let (tree, horizon) = (self.tree, self.horizon);
        let context = ClientContext { names: ClassNames::Current, model: self.model };
        let (clients, cohorts) = (&fields.clients, &fields.cohorts);
        let section = Section { tree, base: BASE, clients, cohorts };
        let Clients { clients, notes } = workload_spec::read_clients(&section, &context)?;
        let rate = fields.aggregate_rate.clone().unwrap_or(DEFAULT_RATE);
        let requests = requests(fields.num_requests, &rate, horizon);
        let mix = Mix { horizon, ..Mix::new(clients, provisional(&rate), requests) };
        tree.whole(&[BASE, "horizon_us"])?;
        mix.validate().map_err(|error| workload_spec::translate(tree, BASE, &error))?;
        let rate = Written::at(tree, "workload.mix.aggregate_rate", rate);
        Ok(Resolved { notes, ..Resolved::new(Workload::Mix(mix), Some(rate), horizon) })
    }

    fn distribution(&self, fields: &DistributionFields) -> Result<Resolved, Problems> {
        let (tree, horizon) = (self.tree, self.horizon);
        let (arrival, prompt, output) = (
            self.arrival(fields),
            Lengths { tree, group: "prompt_tokens" }.read(&fields.prompt_tokens),
            Lengths { tree, group: "output_tokens" }.read(&fields.output_tokens),
        )
            .together()?;
        let rate = fields.rate.clone().unwrap_or(DEFAULT_RATE);
        let mix = Mix::simple(SimpleWorkload {
            rate: provisional(&rate),
            num_requests: requests(fields.num_requests, &rate, horizon),
            horizon,
            seed: 0,
            arrival,
            prefix_tokens: fields.prefix_tokens.map_or(0, Whole::get_u32),
            prompt,
            output,
        });
        tree.whole(&[DISTRIBUTION, "horizon_us"])?;
        mix.validate().map_err(|error| in_distribution(tree, &error))?;
        let rate = Written::at(tree, "workload.distribution.rate", rate);
        Ok(Resolved::new(Workload::Mix(mix), Some(rate), horizon))
    }

    fn arrival(&self, fields: &DistributionFields) -> Result<Arrival, Problems> {
        let process = fields.arrival.as_deref().unwrap_or("constant");
        self.tree.whole(&["workload.distribution.arrival"])?;
        workload_spec::arrival(process, fields.cv.map(|cv| cv.get())).map_err(|(field, text)| {
            let field = field.replace("process", "arrival");
            self.tree.problem(format!("{DISTRIBUTION}.{field}"), text)
        })
    }

    /// The requests of a trace. It is read once to check it, and again in every run, which
    /// fails if its content is another by then.
    fn trace(&self, path: &Path, options: TraceOptions) -> Result<Resolved, Problems> {
        let content = self.files.content(path)?;
        let summary = self.files.trace(path, &options, &content)?;
        let workload = Workload::Trace {
            path: path.to_owned(),
            options,
            requests: summary.requests,
            closed_loop: summary.follow_ups > 0,
            content,
        };
        let mut resolved = Resolved::new(workload, None, self.horizon);
        if summary.skipped.total() > 0 {
            resolved.notes.push(format!("{}: left out {}", path.display(), summary.skipped));
        }
        Ok(resolved)
    }

    /// How a trace is read.
    fn trace_options(&self) -> Result<TraceOptions, Problems> {
        let fields = &self.scenario.workload;
        let format = fields.trace_format.as_deref().map(|name| {
            TraceFormat::from_name(name).ok_or_else(|| {
                let known = TraceFormat::ALL.map(TraceFormat::name);
                self.tree.problem("workload.trace_format", none_of(&known, name))
            })
        });
        let (format, edit) = (format.transpose(), self.trace_edit()).together()?;
        Ok(TraceOptions { format, edit })
    }

    fn trace_edit(&self) -> Result<TraceEdit, Problems> {
        let fields = &self.scenario.workload;
        let edit = TraceEdit {
            speedup: fields.speedup.map_or(1.0, |speedup| speedup.get()),
            from: fields.trace_start_s.map(|start| Span::from_secs_f64(start.get())),
            until: fields.trace_end_s.map(|end| Span::from_secs_f64(end.get())),
            sample: fields.trace_sample.map(|share| Sample { share: share.get(), seed: 0 }),
            limit: fields.trace_limit.map(Whole::get),
        };
        self.tree.whole(&["workload.trace_start_s", "workload.trace_end_s"])?;
        edit.validate().map_err(|error| {
            let path = match error.field.as_str() {
                "speedup" => "workload.speedup",
                "from" => "workload.trace_start_s",
                "until" => "workload.trace_end_s",
                "limit" => "workload.trace_limit",
                _ => "workload.trace_sample",
            };
            self.tree.problem(path, workload_spec::message(&error))
        })?;
        Ok(edit)
    }
}

/// The value of a field that is given, unless it is broken.
fn given<T>(field: Option<&T>) -> Result<&T, Problems> {
    field.ok_or(Problems::KNOWN)
}

/// `path`, if that is a file.
fn regular(path: PathBuf) -> Result<PathBuf, Problems> {
    let name = path.display().to_string();
    let meta = std::fs::metadata(&path).map_err(|error| Problem::unreadable(&name, &error))?;
    if !meta.is_file() {
        return Err(Problem::of_file(&name, "not a regular file; name a trace file").into());
    }
    Ok(path)
}

/// `path` as the one who wrote it sees it: relative to the file it stands in, or to the current
/// directory if it stands on the command line.
pub(super) fn beside(tree: &Node, field: &str, path: &str) -> PathBuf {
    match tree.place_of(field) {
        Place::File { file, .. } => {
            Path::new(&*file).parent().map_or_else(|| PathBuf::from(path), |dir| dir.join(path))
        }
        Place::Flag(_) | Place::Unknown => PathBuf::from(path),
    }
}

/// How many requests; without a number, they go on until the horizon, or else, if the rate changes,
/// until its last change.
fn requests<const MIN: u64, const MAX: u64>(
    given: Option<Whole<MIN, MAX>>,
    rate: &RateSpec,
    horizon: Option<Time>,
) -> Option<u64> {
    let endless = matches!(rate, RateSpec::Level(_) | RateSpec::Users(_)) && horizon.is_none();
    let default = endless.then_some(DEFAULT_REQUESTS);
    given.map(Whole::get).or(default).filter(|&n| n > 0)
}

/// The rate, as long as the cluster's saturation is not known.
fn provisional(rate: &RateSpec) -> Rate {
    rate.rate(UNKNOWN_SATURATION)
}

/// The lengths at one place of a distribution.
struct Lengths<'a> {
    tree: &'a Node,
    /// `prompt_tokens` or `output_tokens`.
    group: &'static str,
}

impl Lengths<'_> {
    fn read(&self, fields: &TokenFields) -> Result<SimpleLength, Problems> {
        self.tree.whole(&[&format!("{DISTRIBUTION}.{}", self.group)])?;
        let length = SimpleLength {
            mean: fields.mean.map_or(512.0, |mean| mean.get()),
            std_dev: fields.stdev.map_or(256.0, |stdev| stdev.get()),
            min: fields.min.map_or(2, Whole::get_u32),
            max: fields.max.map_or(7_000, Whole::get_u32),
        };
        let (mean, least, most) = (length.mean, f64::from(length.min), f64::from(length.max));
        self.ordered(("min", least), ("max", most))?;
        // A mean that is no legal number at all is refused with the rest of the mix.
        if (0.0..=f64::from(MAX_TOKENS)).contains(&mean) {
            self.ordered(("mean", mean), ("max", most))?;
            self.ordered(("min", least), ("mean", mean))?;
        }
        Ok(length)
    }

    /// Refuses a first that is greater than the second. The one that was given is to blame; if both
    /// were, the mean or else the second is.
    fn ordered(&self, first: (&str, f64), second: (&str, f64)) -> Result<(), Problems> {
        if first.1 <= second.1 {
            return Ok(());
        }
        let path = |field: &str| format!("{DISTRIBUTION}.{}.{field}", self.group);
        let given = |field: &str| self.tree.has(&path(field));
        let blame_first = given(first.0) && (first.0 == "mean" || !given(second.0));
        let ((field, found), (other, bound), direction) =
            if blame_first { (first, second, "at most") } else { (second, first, "at least") };
        let place = self.tree.place_of(&path(field));
        let name = match (&place, other) {
            (Place::Flag(_), "mean") => format!("--{}", self.group.replace('_', "-")),
            (Place::Flag(_), _) => format!("--{}-{other}", self.group.replace('_', "-")),
            _ => format!("{}.{other}", self.group),
        };
        let origin = if given(other) { "the value of" } else { "the default of" };
        let message = format!("found `{found}`; legal: {direction} {bound}, {origin} `{name}`");
        Err(Problem::new(place, path(field), message).into())
    }
}

fn in_distribution(tree: &Node, error: &SpecError) -> Problems {
    let field = error
        .field
        .replace("clients[0].", "")
        .replace("input.text.", "prompt_tokens.")
        .replace("output.", "output_tokens.")
        .replace("arrival.", "")
        .replace("std_dev", "stdev");
    let at = |field: &str| format!("{DISTRIBUTION}.{field}");
    let requests = workload_spec::at_fault(tree, &at("rate"), &at("num_requests"), error);
    let path = if requests { at("num_requests") } else { at(&field) };
    tree.problem(path, workload_spec::message(error))
}
