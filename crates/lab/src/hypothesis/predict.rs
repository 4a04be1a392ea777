//! Predicted effect sizes: `0.4`, `0.3..0.5`, `-60%`, `-70%..-50%`.

/// How large an effect is thought to be: from one number to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// At least this.
    pub low: f64,
    /// At most this.
    pub high: f64,
}

impl Prediction {
    /// The prediction in `text`. Percentages are changes: `-60%` is a ratio of 0.4.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Prediction, String> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let (low, high) = (number(low, text)?, number(high, text)?);
        if low > high {
            return Err(format!("found `{text}`; legal: the smaller number first"));
        }
        Ok(Prediction { low, high })
    }

    /// Whether an interval has a part of it.
    pub fn meets(&self, low: f64, high: f64) -> bool {
        self.low <= high && low <= self.high
    }
}

fn number(part: &str, whole: &str) -> Result<f64, String> {
    let part = part.trim();
    let parsed = match part.strip_suffix('%') {
        Some(change) => change.trim().parse::<f64>().map(|change| 1.0 + change / 100.0),
        None => part.parse::<f64>(),
    };
    // Nothing can become less by more than all of it.
    let legal = |value: &f64| value.is_finite() && !(part.ends_with('%') && *value < 0.0);
    parsed.ok().filter(legal).ok_or_else(|| {
        format!(
            "found `{whole}`; legal: a number or a range of the effect, e.g. `0.4`, `0.3..0.5` or \
             `-60%`, and no change below `-100%`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_are_numbers_ranges_or_changes() {
        let read = |text| Prediction::parse(text).map(|p| (p.low, p.high));
        assert_eq!(read("0.4"), Ok((0.4, 0.4)));
        assert_eq!(read("0.3..0.5"), Ok((0.3, 0.5)));
        assert_eq!(read("-60%"), Ok((0.4, 0.4)));
        assert_eq!(read("-75% .. +50%"), Ok((0.25, 1.5)));
        assert!(read("0.5..0.3").is_err_and(|text| text.contains("the smaller number first")));
        assert!(read("half").is_err_and(|text| text.starts_with("found `half`; legal: a number")));
        assert!(read("nan").is_err());
        assert_eq!(read("-100%"), Ok((0.0, 0.0)));
        assert!(read("-200%").is_err_and(|text| text.contains("no change below `-100%`")));
    }
}
