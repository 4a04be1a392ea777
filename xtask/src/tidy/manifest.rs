//! Reads the dependency sections of a `Cargo.toml`, which is all that the checks need of it.

/// One dependency of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The section without the name, e.g. `dev-dependencies`.
    pub(crate) section: String,
    /// The name that the manifest gives it.
    pub(crate) name: String,
    /// The package, where it is not the name.
    pub(crate) package: Option<String>,
    /// Where it lies, if that is said here.
    pub(crate) path: Option<String>,
    /// Its line, from 1.
    pub(crate) line: usize,
}

impl Dependency {
    /// The package that is meant, whatever it is called here.
    pub(crate) fn package(&self) -> &str {
        self.package.as_deref().unwrap_or(&self.name)
    }
}

/// The dependencies of all sections: `[dependencies]`, `[dev-dependencies]`,
/// `[build-dependencies]`, those of a target, those of the workspace, and the long form
/// `[dependencies.x]`.
pub(crate) fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    for (line, entry) in entries(text) {
        if let Some(header) = entry.strip_prefix('[') {
            section = Section::read(header.trim_end_matches(']'));
            if let Section::One(section, name) = &section {
                found.push(Dependency::new(section, name, line));
            }
            continue;
        }
        let Some((key, value)) = entry.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match &section {
            Section::Other => {}
            Section::List(section) => {
                let (name, field) = match key.split_once('.') {
                    Some((name, field)) => (unquoted(name), field.trim()),
                    None => (unquoted(key), ""),
                };
                let known = found.iter().position(|d| d.section == *section && d.name == name);
                let index = known.unwrap_or_else(|| {
                    found.push(Dependency::new(section, &name, line));
                    found.len() - 1
                });
                let dependency = &mut found[index];
                if field.is_empty() {
                    for (field, value) in inline_fields(value) {
                        dependency.set(&field, &value);
                    }
                } else {
                    dependency.set(field, value);
                }
            }
            Section::One(..) => {
                found.last_mut().expect("the header pushed it").set(key, value);
            }
        }
    }
    found
}

/// The value of `key` in `[section]`, unquoted.
pub(crate) fn value(text: &str, section: &str, key: &str) -> Option<String> {
    let mut here = false;
    for (_, entry) in entries(text) {
        if let Some(header) = entry.strip_prefix('[') {
            here = header.trim_end_matches(']').trim() == section;
        } else if here
            && let Some((found, value)) = entry.split_once('=')
            && found.trim() == key
        {
            return Some(unquoted(value));
        }
    }
    None
}

enum Section {
    /// Its lines are dependencies.
    List(String),
    /// It is one dependency: the section's name and the dependency's.
    One(String, String),
    /// It has nothing to do with dependencies.
    Other,
}

impl Section {
    fn read(header: &str) -> Section {
        let header = header.trim();
        let (before, last) = header.rsplit_once('.').unwrap_or(("", header));
        if last.ends_with("dependencies") {
            Section::List(header.to_owned())
        } else if before.rsplit('.').next().is_some_and(|word| word.ends_with("dependencies")) {
            Section::One(before.to_owned(), unquoted(last))
        } else {
            Section::Other
        }
    }
}

impl Dependency {
    fn new(section: &str, name: &str, line: usize) -> Dependency {
        let (section, name) = (section.to_owned(), name.to_owned());
        Dependency { section, name, package: None, path: None, line }
    }

    fn set(&mut self, field: &str, value: &str) {
        match field {
            "package" => self.package = Some(unquoted(value)),
            "path" => self.path = Some(unquoted(value)),
            _ => {}
        }
    }
}

/// Lines without comments, joined where a bracket is still open, each with its number from 1.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    let mut open = 0_usize;
    for (index, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        match entries.last_mut() {
            Some((_, entry)) if open > 0 => {
                entry.push(' ');
                entry.push_str(line);
            }
            _ => entries.push((index + 1, line.to_owned())),
        }
        let opened = line.matches(['[', '{']).count();
        open = (open + opened).saturating_sub(line.matches([']', '}']).count());
    }
    entries
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    line
}

/// The top-level `key = value` pairs of an inline table.
fn inline_fields(value: &str) -> Vec<(String, String)> {
    let Some(body) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return Vec::new();
    };
    let mut depth = 0_usize;
    let fields = body.split(|c| {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    fields
        .filter_map(|field| field.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, String)> {
        dependencies(text)
            .into_iter()
            .map(|d| (d.section.clone(), d.package().to_owned(), d.path.unwrap_or_default()))
            .collect()
    }

    fn entry(section: &str, package: &str, path: &str) -> (String, String, String) {
        (section.to_owned(), package.to_owned(), path.to_owned())
    }

    #[test]
    fn every_spelling_of_a_dependency_is_understood() {
        let text = r#"
            [package]
            name = "not-a-dependency" # nor this: x = "1"
            [dependencies]
            a.workspace = true
            "b" = "1" # a comment
            c = { version = "1", features = [
                "x", "y", # another
            ], package = "real-c" }
            d = { path = "../sim" }
            [dev-dependencies.e]
            package = "real-e"
            path = "../lab"
            [target.'cfg(unix)'.dependencies]
            f = "1"
            [features]
            g = []
        "#;
        let expected = [
            entry("dependencies", "a", ""),
            entry("dependencies", "b", ""),
            entry("dependencies", "real-c", ""),
            entry("dependencies", "d", "../sim"),
            entry("dev-dependencies", "real-e", "../lab"),
            entry("target.'cfg(unix)'.dependencies", "f", ""),
        ];
        assert_eq!(read(text), expected);
    }

    #[test]
    fn a_dependency_spread_over_dotted_keys_is_one() {
        let text = "[dependencies]\na.workspace = true\na.features = [\"x\"]\na.package = \"b\"\n";
        assert_eq!(read(text), [entry("dependencies", "b", "")]);
    }

    #[test]
    fn a_value_is_looked_up_in_its_own_section() {
        let text = "[a]\nversion = \"1\"\n[b]\nversion = \"2\"\n";
        assert_eq!(value(text, "b", "version").as_deref(), Some("2"));
        assert_eq!(value(text, "c", "version"), None);
    }
}
