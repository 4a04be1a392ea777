//! Dots with whiskers as SVG: a row for each arm, a colour for each workload. Rows have room for
//! long names, and no line pretends that there is anything between two arms.

use crate::markup::{push, text};
use crate::report::picture::{self, colour, is_repeated};
use crate::report::scale::{Scale, label};
use blis_core::math::float;

/// A chart.
pub(crate) struct Dots {
    /// What it shows.
    pub(crate) title: String,
    /// What the horizontal axis is.
    pub(crate) x: String,
    /// What the colours are; one unnamed series needs no legend.
    pub(crate) series: Vec<String>,
    /// The rows, from top to bottom.
    pub(crate) rows: Vec<Row>,
}

/// A row of a chart.
pub(crate) struct Row {
    /// What stands left of it.
    pub(crate) name: String,
    /// Whether it is there for reference only.
    pub(crate) reference: bool,
    /// A value for each series, and half of its interval.
    pub(crate) points: Vec<Option<(f64, f64)>>,
}

const PLOT: f64 = 520.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 56.0;
/// Between the dots of a row.
const APART: f64 = 11.0;
/// Above and below the dots of a row.
const AROUND: f64 = 8.0;

impl Dots {
    /// The chart as an SVG document.
    pub(crate) fn svg(&self) -> String {
        let scale = Scale::of(self.rows.iter().flat_map(|row| row.points.iter().flatten()));
        let left = 20.0 + picture::widest(self.rows.iter().map(|row| &row.name));
        let tall = APART * float(self.series.len().max(1) as u64 - 1) + 2.0 * AROUND + 4.0;
        let bottom = TOP + tall * float(self.rows.len() as u64);
        let mut svg = String::new();
        let title = format!("{}{}", self.title, scale.remark());
        text(&mut svg, (10.0, 22.0), "start", &title, " font-weight=\"600\"");
        for tick in scale.ticks() {
            let x = left + PLOT * scale.share(tick);
            picture::rule(&mut svg, (x, TOP), (x, bottom));
            text(&mut svg, (x, bottom + 18.0), "middle", &label(tick), "");
        }
        for (index, row) in self.rows.iter().enumerate() {
            let top = TOP + tall * float(index as u64);
            band(&mut svg, index, (left, top), tall);
            let faint = if row.reference { " fill-opacity=\"0.6\"" } else { "" };
            let middle = top + tall / 2.0;
            text(&mut svg, (left - 10.0, middle + 4.0), "end", &row.name, faint);
            for (series, point) in row.points.iter().enumerate() {
                let Some(point) = point else { continue };
                let y = top + AROUND + 2.0 + APART * float(series as u64);
                dot(&mut svg, &scale, (left, y), (series, *point));
            }
        }
        let named = self.series.iter().any(|name| !name.is_empty());
        if named {
            picture::legend(&mut svg, (left + PLOT + 24.0, TOP + 10.0), &self.series, mark);
        }
        let middle = left + PLOT / 2.0;
        let legend = if named { 50.0 + picture::widest(self.series.iter()) } else { 24.0 };
        let height = (bottom + BOTTOM).max(TOP + 20.0 * float(self.series.len() as u64) + 10.0);
        text(&mut svg, (middle, bottom + 42.0), "middle", &self.x, " fill-opacity=\"0.75\"");
        picture::document(&self.title, (left + PLOT + legend + 10.0, height), &svg)
    }
}

/// Every other row is shaded, so that the eye finds its name.
fn band(svg: &mut String, index: usize, (left, top): (f64, f64), tall: f64) {
    if index.is_multiple_of(2) {
        push(
            svg,
            format_args!(
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{PLOT}\" height=\"{tall:.1}\" \
                 fill-opacity=\"0.04\"/>"
            ),
        );
    }
}

/// A value of `series` with its interval, in a row whose axis begins at (left, y).
fn dot(svg: &mut String, scale: &Scale, (left, y): (f64, f64), series: (usize, (f64, f64))) {
    let (series, (value, half_width)) = series;
    let across = |value: f64| left + PLOT * scale.share(value);
    let (low, high) = (across(value - half_width), across(value + half_width));
    let colour = colour(series);
    push(
        svg,
        format_args!(
            "<path d=\"M{low:.1} {y:.1}H{high:.1}m0 -4v8M{low:.1} {y:.1}m0 -4v8\" \
             stroke=\"{colour}\" stroke-opacity=\"0.8\" stroke-width=\"1.6\"/>"
        ),
    );
    mark(svg, (across(value) - 9.0, y), series);
}

/// A dot; hollow where colours repeat.
fn mark(svg: &mut String, (x, y): (f64, f64), index: usize) {
    let (colour, x) = (colour(index), x + 9.0);
    let fill = if is_repeated(index) { "none" } else { colour };
    push(
        svg,
        format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{colour}\"/>"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, points: &[f64]) -> Row {
        let points = points.iter().map(|&value| Some((value, 0.1 * value))).collect();
        Row { name: name.to_owned(), reference: false, points }
    }

    #[test]
    fn every_value_has_a_dot_and_every_series_a_name() {
        let chart = Dots {
            title: "a < b".to_owned(),
            x: "ms".to_owned(),
            series: vec!["calm".to_owned(), "busy".to_owned()],
            rows: vec![row("one", &[1.0, 4.0]), row("two", &[2.0, 3.0])],
        };
        let svg = chart.svg();
        assert_eq!(svg.matches("<circle").count(), 4 + 2, "dots and the legend");
        assert!(svg.contains("a &lt; b") && svg.contains(">busy<"));
        let without =
            Dots { rows: vec![Row { points: vec![None, None], ..row("x", &[]) }], ..chart };
        assert_eq!(without.svg().matches("<circle").count(), 2, "only the legend");
    }

    #[test]
    fn rows_are_as_tall_as_their_dots_need() {
        let chart = |count: usize| {
            let series = (0..count).map(|index| format!("s{index}")).collect();
            let values: Vec<f64> = (0..count).map(|_| 1.0).collect();
            let rows = (0..12).map(|_| row("a", &values)).collect();
            Dots { title: String::new(), x: String::new(), series, rows }.svg()
        };
        let height = |svg: &str| -> f64 {
            let (_, rest) = svg.split_once(" height=\"").expect("it has one");
            rest.split_once('"').expect("quoted").0.parse().expect("a number")
        };
        assert!(height(&chart(5)) > height(&chart(1)) + 12.0 * 4.0 * APART - 1.0);
    }
}
