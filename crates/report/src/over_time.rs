//! A run on a page: what its instances did over time, and its slowest requests.

use crate::chart::{Axis, Chart, Form, Mark, Point, Scale};
use crate::model::{Block, Document};
use crate::why;
use blis_lab::why::Answer;
use blis_metrics::Strips;

/// Most instances that have lines of their own.
const INSTANCES: usize = 8;

/// `document`, which tells of a run, with what its instances did and why some requests were slow.
pub fn page(mut document: Document, strips: &Strips, slowest: &[Answer]) -> Document {
    let mut charts = charts(strips);
    if let Some(requests) = &mut charts[1] {
        requests.form = Form::Points;
        requests.points.extend(slowest.iter().filter_map(|answer| mark(strips, answer)));
    }
    let charts = charts.into_iter().flatten().map(Block::from).collect();
    document.blocks.push(Block::group("Over time", charts));
    if !slowest.is_empty() {
        document.blocks.push(Block::group("Slowest requests by TTFT", why::list(slowest)));
    }
    document
}

fn charts(strips: &Strips) -> [Option<Chart>; 3] {
    let [waiting, running, blocks] = Strips::LEVELS;
    [
        chart(strips, "What the instances did", "share of time, %", &Strips::TIMES),
        chart(strips, "Requests", "requests", &[waiting, running]),
        chart(strips, "KV blocks in use", "blocks", &[blocks]),
    ]
}

/// A mark for a slow request where it arrived, as high as the queue of its instance.
fn mark(strips: &Strips, answer: &Answer) -> Option<Point> {
    let number = answer.record.instance?.index();
    let at = answer.record.arrival.as_secs_f64();
    let moments = strips.instances().take(INSTANCES).nth(number)?;
    let waiting = moments.iter().take_while(|moment| moment.at <= at).last()?.levels[0];
    let point = Point::at(at, waiting).of("slow request").labelled(why::called(answer));
    Some(point.on(format!("instance {number}")))
}

/// A small chart for each of the first instances, with a line for each of `series`.
fn chart(strips: &Strips, title: &str, unit: &str, series: &[&'static str]) -> Option<Chart> {
    let mut points = Vec::new();
    for (number, moments) in strips.instances().enumerate().take(INSTANCES) {
        for name in series {
            let time = Strips::TIMES.iter().position(|time| time == name);
            let level = Strips::LEVELS.iter().position(|level| level == name);
            points.extend(moments.iter().filter_map(|moment| {
                let value = time.map(|at| 100.0 * moment.times[at]);
                let value = value.or_else(|| level.map(|at| moment.levels[at]))?;
                let point = Point::at(moment.at, value).marked(Mark::None);
                Some(point.of(*name).on(format!("instance {number}")))
            }));
        }
    }
    let axes = [Axis::new("time, s", Scale::Zero), Axis::new(unit, Scale::Zero)];
    Chart::new(title, Form::Lines, axes, points)
}
