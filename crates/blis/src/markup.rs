//! What all pages and pictures are written with: elements of SVG, and text that cannot break them.

use std::fmt::{Arguments, Write};

/// Appends a line.
pub(crate) fn push(out: &mut String, line: Arguments<'_>) {
    writeln!(out, "{line}").expect("writing to a string cannot fail");
}

/// Appends words to a picture, where `anchor` is at (x, y); `more` are attributes.
pub(crate) fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str, more: &str) {
    let words = escaped(words);
    let at = format_args!("x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}");
    push(svg, format_args!("<text {at}>{words}</text>"));
}

/// Words as they stand in HTML, SVG and their attributes.
pub(crate) fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_end_their_element() {
        let mut svg = String::new();
        text(&mut svg, (1.0, 2.25), "end", "a</text><b & \"c\"", " fill=\"red\"");
        let words = "a&lt;/text&gt;&lt;b &amp; &quot;c&quot;";
        let start = "<text x=\"1.0\" y=\"2.2\" text-anchor=\"end\" fill=\"red\">";
        assert_eq!(svg, format!("{start}{words}</text>\n"));
    }
}
