//! Charts as SVG: the one drawing for files, Markdown pages and sites.
//!
//! Colours can be told apart by people who see few of them; text and axes are dark on light, and
//! light where the reader asks for dark pages.

mod grid;

use crate::chart::{Chart, Form, Mark, Point, Scale, unique};
use blis_core::math::{float, ln, pow};
use blis_lab::verdict::bound;
use blis_scenario::problem::visible_lines;
use std::fmt::{Arguments, Write};

/// Okabe and Ito's colours, without the yellow.
const COLOURS: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F"];
/// The width of a character, about.
const CHARACTER: f64 = 7.2;
/// The width of the part between the axes.
const WIDTH: f64 = 560.0;
/// Above the first panel, and between two.
const TOP: f64 = 48.0;
/// Below the last: ticks and the name of the axis.
const BOTTOM: f64 = 56.0;
/// The same where names are too long to stand side by side.
const BOTTOM_TILTED: f64 = 130.0;
/// The height of a row with one dot.
const ROW: f64 = 22.0;
/// Between the dots of a row.
const APART: f64 = 11.0;
/// Left and right of the first and last name.
const INSET: f64 = 24.0;
/// Values that span more than this factor are drawn on a logarithmic scale, if they may be.
const FAR_APART: f64 = 20.0;

/// The chart as an SVG document.
pub fn svg(chart: &Chart) -> String {
    let series = unique(chart.points.iter().map(|point| point.series.as_str()));
    let panels = unique(chart.points.iter().map(|point| point.panel.as_str()));
    let places = unique(chart.points.iter().map(|point| point.at.as_str()));
    if chart.form == Form::Grid {
        return grid::grid(chart, &series, &places);
    }
    let is_flat = matches!(chart.form, Form::Rows | Form::Bars);
    let left = if is_flat { 20.0 + widest(&places) } else { 84.0 };
    let value = Ruler::of(totals(chart), chart.value.scale);
    let mut ink = Ink(String::new());
    let note = if value.log { " (logarithmic)" } else { "" };
    let below = if is_flat { &chart.value.label } else { &chart.at.label };
    let what = match chart.value.label.as_str() {
        label if is_flat || chart.title.contains(label) => String::new(),
        label => format!(": {label}"),
    };
    let title = format!("{}{what}{note}", chart.title);
    ink.text((10.0, 22.0), "start", &title, " font-weight=\"600\"");
    let mut top = TOP;
    let mut tilted = false;
    for panel in &panels {
        let points = chart.points.iter().filter(|point| point.panel == *panel);
        let points: Vec<&Point> = points.collect();
        let frame = Frame::of(chart, &series, &points, (left, top, value), panels.len());
        ink.text((left, top - 10.0), "start", panel, " fill-opacity=\"0.75\"");
        frame.axes(&mut ink);
        frame.marks(&mut ink, &points);
        tilted |= frame.is_tilted();
        top += frame.tall + TOP;
    }
    let bottom = top - TOP + if tilted { BOTTOM_TILTED } else { BOTTOM };
    let middle = left + WIDTH / 2.0;
    ink.text((middle, bottom - 8.0), "middle", below, " fill-opacity=\"0.75\"");
    let (wide, tall) = legend(&mut ink, &series, left + WIDTH + 18.0);
    document(chart, (left + WIDTH + wide + 16.0, bottom.max(TOP + tall)), &ink.0)
}

/// Draws the names of the series; the value is how wide and how tall they are.
fn legend(ink: &mut Ink, names: &[&str], x: f64) -> (f64, f64) {
    if names.iter().all(|name| name.is_empty()) {
        return (0.0, 0.0);
    }
    for (index, name) in names.iter().enumerate() {
        let y = TOP + 10.0 + 20.0 * float(index as u64);
        ink.line(&format!("M{x:.1} {y:.1}h18"), &look(index));
        ink.text((x + 24.0, y + 4.0), "start", name, "");
    }
    (48.0 + widest(names), 20.0 * float(names.len() as u64))
}

fn document(chart: &Chart, (width, height): (f64, f64), body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"blis-chart\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"currentColor\">\n\
         <style>.blis-chart {{ color: #1f2328 }} @media (prefers-color-scheme: dark) {{ \
         .blis-chart {{ color: #d1d7e0 }} }}</style>\n<title>{}</title>\n{body}</svg>\n",
        escaped(&chart.title),
    )
}

/// Words as they stand in HTML, SVG and their attributes: nothing is a tag, and nothing is hidden.
pub(crate) fn escaped(words: &str) -> String {
    let words = visible_lines(words);
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn widest(names: &[&str]) -> f64 {
    CHARACTER * float(names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u64)
}

/// All values that the axis of values must hold.
fn totals(chart: &Chart) -> Vec<f64> {
    let mut all: Vec<f64> = chart.bound.into_iter().collect();
    for (index, point) in chart.points.iter().enumerate() {
        let ends = point.range.map_or_else(Vec::new, |(low, high)| vec![low, high]);
        all.extend(ends.into_iter().chain(point.value));
        if chart.form == Form::Bars {
            let same = |one: &&Point| (&one.panel, &one.at) == (&point.panel, &point.at);
            let before = chart.points[..=index].iter().filter(same);
            all.push(before.filter_map(|one| one.value).sum());
        }
    }
    all
}

/// Round numbers, and where each value is between them.
#[derive(Clone, Copy, Debug)]
struct Ruler {
    least: f64,
    most: f64,
    log: bool,
}

impl Ruler {
    fn of(values: Vec<f64>, scale: Scale) -> Ruler {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        if values.is_empty() {
            return Ruler { least: 0.0, most: 1.0, log: false };
        }
        if scale == Scale::Fit && least > 0.0 && most / least > FAR_APART {
            let decade = |value: f64| pow(10.0, value);
            let (least, most) = (decade(log10(least).floor()), decade(log10(most).ceil()));
            return Ruler { least, most, log: true };
        }
        let least = if scale == Scale::Tight { least } else { least.min(0.0) };
        let most = if most > least { most } else { least + 1.0 };
        let step = step(most - least);
        let (least, most) = ((least / step).floor() * step, (most / step).ceil() * step);
        Ruler { least, most, log: false }
    }

    /// How far along `value` is, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = if self.log {
            ln(value.max(self.least) / self.least) / ln(self.most / self.least)
        } else {
            (value - self.least) / (self.most - self.least)
        };
        share.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        let step = step(self.most - self.least);
        let mut ticks = Vec::new();
        let mut tick = self.least;
        while tick <= self.most + 0.001 * step {
            // Sums of steps are off in their last digits.
            ticks.push(if self.log { tick } else { (tick / step).round() * step });
            tick = if self.log { tick * 10.0 } else { tick + step };
        }
        ticks
    }
}

/// A step of 1, 2 or 5 times a power of ten, four to ten of which make `span`.
fn step(span: f64) -> f64 {
    let power = pow(10.0, log10(span / 4.0).floor());
    let steps = [5.0, 2.0, 1.0].map(|factor| factor * power);
    steps.into_iter().find(|step| span / step >= 4.0).unwrap_or(power)
}

fn log10(value: f64) -> f64 {
    ln(value) / std::f64::consts::LN_10
}

/// Elements.
struct Ink(String);

impl Ink {
    fn push(&mut self, line: Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a string cannot fail");
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, words: &str, more: &str) {
        let words = escaped(words);
        let at = format_args!("x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}");
        self.push(format_args!("<text {at}>{words}</text>"));
    }

    fn line(&mut self, path: &str, look: &str) {
        self.push(format_args!("<path d=\"{path}\" fill=\"none\" {look}/>"));
    }
}

/// Where things are in a panel.
struct Frame<'a> {
    chart: &'a Chart,
    series: &'a [&'a str],
    places: Vec<&'a str>,
    /// The axis of values.
    value: Ruler,
    /// That of places, where these are numbers.
    at: Ruler,
    left: f64,
    top: f64,
    tall: f64,
    /// The height of a row, where values go to the right.
    row: Option<f64>,
}

impl<'a> Frame<'a> {
    fn of(
        chart: &'a Chart,
        series: &'a [&'a str],
        points: &[&'a Point],
        (left, top, value): (f64, f64, Ruler),
        panels: usize,
    ) -> Frame<'a> {
        let places = unique(points.iter().map(|point| point.at.as_str()));
        let numbers = points.iter().filter_map(|point| point.at.parse().ok()).collect();
        let beside = float(series.len().max(1) as u64 - 1);
        let row = match chart.form {
            Form::Rows => Some(ROW + APART * beside),
            Form::Bars => Some(ROW),
            Form::Lines | Form::Points | Form::Timeline | Form::Grid => None,
        };
        let upright = if panels == 1 { 320.0 } else { 200.0 };
        let tall = row.map_or(upright, |row| row * float(places.len() as u64));
        let at = Ruler::of(numbers, chart.at.scale);
        Frame { chart, series, places, value, at, left, top, tall, row }
    }

    /// Where `value` is on the axis of values.
    fn along(&self, value: f64) -> f64 {
        let share = self.value.share(value);
        match self.row {
            Some(_) => self.left + WIDTH * share,
            None => self.top + self.tall * (1.0 - share),
        }
    }

    /// Where the place `name` is on the other axis.
    fn across(&self, name: &str) -> f64 {
        let index = self.places.iter().position(|one| *one == name).unwrap_or(0);
        let index = float(index as u64);
        let gaps = float(self.places.len().max(2) as u64 - 1);
        match (self.row, self.chart.at.scale) {
            (Some(row), _) => self.top + row * index + ROW / 2.0,
            (None, Scale::Names) => self.left + INSET + (WIDTH - 2.0 * INSET) * index / gaps,
            (None, _) => self.left + WIDTH * self.at.share(name.parse().unwrap_or(0.0)),
        }
    }

    fn place(&self, point: &Point) -> f64 {
        let series = self.series.iter().position(|one| *one == point.series).unwrap_or(0);
        let apart = if self.chart.form == Form::Rows { APART } else { 0.0 };
        self.across(&point.at) + apart * float(series as u64)
    }

    /// The point at `value` on one axis and at `place` on the other.
    fn spot(&self, place: f64, value: f64) -> (f64, f64) {
        if self.row.is_some() { (self.along(value), place) } else { (place, self.along(value)) }
    }

    fn dot(&self, point: &Point) -> Option<(f64, f64)> {
        Some(self.spot(self.place(point), point.value?))
    }

    /// Whether names of places would overlap.
    fn is_tilted(&self) -> bool {
        let room = (WIDTH - 2.0 * INSET) / float(self.places.len().max(2) as u64 - 1);
        let is_named = self.row.is_none() && self.chart.at.scale == Scale::Names;
        is_named && widest(&self.places) + CHARACTER > room
    }

    /// A line of the grid at `value`.
    fn rule(&self, ink: &mut Ink, value: f64, look: &str) {
        let (at, left, top, tall) = (self.along(value), self.left, self.top, self.tall);
        let path = match self.row {
            Some(_) => format!("M{at:.1} {top:.1}v{tall:.1}"),
            None => format!("M{left:.1} {at:.1}h{WIDTH}"),
        };
        ink.line(&path, &format!("stroke=\"currentColor\" {look}"));
    }

    fn axes(&self, ink: &mut Ink) {
        let bottom = self.top + self.tall;
        for tick in self.value.ticks() {
            self.rule(ink, tick, "stroke-opacity=\"0.15\"");
            let at = self.along(tick);
            match self.row {
                Some(_) => ink.text((at, bottom + 18.0), "middle", &bound(tick), ""),
                None => ink.text((self.left - 8.0, at + 4.0), "end", &bound(tick), ""),
            }
        }
        if let Some(bound) = self.chart.bound {
            self.rule(ink, bound, "stroke-dasharray=\"4 3\"");
        }
        match (self.row, self.chart.at.scale) {
            (Some(row), _) => self.rows(ink, row),
            (None, Scale::Names) => self.names(ink, bottom),
            (None, _) => {
                for tick in self.at.ticks() {
                    let x = self.left + WIDTH * self.at.share(tick);
                    ink.text((x, bottom + 20.0), "middle", &bound(tick), "");
                }
            }
        }
    }

    /// The names of rows. Every other row is shaded, so that the eye finds its name.
    fn rows(&self, ink: &mut Ink, row: f64) {
        for (index, name) in self.places.iter().enumerate() {
            let y = self.top + row * float(index as u64);
            if index.is_multiple_of(2) {
                let (left, look) = (self.left, "fill-opacity=\"0.04\"");
                let size = format_args!("width=\"{WIDTH}\" height=\"{row:.1}\"");
                ink.push(format_args!("<rect x=\"{left:.1}\" y=\"{y:.1}\" {size} {look}/>"));
            }
            ink.text((self.left - 10.0, y + row / 2.0 + 4.0), "end", name, "");
        }
    }

    fn names(&self, ink: &mut Ink, bottom: f64) {
        for name in &self.places {
            let (x, y) = (self.across(name), bottom + 16.0);
            let turn = format!(" transform=\"rotate(-35 {x:.1} {y:.1})\"");
            if self.is_tilted() {
                ink.text((x, y), "end", name, &turn);
            } else {
                ink.text((x, y + 4.0), "middle", name, "");
            }
        }
    }

    /// The points of the panel.
    fn marks(&self, ink: &mut Ink, points: &[&Point]) {
        for (index, series) in self.series.iter().enumerate() {
            let own = points.iter().copied().filter(|point| point.series == *series);
            let own: Vec<&Point> = own.collect();
            if self.chart.form == Form::Bars {
                for point in own {
                    self.bar(ink, points, point, index);
                }
                continue;
            }
            self.lines(ink, &own, index);
            for point in own {
                if let Some((low, high)) = point.range {
                    let ends = [low, high].map(|end| self.spot(self.place(point), end));
                    ink.line(&path(&ends, false), &format!("{} opacity=\"0.6\"", look(index)));
                }
                if let Some(spot) = self.dot(point) {
                    self.mark(ink, spot, point.mark, index);
                }
            }
        }
    }

    /// What joins the points of a series.
    fn lines(&self, ink: &mut Ink, own: &[&Point], index: usize) {
        let through = |points: &[&Point], steps: bool| {
            let spots: Vec<(f64, f64)> =
                points.iter().filter_map(|point| self.dot(point)).collect();
            if spots.len() > 1 { path(&spots, steps) } else { String::new() }
        };
        let is_steps = own.iter().all(|point| point.mark == Mark::None);
        let paths = match self.chart.form {
            Form::Lines | Form::Timeline => vec![through(own, false)],
            Form::Points if is_steps => vec![through(own, true)],
            Form::Points => {
                let labels = unique(own.iter().map(|point| point.label.as_str()));
                let same = |label: &str| -> Vec<&Point> {
                    own.iter().copied().filter(|point| point.label == label).collect()
                };
                let labels = labels.into_iter().filter(|label| !label.is_empty());
                labels.map(|label| through(&same(label), false)).collect()
            }
            Form::Rows | Form::Bars | Form::Grid => Vec::new(),
        };
        for path in paths.iter().filter(|path| !path.is_empty()) {
            ink.line(path, &look(index));
        }
    }

    /// A bar behind those of the series before it.
    fn bar(&self, ink: &mut Ink, points: &[&Point], point: &Point, index: usize) {
        let before = points.iter().take_while(|one| **one != point);
        let before = before.filter(|one| one.at == point.at).filter_map(|one| one.value);
        let before: f64 = before.sum();
        let from = self.along(before);
        let wide = self.along(before + point.value.unwrap_or(0.0)) - from;
        let (y, colour) = (self.place(point) - 7.0, colour(index));
        ink.push(format_args!(
            "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"14\" \
             fill=\"{colour}\"/>"
        ));
    }

    fn mark(&self, ink: &mut Ink, (x, y): (f64, f64), mark: Mark, index: usize) {
        let colour = colour(index);
        match mark {
            Mark::None => {}
            Mark::Tick => {
                let path = match self.row {
                    Some(_) => format!("M{x:.1} {:.1}v16", y - 8.0),
                    None => format!("M{:.1} {y:.1}h16", x - 8.0),
                };
                ink.line(&path, "stroke=\"currentColor\" stroke-dasharray=\"3 2\"");
            }
            Mark::Dot | Mark::Ring => {
                // Where colours repeat, rings tell series apart.
                let is_full = mark == Mark::Dot && index < COLOURS.len();
                let fill = if is_full { colour } else { "none" };
                let look = format_args!("r=\"3.6\" fill=\"{fill}\" stroke=\"{colour}\"");
                ink.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" {look}/>"));
            }
        }
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// How the line of a series looks; dashed where its colour is that of an earlier one.
fn look(index: usize) -> String {
    let dash = if index < COLOURS.len() { "" } else { " stroke-dasharray=\"5 3\"" };
    format!("stroke=\"{}\" stroke-width=\"1.8\"{dash}", colour(index))
}

/// A line through `points`, straight or in steps.
fn path(points: &[(f64, f64)], steps: bool) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        match (index, steps) {
            (0, _) => write!(path, "M{x:.1} {y:.1}"),
            (_, false) => write!(path, "L{x:.1} {y:.1}"),
            (_, true) => write!(path, "H{x:.1}V{y:.1}"),
        }
        .expect("writing to a string cannot fail");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Axis;

    fn chart(form: Form, at: Scale, points: Vec<Point>) -> Chart {
        let axes = [Axis::new("place", at), Axis::new("ms", Scale::Fit)];
        Chart::new("t & t", form, axes, points).expect("it has points")
    }

    fn ticks(values: &[f64], scale: Scale) -> Vec<String> {
        Ruler::of(values.to_vec(), scale).ticks().into_iter().map(bound).collect()
    }

    #[test]
    fn axes_have_round_numbers_that_hold_all_values() {
        assert_eq!(ticks(&[3.0, 9.0], Scale::Fit), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(ticks(&[0.0, 0.47], Scale::Fit), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(ticks(&[12.0, 4_000.0], Scale::Fit), ["10", "100", "1,000", "10,000"]);
        assert_eq!(ticks(&[-3.0, 1.0], Scale::Fit), ["-3", "-2", "-1", "0", "1"]);
        assert_eq!(ticks(&[0.9, 1.1], Scale::Tight), ["0.9", "0.95", "1", "1.05", "1.1"]);
    }

    #[test]
    fn greater_values_are_further_along_and_none_leaves_the_axis() {
        for most in [5.0, 500.0] {
            let ruler = Ruler::of(vec![1.0, most], Scale::Fit);
            assert!(ruler.share(most) > ruler.share(1.0));
            assert!((0.0..=1.0).contains(&ruler.share(1e12)));
            assert!((0.0..=1.0).contains(&ruler.share(-1.0)), "an interval may reach below 0");
        }
    }

    #[test]
    fn every_value_has_a_mark_and_names_cannot_break_the_document() {
        let points = || {
            let point = |at: &str, of: &str| Point::named(at, 1.5).between(1.0, 2.0).of(of);
            ["1", "2", "3"].into_iter().flat_map(move |at| ["a <b>", "c"].map(|of| point(at, of)))
        };
        for form in [Form::Lines, Form::Rows, Form::Points] {
            let svg = svg(&chart(form, Scale::Names, points().collect()));
            assert_eq!(svg.matches("<circle").count(), 6, "{form:?}: {svg}");
            assert!(svg.contains("a &lt;b&gt;") && svg.contains("t &amp; t"), "{svg}");
        }
        let svg = svg(&chart(Form::Bars, Scale::Names, points().collect()));
        assert_eq!(svg.matches("height=\"14\"").count(), 6, "{svg}");
    }

    #[test]
    fn names_that_would_overlap_are_tilted() {
        let long = |name: &str| (0..8).map(|n| Point::named(format!("{name} {n}"), 1.0)).collect();
        assert!(!svg(&chart(Form::Lines, Scale::Names, long("a"))).contains("rotate(-35"));
        let tilted = svg(&chart(Form::Lines, Scale::Names, long("a rather long level")));
        assert!(tilted.contains("rotate(-35"));
    }

    #[test]
    fn a_bar_begins_where_the_one_before_it_ends() {
        let points = vec![Point::named("x", 2.0).of("a"), Point::named("x", 3.0).of("b")];
        let svg = svg(&chart(Form::Bars, Scale::Names, points));
        let number = |text: &str, key: &str| -> f64 {
            let (_, rest) = text.split_once(key).expect("an attribute");
            rest.split('"').next().expect("a value").parse().expect("a number")
        };
        let bars: Vec<&str> = svg.lines().filter(|line| line.contains("height=\"14\"")).collect();
        let end = number(bars[0], "x=\"") + number(bars[0], "width=\"");
        assert!((end - number(bars[1], "x=\"")).abs() < 0.11, "{bars:?}");
    }
}
