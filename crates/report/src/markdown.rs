//! Documents as Markdown pages. Charts are SVG files beside the page. A name is never taken for a
//! tag of HTML.

use crate::model::{Block, Card, Document, Group, Table};
use crate::svg::svg;
use crate::text::{concat, folded, inline};
use blis_scenario::problem::visible_lines;

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
    let mut page = Page { text: format!("# {}\n", line(&document.title)), drawings: Vec::new() };
    page.add(&document.answer, stem, 2);
    page.add(&document.blocks, stem, 2);
    page
}

impl Page {
    fn add(&mut self, blocks: &[Block], stem: Option<&str>, level: usize) {
        for block in blocks {
            let text = match block {
                Block::Prose(text) => prose(text),
                Block::List(items) => concat(items, |item| format!("- {}\n", words(item))),
                Block::Markdown(text) => text.trim_start().to_owned(),
                Block::Code(text) => code(text.trim_end()),
                Block::Table(one) => table(one, level),
                Block::Verdict(one) => card(one, level),
                Block::Warning { text, remedy } => {
                    let joint = if remedy.is_empty() { "" } else { "; " };
                    format!("> **Warning:** {}.\n", words(&format!("{text}{joint}{remedy}")))
                }
                Block::Chart(chart) => {
                    let Some(stem) = stem else { continue };
                    let file = format!("{stem}-{}.svg", chart.file());
                    let note =
                        if chart.note.is_empty() { String::new() } else { prose(&chart.note) };
                    let shown = format!("![{}]({file})\n", line(&chart.title));
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
        let title = line(title);
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
        if has_lines {
            return part.trim().lines().map(words).collect::<Vec<_>>().join("\n");
        }
        folded(&words(part), WIDTH, 0, 0)
    };
    text.trim().split("\n\n").map(part).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn card(card: &Card, level: usize) -> String {
    let Card { name, outcome, claim, because, found, .. } = card;
    let because = match because.as_str() {
        "" => String::new(),
        because => format!("- **{}** {}\n", card.reason(), line(because)),
    };
    let head = format!("{} {}: {outcome}\n", "#".repeat(level), line(name));
    let claim = line(&format!("`{claim}`"));
    format!("{head}\n- **claim** {claim}\n{because}- **found** {}\n", line(found))
}

fn table(table: &Table, level: usize) -> String {
    let escaped = |cell: &String| line(cell).replace('|', "\\|");
    let across = |cells: Vec<String>| format!("| {} |\n", cells.join(" | ")).replace("|  ", "| ");
    let rule = |column: usize| if table.is_numeric(column) { "---:|" } else { "---|" };
    let rule: String = (0..table.header.len()).map(rule).collect();
    let row = |(at, row): (usize, &Vec<String>)| {
        let mut cells: Vec<String> = row.iter().map(escaped).collect();
        // A place within the page is for pages that can open it.
        let link = table.links.get(at).filter(|link| !link.starts_with('#'));
        if let (Some(first), Some(link)) = (cells.first_mut(), link) {
            *first = format!("[{first}]({link})");
        }
        across(cells)
    };
    let title = match line(&table.title).as_str() {
        "" => String::new(),
        title => format!("{} {title}\n\n", "#".repeat(level)),
    };
    let rows: String = table.rows.iter().enumerate().map(row).collect();
    format!("{title}{}|{rule}\n{rows}", across(table.header.iter().map(escaped).collect()))
}

/// Words on one line.
fn line(text: &str) -> String {
    words(&inline(text))
}

/// Text as it is, within marks that it does not have.
fn code(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(3.max(longest + 1));
    format!("{marks}\n{}\n{marks}\n", visible_lines(text))
}

/// Words in which nothing is hidden, and nothing but code looks like a tag.
fn words(text: &str) -> String {
    let text = visible_lines(text);
    let (mut out, mut rest) = (String::new(), text.as_str());
    while let Some(at) = rest.find(['`', '<', '\\']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let behind = &from[1..];
        let taken = match from.as_bytes()[0] {
            b'<' => {
                let tag = |next: char| next.is_ascii_alphabetic() || "/!?".contains(next);
                out.push_str(if behind.starts_with(tag) { "&lt;" } else { "<" });
                rest = behind;
                continue;
            }
            b'\\' => 1 + behind.chars().next().map_or(0, char::len_utf8),
            _ => code_span(from),
        };
        out.push_str(&from[..taken]);
        rest = &from[taken..];
    }
    out + rest
}

/// How long the code is that `text` begins with; if its backticks are not closed, how many there
/// are.
fn code_span(text: &str) -> usize {
    let run = |text: &str| text.len() - text.trim_start_matches('`').len();
    let ticks = run(text);
    let mut at = ticks;
    while let Some(next) = text[at..].find('`') {
        let found = run(&text[at + next..]);
        at += next + found;
        if found == ticks {
            return at;
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_tag_and_code_stays_as_it_is() {
        for (text, shown) in [
            ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
            ("`<b>` and <b>", "`<b>` and &lt;b>"),
            ("``a`<b>`` <b>", "``a`<b>`` &lt;b>"),
            ("` <b>", "` &lt;b>"),
            ("\\` <b> `", "\\` &lt;b> `"),
            ("p < 0.05, a<1", "p < 0.05, a<1"),
            ("a\u{202e}b\x1b[2J", "a\\u{202e}b\\u{1b}[2J"),
        ] {
            assert_eq!(words(text), shown);
        }
        assert_eq!(code("a\n```\nb"), "````\na\n```\nb\n````\n");
    }
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
