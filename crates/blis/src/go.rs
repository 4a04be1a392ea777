//! The command line of the Go program of the same name: what its calls mean here.
//!
//! A call of the Go program is `run` with flags that it has, `--model` among them, which it insists
//! on, and with nothing else. It is turned into flags of ours before anything is parsed, so that no
//! other module knows of it. What it takes for granted and we do not is written out: the last of a
//! repeated flag counts, a preset has one request per second, and the result is in its layout
//! unless it goes to a terminal.

mod bundle;
mod flags;
mod machine;
mod names;

pub(crate) use bundle::flags as bundle;

use crate::failure::{self, Failure};
use crate::output;
use flags::Takes;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

/// Commands of the Go program that are not ours, and what to do instead.
const COMMANDS: [(&str, &str); 5] = [
    (
        "convert",
        "`--workload-spec` reads `inference_perf` and `servegen_data` as they are, `blis workloads \
         NAME` prints a preset, `blis trace convert` reads the CSV of traces",
    ),
    (
        "compose",
        "write the `clients` of all specifications into one, each `rate_fraction` times the \
         `aggregate_rate` of its own",
    ),
    ("replay", "`blis run --trace FILE`"),
    ("observe", "`vllm bench serve --save-detailed`, whose results `blis calibrate` reads"),
    // Ours as well, and its flags are others.
    ("calibrate --trace-header", "`blis validate`"),
];

/// The flags of a call by name, without dashes; a switch has an empty value.
type Given = BTreeMap<&'static str, String>;

/// A command line.
pub(crate) struct Call {
    /// The words to parse.
    pub(crate) words: Result<Vec<OsString>, Failure>,
    /// Whether it is a call of the Go program.
    pub(crate) is_go: bool,
    /// Whether it has a flag that only the Go program has, so that nobody else can have meant it.
    pub(crate) is_surely: bool,
}

/// Reads the words of a command line, the program's name first.
pub(crate) fn read(words: Vec<OsString>) -> Call {
    let ours = |words| Call { words, is_go: false, is_surely: false };
    let Some(texts) = words.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>() else {
        return ours(Ok(words));
    };
    let start = texts.get(1..).unwrap_or_default().join(" ");
    if let Some((name, instead)) = COMMANDS.iter().find(|(name, _)| begins(&start, name)) {
        let message = format!("`{name}` is a command of the Go program; instead: {instead}");
        return ours(Err(Failure::Input(message)));
    }
    let [program, "run", flags @ ..] = texts.as_slice() else { return ours(Ok(words)) };
    let Some(given) = parse(flags) else {
        return ours(refuse_foreign(flags).map(|()| words));
    };
    let spelled = translate(given).map(|given| {
        let flags = given.iter().map(|(name, value)| spell(name, value));
        [program.into(), "run".into()].into_iter().chain(flags).collect()
    });
    let is_surely = flags.iter().any(|word| foreign(word).is_some());
    Call { words: spelled, is_go: true, is_surely }
}

/// Whether `line` begins with the words of `name`.
fn begins(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '=']))
}

/// The flags of a call of the Go program; `None` if it is none. The last of a repeated flag counts.
fn parse(words: &[&str]) -> Option<Given> {
    let mut given = Given::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = split(word);
        let (name, takes) = flags::flag(name?)?;
        match (takes, value) {
            (Takes::Nothing, Some("false")) => given.remove(name),
            (Takes::Nothing, _) => given.insert(name, String::new()),
            (_, Some(value)) => given.insert(name, value.to_owned()),
            (_, None) => given.insert(name, (*words.next()?).to_owned()),
        };
    }
    given.contains_key("model").then_some(given)
}

/// The name of the flag that a word gives, if it does, and the value that it has within.
fn split(word: &str) -> (Option<&str>, Option<&str>) {
    match word.split_once('=') {
        Some((name, value)) => (name.strip_prefix("--"), Some(value)),
        None => (word.strip_prefix("--"), None),
    }
}

fn spell(name: &str, value: &str) -> OsString {
    match name {
        "quiet" | "summarize-trace" | "as-written" => format!("--{name}").into(),
        _ => format!("--{name}={value}").into(),
    }
}

/// Refuses flags that only the Go program has in a call that is not its own.
fn refuse_foreign(words: &[&str]) -> Result<(), Failure> {
    match words.iter().find_map(|word| foreign(word)) {
        None => Ok(()),
        Some((name, instead)) => Err(Failure::Input(format!(
            "--{name}: only the Go program has it, and calls with its flags alone (`--model`, no \
             scenario file); instead: {instead}"
        ))),
    }
}

/// The flag that a word gives and what to use instead, if only the Go program has it.
fn foreign(word: &str) -> Option<(&'static str, &'static str)> {
    let (name, _) = split(word);
    flags::FOREIGN.iter().copied().find(|(foreign, _)| Some(*foreign) == name)
}

/// The same call in flags of ours; what the user should know of it is told.
fn translate(mut given: Given) -> Result<Given, Failure> {
    let mut told = Vec::new();
    if let Some(path) = given.remove("policy-config") {
        for (name, value) in bundle::flags(Path::new(&path))? {
            given.entry(name).or_insert(value);
        }
    }
    flags::check(&given)?;
    log(&mut given)?;
    names::translate(&mut given)?;
    machine::translate(&mut given, &mut told)?;
    workload(&mut given, &mut told);
    flags::settle(&mut given);
    layout(&mut given);
    given.insert("as-written", String::new());
    output::notes(given.contains_key("quiet"), &told);
    Ok(given)
}

fn log(given: &mut Given) -> Result<(), Failure> {
    let level = given.remove("log").unwrap_or_default().to_lowercase();
    match level.as_str() {
        "" | "trace" | "debug" | "info" | "warn" | "warning" => {}
        "error" | "fatal" | "panic" => {
            given.insert("quiet", String::new());
        }
        _ => return Err(Failure::Input(format!("Invalid log level: {level}"))),
    }
    Ok(())
}

/// A trace goes by our name, and a preset has a rate.
fn workload(given: &mut Given, told: &mut Vec<String>) {
    let path = given.remove("workload-traces-filepath");
    let kind = given.get("workload").map_or("distribution", String::as_str);
    match (kind, path, given.contains_key("workload-spec")) {
        (_, _, true) => {
            given.remove("workload");
            if given.contains_key("rate") {
                told.push(
                    "--rate replaces that of --workload-spec; the Go program ignores it".to_owned(),
                );
            }
        }
        ("traces", Some(path), false) => {
            given.remove("workload");
            given.insert("trace", path);
        }
        _ => {
            given.entry("rate").or_insert("1".to_owned());
        }
    }
}

/// Decisions are told only in its own layout, and only if they are recorded.
fn layout(given: &mut Given) {
    if given.get("trace-level").is_none_or(|level| level != "decisions") {
        given.remove("summarize-trace");
        given.remove("counterfactual-k");
    }
    if given.contains_key("summarize-trace") || !std::io::stdout().is_terminal() {
        given.insert("format", "blis".to_owned());
    }
}

/// Ends a call of the Go program that failed with its exit code. Scripts of that program, which are
/// known by flags that only it has, get one line of its log, and everybody else the usual message.
pub(crate) fn end(failure: &Failure, is_surely: bool) -> u8 {
    if !is_surely || std::io::stderr().is_terminal() {
        crate::end(failure);
    } else if let Some(message) = failure.message() {
        let line = message.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        output::note(&crate::cut(&format!("level=fatal msg=\"{line}\"")));
    }
    match failure.code() {
        failure::BAD_INPUT => failure::CHECK_FAILED,
        code => code,
    }
}
