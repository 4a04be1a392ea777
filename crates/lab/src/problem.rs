//! What is wrong with an input, and where: the one error that bad input turns into.
//!
//! Made by the YAML reader and by the checks of scenarios; the binary prints it and exits with 2.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Where a value was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: a default, or a file as a whole.
    #[default]
    Unknown,
    /// On the command line.
    Flag(Arc<str>),
    /// In a file; lines and columns count from 1.
    File {
        /// The file's name as it was given.
        file: Arc<str>,
        /// Line.
        line: u64,
        /// Column.
        column: u64,
    },
}

/// Why an input was refused. Shown as `file:line:column: path: message`, or `--flag: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the offending value stands.
    pub place: Place,
    /// The field's path, e.g. `cluster.instances`; empty if the problem is not about one field.
    pub path: String,
    /// What is wrong, and what is legal.
    pub message: String,
    /// Whether the file system is at fault, rather than the content or the name of a file.
    pub io: bool,
}

impl Problem {
    /// A problem of the field at `path`, written at `place`.
    pub fn new(place: Place, path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { place, path: path.into(), message: message.into(), io: false }
    }

    /// A problem of a whole file.
    pub fn of_file(file: &str, message: impl Into<String>) -> Problem {
        Problem::new(Place::Unknown, file, message)
    }

    /// The system could not read `file`. A name without a file is a mistake in the input, not of
    /// the system.
    pub fn unreadable(file: &str, error: &io::Error) -> Problem {
        let io = error.kind() != io::ErrorKind::NotFound;
        let remedy = if io { "" } else { "; check the name" };
        Problem { io, ..Problem::of_file(file, format!("cannot read: {error}{remedy}")) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}: ")?,
            // The flag names the field better than the path would.
            Place::Flag(flag) => return write!(f, "{flag}: {}", self.message),
            Place::Unknown => {}
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// `; did you mean ...?` if one of `known` is near `name`.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let name = name.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&name, &candidate.to_lowercase().replace('-', "_")),
                candidate,
            )
        })
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, candidate)| distance <= 1 + candidate.chars().count() / 4)
        .map_or_else(String::new, |(_, candidate)| format!(", did you mean `{candidate}`?"))
}

/// Names in backticks, separated by commas.
pub fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}
