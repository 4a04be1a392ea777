//! Genomes: strategies as formulas and choices.

use crate::tree::{parts, size};
use blis_policy::formula::Formula;
use blis_policy::formula::signals::{Role, SIGNALS, Signal};
use blis_policy::formula::syntax::Expr;
use std::collections::BTreeSet;

/// What may be bred.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The signals that formulas may read; empty: all that their role knows.
    pub signals: Vec<String>,
    /// Whether there may be a gate.
    pub gate: bool,
    /// Whether there may be a priority.
    pub priority: bool,
    /// Other parts of a strategy, with what each may be.
    pub parts: Vec<Part>,
    /// The most parts that the formulas of a genome have together.
    pub size: usize,
}

/// A part of a strategy that is chosen, not bred.
#[derive(Clone, Debug)]
pub struct Part {
    /// The field of the scenario.
    pub field: String,
    /// What it may be: policies as they are spelled. Numbers in them are where breeding starts.
    pub options: Vec<String>,
}

/// A strategy that was bred.
#[derive(Clone, Debug, PartialEq)]
pub struct Genome {
    /// The score of an instance.
    pub score: Expr,
    /// Who is admitted; absent: everybody.
    pub gate: Option<Expr>,
    /// The priority of a request that waits; absent: as the scheduler has it.
    pub priority: Option<Expr>,
    /// For each part of the space, the policy that it is.
    pub parts: Vec<String>,
}

impl Space {
    /// The signals that a formula of `role` may read here.
    pub(crate) fn signals(&self, role: Role) -> impl Iterator<Item = &'static Signal> {
        let known = SIGNALS.iter().filter(move |signal| signal.is_known_to(role));
        known.filter(|signal| {
            self.signals.is_empty() || self.signals.iter().any(|name| name == signal.name)
        })
    }
}

impl Genome {
    /// Its formulas with what they decide.
    pub fn formulas(&self) -> impl Iterator<Item = (Role, &Expr)> {
        let gate = self.gate.iter().map(|gate| (Role::Gate, gate));
        let priority = self.priority.iter().map(|priority| (Role::Priority, priority));
        std::iter::once((Role::Scorer, &self.score)).chain(gate).chain(priority)
    }

    /// How many parts its formulas have together.
    pub fn size(&self) -> usize {
        self.formulas().map(|(_, formula)| size(formula)).sum()
    }

    /// The signals that its formulas read.
    pub(crate) fn signals(&self) -> BTreeSet<&str> {
        let all = self.formulas().flat_map(|(_, formula)| parts(formula));
        let names = all.filter_map(|part| match part {
            Expr::Name(name) => Some(name.as_str()),
            _ => None,
        });
        names.collect()
    }

    /// Whether its score reads what of a prompt is cached where.
    pub fn reads_hits(&self) -> bool {
        let score = Formula::read(Role::Scorer, &self.score.to_string());
        score.is_ok_and(|score| score.reads_hits())
    }

    /// Whether all of its formulas are legal.
    pub(crate) fn is_legal(&self) -> bool {
        self.formulas().all(|(role, formula)| Formula::read(role, &formula.to_string()).is_ok())
    }

    /// The same with `formula` as its formula of `role`.
    pub(crate) fn with(&self, role: Role, formula: Option<Expr>) -> Genome {
        let mut genome = self.clone();
        match (role, formula) {
            (Role::Gate, gate) => genome.gate = gate,
            (Role::Scorer, Some(score)) => genome.score = score,
            (Role::Scorer, None) => {}
            (_, priority) => genome.priority = priority,
        }
        genome
    }

    /// The scenario fields that it sets, step by step, with their values.
    pub fn settings(&self, space: &Space, knowledge: &str) -> Vec<(Vec<String>, String)> {
        let path = |steps: &[&str]| steps.iter().map(|&step| step.to_owned()).collect();
        let mut all = vec![(path(&["routing", "formula"]), self.score.to_string())];
        if self.reads_hits() {
            all.push((path(&["routing", "params", "knowledge"]), knowledge.to_owned()));
        }
        let gate = self.gate.iter().map(|gate| (path(&["admission", "admit_when"]), gate));
        let priority = self.priority.iter().map(|it| (path(&["priority", "formula"]), it));
        all.extend(gate.chain(priority).map(|(path, formula)| (path, formula.to_string())));
        let parts = space.parts.iter().zip(&self.parts);
        all.extend(parts.map(|(part, chosen)| (path(&[&part.field]), chosen.clone())));
        all
    }

    /// It in one line; the same for no other genome of its space.
    pub fn text(&self, space: &Space) -> String {
        let gate = self.gate.iter().map(|gate| format!("; admit when {gate}"));
        let priority = self.priority.iter().map(|priority| format!("; priority {priority}"));
        let parts = space.parts.iter().zip(&self.parts);
        let parts = parts.filter(|(part, it)| part.options[..] != [(*it).clone()]);
        let parts = parts.map(|(part, it)| format!("; {} {it}", part.field));
        let rest: String = gate.chain(priority).chain(parts).collect();
        format!("{}{rest}", self.score)
    }
}
