//! Documents as text for a terminal: tables that fit it, and nothing that it cannot show.
//!
//! A table that is too wide is cut into parts below one another, each with the columns that say
//! what a row is about. Headings are folded between words, never inside one.

use crate::chart::{Chart, Form, Point};
use crate::model::{Block, Card, Document, Group, Table};
use crate::text::{concat, folded, percent, plain};
use blis_core::math::{count, float};

/// What a document is shown on.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether it shows bold and colours.
    pub colour: bool,
}

/// Lines of prose are no longer than this, however wide the screen is.
const WIDEST_PROSE: usize = 100;
/// Cells of words are folded beyond this, if room is short.
const WIDEST_WORDS: usize = 32;
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

/// The document for `screen`. Verdicts come last, because that is what stays on the screen.
pub fn text(document: &Document, screen: Screen) -> String {
    let is_verdict = |block: &&Block| match block {
        Block::Group(group) => group.blocks.iter().any(|one| matches!(one, Block::Verdict(_))),
        _ => false,
    };
    let (verdicts, others): (Vec<&Block>, Vec<&Block>) =
        document.blocks.iter().partition(is_verdict);
    let title = screen.bold(&screen.folded(&document.title, 0)) + "\n";
    let mut out = title + &screen.blocks(&[others, verdicts].concat());
    let hidden: Vec<&str> = document.blocks.iter().filter_map(hidden).collect();
    if !hidden.is_empty() {
        let text = format!("not shown: {}; add `--format html`", hidden.join(", ").to_lowercase());
        out = out + "\n" + &screen.folded(&text, 0) + "\n";
    }
    out
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
                let parts = text.split("\n\n").map(|part| self.folded(part, 0) + "\n");
                parts.collect::<Vec<_>>().join("\n")
            }
            Block::List(items) => items.iter().map(|item| self.folded(item, 2) + "\n").collect(),
            Block::Code(text) => concat(text.lines(), |line| format!("  {line}\n")),
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
        let because =
            if because.is_empty() { String::new() } else { line(&format!("because {because}")) };
        format!("{head}\n{because}{}", line(found))
    }

    fn table(self, table: &Table) -> String {
        let parts = parts(table, self.width);
        let shown = parts.iter().map(|columns| part(table, columns, self.width));
        let body = shown.collect::<Vec<_>>().join("\n");
        if table.title.is_empty() {
            return body;
        }
        format!("{}\n{body}", self.bold(&self.folded(&table.title, 0)))
    }

    fn chart(self, chart: &Chart) -> String {
        match chart.form {
            Form::Bars if chart.points.iter().all(|point| point.series.is_empty()) => {
                format!("{}\n{}", self.bold(&chart.title), bars(&chart.points))
            }
            Form::Timeline => timeline(chart, self.width.min(WIDEST_PROSE)),
            _ => String::new(),
        }
    }
}

/// The width of the text.
fn wide(text: &str) -> usize {
    text.chars().count()
}

/// How narrow and how wide a column can be: numbers are never folded, headings only between words.
fn widths(table: &Table, column: usize) -> (usize, usize) {
    let cells = || table.rows.iter().filter_map(|row| row.get(column));
    let longest_word = |text: &String| text.split(' ').map(wide).max().unwrap_or(0);
    let most = cells().map(|cell| wide(cell)).max().unwrap_or(0);
    let words = cells().map(longest_word).max().unwrap_or(0);
    let least = if table.is_numeric(column) { most } else { most.min(WIDEST_WORDS.max(words)) };
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
    let line = |point: &Point| {
        let share = |whole: f64| if whole > 0.0 { value(point) / whole } else { 0.0 };
        let eighths = count(share(most) * float(8 * BAR as u64));
        let eighths = eighths.max(u64::from(value(point) > 0.0));
        let (full, rest) = ((eighths / 8) as usize, (eighths % 8) as usize);
        let end = if rest > 0 { ENDS[rest].to_string() } else { String::new() };
        let bar = "█".repeat(full) + &end;
        format!("  {:>label$}  {bar:BAR$} {:>7}\n", point.at, percent(share(all)))
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
    let middle = format!("{} to {} {}", plain(least), plain(most), chart.value.label);
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
