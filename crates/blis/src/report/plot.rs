//! Line charts as SVG: one line an arm, a point a level, whiskers for intervals; one panel below
//! the other where there is more to tell apart, all on the same scale.

use crate::markup::{push, text};
use crate::report::picture::{self, CHARACTER, colour, is_repeated};
use crate::report::scale::{Scale, label};
use blis_core::math::float;
use std::fmt::Write;

/// A chart.
pub(crate) struct Chart {
    /// What it shows.
    pub(crate) title: String,
    /// What the horizontal axis is.
    pub(crate) x: String,
    /// The places on it, from left to right.
    pub(crate) levels: Vec<String>,
    /// What the lines are called in the legend; the same in all panels.
    pub(crate) lines: Vec<String>,
    /// The panels.
    pub(crate) panels: Vec<Panel>,
}

/// One of the panels of a chart.
pub(crate) struct Panel {
    /// What stands above it; empty if there is but one.
    pub(crate) name: String,
    /// For each line a value for each level, and half of its interval.
    pub(crate) lines: Vec<Vec<Option<(f64, f64)>>>,
}

/// Of the part between the axes.
const PLOT: f64 = 570.0;
const TALL: f64 = 320.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 48.0;
/// Between two panels.
const GAP: f64 = 52.0;
/// Below the last panel: the levels and what they are levels of.
const BOTTOM: f64 = 56.0;
/// The same where levels are too long to stand side by side.
const BOTTOM_TILTED: f64 = 130.0;

impl Chart {
    /// The chart as an SVG document.
    pub(crate) fn svg(&self) -> String {
        let points = self.panels.iter().flat_map(|panel| panel.lines.iter().flatten().flatten());
        let scale = Scale::of(points);
        let mut svg = String::new();
        let title = format!("{}{}", self.title, scale.remark());
        text(&mut svg, (LEFT, 22.0), "start", &title, " font-weight=\"600\"");
        for (index, panel) in self.panels.iter().enumerate() {
            let top = TOP + float(index as u64) * (TALL + GAP);
            self.panel(&mut svg, &scale, top, panel);
        }
        if self.lines.iter().any(|name| !name.is_empty()) {
            picture::legend(&mut svg, (LEFT + PLOT + 18.0, TOP + 10.0), &self.lines, mark);
        }
        let width = LEFT + PLOT + 56.0 + picture::widest(self.lines.iter());
        let bottom = if self.is_tilted() { BOTTOM_TILTED } else { BOTTOM };
        let panels = float(self.panels.len() as u64) * (TALL + GAP) - GAP;
        let height = (TOP + panels + bottom).max(TOP + 20.0 * float(self.lines.len() as u64));
        let middle = f64::midpoint(LEFT, LEFT + PLOT);
        text(&mut svg, (middle, height - 8.0), "middle", &self.x, " fill-opacity=\"0.75\"");
        picture::document(&self.title, (width, height), &svg)
    }

    fn across(&self, level: usize) -> f64 {
        let steps = float(self.levels.len().max(2) as u64 - 1);
        LEFT + 24.0 + (PLOT - 48.0) * float(level as u64) / steps
    }

    /// Whether the names of levels would overlap.
    fn is_tilted(&self) -> bool {
        let named = self.levels.iter().filter(|name| !name.is_empty()).count();
        let room = (PLOT - 48.0) / float(named.max(2) as u64 - 1);
        picture::widest(self.levels.iter()) + CHARACTER > room
    }

    fn panel(&self, svg: &mut String, scale: &Scale, top: f64, panel: &Panel) {
        text(svg, (LEFT, top - 10.0), "start", &panel.name, " fill-opacity=\"0.75\"");
        for tick in scale.ticks() {
            let y = down(scale, top, tick);
            picture::rule(svg, (LEFT, y), (LEFT + PLOT, y));
            text(svg, (LEFT - 8.0, y + 4.0), "end", &label(tick), "");
        }
        let bottom = top + TALL;
        for (level, name) in self.levels.iter().enumerate() {
            let x = self.across(level);
            if self.is_tilted() {
                let turn = format!(" transform=\"rotate(-35 {x:.1} {:.1})\"", bottom + 16.0);
                text(svg, (x, bottom + 16.0), "end", name, &turn);
            } else {
                text(svg, (x, bottom + 20.0), "middle", name, "");
            }
        }
        for (index, points) in panel.lines.iter().enumerate() {
            self.line(svg, scale, top, (index, points));
        }
    }

    fn line(
        &self,
        svg: &mut String,
        scale: &Scale,
        top: f64,
        (index, points): (usize, &[Option<(f64, f64)>]),
    ) {
        let colour = colour(index);
        let mut path = String::new();
        for (level, point) in points.iter().enumerate() {
            let Some((value, half_width)) = *point else { continue };
            let (x, y) = (self.across(level), down(scale, top, value));
            let step = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{step}{x:.1} {y:.1} ").expect("writing to a string cannot fail");
            let high = down(scale, top, value + half_width);
            let low = down(scale, top, value - half_width);
            push(
                svg,
                format_args!(
                    "<path d=\"M{x:.1} {high:.1}V{low:.1}m-4 0h8M{x:.1} {high:.1}m-4 0h8\" \
                     stroke=\"{colour}\" stroke-opacity=\"0.8\"/>\
                     <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{colour}\"/>"
                ),
            );
        }
        let dash = dash(index);
        push(
            svg,
            format_args!(
                "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash}/>",
                path.trim_end()
            ),
        );
    }
}

/// Where `value` is in the panel that begins at `top`.
fn down(scale: &Scale, top: f64, value: f64) -> f64 {
    top + TALL * (1.0 - scale.share(value))
}

fn dash(index: usize) -> &'static str {
    if is_repeated(index) { " stroke-dasharray=\"5 3\"" } else { "" }
}

fn mark(svg: &mut String, (x, y): (f64, f64), index: usize) {
    let (colour, dash) = (colour(index), dash(index));
    push(
        svg,
        format_args!("<path d=\"M{x} {y}h18\" stroke=\"{colour}\" stroke-width=\"3\"{dash}/>"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(levels: &[&str]) -> Chart {
        let line: Vec<Option<(f64, f64)>> = vec![Some((1.0, 0.5)); levels.len()];
        Chart {
            title: "t & t".to_owned(),
            x: "x".to_owned(),
            levels: levels.iter().map(|&level| level.to_owned()).collect(),
            lines: vec!["a <b>".to_owned(), "c".to_owned()],
            panels: vec![Panel { name: "p".to_owned(), lines: vec![line.clone(), line] }],
        }
    }

    #[test]
    fn names_cannot_break_the_document() {
        let svg = chart(&["1", "2"]).svg();
        assert!(svg.contains("a &lt;b&gt;") && svg.contains("t &amp; t"));
        assert_eq!(svg.matches("<circle").count(), 4, "two lines with two points");
    }

    #[test]
    fn greater_is_higher() {
        let points = [(1.0, 0.0), (50.0, 0.0)];
        let scale = Scale::of(points.iter());
        assert!(down(&scale, 0.0, 50.0) < down(&scale, 0.0, 1.0));
    }

    #[test]
    fn levels_that_would_overlap_are_tilted() {
        assert!(!chart(&["10", "20", "30"]).is_tilted());
        let long = ["a rather long level"; 8];
        assert!(chart(&long).is_tilted() && chart(&long).svg().contains("rotate(-35"));
    }
}
