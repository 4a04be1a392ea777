//! Reading YAML: text to a tree of located nodes, and from there into serde types.
//!
//! The only module that knows the YAML library. It reads a bounded amount of text into a [`Node`]
//! tree, in which every value knows where it was written; command-line flags are set into the same
//! tree, so that a flag and the field it stands for are the same thing. [`decode`] then fills a
//! serde type and names the place, the path, the value found and what is legal in every complaint.
//! It must never panic, whatever the bytes.

mod decode;
mod node;
mod number;
mod schema;
mod shape;

pub use decode::{decode, decode_and};
pub use node::{Kind, Node};
pub use number::{Amount, Range, Whole, float, whole};
pub(crate) use schema::{inline_schema, named_or};
pub use shape::{Named, OneOrMany};

use crate::input;
use crate::problem::{Place, Problem};
use std::fmt;
use std::fs::FileType;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// The most bytes of one file.
const LARGEST_FILE: usize = 8 << 20;
/// The deepest nesting. Scenario files need six.
const DEEPEST: usize = 32;

/// The most aliases, and the most anchors, of one file.
const MOST_ALIASES: usize = 1_000;
/// The most values of one file.
const MOST_VALUES: usize = 250_000;

/// Reads the file `path` into a tree.
///
/// # Errors
/// If the file cannot be read, or is not one well-formed YAML document within the limits.
pub fn read_file(path: &Path) -> Result<Node, Problem> {
    let name = path.display().to_string();
    let meta = std::fs::metadata(path).map_err(|error| Problem::unreadable(&name, &error))?;
    if meta.is_dir() {
        let message = "cannot read: this is a directory; name a YAML file in it";
        return Err(Problem::of_file(&name, message));
    }
    let kind = meta.file_type();
    // A pipe ends when its writer leaves, e.g. that of a shell's `<(...)`; a device need not.
    if !kind.is_file() && !is_pipe(kind) {
        let message = "cannot read: neither a file nor a pipe; name a YAML file";
        return Err(Problem::of_file(&name, message));
    }
    if meta.len() > LARGEST_FILE as u64 {
        return Err(too_large(&name, &meta.len()));
    }
    let bytes = read_bytes(path).map_err(|error| Problem::unreadable(&name, &error))?;
    if bytes.len() > LARGEST_FILE {
        return Err(too_large(&name, &format_args!("more than {LARGEST_FILE}")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::of_file(&name, format!("not a text file: byte {at} is not UTF-8"))
    })?;
    read_text(&name, &text)
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

/// Browsers have no pipes.
#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

/// The bytes of the file `path`, but never many more than are legal.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input::open(path)?.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn too_large(name: &str, bytes: &dyn fmt::Display) -> Problem {
    let message = format!("the file has {bytes} bytes; at most {LARGEST_FILE} are read");
    Problem::of_file(name, message)
}

/// Reads `text`, which stands in the file `name`, into a tree.
///
/// # Errors
/// If it is not one well-formed YAML document within the limits.
pub fn read_text(name: &str, text: &str) -> Result<Node, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LARGEST_FILE {
        return Err(too_large(name, &text.len()));
    }
    if let Some(at) = text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(Problem::of_file(
            name,
            format!("not a text file: control character at byte {at}"),
        ));
    }
    let file: Arc<str> = name.into();
    let raw: node::Raw = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| explain(&file, &error))?;
    let root = raw.into_node(&file, text)?;
    match root.kind {
        Kind::Null => Err(Problem::of_file(name, "the file is empty; write at least one field")),
        Kind::Map(_) => Ok(root),
        Kind::Scalar { .. } | Kind::List(_) | Kind::Broken => {
            Err(Problem::new(root.place, "", "expected `field: value` lines"))
        }
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            max_aliases: MOST_ALIASES,
            max_anchors: MOST_ALIASES,
            max_documents: 2,
            max_nodes: MOST_VALUES,
        },
    }
}

/// The library's error in our words: what it found, without its own rendering of the place.
fn explain(file: &Arc<str>, error: &serde_saphyr::Error) -> Problem {
    use serde_saphyr::Error;
    let error = error.without_snippet();
    let message = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("field `{key}` is given twice; keep one")
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins here; keep one document per file".to_owned()
        }
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys (`<<`) are not supported; write the fields out".to_owned()
        }
        Error::UnsupportedTag { tag, .. } => node::unknown_tag(tag),
        Error::TaggedScalarCannotDeserializeIntoString { .. }
        | Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. }
        | Error::InvalidScalar { .. } => "the tag does not match its value; remove it".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias refers to its own value; write the value out".to_owned()
        }
        Error::UnknownAnchor { .. } => "an alias without an anchor; write the value out".to_owned(),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "aliases expand to too many values; write the values out".to_owned()
        }
        Error::Budget { breach, .. } => over_budget(breach),
        Error::Message { msg, .. } => {
            let line = msg.lines().next().unwrap_or_default();
            let line = line.split(" at line ").next().unwrap_or(line);
            format!("malformed YAML: {}", line.trim_start_matches("error: "))
        }
        Error::ExternalMessage { msg, .. } => format!("malformed YAML: {msg}"),
        _ => "malformed YAML".to_owned(),
    };
    match error.location().filter(|location| location.line() > 0) {
        Some(at) => {
            let place = Place::File { file: file.clone(), line: at.line(), column: at.column() };
            Problem::new(place, "", message)
        }
        None => Problem::of_file(file, message),
    }
}

/// Which limit a document exceeds.
fn over_budget(breach: &serde_saphyr::budget::BudgetBreach) -> String {
    use serde_saphyr::budget::BudgetBreach;
    match breach {
        BudgetBreach::Depth { .. } => format!("nested more than {DEEPEST} levels deep"),
        BudgetBreach::Aliases { .. } | BudgetBreach::AliasAnchorRatio { .. } => {
            format!("more than {MOST_ALIASES} aliases; write the values out")
        }
        BudgetBreach::Anchors { .. } => format!("more than {MOST_ALIASES} anchors"),
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => {
            format!("more than {MOST_VALUES} values")
        }
        BudgetBreach::Documents { .. } => "more than one document; keep one per file".to_owned(),
        _ => "the document is too large".to_owned(),
    }
}

/// `text` in double quotes, as YAML and JSON both read it.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
pub(crate) mod tests;
