//! The figures of a search's page: which there are, and the data of each.

use crate::markup::push;
use crate::optimize::{heading, workloads};
use crate::page::{Figure, digits};
use crate::study::quoted;
use blis_core::math::ln;
use blis_lab::optimize::{Call, Findings, Influence, Number, Plateau, Search};
use blis_lab::stats::Estimate;

/// Each objective, call by call, beside the control.
pub(super) fn progress(search: &Search, findings: &Findings) -> Vec<Figure> {
    let several = search.objectives.len() > 1;
    let engine = search.budget.engine.name();
    let one = |k: usize| {
        let objective = &search.objectives[k];
        let mut csv = "engine,call,value,legal,best\n".to_owned();
        let mut add = |name: &str, calls: &[Call]| {
            let mut best: Option<f64> = None;
            for (number, call) in calls.iter().enumerate() {
                let Some(value) = call.means[k] else { continue };
                let better =
                    |best: f64| if objective.maximise { value > best } else { value < best };
                if call.is_usable() && best.is_none_or(better) {
                    best = Some(value);
                }
                let legal = if call.is_usable() { "yes" } else { "no" };
                let best = best.map(digits).unwrap_or_default();
                let call = number + 1;
                push(&mut csv, format_args!("{name},{call},{},{legal},{best}", digits(value)));
            }
        };
        add(engine, &findings.calls);
        if let Some(control) = &findings.control {
            add("at random", &control.calls);
        }
        let hand = findings.hand[k].map(digits).unwrap_or_default();
        Figure {
            kind: "progress",
            title: heading(&objective.number),
            file: format!("progress {}", objective.number.name()),
            csv,
            about: vec![
                ("unit", heading(&objective.number)),
                ("names", "engine".to_owned()),
                ("bound", hand),
            ],
            wide: !several,
        }
    };
    (0..search.objectives.len()).map(one).collect()
}

/// Every pair of objectives: what was measured, and what fresh seeds gave.
pub(super) fn fronts(search: &Search, findings: &Findings) -> Vec<Figure> {
    let count = search.objectives.len();
    let pairs = (0..count).flat_map(|x| (x + 1..count).map(move |y| (x, y)));
    pairs.map(|pair| front(search, findings, pair)).collect()
}

fn front(search: &Search, findings: &Findings, (x, y): (usize, usize)) -> Figure {
    let [across, up] = [x, y].map(|k| &search.objectives[k].number);
    let fresh = |cell: usize| {
        let mean = |k: usize| findings.mean(cell, &search.objectives[k].number);
        Some((mean(x)?.0, mean(y)?.0))
    };
    let mut csv = "point,call,x,y,fresh_x,fresh_y\n".to_owned();
    let mut add = |name: &str, call: String, at: &[Option<f64>], fresh: Option<(f64, f64)>| {
        let (Some(one), Some(other)) = (at[x], at[y]) else { return };
        let fresh = fresh.map_or_else(
            || ",".to_owned(),
            |(one, other)| format!("{},{}", digits(one), digits(other)),
        );
        push(&mut csv, format_args!("{name},{call},{},{},{fresh}", digits(one), digits(other)));
    };
    add("by hand", String::new(), &findings.hand, fresh(0));
    for (number, chosen) in findings.chosen.iter().enumerate() {
        let at = &findings.calls[chosen.call].means;
        add("front", (chosen.call + 1).to_string(), at, fresh(number + 1));
    }
    if let Some(control) = &findings.control {
        for (number, chosen) in control.chosen.iter().enumerate() {
            let at = &control.calls[chosen.call].means;
            let cell = 1 + findings.chosen.len() + number;
            add("front at random", (chosen.call + 1).to_string(), at, fresh(cell));
        }
    }
    for (number, call) in findings.calls.iter().enumerate().filter(|(_, call)| call.is_usable()) {
        if findings.chosen.iter().all(|chosen| chosen.call != number) {
            add("other", (number + 1).to_string(), &call.means, None);
        }
    }
    Figure {
        kind: "front",
        title: format!("{} and {}", across.name(), up.name()),
        file: format!("front {} {}", across.name(), up.name()),
        csv,
        about: vec![
            ("across", heading(across)),
            ("unit", heading(up)),
            ("names", "point".to_owned()),
        ],
        wide: search.objectives.len() == 2,
    }
}

/// What became of each workload, where one point is recommended.
pub(super) fn payers(search: &Search, findings: &Findings) -> Vec<Figure> {
    let ([objective], false) = (&search.objectives[..], findings.chosen.is_empty()) else {
        return Vec::new();
    };
    let metric = objective.number.metric;
    let bound = if objective.maximise { "1," } else { ",1" };
    let row = |number: &Number| {
        let Estimate { mean, low, high, .. } = findings.paired(1, number)?.ratio?;
        let (_, name) = number.workload.as_ref()?;
        let numbers = [mean, low, high].map(digits).join(",");
        Some(format!("{},{numbers},{bound}\n", quoted(name)))
    };
    let rows: String = workloads::each(search, metric).iter().filter_map(row).collect();
    if search.loads.len() < 2 || rows.is_empty() {
        return Vec::new();
    }
    vec![Figure {
        kind: "effect",
        title: format!("{}, found over by hand", metric.name()),
        file: "workloads".to_owned(),
        csv: format!("effect,mean,low,high,at_least,at_most\n{rows}"),
        about: vec![("unit", "times by hand".to_owned()), ("scale", "ratio".to_owned())],
        wide: false,
    }]
}

/// How far the constraints are from their bounds, where one point is recommended.
pub(super) fn slack(search: &Search, findings: &Findings) -> Vec<Figure> {
    if search.objectives.len() > 1 || findings.chosen.is_empty() {
        return Vec::new();
    }
    let row = |index: usize| {
        let Estimate { mean, low, high, .. } = findings.share_of_bound(search, index, 1)?;
        let constraint = &search.constraints[index];
        let (least, most) = if constraint.at_least { ("1", "") } else { ("", "1") };
        let numbers = [mean, low, high].map(digits).join(",");
        Some(format!("{},{numbers},{least},{most}\n", quoted(&constraint.text)))
    };
    let rows: String = (0..search.constraints.len()).filter_map(row).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    vec![Figure {
        kind: "effect",
        title: "value over bound".to_owned(),
        file: "constraints".to_owned(),
        csv: format!("effect,mean,low,high,at_least,at_most\n{rows}"),
        about: vec![("unit", "times the bound".to_owned()), ("scale", "ratio".to_owned())],
        wide: false,
    }]
}

/// How much each parameter matters, for each objective.
pub(super) fn importance(search: &Search, findings: &Findings) -> Vec<Figure> {
    let one = |(objective, found): (&_, &blis_lab::optimize::Sensitivity)| {
        let objective: &blis_lab::optimize::Objective = objective;
        let row = |one: &Influence| {
            let (value, error) = (one.total.value, one.total.error);
            let numbers = [value, (value - error).max(0.0), value + error].map(digits).join(",");
            format!("{},{numbers}\n", quoted(&one.name))
        };
        let mut all: Vec<&Influence> = found.dimensions.iter().collect();
        all.sort_by(|a, b| b.total.value.total_cmp(&a.total.value));
        let rows: String = all.into_iter().map(row).collect();
        Figure {
            kind: "interval",
            title: objective.number.name(),
            file: format!("importance {}", objective.number.name()),
            csv: format!("parameter,mean,low,high\n{rows}"),
            about: vec![
                ("unit", "share".to_owned()),
                ("names", "parameter".to_owned()),
                ("linear", "yes".to_owned()),
            ],
            wide: false,
        }
    };
    search.objectives.iter().zip(&findings.sensitivities).map(one).collect()
}

/// Where it does not matter what a number is, where one point is recommended.
pub(super) fn ranges(search: &Search, findings: &Findings) -> Vec<Figure> {
    let ([chosen], [found]) = (&findings.chosen[..], &findings.sensitivities[..]) else {
        return Vec::new();
    };
    let hand = &search.points.candidates[chosen.candidate].hand;
    let mut csv = "parameter,min,max,log,low,high,near_low,near_high,found,hand\n".to_owned();
    for ((name, by_hand), (_, value)) in hand.iter().zip(&chosen.settings) {
        let Some(dimension) = search.points.dimension(chosen.candidate, name) else { continue };
        let Some((min, max, log)) = search.points.range(dimension) else { continue };
        let Plateau::Range { within_noise, not_worse } = &found.dimensions[dimension].plateau
        else {
            continue;
        };
        let (Ok(at), Ok(by_hand)) = (value.parse::<f64>(), by_hand.parse::<f64>()) else {
            continue;
        };
        let place = |value: f64| {
            let share =
                if log { ln(value / min) / ln(max / min) } else { (value - min) / (max - min) };
            digits(share.clamp(0.0, 1.0))
        };
        // What was found is rounded, and belongs to what is as good as itself.
        let ends = [not_worse.0, not_worse.1, within_noise.0, within_noise.1];
        let ends = [ends[0].min(at), ends[1].max(at), ends[2].min(at), ends[3].max(at)];
        let fields = [
            quoted(name),
            digits(min),
            digits(max),
            log.to_string(),
            ends.map(place).join(","),
            place(at),
            place(by_hand),
        ];
        push(&mut csv, format_args!("{}", fields.join(",")));
    }
    if csv.lines().count() < 2 {
        return Vec::new();
    }
    vec![Figure {
        kind: "ranges",
        title: "from the least to the greatest value".to_owned(),
        file: "ranges".to_owned(),
        csv,
        about: vec![("unit", "place in the range".to_owned()), ("names", "parameter".to_owned())],
        wide: true,
    }]
}
