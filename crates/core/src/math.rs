//! Portable elementary functions: the same bits on every platform.
//!
//! The standard library forwards to the platform's libm, which differs in the last bit between
//! systems, and a last bit is enough to send a request elsewhere. `clippy.toml` forbids the
//! standard ones.

pub mod normal;

/// Natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// e to the power of `x`.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// `x` to the power of `y`.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// Cosine.
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// Sine.
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// ln(1 + x), exact for small `x`.
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

/// The complementary error function.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// The gamma function.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// The natural logarithm of the gamma function, for positive `x`.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// A count as a float. Counts of this program stay far below 2^53, where this is exact.
#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
pub const fn float(count: u64) -> f64 {
    count as f64
}

/// A float as a count: rounded to nearest, negative and NaN become 0, the rest saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and NaN becomes 0, which is what is promised"
)]
pub fn count(x: f64) -> u64 {
    (x + 0.5) as u64
}
