//! The arms of a study: patches, components put together, and references that belong beside them.

use super::file::PatchFields;
use super::levels::{Choices, Level};
use super::patch::{self, Setting};
use blis_scenario::problem::{Problem, hint, quoted};
use blis_scenario::yaml::{Kind, Node};

/// A named part of a strategy.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its name.
    pub name: String,
    pub(crate) settings: Vec<Setting>,
}

/// The components of a study.
pub(super) fn components(tree: &Node) -> Vec<Component> {
    let Some(Kind::Map(fields)) = tree.field("components").map(|node| &node.kind) else {
        return Vec::new();
    };
    fields
        .iter()
        .map(|(name, _, node)| Component { name: name.clone(), settings: patch::settings(node) })
        .collect()
}

/// The factor of arms or workloads whose levels are the patches at `field`.
pub(super) fn patched(
    tree: &Node,
    field: &str,
    patches: &[PatchFields],
    components: &[Component],
) -> Result<Choices, Problem> {
    let mut levels: Vec<Level> = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let path = format!("{field}[{index}]");
        if levels.iter().any(|level| level.name == patch.name) {
            let path = format!("{path}.name");
            let message = format!("found `{}` for the second time; give it another", patch.name);
            return Err(Problem::new(tree.place_of(&path), path, message));
        }
        let with = patch.with.iter().enumerate().map(|(number, name)| {
            let path = format!("{path}.with[{number}]");
            named(tree, &path, name, components)
        });
        let with = with.collect::<Result<Vec<usize>, Problem>>()?;
        let own = set_of(tree, field, index).map_or_else(Vec::new, patch::settings);
        levels.push(Level { name: patch.name.clone(), with, own, tests: patch.tests.clone() });
    }
    let name = field.strip_suffix('s').unwrap_or(field).to_owned();
    Ok(Choices { stated: levels.len(), name, levels })
}

fn set_of<'a>(tree: &'a Node, field: &str, index: usize) -> Option<&'a Node> {
    match tree.field(field).map(|node| &node.kind) {
        Some(Kind::List(items)) => items.get(index).and_then(|node| node.field("set")),
        _ => None,
    }
}

/// Which component is called `name`, as written at `path`.
pub(super) fn named(
    tree: &Node,
    path: &str,
    name: &str,
    components: &[Component],
) -> Result<usize, Problem> {
    let names: Vec<&str> = components.iter().map(|component| component.name.as_str()).collect();
    names.iter().position(|&known| known == name).ok_or_else(|| {
        let hint = hint(name, names.iter().copied());
        let message = if names.is_empty() {
            format!("found `{name}`, but there are no `components:`")
        } else {
            format!("unknown component `{name}`{hint}; known: {}", quoted(&names))
        };
        Problem::new(tree.place_of(path), path, message)
    })
}

/// The arms of an isolation matrix over `components`: none of them, each alone, all but each, all.
pub(super) fn matrix(which: &[usize], components: &[Component]) -> Choices {
    let name = |index: &usize| components[*index].name.as_str();
    let arm = |name: String, with: Vec<usize>, tests: String| Level {
        name,
        with,
        own: Vec::new(),
        tests: Some(tests),
    };
    let mut levels = vec![arm("none".to_owned(), Vec::new(), "the baseline".to_owned())];
    for index in which {
        let tests = format!("what {} does alone", name(index));
        levels.push(arm(format!("only {}", name(index)), vec![*index], tests));
    }
    if which.len() > 2 {
        for index in which {
            let others = which.iter().copied().filter(|other| other != index).collect();
            let tests = format!("what is lost without {}", name(index));
            levels.push(arm(format!("all but {}", name(index)), others, tests));
        }
    }
    if which.len() > 1 {
        levels.push(arm("all".to_owned(), which.to_vec(), "the compound".to_owned()));
    }
    Choices { name: "arm".to_owned(), stated: levels.len(), levels }
}

/// Adds what belongs beside an arm with a gate or a priority: the same gate, and the same priority,
/// on round-robin and without anything else. `base` is the scenario that arms are patches on.
pub(super) fn add_references(
    base: &Node,
    arms: &mut Choices,
    components: &[Component],
) -> Result<(), Problem> {
    let mut known = Vec::new();
    let mut added = Vec::new();
    let resolved = |level: &Level| {
        let mut tree = base.clone();
        level.apply(&mut tree, components);
        patch::resolve(&tree, std::slice::from_ref(&level.name))
    };
    for level in &arms.levels {
        let checked = resolved(level)?;
        known.push(checked.meaning());
        let plan = checked.plan();
        if plan.routing() == "round-robin" {
            continue;
        }
        let plain = [("scheduler", "fcfs"), ("priority", "constant")];
        if plan.policies.admission.to_string() != "always-admit" {
            added.push(level.reference("gate", &plain));
        }
        if plan.scheduler() != "fcfs" || plan.policies.priority.name() != "constant" {
            added.push(level.reference("priority", &[("admission", "always-admit")]));
        }
    }
    for level in added {
        let meaning = resolved(&level)?.meaning();
        if !known.contains(&meaning) {
            known.push(meaning);
            arms.levels.push(level);
        }
    }
    Ok(())
}

impl Level {
    /// The same on round-robin, with `others` set back.
    fn reference(&self, what: &str, others: &[(&str, &str)]) -> Level {
        let mut own = self.own.clone();
        own.push(patch::policy("routing", "round-robin"));
        own.extend(others.iter().map(|(field, name)| patch::policy(field, name)));
        Level {
            name: format!("{what} of {} on round-robin", self.name),
            own,
            tests: Some(format!("what the {what} does without the router")),
            ..self.clone()
        }
    }
}
