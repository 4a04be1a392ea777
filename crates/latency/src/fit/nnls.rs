//! Least squares with coefficients that are not negative, by active sets (Lawson and Hanson).
//!
//! Works on the normal equations: the problems here have some forty unknowns and well-scaled
//! columns, and the rows are summed once for each round of weights.

/// A symmetric positive semi-definite system: minimise x'Ax/2 - b'x.
#[derive(Clone, Debug)]
pub struct Normal {
    side: usize,
    /// In rows, up to the diagonal.
    matrix: Vec<f64>,
    right: Vec<f64>,
}

/// Relative size of the diagonal that keeps dependent columns apart.
const JITTER: f64 = 1e-11;

/// A gradient below this share of the largest counts as zero.
const TOLERANCE: f64 = 1e-10;

impl Normal {
    /// The empty system of so many unknowns.
    pub fn new(side: usize) -> Normal {
        Normal { side, matrix: vec![0.0; side * side], right: vec![0.0; side] }
    }

    /// Adds the squared error of one row: `weight * (columns * x - target)^2`.
    pub fn add(&mut self, columns: &[f64], target: f64, weight: f64) {
        for (i, &left) in columns.iter().enumerate().filter(|&(_, &left)| left != 0.0) {
            let scaled = weight * left;
            self.right[i] += scaled * target;
            // The rest is symmetric.
            let row = &mut self.matrix[i * self.side..][..=i];
            for (cell, &right) in row.iter_mut().zip(columns) {
                *cell += scaled * right;
            }
        }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.matrix[row.max(column) * self.side + row.min(column)]
    }

    /// The solution whose members are all at least 0.
    pub fn solve_not_negative(&self) -> Vec<f64> {
        let mut solution = vec![0.0; self.side];
        let mut free = vec![false; self.side];
        let largest = self.right.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        // Every round frees an unknown or ends; three times the unknowns is what Lawson and Hanson
        // suggest as the end of patience.
        for _ in 0..3 * self.side {
            let descent = |i: usize| {
                let products = (0..self.side).map(|j| self.at(i, j) * solution[j]);
                self.right[i] - products.sum::<f64>()
            };
            let slopes =
                (0..self.side).filter(|&i| !free[i]).map(|i| (i, descent(i) / self.unit(i)));
            let steepest = slopes.max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((index, slope)) = steepest else { break };
            if slope <= TOLERANCE * largest {
                break;
            }
            free[index] = true;
            self.settle(&mut solution, &mut free);
        }
        solution
    }

    /// The length of a column, by which slopes are compared.
    fn unit(&self, index: usize) -> f64 {
        let squared = self.at(index, index);
        if squared > 0.0 { squared.sqrt() } else { f64::INFINITY }
    }

    /// Moves to the least squares of the free unknowns; those that would become negative are bound
    /// to 0 on the way.
    fn settle(&self, solution: &mut [f64], free: &mut [bool]) {
        loop {
            let members: Vec<usize> = (0..self.side).filter(|&i| free[i]).collect();
            let goal = self.solve_free(&members);
            let negative = members.iter().zip(&goal).filter(|(_, goal)| **goal <= 0.0);
            let step = negative
                .map(|(&i, goal)| solution[i] / (solution[i] - goal))
                .fold(1.0_f64, |step, ratio| step.min(if ratio.is_nan() { 0.0 } else { ratio }));
            for (&i, goal) in members.iter().zip(&goal) {
                solution[i] += step * (goal - solution[i]);
            }
            if step >= 1.0 {
                return;
            }
            for (&i, goal) in members.iter().zip(&goal) {
                if *goal <= 0.0 && solution[i] <= 1e-12 * goal.abs() {
                    solution[i] = 0.0;
                    free[i] = false;
                }
            }
        }
    }

    /// Least squares over `members`, all others being 0.
    fn solve_free(&self, members: &[usize]) -> Vec<f64> {
        let factor = self.factor(members);
        let right: Vec<f64> = members.iter().map(|&i| self.right[i]).collect();
        back(&factor, &forward(&factor, right))
    }

    /// The inverse of the part over `members`, in rows.
    pub fn inverse(&self, members: &[usize]) -> Vec<Vec<f64>> {
        let factor = self.factor(members);
        (0..members.len())
            .map(|column| {
                let unit = (0..members.len()).map(|i| if i == column { 1.0 } else { 0.0 });
                back(&factor, &forward(&factor, unit.collect()))
            })
            .collect()
    }

    /// The lower Cholesky factor of the part over `members`, in rows.
    fn factor(&self, members: &[usize]) -> Vec<Vec<f64>> {
        let mut factor: Vec<Vec<f64>> = Vec::with_capacity(members.len());
        for (row, &i) in members.iter().enumerate() {
            let mut line: Vec<f64> = Vec::with_capacity(row + 1);
            for (column, &j) in members.iter().take(row + 1).enumerate() {
                let known = &factor.get(column).map_or(&line, |above| above)[..column];
                let product: f64 = line[..column].iter().zip(known).map(|(a, b)| a * b).sum();
                let rest = self.at(i, j) - product;
                if row == column {
                    let floor = JITTER * self.at(i, i).max(f64::MIN_POSITIVE);
                    line.push(rest.max(floor).sqrt());
                } else {
                    line.push(rest / factor[column][column]);
                }
            }
            factor.push(line);
        }
        factor
    }
}

fn forward(factor: &[Vec<f64>], mut right: Vec<f64>) -> Vec<f64> {
    for (row, line) in factor.iter().enumerate() {
        let known: f64 = line[..row].iter().zip(&right).map(|(a, b)| a * b).sum();
        right[row] = (right[row] - known) / line[row];
    }
    right
}

fn back(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solution = right.to_vec();
    for row in (0..factor.len()).rev() {
        let below = row + 1..factor.len();
        let known: f64 = below.map(|lower| factor[lower][row] * solution[lower]).sum();
        solution[row] = (solution[row] - known) / factor[row][row];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    fn normal_of(rows: &[Vec<f64>], targets: &[f64]) -> Normal {
        let mut normal = Normal::new(rows[0].len());
        for (row, &target) in rows.iter().zip(targets) {
            normal.add(row, target, 1.0);
        }
        normal
    }

    #[test]
    fn an_exact_positive_solution_is_found() {
        let rows = vec![vec![1.0, 2.0, 0.0], vec![0.0, 1.0, 1.0], vec![3.0, 0.0, 1.0]];
        let truth = [0.5, 2.0, 7.0];
        let targets: Vec<f64> =
            rows.iter().map(|row| row.iter().zip(truth).map(|(a, x)| a * x).sum()).collect();
        let found = normal_of(&rows, &targets).solve_not_negative();
        for (found, truth) in found.iter().zip(truth) {
            assert!((found - truth).abs() < 1e-6, "{found} against {truth}");
        }
    }

    #[test]
    fn every_solution_meets_the_conditions_of_optimality() {
        let mut bound = 0;
        for key in 0..200 {
            let mut dice = Dice::new(11, Purpose::Sampling, key);
            let side = 1 + dice.below(7);
            let rows: Vec<Vec<f64>> =
                (0..20).map(|_| (0..side).map(|_| dice.normal()).collect()).collect();
            let targets: Vec<f64> = (0..20).map(|_| dice.normal()).collect();
            let normal = normal_of(&rows, &targets);
            let found = normal.solve_not_negative();
            for i in 0..side {
                let products: f64 = (0..side).map(|j| normal.at(i, j) * found[j]).sum();
                let slope = normal.right[i] - products;
                assert!(found[i] >= 0.0, "key {key}: {found:?}");
                if found[i] > 0.0 {
                    assert!(slope.abs() < 1e-6, "key {key}: slope {slope} at {}", found[i]);
                } else {
                    assert!(slope < 1e-6, "key {key}: slope {slope} at 0");
                    bound += 1;
                }
            }
        }
        assert!(bound > 100, "only {bound} unknowns were at their bound");
    }

    #[test]
    fn equal_columns_and_empty_columns_do_no_harm() {
        let rows: Vec<Vec<f64>> = (1..9).map(|i| vec![f64::from(i), f64::from(i), 0.0]).collect();
        let targets: Vec<f64> = (1..9).map(|i| 4.0 * f64::from(i)).collect();
        let found = normal_of(&rows, &targets).solve_not_negative();
        assert!((found[0] + found[1] - 4.0).abs() < 1e-6, "{found:?}");
        assert!(found[2].abs() < 1e-12);
    }

    #[test]
    fn the_inverse_times_the_matrix_is_one() {
        let rows = vec![vec![2.0, 1.0], vec![1.0, 3.0], vec![0.0, 1.0]];
        let normal = normal_of(&rows, &[0.0; 3]);
        let inverse = normal.inverse(&[0, 1]);
        for (i, row) in inverse.iter().enumerate() {
            for j in 0..2 {
                let cell: f64 = row.iter().enumerate().map(|(k, x)| x * normal.at(k, j)).sum();
                assert!((cell - f64::from(u8::from(i == j))).abs() < 1e-9);
            }
        }
    }
}
