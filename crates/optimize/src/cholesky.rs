//! Factors of symmetric positive-definite matrices: small, dense, without BLAS.
//!
//! Sums run in a fixed order of four lanes, so that results are the same on every machine. Matrices
//! are row-major. Called by the Gaussian process only.

/// The lower factor L of a matrix A = L Lᵀ.
#[derive(Clone, Debug)]
pub(crate) struct Cholesky {
    /// Rows of L, each complete; what stands right of the diagonal is not read.
    rows: Vec<f64>,
    n: usize,
}

/// The dot product, in four lanes.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let tail: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a4.zip(b4) {
        for lane in 0..4 {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + tail
}

impl Cholesky {
    /// The factor of the `n` by `n` matrix whose lower triangle is in `matrix`; `None` if that is
    /// not positive definite in floating point.
    pub(crate) fn new(mut matrix: Vec<f64>, n: usize) -> Option<Cholesky> {
        assert_eq!(matrix.len(), n * n, "a square matrix");
        for i in 0..n {
            let (above, row) = matrix.split_at_mut(i * n);
            for j in 0..i {
                let other = &above[j * n..=j * n + j];
                row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
            }
            let pivot = row[i] - dot(&row[..i], &row[..i]);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            row[i] = pivot.sqrt();
        }
        Some(Cholesky { rows: matrix, n })
    }

    /// Replaces `b` by L⁻¹ b.
    pub(crate) fn solve_lower(&self, b: &mut [f64]) {
        for i in 0..self.n {
            let row = &self.rows[i * self.n..=i * self.n + i];
            b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
        }
    }

    /// Replaces `b` by L⁻ᵀ b.
    pub(crate) fn solve_upper(&self, b: &mut [f64]) {
        for i in (0..self.n).rev() {
            let row = &self.rows[i * self.n..=i * self.n + i];
            b[i] /= row[i];
            let x = b[i];
            for (left, factor) in b[..i].iter_mut().zip(row) {
                *left -= factor * x;
            }
        }
    }

    /// ln det A.
    pub(crate) fn ln_det(&self) -> f64 {
        let diagonal = (0..self.n).map(|i| self.rows[i * self.n + i]);
        2.0 * diagonal.map(blis_core::math::ln).sum::<f64>()
    }

    /// A⁻¹; its lower triangle is filled, the rest is 0.
    pub(crate) fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        // Row a of `columns` is column a of L⁻¹, so that all sums run over contiguous memory.
        let mut columns = vec![0.0; n * n];
        for (a, column) in columns.chunks_exact_mut(n).enumerate() {
            column[a] = 1.0 / self.rows[a * n + a];
            for c in a + 1..n {
                let row = &self.rows[c * n..=c * n + c];
                column[c] = -dot(&row[a..c], &column[a..c]) / row[c];
            }
        }
        let mut inverse = vec![0.0; n * n];
        for a in 0..n {
            for b in 0..=a {
                inverse[a * n + b] =
                    dot(&columns[a * n + a..(a + 1) * n], &columns[b * n + a..(b + 1) * n]);
            }
        }
        inverse
    }

    /// The factor of the matrix with one more row: `row` beside the old ones, `diagonal` last.
    pub(crate) fn extended(&self, row: &[f64], diagonal: f64) -> Option<Cholesky> {
        let n = self.n + 1;
        let mut last = row.to_vec();
        self.solve_lower(&mut last);
        let pivot = diagonal - dot(&last, &last);
        if !(pivot > 0.0 && pivot.is_finite()) {
            return None;
        }
        let mut rows = vec![0.0; n * n];
        for i in 0..self.n {
            rows[i * n..i * n + self.n].copy_from_slice(&self.rows[i * self.n..(i + 1) * self.n]);
        }
        rows[self.n * n..self.n * n + self.n].copy_from_slice(&last);
        rows[n * n - 1] = pivot.sqrt();
        Some(Cholesky { rows, n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    /// A random positive-definite matrix.
    fn positive(n: usize, key: u64) -> Vec<f64> {
        let mut dice = Dice::new(5, Purpose::Search, key);
        let factor: Vec<f64> = (0..n * n).map(|_| dice.normal()).collect();
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                let ridge = if i == j { 0.5 } else { 0.0 };
                matrix[i * n + j] =
                    dot(&factor[i * n..(i + 1) * n], &factor[j * n..(j + 1) * n]) + ridge;
            }
        }
        matrix
    }

    #[test]
    fn factors_solve_invert_and_extend() {
        for n in [1, 2, 3, 4, 5, 9, 17] {
            let matrix = positive(n, n as u64);
            let factor = Cholesky::new(matrix.clone(), n).expect("positive definite");
            let b: Vec<f64> = (0..n).map(|i| blis_core::math::float(i as u64 % 5) - 1.5).collect();
            let mut x = b.clone();
            factor.solve_lower(&mut x);
            factor.solve_upper(&mut x);
            let inverse = factor.inverse();
            for i in 0..n {
                let product = dot(&matrix[i * n..(i + 1) * n], &x);
                assert!((product - b[i]).abs() < 1e-8, "n {n} row {i}: {product}, not {}", b[i]);
                for k in 0..n {
                    let entry = |a: usize, b: usize| inverse[a.max(b) * n + a.min(b)];
                    let unit: f64 = (0..n).map(|j| matrix[i * n + j] * entry(j, k)).sum();
                    let expected = if i == k { 1.0 } else { 0.0 };
                    assert!((unit - expected).abs() < 1e-7, "n {n}: {unit}");
                }
            }
            if n > 1 {
                let m = n - 1;
                let small: Vec<f64> =
                    (0..m).flat_map(|i| matrix[i * n..i * n + m].to_vec()).collect();
                let last = &matrix[m * n..];
                let grown = Cholesky::new(small, m).and_then(|f| f.extended(&last[..m], last[m]));
                let grown = grown.expect("positive definite");
                assert!((grown.ln_det() - factor.ln_det()).abs() < 1e-9, "n {n}");
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_no_factor() {
        assert!(Cholesky::new(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::new(vec![f64::NAN], 1).is_none());
        let one = Cholesky::new(vec![1.0], 1).expect("positive");
        assert!(one.extended(&[1.0], 1.0).is_none());
    }
}
