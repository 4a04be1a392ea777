//! Line charts as SVG: one line an arm, a point a level, whiskers for intervals.
//!
//! Drawn by hand, because a chart of a few lines needs no library: it has a title, axes with round
//! numbers, a legend, and colours that people who see few of them can tell apart. It follows the
//! page into the dark: text and axes have the colour of the surrounding text.

use crate::markup::{escaped, push, text};
use blis_core::math::{count, float, ln, pow};
use std::fmt::Write;

/// A chart.
pub(crate) struct Chart {
    /// What it shows.
    pub(crate) title: String,
    /// What the horizontal axis is.
    pub(crate) x: String,
    /// The places on it, from left to right.
    pub(crate) levels: Vec<String>,
    /// The lines.
    pub(crate) lines: Vec<Line>,
}

/// A line of a chart.
pub(crate) struct Line {
    /// What it is called in the legend.
    pub(crate) name: String,
    /// A value for each level, and half of its interval.
    pub(crate) points: Vec<Option<(f64, f64)>>,
}

/// Of the part between the axes.
const PLOT: f64 = 570.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
/// Okabe and Ito's colours, without the yellow.
const COLOURS: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F"];

impl Chart {
    /// The chart as an SVG document.
    pub(crate) fn svg(&self) -> String {
        let scale = Scale::of(&self.lines);
        // About as wide as the longest name in the legend.
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let width = LEFT + PLOT + 56.0 + 7.4 * float(longest as u64);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {HEIGHT}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"currentColor\">\n\
             <title>{}</title>\n",
            escaped(&self.title)
        );
        text(&mut svg, (LEFT, 22.0), "start", &self.title, " font-weight=\"600\"");
        self.axes(&mut svg, &scale);
        for (number, line) in self.lines.iter().enumerate() {
            self.line(&mut svg, &scale, number, line);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn across(&self, level: usize) -> f64 {
        let steps = float(self.levels.len().max(2) as u64 - 1);
        LEFT + 24.0 + (PLOT - 48.0) * float(level as u64) / steps
    }

    fn axes(&self, svg: &mut String, scale: &Scale) {
        let bottom = HEIGHT - BOTTOM;
        for tick in scale.ticks() {
            let y = scale.down(tick);
            push(
                svg,
                format_args!(
                    "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" \
                 stroke-opacity=\"0.15\"/>",
                    LEFT + PLOT
                ),
            );
            text(svg, (LEFT - 8.0, y + 4.0), "end", &number(tick), "");
        }
        for (level, name) in self.levels.iter().enumerate() {
            text(svg, (self.across(level), bottom + 20.0), "middle", name, "");
        }
        let middle = f64::midpoint(LEFT, LEFT + PLOT);
        text(svg, (middle, HEIGHT - 8.0), "middle", &self.x, " fill-opacity=\"0.75\"");
    }

    fn line(&self, svg: &mut String, scale: &Scale, index: usize, line: &Line) {
        let colour = COLOURS[index % COLOURS.len()];
        let dash = if index < COLOURS.len() { "" } else { " stroke-dasharray=\"5 3\"" };
        let mut path = String::new();
        for (level, point) in line.points.iter().enumerate() {
            let Some((value, half_width)) = *point else { continue };
            let (x, y) = (self.across(level), scale.down(value));
            let step = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{step}{x:.1} {y:.1} ").expect("writing to a string cannot fail");
            let (top, bottom) = (scale.down(value + half_width), scale.down(value - half_width));
            push(
                svg,
                format_args!(
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" \
                 stroke=\"{colour}\" stroke-opacity=\"0.6\"/>\
                 <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{colour}\"/>"
                ),
            );
        }
        push(
            svg,
            format_args!(
                "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash}/>",
                path.trim_end()
            ),
        );
        let (x, y) = (LEFT + PLOT + 18.0, TOP + 10.0 + 20.0 * float(index as u64));
        push(
            svg,
            format_args!(
                "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" \
             stroke-width=\"3\"{dash}/>",
                x + 18.0
            ),
        );
        text(svg, (x + 26.0, y + 4.0), "start", &line.name, "");
    }
}

/// The vertical axis: logarithmic if the values span more than a factor of 20 and none is 0.
struct Scale {
    least: f64,
    most: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(lines: &[Line]) -> Scale {
        let values = || lines.iter().flat_map(|line| line.points.iter().flatten());
        let most = values().map(|(value, half)| value + half).fold(0.0, f64::max).max(1e-9);
        let least = values().map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
        let logarithmic = least > 0.0 && most / least > 20.0;
        if logarithmic {
            let floor = power_of_ten(log10(least).floor());
            let ceiling = power_of_ten(log10(most).ceil());
            return Scale { least: floor, most: ceiling, logarithmic };
        }
        let step = round_step(most);
        Scale { least: 0.0, most: (most / step).ceil() * step, logarithmic }
    }

    fn down(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            let value = value.max(self.least);
            ln(value / self.least) / ln(self.most / self.least)
        } else {
            value.max(0.0) / self.most
        };
        HEIGHT - BOTTOM - share.min(1.0) * (HEIGHT - BOTTOM - TOP)
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        if self.logarithmic {
            let mut tick = self.least;
            while tick <= self.most * 1.001 {
                ticks.push(tick);
                tick *= 10.0;
            }
        } else {
            let step = round_step(self.most);
            let mut tick = 0.0;
            while tick <= self.most * 1.001 {
                ticks.push(tick);
                tick += step;
            }
        }
        ticks
    }
}

/// A step of 1, 2 or 5 times a power of ten, four to ten of which reach `most`.
fn round_step(most: f64) -> f64 {
    let power = power_of_ten(log10(most / 4.0).floor());
    [5.0, 2.0, 1.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|s| most / s >= 4.0)
        .unwrap_or(power)
}

fn log10(value: f64) -> f64 {
    ln(value) / std::f64::consts::LN_10
}

fn power_of_ten(exponent: f64) -> f64 {
    pow(10.0, exponent)
}

fn number(value: f64) -> String {
    if value >= 1_000.0 {
        return super::table::grouped(count(value));
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64]) -> Line {
        let points = values.iter().map(|&value| Some((value, 0.0))).collect();
        Line { name: "a <b>".to_owned(), points }
    }

    #[test]
    fn axes_have_round_numbers_that_hold_all_values() {
        for (values, ticks) in [
            (vec![3.0, 9.0], vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (vec![0.0, 0.47], vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
            (vec![12.0, 4_000.0], vec![10.0, 100.0, 1_000.0, 10_000.0]),
        ] {
            let found = Scale::of(&[line(&values)]).ticks();
            let close = found.iter().zip(&ticks).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(close && found.len() == ticks.len(), "{values:?}: {found:?}");
        }
    }

    #[test]
    fn greater_is_higher_and_names_cannot_break_the_document() {
        let scale = Scale::of(&[line(&[1.0, 50.0])]);
        assert!(scale.down(50.0) < scale.down(1.0));
        let chart = Chart {
            title: "t & t".to_owned(),
            x: "x".to_owned(),
            levels: vec!["1".to_owned(), "2".to_owned()],
            lines: vec![line(&[1.0, 50.0])],
        };
        let svg = chart.svg();
        assert!(svg.contains("a &lt;b&gt;") && svg.contains("t &amp; t"));
        assert_eq!(svg.matches("<circle").count(), 2);
    }
}
