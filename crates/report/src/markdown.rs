//! Documents as Markdown pages. Charts are SVG files beside the page.

use crate::model::{Block, Card, Document, Group, Table};
use crate::svg::svg;
use crate::text::{concat, folded, inline};

/// A page, and the files that it shows.
#[derive(Clone, Debug)]
pub struct Page {
    /// The text.
    pub text: String,
    /// The names and contents of its drawings.
    pub drawings: Vec<(String, String)>,
}

/// Columns of a line of prose.
const WIDTH: usize = 100;

/// The document as a page whose drawings begin with `stem`; without one it has none.
pub fn page(document: &Document, stem: Option<&str>) -> Page {
    let mut page = Page { text: format!("# {}\n", inline(&document.title)), drawings: Vec::new() };
    page.add(&document.blocks, stem, 2);
    page
}

impl Page {
    fn add(&mut self, blocks: &[Block], stem: Option<&str>, level: usize) {
        for block in blocks {
            let text = match block {
                Block::Prose(text) => prose(text),
                Block::List(items) => concat(items, |item| format!("- {item}\n")),
                Block::Markdown(text) => text.trim_start().to_owned(),
                Block::Code(text) => format!("```\n{}\n```\n", text.trim_end()),
                Block::Table(one) => table(one, level),
                Block::Verdict(one) => card(one, level),
                Block::Warning { text, remedy } if remedy.is_empty() => {
                    format!("> **Warning:** {text}.\n")
                }
                Block::Warning { text, remedy } => format!("> **Warning:** {text}; {remedy}.\n"),
                Block::Chart(chart) => {
                    let Some(stem) = stem else { continue };
                    let file = format!("{stem}-{}.svg", chart.file());
                    let note =
                        if chart.note.is_empty() { String::new() } else { prose(&chart.note) };
                    let shown = format!("![{}]({file})\n", inline(&chart.title));
                    self.drawings.push((file, svg(chart)));
                    if note.is_empty() { shown } else { format!("{shown}\n{note}") }
                }
                Block::Group(group) => {
                    self.group(group, stem, level);
                    continue;
                }
            };
            if !text.is_empty() {
                self.text.extend(["\n", &text]);
            }
        }
    }

    fn group(&mut self, group: &Group, stem: Option<&str>, level: usize) {
        let Group { title, folded, blocks } = group;
        let before = self.text.len();
        self.add(blocks, stem, level + 1);
        let content = self.text.split_off(before);
        if content.is_empty() {
            return;
        }
        let head = "#".repeat(level);
        let text = if *folded {
            format!("\n<details>\n<summary>{title}</summary>\n{content}\n</details>\n")
        } else {
            format!("\n{head} {title}\n{content}")
        };
        self.text.push_str(&text);
    }
}

/// Paragraphs; what has lines of its own, as lists have, keeps them.
fn prose(text: &str) -> String {
    let part = |part: &str| {
        let has_lines = part.contains("\n-") || part.trim().starts_with('|');
        if has_lines { part.trim().to_owned() } else { folded(part, WIDTH, 0, 0) }
    };
    text.trim().split("\n\n").map(part).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn card(card: &Card, level: usize) -> String {
    let Card { name, outcome, claim, because, found, .. } = card;
    let because = match because.as_str() {
        "" => String::new(),
        because => format!("- **because** {}\n", inline(because)),
    };
    let (name, claim, found) = (inline(name), inline(claim), inline(found));
    let head = "#".repeat(level);
    format!("{head} {name}: {outcome}\n\n- **claim** `{claim}`\n{because}- **found** {found}\n")
}

fn table(table: &Table, level: usize) -> String {
    let escaped = |cell: &String| inline(cell).replace('|', "\\|");
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | ")).replace("|  ", "| ");
    let rule = |column: usize| if table.is_numeric(column) { "---:|" } else { "---|" };
    let rule: String = (0..table.header.len()).map(rule).collect();
    let row = |(at, row): (usize, &Vec<String>)| {
        let mut cells: Vec<String> = row.iter().map(escaped).collect();
        if let (Some(first), Some(link)) = (cells.first_mut(), table.links.get(at)) {
            *first = format!("[{first}]({link})");
        }
        line(cells)
    };
    let title = match table.title.as_str() {
        "" => String::new(),
        title => format!("{} {title}\n\n", "#".repeat(level)),
    };
    let rows: String = table.rows.iter().enumerate().map(row).collect();
    format!("{title}{}|{rule}\n{rows}", line(table.header.iter().map(escaped).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Chart, Form, Point, Scale};
    use serde_json::Value;

    #[test]
    fn a_page_has_headings_tables_and_drawings_beside_it() {
        let axes = [Axis::new("", Scale::Names), Axis::new("ms", Scale::Fit)];
        let chart = Chart::new("a b", Form::Rows, axes, vec![Point::named("x", 1.0)]);
        let table = Table::new("load", ["arm", "n"], [["a|b".to_owned(), "1".to_owned()]]);
        let blocks = vec![
            Block::group("Numbers", vec![table.into(), chart.expect("a point").into()]),
            Block::folded("More", vec![Block::List(vec!["one".to_owned()])]),
            Block::group("Nothing", Vec::new()),
        ];
        let page = page(&Document::new("t", blocks, Value::Null), Some("s"));
        let expected = "# t\n\n## Numbers\n\n### load\n\n| arm | n |\n|---|---:|\n| a\\|b | 1 |\n\n\
                        ![a b](s-a-b.svg)\n\n<details>\n<summary>More</summary>\n\n- one\n\n\
                        </details>\n";
        assert_eq!(page.text, expected);
        assert_eq!(page.drawings.len(), 1);
    }
}
