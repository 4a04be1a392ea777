//! How scenarios compare, seed by seed.

use crate::model::{Block, Document, Table};
use crate::text::{change, counted, dash, entry, heading};
use blis_lab::Metric;
use blis_lab::study::{Findings, Paired, Study};
use blis_scenario::json::present;
use serde_json::{Map, Value, json};

/// The probability that an interval leaves out the truth.
const LEVEL: f64 = 0.05;

/// What a comparison found.
pub fn document(study: &Study, findings: &Findings) -> Document {
    let about = format!(
        "{} each, on the same requests; changes against {}, seed by seed, with 95 % intervals.",
        counted(findings.seeds() as u64, "seed"),
        study.cells[0].levels[0]
    );
    let tables = (1..study.cells.len()).map(|cell| table(study, findings, cell).into());
    let blocks = std::iter::once(Block::Prose(about)).chain(tables).collect();
    Document::new(study.question.clone(), blocks, object(study, findings))
}

/// The first arm and another one.
fn table(study: &Study, findings: &Findings, cell: usize) -> Table {
    let arm = |cell: usize| study.cells[cell].levels[0].as_str();
    let row = |metric: &Metric| {
        let paired = findings.paired(cell, 0, metric, LEVEL);
        let mean = |cell: usize| entry(metric, findings.mean(cell, metric));
        [heading(metric), mean(0), mean(cell), changed(metric, paired.as_ref())]
    };
    // What no run of either has is not worth a line.
    let present = |metric: &&Metric| {
        let mean = |cell: usize| findings.mean(cell, metric);
        [0, cell].into_iter().filter_map(mean).any(|(mean, _)| mean.abs() > 0.0)
    };
    let header = ["metric", arm(0), arm(cell), "change (95 %)"];
    let title = format!("{} against {}", arm(cell), arm(0));
    Table::new(title, header, study.metrics.iter().filter(present).map(row))
}

/// The change, and which way it goes if its interval leaves zero out.
fn changed(metric: &Metric, paired: Option<&Paired>) -> String {
    let text = dash(paired, change);
    let [up, down] = match metric.less_is_better() {
        Some(true) => [", worse", ", better"],
        Some(false) => [", better", ", worse"],
        None => [", more", ", less"],
    };
    match paired.map(|paired| paired.difference) {
        Some(found) if found.low > 0.0 => text + up,
        Some(found) if found.high < 0.0 => text + down,
        Some(found) if found.low.abs() + found.high.abs() <= 0.0 => "same".to_owned(),
        _ => text,
    }
}

fn object(study: &Study, findings: &Findings) -> Value {
    let arm = |cell: usize| {
        let number = |metric: &Metric| {
            let paired = findings.paired(cell, 0, metric, LEVEL).filter(|_| cell > 0);
            let numbers = json!({
                "mean": findings.mean(cell, metric).map(|(mean, _)| mean),
                "values": findings.values(cell, metric),
                "difference": paired.map(|paired| paired.difference),
                "ratio": paired.and_then(|paired| paired.ratio),
            });
            (metric.name(), numbers)
        };
        let names = [
            ("arm".to_owned(), json!(study.cells[cell].levels[0])),
            ("scenario_hash".to_owned(), json!(findings.rows[cell][0].run.scenario_hash)),
        ];
        names.into_iter().chain(study.metrics.iter().map(number)).collect::<Map<_, _>>()
    };
    present(json!({
        "seeds": findings.rows[0].iter().map(|row| row.run.seed).collect::<Vec<u64>>(),
        "warmup_s": findings.lengths.warmup,
        "arms": (0..study.cells.len()).map(arm).collect::<Vec<_>>(),
    }))
}
