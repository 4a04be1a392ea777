//! What is left on the table: tables, sentences and JSON.

use crate::compare::change;
use crate::report::grid::Grid;
use crate::study::heading;
use blis_core::SloClass;
use blis_lab::Metric;
use blis_lab::explain::{Gap, Reached};
use blis_lab::stats::Estimate;
use blis_lab::verdict::number;
use blis_scenario::json::Fields;
use blis_scenario::scenario::Oracles;
use serde_json::Value;

/// What stands above all of it.
pub(super) const ABOUT: &str = "Oracles know what nobody can know: the output lengths, every engine and cache as they are now, \
     and (the evictor) the requests to come. What they reach is what an informed policy reaches, \
     not a bound: the router looks ahead as if nobody came later, so it does not plan for those who \
     do. The floor is a bound: each request alone, all that came before it cached.";

/// Who decides.
pub(super) fn who(oracles: Oracles) -> String {
    match oracles.fields()[..] {
        [] => "the arm".to_owned(),
        ["routing"] => "oracle router".to_owned(),
        ["evict"] => "oracle evictor".to_owned(),
        ["scheduler"] => "oracle order".to_owned(),
        _ => "all of them".to_owned(),
    }
}

/// What is reached of a metric, and the floor.
pub(super) fn gaps(reached: &Reached, metric: &Metric) -> Option<Grid> {
    let gaps = reached.gaps(metric)?;
    let row = |gap: &Gap| {
        let change = gap.change.as_ref().map_or_else(|| "-".to_owned(), change);
        vec![who(gap.oracles), number(gap.mean), change]
    };
    let mut rows: Vec<Vec<String>> = gaps.iter().map(row).collect();
    if let Some(floor) = reached.floor(metric) {
        rows.push(vec!["floor".to_owned(), number(floor.mean), below(gaps[0].mean, &floor)]);
    }
    let header = ["who decides", "mean", "change (95 % interval)"];
    Some(Grid {
        title: format!("what is left of {}", heading(metric)),
        header: header.map(str::to_owned).into(),
        rows,
    })
}

/// How far the floor is below the arm.
fn below(arm: f64, floor: &Estimate) -> String {
    if arm > 0.0 { format!("{:+.1} %", 100.0 * (floor.mean / arm - 1.0)) } else { "-".to_owned() }
}

/// The same metric class by class: what an order costs whom. `None` if there is one class, or the
/// metric has no classes.
pub(super) fn classes(reached: &Reached, metric: &Metric) -> Option<Grid> {
    let row = |class: SloClass| {
        let metric = metric.of_class(class)?;
        let gaps = reached.gaps(&metric)?;
        let numbers = gaps.iter().map(|gap| number(gap.mean));
        let floor = reached.floor(&metric).map(|floor| number(floor.mean));
        let all = std::iter::once(class.name().to_owned()).chain(numbers).chain(floor);
        Some(all.collect::<Vec<String>>())
    };
    let rows: Vec<Vec<String>> = SloClass::ALL.into_iter().filter_map(row).collect();
    let first = metric.of_class(SloClass::ALL[0])?.name();
    let what = first.rsplit('.').next().unwrap_or_default();
    let columns = reached.oracles.iter().map(|&oracles| who(oracles));
    let header: Vec<String> = std::iter::once("class".to_owned())
        .chain(columns)
        .chain(["floor".to_owned()])
        .take(rows.first().map_or(0, Vec::len))
        .collect();
    (rows.len() > 1).then(|| Grid { title: format!("{what} by class, ms"), header, rows })
}

/// What it means, in a few sentences.
pub(super) fn sentence(reached: &Reached, metric: &Metric) -> Option<String> {
    let gaps = reached.gaps(metric)?;
    let (arm, informed) = gaps.split_first()?;
    let lower = metric.less_is_better()?;
    let better = |a: f64, b: f64| if lower { a < b } else { a > b };
    let best = informed.iter().reduce(
        |best, next| {
            if better(next.mean, best.mean) { next } else { best }
        },
    )?;
    let sure = |gap: &Gap| {
        let difference = gap.change.as_ref().map(|change| change.difference);
        difference.is_some_and(|found| if lower { found.high < 0.0 } else { found.low > 0.0 })
    };
    let unit = metric.unit();
    let mut told = vec![if sure(best) {
        format!(
            "With {} it is {} instead of {} {unit}: at least that much is left on the table.",
            with(best.oracles),
            number(best.mean),
            number(arm.mean)
        )
    } else {
        "No oracle is clearly better than the arm: what is left, if anything, takes planning that \
         these oracles do not do."
            .to_owned()
    }];
    let floor = reached.floor(metric);
    told.extend(
        floor.map(|floor| format!("No policy can go below {} {unit}.", number(floor.mean))),
    );
    if !reached.all_served() {
        told.push(
            "Not all requests were served: latencies are of those that were, the floor is of all."
                .to_owned(),
        );
    }
    Some(told.join(" "))
}

fn with(oracles: Oracles) -> String {
    match oracles.fields()[..] {
        [_] => format!("an {}", who(oracles)),
        _ => "all oracles together".to_owned(),
    }
}

/// For other programs.
pub(super) fn object(reached: &Reached, metrics: &[Metric]) -> Value {
    let mut all = Fields::default();
    for metric in metrics {
        let Some(gaps) = reached.gaps(metric) else { continue };
        let mut fields = Fields::default();
        fields.value("reached", gaps.iter().map(gap).collect::<Vec<Value>>());
        if let Some(floor) = reached.floor(metric) {
            fields.value("floor", &floor);
        }
        all.value(&metric.name(), fields.into_value());
    }
    let mut fields = Fields::default();
    fields.value("metrics", all.into_value());
    fields.number("endless_cache_hit_rate", reached.endless_hit_rate());
    fields.value("all_served", reached.all_served());
    fields.into_value()
}

fn gap(gap: &Gap) -> Value {
    let mut fields = Fields::default();
    fields.value("oracles", gap.oracles.fields());
    fields.number("mean", Some(gap.mean));
    if let Some(change) = &gap.change {
        fields.value("difference", &change.difference);
        if let Some(ratio) = &change.ratio {
            fields.value("ratio", ratio);
        }
    }
    fields.into_value()
}

/// The data of a figure: who decides, and what is reached.
pub(super) fn csv(reached: &Reached, metric: &Metric) -> Option<String> {
    let mut lines = vec!["who,mean,low,high".to_owned()];
    for (row, gap) in reached.gaps(metric)?.iter().enumerate() {
        let interval = reached.interval(row, metric);
        let (low, high) = interval.map_or((gap.mean, gap.mean), |found| (found.low, found.high));
        lines.push(format!("{},{},{low},{high}", who(gap.oracles), gap.mean));
    }
    if let Some(Estimate { mean, low, high, .. }) = reached.floor(metric) {
        lines.push(format!("floor,{mean},{low},{high}"));
    }
    Some(lines.join("\n") + "\n")
}
