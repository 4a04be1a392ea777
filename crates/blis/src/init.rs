//! `blis init`: a first scenario and a study of it, from a few flags or questions.

use crate::args::{FileKind, InitArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::schema;
use crate::target::Target;
use blis_core::SloClass;
use blis_lab::Metric;
use blis_lab::capacity::Slo;
use blis_lab::verdict::bound as number;
use blis_report::run::sessions;
use blis_scenario::{Draft, Place, Plan, Workload, presets};
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::Path;

/// Tokens of KV memory that an instance must hold: one request of the longest context of today's
/// models, or many shorter ones.
const LEAST_KV_TOKENS: u64 = 131_072;

/// Requests of a run whose workload does not say how many; studies add what a steady state needs.
const REQUESTS: u32 = 20_000;

/// What a study of prompts that have nothing in common says first.
const NOTHING_SHARED: &str = "\
    # No two prompts of this workload begin alike: nothing can be found in a cache, so routers that\n\
    # look for cached prefixes have nothing to gain. For conversations: `--workload \
    multi-turn-4x512`.\n";

/// Fields of arms whose router hears of KV events.
const EVENTS: &str = ", signals: {kv_event_delay_us: 10000}";

/// What stands behind the gateway in the study: what people deploy, and what each part of it adds.
/// A strategy, what goes with it, and what it is there for.
const ARMS: [(&str, &str, &str); 6] = [
    ("llm-d-1.0-precise", EVENTS, "what llm-d's guides ship, with KV events"),
    ("llm-d-1.0", "", "the same with hits estimated from what was sent"),
    (
        "llm-d-three-scorers",
        "",
        "three scorers that llm-d ships: cached prefix, requests and tokens under way",
    ),
    ("session-sticky", "", "sessions stay where they are"),
    ("least-harm-router", EVENTS, "cached tokens weighed against the delay to others"),
    ("round-robin", "", "no knowledge at all"),
];

/// Writes both files, and the schemas by which editors check them.
pub(crate) fn init(args: &InitArgs) -> Result<(), Failure> {
    let args = &answered(args)?;
    let mut targets = Vec::new();
    for text in &args.slo {
        targets.extend(Slo::read(text, Place::Flag("--slo".into()), "")?);
    }
    let machine = machine(args)?;
    let instances = (args.gpus / machine.tp).max(1);
    let is_share = args.rate.as_ref().is_some_and(|rate| rate.trim_end().ends_with('%'));
    let draft = |rate: Option<&str>| -> Result<_, Failure> {
        let text = scenario(args, &machine, instances, rate)?;
        let checked = Draft::from_text("scenario.yaml", &text)?.resolve()?;
        Ok((text, checked))
    };
    let (_, as_asked) = draft(args.rate.as_deref())?;
    let rate = args.rate.as_ref().map(|rate| arrivals(rate, as_asked.plan()));
    let (text, checked) = draft(rate.as_deref())?;
    let plan = checked.plan();
    let scenario = completed(&text, plan, &targets);
    let folder = args.folder.as_path();
    let files = [
        ("scenario.yaml", scenario),
        ("study.yaml", study(&targets, plan, is_share)),
        (".blis/scenario.schema.json", schema::text(FileKind::Scenario)),
        (".blis/study.schema.json", schema::text(FileKind::Study)),
    ];
    put(folder, &files)?;
    let [scenario, study] = [folder.join("scenario.yaml"), folder.join("study.yaml")];
    let (scenario, study) = (scenario.display(), study.display());
    // A share of saturation is not measured yet.
    let sent = sessions(plan).filter(|_| args.rate.is_some() && !is_share);
    let sent = sent.map_or_else(String::new, |it| format!("{it}.\n"));
    let (model, tp, gpu) = (&args.model, machine.tp, &args.hardware);
    output::print(&format!(
        "{instances} instances of {model} on {tp} {gpu} each.\n{sent}\nblis run {scenario}\n\
         blis study {study}\n"
    ))
}

/// Writes `files`; the first two must be new.
fn put(folder: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let taken = files.iter().take(2).find(|(name, _)| folder.join(name).exists());
    if let Some((name, _)) = taken {
        let path = folder.join(name);
        let message = format!("{} is there already; name another folder", path.display());
        return Err(Failure::Input(message));
    }
    let made = std::fs::create_dir_all(folder.join(".blis"));
    made.map_err(|error| Failure::Input(format!("{}: {error}", folder.display())))?;
    for (name, text) in files {
        Output::whole(&Target::out(&folder.join(name))?, text)?;
    }
    Ok(())
}

/// `args` with what is missing asked for, if somebody is there to answer.
fn answered(args: &InitArgs) -> Result<InitArgs, Failure> {
    let mut args = args.clone();
    let said = args.rate.is_some() || args.trace.is_some();
    if said || !io::stdin().is_terminal() {
        return Ok(args);
    }
    args.model = ask("Model", &args.model)?;
    args.hardware = ask("GPU", &args.hardware)?;
    args.gpus = ask("How many GPUs", &args.gpus.to_string())?
        .parse()
        .map_err(|_| Failure::Input("the number of GPUs is a whole number".to_owned()))?;
    args.workload = ask("Workload (`blis workloads` lists them)", &args.workload)?;
    args.rate = Some(ask("Requests per second, or a share of saturation such as 90%", "90%")?);
    let target = ask("Target, or nothing", "ttft_p99 < 1s")?;
    args.slo = vec![target].into_iter().filter(|target| !target.is_empty()).collect();
    Ok(args)
}

fn ask(question: &str, default: &str) -> Result<String, Failure> {
    let read = || -> io::Result<String> {
        write!(io::stderr(), "{question} [{default}]: ")?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(line.trim().to_owned())
    };
    let line = read().map_err(|error| Failure::Input(format!("no answer: {error}")))?;
    Ok(if line.is_empty() { default.to_owned() } else { line })
}

/// What an instance runs on.
struct Machine {
    tp: u32,
    /// Whether its step times are put together from measured operators, for want of a profile.
    operators: bool,
}

/// Tensor parallelism as it is said, else the least with enough memory.
fn machine(args: &InitArgs) -> Result<Machine, Failure> {
    let (model, gpu) = (&args.model, &args.hardware);
    let draft = |tp: u32| {
        let mut draft = Draft::default().without_workload();
        draft.set("--model", "model", model);
        draft.set("--hardware", "hardware", gpu);
        draft.set("--tp", "tp", &tp.to_string());
        draft
    };
    if let Some(tp) = args.tp.filter(|tp| *tp > args.gpus) {
        let message = format!("--tp: found `{tp}`; legal: at most --gpus, which is {}", args.gpus);
        return Err(Failure::Input(message));
    }
    let fits = |tp: u32| match draft(tp).resolve() {
        Ok(checked) => {
            let engine = &checked.plan().engine;
            let tokens = u64::from(engine.total_kv_blocks) * u64::from(engine.block_size);
            Ok(args.tp.is_some() || tokens >= LEAST_KV_TOKENS)
        }
        // More GPUs may have the room that these have not.
        Err(problems) if args.tp.is_none() && problems.iter().all(|it| it.path == "tp") => {
            Ok(false)
        }
        Err(problems) => Err(problems),
    };
    let tries = args.tp.map_or_else(|| vec![1, 2, 4, 8, 16, 32], |tp| vec![tp]);
    let mut needed = None;
    for tp in tries {
        if fits(tp)? {
            needed = Some(tp);
            break;
        }
    }
    let Some(tp) = needed.filter(|&tp| tp <= args.gpus) else {
        let gpus = args.gpus;
        let needs = match needed {
            Some(tp) => format!("it needs {tp}: set `--gpus {tp}`, or name larger GPUs"),
            None => "name larger GPUs".to_owned(),
        };
        return Err(Failure::Input(format!(
            "{gpus} {gpu} have no room for {model} and {LEAST_KV_TOKENS} tokens of KV; {needs}"
        )));
    };
    let mut measured = draft(tp);
    measured.set("--latency-model", "latency.model", "operators");
    let is_roofline = draft(tp).resolve()?.plan().latency_kind() == "roofline";
    Ok(Machine { tp, operators: is_roofline && measured.resolve().is_ok() })
}

/// The scenario as it is written: with what only its plan tells.
fn completed(text: &str, plan: &Plan, targets: &[Slo]) -> String {
    let mut text = text.to_owned();
    let classes = || {
        SloClass::ALL.into_iter().filter(|class| match &plan.workload {
            Workload::Mix(mix) => mix.clients.iter().any(|client| client.class == *class),
            Workload::Trace { .. } => true,
        })
    };
    let mut lines = String::new();
    for class in classes() {
        let limit = |field: &str| {
            let of = |(metric, limit): (Metric, f64)| {
                let name = metric.name();
                let bare = name.strip_prefix(&format!("{}.", class.name())).unwrap_or(&name);
                bare.starts_with(&format!("{field}_")).then(|| format!("{field}_ms: {limit}"))
            };
            targets.iter().filter_map(Slo::limit).find_map(of)
        };
        let limits: Vec<String> = ["ttft", "itl", "e2e"].into_iter().filter_map(limit).collect();
        if !limits.is_empty() {
            writeln!(lines, "  {}: {{{}}}", class.name(), limits.join(", ")).expect("as above");
        }
    }
    if !lines.is_empty() {
        let about = "# `run` says which share of the requests is within them";
        write!(text, "slo:                          {about}\n{lines}").expect("as above");
    }
    text
}

/// A rate of requests as the workload of `plan` counts it, with a comment. Sessions send several
/// requests each, but people know how many requests they serve.
fn arrivals(rate: &str, plan: &Plan) -> String {
    let mix = match &plan.workload {
        Workload::Mix(mix) => Some(mix),
        Workload::Trace { .. } => None,
    };
    let (Some(mix), Ok(requests)) = (mix, rate.parse::<f64>()) else { return rate.to_owned() };
    match mix.requests_per_arrival() {
        Some(each) => {
            let sessions = format!("{:.3e}", requests / each).parse().unwrap_or(requests / each);
            let each = number(each);
            let about = format!("sessions per second of {each} requests each, so {rate} requests");
            format!("{sessions}    # {about} per second")
        }
        None if mix.has_sessions() => format!("{rate}    # sessions per second"),
        None => format!("{rate}    # requests per second, or a share of saturation such as 90%"),
    }
}

/// The scenario; `rate` as its workload counts it.
fn scenario(
    args: &InitArgs,
    machine: &Machine,
    instances: u32,
    rate: Option<&str>,
) -> Result<String, Failure> {
    let mut workload = String::new();
    let lengths = args.prompt_tokens.zip(args.output_tokens);
    let written = match (&args.trace, lengths) {
        (Some(trace), _) => writeln!(workload, "  trace: {}", quoted(&absolute(trace)?)),
        (None, Some((prompt, output))) => write!(
            workload,
            "  distribution:               # one kind of client, normal lengths\n    \
             prompt_tokens: {{mean: {prompt}, stdev: {}}}\n    \
             output_tokens: {{mean: {output}, stdev: {}}}\n    num_requests: {REQUESTS}\n",
            prompt / 2,
            output / 2,
        ),
        (None, None) => writeln!(workload, "  preset: {}", quoted(&args.workload)),
    };
    written.expect("a string takes all");
    if let Some(rate) = rate {
        if args.trace.is_some() {
            return Err(Failure::Input("a trace has its own rate".to_owned()));
        }
        let indent = if lengths.is_some() { "    " } else { "  " };
        let preset = presets::find(&args.workload).ok().filter(|_| lengths.is_none());
        let endless = preset.is_some_and(|preset| !preset.text.contains("num_requests"));
        let end =
            if endless { format!("{indent}num_requests: {REQUESTS}\n") } else { String::new() };
        write!(workload, "{indent}rate: {rate}\n{end}").expect("as above");
    }
    let (strategy, tp) = (ARMS[0].0, machine.tp);
    let latency = if machine.operators { "latency: {model: operators}\n" } else { "" };
    Ok(format!(
        "# yaml-language-server: $schema=.blis/scenario.schema.json\n\
         # A cluster and what is sent to it. `blis run scenario.yaml` simulates it.\n\
         model: {}\nhardware: {}\ntp: {tp}                         # GPUs of an instance\n\
         {latency}cluster: {{instances: {instances}}}\n\
         strategy: {strategy}   # `blis strategies` lists them\n\
         signals:\n  \
         snapshot_refresh_interval_us: 50000   # the router polls every 50 ms, as llm-d does\n\
         workload:\n{workload}",
        quoted(&args.model),
        quoted(&args.hardware),
    ))
}

/// The study. How many instances the targets need is asked too, unless the rate is a share of what
/// the instances take.
fn study(targets: &[Slo], plan: &Plan, is_share: bool) -> String {
    let shares = match &plan.workload {
        Workload::Mix(mix) => mix.shares_prefixes(),
        Workload::Trace { .. } => true,
    };
    let warning = if shares { "" } else { NOTHING_SHARED };
    let asked = if targets.is_empty() { "" } else { ", and does it meet the targets" };
    let mut text = format!(
        "# yaml-language-server: $schema=.blis/study.schema.json\n\
         # Routers side by side on the scenario. `blis study study.yaml --report study.html`\n\
         {warning}question: Which router serves this traffic best{asked}?\n\
         base: scenario.yaml\narms:\n",
    );
    for (name, signals, tests) in ARMS {
        writeln!(
            text,
            "  - {{name: {name}, set: {{strategy: {name}{signals}}}, tests: \"{tests}\"}}"
        )
        .expect("a string takes all");
    }
    text.push_str(&numbers(targets, is_share));
    for Slo { text: target, .. } in targets {
        let at = target.find(['<', '>', '=']).unwrap_or(target.len());
        let (metric, limit) = target.split_at(at);
        for (name, ..) in ARMS {
            let claim = format!("{}({name}) {limit}", metric.trim());
            writeln!(text, "  - {{name: \"{name}: {target}\", claim: {claim}}}").expect("as above");
        }
    }
    let (name, because) = if shares {
        ("knowing the caches pays", "cached prompts need not be computed again")
    } else {
        ("knowing the load pays", "requests go where fewer tokens are under way")
    };
    let claim = "ttft_p99(llm-d-1.0-precise) < ttft_p99(round-robin)";
    let written = writeln!(text, "  - name: {name}\n    claim: {claim}\n    because: {because}");
    written.expect("as above");
    text
}

/// The numbers that the study looks at.
fn numbers(targets: &[Slo], is_share: bool) -> String {
    let all: Vec<String> = targets.iter().map(|it| quoted(&it.text)).collect();
    let (metric, capacity) = if all.is_empty() || is_share {
        ("", String::new())
    } else {
        let slo = all.join(", ");
        (", fewest_instances", format!("capacity: {{slo: [{slo}], vary: instances}}\n"))
    };
    let metrics = "ttft_p99, itl_p99, e2e_mean, steady_responses_per_sec, hit_rate";
    format!("metrics: [{metrics}{metric}]\n{capacity}hypotheses:\n")
}

/// `text` as a YAML string.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// The trace's path from wherever the scenario stands.
fn absolute(path: &Path) -> Result<String, Failure> {
    let path = path.canonicalize();
    let path = path.map_err(|error| Failure::Input(format!("--trace: {error}")))?;
    Ok(path.display().to_string())
}
