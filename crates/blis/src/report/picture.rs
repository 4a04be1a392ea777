//! What charts have in common: the document, its colours and its legend.
//!
//! Charts are drawn by hand, because a few lines and dots need no library: each has a title, an
//! axis with round numbers, a legend, and colours that people who see few of them can tell apart.
//! Text and axes are dark on light, and light where the reader asks for dark pages.

use crate::markup::{escaped, push, text};
use blis_core::math::float;

/// The width of a character at the size of the text, about.
pub(crate) const CHARACTER: f64 = 7.2;

/// Okabe and Ito's colours, without the yellow.
const COLOURS: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F"];

/// The colour of series number `index`.
pub(crate) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Whether the colour of series number `index` is that of an earlier one.
pub(crate) fn is_repeated(index: usize) -> bool {
    index >= COLOURS.len()
}

/// The document with this content.
pub(crate) fn document(title: &str, (width, height): (f64, f64), body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"blis-chart\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"currentColor\">\n\
         <style>.blis-chart {{ color: #1f2328 }} @media (prefers-color-scheme: dark) {{ \
         .blis-chart {{ color: #d1d7e0 }} }}</style>\n<title>{}</title>\n{body}</svg>\n",
        escaped(title)
    )
}

/// How wide the longest of `names` is.
pub(crate) fn widest<'a>(names: impl Iterator<Item = &'a String>) -> f64 {
    CHARACTER * float(names.map(|name| name.chars().count()).max().unwrap_or(0) as u64)
}

/// The names of series with their colours, one below the other, from (x, y) on; `mark` draws what
/// stands before each name, at a place and for a series.
pub(crate) fn legend(
    svg: &mut String,
    (x, y): (f64, f64),
    names: &[String],
    mark: fn(&mut String, (f64, f64), usize),
) {
    for (index, name) in names.iter().enumerate() {
        let y = y + 20.0 * float(index as u64);
        mark(svg, (x, y), index);
        text(svg, (x + 26.0, y + 4.0), "start", name, "");
    }
}

/// A line of the grid, from `from` to `to`.
pub(crate) fn rule(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    push(
        svg,
        format_args!(
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"currentColor\" \
             stroke-opacity=\"0.15\"/>",
            from.0, from.1, to.0, to.1
        ),
    );
}
