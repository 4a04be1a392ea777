//! Text of exported files: YAML values, words of a command, and comments that fit a line.

use blis_scenario::problem::visible;
use std::fmt::Write;

/// Most columns of a comment.
const COLUMNS: usize = 100;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Yaml {
    Number(f64),
    Flag(bool),
    Text(String),
    Map(Vec<(&'static str, Yaml)>),
    List(Vec<Yaml>),
}

impl Yaml {
    pub(super) fn text(text: &str) -> Yaml {
        Yaml::Text(text.to_owned())
    }

    /// On one line, as YAML and JSON both read it.
    pub(super) fn flow(&self) -> String {
        match self {
            Yaml::Number(number) => number.to_string(),
            Yaml::Flag(flag) => flag.to_string(),
            Yaml::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Yaml::Map(fields) => {
                let all: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("\"{name}\": {}", value.flow()))
                    .collect();
                format!("{{{}}}", all.join(", "))
            }
            Yaml::List(items) => {
                let all: Vec<String> = items.iter().map(Yaml::flow).collect();
                format!("[{}]", all.join(", "))
            }
        }
    }

    /// As the value behind `name:` in a block, indented by `indent` spaces.
    pub(super) fn field(&self, name: &str, indent: usize, out: &mut String) {
        let space = " ".repeat(indent);
        match self {
            Yaml::Map(fields) => {
                line(out, &format!("{space}{name}:"));
                for (name, value) in fields {
                    value.field(name, indent + 2, out);
                }
            }
            Yaml::List(items) => {
                line(out, &format!("{space}{name}:"));
                for item in items {
                    line(out, &format!("{space}- {}", item.flow()));
                }
            }
            Yaml::Text(text) if is_plain(text) => line(out, &format!("{space}{name}: {text}")),
            _ => line(out, &format!("{space}{name}: {}", self.flow())),
        }
    }
}

/// Whether YAML takes `text` for text without quotes.
fn is_plain(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(word)
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text)
}

/// `word` as a shell takes it for this one word.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The words of a command as [`shell_word`] writes them; line breaks behind a backslash are spaces.
pub(super) fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        let literal = match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
                continue;
            }
            letter if quoted => Some(letter),
            '\\' => letters.next().filter(|&next| next != '\n'),
            letter => Some(letter).filter(|letter| !letter.is_whitespace()),
        };
        match literal {
            Some(literal) => word.get_or_insert_default().push(literal),
            None => words.extend(word.take()),
        }
    }
    words.extend(word);
    words
}

/// Appends a line.
pub(super) fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("text can grow");
}

/// `text` as comment lines; lines after the first are indented by `hang`.
pub(super) fn comment(text: &str, hang: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace().map(visible) {
        let last = lines.last_mut().expect("there is always a line");
        if last.chars().count() + 1 + word.chars().count() > COLUMNS && last.len() > 1 {
            lines.push(format!("#{hang}"));
        }
        let last = lines.last_mut().expect("there is always a line");
        last.push(' ');
        last.push_str(&word);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_yaml_reads_them() {
        let value = Yaml::Map(vec![
            ("a", Yaml::Number(0.5)),
            ("b", Yaml::Map(vec![("c", Yaml::text("x-y")), ("d", Yaml::text("200ms: a"))])),
            ("e", Yaml::List(vec![Yaml::Map(vec![("f", Yaml::Number(3.0))])])),
        ]);
        let mut out = String::new();
        value.field("p", 0, &mut out);
        let wanted = "p:\n  a: 0.5\n  b:\n    c: x-y\n    d: \"200ms: a\"\n  e:\n  - {\"f\": 3}\n";
        assert_eq!(out, wanted);
        assert_eq!(
            value.flow(),
            "{\"a\": 0.5, \"b\": {\"c\": \"x-y\", \"d\": \"200ms: a\"}, \"e\": [{\"f\": 3}]}"
        );
    }

    #[test]
    fn comments_are_folded() {
        let text = comment(&"word ".repeat(60), "  ");
        assert!(text.lines().all(|line| line.starts_with('#') && line.len() <= COLUMNS), "{text}");
        assert_eq!(text.split_whitespace().filter(|word| *word == "word").count(), 60);
    }
}
