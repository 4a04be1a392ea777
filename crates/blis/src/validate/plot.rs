//! Distributions over each other, as SVG: what requests saw in the server, in its second run and in
//! the simulator.

use crate::markup::{escaped, text};
use blis_core::math::{float, ln, pow};
use blis_fidelity::validate::{Compared, Metric, Seen, sorted};
use std::fmt::Write;

/// Size of one panel's plane, and the margins about it.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 36.0;
const TOP: f64 = 44.0;
const BELOW: f64 = 36.0;
/// Points of a curve.
const POINTS: u32 = 100;

/// The colours of a picture.
struct Colours {
    measured: &'static str,
    second: &'static str,
    predicted: &'static str,
    lines: &'static str,
    words: &'static str,
}

/// Those of a picture by itself, on white.
const ALONE: Colours = Colours {
    measured: "#1b1b1b",
    second: "#9a9a9a",
    predicted: "#d1495b",
    lines: "#e4e4e4",
    words: "#000000",
};

/// Those of the page that a picture is in, which may be dark.
const OF_PAGE: Colours = Colours {
    measured: "var(--ink)",
    second: "var(--colour-6)",
    predicted: "var(--colour-1)",
    lines: "var(--line)",
    words: "var(--faint)",
};

/// One distribution.
struct Curve {
    colour: &'static str,
    values: Vec<f64>,
}

/// The distributions of TTFT, ITL and E2E of a workload, side by side, as a picture by itself.
pub(super) fn svg(compared: &Compared) -> String {
    let panel = LEFT + WIDTH + 12.0;
    let width = panel * float(Metric::ALL.len() as u64) + 12.0;
    let height = TOP + HEIGHT + BELOW;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut left = LEFT;
    text(&mut out, (left, 16.0), "start", &compared.workload, " font-weight=\"bold\"");
    left += 120.0;
    for (name, colour) in entries(compared, &ALONE) {
        let end = left + 18.0;
        let line =
            format!("<path d=\"M{left} 12H{end}\" stroke=\"{colour}\" stroke-width=\"2\"/>\n");
        add(&mut out, &line);
        text(&mut out, (left + 23.0, 16.0), "start", name, "");
        left += 110.0;
    }
    for (index, metric) in Metric::ALL.into_iter().enumerate() {
        let corner = (LEFT + panel * float(index as u64), TOP);
        draw(&mut out, corner, metric, &curves(compared, metric, &ALONE), &ALONE);
    }
    out.push_str("</svg>\n");
    out
}

/// The same as part of a page: in its colours, one below the other where it is narrow.
pub(super) fn panels(compared: &Compared) -> String {
    let mut out = String::from("<div class=\"legend\">");
    for (name, colour) in entries(compared, &OF_PAGE) {
        let line = format!(
            "<span><svg width=\"18\" height=\"8\"><path d=\"M0 4H18\" style=\"stroke:{colour}\" \
             stroke-width=\"2\"/></svg>{name}</span>"
        );
        add(&mut out, &line);
    }
    out.push_str("</div>\n<div class=\"panels\">\n");
    let (width, height) = (LEFT + WIDTH + 12.0, 8.0 + HEIGHT + BELOW);
    for metric in Metric::ALL {
        let curves = curves(compared, metric, &OF_PAGE);
        let name = format!("{} of {}", metric.name(), escaped(&compared.workload));
        let head = format!(
            "<div class=\"panel\"><svg viewBox=\"0 0 {width} {height}\" width=\"100%\" \
             style=\"max-width:26rem\" \
             role=\"img\" aria-label=\"{name}\" font-size=\"11\">\n"
        );
        add(&mut out, &head);
        draw(&mut out, (LEFT, 8.0), metric, &curves, &OF_PAGE);
        out.push_str("</svg></div>\n");
    }
    out.push_str("</div>\n");
    out
}

/// What curves there are, and their colours.
fn entries(compared: &Compared, colours: &Colours) -> Vec<(&'static str, &'static str)> {
    let mut entries = vec![("measured", colours.measured)];
    if compared.repeat.is_some() {
        entries.push(("second run", colours.second));
    }
    entries.push(("predicted", colours.predicted));
    entries
}

fn curves(compared: &Compared, metric: Metric, colours: &Colours) -> Vec<Curve> {
    let of = |seen: Vec<Seen>| sorted(metric, &seen);
    let mut curves = vec![Curve {
        colour: colours.measured,
        values: of(compared.measured.iter().map(Into::into).collect()),
    }];
    if let Some(repeat) = &compared.repeat {
        let values = of(repeat.iter().map(Into::into).collect());
        curves.push(Curve { colour: colours.second, values });
    }
    let values = of(compared.predicted.iter().map(Into::into).collect());
    curves.push(Curve { colour: colours.predicted, values });
    curves.retain(|curve| !curve.values.is_empty());
    curves
}

/// One panel: shares from 0 to 1 over milliseconds on a logarithmic scale.
fn draw(
    out: &mut String,
    (left, top): (f64, f64),
    metric: Metric,
    curves: &[Curve],
    colours: &Colours,
) {
    let ends = curves.iter().flat_map(|curve| [curve.values.first(), curve.values.last()]);
    let ends: Vec<f64> = ends.flatten().copied().filter(|value| *value > 0.0).collect();
    let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ends.iter().copied().fold(0.0, f64::max);
    if least >= most {
        return;
    }
    let (from, span) = (ln(least), ln(most) - ln(least));
    let x = |value: f64| left + WIDTH * (ln(value.max(least)) - from) / span;
    let y = |share: f64| top + HEIGHT * (1.0 - share);
    let (bottom, right) = (top + HEIGHT, left + WIDTH);
    let (words, lines) = (format!(" style=\"fill:{}\"", colours.words), colours.lines);
    let rule = |path: String| format!("<path d=\"{path}\" style=\"stroke:{lines}\"/>\n");
    for tick in ticks(least, most) {
        let at = x(tick);
        add(out, &rule(format!("M{at:.1} {top}V{bottom}")));
        text(out, (at, bottom + 14.0), "middle", &tick.to_string(), &words);
    }
    for share in [0.0, 0.5, 0.9, 1.0] {
        let at = y(share);
        add(out, &rule(format!("M{left} {at:.1}H{right}")));
        text(out, (left - 4.0, at + 4.0), "end", &share.to_string(), &words);
    }
    let label = format!("{}, ms", metric.name());
    text(out, (left + WIDTH / 2.0, bottom + 30.0), "middle", &label, &words);
    for curve in curves {
        let path = steps(curve, x, y);
        let style = format!("fill:none;stroke:{}", curve.colour);
        let line = format!("<path d=\"{path}\" style=\"{style}\" stroke-width=\"1.6\"/>\n");
        add(out, &line);
    }
}

/// The way of a curve.
fn steps(curve: &Curve, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for point in 0..=POINTS {
        let share = f64::from(point) / f64::from(POINTS);
        let last = curve.values.len() - 1;
        let rank = blis_core::math::count(share * float(last as u64));
        let value = curve.values[usize::try_from(rank).unwrap_or(last).min(last)];
        let letter = if point == 0 { 'M' } else { 'L' };
        add(&mut path, &format!("{letter}{:.1} {:.1}", x(value), y(share)));
    }
    path
}

/// Round values of a logarithmic scale: 1, 2 and 5 times powers of ten, or the powers alone where
/// those are too many.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    let decades = -3..7;
    let all = |steps: &[f64]| -> Vec<f64> {
        let values =
            decades.clone().flat_map(|decade| steps.iter().map(move |step| (*step, decade)));
        let values = values.map(|(step, decade)| {
            let value = step * pow(10.0, f64::from(decade));
            // Powers of ten below one are not exact.
            float(blis_core::math::count(value * 1e6)) / 1e6
        });
        values.filter(|value| (least..=most).contains(value)).collect()
    };
    let fine = all(&[1.0, 2.0, 5.0]);
    if fine.len() > 7 { all(&[1.0]) } else { fine }
}

fn add(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = out.write_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_a_few_round_values() {
        assert_eq!(ticks(8.0, 60.0), [10.0, 20.0, 50.0]);
        assert_eq!(ticks(0.004, 0.03), [0.005, 0.01, 0.02]);
        assert_eq!(ticks(2.0, 20_000.0), [10.0, 100.0, 1000.0, 10_000.0]);
    }
}
