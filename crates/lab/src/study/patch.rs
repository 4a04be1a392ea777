//! Patches: fields of a scenario and what they are set to.

use blis_scenario::Files;
use blis_scenario::problem::{Place, Problem};
use blis_scenario::problems::Problems;
use blis_scenario::scenario::{Checked, Draft};
use blis_scenario::strategy;
use blis_scenario::yaml::{Kind, Node};

/// A field of the scenario, step by step, and its value.
pub(crate) type Setting = (Vec<String>, Node);

/// The leaves of a patch and their paths. An empty group sets nothing.
pub(crate) fn settings(node: &Node) -> Vec<Setting> {
    let mut found = Vec::new();
    collect(node, &mut Vec::new(), &mut found);
    found
}

fn collect(node: &Node, path: &mut Vec<String>, found: &mut Vec<Setting>) {
    match &node.kind {
        Kind::Map(fields) if !fields.is_empty() => {
            for (name, _, value) in fields {
                path.push(name.clone());
                collect(value, path, found);
                path.pop();
            }
        }
        Kind::Map(_) | Kind::Null if path.is_empty() => {}
        _ => found.push((path.clone(), node.clone())),
    }
}

/// A setting that no file has: that of a policy.
pub(crate) fn policy(field: &str, name: &str) -> Setting {
    let kind = Kind::Scalar { text: name.to_owned(), quoted: false };
    (vec![field.to_owned()], Node { place: Place::Unknown, kind })
}

/// Sets all of `settings` in `tree`. A strategy replaces the policies that were there.
pub(crate) fn apply(tree: &mut Node, settings: &[Setting]) {
    for (path, value) in settings {
        let steps: Vec<&str> = path.iter().map(String::as_str).collect();
        match steps[..] {
            ["strategy"] | ["strategy", "name"] => strategy::choose(tree, value.clone()),
            _ => tree.set(&steps, value.clone()),
        }
    }
}

/// The scenario in `tree`, checked; problems say that it is that of the cell with these levels.
pub(crate) fn resolve(tree: &Node, levels: &[String], files: &Files) -> Result<Checked, Problems> {
    Once::new(files).resolve(tree, &cell(levels))
}

/// What `resolve` makes of `tree`, in which settings of KV events count only if a policy reads
/// them: whoever generates scenarios takes policies away that the base was written for.
pub(crate) fn heard<T>(
    mut tree: Node,
    resolve: impl Fn(&Node) -> Result<T, Problems>,
) -> Result<T, Problems> {
    const EVENTS: [&str; 2] = ["kv_event_delay_us", "speculative_ttl_us"];
    let found = resolve(&tree);
    let unread = |problem: &Problem| {
        problem.path.strip_prefix("signals.").is_some_and(|field| EVENTS.contains(&field))
    };
    if !found.as_ref().is_err_and(|problems| problems.iter().all(unread)) {
        return found;
    }
    let mut signals = tree.field("signals").cloned().unwrap_or_else(Node::empty);
    for field in EVENTS {
        signals.remove(field);
    }
    tree.set(&["signals"], signals);
    resolve(&tree)
}

/// What problems call the cell with these levels.
pub(crate) fn cell(levels: &[String]) -> String {
    if levels.is_empty() { String::new() } else { format!("the case {}", levels.join(", ")) }
}

/// Resolves scenarios that have much in common. What is wrong with several of them is told once,
/// and a file that several of them name is read once.
#[derive(Debug)]
pub(crate) struct Once {
    files: Files,
    told: Vec<Problem>,
}

impl Once {
    /// Nothing was told yet, and `files` were read.
    pub(crate) fn new(files: &Files) -> Once {
        Once { files: files.clone(), told: Vec::new() }
    }

    /// The scenario in `tree`, checked; new problems say that it is that of `place`.
    pub(crate) fn resolve(&mut self, tree: &Node, place: &str) -> Result<Checked, Problems> {
        Draft::from_tree(tree.clone()).resolve_with(&self.files).map_err(|problems| {
            let new = problems.into_iter().filter(|problem| !self.told.contains(problem));
            let new: Vec<Problem> = new.collect();
            self.told.extend(new.iter().cloned());
            new.into_iter().map(|problem| within(problem, place)).collect()
        })
    }
}

/// `problem`, of the scenario that is `place`.
pub(crate) fn within(problem: Problem, place: &str) -> Problem {
    if place.is_empty() {
        return problem;
    }
    Problem { message: format!("{} (in {place})", problem.message), ..problem }
}
