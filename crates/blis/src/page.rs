//! Pages that need nothing else: one HTML file with its style, its data and, where it draws, the
//! library that draws them.
//!
//! A figure carries its data once, as the CSV behind its link. What is drawn is read from there, so
//! that a picture shows what a reader can download, and the link works without scripts. Nothing in
//! a page depends on when or where it was written.

use crate::markup::{escaped, push};
use crate::report::grid::Grid;
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

/// A page without scripts.
pub(crate) fn document(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{ALONE}\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

/// A page whose figures are drawn.
pub(crate) fn drawn(title: &str, body: &str) -> String {
    let mut body = body.to_owned();
    push(
        &mut body,
        format_args!(
            "<noscript><p>Figures are drawn by a script, which this browser does not run; their \
             data are behind the links.</p></noscript>"
        ),
    );
    for (licence, library) in LIBRARIES {
        push(&mut body, format_args!("<script>\n/*\n{licence}*/\n{library}</script>"));
    }
    push(&mut body, format_args!("<script>\n{GLUE}</script>"));
    document(title, &body)
}

/// JSON in a page, for programs; nothing in it can end its element.
pub(crate) fn embedded(id: &str, json: &str) -> String {
    let json = json.replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"{id}\">\n{json}</script>\n")
}

/// Data that are drawn.
pub(crate) struct Figure {
    /// Which of the glue's drawings it is.
    pub(crate) kind: &'static str,
    /// What it shows.
    pub(crate) title: String,
    /// What the file with its data is called, without an ending.
    pub(crate) file: String,
    /// The data.
    pub(crate) csv: String,
    /// What else the drawing has to know, by the name of a data attribute.
    pub(crate) about: Vec<(&'static str, String)>,
    /// Whether it needs the width of the page.
    pub(crate) wide: bool,
}

impl Figure {
    /// Its element.
    pub(crate) fn html(&self) -> String {
        let mut about = String::new();
        for (name, value) in &self.about {
            write!(about, " data-{name}=\"{}\"", escaped(value))
                .expect("writing to a string cannot fail");
        }
        let wide = if self.wide { " class=\"wide\"" } else { "" };
        let Figure { kind, title, file, csv, .. } = self;
        format!(
            "<figure{wide} data-plot=\"{kind}\"{about}>\n<figcaption>{} \
             <a download=\"{}.csv\" href=\"{}\">data (CSV)</a></figcaption>\n\
             <div class=\"canvas\"></div>\n</figure>\n",
            escaped(title),
            plain(file),
            data_uri(csv)
        )
    }
}

/// Appends a part with a heading, unless it is empty.
pub(crate) fn section(body: &mut String, title: &str, content: &str) {
    if !content.is_empty() {
        push(body, format_args!("<section>\n<h2>{title}</h2>\n{content}</section>"));
    }
}

/// Figures side by side; empty if there are none.
pub(crate) fn plots(figures: &[Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let all: String = figures.iter().map(Figure::html).collect();
    format!("<div class=\"plots\">\n{all}</div>\n")
}

/// Six digits, which is finer than any drawing.
pub(crate) fn digits(value: f64) -> String {
    let short = format!("{value:.5e}");
    short.parse::<f64>().map_or(short, |value| value.to_string())
}

/// A name for a file, of letters, digits and hyphens.
fn plain(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
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

/// A table that can be wider than the screen. Columns of numbers are aligned to the right.
pub(crate) fn table(grid: &Grid) -> String {
    let numeric = |text: &String| {
        let first = text.trim_start_matches(['-', '+']).chars().next();
        first.is_none_or(|first| first.is_ascii_digit())
    };
    let is_number = |column: usize| {
        column > 0 && grid.rows.iter().all(|row| row.get(column).is_none_or(numeric))
    };
    let numbers: Vec<bool> = (0..grid.header.len()).map(is_number).collect();
    let line = |name: &str, cells: &[String]| {
        let cell = |(column, text): (usize, &String)| {
            let class = if numbers.get(column) == Some(&true) { " class=\"n\"" } else { "" };
            format!("<{name}{class}>{}</{name}>", breakable(text))
        };
        let cells: String = cells.iter().enumerate().map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let title = match grid.title.as_str() {
        "" => String::new(),
        title => format!("<caption>{}</caption>\n", escaped(title)),
    };
    let rows: String = grid.rows.iter().map(|row| line("td", row)).collect();
    let head = line("th", &grid.header);
    format!(
        "<div class=\"scroll\"><table>\n{title}<thead>{head}</thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n"
    )
}

/// Words whose long names of several parts may be broken between them, but not their numbers.
fn breakable(words: &str) -> String {
    let mut out = String::new();
    let mut letters = words.chars().peekable();
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

    #[test]
    fn names_are_broken_and_numbers_are_not() {
        assert_eq!(breakable("a.b_c <1.5>"), "a.<wbr/>b_<wbr/>c &lt;1.5&gt;");
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
        let text = "{\"a\": \"</script><!-- & \\u003c\"}";
        let page = embedded("x", text);
        let inner = page.split_once('\n').and_then(|(_, rest)| rest.rsplit_once("</script>"));
        let (inner, _) = inner.expect("an element");
        assert!(!inner.contains('<'), "{inner}");
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(parse(inner), parse(text));
    }

    #[test]
    fn data_stand_in_a_link_whatever_they_hold() {
        assert_eq!(data_uri("a b,\"ü\"\n"), "data:text/csv;charset=utf-8,a%20b,%22%C3%BC%22%0A");
        assert_eq!(plain("ttft_p99 of \"a/b\""), "ttft-p99-of-a-b");
    }
}
