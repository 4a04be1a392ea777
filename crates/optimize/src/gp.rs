//! Gaussian-process regression: Matérn-5/2 with a weight for each dimension.
//!
//! Inputs are snapped unit coordinates; a choice is at distance 1 from every other choice. All
//! distances are Euclidean in some embedding, so the kernel is positive definite whatever the mix
//! of dimensions. Outputs are standardised by the caller. Parameters are the most probable ones
//! under weak priors, found with analytic gradients.

use crate::cholesky::{Cholesky, dot};
use crate::lbfgs::{self, Limits};
use blis_core::math::{exp, float, ln};
use std::f64::consts::PI;

/// Least variance where the noise is known to be less: for a stable factor only.
const NOISE_EXACT: f64 = 1e-9;

/// Bounds of the logarithms of weights, scale and noise; the noise is at least 1e-9, so that an
/// exact function is followed to the last digits that matter.
const LN_WEIGHT: (f64, f64) = (-9.0, 7.0);
const LN_SCALE: (f64, f64) = (-7.0, 7.0);
const LN_NOISE: (f64, f64) = (-20.723_265_836_946_41, 2.0);

/// What a fit needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Data<'a> {
    /// Which dimensions are choices.
    pub choices: &'a [bool],
    /// Inputs, one after the other.
    pub x: &'a [f64],
    /// Standardised outputs.
    pub y: &'a [f64],
    /// Known variances of the outputs; where there is none, the fitted noise holds.
    pub variances: &'a [Option<f64>],
}

/// Parameters of kernel and noise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Theta {
    /// Inverse squared lengthscales.
    pub weights: Vec<f64>,
    /// Variance of the process.
    pub scale: f64,
    /// Variance of the noise where it is not known.
    pub noise: f64,
}

/// A fitted process, conditioned on its data.
#[derive(Clone, Debug)]
pub(crate) struct Gp {
    choices: Vec<bool>,
    x: Vec<f64>,
    y: Vec<f64>,
    noises: Vec<f64>,
    /// Its parameters.
    pub theta: Theta,
    factor: Cholesky,
    alpha: Vec<f64>,
    /// ln of likelihood and priors.
    pub posterior: f64,
}

/// Mean and variance of the process at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Belief {
    /// Expected value.
    pub mean: f64,
    /// Variance, without the noise of a measurement; above 0.
    pub variance: f64,
}

/// A belief with its derivatives by the coordinates.
#[derive(Clone, Debug)]
pub(crate) struct Slope {
    /// The belief.
    pub belief: Belief,
    /// Derivatives of the mean; 0 for choices.
    pub mean: Vec<f64>,
    /// Derivatives of the variance; 0 for choices.
    pub variance: Vec<f64>,
}

impl Theta {
    fn from_logs(logs: &[f64]) -> Theta {
        let dims = logs.len() - 2;
        Theta {
            weights: logs[..dims].iter().map(|&l| exp(l)).collect(),
            scale: exp(logs[dims]),
            noise: exp(logs[dims + 1]),
        }
    }

    fn logs(&self) -> Vec<f64> {
        let last = [self.scale, self.noise];
        self.weights.iter().chain(&last).map(|&x| ln(x)).collect()
    }

    /// Where fits start: in the middle of the priors.
    pub(crate) fn start(dims: usize) -> Theta {
        Theta { weights: vec![1.0; dims], scale: 1.0, noise: 0.03 }
    }

    /// Another place to start: a rough function without noise.
    pub(crate) fn rough_start(dims: usize) -> Theta {
        Theta { weights: vec![6.0; dims], scale: 1.0, noise: 1e-4 }
    }

    /// ln of the priors' density and its derivatives by the logarithms. Weights of 0.1 to 10 are
    /// equally welcome; scale is Gamma(2, 1), noise is Gamma(1.1, 30).
    fn ln_prior(&self, by_logs: &mut [f64]) -> f64 {
        let dims = self.weights.len();
        let mut sum = 0.0;
        for (j, &w) in self.weights.iter().enumerate() {
            sum -= 0.1 / w + 0.1 * w;
            by_logs[j] += 0.1 / w - 0.1 * w;
        }
        sum += ln(self.scale) - self.scale + 0.1 * ln(self.noise) - 30.0 * self.noise;
        by_logs[dims] += 1.0 - self.scale;
        by_logs[dims + 1] += 0.1 - 30.0 * self.noise;
        sum
    }
}

/// The kernel at squared distance `r2`, and its derivative by `r2`, for a process of variance 1.
fn matern(r2: f64) -> (f64, f64) {
    let root = (5.0 * r2).sqrt();
    let decay = exp(-root);
    ((1.0 + root + root * root / 3.0) * decay, -5.0 / 6.0 * (1.0 + root) * decay)
}

/// Squared difference of two coordinates.
fn gap(choice: bool, a: f64, b: f64) -> f64 {
    if choice { f64::from(u8::from((a - b).abs() > 1e-9)) } else { (a - b) * (a - b) }
}

/// Squared gaps of all pairs a > b, dimension by dimension within a pair.
struct Pairs {
    gaps: Vec<f64>,
    n: usize,
    dims: usize,
}

impl Pairs {
    fn new(data: &Data<'_>) -> Pairs {
        let (n, dims) = (data.y.len(), data.choices.len());
        let mut gaps = Vec::with_capacity(n * (n.max(1) - 1) / 2 * dims);
        for a in 0..n {
            for b in 0..a {
                for (j, &choice) in data.choices.iter().enumerate() {
                    gaps.push(gap(choice, data.x[a * dims + j], data.x[b * dims + j]));
                }
            }
        }
        Pairs { gaps, n, dims }
    }

    /// The kernel matrix with noise on its diagonal, and the kernel's derivatives by the squared
    /// distance, pair by pair. Lower triangle only.
    fn matrix(&self, theta: &Theta, noises: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = self.n;
        let mut matrix = vec![0.0; n * n];
        let mut by_distance = Vec::with_capacity(self.gaps.len() / self.dims.max(1));
        let mut gaps = self.gaps.chunks_exact(self.dims);
        for a in 0..n {
            for b in 0..a {
                let gap = gaps.next().expect("a gap a pair");
                let (k, slope) = matern(dot(gap, &theta.weights));
                matrix[a * n + b] = theta.scale * k;
                by_distance.push(theta.scale * slope);
            }
            matrix[a * n + a] = theta.scale + noises[a];
        }
        (matrix, by_distance)
    }
}

/// Variance of each measurement under `theta`.
fn noises(theta: &Theta, variances: &[Option<f64>]) -> Vec<f64> {
    variances.iter().map(|known| known.map_or(theta.noise, |v| v.max(NOISE_EXACT))).collect()
}

/// Factors with the least ridge that makes it possible.
fn factor_with_ridge(matrix: &[f64], n: usize, scale: f64) -> Cholesky {
    let mut ridge = 0.0;
    loop {
        let mut trial = matrix.to_vec();
        for i in 0..n {
            trial[i * n + i] += ridge;
        }
        if let Some(factor) = Cholesky::new(trial, n) {
            return factor;
        }
        ridge = if ridge > 0.0 { ridge * 10.0 } else { 1e-9 * scale };
        assert!(ridge < 1e9 * scale, "a kernel matrix of {n} points is not finite");
    }
}

/// Minus ln of likelihood and priors, with its gradient by the logarithms of the parameters.
fn loss(data: &Data<'_>, pairs: &Pairs, logs: &[f64], gradient: &mut [f64]) -> f64 {
    let theta = Theta::from_logs(logs);
    let (n, dims) = (pairs.n, pairs.dims);
    let noises = noises(&theta, data.variances);
    let (matrix, by_distance) = pairs.matrix(&theta, &noises);
    gradient.fill(0.0);
    let Some(factor) = Cholesky::new(matrix, n) else { return f64::INFINITY };
    let mut alpha = data.y.to_vec();
    factor.solve_lower(&mut alpha);
    let fit = dot(&alpha, &alpha);
    factor.solve_upper(&mut alpha);
    let inverse = factor.inverse();
    // d evidence / dK = (alpha alphaᵀ - K⁻¹) / 2, and each pair stands in K twice.
    let mut pair = 0;
    let mut of_weights = vec![0.0; dims];
    let mut of_scale = 0.0;
    let mut of_noise = 0.0;
    for a in 0..n {
        for b in 0..a {
            let pull = alpha[a] * alpha[b] - inverse[a * n + b];
            let force = pull * by_distance[pair];
            let gaps = &pairs.gaps[pair * dims..(pair + 1) * dims];
            for (sum, gap) in of_weights.iter_mut().zip(gaps) {
                *sum += force * gap;
            }
            pair += 1;
        }
        let pull = alpha[a] * alpha[a] - inverse[a * n + a];
        if data.variances[a].is_none() {
            of_noise += 0.5 * pull;
        }
        // scale * dK/dscale = K - noise, and tr((alpha alphaᵀ - K⁻¹) K) = fit - n.
        of_scale -= 0.5 * pull * noises[a];
    }
    of_scale += 0.5 * (fit - float(n as u64));
    let prior = theta.ln_prior(gradient);
    for (slot, (sum, weight)) in gradient.iter_mut().zip(of_weights.iter().zip(&theta.weights)) {
        *slot += sum * weight;
    }
    gradient[dims] += of_scale;
    gradient[dims + 1] += of_noise * theta.noise;
    for slot in gradient.iter_mut() {
        *slot = -*slot;
    }
    0.5 * fit + 0.5 * factor.ln_det() + 0.5 * float(n as u64) * ln(2.0 * PI) - prior
}

impl Gp {
    /// The process with the most probable parameters that are reached from `start`.
    pub(crate) fn fit(data: &Data<'_>, start: &Theta, evaluations: usize) -> Gp {
        let pairs = Pairs::new(data);
        let dims = data.choices.len();
        let bounds = |pick: fn((f64, f64)) -> f64| {
            let mut all = vec![pick(LN_WEIGHT); dims];
            all.extend([pick(LN_SCALE), pick(LN_NOISE)]);
            all
        };
        let (low, high) = (bounds(|b| b.0), bounds(|b| b.1));
        let limits = Limits { evaluations, gain: 1e-6 };
        let found = lbfgs::minimise(&start.logs(), &low, &high, limits, |logs, gradient| {
            loss(data, &pairs, logs, gradient)
        });
        Gp::condition(data, Theta::from_logs(&found))
    }

    /// The process with the given parameters, conditioned on the data.
    pub(crate) fn condition(data: &Data<'_>, theta: Theta) -> Gp {
        let pairs = Pairs::new(data);
        let n = data.y.len();
        let noises = noises(&theta, data.variances);
        let (matrix, _) = pairs.matrix(&theta, &noises);
        let factor = factor_with_ridge(&matrix, n, theta.scale);
        let mut alpha = data.y.to_vec();
        factor.solve_lower(&mut alpha);
        let fit = dot(&alpha, &alpha);
        factor.solve_upper(&mut alpha);
        let evidence = -0.5 * (fit + factor.ln_det() + float(n as u64) * ln(2.0 * PI));
        let posterior = evidence + theta.ln_prior(&mut vec![0.0; theta.weights.len() + 2]);
        let (choices, x, y) = (data.choices.to_vec(), data.x.to_vec(), data.y.to_vec());
        Gp { choices, x, y, noises, theta, factor, alpha, posterior }
    }

    /// The process after a measurement of `y` at `x`, with unchanged parameters.
    pub(crate) fn extended(&self, x: &[f64], y: f64) -> Gp {
        let mut next = self.clone();
        let row = self.kernels(x);
        let mut noise = self.theta.noise;
        next.factor = loop {
            match self.factor.extended(&row, self.theta.scale + noise) {
                Some(factor) => break factor,
                None => noise = noise * 10.0 + 1e-9,
            }
        };
        next.noises.push(noise);
        next.x.extend_from_slice(x);
        next.y.push(y);
        next.alpha.clone_from(&next.y);
        next.factor.solve_lower(&mut next.alpha);
        next.factor.solve_upper(&mut next.alpha);
        next
    }

    /// Variance of measurement `index`.
    pub(crate) fn noise_of(&self, index: usize) -> f64 {
        self.noises[index]
    }

    /// Outputs that the process is conditioned on.
    pub(crate) fn outputs(&self) -> &[f64] {
        &self.y
    }

    /// The mean at `x`, without its variance.
    pub(crate) fn mean(&self, x: &[f64]) -> f64 {
        dot(&self.kernels(x), &self.alpha)
    }

    /// What is believed at `x`.
    pub(crate) fn belief(&self, x: &[f64]) -> Belief {
        let mut k = self.kernels(x);
        let mean = dot(&k, &self.alpha);
        self.factor.solve_lower(&mut k);
        Belief { mean, variance: self.left_over(dot(&k, &k)) }
    }

    /// Covariance of the process at two places.
    pub(crate) fn covariance(&self, x: &[f64], y: &[f64]) -> f64 {
        let (mut kx, mut ky) = (self.kernels(x), self.kernels(y));
        self.factor.solve_lower(&mut kx);
        self.factor.solve_lower(&mut ky);
        self.theta.scale * matern(self.distance(x, y)).0 - dot(&kx, &ky)
    }

    /// What is believed at `x`, and how that changes with the coordinates.
    pub(crate) fn slope(&self, x: &[f64]) -> Slope {
        let dims = self.choices.len();
        let n = self.y.len();
        let mut k = Vec::with_capacity(n);
        let mut by_distance = Vec::with_capacity(n);
        for place in self.x.chunks_exact(dims) {
            let (value, slope) = matern(self.distance(x, place));
            k.push(self.theta.scale * value);
            by_distance.push(self.theta.scale * slope);
        }
        let mean = dot(&k, &self.alpha);
        let mut beta = k;
        self.factor.solve_lower(&mut beta);
        let explained = dot(&beta, &beta);
        self.factor.solve_upper(&mut beta);
        let mut of_mean = vec![0.0; dims];
        let mut of_variance = vec![0.0; dims];
        for (i, place) in self.x.chunks_exact(dims).enumerate() {
            for j in (0..dims).filter(|&j| !self.choices[j]) {
                let slope = by_distance[i] * 2.0 * self.theta.weights[j] * (x[j] - place[j]);
                of_mean[j] += self.alpha[i] * slope;
                of_variance[j] -= 2.0 * beta[i] * slope;
            }
        }
        let belief = Belief { mean, variance: self.left_over(explained) };
        Slope { belief, mean: of_mean, variance: of_variance }
    }

    fn left_over(&self, explained: f64) -> f64 {
        (self.theta.scale - explained).max(1e-13 * self.theta.scale)
    }

    fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let mut sum = 0.0;
        for (j, &choice) in self.choices.iter().enumerate() {
            sum += self.theta.weights[j] * gap(choice, a[j], b[j]);
        }
        sum
    }

    fn kernels(&self, x: &[f64]) -> Vec<f64> {
        self.x
            .chunks_exact(self.choices.len())
            .map(|place| self.theta.scale * matern(self.distance(x, place)).0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    const CHOICES: [bool; 4] = [false, false, true, false];

    /// Random inputs, of which the third is one of four options, and smooth outputs.
    fn example(n: usize, key: u64) -> (Vec<f64>, Vec<f64>) {
        let mut dice = Dice::new(1, Purpose::Search, key);
        let mut x = Vec::new();
        let mut y = Vec::new();
        for _ in 0..n {
            let option = crate::kind::middle_of(dice.below(4), 4);
            let place = [dice.unit(), dice.unit(), option, dice.unit()];
            y.push((place[0] - 0.3) * 4.0 + place[1] * option + 0.1 * dice.normal());
            x.extend(place);
        }
        (x, y)
    }

    fn theta() -> Theta {
        Theta { weights: vec![2.0, 0.7, 1.3, 0.2], scale: 1.4, noise: 0.05 }
    }

    #[test]
    fn the_gradient_of_the_loss_agrees_with_differences() {
        let (x, y) = example(14, 1);
        let mut variances = vec![None; 14];
        variances[3] = Some(0.2);
        variances[7] = Some(0.0);
        let data = Data { choices: &CHOICES, x: &x, y: &y, variances: &variances };
        let pairs = Pairs::new(&data);
        let logs = theta().logs();
        let mut gradient = vec![0.0; 6];
        loss(&data, &pairs, &logs, &mut gradient);
        for j in 0..6 {
            let h = 1e-5;
            let at = |shift: f64| {
                let mut logs = logs.clone();
                logs[j] += shift;
                loss(&data, &pairs, &logs, &mut [0.0; 6])
            };
            let numeric = (at(h) - at(-h)) / (2.0 * h);
            let error = (gradient[j] - numeric).abs();
            assert!(error < 1e-5 * (1.0 + numeric.abs()), "{j}: {} {numeric}", gradient[j]);
        }
    }

    #[test]
    fn slopes_of_mean_and_variance_agree_with_differences() {
        let (x, y) = example(12, 2);
        let variances = vec![None; 12];
        let data = Data { choices: &CHOICES, x: &x, y: &y, variances: &variances };
        let gp = Gp::condition(&data, theta());
        let place = [0.4, 0.6, crate::kind::middle_of(1, 4), 0.2];
        let slope = gp.slope(&place);
        assert_eq!(slope.belief, gp.belief(&place));
        assert!((slope.belief.mean - gp.mean(&place)).abs() < 1e-12);
        for j in [0, 1, 3] {
            let h = 1e-5;
            let at = |shift: f64| {
                let mut place = place;
                place[j] += shift;
                gp.belief(&place)
            };
            let mean = (at(h).mean - at(-h).mean) / (2.0 * h);
            let variance = (at(h).variance - at(-h).variance) / (2.0 * h);
            assert!((slope.mean[j] - mean).abs() < 1e-6, "{j}: {} {mean}", slope.mean[j]);
            assert!((slope.variance[j] - variance).abs() < 1e-6, "{j}: {variance}");
        }
        assert!(slope.mean[2].abs() < 1e-15 && slope.variance[2].abs() < 1e-15);
    }

    #[test]
    fn kernels_are_positive_definite_for_mixed_inputs() {
        let mut tight = 0;
        for key in 0..200 {
            let n = 12;
            let (x, y) = example(n, 100 + key);
            let mut dice = Dice::new(2, Purpose::Search, key);
            let weights: Vec<f64> = (0..4).map(|_| exp(6.0 * dice.unit() - 4.0)).collect();
            let theta = Theta { weights, scale: 1.0, noise: 1e-9 };
            let data = Data { choices: &CHOICES, x: &x, y: &y, variances: &vec![None; n] };
            let (matrix, _) = Pairs::new(&data).matrix(&theta, &vec![1e-9; n]);
            let factor = Cholesky::new(matrix, n);
            let factor = factor.unwrap_or_else(|| panic!("key {key}: not positive definite"));
            tight += usize::from(factor.ln_det() < -30.0);
        }
        assert!(tight > 5, "only {tight} matrices were near singular");
    }

    #[test]
    fn a_process_passes_through_exact_measurements_and_smooths_noisy_ones() {
        let (x, y) = example(10, 3);
        let fit = |known: Option<f64>| {
            let variances = vec![known; 10];
            let data = Data { choices: &CHOICES, x: &x, y: &y, variances: &variances };
            Gp::condition(&data, theta())
        };
        let (exact, noisy) = (fit(Some(0.0)), fit(Some(0.5)));
        let mut moved = 0.0_f64;
        for (i, place) in x.chunks_exact(4).enumerate() {
            assert!((exact.mean(place) - y[i]).abs() < 1e-5);
            assert!(exact.belief(place).variance < 1e-6);
            assert!(noisy.belief(place).variance > 0.01);
            moved = moved.max((noisy.mean(place) - y[i]).abs());
        }
        assert!(moved > 0.1, "noise changed nothing: {moved}");
    }

    #[test]
    fn one_more_measurement_gives_the_same_as_starting_over() {
        let (x, y) = example(9, 4);
        let part = |n: usize| {
            let (x, y, variances) = (&x[..4 * n], &y[..n], vec![None; n]);
            Gp::condition(&Data { choices: &CHOICES, x, y, variances: &variances }, theta())
        };
        let (grown, whole) = (part(8).extended(&x[32..36], y[8]), part(9));
        let place = [0.9, 0.1, crate::kind::middle_of(0, 4), 0.5];
        let (a, b) = (grown.belief(&place), whole.belief(&place));
        assert!((a.mean - b.mean).abs() < 1e-9 && (a.variance - b.variance).abs() < 1e-9);
    }

    #[test]
    fn covariances_agree_with_variances() {
        let (x, y) = example(9, 5);
        let data = Data { choices: &CHOICES, x: &x, y: &y, variances: &[None; 9] };
        let gp = Gp::condition(&data, theta());
        let place = [0.9, 0.1, crate::kind::middle_of(0, 4), 0.5];
        assert!((gp.covariance(&place, &place) - gp.belief(&place).variance).abs() < 1e-9);
    }

    #[test]
    fn a_fit_finds_which_dimensions_matter_and_how_much_noise_there_is() {
        let mut dice = Dice::new(8, Purpose::Search, 0);
        let x: Vec<f64> = (0..240).map(|_| dice.unit()).collect();
        let wave = |u: f64| 1.4 * blis_core::math::sin(6.0 * u);
        let y: Vec<f64> = x.chunks_exact(3).map(|u| wave(u[0]) + 0.3 * dice.normal()).collect();
        let data = Data { choices: &[false; 3], x: &x, y: &y, variances: &[None; 80] };
        let gp = Gp::fit(&data, &Theta::start(3), 60);
        assert!(gp.theta.weights[0] > 5.0 * gp.theta.weights[1], "{:?}", gp.theta);
        assert!(gp.theta.weights[0] > 5.0 * gp.theta.weights[2], "{:?}", gp.theta);
        assert!((0.04..0.16).contains(&gp.theta.noise), "{:?}", gp.theta);
    }
}
