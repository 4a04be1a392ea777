//! `blis validate --format json`: everything, as one object.

use super::Found;
use blis_fidelity::validate::{Beyond, Cell, Compared};
use blis_scenario::json::Fields;
use serde_json::Value;

/// What was found.
pub(super) fn object(found: &Found) -> Value {
    let mut all = Fields::default();
    all.text("basis", found.basis.as_str());
    let workloads: Vec<Value> = found.compared.iter().map(workload).collect();
    all.value("workloads", workloads);
    if found.coverage.cells > 0 {
        let mut coverage = Fields::default();
        coverage.count("cells", found.coverage.cells.into());
        coverage.count("covered", found.coverage.covered.into());
        coverage.count("narrow", found.coverage.narrow.into());
        all.value("coverage", coverage.into_value());
    }
    if !found.transfer.is_empty() {
        let transfer = found.transfer.iter().map(|one| {
            let mut fields = Fields::default();
            fields.text("from", one.from.as_str());
            fields.text("to", one.to.as_str());
            fields.number("e2e_mean_error", Some(one.e2e_mean));
            fields.into_value()
        });
        all.value("transfer", transfer.collect::<Vec<_>>());
    }
    if !found.beyond.is_empty() {
        all.value("beyond", found.beyond.iter().map(beyond).collect::<Vec<_>>());
    }
    all.into_value()
}

fn beyond(one: &Beyond) -> Value {
    let mut fields = Fields::default();
    fields.text("steps_of", one.edge.name());
    fields.count("steps", one.seen.steps as u64);
    for (name, errors) in
        [("fitted", Some(one.seen)), ("measured_apart", one.apart), ("never_seen", one.unseen)]
    {
        let mut found = Fields::default();
        found.number("mean_absolute_error", errors.map(|errors| errors.mean_absolute));
        found.number("total_error", errors.map(|errors| errors.total));
        fields.value(name, found.into_value());
    }
    fields.into_value()
}

fn workload(compared: &Compared) -> Value {
    let mut fields = Fields::default();
    fields.text("workload", compared.workload.as_str());
    fields.count("requests", compared.measured.len() as u64);
    fields.number("step_error_mean_absolute", compared.steps.map(|steps| steps.mean_absolute));
    fields.number("step_error_total", compared.steps.map(|steps| steps.total));
    fields.count("steps_outside_fit", compared.outside.steps as u64);
    fields.number("cached_equal", Some(compared.cached_equal));
    let mut numbers = Fields::default();
    for cell in &compared.cells {
        let name = cell.quantity.name().to_lowercase().replace(' ', "_");
        let unit = if name == "preemptions" { "" } else { "_ms" };
        numbers.value(&format!("{name}{unit}"), number(cell));
    }
    fields.value("numbers", numbers.into_value());
    fields.into_value()
}

fn number(cell: &Cell) -> Value {
    let mut fields = Fields::default();
    fields.number("predicted", Some(cell.predicted));
    fields.number("low", cell.interval.map(|(low, _)| low));
    fields.number("high", cell.interval.map(|(_, high)| high));
    fields.number("measured", Some(cell.measured));
    fields.number("second_run", cell.repeat);
    fields.number("error", cell.error());
    fields.number("spread", cell.spread());
    fields.into_value()
}
