//! Charts: one value, drawn as SVG or by the script of a page, and always with its data as CSV.

use crate::text::{digits, quoted, slug};
use serde::Serialize;

/// A picture of numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// How it is drawn.
    pub form: Form,
    /// The axis of places: categories, or numbers.
    pub at: Axis,
    /// The axis of values.
    pub value: Axis,
    /// A value to compare with, if there is one.
    pub bound: Option<f64>,
    /// What is drawn.
    pub points: Vec<Point>,
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A line for each series, values upwards.
    Lines,
    /// Points, values upwards; those of one label are joined, and those without a mark are steps.
    Points,
    /// A row for each place, values to the right.
    Rows,
    /// A bar for each place, its series end to end.
    Bars,
    /// One line over time, for terminals too.
    Timeline,
    /// A field for each place and series: the darker, the greater its value, 1 the lightest. A
    /// field without a value shows its label.
    Grid,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What it is, with its unit.
    pub label: String,
    /// How it is divided.
    pub scale: Scale,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A place for each name.
    Names,
    /// From 0.
    Zero,
    /// From 0, or logarithmic if values are far apart.
    Fit,
    /// From about the least value to the greatest.
    Tight,
}

/// A point of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// Which of the small charts it belongs to.
    pub panel: String,
    /// Which line, colour or part of a bar.
    pub series: String,
    /// Where: a name, or a number.
    pub at: String,
    /// Its value; absent if there is only a range.
    pub value: Option<f64>,
    /// Its interval.
    pub range: Option<(f64, f64)>,
    /// What is drawn at its value.
    pub mark: Mark,
    /// Which point it is.
    pub label: String,
}

/// What is drawn at a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A dot.
    #[default]
    Dot,
    /// A ring.
    Ring,
    /// A line across: a bound, or a value to compare with.
    Tick,
    /// Nothing.
    None,
}

impl Axis {
    /// An axis of numbers, or of names.
    pub fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale }
    }
}

impl Point {
    /// A dot at a place with a name.
    pub fn named(at: impl Into<String>, value: f64) -> Point {
        Point { at: at.into(), value: Some(value), ..Point::default() }
    }

    /// A dot at a number.
    pub fn at(at: f64, value: f64) -> Point {
        Point::named(digits(at), value)
    }

    /// The same with an interval.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Point {
        Point { range: Some((low, high)), ..self }
    }

    /// The same in this series.
    #[must_use]
    pub fn of(self, series: impl Into<String>) -> Point {
        Point { series: series.into(), ..self }
    }

    /// The same in this panel.
    #[must_use]
    pub fn on(self, panel: impl Into<String>) -> Point {
        Point { panel: panel.into(), ..self }
    }

    /// The same with this mark.
    #[must_use]
    pub fn marked(self, mark: Mark) -> Point {
        Point { mark, ..self }
    }

    /// The same with this label.
    #[must_use]
    pub fn labelled(self, label: impl Into<String>) -> Point {
        Point { label: label.into(), ..self }
    }
}

impl Chart {
    /// A chart without a note or a bound; none if there is nothing to draw.
    pub fn new(
        title: impl Into<String>,
        form: Form,
        [at, value]: [Axis; 2],
        points: Vec<Point>,
    ) -> Option<Chart> {
        let title = title.into();
        let chart = Chart { title, note: String::new(), form, at, value, bound: None, points };
        (!chart.points.is_empty()).then_some(chart)
    }

    /// The same with words on how to read it.
    #[must_use]
    pub fn noted(self, note: &str) -> Chart {
        Chart { note: note.to_owned(), ..self }
    }

    /// The same with a value to compare with.
    #[must_use]
    pub fn bounded(self, bound: Option<f64>) -> Chart {
        Chart { bound, ..self }
    }

    /// The data behind the chart. Columns in which nothing stands are left out.
    pub fn csv(&self) -> String {
        const COLUMNS: [&str; 8] =
            ["panel", "series", "at", "value", "low", "high", "mark", "label"];
        let row = |point: &Point| {
            let number = |value: Option<f64>| value.map(digits).unwrap_or_default();
            [
                quoted(&point.panel),
                quoted(&point.series),
                quoted(&point.at),
                number(point.value),
                number(point.range.map(|(low, _)| low)),
                number(point.range.map(|(_, high)| high)),
                Some(name(point.mark)).filter(|_| point.mark != Mark::Dot).unwrap_or_default(),
                quoted(&point.label),
            ]
        };
        let rows: Vec<[String; 8]> = self.points.iter().map(row).collect();
        let kept = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
        let kept: Vec<usize> = (0..COLUMNS.len()).filter(kept).collect();
        let line = |cells: Vec<&str>| cells.join(",") + "\n";
        let header = line(kept.iter().map(|&column| COLUMNS[column]).collect());
        let row = |row: &[String; 8]| line(kept.iter().map(|&at| row[at].as_str()).collect());
        header + &rows.iter().map(row).collect::<String>()
    }

    /// A name for its file: letters, digits and hyphens.
    pub fn file(&self) -> String {
        slug(&self.title)
    }
}

/// The word for a form, a scale or a mark.
pub(crate) fn name(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Each of `names` once, in the order of their first appearance.
pub(crate) fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_a_chart_have_the_columns_that_it_uses() {
        let axes = || [Axis::new("arm", Scale::Names), Axis::new("ms", Scale::Fit)];
        let points = vec![
            Point::named("a, b", 1.5).between(1.0, 2.0),
            Point { range: Some((1.0, 3.0)), ..Point::named("c", 0.0) },
        ];
        let chart = Chart::new("TTFT p99, ms", Form::Rows, axes(), points).expect("it has points");
        assert_eq!(chart.csv(), "at,value,low,high\n\"a, b\",1.5,1,2\nc,0,1,3\n");
        assert_eq!(chart.file(), "ttft-p99-ms");
        assert!(Chart::new("", Form::Rows, axes(), Vec::new()).is_none());
    }
}
