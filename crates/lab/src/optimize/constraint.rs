//! Constraints: `metric >= number` or `metric <= number`, or so many times the hand-set point's.

use crate::metric::Metric;
use crate::yaml;
use std::ops::Range;

/// What must hold at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// As written.
    pub text: String,
    /// The number that is bounded.
    pub metric: Metric,
    /// Whether the bound is a lower one.
    pub at_least: bool,
    /// The bound, or what the hand-set point's number is multiplied with.
    pub bound: f64,
    /// Whether it is relative to the hand-set point.
    pub relative: bool,
}

const LEGAL: &str = "legal: `metric >= number` or `metric <= number`, where the number may be \
                     followed by `* baseline`, e.g. `tokens_per_sec >= 0.95 * baseline`";

impl Constraint {
    /// Reads `text`; complaints come with the part that they are about.
    pub(super) fn parse(text: &str) -> Result<Constraint, (String, Range<usize>)> {
        let signs = [(">=", true), ("<=", false)];
        let found = signs.iter().find_map(|&(sign, least)| text.find(sign).map(|at| (at, least)));
        let Some((at, at_least)) = found else {
            return Err((format!("there is no `>=` or `<=`; {LEGAL}"), 0..text.len()));
        };
        let (left, right) = (&text[..at], &text[at + 2..]);
        let metric = Metric::parse(left.trim()).map_err(|why| (why, within(text, left)))?;
        let (number, relative) = match right.split_once('*') {
            None => (right, false),
            Some((number, "")) => return Err((LEGAL.to_owned(), within(text, number))),
            Some((number, word)) if word.trim() == "baseline" => (number, true),
            Some((_, word)) => {
                let message = format!("found `{}`; {LEGAL}", word.trim());
                return Err((message, within(text, word)));
            }
        };
        let bound = yaml::float(number.trim()).ok_or_else(|| {
            let message = format!("found `{}` where a number is expected; {LEGAL}", number.trim());
            (message, within(text, number))
        })?;
        Ok(Constraint { text: text.trim().to_owned(), metric, at_least, bound, relative })
    }

    /// By how much `value` breaks it, where the hand-set point has `hand`: at most 0 if it holds. A
    /// relative one is measured in shares of the hand-set point's number.
    pub fn excess(&self, value: f64, hand: f64) -> f64 {
        let sign = if self.at_least { -1.0 } else { 1.0 };
        if !self.relative {
            return sign * (value - self.bound);
        }
        let size = if hand.abs() > 0.0 { hand.abs() } else { 1.0 };
        sign * (value - self.bound * hand) / size
    }

    /// The bound in the metric's own unit, where the hand-set point has `hand`.
    pub fn limit(&self, hand: f64) -> f64 {
        if self.relative { self.bound * hand } else { self.bound }
    }
}

/// Where `part` stands in `text`, without the blanks around it.
fn within(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    let blank = part.len() - part.trim_start().len();
    start + blank..start + blank + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_absolute_or_relative_to_the_hand_set_point() {
        let relative = Constraint::parse("tokens_per_sec >= 0.95 * baseline").expect("legal");
        assert!(relative.excess(96.0, 100.0) <= 0.0 && relative.excess(94.0, 100.0) > 0.0);
        assert!((relative.limit(200.0) - 190.0).abs() < 1e-9);
        let absolute = Constraint::parse("critical.ttft_p99<=200").expect("legal");
        assert!(absolute.excess(199.0, 1.0) <= 0.0 && absolute.excess(201.0, 1.0) > 0.0);
        assert_eq!(absolute.metric.name(), "critical.ttft_p99");
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (text, part, message) in [
            ("ttft_p98 >= 3", "ttft_p98", "unknown number `ttft_p98`"),
            ("ttft_p99 > 3", "ttft_p99 > 3", "there is no `>=` or `<=`"),
            ("ttft_p99 <= much", "much", "found `much` where a number is expected"),
            ("ttft_p99 <= 2 * bassline", "bassline", "found `bassline`; legal"),
            ("ttft_p99 <= 2 *", "2", "legal"),
        ] {
            let (why, at) = Constraint::parse(text).expect_err(text);
            assert!(why.starts_with(message), "{why}");
            assert_eq!(&text[at], part);
        }
    }
}
