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

pub use decode::decode;
pub use node::{Kind, Node};
pub use number::{Amount, Range, Whole};

use crate::problem::{Place, Problem};
use std::path::Path;
use std::sync::Arc;

/// The most bytes of one file.
const LARGEST_FILE: usize = 8 << 20;
/// The deepest nesting. Scenario files need six.
const DEEPEST: usize = 32;

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
    if meta.len() > LARGEST_FILE as u64 {
        return Err(Problem::of_file(
            &name,
            format!("the file has {} bytes; at most {LARGEST_FILE} are read", meta.len()),
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| Problem::unreadable(&name, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::of_file(&name, format!("not a text file: byte {at} is not UTF-8"))
    })?;
    read_text(&name, &text)
}

/// Reads `text`, which stands in the file `name`, into a tree.
///
/// # Errors
/// If it is not one well-formed YAML document within the limits.
pub fn read_text(name: &str, text: &str) -> Result<Node, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LARGEST_FILE {
        return Err(Problem::of_file(
            name,
            format!("the file has {} bytes; at most {LARGEST_FILE} are read", text.len()),
        ));
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
    let root = raw.into_node(&file, text);
    match root.kind {
        Kind::Null => Err(Problem::of_file(name, "the file is empty; write at least one field")),
        Kind::Map(_) => Ok(root),
        Kind::Scalar { .. } | Kind::List(_) => {
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
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_documents: 2,
            max_nodes: 250_000,
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
            "a second document begins here; keep one document a file".to_owned()
        }
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys (`<<`) are not read; write the fields out".to_owned()
        }
        other => {
            let text = other.to_string();
            let line = text.lines().next().unwrap_or("malformed YAML");
            let line = line.split(" at line ").next().unwrap_or(line);
            format!("malformed YAML: {}", line.trim_start_matches("error: "))
        }
    };
    match error.location().filter(|location| location.line() > 0) {
        Some(at) => {
            let place = Place::File { file: file.clone(), line: at.line(), column: at.column() };
            Problem::new(place, "", message)
        }
        None => Problem::of_file(file, message),
    }
}

#[cfg(test)]
mod tests;
