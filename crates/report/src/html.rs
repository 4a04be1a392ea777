//! Documents as HTML pages that need nothing else: one file with its style, its data and, where it
//! draws, the library that draws them.
//!
//! A chart carries its data once, as the CSV behind its link. What is drawn is read from there, so
//! that a picture shows what a reader can download, and the link works without scripts. Nothing in
//! a page depends on when or where it was written.

use crate::chart::{Chart, name, unique};
use crate::model::{Block, Card, Document, Group, Table};
use crate::svg::{escaped, svg};
use crate::text::{concat, digits, sentence, slug};
use blis_core::math::float;
use blis_lab::verdict::Outcome;
use blis_scenario::json::visible;
use serde_json::Value;
use std::fmt::Write;

const STYLE: &str = include_str!("../assets/page.css");
const GLUE: &str = include_str!("../assets/page.js");
/// Libraries with their licences, in the order that they need each other.
const LIBRARIES: [(&str, &str); 2] = [
    (include_str!("../assets/LICENSE-d3"), include_str!("../assets/d3.min.js")),
    (include_str!("../assets/LICENSE-plot"), include_str!("../assets/plot.umd.min.js")),
];
/// The page is all there is: whatever it holds, a browser asks no server for anything.
const ALONE: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// How large a page may be. What there is to choose from is cut to fit.
const MOST_BYTES: usize = 1_480_000;
/// Where a script puts what readers can choose from.
const EXPLORER: &str = "<section id=\"explore\">\n<h2>Explore</h2>\n</section>\n";

/// Cells of tables with more letters stay wide on a phone.
const LONG: usize = 60;

/// How charts get onto a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figures {
    /// Drawn by a script, to the width of the window, with a word on every point.
    Scripted,
    /// Drawn already, so that the page is small.
    Drawn,
}

/// The document as a page.
pub fn page(document: &Document, figures: Figures) -> String {
    let title = escaped(&document.title);
    let body = Body { figures };
    let explores = figures == Figures::Scripted && !document.explore.is_null();
    let body = [
        body.blocks(&document.answer),
        if explores { EXPLORER.to_owned() } else { String::new() },
        body.blocks(&document.blocks),
    ]
    .concat();
    let data = embedded("findings", &document.data);
    let scripts = if body.contains("data-form=") || explores { scripts() } else { String::new() };
    let room = MOST_BYTES.saturating_sub(body.len() + data.len() + scripts.len());
    let runs =
        if explores { embedded("runs", &fitted(&document.explore, room)) } else { String::new() };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{ALONE}\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {body}<footer><p>blis {}</p></footer>\n{data}{runs}{scripts}</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// What there is to choose from, with as many metrics as there is room for.
fn fitted(explore: &Value, room: usize) -> Value {
    let mut explore = explore.clone();
    let series = explore.get("over_time").map_or(0, |series| series.to_string().len());
    let mut room = room.saturating_sub(series);
    if let Some(metrics) = explore.get_mut("metrics").and_then(Value::as_array_mut) {
        metrics.retain(|metric| {
            room = room.saturating_sub(metric.to_string().len());
            room > 0
        });
    }
    explore
}

/// JSON in a page, for programs; nothing in it can end its element. Nothing if there is none.
fn embedded(id: &str, data: &Value) -> String {
    if data.is_null() {
        return String::new();
    }
    let json = visible(&data.to_string()).replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"{id}\">\n{json}\n</script>\n")
}

fn scripts() -> String {
    let libraries = LIBRARIES
        .map(|(licence, library)| format!("<script>\n/*\n{licence}*/\n{library}</script>\n"));
    format!(
        "<noscript><p>Figures are drawn by a script, which this browser does not run; their data \
         are behind the links.</p></noscript>\n{}<script>\n{GLUE}</script>\n",
        libraries.concat()
    )
}

struct Body {
    figures: Figures,
}

impl Body {
    fn blocks(&self, blocks: &[Block]) -> String {
        let is_beside = |first: &Block, second: &Block| {
            use Block::{Chart, Verdict};
            matches!((first, second), (Chart(_), Chart(_)) | (Verdict(_), Verdict(_)))
        };
        let shown = |run: &[Block]| {
            let all: String = run.iter().map(|block| self.block(block)).collect();
            match run {
                [Block::Chart(_) | Block::Verdict(_), ..] => {
                    format!("<div class=\"plots\">\n{all}</div>\n")
                }
                _ => all,
            }
        };
        blocks.chunk_by(is_beside).map(shown).collect()
    }

    fn block(&self, block: &Block) -> String {
        match block {
            Block::Prose(text) => {
                let parts = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
                concat(parts, |part| format!("<p>{}</p>\n", words(part)))
            }
            Block::List(items) => {
                let items = concat(items, |item| format!("<li>{}</li>\n", words(item)));
                format!("<ul>\n{items}</ul>\n")
            }
            Block::Markdown(_) => String::new(),
            Block::Code(text) => format!("<pre><code>{}</code></pre>\n", escaped(text.trim_end())),
            Block::Table(one) => table(one),
            Block::Chart(chart) => self.figure(chart),
            Block::Verdict(card) => self.card(card),
            Block::Warning { text, remedy } => {
                let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
                format!(
                    "<p class=\"warning\"><b>Warning:</b> {}.</p>\n",
                    words(&(text.clone() + &remedy))
                )
            }
            Block::Group(Group { title, folded, blocks }) => {
                let content = self.blocks(blocks);
                let (id, title) = (slug(title), escaped(title));
                match (content.is_empty(), folded) {
                    (true, _) => String::new(),
                    (_, true) => {
                        let summary = format!("<summary>{title}</summary>\n{content}");
                        format!("<details id=\"{id}\">\n{summary}</details>\n")
                    }
                    (_, false) => format!("<section>\n<h2>{title}</h2>\n{content}</section>\n"),
                }
            }
        }
    }

    fn card(&self, card: &Card) -> String {
        let Card { name, outcome, claim, because, found, effects, charts } = card;
        let because = match because.as_str() {
            "" => String::new(),
            because => {
                let text = sentence(&format!("{} {because}", card.reason()));
                format!("<p>{}</p>\n", words(&text))
            }
        };
        let effect = |(what, found): &(String, String)| {
            format!("<li><code>{}</code><br/>{}</li>\n", escaped(what), escaped(found))
        };
        // The sentence has a single one already.
        let effects = match &effects[..] {
            [_] => String::new(),
            all => format!("<ul class=\"effects\">\n{}</ul>\n", concat(all, effect)),
        };
        // A drawing does not shrink to the width of a card.
        let charts = charts.iter().filter(|_| self.figures == Figures::Scripted);
        let charts = concat(charts, |chart| self.figure(chart));
        format!(
            "<article class=\"card {}\">\n<h3><span class=\"badge\">{outcome}</span> {}</h3>\
             \n<p><code>{}</code></p>\n{because}<p>{}.</p>\n{effects}{charts}</article>\n",
            tone(outcome),
            escaped(name),
            escaped(claim),
            escaped(found),
        )
    }

    fn figure(&self, chart: &Chart) -> String {
        let panels = unique(chart.points.iter().map(|point| point.panel.as_str()));
        let is_drawn = self.figures == Figures::Drawn;
        let wide = if is_drawn || panels.len() > 1 { " class=\"wide\"" } else { "" };
        let caption = format!(
            "<figcaption>{} <a download=\"{}.csv\" href=\"{}\">data (CSV)</a></figcaption>\n",
            escaped(&chart.title),
            chart.file(),
            data_uri(&chart.csv())
        );
        let note = match chart.note.as_str() {
            "" => String::new(),
            note => format!("<p class=\"faint\">{}</p>\n", words(note)),
        };
        if is_drawn {
            return format!("<figure{wide}>\n{caption}{note}{}</figure>\n", svg(chart));
        }
        let about = [
            ("form", name(chart.form)),
            ("at", chart.at.label.clone()),
            ("at-scale", name(chart.at.scale)),
            ("value", chart.value.label.clone()),
            ("value-scale", name(chart.value.scale)),
            ("bound", chart.bound.map(digits).unwrap_or_default()),
        ];
        let about = about.map(|(key, text)| format!(" data-{key}=\"{}\"", escaped(&text))).concat();
        format!("<figure{wide}{about}>\n{caption}{note}<div class=\"canvas\"></div>\n</figure>\n")
    }
}

/// Words of a paragraph; those between backticks are code, and those between `**` are bold.
fn words(text: &str) -> String {
    between(text, "`", "code", |rest| between(rest, "**", "b", escaped))
}

/// What is between two marks, in an element; what is not, as `rest` says.
fn between(text: &str, mark: &str, element: &str, rest: impl Fn(&str) -> String) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => rest(part),
        _ => format!("<{element}>{}</{element}>", escaped(part)),
    };
    if text.matches(mark).count().is_multiple_of(2) {
        text.split(mark).enumerate().map(part).collect()
    } else {
        rest(text)
    }
}

fn data_uri(csv: &str) -> String {
    let mut uri = "data:text/csv;charset=utf-8,".to_owned();
    for byte in csv.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b',' | b'.' | b'-' | b'_' => {
                uri.push(char::from(byte));
            }
            _ => write!(uri, "%{byte:02X}").expect("writing to a string cannot fail"),
        }
    }
    uri
}

/// The class of what has this outcome.
fn tone(outcome: &str) -> &str {
    match outcome {
        "confirmed" | "refuted" => outcome,
        _ => "inconclusive",
    }
}

/// A table that can be wider than the screen.
fn table(table: &Table) -> String {
    let line = |name: &str, cells: &[String], link: Option<&String>| {
        let cell = |(column, text): (usize, &String)| {
            let class = match text.as_str() {
                "no" => " class=\"no\"".to_owned(),
                _ if Outcome::ALL.iter().any(|it| it.name() == text) => {
                    format!(" class=\"{}\"", tone(text))
                }
                _ if table.is_numeric(column) => " class=\"n\"".to_owned(),
                text if text.len() > LONG => " class=\"long\"".to_owned(),
                _ => String::new(),
            };
            let text = if text.contains('█') { bar(text) } else { breakable(text) };
            let text = match link.filter(|_| column == 0) {
                Some(link) => format!("<a href=\"{}\">{text}</a>", escaped(link)),
                None => text,
            };
            format!("<{name}{class}>{text}</{name}>")
        };
        let cells: String = cells.iter().enumerate().map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let title = match table.title.as_str() {
        "" => String::new(),
        title => format!("<caption>{}</caption>\n", escaped(title)),
    };
    let rows = table.rows.iter().enumerate();
    let rows: String = rows.map(|(at, row)| line("td", row, table.links.get(at))).collect();
    let head = line("th", &table.header, None);
    format!(
        "<div class=\"scroll\"><table>\n{title}<thead>{head}</thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n"
    )
}

/// A bar of text, such as `··██·`, as one that is drawn.
fn bar(text: &str) -> String {
    let many = |mark: char| text.chars().filter(|&letter| letter == mark).count();
    let before = text.chars().take_while(|&letter| letter == '·').count();
    let share = |cells: usize| float((100 * cells) as u64) / float(text.chars().count() as u64);
    let (from, wide) = (share(before), share(many('█')));
    format!("<i class=\"bar\" style=\"margin-left:{from:.1}%;width:{wide:.1}%\"></i>")
}

/// Words whose long names of several parts may be broken between them, but not their numbers.
fn breakable(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        out.push_str(&escaped(letter.encode_utf8(&mut [0; 4])));
        let is_joint = matches!(letter, '.' | '_' | '(');
        if is_joint && letters.peek().is_some_and(|next| next.is_alphabetic()) {
            out.push_str("<wbr/>");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_broken_and_numbers_are_not() {
        assert_eq!(breakable("a.b_c <1.5>"), "a.<wbr/>b_<wbr/>c &lt;1.5&gt;");
    }

    #[test]
    fn bars_of_text_are_drawn_where_they_stand() {
        let drawn = "<i class=\"bar\" style=\"margin-left:40.0%;width:20.0%\"></i>";
        assert_eq!(bar("····██····"), drawn);
    }

    #[test]
    fn words_between_backticks_are_code() {
        assert_eq!(words("set `a<b` to 1"), "set <code>a&lt;b</code> to 1");
        assert_eq!(words("a ` b"), "a ` b");
        assert_eq!(words("a **b<c** `d**e**`"), "a <b>b&lt;c</b> <code>d**e**</code>");
        assert_eq!(words("2 ** 3"), "2 ** 3");
    }

    #[test]
    fn libraries_cannot_end_their_element() {
        for (licence, library) in LIBRARIES {
            assert!(!licence.contains("*/") && !licence.contains('<'));
            assert!(!library.contains("</script") && !library.contains("<!--"));
        }
        assert!(!GLUE.contains("</script") && !GLUE.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn json_cannot_end_its_element_and_stays_the_same() {
        let data = json!({"a": "</script><!-- & \\u003c"});
        let page = embedded("a", &data);
        let inner = page.split_once('\n').and_then(|(_, rest)| rest.rsplit_once("</script>"));
        let (inner, _) = inner.expect("an element");
        assert!(!inner.contains('<'), "{inner}");
        assert_eq!(serde_json::from_str::<Value>(inner).expect("JSON"), data);
    }

    #[test]
    fn metrics_for_which_there_is_no_room_are_left_out() {
        let explore = json!({"metrics": ["a".repeat(100), "b".repeat(100), "c"]});
        assert_eq!(
            fitted(&explore, 210),
            json!({"metrics": ["a".repeat(100), "b".repeat(100), "c"]})
        );
        assert_eq!(fitted(&explore, 150), json!({"metrics": ["a".repeat(100)]}));
    }

    #[test]
    fn data_stand_in_a_link_whatever_they_hold() {
        assert_eq!(data_uri("a b,\"ü\"\n"), "data:text/csv;charset=utf-8,a%20b,%22%C3%BC%22%0A");
    }
}
