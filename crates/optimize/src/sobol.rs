//! Points that fill the unit cube evenly: Sobol's sequence with Owen's scrambling.
//!
//! The direction numbers are the first of Joe and Kuo (2008). Each coordinate is scrambled by a
//! hash of its own, so that different seeds give different, equally even, sequences. Coordinates
//! beyond the table are independent random numbers.

use blis_core::math::float;
use blis_core::random::mix;

/// Bits of a coordinate.
const BITS: usize = 32;

/// Primitive polynomials and initial direction numbers of the coordinates after the first.
const DIRECTIONS: &str = include_str!("sobol.txt");

/// A scrambled sequence.
#[derive(Clone, Debug)]
pub struct Sobol {
    /// For each coordinate, the direction numbers, the highest bit first.
    directions: Vec<[u32; BITS]>,
    dims: usize,
    seed: u64,
}

impl Sobol {
    /// The sequence of points with `dims` coordinates that `seed` scrambles.
    pub fn new(dims: usize, seed: u64) -> Sobol {
        let first = std::array::from_fn(|bit| 1 << (BITS - 1 - bit));
        let rest = DIRECTIONS.lines().map(directions);
        Sobol { directions: [first].into_iter().chain(rest).take(dims).collect(), dims, seed }
    }

    /// Point `index`, each coordinate within 0 < u < 1.
    ///
    /// # Panics
    /// If the index is 2^32 or above.
    pub fn point(&self, index: u64) -> Vec<f64> {
        let index = u32::try_from(index).expect("a sequence has 2^32 points");
        (0..self.dims)
            .map(|dim| {
                let key = mix(self.seed, dim as u64);
                let bits = match self.directions.get(dim) {
                    Some(directions) => scramble(raw(directions, index), key),
                    None => top(mix(key, mix(u64::from(index), 1))),
                };
                (float(u64::from(bits)) + 0.5) / float(1 << BITS)
            })
            .collect()
    }
}

/// Direction numbers of the coordinate of a line of the table.
fn directions(line: &str) -> [u32; BITS] {
    let mut numbers = line.split(' ').map(|word| word.parse().expect("a table of numbers"));
    let polynomial: u32 = numbers.next().expect("a polynomial");
    let mut v = [0_u32; BITS];
    let mut degree = 0;
    for m in numbers {
        v[degree] = m << (BITS - 1 - degree);
        degree += 1;
    }
    for bit in degree..BITS {
        v[bit] = v[bit - degree] ^ (v[bit - degree] >> degree);
        for k in 1..degree {
            if polynomial >> (degree - k) & 1 == 1 {
                v[bit] ^= v[bit - k];
            }
        }
    }
    v
}

fn raw(directions: &[u32; BITS], index: u32) -> u32 {
    let set = directions.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
    set.fold(0, |sum, (_, direction)| sum ^ direction)
}

/// Owen's scrambling: each bit is flipped by a hash of the bits above it.
fn scramble(bits: u32, key: u64) -> u32 {
    let mut flips = 0;
    for bit in 0..BITS {
        // The bits above, and how many they are.
        let above = if bit == 0 { 0 } else { bits >> (BITS - bit) };
        let hash = top(mix(mix(key, u64::from(above)), bit as u64));
        flips |= (hash >> (BITS - 1)) << (BITS - 1 - bit);
    }
    bits ^ flips
}

fn top(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("32 bits are left")
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::math::count;

    #[test]
    fn the_first_points_are_those_of_the_table() {
        // Unscrambled points 1 to 4 of the first five coordinates.
        let expected = [
            [0.5, 0.5, 0.5, 0.5, 0.5],
            [0.25, 0.75, 0.75, 0.75, 0.25],
            [0.75, 0.25, 0.25, 0.25, 0.75],
            [0.125, 0.625, 0.375, 0.125, 0.125],
        ];
        for (dim, v) in Sobol::new(5, 0).directions.iter().enumerate() {
            for (index, point) in (1_u32..).zip(expected) {
                let found = float(u64::from(raw(v, index))) / float(1 << BITS);
                assert!((found - point[dim]).abs() < 1e-12, "point {index} coordinate {dim}");
            }
        }
    }

    #[test]
    fn every_coordinate_has_one_point_in_each_of_1024_cells() {
        for seed in 0..3 {
            let sobol = Sobol::new(64, seed);
            let points: Vec<Vec<f64>> = (0..1024).map(|i| sobol.point(i)).collect();
            for dim in 0..64 {
                let mut cells: Vec<u64> =
                    points.iter().map(|point| count((point[dim] * 1024.0).floor())).collect();
                cells.sort_unstable();
                assert!(cells.iter().copied().eq(0..1024), "seed {seed} coordinate {dim}");
            }
        }
    }

    #[test]
    fn the_first_two_coordinates_have_one_point_in_each_square() {
        let sobol = Sobol::new(2, 7);
        let mut cells: Vec<(u64, u64)> = (0..256)
            .map(|i| sobol.point(i))
            .map(|p| (count((p[0] * 16.0).floor()), count((p[1] * 16.0).floor())))
            .collect();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), 256);
    }

    #[test]
    fn seeds_scramble_differently_and_coordinates_beyond_the_table_are_uniform() {
        assert_ne!(Sobol::new(2, 1).point(3), Sobol::new(2, 2).point(3));
        let sobol = Sobol::new(70, 1);
        let mean = (0..4096).map(|i| sobol.point(i)[69]).sum::<f64>() / 4096.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn a_product_is_integrated_far_better_than_by_chance() {
        let sobol = Sobol::new(6, 5);
        let product = |u: Vec<f64>| u.iter().map(|x| 2.0 * x).product::<f64>();
        let mean = (0..4096).map(|i| product(sobol.point(i))).sum::<f64>() / 4096.0;
        // By chance the error would be 0.034 on average.
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
    }
}
