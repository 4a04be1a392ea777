//! The charts of a search.

use super::{by_workload as each, heading};
use crate::chart::{Axis, Chart, Form, Mark, Point, Scale};
use blis_core::math::float;
use blis_core::math::ln;
use blis_lab::optimize::{
    Call, Findings, Influence, Number, Objective, Plateau, Search, Sensitivity,
};
use blis_lab::stats::Estimate;

/// Each objective, call by call, and the best legal value so far, beside the control.
pub(super) fn progress(search: &Search, findings: &Findings) -> Vec<Chart> {
    const NOTE: &str = "Best valid value so far, on the seeds of the search; a full dot meets the \
                        constraints. The dashed line is the hand-set point.";
    let engine = search.budget.engine.name();
    let one = |(k, objective): (usize, &Objective)| {
        let mut points = Vec::new();
        let mut add = |name: &str, calls: &[Call]| {
            let mut best: Option<f64> = None;
            for (number, call) in calls.iter().enumerate() {
                let Some(value) = call.means[k] else { continue };
                let better =
                    |best: f64| if objective.maximise { value > best } else { value < best };
                if call.is_usable() && best.is_none_or(better) {
                    best = Some(value);
                }
                let at = float(number as u64 + 1);
                let mark = if call.is_usable() { Mark::Dot } else { Mark::Ring };
                points.push(Point::at(at, value).of(name).marked(mark));
                let so_far = best.map(|best| Point::at(at, best).marked(Mark::None));
                points.extend(so_far.map(|point| point.of(format!("{name}, best so far"))));
            }
        };
        add(engine, &findings.calls);
        if let Some(control) = &findings.control {
            add("at random", &control.calls);
        }
        let axes =
            [Axis::new("call", Scale::Zero), Axis::new(heading(&objective.number), Scale::Fit)];
        let chart = Chart::new(heading(&objective.number), Form::Points, axes, points)?;
        Some(chart.bounded(findings.hand[k]).noted(NOTE))
    };
    search.objectives.iter().enumerate().filter_map(one).collect()
}

/// Every pair of objectives: what was measured, and what fresh seeds gave.
pub(super) fn fronts(search: &Search, findings: &Findings) -> Vec<Chart> {
    let count = search.objectives.len();
    let pairs = (0..count).flat_map(|x| (x + 1..count).map(move |y| (x, y)));
    pairs.filter_map(|pair| front(search, findings, pair)).collect()
}

fn front(search: &Search, findings: &Findings, (x, y): (usize, usize)) -> Option<Chart> {
    const NOTE: &str = "Ring: measured by the search; the dot at the end of its line: fresh seeds. \
                        The other series are valid points off the front.";
    let [across, up] = [x, y].map(|k| &search.objectives[k].number);
    let mut points = Vec::new();
    let mut add = |name: &str, label: String, at: &[Option<f64>], cell: Option<usize>| {
        let point = |x: f64, y: f64| Point::at(x, y).of(name).labelled(&label);
        let measured = at[x].zip(at[y]).map(|(x, y)| point(x, y).marked(Mark::Ring));
        let mean = |number: &Number| Some(findings.mean(cell?, number)?.0);
        let fresh = mean(across).zip(mean(up)).map(|(x, y)| point(x, y));
        points.extend(measured.into_iter().chain(fresh));
    };
    let call = |call: usize| format!("call {}", call + 1);
    add("by hand", "by hand".to_owned(), &findings.hand, Some(0));
    for (number, chosen) in findings.chosen.iter().enumerate() {
        let at = &findings.calls[chosen.call].means;
        add("front", call(chosen.call), at, Some(number + 1));
    }
    if let Some(control) = &findings.control {
        for (number, chosen) in control.chosen.iter().enumerate() {
            let cell = 1 + findings.chosen.len() + number;
            let at = &control.calls[chosen.call].means;
            add("front at random", call(chosen.call), at, Some(cell));
        }
    }
    for (number, other) in findings.calls.iter().enumerate().filter(|(_, it)| it.is_usable()) {
        if findings.chosen.iter().all(|chosen| chosen.call != number) {
            add("other", call(number), &other.means, None);
        }
    }
    let axes = [Axis::new(heading(across), Scale::Fit), Axis::new(heading(up), Scale::Fit)];
    let title = format!("{} and {}", across.name(), up.name());
    Some(Chart::new(title, Form::Points, axes, points)?.noted(NOTE))
}

/// Ratios to 1, which is what is claimed of them.
fn ratios(title: &str, unit: &str, note: &str, points: Vec<Point>) -> Option<Chart> {
    let axes = [Axis::new("", Scale::Names), Axis::new(unit, Scale::Tight)];
    Some(Chart::new(title, Form::Rows, axes, points)?.bounded(Some(1.0)).noted(note))
}

fn ranged(at: &str, found: Estimate) -> Point {
    Point::named(at, found.mean).between(found.low, found.high)
}

/// What became of each workload, where one point is recommended.
pub(super) fn by_workload(search: &Search, findings: &Findings) -> Option<Chart> {
    const NOTE: &str = "Recommended over hand-set point per workload, on fresh seeds. The dashed \
                        line is no change.";
    let [objective] = &search.objectives[..] else { return None };
    let metric = objective.number.metric;
    let is_shown = search.loads.len() > 1 && !findings.chosen.is_empty();
    let point = |number: &Number| {
        let (_, name) = number.workload.as_ref()?;
        Some(ranged(name, findings.paired(1, number)?.ratio?))
    };
    let numbers = each(search, metric);
    let points = numbers.iter().filter(|_| is_shown).filter_map(point).collect();
    ratios(&format!("{}, found / by hand", metric.name()), "ratio", NOTE, points)
}

/// How far the constraints are from their bounds, where one point is recommended.
pub(super) fn constraints(search: &Search, findings: &Findings) -> Option<Chart> {
    const NOTE: &str = "Constrained values as multiples of their bounds, on fresh seeds. The \
                        dashed line is the bound.";
    let is_shown = search.objectives.len() == 1 && !findings.chosen.is_empty();
    let point = |index: usize| {
        let found = findings.share_of_bound(search, index, 1)?;
        Some(ranged(&search.constraints[index].text, found))
    };
    let indices = (0..search.constraints.len()).filter(|_| is_shown);
    ratios("value / bound", "ratio", NOTE, indices.filter_map(point).collect())
}

/// How much each parameter matters, for each objective.
pub(super) fn importance(search: &Search, findings: &Findings) -> Vec<Chart> {
    const NOTE: &str =
        "Share of the variance each parameter takes part in, with its standard error.";
    let one = |(objective, found): (&Objective, &Sensitivity)| {
        let mut all: Vec<&Influence> = found.dimensions.iter().collect();
        all.sort_by(|a, b| b.total.value.total_cmp(&a.total.value));
        let points = all.into_iter().map(|one| {
            let (value, error) = (one.total.value, one.total.error);
            Point::named(&one.name, value).between((value - error).max(0.0), value + error)
        });
        let axes = [Axis::new("parameter", Scale::Names), Axis::new("share", Scale::Zero)];
        let title = format!("importance for {}", objective.number.name());
        Some(Chart::new(title, Form::Rows, axes, points.collect())?.noted(NOTE))
    };
    search.objectives.iter().zip(&findings.sensitivities).filter_map(one).collect()
}

/// Where it does not matter what a number is, where one point is recommended.
pub(super) fn ranges(search: &Search, findings: &Findings) -> Option<Chart> {
    const NOTE: &str = "Each tuned number over its range. In the first range the objective is \
                        expected to be equal within the noise of one measurement, in the second it \
                        is not known to be worse; the other parameters stay as found. Dot: found; \
                        tick: hand-set.";
    let ([chosen], [found]) = (&findings.chosen[..], &findings.sensitivities[..]) else {
        return None;
    };
    let hand = &search.points.candidates[chosen.candidate].hand;
    let mut points = Vec::new();
    for ((name, by_hand), (_, value)) in hand.iter().zip(&chosen.settings) {
        let Some(dimension) = search.points.dimension(chosen.candidate, name) else { continue };
        let Some((min, max, log)) = search.points.range(dimension) else { continue };
        let plateau = &found.dimensions[dimension].plateau;
        let (Plateau::Range { within_noise, not_worse }, Ok(at), Ok(by_hand)) =
            (plateau, value.parse::<f64>(), by_hand.parse::<f64>())
        else {
            continue;
        };
        let place = |value: f64| {
            let share =
                if log { ln(value / min) / ln(max / min) } else { (value - min) / (max - min) };
            share.clamp(0.0, 1.0)
        };
        // What was found is rounded, and belongs to what is as good as itself.
        let wide = |(low, high): &(f64, f64)| (place(low.min(at)), place(high.max(at)));
        let name = format!("{name}: {min} to {max}{}", if log { " (logarithmic)" } else { "" });
        let range = |series: &str, ends: (f64, f64)| Point {
            value: None,
            ..Point::named(&name, 0.0).between(ends.0, ends.1).of(series)
        };
        let good = Point { value: Some(place(at)), ..range("as good", wide(within_noise)) };
        points.push(good);
        points.push(range("not known to be worse", wide(not_worse)));
        points.push(Point::named(&name, place(by_hand)).of("by hand").marked(Mark::Tick));
    }
    let axes = [Axis::new("parameter", Scale::Names), Axis::new("place in the range", Scale::Zero)];
    Some(Chart::new("equally good ranges", Form::Rows, axes, points)?.noted(NOTE))
}
