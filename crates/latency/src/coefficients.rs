//! `coefficients`: step time linear in prefill and decode tokens, from alpha and beta coefficients.
//!
//! Made by the catalogue or from `--alpha-coeffs` and `--beta-coeffs`. Context length does not
//! matter here.

use crate::shape::{StepShape, StepTime};
use blis_core::Span;

/// Linear latency model. All coefficients are in microseconds, finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// Ingress delay: fixed, per prompt token; then output processing per token.
    alpha_us: [f64; 3],
    /// Step time: fixed, per prefill token, per decode token.
    beta_us: [f64; 3],
}

/// Why coefficients were refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} coefficient {index} is `{value}`; legal: a number from 0 to 1e12 (microseconds)")]
pub struct CoefficientError {
    /// `alpha` or `beta`.
    pub name: &'static str,
    /// Place in the list, from 0.
    pub index: usize,
    /// The value found.
    pub value: f64,
}

impl Coefficients {
    /// A model with these coefficients, in microseconds.
    ///
    /// # Errors
    /// If one is negative, not finite or absurdly large.
    pub fn new(alpha_us: [f64; 3], beta_us: [f64; 3]) -> Result<Coefficients, CoefficientError> {
        for (name, list) in [("alpha", alpha_us), ("beta", beta_us)] {
            if let Some(index) = list.iter().position(|c| !(0.0..=1e12).contains(c)) {
                return Err(CoefficientError { name, index, value: list[index] });
            }
        }
        Ok(Coefficients { alpha_us, beta_us })
    }
}

impl StepTime for Coefficients {
    fn predict(&self, shape: &StepShape) -> Span {
        let [fixed, per_prefill, per_decode] = self.beta_us;
        let micros = fixed
            + per_prefill * f64::from(shape.prefill_tokens)
            + per_decode * f64::from(shape.decode_seqs + shape.draft_tokens);
        Span::from_micros_f64(micros).max(Span::from_nanos(1))
    }

    fn ingress(&self, input_tokens: u32) -> Span {
        Span::from_micros_f64(self.alpha_us[0] + self.alpha_us[1] * f64::from(input_tokens))
    }

    fn output(&self, _seqs: u32) -> Span {
        Span::from_micros_f64(self.alpha_us[2])
    }

    fn context_free(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_costs_its_fixed_part_and_its_tokens() {
        let model = Coefficients::new([10.0, 2.0, 5.0], [1000.0, 3.0, 0.5]).expect("legal");
        let shape = StepShape { prefill_tokens: 100, decode_seqs: 4, ..StepShape::default() };
        assert_eq!(model.predict(&shape), Span::from_micros(1302));
        let drafted = StepShape { draft_tokens: 6, ..shape };
        assert_eq!(model.predict(&drafted), Span::from_micros(1305));
        assert_eq!(model.ingress(7), Span::from_micros(24));
        assert_eq!(model.output(1), Span::from_micros(5));
    }

    #[test]
    fn a_step_takes_time_even_if_all_coefficients_are_zero() {
        let model = Coefficients::new([0.0; 3], [0.0; 3]).expect("legal");
        assert_eq!(model.predict(&StepShape::default()), Span::from_nanos(1));
    }

    #[test]
    fn negative_infinite_and_undefined_coefficients_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e13] {
            let error = Coefficients::new([0.0; 3], [1.0, bad, 0.0]).expect_err("illegal");
            assert_eq!((error.name, error.index), ("beta", 1));
        }
    }
}
