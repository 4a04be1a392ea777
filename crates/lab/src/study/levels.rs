//! Factors with what their levels set: from these the scenario of every cell is made.

use super::arms::Component;
use super::patch::{self, Setting};
use crate::design::{Design, Factor};
use blis_scenario::problem::Problem;
use blis_scenario::problems::Findings;
use blis_scenario::yaml::{Kind, Named, Node};

/// One thing that cells differ in, with what each level sets.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) name: String,
    pub(crate) levels: Vec<Level>,
    pub(crate) stated: usize,
}

/// One of the things that it can be.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) name: String,
    /// The components it is put together from.
    pub(crate) with: Vec<usize>,
    /// What it sets itself, after them.
    pub(crate) own: Vec<Setting>,
    /// What it is there for.
    pub(crate) tests: Option<String>,
    /// How its strategy's parameters are searched before the study runs.
    pub(crate) tuned: Option<Tuning>,
    /// Whether all that it sets is known.
    pub(crate) whole: bool,
}

/// A search for the parameters of an arm.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// How many points are tried.
    pub(crate) calls: usize,
    /// The swept value at which they are tried, for all others as well; without it, at each.
    pub(crate) at: Option<String>,
}

impl Level {
    /// One that sets nothing.
    pub(super) fn named(name: String) -> Level {
        Level { name, with: Vec::new(), own: Vec::new(), tests: None, tuned: None, whole: true }
    }

    /// Sets in `tree` all that it sets.
    pub(crate) fn apply(&self, tree: &mut Node, components: &[Component]) {
        for &index in &self.with {
            patch::apply(tree, &components[index].settings);
        }
        patch::apply(tree, &self.own);
    }
}

/// The factors that are swept: a field's path, and its values. A field whose values are broken is
/// broken in every cell.
pub(super) fn swept(tree: &Node, sweep: &Named<Vec<Node>>, found: &mut Findings) -> Vec<Choices> {
    let Some(Kind::Map(written)) = tree.field("sweep").map(|node| &node.kind) else {
        return Vec::new();
    };
    let mut factors = Vec::new();
    for (name, place, _) in written {
        let values = sweep.0.iter().find(|(known, _)| known == name).map(|(_, values)| &values[..]);
        if values == Some(&[]) {
            let message = "found an empty list; legal: at least one value";
            let problem = Problem::new(place.clone(), format!("sweep.{name}"), message);
            found.keep::<()>(Err(problem));
        }
        let broken = [Node { place: place.clone(), kind: Kind::Broken }];
        let values = values.filter(|values| !values.is_empty()).unwrap_or(&broken);
        let steps: Vec<String> = name.split('.').map(str::to_owned).collect();
        let level = |value: &Node| Level {
            own: vec![(steps.clone(), value.clone())],
            ..Level::named(shown(value))
        };
        let levels: Vec<Level> = values.iter().map(level).collect();
        factors.push(Choices { name: name.clone(), stated: levels.len(), levels });
    }
    factors
}

/// A value as the name of a level.
pub(super) fn shown(value: &Node) -> String {
    match &value.kind {
        Kind::Null | Kind::Broken => "none".to_owned(),
        Kind::Scalar { text, .. } => text.clone(),
        Kind::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Kind::Map(fields) => {
            let parts: Vec<String> =
                fields.iter().map(|(name, _, value)| format!("{name}={}", shown(value))).collect();
            parts.join(",")
        }
    }
}

/// The design of these factors.
pub(super) fn design(factors: &[Choices]) -> Design {
    let factor = |all: &Choices| Factor {
        name: all.name.clone(),
        levels: all.levels.iter().map(|level| level.name.clone()).collect(),
        stated: all.stated,
    };
    Design { factors: factors.iter().map(factor).collect(), searched: None }
}

/// The scenario of a cell, not yet checked.
pub(super) fn tree(
    base: &Node,
    factors: &[Choices],
    levels: &[usize],
    components: &[Component],
) -> Node {
    let mut tree = base.clone();
    for (factor, &level) in factors.iter().zip(levels) {
        factor.levels[level].apply(&mut tree, components);
    }
    tree
}

/// Whether one of these levels sets the field `name`.
pub(super) fn sets(
    factors: &[Choices],
    levels: &[usize],
    components: &[Component],
    name: &str,
) -> bool {
    let is = |(path, _): &Setting| path.len() == 1 && path[0] == name;
    factors.iter().zip(levels).any(|(factor, &level)| {
        let level = &factor.levels[level];
        let with = level.with.iter().flat_map(|&index| &components[index].settings);
        level.own.iter().chain(with).any(is)
    })
}
