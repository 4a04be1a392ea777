//! Search spaces: what may be chosen, and how it looks to a search.
//!
//! A space is a list of dimensions. A [`Point`] gives each of them a value, except those that do
//! not exist under the choices made. Inside, every point is a vector of unit coordinates in 0..=1:
//! whole numbers and choices stand in the middle of cells of equal width, so that a uniform
//! coordinate is a uniform choice. This module must never know what is searched for.

use crate::kind::{Kind, option_at};
use blis_core::Value;
use blis_core::math::float;
use std::fmt;

/// What may be chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    dimensions: Vec<Dimension>,
    /// Dimensions of which only the ratios matter, such as weights.
    ratios: Vec<Vec<usize>>,
}

/// One thing that is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Its name, unique in the space.
    pub name: String,
    /// What it can be.
    pub kind: Kind,
    /// When it exists; always, if absent.
    pub condition: Option<Condition>,
}

/// A dimension exists only under one option of a choice that stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Index of the choice.
    pub parent: usize,
    /// Index of the option.
    pub option: usize,
}

/// A value for each dimension; `None` for those that do not exist here.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// In the order of the dimensions.
    pub values: Vec<Option<Value>>,
}

/// Why there is no such space, or no such point in it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpaceError {
    /// There is nothing to search.
    #[error("the search space has no dimension: name at least one parameter")]
    Empty,
    /// Two dimensions of one name.
    #[error("the dimension `{0}` is there twice: give each its own name")]
    Twice(String),
    /// A range or a list of options that has no value.
    #[error("the dimension `{name}` has no legal range: {why}")]
    Range {
        /// The dimension.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A condition on something that is no choice before it, or on an option that it lacks.
    #[error("the dimension `{0}` must depend on an option of a choice that stands before it")]
    Condition(String),
    /// A point with too many or too few values.
    #[error("a point of this space has {expected} values, not {found}")]
    Length {
        /// Dimensions of the space.
        expected: usize,
        /// Values of the point.
        found: usize,
    },
    /// A value that the dimension cannot have.
    #[error("`{name}` cannot be `{found}` here; legal: {legal}")]
    Value {
        /// The dimension.
        name: String,
        /// The value, or `nothing`.
        found: String,
        /// What would be.
        legal: String,
    },
}

/// Where the coordinate of a number that does not exist stands: a fixed place keeps kernels
/// positive definite, and the middle is nearest to everything.
const ABSENT: f64 = 0.5;

/// Where the coordinate of a choice that does not exist stands: it equals no option.
const ABSENT_CHOICE: f64 = -1.0;

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.values.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            match value {
                Some(value) => write!(f, "{gap}{value}")?,
                None => write!(f, "{gap}-")?,
            }
        }
        Ok(())
    }
}

impl Dimension {
    /// A dimension that always exists.
    pub fn new(name: impl Into<String>, kind: Kind) -> Dimension {
        Dimension { name: name.into(), kind, condition: None }
    }

    /// The dimension, existing only under option `option` of the choice at index `parent`.
    #[must_use]
    pub fn under(mut self, parent: usize, option: usize) -> Dimension {
        self.condition = Some(Condition { parent, option });
        self
    }
}

impl Space {
    /// The space of `dimensions`.
    ///
    /// # Errors
    /// If there is none, a name is used twice, a range is empty, or a condition is on something
    /// that is no option of a choice before it.
    pub fn new(dimensions: Vec<Dimension>) -> Result<Space, SpaceError> {
        if dimensions.is_empty() {
            return Err(SpaceError::Empty);
        }
        for (index, dimension) in dimensions.iter().enumerate() {
            let name = dimension.name.clone();
            if dimensions[..index].iter().any(|other| other.name == name) {
                return Err(SpaceError::Twice(name));
            }
            if let Err(why) = dimension.kind.check() {
                return Err(SpaceError::Range { name, why });
            }
            if let Some(Condition { parent, option }) = dimension.condition {
                let parent = dimensions[..index].get(parent).map(|parent| &parent.kind);
                let known =
                    matches!(parent, Some(Kind::Choice { options }) if option < options.len());
                if !known {
                    return Err(SpaceError::Condition(name));
                }
            }
        }
        Ok(Space { dimensions, ratios: Vec::new() })
    }

    /// The space in which only the ratios of the numbers of each of `groups` matter: points that
    /// differ in nothing else are one point, and have the coordinates of the largest of them.
    ///
    /// # Panics
    /// If one of them is no number on a plain scale from 0 on.
    #[must_use]
    pub fn with_ratios(mut self, groups: Vec<Vec<usize>>) -> Space {
        let plain = |&index: &usize| {
            let kind = &self.dimensions[index].kind;
            matches!(kind, Kind::Float { min, max } if *min >= 0.0 && *max > 0.0)
        };
        assert!(groups.iter().flatten().all(plain), "only plain numbers have ratios");
        self.ratios = groups;
        self
    }

    /// The dimensions, in order.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// How many dimensions there are.
    pub fn len(&self) -> usize {
        self.dimensions.len()
    }

    /// Never: a space has a dimension.
    pub fn is_empty(&self) -> bool {
        self.dimensions.is_empty()
    }

    /// Number of distinct points, up to `limit`; `None` if there are more.
    pub fn size(&self, limit: u64) -> Option<u64> {
        // Dimensions are counted as if each always existed, then bundled by what exists: exact
        // counting walks the conditions backwards, since a child stands after its parent.
        let mut below: Vec<Vec<u64>> = self
            .dimensions
            .iter()
            .map(|dimension| match &dimension.kind {
                Kind::Choice { options } => vec![1; options.len()],
                _ => Vec::new(),
            })
            .collect();
        let mut total = 1_u64;
        for (index, dimension) in self.dimensions.iter().enumerate().rev() {
            let own = match &dimension.kind {
                Kind::Choice { .. } => below[index]
                    .iter()
                    .try_fold(0_u64, |sum, &n| sum.checked_add(n).filter(|&sum| sum <= limit))?,
                kind => kind.levels().filter(|&levels| levels <= limit)?,
            };
            let factor = match dimension.condition {
                Some(Condition { parent, option }) => &mut below[parent][option],
                None => &mut total,
            };
            *factor = factor.checked_mul(own).filter(|&product| product <= limit)?;
        }
        Some(total)
    }

    /// The point at unit coordinates.
    ///
    /// # Panics
    /// If there are not as many coordinates as dimensions.
    pub fn point(&self, unit: &[f64]) -> Point {
        assert_eq!(unit.len(), self.len(), "one coordinate a dimension");
        let mut values: Vec<Option<Value>> = Vec::with_capacity(self.len());
        for (dimension, &u) in self.dimensions.iter().zip(unit) {
            let exists = dimension.condition.is_none_or(|condition| {
                let parent = &self.dimensions[condition.parent];
                values[condition.parent]
                    .as_ref()
                    .is_some_and(|value| parent.option_of(value) == Some(condition.option))
            });
            values.push(exists.then(|| dimension.kind.value(u)));
        }
        Point { values }
    }

    /// The unit coordinates of `point`. What does not exist has a fixed coordinate.
    ///
    /// # Errors
    /// If the point is not of this space.
    pub fn unit(&self, point: &Point) -> Result<Vec<f64>, SpaceError> {
        if point.values.len() != self.len() {
            let (expected, found) = (self.len(), point.values.len());
            return Err(SpaceError::Length { expected, found });
        }
        let mut unit = Vec::with_capacity(self.len());
        for (dimension, value) in self.dimensions.iter().zip(&point.values) {
            let exists = dimension.condition.is_none_or(|Condition { parent, option }| {
                let of_parent = point.values[parent].as_ref();
                of_parent.is_some_and(|v| self.dimensions[parent].option_of(v) == Some(option))
            });
            let coordinate = match (exists, value) {
                (false, None) => Some(dimension.absent()),
                (true, Some(value)) => dimension.kind.unit(value),
                _ => None,
            };
            unit.push(coordinate.ok_or_else(|| SpaceError::Value {
                name: dimension.name.clone(),
                found: value.as_ref().map_or("nothing".to_owned(), ToString::to_string),
                legal: if exists {
                    dimension.kind.legal()
                } else {
                    "nothing under these choices".to_owned()
                },
            })?);
        }
        self.enlarge(&mut unit);
        Ok(unit)
    }

    /// Moves numbers of which only the ratios matter as far from 0 as their ranges allow; if all
    /// are 0, to their upper ends.
    fn enlarge(&self, unit: &mut [f64]) {
        for group in &self.ratios {
            if !self.exists(unit, group[0]) {
                continue;
            }
            let bounds = |&index: &usize| match self.dimensions[index].kind {
                Kind::Float { min, max } => (min, max),
                _ => unreachable!("checked when the space was made"),
            };
            let value = |index: &usize, unit: &[f64]| {
                let (min, max) = bounds(index);
                min + unit[*index] * (max - min)
            };
            let fits = group.iter().map(|index| bounds(index).1 / value(index, unit));
            let factor = fits.fold(f64::INFINITY, f64::min);
            for index in group {
                let (min, max) = bounds(index);
                let larger = if factor.is_finite() { factor * value(index, unit) } else { max };
                let width = (max - min).max(f64::MIN_POSITIVE);
                unit[*index] = ((larger - min) / width).clamp(0.0, 1.0);
            }
        }
    }

    /// Moves coordinates to the nearest ones that stand for a point: whole numbers and choices to
    /// the middles of their cells, what does not exist to its fixed place.
    ///
    /// # Panics
    /// If there are fewer coordinates than dimensions.
    pub fn snap(&self, unit: &mut [f64]) {
        for (index, dimension) in self.dimensions.iter().enumerate() {
            let exists = self.exists(unit, index);
            unit[index] = match &dimension.kind {
                _ if !exists => dimension.absent(),
                Kind::Float { .. } | Kind::Log { .. } => unit[index].clamp(0.0, 1.0),
                kind => {
                    let value = kind.value(unit[index]);
                    kind.unit(&value).expect("a kind has its own values")
                }
            };
        }
        self.enlarge(unit);
    }

    /// Whether dimension `index` exists under the choices of `unit`, of which those before `index`
    /// must be snapped.
    pub(crate) fn exists(&self, unit: &[f64], index: usize) -> bool {
        self.dimensions[index].condition.is_none_or(|Condition { parent, option }| {
            let options = self.dimensions[parent].options();
            unit[parent] >= 0.0 && option_at(unit[parent], options) == option
        })
    }

    /// Which dimensions are choices, for kernels.
    pub(crate) fn choices(&self) -> Vec<bool> {
        self.dimensions.iter().map(|dimension| dimension.kind.is_choice()).collect()
    }
}

impl Dimension {
    fn absent(&self) -> f64 {
        if self.kind.is_choice() { ABSENT_CHOICE } else { ABSENT }
    }

    /// The number at coordinate `u`.
    ///
    /// # Panics
    /// If the dimension is a choice.
    pub(crate) fn number_at(&self, u: f64) -> f64 {
        match self.kind.value(u) {
            Value::Float(x) => x,
            Value::Int(n) => float(n),
            other => panic!("`{}` is no number but `{other}`", self.name),
        }
    }

    fn options(&self) -> usize {
        match &self.kind {
            Kind::Choice { options } => options.len(),
            _ => 0,
        }
    }

    fn option_of(&self, value: &Value) -> Option<usize> {
        match &self.kind {
            Kind::Choice { options } => options.iter().position(|option| option == value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    fn words(all: &[&str]) -> Kind {
        Kind::Choice { options: all.iter().map(|&w| Value::Word(w.to_owned())).collect() }
    }

    fn mixed() -> Space {
        Space::new(vec![
            Dimension::new("share", Kind::Float { min: -2.0, max: 3.0 }),
            Dimension::new("rate", Kind::Log { min: 0.01, max: 100.0 }),
            Dimension::new("count", Kind::Int { min: 3, max: 9 }),
            Dimension::new("size", Kind::Int { min: 1, max: 4096 }),
            Dimension::new("policy", words(&["a", "b", "c"])),
            Dimension::new("depth", Kind::Int { min: 1, max: 4 }).under(4, 1),
            Dimension::new("mode", words(&["x", "y"])).under(4, 2),
            Dimension::new("limit", Kind::Float { min: 0.0, max: 1.0 }).under(6, 1),
        ])
        .expect("a legal space")
    }

    #[test]
    fn points_come_back_from_their_coordinates() {
        let space = mixed();
        let mut absent = [0; 8];
        for key in 0..500 {
            let mut dice = Dice::new(4, Purpose::Search, key);
            let raw: Vec<f64> = (0..8).map(|_| dice.unit()).collect();
            let point = space.point(&raw);
            let unit = space.unit(&point).expect("a point of the space");
            let again = space.point(&unit);
            for (a, b) in point.values.iter().zip(&again.values) {
                match (a, b) {
                    (Some(Value::Float(a)), Some(Value::Float(b))) => {
                        assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "{point}: {again}");
                    }
                    _ => assert_eq!(a, b, "{point}: {again}"),
                }
            }
            let mut snapped = raw.clone();
            space.snap(&mut snapped);
            let mut twice = snapped.clone();
            space.snap(&mut twice);
            assert_eq!(snapped, twice, "snapping twice is snapping once");
            for (s, u) in snapped.iter().zip(&unit) {
                assert!((s - u).abs() < 1e-9, "{snapped:?} {unit:?}");
            }
            for (count, value) in absent.iter_mut().zip(&point.values) {
                *count += usize::from(value.is_none());
            }
        }
        assert_eq!(absent[..5], [0; 5]);
        assert!(absent[5..].iter().all(|&n| (100..490).contains(&n)), "{absent:?}");
    }

    #[test]
    fn whole_numbers_and_choices_are_hit_equally_often() {
        let space = mixed();
        let mut counts = [0_u32; 7];
        let mut options = [0_u32; 3];
        for i in 0..2100_u32 {
            let u = (f64::from(i) + 0.5) / 2100.0;
            let point = space.point(&[u; 8]);
            let Some(Value::Int(n)) = point.values[2] else { panic!("{point}") };
            counts[usize::try_from(n - 3).unwrap()] += 1;
            let of_policy = space.dimensions[4].option_of(point.values[4].as_ref().unwrap());
            options[of_policy.unwrap()] += 1;
        }
        assert_eq!(counts, [300; 7]);
        assert_eq!(options, [700; 3]);
    }

    #[test]
    fn points_with_the_same_ratios_are_one_point() {
        let weight = |name: &str| Dimension::new(name, Kind::Float { min: 0.0, max: 10.0 });
        let other = Dimension::new("gate", Kind::Float { min: 0.0, max: 10.0 });
        let space = Space::new(vec![weight("pa"), weight("qd"), weight("kv"), other])
            .expect("a legal space")
            .with_ratios(vec![vec![0, 1, 2]]);
        let unit = |values: [f64; 4]| {
            let values = values.map(|value| Some(Value::Float(value))).to_vec();
            space.unit(&Point { values }).expect("a point of this space")
        };
        let near = |a: &[f64], b: [f64; 4]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-9);
        let largest = [1.0, 2.0 / 3.0, 2.0 / 3.0, 0.5];
        assert!(near(&unit([3.0, 2.0, 2.0, 5.0]), largest));
        assert!(near(&unit([6.0, 4.0, 4.0, 5.0]), largest));
        assert!(near(&unit([0.0, 0.0, 0.0, 5.0]), [1.0, 1.0, 1.0, 0.5]), "all equal");
        let mut corner = [0.5, 0.0, 0.0, 0.0];
        space.snap(&mut corner);
        assert!(near(&corner, [1.0, 0.0, 0.0, 0.0]));
    }

    #[test]
    fn a_logarithmic_range_gives_each_octave_the_same_room() {
        let space = mixed();
        for (u, rate) in [(0.0, 0.01), (0.25, 0.1), (0.5, 1.0), (1.0, 100.0)] {
            let Some(Value::Float(found)) = space.point(&[u; 8]).values[1] else { panic!("{u}") };
            assert!((found - rate).abs() < 1e-12 * rate, "{u}: {found}");
        }
    }

    #[test]
    fn points_of_other_spaces_are_refused() {
        let space = mixed();
        let good = space.point(&[0.5; 8]);
        let with = |index: usize, value: Option<Value>| {
            let mut point = good.clone();
            point.values[index] = value;
            space.unit(&point).expect_err("must be refused").to_string()
        };
        assert!(with(0, Some(Value::Float(9.0))).contains("a number from -2 to 3"));
        assert!(with(0, Some(Value::Int(1))).contains("`share` cannot be `1` here"));
        assert!(with(0, None).contains("`share` cannot be `nothing`"));
        assert!(with(4, Some(Value::Word("z".to_owned()))).contains("one of `a`, `b`, `c`"));
        assert!(with(7, Some(Value::Float(0.5))).contains("nothing under these choices"));
        let short = Point { values: vec![None] };
        assert!(space.unit(&short).expect_err("refused").to_string().contains("8 values, not 1"));
    }

    #[test]
    fn spaces_that_cannot_be_searched_are_refused() {
        let refuse = |dimensions: Vec<Dimension>| {
            Space::new(dimensions).expect_err("must be refused").to_string()
        };
        let float = |name: &str, min, max| Dimension::new(name, Kind::Float { min, max });
        assert!(refuse(Vec::new()).contains("no dimension"));
        assert!(refuse(vec![float("a", 0.0, 1.0), float("a", 0.0, 1.0)]).contains("`a` is there"));
        assert!(refuse(vec![float("a", 1.0, 0.0)]).contains("the least first"));
        assert!(refuse(vec![float("a", 0.0, f64::INFINITY)]).contains("finite"));
        let log = Kind::Log { min: 0.0, max: 1.0 };
        assert!(refuse(vec![Dimension::new("a", log)]).contains("above 0"));
        let empty = Kind::Choice { options: Vec::new() };
        assert!(refuse(vec![Dimension::new("a", empty)]).contains("an option"));
        assert!(refuse(vec![Dimension::new("a", words(&["x", "x"]))]).contains("twice"));
        let orphan = vec![float("a", 0.0, 1.0), float("b", 0.0, 1.0).under(0, 0)];
        assert!(refuse(orphan).contains("`b` must depend on an option"));
        let late = vec![Dimension::new("a", words(&["x"])), float("b", 0.0, 1.0).under(0, 1)];
        assert!(refuse(late).contains("`b` must depend on an option"));
    }

    #[test]
    fn the_size_of_a_space_counts_what_exists() {
        let space = Space::new(vec![
            Dimension::new("policy", words(&["a", "b", "c"])),
            Dimension::new("depth", Kind::Int { min: 1, max: 4 }).under(0, 1),
            Dimension::new("mode", words(&["x", "y"])).under(0, 2),
            Dimension::new("limit", Kind::Int { min: 1, max: 5 }).under(2, 1),
            Dimension::new("free", Kind::Int { min: 1, max: 2 }),
        ])
        .expect("a legal space");
        // a, b with 4 depths, c with x, c with y and 5 limits: 11, twice.
        assert_eq!(space.size(100), Some(22));
        assert_eq!(space.size(21), None);
        assert_eq!(mixed().size(1 << 40), None);
    }
}
