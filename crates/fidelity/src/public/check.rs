//! What is wrong with a file of published measurements: all of it at once, before anything runs.

use super::load::MOST_TOKENS;
use super::{Arm, Published, number};
use blis_scenario::problems::{Findings, Problems};
use blis_scenario::yaml::{Kind, Node};

/// Checks what was read from `tree`.
pub(super) fn check(published: &Published, tree: &Node) -> Result<(), Problems> {
    let Published { workload, arms, columns, seeds, .. } = published;
    let mut found = Findings::default();
    let mut wrong = |path: &str, message: String| {
        found.keep::<()>(Err(tree.problem(path, message)));
    };
    if workload.measured.is_some() != arms.is_empty() {
        wrong("arms", "a file has either arms or `workload.measured`".to_owned());
    }
    if !(1..=1000).contains(seeds) {
        wrong("seeds", format!("found {seeds}; legal: 1 to 1000"));
    }
    if columns.is_empty() {
        wrong("columns", "found an empty list; name what was measured".to_owned());
    }
    for (index, column) in columns.iter().enumerate().filter(|(at, it)| columns[..*at].contains(it))
    {
        wrong(&format!("columns[{index}]"), format!("{} is there twice", column.name()));
    }
    let own = arms.iter().any(|arm| !arm.requests.is_empty());
    for message in workload.odd(own).into_iter().chain(workload.illegal()) {
        wrong("workload", message);
    }
    for (index, arm) in arms.iter().enumerate() {
        let name = &arm.name;
        if arms[..index].iter().any(|other| other.name == *name) {
            let message = format!("there are two arms `{name}`; rename one");
            wrong(&format!("arms[{index}].name"), message);
        }
        for (field, message) in published.wrong_with(arm) {
            wrong(&format!("arms[{index}].{field}"), format!("`{name}`{message}"));
        }
    }
    found.done(())
}

impl Published {
    /// The fields of an arm that are wrong, and why, as the rest of a sentence about it.
    fn wrong_with(&self, arm: &Arm) -> Vec<(&'static str, String)> {
        let Published { workload, columns, .. } = self;
        let mut wrong = Vec::new();
        if !matches!(arm.set.kind, Kind::Map(_) | Kind::Null) {
            let message = format!(" has `set: {}`; legal: fields of a scenario", arm.set.to_json());
            wrong.push(("set", message));
        }
        if arm.points.is_empty() {
            wrong.push(("points", " has no points; add one, or remove the arm".to_owned()));
        }
        let (keys, numbers) = (workload.keys(), columns.len());
        if arm.points.iter().any(|point| point.len() != keys + numbers) {
            let at = if keys == 1 { "a rate" } else { "TP, users, prompt, output" };
            let message = format!(" has a point that is not {at} and {numbers} numbers");
            wrong.push(("points", message));
        }
        let rates: Vec<f64> = arm.points.iter().filter_map(|row| number(row.first()?)).collect();
        let (known, here) = (workload.illegal(), workload.of_arm(&arm.requests, &rates).illegal());
        let here = here.into_iter().filter(|message| !known.contains(message));
        wrong.extend(here.map(|message| ("points", format!(", {message}"))));
        let mut budget = |message: &str| {
            wrong.push(("budget_per_prompt", format!(": `budget_per_prompt` {message}")));
        };
        if arm.budget_per_prompt.is_some() && workload.users.is_none() {
            budget("has no effect without `users`; remove it");
        }
        if arm.budget_per_prompt.is_some_and(|times| !(0.001..=1e3).contains(&times)) {
            budget("is 0.001 to 1000");
        }
        wrong.extend(self.illegal_cells(arm).map(|message| ("points", message)));
        wrong
    }

    /// The numbers of its points that are none, or cannot be.
    fn illegal_cells(&self, arm: &Arm) -> impl Iterator<Item = String> {
        let (keys, users) = (self.workload.keys(), self.workload.users.is_some());
        let cells = arm.points.iter().flat_map(|point| point.iter().enumerate());
        let illegal = cells.filter(move |(at, cell)| {
            let open = !users || *at >= keys;
            match number(cell) {
                // Users, prompts and answers must be sent, and not only compared.
                Some(value) if !open => !(1.0..=MOST_TOKENS).contains(&value),
                Some(value) => !value.is_finite() || value <= 0.0,
                None => !matches!(cell.kind, Kind::Null) || !open,
            }
        });
        illegal.map(|(_, cell)| {
            let found = cell.to_json();
            format!(" has a point with {found}; legal: numbers above 0, or ~ for none")
        })
    }
}
