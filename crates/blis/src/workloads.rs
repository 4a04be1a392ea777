//! `blis workloads`: the workloads and the sets of targets that ship, and the text of one workload.

use crate::args::{TextFormat, WorkloadsArgs};
use crate::failure::Failure;
use crate::output;
use crate::report::json;
use crate::report::table::{bold, grouped, plain};
use blis_core::SloClass;
use blis_core::math::count;
use blis_metrics::SloTarget;
use blis_scenario::json::Fields;
use blis_scenario::presets::{self, Preset};
use blis_scenario::slo::{self, SloSet};
use serde_json::Value;

/// Lists them, or prints the workload that `args` name.
pub(crate) fn list(args: &WorkloadsArgs) -> Result<(), Failure> {
    let text = match (&args.name, args.format) {
        (Some(name), TextFormat::Table) => {
            presets::find(name).map_err(Failure::Input)?.text.to_owned()
        }
        (Some(name), TextFormat::Json) => {
            json::text(&preset_object(presets::find(name).map_err(Failure::Input)?))
        }
        (None, TextFormat::Table) => listing(),
        (None, TextFormat::Json) => json::text(&everything()),
    };
    output::print(&text)
}

fn listing() -> String {
    let mut parts = vec![format!("{}\n", bold("Workloads (`--workload NAME`)"))];
    let line = |preset: &Preset| format!("  {}: {}\n", preset.name, preset.summary);
    parts.extend(presets::ALL.iter().map(line));
    parts.push(
        "\n`blis workloads NAME` prints one, as a file for `--workload-spec`.\n\n".to_owned(),
    );
    parts.push(format!("{}\n", bold("Targets (`slo: NAME` in a scenario or workload)")));
    parts.extend(slo::ALL.iter().map(set_text));
    parts.concat()
}

fn set_text(set: &SloSet) -> String {
    let mut parts = vec![format!("  {}: {}\n", set.name, set.summary)];
    for (class, target) in SloClass::ALL.into_iter().zip(&set.classes) {
        let targets: Vec<String> = numbers(target)
            .into_iter()
            .filter_map(|(name, ms)| Some(format!("{name} {}", milliseconds(ms?))))
            .collect();
        if !targets.is_empty() {
            parts.push(format!("      {:10} {}\n", class.name(), targets.join(", ")));
        }
    }
    parts.concat()
}

fn numbers(target: &SloTarget) -> [(&'static str, Option<f64>); 3] {
    let SloTarget { ttft_ms, itl_ms, e2e_ms } = *target;
    [("TTFT", ttft_ms), ("ITL", itl_ms), ("E2E", e2e_ms)]
}

/// Whole milliseconds, as nearly all targets are, or about four digits.
fn milliseconds(ms: f64) -> String {
    let whole = ms.fract().abs() < f64::EPSILON;
    let text = if whole { grouped(count(ms)) } else { plain(Some(ms)) };
    format!("{text} ms")
}

fn everything() -> Value {
    let mut all = Fields::default();
    all.value("workloads", presets::ALL.iter().map(preset_object).collect::<Vec<Value>>());
    all.value("slo", slo::ALL.iter().map(set_object).collect::<Vec<Value>>());
    all.into_value()
}

fn preset_object(preset: &Preset) -> Value {
    let Preset { name, summary, text } = *preset;
    let mut fields = Fields::default();
    fields.text("name", name);
    fields.text("summary", summary);
    fields.text("text", text);
    fields.into_value()
}

fn set_object(set: &SloSet) -> Value {
    let SloSet { name, summary, source, classes } = *set;
    let mut fields = Fields::default();
    fields.text("name", name);
    fields.text("summary", summary);
    fields.text("source", source);
    let mut by_class = Fields::default();
    for (class, target) in SloClass::ALL.into_iter().zip(&classes) {
        let SloTarget { ttft_ms, itl_ms, e2e_ms } = *target;
        let mut fields = Fields::default();
        fields.number("ttft_ms", ttft_ms);
        fields.number("itl_ms", itl_ms);
        fields.number("e2e_ms", e2e_ms);
        if !fields.is_empty() {
            by_class.value(class.name(), fields.into_value());
        }
    }
    fields.value("classes", by_class.into_value());
    fields.into_value()
}
