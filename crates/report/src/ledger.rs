//! What is in the ledger.

use crate::model::{Block, Document, Table};
use crate::text::{counted, grouped, plain, signed};
use blis_lab::ledger::Entry;
use blis_scenario::CODE;
use blis_scenario::json::{Difference, present};
use serde_json::{Value, json};

/// Digits of a key or a hash that tables show.
const SHORT: usize = 12;

fn short(text: &str) -> String {
    text.get(..SHORT).unwrap_or(text).to_owned()
}

/// Finished trials of the ledger `path`, which has so many, and so many by this code.
pub fn list(path: &str, entries: &[Entry], (all, current): (u64, u64)) -> Document {
    let row = |entry: &Entry| {
        let (run, cluster) = (&entry.row.run, &entry.row.report.cluster);
        let (study, cell) = entry.study.clone().unwrap_or_default();
        [
            short(&entry.key),
            study,
            cell.join(", "),
            run.seed.to_string(),
            short(&run.scenario_hash),
            run.end.clone(),
            plain(cluster.ttft.p99_ms),
            if entry.code == CODE { "this".to_owned() } else { short(&entry.code) },
        ]
    };
    let object = |entry: &Entry| {
        let study = entry.study.as_ref();
        present(json!({
            "key": entry.key,
            "code": entry.code,
            "study": study.map(|(study, _)| study),
            "levels": study.map(|(_, levels)| levels),
            "row": entry.row.numbers(),
        }))
    };
    let header = ["trial", "study", "cell", "seed", "scenario", "end", "TTFT p99, ms", "code"];
    let about = format!(
        "{}, {} by this code version; showing the last {}",
        counted(all, "trial"),
        grouped(current),
        grouped(entries.len() as u64)
    );
    let blocks = vec![
        Table::new("", header, entries.iter().map(row)).into(),
        Block::prose(format!("{path}: {about}")),
    ];
    Document::new("Trials", blocks, entries.iter().map(object).collect())
}

/// Where the rows of two trials differ.
pub fn difference([first, second]: [&str; 2], found: &[Difference]) -> Document {
    let text = |value: &Option<Value>| match value {
        None => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
    // Hundreds of points of curves would hide the rest; the JSON has them.
    let shown = found.iter().filter(|one| !one.path.starts_with("curves."));
    let rows: Vec<[String; 4]> = shown
        .map(|Difference { path, first, second }| {
            let change = match (number(first), number(second)) {
                (Some(first), Some(second)) if first != 0.0 && path != "run.seed" => {
                    signed((second - first) / first)
                }
                _ => String::new(),
            };
            [path.clone(), text(first), text(second), change]
        })
        .collect();
    let block = if rows.is_empty() {
        Block::prose("no differences")
    } else {
        let header = ["number".to_owned(), short(first), short(second), "change".to_owned()];
        Table::new("", header, rows).into()
    };
    let object =
        |one: &Difference| json!({"path": one.path, "first": one.first, "second": one.second});
    let title = format!("Trials {} and {}", short(first), short(second));
    Document::new(title, vec![block], found.iter().map(object).collect())
}
