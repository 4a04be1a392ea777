//! Documents as text for a terminal: tables that fit it, and nothing that it cannot show.
//!
//! A table that is too wide is cut into parts below one another, each with the columns that say
//! what a row is about. Headings are folded between words, never inside one.

use crate::chart::{Chart, Form, Point};
use crate::model::{Block, Card, Document, Group, Table};
use crate::text::{concat, folded, listed, percent, plain};
use blis_core::math::{count, float};
use blis_scenario::problem::visible;

/// What a document is shown on.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether it shows bold and colours.
    pub colour: bool,
    /// Whether it shows more than the answer of a document that has one.
    pub details: bool,
}

/// Lines of prose are no longer than this, however wide the screen is.
const WIDEST_PROSE: usize = 100;
/// Cells of words are folded beyond this, if room is short.
const WIDEST_WORDS: usize = 32;
/// Words of a cell are cut beyond this.
const WIDEST_WORD: usize = 200;
/// So many details that are not shown are named.
const MOST_HIDDEN: usize = 3;
/// Between two columns.
const GAP: usize = 2;
/// Cells of the longest bar.
const BAR: usize = 24;
/// Lines of a timeline.
const LINES: usize = 2;
/// Heights of a column, in eighths.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Lengths of the end of a bar, in eighths.
const ENDS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The document for `screen`. Verdicts and the answer come last, because that is what stays on the
/// screen.
pub fn text(document: &Document, screen: Screen) -> String {
    let is_verdict = |block: &&Block| match block {
        Block::Group(group) => group.blocks.iter().any(|one| matches!(one, Block::Verdict(_))),
        _ => false,
    };
    let (verdicts, others): (Vec<&Block>, Vec<&Block>) =
        document.blocks.iter().partition(is_verdict);
    let title = screen.bold(&screen.folded(&document.title, 0)) + "\n";
    let answer = screen.blocks(&document.answer.iter().collect::<Vec<_>>());
    if !document.answer.is_empty() && !screen.details {
        return format!("{title}\n{answer}");
    }
    let mut out = title + &screen.blocks(&[others, verdicts].concat());
    let hidden: Vec<&str> = document.blocks.iter().filter_map(hidden).collect();
    if !hidden.is_empty() {
        let named = hidden.iter().take(MOST_HIDDEN).map(|name| Some(name.to_lowercase()));
        let more = hidden.len().saturating_sub(MOST_HIDDEN);
        let more = (more > 0).then(|| format!("{more} more"));
        let text = format!("not shown: {}; add `--format html`", listed(named.chain([more])));
        out = out + "\n" + &screen.folded(&text, 0) + "\n";
    }
    if answer.is_empty() { out } else { format!("{out}\n{answer}") }
}

fn hidden(block: &Block) -> Option<&str> {
    match block {
        Block::Group(group) if group.folded && !group.blocks.is_empty() => Some(&group.title),
        _ => None,
    }
}

impl Screen {
    fn bold(self, text: &str) -> String {
        self.painted(text, "1")
    }

    fn painted(self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Words that begin at the margin and go on behind `indent` spaces.
    fn folded(self, text: &str, indent: usize) -> String {
        folded(text, self.width.min(WIDEST_PROSE), 0, indent)
    }

    fn blocks<'a>(self, blocks: impl IntoIterator<Item = &'a &'a Block>) -> String {
        let shown = blocks.into_iter().map(|block| self.block(block));
        shown.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn block(self, block: &Block) -> String {
        match block {
            Block::Prose(text) => {
                let plain = text.replace("**", "");
                let parts = plain.split("\n\n").map(|part| self.folded(part, 0) + "\n");
                parts.collect::<Vec<_>>().join("\n")
            }
            Block::List(items) => items.iter().map(|item| self.folded(item, 2) + "\n").collect(),
            Block::Code(text) => concat(text.lines(), |line| format!("  {}\n", visible(line))),
            Block::Table(table) => self.table(table),
            Block::Chart(chart) => self.chart(chart),
            Block::Verdict(card) => self.card(card),
            Block::Warning { text, remedy } => {
                let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
                let text = self.folded(&format!("warning: {text}{remedy}"), 2) + "\n";
                text.replacen("warning:", &self.painted("warning:", "1;33"), 1)
            }
            Block::Markdown(_) | Block::Group(Group { folded: true, .. }) => String::new(),
            Block::Group(Group { title, blocks, .. }) => {
                let content = self.blocks(&blocks.iter().collect::<Vec<_>>());
                if content.is_empty() {
                    return content;
                }
                format!("{}\n{content}", self.bold(&self.folded(title, 0)))
            }
        }
    }

    fn card(self, card: &Card) -> String {
        let Card { name, outcome, claim, because, found, .. } = card;
        let head = self.folded(&format!("{outcome} {name}: {claim}"), 4);
        let head = head.replacen(outcome, &self.bold(outcome), 1);
        let line = |text: &str| folded(text, self.width.min(WIDEST_PROSE), 4, 4) + "\n";
        let because = if because.is_empty() {
            String::new()
        } else {
            line(&format!("{} {because}", card.reason()))
        };
        format!("{head}\n{because}{}", line(found))
    }

    fn table(self, table: &Table) -> String {
        // A formatted text cannot be padded to more.
        let width = self.width.min(usize::from(u16::MAX));
        let parts = parts(table, width);
        let shown = parts.iter().map(|columns| part(table, columns, width));
        let body = shown.collect::<Vec<_>>().join("\n");
        if table.title.is_empty() {
            return body;
        }
        format!("{}\n{body}", self.bold(&self.folded(&table.title, 0)))
    }

    fn chart(self, chart: &Chart) -> String {
        match chart.form {
            Form::Bars if chart.points.iter().all(|point| point.series.is_empty()) => {
                format!("{}\n{}", self.bold(&self.folded(&chart.title, 0)), bars(&chart.points))
            }
            Form::Timeline => timeline(chart, self.width.min(WIDEST_PROSE)),
            _ => String::new(),
        }
    }
}

/// The width of the text as it is shown.
fn wide(text: &str) -> usize {
    visible(text).chars().count()
}

/// The first `width` characters of the text, the last a sign that there are more.
fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width.saturating_sub(1)) {
        Some((at, last)) if at + last.len_utf8() < text.len() => text[..at].to_owned() + "…",
        _ => text.to_owned(),
    }
}

/// How narrow and how wide a column can be: numbers are never folded, headings only between words.
fn widths(table: &Table, column: usize) -> (usize, usize) {
    let cells = || table.rows.iter().filter_map(|row| row.get(column));
    let longest_word =
        |text: &String| text.split(' ').map(wide).max().unwrap_or(0).min(WIDEST_WORD);
    let most = cells().map(|cell| wide(cell)).max().unwrap_or(0);
    let words = cells().map(longest_word).max().unwrap_or(0);
    let least = if table.is_numeric(column) {
        most.min(WIDEST_WORD)
    } else {
        most.min(WIDEST_WORDS.max(words))
    };
    let header = &table.header[column];
    (least.max(longest_word(header)), most.max(wide(header)))
}

/// The columns of each part: the keys, and as many others as fit beside them.
fn parts(table: &Table, width: usize) -> Vec<Vec<usize>> {
    let least = |column: usize| widths(table, column).0 + GAP;
    let keys: Vec<usize> = (0..table.keys.min(table.header.len())).collect();
    let all: usize = keys.iter().map(|&column| least(column)).sum();
    let mut parts = vec![keys.clone()];
    let mut used = all;
    for column in keys.len()..table.header.len() {
        let is_begun = parts.last().is_some_and(|part| part.len() > keys.len());
        if is_begun && used + least(column) > width + GAP {
            parts.push(keys.clone());
            used = all;
        }
        used += least(column);
        parts.last_mut().expect("there is always a part").push(column);
    }
    parts
}

/// A part of a table, as wide as it needs to be or as there is room.
fn part(table: &Table, columns: &[usize], width: usize) -> String {
    let bounds: Vec<(usize, usize)> = columns.iter().map(|&at| widths(table, at)).collect();
    let least: usize = bounds.iter().map(|(least, _)| least + GAP).sum();
    let mut room = (width + GAP).saturating_sub(least);
    let widths: Vec<usize> = bounds
        .iter()
        .map(|(least, most)| {
            let more = room.min(most - least);
            room -= more;
            least + more
        })
        .collect();
    let line = |cells: &[String]| {
        let empty = String::new();
        let cells = columns.iter().zip(&widths).map(|(&column, &width)| {
            let text = folded(cells.get(column).unwrap_or(&empty), width, 0, 0);
            let right = table.is_numeric(column);
            let lines = text.lines().map(|line| {
                let line = cut(line, width);
                if right { format!("{line:>width$}") } else { format!("{line:width$}") }
            });
            lines.collect::<Vec<_>>()
        });
        let cells: Vec<Vec<String>> = cells.collect();
        let tall = cells.iter().map(Vec::len).max().unwrap_or(0);
        let row = |at: usize| {
            let shown = cells.iter().zip(&widths);
            let shown = shown
                .map(|(cell, &width)| cell.get(at).cloned().unwrap_or_else(|| " ".repeat(width)));
            let text = shown.collect::<Vec<_>>().join(&" ".repeat(GAP));
            text.trim_end().to_owned() + "\n"
        };
        (0..tall.max(1)).map(row).collect::<String>()
    };
    let all = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("{}{}\n{rows}", line(&table.header), "─".repeat(all))
}

/// A line for each bar with its share of all. What is not zero shows.
fn bars(points: &[Point]) -> String {
    let value = |point: &Point| point.value.unwrap_or(0.0);
    let all: f64 = points.iter().map(value).sum();
    let most = points.iter().map(value).fold(0.0, f64::max);
    let label = points.iter().map(|point| wide(&point.at)).max().unwrap_or(0);
    let label = label.min(WIDEST_WORD);
    let line = |point: &Point| {
        let share = |whole: f64| if whole > 0.0 { value(point) / whole } else { 0.0 };
        let eighths = count(share(most) * float(8 * BAR as u64));
        let eighths = eighths.max(u64::from(value(point) > 0.0));
        let (full, rest) = ((eighths / 8) as usize, (eighths % 8) as usize);
        let end = if rest > 0 { ENDS[rest].to_string() } else { String::new() };
        let bar = "█".repeat(full) + &end;
        let at = cut(&visible(&point.at), label);
        format!("  {at:>label$}  {bar:BAR$} {:>7}\n", percent(share(all)))
    };
    points.iter().map(line).collect()
}

/// Values over time as columns of a few lines, as wide as there is room.
fn timeline(chart: &Chart, width: usize) -> String {
    let points = &chart.points;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let values = points.iter().filter_map(|point| point.value);
    let (least, most) =
        values.clone().fold((f64::MAX, 0.0_f64), |(a, b), value| (a.min(value), b.max(value)));
    let room = width.saturating_sub(2).max(1);
    let repeated = (room / points.len()).max(1);
    let values: Vec<f64> =
        values.flat_map(|value| std::iter::repeat_n(value, repeated)).take(room).collect();
    let middle = format!("{} to {} {}", plain(least), plain(most), visible(&chart.value.label));
    let [start, end] = [first, last].map(|point| {
        let seconds = point.at.parse().unwrap_or(0.0);
        format!("{} s", plain(seconds))
    });
    let between = values.len().saturating_sub(wide(&start) + wide(&end));
    let columns = columns(&values, LINES).join("\n  ");
    format!("  {columns}\n  {start}{middle:^between$}{end}\n")
}

/// `values` as columns of `rows` lines, the greatest as high as it goes. What is not zero shows.
fn columns(values: &[f64], rows: usize) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wide_table() -> Table {
        let header = ["arm", "class"].into_iter().map(str::to_owned);
        let header = header.chain((1..=8).map(|n| format!("critical ttft_p9{n}, ms")));
        let row = |arm: &str, class: &str| {
            let keys = [arm.to_owned(), class.to_owned()];
            let cells = (1..=8).map(|n| format!("{n},000.5 ± 12.5"));
            keys.into_iter().chain(cells).collect::<Vec<_>>()
        };
        let long = "the same gate of a strategy with a long name on round-robin";
        Table::new("load", header, [row("base", "critical"), row(long, "batch")]).keyed(2)
    }

    fn shown(width: usize) -> String {
        Screen { width, colour: false, details: true }.table(&wide_table())
    }

    #[test]
    fn a_part_of_a_table_never_loses_what_its_rows_are_about() {
        for width in [60, 80, 100, 140] {
            let text = shown(width);
            let parts = parts(&wide_table(), width).len();
            assert!(parts > 1, "{width}: {text}");
            for key in ["base", "critical ", "batch"] {
                assert!(text.matches(key).count() >= parts, "{width}, {key}: {text}");
            }
            assert!(text.lines().all(|line| wide(line) <= width), "{width}: {text}");
            assert!((1..=8).all(|n| text.matches(&format!("{n},000.5 ± 12.5")).count() == 2));
        }
        assert_eq!(parts(&wide_table(), 400).len(), 1, "a wide screen shows all of it");
    }

    #[test]
    fn a_name_of_any_length_is_cut_and_never_stops_the_table() {
        let long = "n".repeat(70_000);
        let words = "n ".repeat(70_000);
        for name in [long, words] {
            let table = Table::new(
                "t",
                ["arm", "value"].map(str::to_owned),
                [[name.clone(), "1.5".to_owned()]],
            );
            for width in [80, 100_000] {
                let text = Screen { width, colour: false, details: true }.table(&table);
                assert!(text.contains("1.5") && text.contains("nn") | text.contains("n n"));
                assert_eq!(text.contains('…'), name.starts_with("nn"));
            }
            assert!(bars(&[Point::named(&name, 1.0)]).contains("…"));
        }
        assert_eq!([cut("abc", 3), cut("abcd", 3), cut("äöü", 2)], ["abc", "ab…", "ä…"]);
    }

    #[test]
    fn a_heading_is_never_broken_inside_a_word() {
        let known = wide_table().header.join(" ");
        let known: Vec<&str> = known.split_whitespace().collect();
        for width in [40, 60, 80, 100] {
            let text = shown(width);
            let headings = text.split("\n\n").map(|part| part.split('─').next().unwrap_or(""));
            for word in headings.flat_map(str::split_whitespace).filter(|word| *word != "load") {
                assert!(known.contains(&word), "{width}: {word} in {text}");
            }
        }
    }

    #[test]
    fn columns_are_as_high_as_their_values_and_what_is_there_shows() {
        assert_eq!(columns(&[0.0, 0.001, 4.0, 8.0], 1), [" ▁▄█"]);
        assert_eq!(columns(&[0.0, 1.0, 2.0, 4.0], 2), ["   █", " ▄██"]);
        assert_eq!(columns(&[0.0, 0.0], 1), ["  "]);
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_what_is_there_shows() {
        let point = |at: &str, value: f64| Point::named(at, value);
        let text = bars(&[point("1 to 7", 3.0), point("8", 96.0), point("9", 0.0)]);
        let full = "█".repeat(BAR);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("  1 to 7  {:BAR$}   3.0 %", "▊"));
        assert_eq!(lines[1], format!("       8  {full}  97.0 %"));
        assert_eq!(lines[2], format!("       9  {:BAR$}   0.0 %", ""));
    }

    #[test]
    fn details_are_named_and_verdicts_come_last() {
        let [name, claim, found] = ["h", "a < b", "1 (0 to 2)"].map(str::to_owned);
        let card = Card { name, outcome: "refuted", claim, found, ..Card::default() };
        let blocks = vec![
            Block::group("Verdicts", vec![Block::Verdict(card)]),
            Block::group("Empty", Vec::new()),
            Block::folded("Setup", vec![Block::prose("a detail")]),
            Block::warning("it is hot", "open a window"),
        ];
        let document = Document::new("t", blocks, serde_json::Value::Null);
        let text = text(&document, Screen { width: 80, colour: false, details: true });
        let expected = "t\nwarning: it is hot; open a window\n\nVerdicts\nrefuted h: a < b\n    1 (0 to 2)\n\n\
                        not shown: setup; add `--format html`\n";
        assert_eq!(text, expected);
    }
}
