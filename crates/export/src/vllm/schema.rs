//! What vLLM's server reads: the flags that are ever written, their ranges, and where that stands.
//!
//! Documents are files of `vllm-project/vllm` at the commit behind the `@`, pages of its
//! documentation, or, where these say nothing yet, what others wrote of a release;
//! [decision 21](../../../../../docs/decisions/0021-export.md) says more.

use super::super::legal::{Field, LARGEST, Legal, problems as wrong};
use blis_scenario::problem::Place;
use blis_scenario::yaml::{self, Kind, Node};

/// A flag.
pub struct KnownFlag {
    /// Its name.
    pub name: &'static str,
    /// What its value may be; `None`: it has none.
    value: Option<Value>,
    /// Where it is documented.
    pub source: &'static str,
}

#[derive(Clone, Copy)]
enum Value {
    Plain(Legal),
    /// JSON with these fields.
    Json(&'static [Field]),
}

const COUNT: Value = Value::Plain(Legal::Whole(1.0, LARGEST));
const SCHEDULER: &str = "vllm/config/scheduler.py @1f8758d";
const LISTED: &str = "listings of `vllm serve --help` of 0.24 to 0.28 by others";
const CACHE: &str = "vllm/config/cache.py @002f10e";

const fn flag(name: &'static str, value: Option<Value>, source: &'static str) -> KnownFlag {
    KnownFlag { name, value, source }
}

/// The flags that may be written.
pub const FLAGS: &[KnownFlag] = &[
    flag("--tensor-parallel-size", Some(COUNT), "vllm/config/parallel.py"),
    flag("--max-num-seqs", Some(COUNT), SCHEDULER),
    flag("--max-num-batched-tokens", Some(COUNT), SCHEDULER),
    flag("--enable-chunked-prefill", None, SCHEDULER),
    flag("--long-prefill-token-threshold", Some(COUNT), SCHEDULER),
    flag("--scheduler-reserve-full-isl", None, LISTED),
    flag("--no-scheduler-reserve-full-isl", None, LISTED),
    flag("--watermark", Some(Value::Plain(Legal::Number(0.0, 0.999_999))), LISTED),
    flag("--scheduling-policy", Some(Value::Plain(Legal::Word(&["fcfs", "priority"]))), SCHEDULER),
    flag("--enable-prefix-caching", None, CACHE),
    flag("--block-size", Some(COUNT), CACHE),
    flag("--num-gpu-blocks-override", Some(COUNT), CACHE),
    flag(
        "--kv-transfer-config",
        Some(Value::Json(&[
            ("kv_connector", Legal::Word(&["OffloadingConnector"])),
            ("kv_role", Legal::Word(&["kv_both"])),
            ("kv_connector_extra_config.block_size", Legal::Whole(1.0, LARGEST)),
            ("kv_connector_extra_config.cpu_bytes_to_use", Legal::Whole(1.0, LARGEST)),
        ])),
        "docs.vllm.ai: features/kv_offloading_usage",
    ),
    flag(
        "--kv-events-config",
        Some(Value::Json(&[
            ("enable_kv_cache_events", Legal::Flag),
            ("publisher", Legal::Word(&["null", "zmq"])),
            ("endpoint", Legal::Text),
            ("topic", Legal::Text),
        ])),
        "vllm/config/kv_events.py @00634b8",
    ),
];

/// What vLLM would not read in the command line `text`; empty if it reads all of it.
pub fn problems(text: &str) -> Vec<String> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut found = Vec::new();
    let first = lines.next().unwrap_or_default().trim_end_matches('\\').trim();
    if first.strip_prefix("vllm serve ").is_none_or(|model| model.contains(' ')) {
        found.push(format!("`{first}` is not `vllm serve MODEL`"));
    }
    let mut seen = Vec::new();
    for line in lines {
        let line = line.trim_end_matches('\\').trim();
        let (name, value) = match line.split_once(' ') {
            None => (line, None),
            Some((name, value)) => (name, Some(value.trim().trim_matches('\''))),
        };
        if seen.contains(&name) {
            found.push(format!("{name}: it is given twice"));
        }
        seen.push(name);
        let Some(known) = FLAGS.iter().find(|known| known.name == name) else {
            found.push(format!("{name}: unknown"));
            continue;
        };
        found.extend(problems_of(known, value));
    }
    found
}

fn problems_of(known: &KnownFlag, value: Option<&str>) -> Vec<String> {
    let name = known.name;
    match (known.value, value) {
        (None, None) => Vec::new(),
        (None, Some(value)) => vec![format!("{name}: it takes no value, found `{value}`")],
        (Some(_), None) => vec![format!("{name}: it needs a value")],
        (Some(Value::Plain(legal)), Some(value)) => {
            let kind = Kind::Scalar { text: value.to_owned(), quoted: false };
            let legal = legal.allows(&Node { place: Place::Unknown, kind });
            if legal { Vec::new() } else { vec![format!("{name}: `{value}` is not legal")] }
        }
        (Some(Value::Json(fields)), Some(value)) => match yaml::read_text(name, value) {
            Ok(tree) => wrong(&format!("{name} "), &tree, fields),
            Err(problem) => vec![problem.to_string()],
        },
    }
}
