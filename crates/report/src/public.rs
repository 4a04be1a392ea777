//! How predictions compare with what others have published.

use crate::model::{Block, Document, Table};
use crate::text::{counted, dash, percent, plain, signed, whole};
use blis_core::math::float;
use blis_fidelity::public::{Column, Point, Published, Replayed};
use serde_json::{Value, json};

const READING: &str = "Each number is the median of the runs of the load that was published, on \
     the scenario of the data file; where the load is random there are five, and in range are \
     numbers between the lowest and the highest. A hash of a point's name says in which half it \
     is; what is fitted (below) is fitted to the first half alone. \
     Errors are relative to what was published; those of a row are over its points. The worst \
     are first. Every point: `blis validate --public --format json`.";

/// So many single points are shown.
const WORST: usize = 12;

/// All that was replayed: errors by kind, by arm and of single points, worst first.
pub fn document(all: &[(Published, Vec<Replayed>)]) -> Document {
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for (published, arms) in all {
        for arm in arms {
            rows.extend(columns(arm).into_iter().map(|column| row(published, arm, column)));
        }
    }
    let header =
        ["measured", "arm", "number", "points", "in range", "mean error", "median", "worst"];
    let summary = Table::new("By arm", header, worst_first(rows)).keyed(3);
    let every: Vec<&Replayed> = all.iter().flat_map(|(_, arms)| arms).collect();
    let points: u64 = every.iter().map(|arm| arm.points.len() as u64).sum();
    let by_benchmark = all.iter().map(|(it, arms)| (it.title.clone(), arms.iter().collect()));
    let by_benchmark = by_benchmark.collect();
    let benchmarks = counted(all.len() as u64, "benchmark");
    let mut blocks = vec![
        Block::prose(format!("{} of {benchmarks}.", counted(points, "number"))),
        Block::prose(READING),
        Block::Table(halves("Mean absolute error", totals(&every))),
        Block::Table(halves("By kind", kinds(&every))),
        Block::Table(halves("By benchmark", by_benchmark)),
        Block::Table(singles(all)),
        Block::Table(summary),
    ];
    blocks.extend(all.iter().map(|(published, _)| one(published)));
    let data: Vec<Value> = all.iter().map(|(published, arms)| object(published, arms)).collect();
    Document::new("Predictions against published measurements", blocks, json!({ "public": data }))
}

fn worst_first(mut rows: Vec<(f64, Vec<String>)>) -> Vec<Vec<String>> {
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Rows of arms: what they have in common, and they.
type Rows<'a> = Vec<(String, Vec<&'a Replayed>)>;

/// Arms by GPU, what the model is, and where steps' times are from.
fn kinds<'a>(arms: &[&'a Replayed]) -> Rows<'a> {
    let mut names: Vec<&[String; 3]> = arms.iter().map(|arm| &arm.kind).collect();
    names.sort();
    names.dedup();
    let of = |kind: &[String; 3]| arms.iter().filter(|arm| arm.kind == *kind).copied().collect();
    names.into_iter().map(|kind| (kind.join(", "), of(kind))).collect()
}

/// Totals: those with a goal, and all.
fn totals<'a>(arms: &[&'a Replayed]) -> Rows<'a> {
    let operators = arms.iter().copied().filter(|arm| arm.kind[2] == "operators");
    let hopper = |arm: &&Replayed| arm.kind[0].starts_with('H') && arm.kind[1] == "dense";
    vec![
        ("Hopper, dense, operators".to_owned(), operators.clone().filter(hopper).collect()),
        ("all, operators".to_owned(), operators.collect()),
        ("all".to_owned(), arms.to_vec()),
    ]
}

/// Errors of times per token and to the first token, in both halves, worst first.
fn halves(title: &str, rows: Rows<'_>) -> Table {
    let cells = |(name, arms): (String, Vec<&Replayed>)| {
        let points: Vec<&Point> = arms.iter().flat_map(|arm| &arm.points).collect();
        let errors = |is: &dyn Fn(&Point) -> bool| {
            let of = points.iter().filter(|point| is(point)).map(|point| point.error());
            of.collect::<Vec<f64>>()
        };
        let mean = |errors: &[f64]| {
            let sum: f64 = errors.iter().sum();
            (!errors.is_empty()).then(|| sum / float(errors.len() as u64))
        };
        let sizes = |errors: Vec<f64>| errors.into_iter().map(f64::abs).collect::<Vec<f64>>();
        let (mut cells, mut by) = (vec![name], Vec::new());
        for is in [|column| column == Column::ItlMeanMs, Column::is_ttft] {
            let all = errors(&|point| is(point.column));
            let half = |first| errors(&|point| is(point.column) && point.training == first);
            cells.push(whole(float(all.len() as u64)));
            cells.push(dash(mean(&sizes(half(true))), percent));
            cells.push(dash(mean(&sizes(half(false))), percent));
            cells.push(dash(mean(&all), signed));
            by.push(mean(&sizes(all)).unwrap_or_default());
        }
        (by[0], cells)
    };
    let header = [
        "",
        "TPOT points",
        "first half",
        "second half",
        "mean",
        "TTFT points",
        "first half",
        "second half",
        "mean",
    ];
    Table::new(title, header, worst_first(rows.into_iter().map(cells).collect()))
}

/// The worst points of times per token.
fn singles(all: &[(Published, Vec<Replayed>)]) -> Table {
    let arms = all.iter().flat_map(|(_, arms)| arms);
    let points = arms.flat_map(|arm| arm.points.iter().map(move |point| (arm, point)));
    let rows = points.filter(|(_, point)| point.column == Column::ItlMeanMs).map(|(arm, point)| {
        let (published, predicted) = (plain(point.published), plain(point.predicted));
        let cells = vec![arm.name.clone(), point.at.clone(), published, predicted];
        let error = point.error();
        (error.abs(), [cells, vec![signed(error)]].concat())
    });
    let rows = worst_first(rows.collect()).into_iter().take(WORST);
    Table::new("Worst times per token", ["arm", "at", "ms", "predicted", "error"], rows).keyed(2)
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
    let worst = dash(worst, |point| format!("{} at {}", signed(point.error()), point.at));
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

/// What was published.
fn one(published: &Published) -> Block {
    let Published { title, source, licence, hardware, engine, .. } = published;
    Block::prose(format!("**{title}**: {hardware}. {engine}. Source: {source} ({licence})."))
}

fn object(published: &Published, arms: &[Replayed]) -> Value {
    let point = |point: &Point| {
        json!({
            "at": point.at, "training": point.training, "number": point.column.name(),
            "published": point.published,
            "predicted": point.predicted, "low": point.low, "high": point.high,
            "error": point.error(),
        })
    };
    let points = |arm: &Replayed| arm.points.iter().map(point).collect::<Vec<_>>();
    let arm = |arm: &Replayed| json!({ "arm": arm.name, "kind": arm.kind, "points": points(arm) });
    let arms: Vec<Value> = arms.iter().map(arm).collect();
    json!({ "title": published.title, "source": published.source, "arms": arms })
}
