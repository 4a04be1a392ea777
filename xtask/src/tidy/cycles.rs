//! The top-level modules of a crate do not import one another in a circle.
//!
//! A module imports another if its code names it: `crate::other`, `super::other` from one level
//! below the root, or a name that the root takes from it. Tests may import what they like.

use super::{Finding, Rule};
use crate::modules::{self, Module};
use crate::source::Source;
use crate::tree::{File, Tree};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Which module imports which, and where it does so first.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// No crate has a circle of modules.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, (&File, Vec<Module<'_>>)> = BTreeMap::new();
    for module in modules::all(tree).into_iter().filter(|module| !module.is_test) {
        let root = module.root;
        crates.entry(&root.path).or_insert_with(|| (root, Vec::new())).1.push(module);
    }
    let mut findings = Vec::new();
    for (root, modules) in crates.values() {
        let imports = imports(&root.rust, modules);
        for circle in circles(&imports) {
            let (names, way) = (circle.join(", "), way_round(&imports, circle[0]));
            let message = format!("imports in a circle ({names}); cut one: {way}");
            findings.push(Finding::new(Rule::Cycles, &root.path, 0, message));
        }
    }
    findings
}

fn imports(root: &Source, modules: &[Module<'_>]) -> Imports {
    let top: BTreeSet<&str> =
        modules.iter().filter_map(|module| Some(module.path.first()?.as_str())).collect();
    let from_root: BTreeMap<&str, &str> = root
        .uses
        .iter()
        .filter_map(|used| {
            let first =
                used.path.iter().map(|(part, _)| part.as_str()).find(|part| *part != "crate")?;
            top.contains(first).then_some((used.name.as_str(), first))
        })
        .collect();
    let mut imports = Imports::new();
    for module in modules {
        let Some(importer) = module.path.first() else { continue };
        let mut named = Vec::new();
        names_of_root(&module.file.rust, &module.file.rust.tokens, module.path.len(), &mut named);
        for (name, line) in named {
            let name = from_root.get(name.as_str()).copied().unwrap_or(&name);
            if top.contains(name) && name != importer {
                let place = format!("{}:{line}", module.file.path);
                let known = imports.entry(importer.clone()).or_default();
                known.entry(name.to_owned()).or_insert(place);
            }
        }
    }
    imports
}

/// The names after `crate::` and after as many `super::` as lead to the root, with their lines.
fn names_of_root(
    source: &Source,
    tokens: &TokenStream,
    depth: usize,
    found: &mut Vec<(String, usize)>,
) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut supers = 0;
    for (at, token) in tokens.iter().enumerate() {
        if source.lines[token.span().start().line - 1].is_test {
            continue;
        }
        match token {
            TokenTree::Ident(ident) if ident == "crate" => found.extend(names(&tokens[at + 1..])),
            TokenTree::Ident(ident) if ident == "super" => {
                supers += 1;
                if supers == depth {
                    found.extend(names(&tokens[at + 1..]));
                }
            }
            TokenTree::Group(group) => {
                let is_module =
                    at >= 2 && matches!(&tokens[at - 2], TokenTree::Ident(word) if word == "mod");
                names_of_root(source, &group.stream(), depth + usize::from(is_module), found);
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => continue,
            _ => {}
        }
        if !matches!(token, TokenTree::Ident(ident) if ident == "super") {
            supers = 0;
        }
    }
}

/// What `::name` or `::{name, other::thing}` names first.
fn names(after: &[TokenTree]) -> Vec<(String, usize)> {
    let name = |token: &TokenTree| match token {
        TokenTree::Ident(ident) if ident != "super" => {
            Some((ident.to_string(), ident.span().start().line))
        }
        _ => None,
    };
    match after {
        [TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Group(group), ..] => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            let parts =
                tokens.split(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ','));
            parts.filter_map(|part| name(part.first()?)).collect()
        }
        [TokenTree::Punct(a), TokenTree::Punct(_), token, ..] if a.as_char() == ':' => {
            name(token).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The groups of modules that all import one another, by way of others or not.
fn circles(imports: &Imports) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|name| (name.as_str(), reached(imports, name))).collect();
    let mut found: Vec<Vec<&str>> = Vec::new();
    for (name, others) in &reached {
        let is_new = !found.iter().flatten().any(|known| known == name);
        if others.contains(name) && is_new {
            let mutual = others
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|back| back.contains(name)));
            found.push(mutual.copied().collect());
        }
    }
    found
}

fn reached<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut pending = vec![from];
    let mut reached = BTreeSet::new();
    while let Some(name) = pending.pop() {
        for other in imports.get(name).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(other.as_str()) {
                pending.push(other);
            }
        }
    }
    reached
}

/// A shortest way from a module back to itself, with the place of each import.
fn way_round(imports: &Imports, start: &str) -> String {
    let mut ways = vec![(start, format!("`{start}`"))];
    let mut seen = BTreeSet::new();
    let mut next = 0;
    while let Some((name, way)) = ways.get(next).cloned() {
        next += 1;
        for (other, place) in imports.get(name).into_iter().flatten() {
            let way = format!("{way} imports `{other}` ({place})");
            if other == start {
                return way;
            }
            if seen.insert(other) {
                ways.push((other, format!("{way}, which")));
            }
        }
    }
    unreachable!("`{start}` is in a circle")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{accepts, refuses};

    const LIB: (&str, &str) =
        ("crates/kv/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use c::Thing;\n");
    const C: (&str, &str) = ("crates/kv/src/c.rs", "pub struct Thing;\n");

    #[test]
    fn a_circle_is_found_however_the_modules_are_named() {
        let a = ("crates/kv/src/a.rs", "\nuse crate::{Thing, b::X};\n");
        for b in [
            "use crate::a::Y;",
            "use super::{c, a::Y};",
            "fn f() { println!(\"{}\", crate::a::y()); }",
            "mod inner { use super::super::a::Y; }",
        ] {
            let files = [LIB, a, ("crates/kv/src/b.rs", b), C];
            let way =
                "`a` imports `b` (crates/kv/src/a.rs:2), which imports `a` (crates/kv/src/b.rs:1)";
            refuses(check, &files, Rule::Cycles, way);
        }
    }

    #[test]
    fn a_name_that_the_root_takes_from_a_module_is_an_import_of_that_module() {
        let files = [
            ("crates/kv/src/lib.rs", "mod a;\nmod c;\npub use c::Thing;\n"),
            ("crates/kv/src/a.rs", "use crate::Thing;\n"),
            ("crates/kv/src/c.rs", "mod deep;\n"),
            ("crates/kv/src/c/deep.rs", "use super::super::a;\n"),
        ];
        refuses(check, &files, Rule::Cycles, "imports in a circle (a, c)");
    }

    #[test]
    fn arrows_one_way_own_modules_and_tests_are_fine() {
        let a = "use crate::b::X;\nuse self::inner::Y;\n\
                 mod inner { use super::Z; }\n#[cfg(test)]\nmod tests { use crate::c; }\n";
        let b = "// crate::a is not imported\npub(crate) struct X;\n";
        let c = "mod deep;\nuse crate::a::X;\n";
        accepts(
            check,
            &[
                LIB,
                ("crates/kv/src/a.rs", a),
                ("crates/kv/src/b.rs", b),
                ("crates/kv/src/c.rs", c),
                ("crates/kv/src/c/deep.rs", "use super::b;\n"),
            ],
        );
    }
}
