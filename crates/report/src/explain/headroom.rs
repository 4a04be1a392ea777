//! What oracles reach, and what nobody can go below.

use super::heading;
use crate::chart::{Axis, Chart, Form, Point, Scale};
use crate::model::{Block, Table, blocks as tables};
use crate::text::{change, dash, signed};
use blis_core::SloClass;
use blis_lab::Metric;
use blis_lab::explain::{Gap, Reached};
use blis_lab::study::Paired;
use blis_lab::verdict::number;
use blis_scenario::scenario::Oracles;
use serde_json::{Map, Value, json};

/// How to read it.
const ABOUT: &str = "Oracles know what no policy can know: output lengths, the current state of \
     every engine and cache, and (the evictor) future requests. What they reach is not a bound: \
     the router ignores requests that arrive later. The floor is a bound: each request alone, \
     with everything before it in the cache.";

/// All of it.
pub(super) fn blocks(reached: &Reached, metrics: &[Metric]) -> Vec<Block> {
    let mut all = vec![Block::prose(ABOUT)];
    all.extend(tables(metrics.iter().filter_map(|metric| chart(reached, metric))));
    for metric in metrics {
        all.extend(tables([gaps(reached, metric), classes(reached, metric)].into_iter().flatten()));
        all.extend(sentence(reached, metric).map(Block::Prose));
    }
    all
}

/// Who decides.
fn who(oracles: Oracles) -> &'static str {
    match oracles.fields()[..] {
        [] => "the arm",
        ["routing"] => "oracle router",
        ["evict"] => "oracle evictor",
        ["scheduler"] => "oracle scheduler",
        _ => "all oracles",
    }
}

/// What is reached of a metric, and the floor.
fn gaps(reached: &Reached, metric: &Metric) -> Option<Table> {
    let gaps = reached.gaps(metric)?;
    let row = |gap: &Gap| {
        let change = dash(gap.change.as_ref(), change);
        [who(gap.oracles).to_owned(), number(gap.mean), change]
    };
    let mut rows: Vec<[String; 3]> = gaps.iter().map(row).collect();
    if let Some(floor) = reached.floor(metric) {
        let arm = Some(gaps[0].mean).filter(|&arm| arm > 0.0);
        let below = signed(arm.map(|arm| floor.mean / arm - 1.0));
        rows.push(["floor".to_owned(), number(floor.mean), below]);
    }
    let title = format!("what oracles reach: {}", heading(metric));
    Some(Table::new(title, ["policies", "mean", "change (95 %)"], rows))
}

fn chart(reached: &Reached, metric: &Metric) -> Option<Chart> {
    let point = |(row, gap): (usize, &Gap)| {
        let point = Point::named(who(gap.oracles), gap.mean);
        match reached.interval(row, metric) {
            Some(found) => point.between(found.low, found.high),
            None => point,
        }
    };
    let mut points: Vec<Point> = reached.gaps(metric)?.iter().enumerate().map(point).collect();
    points.extend(
        reached.floor(metric).map(|it| Point::named("floor", it.mean).between(it.low, it.high)),
    );
    let axes = [Axis::new("policies", Scale::Names), Axis::new(heading(metric), Scale::Fit)];
    Chart::new(heading(metric), Form::Rows, axes, points)
}

/// The same metric class by class: what an order costs whom. `None` if there is one class, or the
/// metric has no classes.
fn classes(reached: &Reached, metric: &Metric) -> Option<Table> {
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
    let header = std::iter::once("class").chain(columns).chain(["floor"]);
    let header = header.take(rows.first().map_or(0, Vec::len));
    (rows.len() > 1).then(|| Table::new(format!("{what} by class, ms"), header, rows))
}

/// What it means, in a few sentences.
fn sentence(reached: &Reached, metric: &Metric) -> Option<String> {
    let gaps = reached.gaps(metric)?;
    let (arm, informed) = gaps.split_first()?;
    let lower = metric.less_is_better()?;
    let sign = if lower { 1.0 } else { -1.0 };
    let best = informed.iter().min_by(|a, b| (sign * a.mean).total_cmp(&(sign * b.mean)))?;
    let sure = |gap: &Gap| {
        // As the table shows it: a ratio where there is one.
        let shown = |change: &Paired| change.ratio.map_or((change.difference, 0.0), |it| (it, 1.0));
        let shown = gap.change.as_ref().map(shown);
        shown.is_some_and(|(it, none)| if lower { it.high < none } else { it.low > none })
    };
    let unit = metric.unit();
    let with = match best.oracles.fields()[..] {
        [_] => format!("an {}", who(best.oracles)),
        _ => "all oracles together".to_owned(),
    };
    let mut told = vec![if sure(best) {
        format!(
            "With {with} it is {} instead of {} {unit}: at least this much is left to gain.",
            number(best.mean),
            number(arm.mean)
        )
    } else {
        "No oracle is clearly better than the arm; a further gain would need planning, which these \
         oracles do not do."
            .to_owned()
    }];
    let floor = reached.floor(metric);
    told.extend(floor.map(|it| format!("No policy can go below {} {unit}.", number(it.mean))));
    if !reached.all_served() {
        let text = "Some requests were not served: latencies cover served requests, the floor \
            covers all.";
        told.push(text.to_owned());
    }
    Some(told.join(" "))
}

/// The same for programs.
pub(super) fn object(reached: &Reached, metrics: &[Metric]) -> Value {
    let gap = |gap: &Gap| {
        json!({
            "oracles": gap.oracles.fields(),
            "mean": gap.mean,
            "difference": gap.change.map(|change| change.difference),
            "ratio": gap.change.and_then(|change| change.ratio),
        })
    };
    let of = |metric: &Metric| {
        let gaps: Vec<Value> = reached.gaps(metric)?.iter().map(gap).collect();
        Some((metric.name(), json!({"reached": gaps, "floor": reached.floor(metric)})))
    };
    json!({
        "metrics": metrics.iter().filter_map(of).collect::<Map<_, _>>(),
        "endless_cache_hit_rate": reached.endless_hit_rate(),
        "all_served": reached.all_served(),
    })
}
