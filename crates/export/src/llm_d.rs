//! A strategy as the `EndpointPickerConfig` of llm-d's endpoint picker.

mod flow;
mod import;
mod parts;
pub mod schema;
mod unread;

pub use import::{Imported, import};

use super::write::{Yaml, comment, line};
use super::{Exported, Note, comments};
use blis_scenario::scenario::Plan;
use blis_sim::Freshness;
use parts::Parts;

/// A plugin, as it is declared.
#[derive(Clone, Debug, PartialEq)]
struct Plugin {
    kind: &'static str,
    /// If it is not that of its kind.
    name: Option<&'static str>,
    parameters: Vec<(&'static str, Yaml)>,
}

/// The configuration of `plan`, which is called `title` in its first line.
///
/// # Panics
/// If the text is not what llm-d reads; a test exports every policy.
pub fn export(plan: &Plan, title: &str) -> Exported {
    let mut parts = Parts::new(plan);
    parts.admission(&plan.policies.admission);
    parts.routing();
    parts.finish();
    let mut notes = parts.notes.clone();
    notes.push(signals(plan));
    let text = head(title) + &comments(&notes) + &body(&parts);
    let problems = schema::problems(&text);
    assert!(
        problems.is_empty(),
        "the export is not what llm-d reads: {}\n{text}",
        problems.join("; ")
    );
    Exported::new(text, &notes)
}

fn head(title: &str) -> String {
    let mut out =
        comment(&format!("EndpointPickerConfig of {title}, written by `blis export llm-d`."), "");
    let about = "For `--config-file` of llm-d's endpoint picker, release 1.0 and later. The \
                 picker sums scores from 0 to 1 times their weights, as the simulator does. Only \
                 ratios of weights matter; these are the smallest whole numbers with the same \
                 ratios. Parts without a counterpart are left out; the other weights stay the \
                 same.";
    out.push_str(&comment(about, ""));
    out.push_str(&comment(
        "Only requests of an InferenceObjective with a negative priority can be rejected: give \
         sheddable, batch and background one, but not critical and standard.",
        "",
    ));
    out.push_str("#\n");
    out
}

/// Where the precise index hears of KV events.
const EVENTS: &str = "dataLayer:
  sources:
  - pluginRef: endpoint-notification-source
    extractors:
    - pluginRef: precise-prefix-cache-producer
";

/// What turns requests away.
const SATURATION: &str = "flowControl:
  saturationDetector:
    pluginRef: utilization-detector
";

/// What lets them wait.
const GATE: &str = "featureGates:
- flowControl
";

fn body(parts: &Parts<'_>) -> String {
    let mut out = String::from("apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\n");
    if parts.flow.is_some() {
        out.push_str(GATE);
    }
    out.push_str("plugins:\n");
    for plugin in &parts.plugins {
        line(&mut out, &format!("- type: {}", plugin.kind));
        if let Some(name) = plugin.name {
            line(&mut out, &format!("  name: {name}"));
        }
        if !plugin.parameters.is_empty() {
            Yaml::Map(plugin.parameters.clone()).field("parameters", 2, &mut out);
        }
    }
    if parts.hears_events() {
        out.push_str(EVENTS);
    }
    match &parts.flow {
        Some(section) => section.field("flowControl", 0, &mut out),
        None if parts.has("utilization-detector") => out.push_str(SATURATION),
        None => {}
    }
    out.push_str("schedulingProfiles:\n- name: default\n  plugins:\n");
    for (name, weight) in &parts.profile {
        line(&mut out, &format!("  - pluginRef: {name}"));
        if let Some(weight) = weight {
            line(&mut out, &format!("    weight: {weight}"));
        }
    }
    out
}

/// How old signals are there.
fn signals(plan: &Plan) -> Note {
    let age = |freshness: Freshness| match freshness {
        Freshness::Immediate => "always fresh".to_owned(),
        Freshness::Periodic { interval } => format!("polled every {} ms", interval.as_millis_f64()),
    };
    let told =
        format!("Simulated: load {}, KV memory {}", age(plan.signals.load), age(plan.signals.kv));
    Note::new("signals", "signals", vec![told])
}

#[cfg(test)]
mod tests;
