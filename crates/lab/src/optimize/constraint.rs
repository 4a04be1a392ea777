//! Constraints: `metric >= number` or `metric <= number`, or so many times the hand-set point's; of
//! one workload (`metric @ workload`), or of each.

use super::number::Number;
use crate::hypothesis::spelled;
use blis_scenario::yaml;
use std::ops::Range;

/// What must hold at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// As written; with its workload if it is one of those that the written one stands for.
    pub text: String,
    /// The number that is bounded.
    pub number: Number,
    /// Whether the bound is a lower one.
    pub at_least: bool,
    /// The bound, or what the hand-set point's number is multiplied with.
    pub bound: f64,
    /// Whether it is relative to the hand-set point.
    pub relative: bool,
}

const LEGAL: &str = "legal: `metric >= number` or `metric <= number`, where the number may be \
                     followed by `* baseline`, e.g. `tokens_per_sec >= 0.95 * baseline`, and the \
                     metric by `@ workload`";

/// Where the name of a workload in quotes ends, if `text` has one.
fn quoted_name(text: &str) -> Option<usize> {
    let (_, name) = text.split_once('@')?;
    let name = name.trim_start().strip_prefix('"')?;
    name.find('"').map(|end| text.len() - name.len() + end)
}

impl Constraint {
    /// Reads `text`, which is about workloads with these names; complaints come with the part that
    /// they are about.
    pub(crate) fn parse(
        text: &str,
        names: &[String],
    ) -> Result<Constraint, (String, Range<usize>)> {
        let signs = [(">=", true), ("<=", false)];
        // The name of a workload may have anything between its quotes.
        let behind = quoted_name(text).unwrap_or(0);
        let find = |sign| text[behind..].find(sign).map(|at| behind + at);
        let found = signs.iter().find_map(|&(sign, least)| find(sign).map(|at| (at, least)));
        let Some((at, at_least)) = found else {
            return Err((format!("there is no `>=` or `<=`; {LEGAL}"), 0..text.len()));
        };
        let (left, right) = (&text[..at], &text[at + 2..]);
        let number = Number::parse(left, names);
        let counted = number.map_err(|(why, part)| (why, within(text, part)))?;
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
        let text = text.trim().to_owned();
        Ok(Constraint { text, number: counted, at_least, bound, relative })
    }

    /// The constraints that it stands for where workloads have these names: itself if it names one
    /// of them or there are none, else one for each.
    pub(super) fn each(self, names: &[String]) -> Vec<Constraint> {
        if self.number.workload.is_some() || names.is_empty() {
            return vec![self];
        }
        let of = |(index, name): (usize, &String)| {
            let metric = self.number.metric;
            let number = Number { metric, tenant: None, workload: Some((index, name.clone())) };
            let sign = if self.at_least { ">=" } else { "<=" };
            let (left, right) = self.text.split_once(sign).unwrap_or((&self.text, ""));
            let (left, name) = (left.trim(), spelled(name));
            let text = format!("{left} @ {name} {sign} {}", right.trim());
            Constraint { text, number, ..self.clone() }
        };
        names.iter().enumerate().map(of).collect()
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
        let relative = Constraint::parse("tokens_per_sec >= 0.95 * baseline", &[]).expect("legal");
        assert!(relative.excess(96.0, 100.0) <= 0.0 && relative.excess(94.0, 100.0) > 0.0);
        assert!((relative.limit(200.0) - 190.0).abs() < 1e-9);
        let absolute = Constraint::parse("critical.ttft_p99<=200", &[]).expect("legal");
        assert!(absolute.excess(199.0, 1.0) <= 0.0 && absolute.excess(201.0, 1.0) > 0.0);
        assert_eq!(absolute.number.name(), "critical.ttft_p99");
    }

    #[test]
    fn what_names_no_workload_stands_for_one_constraint_in_each() {
        let names = ["calm", "load >= 2"].map(str::to_owned);
        let texts = |text: &str| {
            let all = Constraint::parse(text, &names).expect("legal").each(&names);
            all.into_iter().map(|one| (one.number.name(), one.text)).collect::<Vec<_>>()
        };
        let (calm, load) = ("ttft_p99 @ calm", "ttft_p99 @ \"load >= 2\"");
        assert_eq!(
            texts("ttft_p99<=1.05 * baseline"),
            [calm, load].map(|name| (name.to_owned(), format!("{name} <= 1.05 * baseline")))
        );
        let one = format!("{load} <= 200");
        assert_eq!(texts(&one), [(load.to_owned(), one.clone())], "as written");
        let none = Constraint::parse("ttft_p99<=200", &[]).expect("legal").each(&[]);
        assert_eq!(none.len(), 1);
        assert_eq!(none[0].text, "ttft_p99<=200", "as written");
        let (why, at) = Constraint::parse("ttft_p99 @ clam <= 2", &names).expect_err("unknown");
        assert!(why.starts_with("unknown workload `clam`, did you mean `calm`?; known"), "{why}");
        assert_eq!(at, 11..15);
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (text, part, message) in [
            ("ttft_p98 >= 3", "ttft_p98", "unknown number `ttft_p98`"),
            ("ttft_p99 > 3", "ttft_p99 > 3", "there is no `>=` or `<=`"),
            ("ttft_p99 <= much", "much", "found `much` where a number is expected"),
            ("ttft_p99 <= 2 * bassline", "bassline", "found `bassline`; legal"),
            ("ttft_p99 <= 2 *", "2", "legal"),
            ("ttft_p99 <= 2 * \"baseline\"", "\"baseline\"", "found `\"baseline\"`; legal"),
        ] {
            let (why, at) = Constraint::parse(text, &[]).expect_err(text);
            assert!(why.starts_with(message), "{why}");
            assert_eq!(&text[at], part);
        }
    }
}
