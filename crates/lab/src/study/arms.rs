//! The arms of a study: patches, components put together, and references that belong beside them.

use super::Study;
use super::file::PatchFields;
use super::levels::{self, Choices, Level, Tuning};
use super::patch::{self, Setting};
use blis_scenario::problem::unknown;
use blis_scenario::problems::{Findings, Problems, every};
use blis_scenario::scenario::Plan;
use blis_scenario::strategy;
use blis_scenario::yaml::{Node, Whole};

/// Points that are tried for a tuned arm.
const DEFAULT_CALLS: u64 = 30;

/// A named part of a strategy.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its name.
    pub name: String,
    pub(crate) settings: Vec<Setting>,
}

impl Component {
    /// The component called `name`, which sets what `patch` says.
    pub(super) fn of((name, patch): &(String, Node)) -> Component {
        Component { name: name.clone(), settings: patch::settings(patch) }
    }
}

/// The factor of arms or workloads whose levels are the patches at `field`, beside those that are
/// `swept`.
pub(crate) fn patched(
    tree: &Node,
    field: &str,
    patches: &[PatchFields],
    components: &[Component],
    swept: &[Choices],
    found: &mut Findings,
) -> Choices {
    let mut levels: Vec<Level> = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let path = format!("{field}[{index}]");
        let name = found.keep(tree.required(&path, "name", patch.name.clone()));
        let name = name.unwrap_or_else(|| path.clone());
        found.keep(tree.check_name(format!("{path}.name"), &name));
        if levels.iter().any(|level| level.name == name) {
            let message = format!("found `{name}` twice; rename one");
            found.keep::<()>(Err(tree.problem(format!("{path}.name"), message)));
        }
        let with =
            patch.with.iter().enumerate().map(|(number, name)| {
                named(tree, &format!("{path}.with[{number}]"), name, components)
            });
        let with = found.keep(tree.whole(&[&format!("{path}.with")]).and_then(|()| every(with)));
        let mut own = patch.set.as_ref().map_or_else(Vec::new, patch::settings);
        let tuned = found.keep(tuned(tree, &path, patch, swept, field != "workloads"));
        let whole = with.is_some() && tuned.is_some();
        let with = with.unwrap_or_default();
        // Policies beside a strategy are set on top of it, in whatever order they are written.
        own.sort_by_key(|(path, _)| path[0] != strategy::FIELD);
        let is_strategy = matches!(&tuned, Some(Some(_))) || sets_strategy(&own);
        found.keep(replaced(tree, &path, &with, components, is_strategy));
        let tuned = tuned.flatten().map(|(strategy, tuning)| {
            own.insert(0, (vec![strategy::FIELD.to_owned()], strategy));
            tuning
        });
        levels.push(Level { name, with, own, tests: patch.tests.clone(), tuned, whole });
    }
    let name = field.strip_suffix('s').unwrap_or(field).to_owned();
    Choices { stated: levels.len(), name, levels }
}

fn sets_strategy(settings: &[Setting]) -> bool {
    settings.iter().any(|(path, _)| path[0] == strategy::FIELD)
}

/// Refuses components whose policies a strategy that is set after them would replace: that of a
/// later component, or the patch's own if it `is_strategy`.
fn replaced(
    tree: &Node,
    path: &str,
    with: &[usize],
    components: &[Component],
    is_strategy: bool,
) -> Result<(), Problems> {
    let mut after = is_strategy;
    every(with.iter().enumerate().rev().map(|(number, &index)| {
        let Component { name, settings } = &components[index];
        let policy = |(path, _): &&Setting| {
            strategy::POLICIES.iter().chain(&[strategy::FIELD]).any(|part| path[0] == *part)
        };
        let lost = settings.iter().find(policy).filter(|_| after);
        after |= sets_strategy(settings);
        let Some((part, _)) = lost else { return Ok(()) };
        let message = format!(
            "`{name}` sets `{}`, which the strategy of the arm replaces; remove one of the two",
            part[0]
        );
        Err(tree.problem(format!("{path}.with[{number}]"), message))
    }))
    .map(drop)
}

/// The strategy whose parameters are searched for the patch at `path`, and how.
fn tuned(
    tree: &Node,
    path: &str,
    patch: &PatchFields,
    swept: &[Choices],
    is_arm: bool,
) -> Result<Option<(Node, Tuning)>, Problems> {
    let Some(fields) = &patch.tuned else { return Ok(None) };
    let path = format!("{path}.tuned");
    if !is_arm {
        return Err(tree.problem(path, "only arms are tuned; remove it"));
    }
    let mut parts = strategy::POLICIES.iter().chain(&[strategy::FIELD]);
    if let Some(part) = parts.find(|part| patch.set.as_ref().is_some_and(|set| set.has(part))) {
        let message = format!("policies come from the strategy that is tuned; remove `set.{part}`");
        return Err(tree.problem(path, message));
    }
    let strategy = tree.required(&path, strategy::FIELD, fields.strategy.clone())?;
    let calls = fields.budget.map_or(DEFAULT_CALLS, Whole::get);
    let calls = usize::try_from(calls).unwrap_or(usize::MAX);
    let at = fields.at.as_ref().map(levels::shown);
    let values: Vec<&str> =
        swept.iter().flat_map(|factor| &factor.levels).map(|level| level.name.as_str()).collect();
    match at {
        Some(at) if !values.contains(&at.as_str()) => {
            let path = format!("{path}.at");
            Err(tree.problem(path, unknown("swept value", &at, &values)))
        }
        at => Ok(Some((strategy, Tuning { calls, at }))),
    }
}

/// Which component is called `name`, as written at `path`.
pub(super) fn named(
    tree: &Node,
    path: &str,
    name: &str,
    components: &[Component],
) -> Result<usize, Problems> {
    let names: Vec<&str> = components.iter().map(|component| component.name.as_str()).collect();
    names.iter().position(|&known| known == name).ok_or_else(|| {
        let message = if names.is_empty() {
            format!("found `{name}`, but there are no `components:`")
        } else {
            unknown("component", name, &names)
        };
        tree.problem(path, message)
    })
}

/// The arms of an isolation matrix over `components`: none of them, each alone, all but each, all.
pub(super) fn matrix(which: &[usize], components: &[Component]) -> Choices {
    let name = |index: &usize| components[*index].name.as_str();
    let arm = |name: String, with: Vec<usize>, tests: String| Level {
        with,
        tests: Some(tests),
        ..Level::named(name)
    };
    let mut levels = vec![arm("none".to_owned(), Vec::new(), "the baseline".to_owned())];
    for index in which {
        let tests = format!("{} alone", name(index));
        levels.push(arm(format!("only {}", name(index)), vec![*index], tests));
    }
    if which.len() > 2 {
        for index in which {
            let others = which.iter().copied().filter(|other| other != index).collect();
            let tests = format!("all without {}", name(index));
            levels.push(arm(format!("all but {}", name(index)), others, tests));
        }
    }
    if which.len() > 1 {
        levels.push(arm("all".to_owned(), which.to_vec(), "the compound".to_owned()));
    }
    Choices { name: "arm".to_owned(), stated: levels.len(), levels }
}

impl Study {
    /// Calls the arm at `level` `name` from now on, unless another arm is called so.
    pub(super) fn rename_arm(&mut self, level: usize, name: &str) {
        let Some(arm) = self.design.factor("arm") else { return };
        let names = &mut self.design.factors[arm].levels;
        if names.iter().any(|known| known == name) {
            return;
        }
        // Its references have its name in theirs.
        let (old, of) = (names[level].clone(), format!(" of {} on ", names[level]));
        let renamed = |known: &mut String| {
            if *known == old {
                name.clone_into(known);
            } else {
                *known = known.replace(&of, &format!(" of {name} on "));
            }
        };
        names.iter_mut().for_each(renamed);
        self.levels[arm].levels.iter_mut().for_each(|level| renamed(&mut level.name));
        self.cells.iter_mut().for_each(|cell| renamed(&mut cell.levels[arm]));
        for hypothesis in &mut self.hypotheses {
            hypothesis.text = hypothesis.claim.text(&self.design);
            for (text, counter) in &mut hypothesis.fires {
                *text = counter.text(&self.design);
            }
        }
    }
}

impl Level {
    /// What belongs beside an arm with a gate or a priority, whose scenario is `plan`: the same
    /// gate, and the same priority, on round-robin and without anything else. All that may, if the
    /// scenario is not known.
    pub(super) fn references(&self, plan: Option<&Plan>) -> Vec<Level> {
        let gated = |plan: &Plan| plan.policies.admission.to_string() != "always-admit";
        let ordered =
            |plan: &Plan| plan.scheduler() != "fcfs" || plan.policies.priority.name() != "constant";
        let routed = plan.is_none_or(|plan| plan.routing() != "round-robin");
        let mut all = Vec::new();
        if routed && plan.is_none_or(gated) {
            all.push(self.reference("gate", &[("scheduler", "fcfs"), ("priority", "constant")]));
        }
        if routed && plan.is_none_or(ordered) {
            all.push(self.reference("priority", &[("admission", "always-admit")]));
        }
        all.into_iter().map(|level| Level { whole: plan.is_some(), ..level }).collect()
    }

    /// The same on round-robin, with `others` set back.
    fn reference(&self, what: &str, others: &[(&str, &str)]) -> Level {
        let mut own = self.own.clone();
        own.push(patch::policy("routing", "round-robin"));
        own.extend(others.iter().map(|(field, name)| patch::policy(field, name)));
        Level {
            name: format!("{what} of {} on round-robin", self.name),
            own,
            tests: Some(format!("the {what} without the router")),
            ..self.clone()
        }
    }
}
