//! The views of a ledger: the metrics of its trials as columns, from the table of metrics.

use blis_metrics::metric::{self, Definition, Value};
use rusqlite::{Connection, OptionalExtension, Result};

/// The statements that make those views anew that are not what this program makes, e.g. because
/// it has a new metric.
pub(super) fn stale(database: &Connection) -> Result<Vec<String>> {
    let mut statements = Vec::new();
    for (name, select) in [
        ("numbers", numbers()),
        ("class_numbers", class_numbers()),
        ("study_numbers", STUDY_NUMBERS.to_owned()),
    ] {
        let view = format!("CREATE VIEW {name} AS {select}");
        let sql = "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?1";
        let known: Option<String> = database.query_row(sql, [name], |row| row.get(0)).optional()?;
        if known.as_ref() != Some(&view) {
            statements.push(format!("DROP VIEW IF EXISTS {name}; {view}"));
        }
    }
    Ok(statements)
}

/// One line a trial of a study, with the names of its cell.
const STUDY_NUMBERS: &str = "SELECT studies.name AS name, study_trials.study, study_trials.cell, \
    study_trials.levels, numbers.* FROM study_trials \
    JOIN studies ON studies.study = study_trials.study \
    JOIN numbers ON numbers.key = study_trials.key";

/// One line a trial: the metrics of all its requests and of the cluster.
fn numbers() -> String {
    let columns = columns(|Definition { name, key, value, .. }| match value {
        Value::OfRequests(_) => Some(format!("row ->> '$.cluster.{key}' AS {key}")),
        _ => Some(format!("row ->> '$.{key}' AS {name}")),
    });
    format!(
        "SELECT key, code, scenario_hash, seed, row ->> '$.run.end' AS \"end\", \
         row ->> '$.cluster.saturation' AS saturation, {columns} FROM trials"
    )
}

/// One line a trial and service class.
fn class_numbers() -> String {
    let columns = columns(|Definition { key, value, .. }| match value {
        Value::OfRequests(_) => Some(format!("class.value ->> '$.{key}' AS {key}")),
        _ => None,
    });
    format!(
        "SELECT trials.key, trials.code, trials.scenario_hash, trials.seed, class.key AS class, \
         {columns} FROM trials, json_each(trials.row, '$.classes') AS class"
    )
}

fn columns(column: impl Fn(&Definition) -> Option<String>) -> String {
    let in_json = metric::all().filter(|metric| !metric.key.is_empty());
    in_json.filter_map(column).collect::<Vec<_>>().join(", ")
}
