//! The design of an experiment: what its cells differ in, its seeds and its warm-up.

use crate::metric::Metric;

/// The first seed unless a file says another; those after it count up.
pub const FIRST_SEED: u64 = 42;
/// The seed of the runs that find the warm-up, which is no seed of a study.
pub(crate) const PILOT_SEED: u64 = 41;

/// How much of each run is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warmup {
    /// What the scenarios say.
    Given,
    /// The same for all: the longest that a run of any cell needs by MSER-5.
    Auto,
    /// So many seconds.
    Seconds(f64),
}

/// What cells differ in. The first factor changes slowest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Design {
    /// The factors, in the order of the file.
    pub factors: Vec<Factor>,
    /// What is found for each cell by a search, besides the numbers of its runs.
    pub searched: Option<Metric>,
}

/// One thing that cells differ in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// `arm`, `workload`, or the path of a swept field.
    pub name: String,
    /// What it can be.
    pub levels: Vec<String>,
    /// So many of the levels, the first ones, are in the file; the others were added for reference.
    pub stated: usize,
}

impl Design {
    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.factors.iter().fold(1, |cells, factor| cells.saturating_mul(factor.levels.len()))
    }

    /// The cell with this level of each factor.
    ///
    /// # Panics
    /// If there is not one legal level for each factor.
    pub fn cell(&self, levels: &[usize]) -> usize {
        assert_eq!(levels.len(), self.factors.len(), "a level for each factor");
        self.factors.iter().zip(levels).fold(0, |cell, (factor, &level)| {
            assert!(level < factor.levels.len(), "{} has no level {level}", factor.name);
            cell * factor.levels.len() + level
        })
    }

    /// The level of each factor in `cell`.
    pub fn levels(&self, cell: usize) -> Vec<usize> {
        let mut left = cell;
        let mut levels: Vec<usize> = self
            .factors
            .iter()
            .rev()
            .map(|factor| {
                let level = left % factor.levels.len();
                left /= factor.levels.len();
                level
            })
            .collect();
        levels.reverse();
        levels
    }

    /// The names of the levels of `cell`.
    pub fn names(&self, cell: usize) -> Vec<String> {
        let levels = self.levels(cell);
        self.factors
            .iter()
            .zip(levels)
            .map(|(factor, level)| factor.levels[level].clone())
            .collect()
    }

    /// The number called `name`, of runs or searched.
    ///
    /// # Errors
    /// What is wrong with the name, and the nearest known one.
    pub fn metric(&self, name: &str) -> Result<Metric, String> {
        let searched = self.searched.filter(|metric| metric.name() == name);
        searched.map_or_else(|| Metric::parse(name), Ok)
    }

    /// Which factor has this name.
    pub fn factor(&self, name: &str) -> Option<usize> {
        self.factors.iter().position(|factor| factor.name == name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two workloads, three arms and a swept field, for tests.
    pub(crate) fn design() -> Design {
        let factor = |name: &str, levels: &[&str], stated| Factor {
            name: name.to_owned(),
            levels: levels.iter().map(|&level| level.to_owned()).collect(),
            stated,
        };
        Design {
            factors: vec![
                factor("workload", &["steady", "bursty"], 2),
                factor("arm", &["base", "full", "cpu 5,000 (PCIe)", "gate of full"], 3),
                factor("engine.total_kv_blocks", &["9000", "800"], 2),
            ],
            searched: None,
        }
    }

    #[test]
    fn cells_and_levels_are_two_names_of_the_same() {
        let design = design();
        assert_eq!(design.cells(), 16);
        for cell in 0..16 {
            assert_eq!(design.cell(&design.levels(cell)), cell);
        }
        assert_eq!(design.names(9), ["bursty", "base", "800"], "the last factor changes fastest");
    }
}
