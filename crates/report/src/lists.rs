//! What ships: policies, workloads, targets, strategies, and what other systems have instead.

use crate::model::{Block, Document, Table};
use crate::text::dash;
use blis_core::{Param, SloClass};
use blis_export::{System, coverage};
use blis_lab::verdict::number;
use blis_metrics::SloTarget;
use blis_policy::{Entry, Kind, kinds};
use blis_scenario::json::present;
use blis_scenario::presets::{self, Preset};
use blis_scenario::slo::{self, SloSet};
use blis_scenario::strategy::{Parameter, ParameterKind, Strategy};
use serde_json::{Map, Value, json};

/// Policies with their parameters.
pub fn policies(kinds: &[Kind]) -> Document {
    let of_entry = |entry: &Entry| {
        let alias = entry.alias.map_or_else(String::new, |alias| format!(" ({alias})"));
        let policy = [format!("{}{alias}", entry.name), String::new(), entry.help.to_owned()];
        std::iter::once(policy).chain(entry.params.iter().map(parameter)).collect::<Vec<_>>()
    };
    let group = |kind: &Kind| {
        let rows = kind.entries.iter().flat_map(of_entry);
        let table = Table::new("", ["policy", "parameter", "meaning"], rows).keyed(2);
        Block::group(&format!("{} (`{}`)", kind.title, kind.yaml_key), vec![table.into()])
    };
    let data = kinds.iter().map(blis_scenario::policies::object).collect();
    Document::new("Policies", kinds.iter().map(group).collect(), data)
}

fn parameter(param: &Param) -> [String; 3] {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" {}", param.unit) };
    let default = format!("{} = {}{unit}", param.name, param.kind.default_value());
    [String::new(), default, format!("{} ({})", param.help, param.kind.legal())]
}

/// The workloads and the sets of targets that ship.
pub fn workloads() -> Document {
    let presets_of = presets::ALL.iter().map(|it| [it.name.to_owned(), it.summary.to_owned()]);
    let sets = slo::ALL.iter().map(|it| [it.name.to_owned(), it.summary.to_owned()]);
    let targets = slo::ALL.iter().flat_map(|set| {
        let classes = SloClass::ALL.into_iter().zip(&set.classes);
        let row = |(class, target): (SloClass, &SloTarget)| {
            let SloTarget { ttft_ms, itl_ms, e2e_ms } = *target;
            let [ttft, itl, e2e] = [ttft_ms, itl_ms, e2e_ms].map(|ms| dash(ms, number));
            [set.name.to_owned(), class.name().to_owned(), ttft, itl, e2e]
        };
        classes.filter(|(_, target)| **target != SloTarget::default()).map(row).collect::<Vec<_>>()
    });
    let header = ["targets", "class", "TTFT, ms", "ITL, ms", "E2E, ms"];
    let hint = "`blis workloads NAME` prints one, as a file for `--workload-spec`.";
    let blocks = vec![
        Block::group(
            "Workloads (`--workload NAME`)",
            vec![Table::new("", ["workload", "summary"], presets_of).into(), Block::prose(hint)],
        ),
        Block::group(
            "Targets (`slo: NAME` in a scenario or workload)",
            vec![
                Table::new("", ["targets", "summary"], sets).into(),
                Table::new("", header, targets).keyed(2).into(),
            ],
        ),
    ];
    let data = json!({
        "workloads": presets::ALL.iter().map(preset).collect::<Vec<_>>(),
        "slo": slo::ALL.iter().map(targets_of).collect::<Vec<_>>(),
    });
    Document::new("Workloads and targets", blocks, data)
}

/// A workload, for programs.
pub fn preset(preset: &Preset) -> Value {
    json!({"name": preset.name, "summary": preset.summary, "text": preset.text})
}

fn targets_of(set: &SloSet) -> Value {
    let class = |(class, target): (SloClass, &SloTarget)| {
        let SloTarget { ttft_ms, itl_ms, e2e_ms } = *target;
        let numbers = present(json!({"ttft_ms": ttft_ms, "itl_ms": itl_ms, "e2e_ms": e2e_ms}));
        (*target != SloTarget::default()).then(|| (class.name().to_owned(), numbers))
    };
    let classes = SloClass::ALL.into_iter().zip(&set.classes).filter_map(class);
    json!({
        "name": set.name,
        "summary": set.summary,
        "source": set.source,
        "classes": classes.collect::<Map<_, _>>(),
    })
}

/// Strategies with their parameters.
pub fn strategies(all: &[Strategy]) -> Document {
    let row = |strategy: &Strategy| {
        let given = strategy.parameters.iter().map(|it| format!("{}={}", it.name, it.default));
        let parameters = given.collect::<Vec<_>>().join(", ");
        [strategy.name.clone(), strategy.help.clone(), parameters]
    };
    let header = ["strategy", "summary", "parameters"];
    let hint = "Choose one with `--strategy NAME[PARAMETER=VALUE,...]`; `blis strategies NAME` \
                prints one, as a file to start from.";
    let blocks = vec![Table::new("", header, all.iter().map(row)).into(), Block::prose(hint)];
    Document::new("Strategies", blocks, all.iter().map(strategy).collect())
}

/// A strategy, for programs.
pub fn strategy(strategy: &Strategy) -> Value {
    let parameter = |p: &Parameter| {
        let (kind, legal) = match &p.kind {
            ParameterKind::Float { min, max, log } => {
                (if *log { "log" } else { "float" }, json!([min, max]))
            }
            ParameterKind::Int { min, max } => ("int", json!([min, max])),
            ParameterKind::Choice(choices) => ("choice", json!(choices)),
        };
        json!({"name": p.name, "kind": kind, "legal": legal, "default": p.default, "help": p.help})
    };
    let parameters: Vec<Value> = strategy.parameters.iter().map(parameter).collect();
    json!({"name": strategy.name, "help": strategy.help, "parameters": parameters})
}

/// What llm-d and vLLM have instead of each policy.
pub fn coverage() -> Document {
    let kinds = kinds();
    let all: Vec<(&str, &coverage::Mapping)> = kinds
        .iter()
        .flat_map(|kind| kind.entries.iter().map(|entry| (kind.name, entry.name)))
        .map(|(kind, name)| (System::of(kind).name(), coverage::of(kind, name)))
        .collect();
    let row = |(system, it): &(&str, &coverage::Mapping)| {
        [it.name, it.kind, *system, it.fit.told().0].map(str::to_owned)
    };
    let object = |(system, it): &(&str, &coverage::Mapping)| {
        let (fit, note) = it.fit.told();
        json!({
            "kind": it.kind,
            "policy": it.name,
            "system": system,
            "fit": fit,
            "by": it.by,
            "note": note,
        })
    };
    let table = Table::new("", ["policy", "kind", "system", "fit"], all.iter().map(row)).keyed(2);
    let data = all.iter().map(object).collect();
    Document::new("Policies in llm-d and vLLM", vec![table.into()], data)
}
