//! The formats of traces, and how to tell them apart.
//!
//! A format is found out from the first line that is not blank: from the fields of a JSON object or
//! the names in a CSV header. The one with the most names in common is taken, so that a misspelt
//! name is reported by the reader that knows what was meant.

use super::scalar::printable;
use super::{azure, burstgpt, h200, legacy, mooncake, native, tracev2};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Our own: JSON lines with `arrival_us`.
    Native,
    /// Mooncake: JSON lines with `timestamp` and `hash_ids`.
    Mooncake,
    /// Azure LLM inference traces of 2023 and 2024.
    Azure,
    /// BurstGPT.
    BurstGpt,
    /// The CSV half of a BLIS version-2 trace.
    TraceV2,
    /// BLIS traces with token ids.
    Legacy,
    /// Requests measured on an H200.
    H200,
}

/// As many names of a CSV header must be known.
const NAMES: usize = 2;

impl TraceFormat {
    /// All formats.
    pub const ALL: [TraceFormat; 7] = [
        TraceFormat::Native,
        TraceFormat::Mooncake,
        TraceFormat::Azure,
        TraceFormat::BurstGpt,
        TraceFormat::TraceV2,
        TraceFormat::Legacy,
        TraceFormat::H200,
    ];

    /// Whether a row may be sent after the answer to the one above it.
    pub(super) fn has_follow_ups(self) -> bool {
        matches!(self, TraceFormat::Native | TraceFormat::H200)
    }

    /// The spelling in flags and files.
    pub const fn name(self) -> &'static str {
        match self {
            TraceFormat::Native => "native",
            TraceFormat::Mooncake => "mooncake",
            TraceFormat::Azure => "azure",
            TraceFormat::BurstGpt => "burstgpt",
            TraceFormat::TraceV2 => "tracev2",
            TraceFormat::Legacy => "legacy-csv",
            TraceFormat::H200 => "h200",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<TraceFormat> {
        TraceFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of a trace whose first line is `line`, or what to do about it.
    pub(super) fn detect(line: &[u8]) -> Result<TraceFormat, String> {
        // The native reader has the words for a file with nothing in it.
        if line.is_empty() {
            return Ok(TraceFormat::Native);
        }
        let header: Vec<&[u8]> = line.split(|byte| *byte == b',').map(bare).collect();
        let mut best = (0, TraceFormat::Native);
        for format in TraceFormat::ALL {
            let matches = |name: &&str| match format {
                TraceFormat::Native | TraceFormat::Mooncake => has_field(line, name),
                _ => header.contains(&name.as_bytes()),
            };
            let found = format.names().iter().filter(|name| matches(name)).count();
            if found > best.0 {
                best = (found, format);
            }
        }
        if best.0 >= if line.starts_with(b"{") { 1 } else { NAMES } {
            return Ok(best.1);
        }
        let first = String::from_utf8_lossy(line);
        Err(format!(
            "cannot tell the format from the first line `{}`; give it with `--from` \
             (`--trace-format` of a run), one of `{}`",
            printable(&first),
            TraceFormat::ALL.map(TraceFormat::name).join("`, `")
        ))
    }

    /// Names of fields and columns.
    fn names(self) -> Vec<&'static str> {
        match self {
            TraceFormat::Native => native::fields().collect(),
            TraceFormat::Mooncake => mooncake::FIELDS.to_vec(),
            TraceFormat::Azure => azure::COLUMNS.names().collect(),
            TraceFormat::BurstGpt => burstgpt::COLUMNS.names().collect(),
            TraceFormat::TraceV2 => tracev2::COLUMNS.names().collect(),
            TraceFormat::Legacy => legacy::COLUMNS.names().collect(),
            TraceFormat::H200 => h200::COLUMNS.names().collect(),
        }
    }
}

/// Whether the JSON object in `line` seems to have that field. It may be damaged, so it is not
/// parsed.
fn has_field(line: &[u8], name: &str) -> bool {
    let quoted = [b"\"", name.as_bytes(), b"\""].concat();
    line.starts_with(b"{")
        && line
            .windows(quoted.len())
            .enumerate()
            .filter(|(_, window)| *window == quoted)
            .any(|(place, _)| line[place + quoted.len()..].trim_ascii_start().starts_with(b":"))
}

/// A name in a header without blanks and quotes around it.
fn bare(name: &[u8]) -> &[u8] {
    let name = name.trim_ascii();
    name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name)
}
