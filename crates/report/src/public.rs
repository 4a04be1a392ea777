//! How predictions compare with what others have published.

use crate::model::{Block, Document, Table};
use crate::text::{counted, dash, percent, plain, signed, whole};
use blis_core::math::float;
use blis_fidelity::public::{Column, Point, Published, Replayed};
use serde_json::{Value, json};

const READING: &str = "Each number is the median of five runs of the load that was published, on the \
     scenario of the data file; in range are those that lie between the lowest and the highest of \
     the five. Nothing was fitted to these measurements. Errors are relative to what was \
     published; those of a row are over its rates. The worst are first.";

/// All that was replayed: errors, worst first, then every point.
pub fn document(all: &[(Published, Vec<Replayed>)]) -> Document {
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for (published, arms) in all {
        for arm in arms {
            rows.extend(columns(arm).into_iter().map(|column| row(published, arm, column)));
        }
    }
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let header =
        ["measured", "arm", "number", "points", "in range", "mean error", "median", "worst"];
    let summary = Table::new("", header, rows.into_iter().map(|(_, row)| row)).keyed(3);
    let arms = all.iter().flat_map(|(_, arms)| arms);
    let points: u64 = arms.map(|arm| arm.points.len() as u64).sum();
    let benchmarks = counted(all.len() as u64, "benchmark");
    let mut blocks = vec![
        Block::prose(format!("{} of {benchmarks}.", counted(points, "number"))),
        Block::prose(READING),
        Block::Table(summary),
    ];
    blocks.extend(all.iter().map(|(published, arms)| one(published, arms)));
    let data: Vec<Value> = all.iter().map(|(published, arms)| object(published, arms)).collect();
    Document::new("Predictions against published measurements", blocks, json!({ "public": data }))
}

fn columns(arm: &Replayed) -> Vec<Column> {
    let mut all: Vec<Column> = arm.points.iter().map(|point| point.column).collect();
    all.sort();
    all.dedup();
    all
}

/// A row of the summary, and what it is sorted by: the mean of the errors' sizes.
fn row(published: &Published, arm: &Replayed, column: Column) -> (f64, Vec<String>) {
    let points: Vec<&Point> = arm.points.iter().filter(|point| point.column == column).collect();
    let mut errors: Vec<f64> = points.iter().map(|point| point.error()).collect();
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / float(errors.len() as u64);
    let worst = points.iter().max_by(|a, b| a.error().abs().total_cmp(&b.error().abs()));
    let worst = dash(worst, |point| {
        let at = point.rate.map(|rate| format!(" at {}", whole(rate)));
        format!("{}{}", signed(point.error()), at.unwrap_or_default())
    });
    let within = points.iter().filter(|it| (it.low..=it.high).contains(&it.published)).count();
    let text = vec![
        published.title.clone(),
        arm.name.clone(),
        column.name().to_owned(),
        whole(float(errors.len() as u64)),
        whole(float(within as u64)),
        percent(mean),
        signed(errors[errors.len() / 2]),
        worst,
    ];
    (mean, text)
}

/// What was published, and every point.
fn one(published: &Published, arms: &[Replayed]) -> Block {
    let Published { title, source, licence, hardware, engine, .. } = published;
    let text = format!("{hardware}. {engine}. Source: {source} ({licence}).");
    let mut blocks = vec![Block::prose(text)];
    blocks.extend(arms.iter().map(|arm| Block::Table(points(arm))));
    Block::group(title, blocks)
}

fn points(arm: &Replayed) -> Table {
    let columns = columns(arm);
    let mut rates: Vec<Option<f64>> = arm.points.iter().map(|point| point.rate).collect();
    rates.dedup();
    let cell = |rate: Option<f64>, column: Column| {
        let point = arm.points.iter().find(|point| point.rate == rate && point.column == column);
        [
            dash(point, |point| plain(point.published)),
            dash(point, |point| plain(point.predicted)),
            dash(point, |point| signed(point.error())),
        ]
    };
    let rows = rates.iter().map(|&rate| {
        let first = rate.map_or("all".to_owned(), whole);
        let cells = columns.iter().flat_map(|&column| cell(rate, column));
        [first].into_iter().chain(cells).collect::<Vec<_>>()
    });
    let header = columns
        .iter()
        .flat_map(|column| [column.name().to_owned(), "predicted".to_owned(), "error".to_owned()]);
    Table::new(&arm.name, ["rate".to_owned()].into_iter().chain(header), rows)
}

fn object(published: &Published, arms: &[Replayed]) -> Value {
    let point = |point: &Point| {
        json!({
            "rate": point.rate, "number": point.column.name(), "published": point.published,
            "predicted": point.predicted, "low": point.low, "high": point.high,
            "error": point.error(),
        })
    };
    let points = |arm: &Replayed| arm.points.iter().map(point).collect::<Vec<_>>();
    let arm = |arm: &Replayed| json!({ "arm": arm.name, "points": points(arm) });
    let arms: Vec<Value> = arms.iter().map(arm).collect();
    json!({ "title": published.title, "source": published.source, "arms": arms })
}
