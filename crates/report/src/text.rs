//! How numbers and names are spelled in every document.

use blis_core::math::{count, float};
use blis_lab::Metric;
use blis_lab::stats::Estimate;
use blis_lab::study::{Mean, Paired};
use blis_lab::verdict::{Scale, Verdict, number};
use blis_scenario::problem::visible;

/// What stands where there is no value.
pub const NONE: &str = "-";

/// `show(value)`, or a dash if there is none.
pub fn dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), show)
}

/// A count with commas between thousands.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many of what there are: `1 run`, `1,000 runs`.
pub fn counted(many: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(many), if many == 1 { "" } else { "s" })
}

/// About four digits, with as many decimals as other values of that size.
pub fn plain(value: impl Into<Option<f64>>) -> String {
    dash(value.into(), |value| match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 999.95 => format!("{value:.1}"),
        value => grouped(count(value)),
    })
}

/// A whole number.
pub fn whole(value: impl Into<Option<f64>>) -> String {
    dash(value.into(), |value| grouped(count(value)))
}

/// A share in per cent.
pub fn percent(value: impl Into<Option<f64>>) -> String {
    dash(value.into(), |value| format!("{:.1} %", 100.0 * value))
}

/// A change in per cent, with its sign.
pub fn signed(value: impl Into<Option<f64>>) -> String {
    dash(value.into(), |value| format!("{:+.1} %", 100.0 * value))
}

/// A value with its interval.
pub fn ranged(found: &Estimate) -> String {
    between(found, number)
}

/// A mean and its interval, as `show` shows them.
pub(crate) fn between(found: &Estimate, show: impl Fn(f64) -> String) -> String {
    format!("{} ({} to {})", show(found.mean), show(found.low), show(found.high))
}

/// A change with its interval: in per cent where that makes sense, else in the number's unit.
pub fn change(paired: &Paired) -> String {
    match &paired.ratio {
        Some(ratio) => ratio_change(ratio),
        None => between(&paired.difference, |value| {
            format!("{}{}", if value > 0.0 { "+" } else { "" }, number(value))
        }),
    }
}

/// A ratio as a change in per cent, with its interval.
pub fn ratio_change(ratio: &Estimate) -> String {
    between(ratio, |ratio| match ratio - 1.0 {
        // Whoever reads of thirty times as much needs no decimals.
        change if change >= 10.0 => format!("+{} %", whole(100.0 * change)),
        change => signed(change),
    })
}

/// A difference of shares in percentage points, with its interval.
pub fn points_change(difference: &Estimate) -> String {
    let ends = between(difference, |value| format!("{:+.1}", 100.0 * value));
    format!("{ends} points")
}

/// The name of a number and its unit.
pub fn heading(metric: &Metric) -> String {
    titled(metric.name(), metric.unit())
}

/// `name` with its unit, if it has one.
pub fn titled(name: String, unit: &str) -> String {
    if unit.is_empty() { name } else { format!("{name}, {unit}") }
}

/// Whether it is shown in per cent.
pub(crate) fn is_share(metric: &Metric) -> bool {
    ["rate", "share", "attainment"].iter().any(|it| metric.name().ends_with(it))
}

/// A mean with its interval, short enough for a table.
pub fn entry(metric: &Metric, mean: Option<Mean>) -> String {
    let share = is_share(metric);
    let show = |value: f64| match value {
        value if share => percent(value),
        value if value >= 99.95 => whole(value),
        value => plain(value),
    };
    let bare = |value: f64| show(value).trim_end_matches(" %").to_owned();
    dash(mean, |(mean, interval)| match interval {
        // Counts that all seeds have in common need no interval.
        Some((low, high)) if low < high => {
            // No share is more than all, though its interval by Student may be.
            let (low, high) =
                if share && mean <= 1.0 { (low.max(0.0), high.min(1.0)) } else { (low, high) };
            format!("{} ({} to {})", bare(mean), bare(low), show(high))
        }
        _ => show(mean),
    })
}

/// The effect that decided a verdict, with its interval; `x` is a ratio.
pub(crate) fn effect(verdict: &Verdict) -> String {
    let Some(effect) = verdict.effects.get(verdict.telling) else { return "-".to_owned() };
    let Some(found) = effect.estimate else { return "too few samples".to_owned() };
    let times = if effect.scale == Scale::Ratio { "x " } else { "" };
    let unit = if effect.unit.is_empty() { String::new() } else { format!(" {}", effect.unit) };
    let (mean, low, high) = (number(found.mean), number(found.low), number(found.high));
    format!("{times}{mean} ({low} to {high}){unit}")
}

/// Those of `items` that there are, as a list in a sentence.
pub fn listed(items: impl IntoIterator<Item = Option<String>>) -> String {
    items.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What `show` makes of each of `items`, one behind the other.
pub(crate) fn concat<T>(
    items: impl IntoIterator<Item = T>,
    show: impl FnMut(T) -> String,
) -> String {
    items.into_iter().map(show).collect()
}

/// A name for a file or a place in a page: letters, digits and hyphens.
pub(crate) fn slug(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_lowercase()
}

/// Words as a sentence.
pub fn sentence(words: &str) -> String {
    let mut letters = words.trim_end_matches('.').chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// Text on one line.
pub fn inline(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A length of time with about four digits, in the unit that suits it.
pub fn duration(nanos: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("days", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("µs", 1_000),
    ];
    // Minutes and more only where seconds would be many.
    let unit = UNITS.into_iter().find(|&(name, unit)| {
        nanos >= if matches!(name, "days" | "h" | "min") { 2 * unit } else { unit }
    });
    match unit {
        _ if nanos == 0 => "0 s".to_owned(),
        Some((name, unit)) => format!("{} {name}", plain(float(nanos) / float(unit))),
        None => format!("{nanos} ns"),
    }
}

/// Six digits, which is finer than any drawing.
pub(crate) fn digits(value: f64) -> String {
    let short = format!("{value:.5e}");
    short.parse::<f64>().map_or(short, |value| value.to_string())
}

/// A field of a CSV: in quotes if it needs them, with all that is hidden written out, and behind an
/// apostrophe if a spreadsheet would take it for a formula.
pub fn quoted(text: &str) -> String {
    let mut text = visible(text);
    let number = || text.trim_end_matches(" %").parse::<f64>().is_ok();
    if text.len() > 1 && text.starts_with(['=', '+', '-', '@']) && !number() {
        text.insert(0, '\'');
    }
    if text.contains([',', '"']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

/// `text` with words in one piece that an author broke behind a hyphen at the end of a line.
pub(crate) fn rejoined(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let broken = out.strip_suffix("-\n").is_some_and(|it| it.ends_with(char::is_alphanumeric));
        if broken && line.trim_start().starts_with(char::is_alphanumeric) {
            out.pop();
            out.push_str(line.trim_start());
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// `text` in lines of at most `width` columns, the first indented by `first` spaces and the others
/// by `others`. What a terminal would obey is written out.
pub(crate) fn folded(text: &str, width: usize, first: usize, others: usize) -> String {
    let mut lines = vec![" ".repeat(first)];
    for (index, word) in text.split_whitespace().map(visible).enumerate() {
        let line = lines.last_mut().expect("there is always a line");
        if index == 0 {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(" ".repeat(others) + &word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_broken_behind_a_hyphen_are_in_one_piece() {
        let text = "the least-\n  harm router -\nand\n\n- more\n";
        assert_eq!(rejoined(text), "the least-harm router -\nand\n\n- more\n");
    }

    #[test]
    fn numbers_have_about_four_digits_and_never_an_exponent() {
        for (value, text) in [
            (0.0, "0.00"),
            (1.234, "1.23"),
            (9.999, "10.0"),
            (123.45, "123.5"),
            (999.96, "1,000"),
            (1_234_567.0, "1,234,567"),
            (3.121_54e12, "3,121,540,000,000"),
        ] {
            assert_eq!(plain(value), text);
        }
        assert_eq!(plain(None), "-");
        let ratio = Estimate { mean: 30.693, low: 0.5, high: 1.123, values: 2 };
        assert_eq!(ratio_change(&ratio), "+2,969 % (-50.0 % to +12.3 %)");
        assert_eq!(
            (counted(1, "run"), counted(1_000, "run")),
            ("1 run".into(), "1,000 runs".into())
        );
    }

    #[test]
    fn durations_are_in_the_unit_that_suits_them() {
        for (nanos, text) in [
            (0, "0 s"),
            (999, "999 ns"),
            (1_500, "1.50 µs"),
            (250_000_000, "250.0 ms"),
            (119_000_000_000, "119.0 s"),
            (3_534_000_000_000, "58.9 min"),
            (7_200_000_000_000, "2.00 h"),
            (1_000_000_000_000_000, "11.6 days"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }

    #[test]
    fn fields_are_quoted_only_where_they_must() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn a_field_is_no_formula_and_a_number_stays_a_number() {
        for formula in ["=1+1", "+cmd|'/C x'!A0", "-2+3", "@SUM(A1)", "--1", "=\t"] {
            assert!(quoted(formula).starts_with('\''), "{formula}: {}", quoted(formula));
        }
        for plain in ["-1", "+2.5", "-3e-5", "-12.5 %", "-", "a=b", "0"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("a\r\n\u{1b}[2J"), "a\\r\\n\\u{1b}[2J");
    }

    #[test]
    fn long_text_is_folded_at_words() {
        let text = folded(&"word ".repeat(50), 100, 2, 4);
        assert!(text.starts_with("  word word"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(text.split_whitespace().count(), 50);
    }
}
