//! The cells of a study as they are resolved: each of them once, with all problems of all of them.

use super::Cell;
use super::arms::Component;
use super::levels::{self, Choices};
use super::patch::{self, Once};
use blis_scenario::Files;
use blis_scenario::problems::{Findings, Problems};
use blis_scenario::scenario::Checked;
use blis_scenario::yaml::Node;
use std::collections::BTreeMap;

/// A cell, and its scenario with a rate that may still be a share of saturation.
type Resolved = (Cell, Checked);

/// The cells of a study.
pub(super) struct Cells<'a> {
    /// The scenario that they are patches on, if it is known.
    base: Option<&'a Node>,
    components: &'a [Component],
    /// What they differ in.
    pub(super) factors: Vec<Choices>,
    /// Those that were resolved, by their levels; `None`: in vain.
    known: BTreeMap<Vec<usize>, Option<Resolved>>,
    found: Findings,
    once: Once,
}

impl<'a> Cells<'a> {
    pub(super) fn new(
        base: Option<&'a Node>,
        components: &'a [Component],
        factors: Vec<Choices>,
        files: &Files,
    ) -> Cells<'a> {
        let (known, found, once) = (BTreeMap::new(), Findings::default(), Once::new(files));
        Cells { base, components, factors, known, found, once }
    }

    /// Adds the references that belong beside its arms, unless they are there already.
    pub(super) fn add_references(&mut self) {
        let Some(arm) = self.factors.iter().position(|factor| factor.name == "arm") else { return };
        let mut meanings = Vec::new();
        let mut wanted = Vec::new();
        for (index, level) in self.factors[arm].levels.clone().iter().enumerate() {
            let checked = self.first(arm, index);
            meanings.extend(checked.map(Checked::meaning));
            wanted.extend(level.references(checked.map(Checked::plan)));
        }
        for level in wanted {
            let index = self.factors[arm].levels.len();
            self.factors[arm].levels.push(level);
            match self.first(arm, index).map(Checked::meaning) {
                Some(meaning) if meanings.contains(&meaning) => {
                    self.factors[arm].levels.pop();
                    self.known.retain(|levels, _| levels[arm] < index);
                }
                meaning => meanings.extend(meaning),
            }
        }
    }

    /// The first cell with level number `index` of factor number `factor`.
    fn first(&mut self, factor: usize, index: usize) -> Option<&Checked> {
        let mut levels = vec![0; self.factors.len()];
        levels[factor] = index;
        self.resolve(&levels);
        self.known[&levels].as_ref().map(|(_, checked)| checked)
    }

    /// Resolves the cell at `levels`, unless that was done before.
    fn resolve(&mut self, levels: &[usize]) {
        if self.known.contains_key(levels) {
            return;
        }
        let chosen = self.factors.iter().zip(levels).map(|(factor, &level)| &factor.levels[level]);
        let chosen: Vec<_> = chosen.collect();
        let names: Vec<String> = chosen.iter().map(|level| level.name.clone()).collect();
        let cell = if let Some(base) = self.base.filter(|_| chosen.iter().all(|level| level.whole))
        {
            let tree = levels::tree(base, &self.factors, levels, self.components);
            let own_warmup = levels::sets(&self.factors, levels, self.components, "warmup_s");
            let checked = self.once.resolve(&tree, &patch::cell(&names));
            self.found.keep(checked).map(|checked| {
                let plan = checked.plan().clone();
                (Cell { levels: names, plan, own_warmup, tuned: None, tree }, checked)
            })
        } else {
            self.found.keep(Err(Problems::KNOWN))
        };
        self.known.insert(levels.to_vec(), cell);
    }

    /// All cells, in the order of the design.
    pub(super) fn all(mut self) -> Result<(Vec<Choices>, Vec<Resolved>), Problems> {
        let design = levels::design(&self.factors);
        for number in 0..design.cells() {
            if !self.found.is_full() {
                self.resolve(&design.levels(number));
            }
        }
        // The last factor changes fastest, as it does in the order of the keys.
        let cells = self.known.into_values().flatten().collect();
        self.found.done((self.factors, cells))
    }
}
