//! The dependencies of a `Cargo.toml`.

use toml::de::{DeTable, DeValue};

/// One dependency of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The section without the name, e.g. `dev-dependencies`.
    pub(crate) section: String,
    /// The package that is meant, whatever it is called here.
    pub(crate) package: String,
    /// Where it lies, if that is said here.
    pub(crate) path: Option<String>,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// The dependencies of all sections: those of a target and of the workspace too.
pub(crate) fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        collect(text, "", table.get_ref(), &mut found);
    }
    found.sort_by_key(|dependency| dependency.line);
    found
}

fn collect(text: &str, section: &str, table: &DeTable<'_>, found: &mut Vec<Dependency>) {
    for (key, value) in table {
        let DeValue::Table(inner) = value.get_ref() else { continue };
        let section = format!("{section}{}", key.get_ref());
        if !key.get_ref().ends_with("dependencies") {
            collect(text, &format!("{section}."), inner, found);
            continue;
        }
        for (name, value) in inner {
            let field = |key: &str| Some(value.get_ref().get(key)?.get_ref().as_str()?.to_owned());
            found.push(Dependency {
                section: section.clone(),
                package: field("package").unwrap_or_else(|| name.get_ref().to_string()),
                path: field("path"),
                line: 1 + text[..name.span().start].matches('\n').count(),
            });
        }
    }
}

/// The value of `key` in `[section]`.
pub(crate) fn value(text: &str, section: &str, key: &str) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let mut parts = section.split('.').chain([key]);
    let first = table.get_ref().get(parts.next()?)?;
    let value = parts.try_fold(first, |value, part| value.get_ref().get(part))?;
    value.get_ref().as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, String)> {
        let read = |d: Dependency| (d.section, d.package, d.path.unwrap_or_default());
        dependencies(text).into_iter().map(read).collect()
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
            entry("target.cfg(unix).dependencies", "f", ""),
        ];
        assert_eq!(read(text), expected);
        assert_eq!(dependencies(text)[5].line, 15);
    }

    #[test]
    fn a_dependency_spread_over_dotted_keys_is_one() {
        let text = "[dependencies]\na.workspace = true\na.features = [\"x\"]\na.package = \"b\"\n";
        assert_eq!(read(text), [entry("dependencies", "b", "")]);
    }

    #[test]
    fn a_value_is_looked_up_in_its_own_section() {
        let text = "[a]\nversion = \"1\"\n[b.c]\nversion = \"2\"\n";
        assert_eq!(value(text, "b.c", "version").as_deref(), Some("2"));
        assert_eq!(value(text, "c", "version"), None);
    }
}
