//! What is wrong with an input, and where: the one error that bad input turns into.
//!
//! Made by the YAML reader and by the checks of scenarios; the binary prints it and exits with 2.

use std::fmt;
use std::io;
use std::ops::Range;
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
    /// The text that the value was read from, with a mark under the mistake, on lines of their own.
    pub excerpt: Option<String>,
}

impl Problem {
    /// A problem of the field at `path`, written at `place`.
    pub fn new(place: Place, path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem {
            place,
            path: path.into(),
            message: tame(&message.into()),
            io: false,
            excerpt: None,
        }
    }

    /// A problem of a whole file.
    pub fn of_file(file: &str, message: impl Into<String>) -> Problem {
        Problem::new(Place::Unknown, file, message)
    }

    /// The same, of something that stands at `path`.
    #[must_use]
    pub fn under(self, path: &str) -> Problem {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Problem { path: format!("{path}{dot}{}", self.path), ..self }
    }

    /// The same, and points at the part `at` of `text`.
    #[must_use]
    pub fn pointing(self, text: &str, at: &Range<usize>) -> Problem {
        Problem { excerpt: Some(pointed(text, at)), ..self }
    }

    /// The same as text, with its excerpt.
    pub fn shown(&self) -> String {
        match &self.excerpt {
            Some(excerpt) => format!("{self}\n{excerpt}"),
            None => self.to_string(),
        }
    }

    /// The system could not read `file`. A name without a file is a mistake in the input, not of
    /// the system.
    pub fn unreadable(file: &str, error: &io::Error) -> Problem {
        let named = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        let io = !named.contains(&error.kind());
        let remedy = if io { "" } else { "; check the name" };
        Problem { io, ..Problem::of_file(file, format!("cannot read: {error}{remedy}")) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File { file, line, column } => {
                write!(f, "{}:{line}:{column}: ", visible(file))?;
            }
            // The flag names the field better than the path would.
            Place::Flag(flag) => return write!(f, "{flag}: {}", self.message),
            Place::Unknown => {}
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", visible(&self.path))?;
        }
        f.write_str(&self.message)
    }
}

/// `text` with a mark under the part `at`, on two lines; of a long text, what is around that part.
fn pointed(text: &str, at: &Range<usize>) -> String {
    const BEFORE: usize = 40;
    const BEHIND: usize = 90;
    let before = visible(text.get(..at.start).unwrap_or_default());
    let part = visible(text.get(at.clone()).unwrap_or_default());
    let behind = visible(text.get(at.end..).unwrap_or_default());
    let skipped = before.chars().count().saturating_sub(BEFORE);
    let dots = if skipped > 0 { "..." } else { "" };
    let before: String = dots.chars().chain(before.chars().skip(skipped)).collect();
    let line: String = [&before, &part, &behind]
        .map(|part| part.chars())
        .into_iter()
        .flatten()
        .take(BEHIND)
        .collect();
    let indent = before.chars().count();
    let width = part.chars().count().clamp(1, BEHIND.saturating_sub(indent).max(1));
    format!("  {line}\n  {}{}", " ".repeat(indent), "^".repeat(width))
}

impl std::error::Error for Problem {}

/// `, did you mean ...?` if one of `known` is near `name`.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |known| format!(", did you mean `{known}`?"))
}

/// The one of `known` that `name` may be a slip for.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name is as long as that, and comparing takes time and memory by length.
    if name.len() > LONGEST_SHOWN {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let name = plain(name);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &plain(candidate)), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, candidate)| distance <= 1 + candidate.chars().count() / 4)
        .map(|(_, candidate)| candidate)
}

/// The most characters of a value that a message repeats.
const LONGEST_SHOWN: usize = 80;

/// A message that is safe to show, whatever the values in its backticks: one line, nothing
/// invisible, and no value longer than 80 characters.
pub fn tame(message: &str) -> String {
    let parts: Vec<String> = message
        .split('`')
        .enumerate()
        .map(|(index, part)| {
            let part = visible(part);
            // Every other part stands within backticks.
            if index % 2 == 1 { shown(&part) } else { part }
        })
        .collect();
    parts.join("`")
}

/// `text`, cut if it is longer than 80 characters.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether a terminal obeys the character instead of showing it: control characters, line breaks,
/// marks that turn or hide text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `text` with all that is hidden written out.
pub fn visible(text: &str) -> String {
    let show = |c: char| if is_hidden(c) { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(show).collect()
}

/// The same of text that has lines.
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// That there is no `what` called `name`, and which there are.
pub fn unknown<S: AsRef<str>>(what: &str, name: &str, known: &[S]) -> String {
    let hint = hint(name, known.iter().map(AsRef::as_ref));
    if known.len() <= MOST_NAMES {
        return format!("unknown {what} `{name}`{hint}; known: {}", quoted(known));
    }
    let near = quoted(&near(name, known)[..NEAR_NAMES]);
    let others = known.len() - NEAR_NAMES;
    format!("unknown {what} `{name}`{hint}; known: {near} and {others} others")
}

/// Of more names than this, a message has only the nearest.
const MOST_NAMES: usize = 24;
const NEAR_NAMES: usize = 5;

/// All of `known`, those first that have most words of `name`, then those that differ least.
fn near<'a, S: AsRef<str>>(name: &str, known: &'a [S]) -> Vec<&'a str> {
    let name: String = name.to_lowercase().chars().take(LONGEST_SHOWN).collect();
    let words = || name.split(|letter: char| !letter.is_alphanumeric()).filter(|it| !it.is_empty());
    let far = |candidate: &&str| {
        let candidate = candidate.to_lowercase();
        let shared = words().filter(|word| candidate.contains(word)).count();
        (usize::MAX - shared, strsim::damerau_levenshtein(&name, &candidate))
    };
    let mut all: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    all.sort_by_cached_key(far);
    all
}

/// That `name` is none of the words that are legal.
pub fn none_of<S: AsRef<str>>(legal: &[S], name: &str) -> String {
    let hint = hint(name, legal.iter().map(AsRef::as_ref));
    format!("found `{name}`{hint}; legal: {}", quoted(legal))
}

/// Names in backticks, separated by commas.
pub fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_a_message_has_those_with_the_same_words() {
        let mut known: Vec<String> = (0..30).map(|n| format!("a/gamma-{n}b")).collect();
        assert!(
            unknown("model", "llama-70b", &known[..20]).contains("`a/gamma-19b`"),
            "all of few"
        );
        known.extend(["b/llama-3-8b", "b/llama-3-70b-instruct"].map(str::to_owned));
        let told = unknown("model", "Llama-70b", &known);
        let (first, second) = (told.find("`b/llama-3-70b-instruct`"), told.find("`b/llama-3-8b`"));
        assert!(first.is_some() && first < second, "{told}");
        assert!(told.ends_with(" and 27 others"), "{told}");
    }

    #[test]
    fn a_message_shows_hidden_characters_and_cuts_long_values() {
        assert_eq!(tame("found `a\x1b[31m\n\u{202e}b`"), "found `a\\u{1b}[31m\\n\\u{202e}b`");
        assert_eq!(tame("found `it's \"é\" \\`"), "found `it's \"é\" \\`");
        let (long, cut) = ("ä".repeat(81), "ä".repeat(80));
        assert_eq!(
            tame(&format!("found `{long}`; legal: x")),
            format!("found `{cut}...`; legal: x")
        );
        assert_eq!(tame(&long), long, "words of our own are not cut");
        let place = Place::File { file: "a\nb".into(), line: 1, column: 2 };
        let problem = Problem::new(place, "x\ty", "m");
        assert_eq!(problem.to_string(), "a\\nb:1:2: x\\ty: m");
    }

    #[test]
    fn an_excerpt_marks_the_mistake_also_in_long_texts() {
        assert_eq!(pointed("a < b", &(4..5)), "  a < b\n      ^");
        assert_eq!(pointed("a <", &(3..3)), "  a <\n     ^", "the end has a place too");
        let long = format!("{}wrong{}", "x".repeat(100), "y".repeat(100));
        let found = pointed(&long, &(100..105));
        let lines: Vec<&str> = found.lines().collect();
        let at = lines[1].find('^').expect("a mark");
        assert_eq!(&lines[0][at..at + 5], "wrong");
        assert!(lines.iter().all(|line| line.chars().count() < 100));
    }

    #[test]
    fn very_long_names_have_no_neighbour() {
        assert_eq!(hint(&"x".repeat(10_000_000), ["x"]), "");
    }
}
