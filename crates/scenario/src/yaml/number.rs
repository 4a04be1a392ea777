//! Numbers that know their legal range, so that a refusal can name it.

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Whether `text` is a number as everyone reads it: decimal digits without leading zeros, perhaps a
/// sign, a fraction, an exponent. `0x10`, `010`, `1_000`, `inf` and `5ms` are not.
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent = exponent.map(|text| text.strip_prefix(['-', '+']).unwrap_or(text));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && !leading_zero
        && exponent.is_none_or(|text| !text.is_empty() && digits(text))
}

/// `text` as a number; never infinite.
pub fn float(text: &str) -> Option<f64> {
    let value: f64 = if is_decimal(text) { text.parse().ok()? } else { return None };
    Some(value).filter(|value| value.is_finite())
}

/// `text` as a whole number; floats that are whole count, as in `1e6`.
pub fn whole(text: &str) -> Option<u64> {
    let value = float(text)?;
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let largest_exact = blis_core::math::float(1 << 53);
    (value.fract() == 0.0 && (0.0..=largest_exact).contains(&value))
        .then(|| blis_core::math::count(value))
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number; `MAX` of this type must fit.
    ///
    /// # Panics
    /// If it does not, which is a mistake in the schema.
    pub fn get_u32(self) -> u32 {
        u32::try_from(self.0).expect("the schema's MAX fits 32 bits")
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeVisitor)
    }
}

struct WholeVisitor<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Visitor<'_> for WholeVisitor<MIN, MAX> {
    type Value = Whole<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (MIN, MAX) {
            (0, u64::MAX) => f.write_str("a whole number, not negative"),
            (_, u64::MAX) => write!(f, "a whole number, at least {MIN}"),
            _ => write!(f, "a whole number from {MIN} to {MAX}"),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Whole<MIN, MAX>, E> {
        if (MIN..=MAX).contains(&value) {
            return Ok(Whole(value));
        }
        Err(E::invalid_value(Unexpected::Unsigned(value), &self))
    }
}

/// The legal range of an [`Amount`].
pub trait Range {
    /// Least legal value.
    const MIN: f64;
    /// Greatest legal value.
    const MAX: f64;
    /// Both in words.
    const LEGAL: &'static str;
}

/// A number within the range `R`; never NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount<R>(f64, PhantomData<R>);

impl<R> Amount<R> {
    /// The number.
    pub const fn get(&self) -> f64 {
        self.0
    }
}

impl<'de, R: Range> Deserialize<'de> for Amount<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_f64(AmountVisitor(PhantomData))
    }
}

struct AmountVisitor<R>(PhantomData<R>);

impl<R: Range> Visitor<'_> for AmountVisitor<R> {
    type Value = Amount<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(R::LEGAL)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Amount<R>, E> {
        if (R::MIN..=R::MAX).contains(&value) {
            return Ok(Amount(value, PhantomData));
        }
        Err(E::invalid_value(Unexpected::Float(value), &self))
    }

    /// Where a list may stand instead, a number comes as its text.
    fn visit_str<E: Error>(self, text: &str) -> Result<Amount<R>, E> {
        match float(text) {
            Some(value) => self.visit_f64(value),
            None => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}
