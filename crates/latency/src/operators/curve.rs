//! Functions of one and two numbers, as values at fixed places with straight lines between them:
//! made once for a machine, looked up in every step without a search.

/// Places in an octave, as a power of two: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 and so on.
const BITS: u32 = 2;
const SUB: u64 = 1 << BITS;

/// The place at or before `x`, and how far `x` is on the way to the next.
fn place(x: u64) -> (usize, f64) {
    if x < SUB {
        return (usize::try_from(x).unwrap_or(0), 0.0);
    }
    let shift = x.ilog2() - BITS;
    let behind = x & ((1 << shift) - 1);
    let index = SUB * u64::from(shift) + (x >> shift);
    let way = blis_core::math::float(behind) / blis_core::math::float(1 << shift);
    (usize::try_from(index).unwrap_or(usize::MAX - 1), way)
}

/// The number at a place.
fn knot(index: u64) -> u64 {
    if index < SUB { index } else { (SUB + index % SUB) << (index / SUB - 1) }
}

/// Places up to the first at or beyond `last`.
fn knots(last: u64) -> impl Iterator<Item = u64> {
    let (index, way) = place(last);
    (0..=index as u64 + u64::from(way > 0.0)).map(knot)
}

/// A function of one number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    values: Vec<f64>,
    last: u64,
}

impl Curve {
    /// The function that is `of` at the places up to `last`, and grows in proportion from there.
    /// It never falls.
    pub(super) fn new(last: u64, of: impl Fn(u64) -> f64) -> Curve {
        let mut highest = 0.0;
        let values = knots(last).map(|x| {
            highest = of(x).max(highest);
            highest
        });
        let values: Vec<f64> = values.collect();
        Curve { last: knot(values.len() as u64 - 1), values }
    }

    /// Its value at `x`.
    pub(super) fn at(&self, x: u64) -> f64 {
        let (index, way) = place(x);
        match self.values.get(index..index + 2) {
            Some(&[from, to]) => from + (to - from) * way,
            _ => self.values[self.values.len() - 1] * beyond(x, self.last),
        }
    }
}

/// How many times as far as `last` a number is; 1 if it is not beyond it.
fn beyond(x: u64, last: u64) -> f64 {
    blis_core::math::float(x.max(last)) / blis_core::math::float(last)
}

/// A function of two numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    rows: Vec<Curve>,
    last: u64,
}

impl Grid {
    /// The function that is `of` at the places up to `last`, and grows in proportion from there.
    /// It never falls.
    pub(super) fn new(last: [u64; 2], of: impl Fn(u64, u64) -> f64) -> Grid {
        let mut rows: Vec<Curve> = Vec::new();
        for x in knots(last[0]) {
            let mut row = Curve::new(last[1], |y| of(x, y));
            if let Some(before) = rows.last() {
                let pairs = row.values.iter_mut().zip(&before.values);
                pairs.for_each(|(value, before)| *value = value.max(*before));
            }
            rows.push(row);
        }
        Grid { last: knot(rows.len() as u64 - 1), rows }
    }

    /// Its value at `x` and `y`.
    pub(super) fn at(&self, x: u64, y: u64) -> f64 {
        let (index, way) = place(x);
        match self.rows.get(index..index + 2) {
            Some([row, _]) if way <= 0.0 => row.at(y),
            Some([from, to]) => {
                let from = from.at(y);
                from + (to.at(y) - from) * way
            }
            _ => self.rows[self.rows.len() - 1].at(y) * beyond(x, self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::math::float;

    #[test]
    fn places_are_where_their_numbers_are() {
        for index in 0..200 {
            let (at, way) = place(knot(index));
            assert_eq!((at as u64, way.to_bits()), (index, 0), "{index}");
        }
        assert_eq!(knots(16).collect::<Vec<u64>>()[4..], [4, 5, 6, 7, 8, 10, 12, 14, 16]);
        assert_eq!(place(11), (9, 0.5));
    }

    #[test]
    fn a_straight_line_stays_one_within_its_places_and_beyond() {
        let line = Curve::new(1000, float);
        for x in [0, 1, 3, 11, 700, 1023, 5000] {
            assert!((line.at(x) - float(x)).abs() < 1e-9, "{x}: {}", line.at(x));
        }
        let product = Grid::new([64, 1000], |x, y| float(x) * float(y));
        for (x, y) in [(1, 1), (9, 333), (64, 1024), (100, 2000)] {
            assert!((product.at(x, y) - float(x * y)).abs() < 1e-6, "{x}, {y}");
        }
    }

    #[test]
    fn what_falls_is_made_level() {
        let curve = Curve::new(64, |x| float(64 - x.min(64)));
        assert!((curve.at(64) - 64.0).abs() < 1e-9);
        let grid = Grid::new([64, 64], |x, y| float(64 - x) + float(64 - y));
        assert!((grid.at(33, 20) - 128.0).abs() < 1e-9);
    }
}
