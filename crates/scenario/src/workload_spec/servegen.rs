//! `servegen_data:` in a specification: a folder of measured clients, as the `ServeGen` data set
//! has them.
//!
//! ```text
//! chunk-<id>-trace.csv      start in s, requests per second, CV, pattern; the rest is not read
//! chunk-<id>-dataset.json   {"<start in s>": {"input_tokens": "{100: 0.5, ...}",
//!                                             "output_tokens": "{...}"}, ...}
//! ```
//!
//! Each chunk becomes a client with its highest rate within the span. What is malformed is refused
//! with file and line; a chunk that sends nothing in the span is left out, with a note.

use crate::input;
use crate::legal::Finite;
use crate::problem::{Place, Problem};
use crate::problems::{Problems, Together, every};
use crate::workload_spec::arrival::arrival;
use crate::workload_spec::notes::{Note, Notes};
use crate::workload_spec::words::message;
use crate::yaml::{self, Amount, Node};
use blis_core::math::count;
use blis_workload::{Arrival, Client, Empirical, Length, MAX_TOKENS};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// `servegen_data:` as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServegenSpec {
    path: String,
    #[serde(default)]
    span_start: Option<Amount<Finite>>,
    #[serde(default)]
    span_end: Option<Amount<Finite>>,
}

/// The most bytes of one file.
const LARGEST_FILE: u64 = 256 << 20;
/// The most chunks of a folder.
const MOST_CHUNKS: usize = 100_000;

/// What the folder holds.
pub(super) struct Measured {
    pub(super) clients: Vec<Client>,
    /// Requests per second of all clients.
    pub(super) rate: f64,
    /// What was read.
    pub(super) files: Vec<PathBuf>,
}

/// From when to when; a bound of 0 is none.
#[derive(Clone, Copy)]
struct Bounds {
    start: f64,
    end: f64,
}

impl Bounds {
    fn holds(self, at: f64) -> bool {
        (self.start == 0.0 || at >= self.start) && (self.end == 0.0 || at < self.end)
    }
}

/// A row of a trace file.
struct Row {
    line: u64,
    rate: f64,
    text: String,
}

impl ServegenSpec {
    /// The clients of the folder.
    pub(super) fn read(&self, tree: &Node, notes: &mut Notes<'_>) -> Result<Measured, Problems> {
        let (span, folder) = (self.span(tree), self.folder(tree)).together()?;
        let (mut clients, mut files) = (Vec::new(), Vec::new());
        every(chunks(&folder)?.into_iter().map(|(id, trace)| {
            let busiest = busiest(&trace, span)?;
            files.push(trace.clone());
            let Some(row) = busiest else {
                notes.add_file(Note::SilentChunk, &trace.display().to_string());
                return Ok(());
            };
            let dataset = folder.join(format!("chunk-{id}-dataset.json"));
            let ((input, output), arrival) =
                (lengths(&dataset, span), row.arrival(&trace)).together()?;
            let (name, tenant) = (format!("servegen-chunk-{id}"), format!("chunk-{id}"));
            let client = Client::plain(name, tenant, input, output);
            clients.push(Client { share: row.rate, arrival, ..client });
            files.push(dataset);
            Ok::<_, Problems>(())
        }))?;
        if clients.is_empty() {
            let message = "no chunk of the folder sends anything in the span; choose another";
            return Err(Problem::of_file(&folder.display().to_string(), message).into());
        }
        let rate = clients.iter().map(|client| client.share).sum();
        Ok(Measured { clients, rate, files })
    }

    fn span(&self, tree: &Node) -> Result<Bounds, Problems> {
        tree.whole(&["servegen_data.span_start", "servegen_data.span_end"])?;
        let bound = |given: Option<Amount<Finite>>| given.map_or(0.0, |at| at.get());
        let span = Bounds { start: bound(self.span_start), end: bound(self.span_end) };
        for (field, found) in [("span_start", span.start), ("span_end", span.end)] {
            let late = field == "span_end" && found > 0.0 && found <= span.start;
            if found < 0.0 || late {
                let legal = if late {
                    format!("later than `span_start`, {}, or 0 for no end", span.start)
                } else {
                    "0 or more (seconds)".to_owned()
                };
                let message = format!("found `{found}`; legal: {legal}");
                return Err(tree.problem(format!("servegen_data.{field}"), message));
            }
        }
        Ok(span)
    }

    /// The folder, which is named relative to the file that names it.
    fn folder(&self, tree: &Node) -> Result<PathBuf, Problem> {
        const FIELD: &str = "servegen_data.path";
        let place = tree.place_of(FIELD);
        if self.path.is_empty() {
            return Err(Problem::new(place, FIELD, "found ``; legal: the path of a folder"));
        }
        let beside = match &place {
            Place::File { file, .. } => Path::new(&**file).parent(),
            Place::Flag(_) | Place::Unknown => None,
        };
        Ok(beside.map_or_else(|| PathBuf::from(&self.path), |folder| folder.join(&self.path)))
    }
}

/// The ids and trace files of the chunks in `folder`, in the order of their names.
fn chunks(folder: &Path) -> Result<Vec<(String, PathBuf)>, Problem> {
    let name = folder.display().to_string();
    let unreadable = |error: std::io::Error| Problem::unreadable(&name, &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id = file.strip_prefix("chunk-").and_then(|rest| rest.strip_suffix("-trace.csv"));
        if let Some(id) = id {
            found.push((id.to_owned(), path));
        }
    }
    if found.is_empty() || found.len() > MOST_CHUNKS {
        let legal = format!("from 1 to {MOST_CHUNKS} files `chunk-<id>-trace.csv`");
        return Err(Problem::of_file(&name, format!("found {}; legal: {legal}", found.len())));
    }
    // By name: the order of a folder's entries differs from machine to machine.
    found.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(found)
}

fn text_of(path: &Path) -> Result<String, Problem> {
    let name = path.display().to_string();
    let meta = fs::metadata(path).map_err(|error| Problem::unreadable(&name, &error))?;
    if !meta.is_file() || meta.len() > LARGEST_FILE {
        let message = format!("not a file of at most {LARGEST_FILE} bytes");
        return Err(Problem::of_file(&name, message));
    }
    let bytes = input::read(path).map_err(|error| Problem::unreadable(&name, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::of_file(&name, format!("not a text file: byte {at} is not UTF-8"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// What is wrong in a line of a file.
fn in_line(path: &Path, line: u64, field: &str, message: impl Into<String>) -> Problem {
    let place = Place::File { file: path.display().to_string().into(), line, column: 1 };
    Problem::new(place, field, message)
}

/// The row with the highest rate within the span, if that is above 0; the first among equals.
fn busiest(path: &Path, span: Bounds) -> Result<Option<Row>, Problem> {
    let mut best: Option<Row> = None;
    for (line, text) in (1..).zip(text_of(path)?.lines()) {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        let header = line == 1 && cells[0].parse::<f64>().is_err();
        if header || text.trim().is_empty() {
            continue;
        }
        if cells.len() < 4 {
            let message = format!(
                "found {} columns; legal: at least 4: start, rate, CV, pattern",
                cells.len()
            );
            return Err(in_line(path, line, "", message));
        }
        let start = number(path, line, "start", cells[0])?;
        let rate = number(path, line, "rate", cells[1])?;
        if span.holds(start) && rate > best.as_ref().map_or(0.0, |row| row.rate) {
            best = Some(Row { line, rate, text: text.to_owned() });
        }
    }
    Ok(best)
}

fn number(path: &Path, line: u64, field: &str, text: &str) -> Result<f64, Problem> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e12).contains(number));
    number.ok_or_else(|| {
        let message = format!("found `{text}`; legal: a number from 0 to 1e12");
        in_line(path, line, field, message)
    })
}

impl Row {
    /// The arrival process: the pattern, if it is one that has a CV, else Poisson.
    fn arrival(&self, path: &Path) -> Result<Arrival, Problem> {
        let mut cells = self.text.split(',').map(str::trim).skip(2);
        let (cv, pattern) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
        let process = pattern.to_lowercase();
        if !["gamma", "weibull"].contains(&process.as_str()) {
            return Ok(Arrival::Poisson);
        }
        let cv = number(path, self.line, "CV", cv)?;
        let refused = |message| in_line(path, self.line, "CV", message);
        let process = arrival(&process, Some(cv)).map_err(|(_, message)| refused(message))?;
        process.validate().map_err(|error| refused(message(&error)))?;
        Ok(process)
    }
}

/// The lengths of a window of the data set.
#[derive(Deserialize)]
struct Window {
    #[serde(default)]
    input_tokens: Option<String>,
    #[serde(default)]
    output_tokens: Option<String>,
}

/// Prompt and output lengths of the first window within the span that has both.
fn lengths(path: &Path, span: Bounds) -> Result<(Length, Length), Problem> {
    let name = path.display().to_string();
    let text = text_of(path)?;
    let windows: BTreeMap<String, Window> = serde_json::from_str(&text).map_err(|error| {
        let line = error.line() as u64;
        in_line(path, line, "", format!("not a data set of ServeGen: {error}"))
    })?;
    let mut starts = Vec::with_capacity(windows.len());
    for (key, window) in &windows {
        let start = yaml::float(key).ok_or_else(|| {
            let message = format!("found `{key}`; legal: the start of a window in seconds");
            Problem::of_file(&name, message)
        })?;
        starts.push((start, key, window));
    }
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (start, key, window) in starts {
        if let (true, Some(input), Some(output)) =
            (span.holds(start), &window.input_tokens, &window.output_tokens)
        {
            let length = |field: &str, text: &str| {
                histogram(text)
                    .map_err(|message| Problem::of_file(&name, format!("{key}.{field}: {message}")))
            };
            return Ok((length("input_tokens", input)?, length("output_tokens", output)?));
        }
    }
    let message = "no window of the span has both `input_tokens` and `output_tokens`";
    Err(Problem::of_file(&name, message))
}

/// Lengths and their chances, written as a Python dictionary: `{100: 0.5, 200.0: 1e-3,}`.
fn histogram(text: &str) -> Result<Length, String> {
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("found `{text}`; legal: `{{tokens: chance, ...}}`"))?;
    let mut bins: BTreeMap<u32, f64> = BTreeMap::new();
    for entry in inner.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let refused =
            || format!("found `{entry}`; legal: `tokens: chance`, tokens from 0 to {MAX_TOKENS}");
        let (tokens, chance) = entry.split_once(':').ok_or_else(refused)?;
        let tokens = tokens.trim().trim_matches(['\'', '"']).parse::<f64>().ok();
        let tokens = tokens.filter(|tokens| (0.0..=f64::from(MAX_TOKENS)).contains(tokens));
        let chance = chance.trim().parse::<f64>().ok().filter(|chance| *chance >= 0.0);
        let (tokens, chance) = tokens.zip(chance).ok_or_else(refused)?;
        // Lengths are whole and no prompt or output is empty; bins that fall together add up.
        let length = count(tokens.floor()).clamp(1, u64::from(MAX_TOKENS));
        *bins.entry(u32::try_from(length).unwrap_or(MAX_TOKENS)).or_default() += chance;
    }
    Empirical::new(bins).map(Length::Empirical).map_err(|error| message(&error))
}
