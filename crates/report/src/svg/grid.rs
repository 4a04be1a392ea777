//! A grid of fields: a number for each place and series.

use super::{CHARACTER, Ink, ROW, TOP, document, widest};
use crate::chart::{Chart, Point};
use blis_core::math::{float, ln};

/// The least width of a field, the ink in it, its colours at 1 and at this value, and that of one
/// without a value. The page's script has the same.
const FIELD: f64 = 84.0;
const FIELD_INK: &str = "#1f2328";
const MOST_FIELD: f64 = 5.0;
const FIELDS: [[f64; 3]; 2] = [[226.0, 239.0, 247.0], [240.0, 140.0, 80.0]];
const NO_FIELD: &str = "#c3c7cc";

/// A field for each place and series, its value in it.
pub(super) fn grid(chart: &Chart, series: &[&str], places: &[&str]) -> String {
    let left = 20.0 + widest(places);
    let wide = FIELD.max(widest(series) + CHARACTER);
    let mut ink = Ink(String::new());
    ink.text((10.0, 22.0), "start", &chart.title, " font-weight=\"600\"");
    for (column, name) in (0_u64..).zip(series) {
        let middle = left + wide * (float(column) + 0.5);
        ink.text((middle, TOP - 6.0), "middle", name, "");
    }
    for (row, place) in (0_u64..).zip(places) {
        let y = TOP + ROW * float(row);
        ink.text((left - 10.0, y + 15.0), "end", place, "");
        for (column, name) in (0_u64..).zip(series) {
            let same = |point: &&Point| point.at == *place && point.series == *name;
            let Some(point) = chart.points.iter().find(same) else { continue };
            let x = left + wide * float(column);
            let size = format_args!("width=\"{:.1}\" height=\"{:.1}\"", wide - 2.0, ROW - 2.0);
            let fill = shade(point.value);
            ink.push(format_args!("<rect x=\"{x:.1}\" y=\"{y:.1}\" {size} fill=\"{fill}\"/>"));
            let words = point.value.map_or(point.label.clone(), field);
            let middle = (x + wide / 2.0 - 1.0, y + 15.0);
            ink.text(middle, "middle", &words, &format!(" fill=\"{FIELD_INK}\""));
        }
    }
    let bottom = TOP + ROW * float(places.len() as u64);
    ink.text((left, bottom + 20.0), "start", &chart.value.label, " fill-opacity=\"0.75\"");
    let width = left + wide * float(series.len() as u64) + 16.0;
    document(chart, (width.max(CHARACTER * 60.0), bottom + 32.0), &ink.0)
}

/// The value of a field, in two digits or three.
fn field(value: f64) -> String {
    match value {
        value if value < 1.995 => format!("{value:.2}"),
        value if value < 9.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// The shade of a field: half of the way at twice the best, all of it at five times; grey without
/// a value.
fn shade(value: Option<f64>) -> String {
    let Some(value) = value else { return NO_FIELD.to_owned() };
    let along = (ln(value.max(1.0)) / ln(MOST_FIELD)).min(1.0);
    let [red, green, blue] = [0, 1, 2].map(|at| {
        let [from, to] = FIELDS.map(|colour| colour[at]);
        from + (to - from) * along
    });
    format!("rgb({red:.0},{green:.0},{blue:.0})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Form, Scale};
    use crate::svg::svg;

    #[test]
    fn a_field_has_its_value_or_its_label_and_greater_ones_are_darker() {
        let none = Point { value: None, ..Point::named("b", 1.0) }.labelled("over");
        let points =
            vec![Point::named("a", 1.0).of("x"), Point::named("b", 4.0).of("y"), none.of("x")];
        let axes = [Axis::new("arm", Scale::Names), Axis::new("1 is the best", Scale::Fit)];
        let svg = svg(&Chart::new("t", Form::Grid, axes, points).expect("it has points"));
        for word in [">1.00<", ">4.0<", ">over<", ">x<", ">y<", ">a<", ">b<"] {
            assert!(svg.contains(word), "{word}: {svg}");
        }
        assert_eq!(svg.matches("<rect").count(), 3, "{svg}");
        let green = |value| -> u32 {
            let colour = shade(Some(value));
            let (_, green) = colour.split_once(',').expect("three numbers");
            green.split(',').next().and_then(|green| green.parse().ok()).expect("a number")
        };
        assert!(green(1.0) > green(2.0) && green(2.0) > green(5.0) && green(5.0) == green(50.0));
    }
}
