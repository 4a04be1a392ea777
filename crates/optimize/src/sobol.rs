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
#[rustfmt::skip]
const DIRECTIONS: &[(u32, &[u32])] = &[
    (3, &[1]), (7, &[1, 3]), (11, &[1, 3, 1]), (13, &[1, 1, 1]), (19, &[1, 1, 3, 3]),
    (25, &[1, 3, 5, 13]), (37, &[1, 1, 5, 5, 17]), (41, &[1, 1, 5, 5, 5]), (47, &[1, 1, 7, 11, 19]),
    (55, &[1, 1, 5, 1, 1]), (59, &[1, 1, 1, 3, 11]), (61, &[1, 3, 5, 5, 31]),
    (67, &[1, 3, 3, 9, 7, 49]), (91, &[1, 1, 1, 15, 21, 21]), (97, &[1, 3, 1, 13, 27, 49]),
    (103, &[1, 1, 1, 15, 7, 5]), (109, &[1, 3, 1, 15, 13, 25]), (115, &[1, 1, 5, 5, 19, 61]),
    (131, &[1, 3, 7, 11, 23, 15, 103]), (137, &[1, 3, 7, 13, 13, 15, 69]),
    (143, &[1, 1, 3, 13, 7, 35, 63]), (145, &[1, 3, 5, 9, 1, 25, 53]),
    (157, &[1, 3, 1, 13, 9, 35, 107]), (167, &[1, 3, 1, 5, 27, 61, 31]),
    (171, &[1, 1, 5, 11, 19, 41, 61]), (185, &[1, 3, 5, 3, 3, 13, 69]),
    (191, &[1, 1, 7, 13, 1, 19, 1]), (193, &[1, 3, 7, 5, 13, 19, 59]),
    (203, &[1, 1, 3, 9, 25, 29, 41]), (211, &[1, 3, 5, 13, 23, 1, 55]),
    (213, &[1, 3, 7, 3, 13, 59, 17]), (229, &[1, 3, 1, 3, 5, 53, 69]),
    (239, &[1, 1, 5, 5, 23, 33, 13]), (241, &[1, 1, 7, 7, 1, 61, 123]),
    (247, &[1, 1, 7, 9, 13, 61, 49]), (253, &[1, 3, 3, 5, 3, 55, 33]),
    (285, &[1, 3, 1, 15, 31, 13, 49, 245]), (299, &[1, 3, 5, 15, 31, 59, 63, 97]),
    (301, &[1, 3, 1, 11, 11, 11, 77, 249]), (333, &[1, 3, 1, 11, 27, 43, 71, 9]),
    (351, &[1, 1, 7, 15, 21, 11, 81, 45]), (355, &[1, 3, 7, 3, 25, 31, 65, 79]),
    (357, &[1, 3, 1, 1, 19, 11, 3, 205]), (361, &[1, 1, 5, 9, 19, 21, 29, 157]),
    (369, &[1, 3, 7, 11, 1, 33, 89, 185]), (391, &[1, 3, 3, 3, 15, 9, 79, 71]),
    (397, &[1, 3, 7, 11, 15, 39, 119, 27]), (425, &[1, 1, 3, 1, 11, 31, 97, 225]),
    (451, &[1, 1, 1, 3, 23, 43, 57, 177]), (463, &[1, 3, 7, 7, 17, 17, 37, 71]),
    (487, &[1, 3, 1, 5, 27, 63, 123, 213]), (501, &[1, 1, 3, 5, 11, 43, 53, 133]),
    (529, &[1, 3, 5, 5, 29, 17, 47, 173, 479]), (539, &[1, 3, 3, 11, 3, 1, 109, 9, 69]),
    (545, &[1, 1, 1, 5, 17, 39, 23, 5, 343]), (557, &[1, 3, 1, 5, 25, 15, 31, 103, 499]),
    (563, &[1, 1, 1, 11, 11, 17, 63, 105, 183]), (601, &[1, 1, 5, 11, 9, 29, 97, 231, 363]),
    (607, &[1, 1, 5, 15, 19, 45, 41, 7, 383]), (617, &[1, 3, 7, 7, 31, 19, 83, 137, 221]),
    (623, &[1, 1, 1, 3, 23, 15, 111, 223, 83]), (631, &[1, 1, 5, 13, 31, 15, 55, 25, 161]),
    (637, &[1, 1, 3, 13, 25, 47, 39, 87, 257]),
];

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
        let tabled = dims.min(DIRECTIONS.len() + 1);
        Sobol { directions: (0..tabled).map(directions).collect(), dims, seed }
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

/// Direction numbers of coordinate `dim`.
fn directions(dim: usize) -> [u32; BITS] {
    let mut v = [0_u32; BITS];
    if dim == 0 {
        for (bit, direction) in v.iter_mut().enumerate() {
            *direction = 1 << (BITS - 1 - bit);
        }
        return v;
    }
    let (polynomial, initial) = DIRECTIONS[dim - 1];
    let degree = initial.len();
    for (bit, &m) in initial.iter().enumerate() {
        v[bit] = m << (BITS - 1 - bit);
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
        for (dim, row) in (0..5).zip(0..) {
            let v = directions(dim);
            for (index, point) in (1_u32..).zip(expected) {
                let found = float(u64::from(raw(&v, index))) / float(1 << BITS);
                assert!((found - point[row]).abs() < 1e-12, "point {index} coordinate {dim}");
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
