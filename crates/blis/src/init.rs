//! `blis init`: a first scenario and a study of it, from a few flags or questions.

use crate::args::{FileKind, InitArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::schema;
use crate::target::Target;
use blis_lab::capacity::Slo;
use blis_scenario::{Draft, Place};
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::Path;

/// Tokens of KV memory that an instance must hold: one request of the longest context of today's
/// models, or many shorter ones.
const LEAST_KV_TOKENS: u64 = 131_072;

/// Fields of arms whose router hears of KV events.
const EVENTS: &str = ", signals: {kv_event_delay_us: 10000}";

/// What stands behind the gateway in the study: what people deploy, and what each part of it adds.
/// A strategy, what goes with it, and what it is there for.
const ARMS: [(&str, &str, &str); 5] = [
    ("llm-d-1.0-precise", EVENTS, "what llm-d's guides ship, with KV events"),
    ("llm-d-1.0", "", "the same with hits estimated from what was sent"),
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
    let (tp, instances) = parallelism(args)?;
    let scenario = scenario(args, tp, instances)?;
    Draft::from_text("scenario.yaml", &scenario)?.resolve()?;
    let folder = args.folder.as_path();
    let files = [
        ("scenario.yaml", scenario),
        ("study.yaml", study(&targets)),
        (".blis/scenario.schema.json", schema::text(FileKind::Scenario)),
        (".blis/study.schema.json", schema::text(FileKind::Study)),
    ];
    let taken = files.iter().take(2).find(|(name, _)| folder.join(name).exists());
    if let Some((name, _)) = taken {
        let path = folder.join(name);
        let message = format!("{} is there already; name another folder", path.display());
        return Err(Failure::Input(message));
    }
    let made = std::fs::create_dir_all(folder.join(".blis"));
    made.map_err(|error| Failure::Input(format!("{}: {error}", folder.display())))?;
    for (name, text) in &files {
        Output::whole(&Target::out(&folder.join(name))?, text)?;
    }
    let [scenario, study] = [folder.join("scenario.yaml"), folder.join("study.yaml")];
    let (scenario, study) = (scenario.display(), study.display());
    output::print(&format!(
        "{instances} instances of {} on {tp} {} each.\n\nblis run {scenario}\nblis study {study}\n",
        args.model, args.hardware
    ))
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
    args.rate = Some(ask("Requests or sessions per second, or a share such as 90%", "90%")?);
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

/// Tensor parallelism and instances: what is said, else the least parallelism with enough memory.
fn parallelism(args: &InitArgs) -> Result<(u32, u32), Failure> {
    let tries: Vec<u32> = match args.tp {
        Some(tp) => vec![tp],
        None => [1, 2, 4, 8, 16].into_iter().filter(|tp| *tp <= args.gpus).collect(),
    };
    if let Some(tp) = args.tp.filter(|tp| *tp > args.gpus) {
        let message = format!("--tp: found `{tp}`; legal: at most --gpus, which is {}", args.gpus);
        return Err(Failure::Input(message));
    }
    let mut problem = None;
    for tp in &tries {
        let (model, hardware) = (quoted(&args.model), quoted(&args.hardware));
        let text = format!("model: {model}\nhardware: {hardware}\ntp: {tp}\n");
        match Draft::from_text("scenario.yaml", &text)?.without_workload().resolve() {
            Ok(checked) => {
                let engine = &checked.plan().engine;
                let tokens = u64::from(engine.total_kv_blocks) * u64::from(engine.block_size);
                if args.tp.is_some() || tokens >= LEAST_KV_TOKENS {
                    return Ok((*tp, (args.gpus / tp).max(1)));
                }
            }
            Err(problems) => problem = Some(problems),
        }
    }
    match problem {
        Some(problems) => Err(problems.into()),
        None => Err(Failure::Input(format!(
            "{} {} have no room for {} and {LEAST_KV_TOKENS} tokens of KV; use more or larger GPUs",
            args.gpus, args.hardware, args.model
        ))),
    }
}

/// The scenario.
fn scenario(args: &InitArgs, tp: u32, instances: u32) -> Result<String, Failure> {
    let mut workload = String::new();
    let lengths = args.prompt_tokens.zip(args.output_tokens);
    let written = match (&args.trace, lengths) {
        (Some(trace), _) => writeln!(workload, "  trace: {}", quoted(&absolute(trace)?)),
        (None, Some((prompt, output))) => write!(
            workload,
            "  distribution:               # one kind of client, normal lengths\n    \
             prompt_tokens: {{mean: {prompt}, stdev: {}}}\n    \
             output_tokens: {{mean: {output}, stdev: {}}}\n    num_requests: 20000\n",
            prompt / 2,
            output / 2,
        ),
        (None, None) => writeln!(workload, "  preset: {}", quoted(&args.workload)),
    };
    written.expect("a string takes all");
    if let Some(rate) = &args.rate {
        let (indent, what) = match (&args.trace, lengths) {
            (Some(_), _) => return Err(Failure::Input("a trace has its own rate".to_owned())),
            (None, Some(_)) => ("    ", "requests"),
            (None, None) => ("  ", "requests or sessions"),
        };
        let comment = format!("# {what} per second, or a share such as 90%");
        writeln!(workload, "{indent}rate: {rate}    {comment}").expect("as above");
    }
    let strategy = ARMS[0].0;
    Ok(format!(
        "# yaml-language-server: $schema=.blis/scenario.schema.json\n\
         # A cluster and what is sent to it. `blis run scenario.yaml` simulates it.\n\
         model: {}\nhardware: {}\ntp: {tp}                         # GPUs of an instance\n\
         cluster: {{instances: {instances}}}\n\
         strategy: {strategy}   # `blis strategies` lists them\n\
         signals:\n  \
         snapshot_refresh_interval_us: 50000   # the router polls every 50 ms, as llm-d does\n\
         workload:\n{workload}",
        quoted(&args.model),
        quoted(&args.hardware),
    ))
}

/// The study.
fn study(targets: &[Slo]) -> String {
    let mut text = String::from(
        "# yaml-language-server: $schema=.blis/study.schema.json\n\
         # Routers side by side on the scenario. `blis study study.yaml --report study.html`\n\
         question: Which router serves this traffic best, and does it meet the targets?\n\
         base: scenario.yaml\narms:\n",
    );
    for (name, signals, tests) in ARMS {
        writeln!(
            text,
            "  - {{name: {name}, set: {{strategy: {name}{signals}}}, tests: \"{tests}\"}}"
        )
        .expect("a string takes all");
    }
    text.push_str(
        "metrics: [ttft_p99, itl_p99, e2e_mean, steady_responses_per_sec, hit_rate]\nhypotheses:\n",
    );
    for Slo { text: target, .. } in targets {
        let at = target.find(['<', '>', '=']).unwrap_or(target.len());
        let (metric, limit) = target.split_at(at);
        for (name, ..) in ARMS {
            let claim = format!("{}({name}) {limit}", metric.trim());
            writeln!(text, "  - {{name: \"{name}: {target}\", claim: {claim}}}").expect("as above");
        }
    }
    text.push_str(
        "  - name: knowing the caches pays\n    \
         claim: ttft_p99(llm-d-1.0-precise) < ttft_p99(round-robin)\n    \
         because: cached prompts need not be computed again\n",
    );
    text
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
