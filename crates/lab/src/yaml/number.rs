//! Numbers that know their legal range, so that a refusal can name it.

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

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
#[derive(Debug)]
pub struct Amount<R>(f64, PhantomData<R>);

impl<R> Amount<R> {
    /// The number.
    pub const fn get(&self) -> f64 {
        self.0
    }
}

impl<R> Clone for Amount<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Amount<R> {}

impl<R> PartialEq for Amount<R> {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
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
}
