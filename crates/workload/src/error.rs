//! Why a workload description was refused: which field, what was found, what is legal.
//!
//! Every `validate` of this crate returns it, and the trace reader puts it behind the file, line
//! and column. It never describes a broken invariant of the program itself; those are assertions.

use blis_core::Span;
use std::borrow::Cow;
use std::fmt;

/// A field whose value is not legal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}`: found {found}; legal: {legal}")]
pub struct SpecError {
    /// Path of the field, e.g. `clients[2].arrival.cv`.
    pub field: String,
    /// The value found.
    pub found: String,
    /// What is legal, in words.
    pub legal: String,
}

impl SpecError {
    /// The value `found` of `field` is not `legal`.
    pub fn new(
        field: impl Into<String>,
        found: impl fmt::Display,
        legal: impl Into<String>,
    ) -> SpecError {
        SpecError { field: field.into(), found: found.to_string(), legal: legal.into() }
    }

    /// The same error, seen from one level further out: `cv` under `arrival` is `arrival.cv`.
    #[must_use]
    pub fn under(self, parent: &str) -> SpecError {
        let field = match self.field.as_str() {
            "" => parent.to_owned(),
            field => format!("{parent}.{field}"),
        };
        SpecError { field, ..self }
    }
}

/// The most characters of a value that a message repeats.
const LONGEST_SHOWN: usize = 80;

/// `text` as a message repeats it: cut if it is long.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Refuses `found` unless it lies in `min..=max`; NaN and the infinities never do.
pub(crate) fn within(field: &str, found: f64, min: f64, max: f64) -> Result<(), SpecError> {
    let legal = || format!("a number from {min} to {max}");
    ensure(found >= min && found <= max, field, found, legal)
}

/// Refuses what was `found` in `field` unless it `holds`.
pub(crate) fn ensure<L: Into<String>>(
    holds: bool,
    field: impl Into<String>,
    found: impl fmt::Display,
    legal: impl FnOnce() -> L,
) -> Result<(), SpecError> {
    if holds { Ok(()) } else { Err(SpecError::new(field, found, legal())) }
}

/// Refuses a span of more than ten years.
pub(crate) fn within_ten_years(field: &str, found: Span) -> Result<(), SpecError> {
    let legal = || format!("at most {} (ten years)", Span::LONGEST);
    ensure(found <= Span::LONGEST, field, found, legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_path_the_value_and_what_is_legal() {
        let error = within("cv", f64::NAN, 0.01, 100.0).expect_err("NaN is in no range");
        assert_eq!(
            error.under("arrival").under("clients[2]").to_string(),
            "field `clients[2].arrival.cv`: found NaN; legal: a number from 0.01 to 100"
        );
    }

    #[test]
    fn long_values_are_cut() {
        let (fits, long) = ("ä".repeat(80), "ä".repeat(81));
        assert_eq!(shown(&fits), fits);
        assert_eq!(shown(&long), format!("{fits}..."));
    }

    #[test]
    fn the_ends_of_a_range_are_legal_and_the_infinities_are_not() {
        assert!(within("x", 1.0, 1.0, 2.0).is_ok() && within("x", 2.0, 1.0, 2.0).is_ok());
        assert!(within("x", f64::INFINITY, 1.0, f64::MAX).is_err());
        assert!(within("x", f64::NEG_INFINITY, f64::MIN, 1.0).is_err());
    }
}
