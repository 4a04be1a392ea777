//! The axis of a chart along which values lie: round numbers, and where each value is between them.

use blis_core::math::{count, ln, pow};

/// Values that span more than this factor, and none of which is 0, are drawn on a logarithmic
/// scale.
const LOGARITHMIC_ABOVE: f64 = 20.0;

/// An axis. It begins at 0 unless it is logarithmic, so that lengths can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    least: f64,
    most: f64,
    logarithmic: bool,
}

impl Scale {
    /// The axis that holds all `points`: values, and halves of their intervals.
    pub(crate) fn of<'a>(points: impl Iterator<Item = &'a (f64, f64)> + Clone) -> Scale {
        let most = points.clone().map(|(value, half)| value + half).fold(0.0, f64::max).max(1e-9);
        let least = points.map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
        let logarithmic = least > 0.0 && most / least > LOGARITHMIC_ABOVE;
        if logarithmic {
            let floor = power_of_ten(log10(least).floor());
            let ceiling = power_of_ten(log10(most).ceil());
            return Scale { least: floor, most: ceiling, logarithmic };
        }
        let step = round_step(most);
        Scale { least: 0.0, most: (most / step).ceil() * step, logarithmic }
    }

    /// What stands behind the name of what is drawn.
    pub(crate) fn remark(&self) -> &'static str {
        if self.logarithmic { " (logarithmic scale)" } else { "" }
    }

    /// How far along the axis `value` is, from 0 to 1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            ln(value.max(self.least) / self.least) / ln(self.most / self.least)
        } else {
            value.max(0.0) / self.most
        };
        share.min(1.0)
    }

    /// The round numbers on it.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        let mut tick = self.least;
        let step = round_step(self.most);
        while tick <= self.most * 1.001 {
            ticks.push(tick);
            tick = if self.logarithmic { tick * 10.0 } else { tick + step };
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

/// A number at a tick.
pub(crate) fn label(value: f64) -> String {
    if value >= 1_000.0 {
        return super::table::grouped(count(value));
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f64]) -> Scale {
        let points: Vec<(f64, f64)> = values.iter().map(|&value| (value, 0.0)).collect();
        Scale::of(points.iter())
    }

    #[test]
    fn axes_have_round_numbers_that_hold_all_values() {
        for (values, ticks) in [
            (vec![3.0, 9.0], vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (vec![0.0, 0.47], vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
            (vec![12.0, 4_000.0], vec![10.0, 100.0, 1_000.0, 10_000.0]),
        ] {
            let found = scale(&values).ticks();
            let close = found.iter().zip(&ticks).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(close && found.len() == ticks.len(), "{values:?}: {found:?}");
        }
    }

    #[test]
    fn greater_values_are_further_along_and_none_leaves_the_axis() {
        for values in [vec![1.0, 5.0], vec![1.0, 500.0]] {
            let scale = scale(&values);
            assert!(scale.share(values[1]) > scale.share(values[0]));
            assert!((0.0..=1.0).contains(&scale.share(1e12)));
            assert!((0.0..=1.0).contains(&scale.share(-1.0)), "an interval may reach below 0");
        }
    }
}
