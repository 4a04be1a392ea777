//! Charts made of characters, within a terminal and without colour.

use crate::report::table::{grouped, percent};
use blis_core::math::{count, float};
use blis_workload::inspect::Bar;

/// Heights of a column, in eighths.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Lengths of the end of a bar, in eighths.
const ENDS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// `values` as columns of `rows` lines, the greatest as high as it goes. What is not zero shows.
pub(super) fn columns(values: &[f64], rows: usize) -> Vec<String> {
    let most = values.iter().copied().fold(0.0, f64::max);
    let eighths = |value: f64| match value {
        _ if most <= 0.0 || value <= 0.0 => 0,
        value => count(value / most * float(8 * rows as u64)).max(1),
    };
    let line = |row: usize| {
        let below = 8 * row as u64;
        let cell = |value: &f64| HEIGHTS[(eighths(*value).saturating_sub(below)).min(8) as usize];
        values.iter().map(cell).collect::<String>()
    };
    (0..rows).rev().map(line).collect()
}

/// A histogram: one line a bar with its bounds, `width` cells for the longest, and its share.
pub(super) fn histogram(title: &str, bars: &[Bar], width: usize) -> Vec<String> {
    let all: u64 = bars.iter().map(|bar| bar.count).sum();
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    let wide = |number: fn(&Bar) -> u64| {
        bars.iter().map(|bar| grouped(number(bar)).len()).max().unwrap_or(0)
    };
    let (from, to) = (wide(|bar| bar.from), wide(|bar| bar.to));
    let mut lines = vec![title.to_owned()];
    for bar in bars {
        let label = if bar.from == bar.to {
            format!("{:>width$}", grouped(bar.to), width = from + to + 4)
        } else {
            format!("{:>from$} to {:>to$}", grouped(bar.from), grouped(bar.to))
        };
        let share = float(bar.count) / float(all.max(1));
        let drawn = drawn(float(bar.count) / float(most), width);
        lines.push(format!("  {label}  {drawn} {:>7}", percent(Some(share))));
    }
    lines
}

/// A bar of `share` (0 to 1) of `width` cells, padded to them. What is not zero shows.
fn drawn(share: f64, width: usize) -> String {
    let eighths = count(share * float(8 * width as u64)).max(u64::from(share > 0.0));
    let (full, rest) = ((eighths / 8) as usize, (eighths % 8) as usize);
    let mut bar = "█".repeat(full);
    if rest > 0 {
        bar.push(ENDS[rest]);
    }
    format!("{bar:width$}")
}

/// Two blocks of lines beside one another, the right one from column `at` on.
pub(super) fn beside(left: &[String], right: &[String], at: usize) -> String {
    let empty = String::new();
    let line = |index: usize| {
        let (left, right) = (left.get(index), right.get(index));
        let (left, right) = (left.unwrap_or(&empty), right.unwrap_or(&empty));
        format!("{}\n", format!("{left:at$}{right}").trim_end())
    };
    (0..left.len().max(right.len())).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_high_as_their_values_and_what_is_there_shows() {
        assert_eq!(columns(&[0.0, 0.001, 4.0, 8.0], 1), [" ▁▄█"]);
        assert_eq!(columns(&[0.0, 1.0, 2.0, 4.0], 2), ["   █", " ▄██"]);
        assert_eq!(columns(&[0.0, 0.0], 1), ["  "]);
    }

    #[test]
    fn bars_are_as_long_as_their_counts_and_what_is_there_shows() {
        let bars = [
            Bar { from: 1, to: 7, count: 3 },
            Bar { from: 8, to: 8, count: 96 },
            Bar { from: 9, to: 1_024, count: 0 },
            Bar { from: 1_025, to: 2_000, count: 1 },
        ];
        let lines = histogram("tokens", &bars, 8);
        let expected = [
            "tokens",
            "      1 to     7  ▎          3.0 %",
            "               8  ████████  96.0 %",
            "      9 to 1,024             0.0 %",
            "  1,025 to 2,000  ▏          1.0 %",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn blocks_of_different_height_stand_beside_one_another() {
        let lines = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let text = beside(&lines(&["a", "▏b"]), &lines(&["x", "y", "z"]), 4);
        assert_eq!(text, "a   x\n▏b  y\n    z\n");
    }
}
