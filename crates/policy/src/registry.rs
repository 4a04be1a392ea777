//! All policies of all kinds, for those who list them: `blis policies`, the generated reference
//! page and the optimiser. It must never know a policy by name: a new one shows up by its line in
//! `ALL`.

use crate::spec::Spec;
use crate::view::Needs;
use crate::{admission, evict, formula, offload, order, preempt, priority, routing};
use blis_core::{Param, ParamKind, Values};
use std::fmt::Write;

/// A kind of policy, with all there are.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Short name, e.g. `admission`.
    pub name: &'static str,
    /// Title for pages, e.g. "Admission policies".
    pub title: &'static str,
    /// The key in scenario files that selects one.
    pub yaml_key: &'static str,
    /// The policies, by name.
    pub entries: Vec<Entry>,
}

/// A policy as a list shows it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Spelling in files and flags.
    pub name: &'static str,
    /// Short spelling.
    pub alias: Option<&'static str>,
    /// One sentence: what it prefers.
    pub help: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it reads, with default parameters.
    pub needs: Needs,
}

/// All kinds, in the order in which a request meets them.
pub fn kinds() -> Vec<Kind> {
    vec![
        kind("admission", "Admission policies", "admission", admission::ALL),
        kind("routing", "Routing policies", "routing", routing::ALL),
        kind("scorer", "Scorers", "routing.scorers", routing::scorers::ALL),
        kind("filter", "Filters", "routing.filters", routing::filters::ALL),
        kind("picker", "Pickers", "routing.picker", routing::pickers::ALL),
        kind("order", "Orders of waiting requests", "scheduler", order::ALL),
        kind("priority", "Priority policies", "priority", priority::ALL),
        kind("preempt", "Preemption policies", "preempt", preempt::ALL),
        kind("evict", "Eviction policies", "evict", evict::ALL),
        kind("offload", "Offload policies", "kv_tier.offload", offload::ALL),
    ]
}

/// The reference page: every kind a section, every policy with its signals and parameters.
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# Policies\n\nA policy is spelled `name` or `name[parameter=value,...]`, in flags and in \
         scenario files. An\nalias can stand for the name.\n",
    );
    for kind in kinds() {
        line(&mut page, format_args!("\n## {} (`{}`)", kind.title, kind.yaml_key));
        for entry in &kind.entries {
            render(&mut page, entry);
        }
    }
    formula::reference(&mut page);
    page
}

impl Entry {
    fn new<P: ?Sized>(spec: &Spec<P>) -> Entry {
        // Destructured without `..`, so that a new field makes this line decide whether lists show
        // it.
        let Spec { name, alias, help, params, needs, build: _ } = *spec;
        let needs = needs(&Values::defaults(params));
        Entry { name, alias, help, params, needs }
    }
}

fn kind<P: ?Sized>(
    name: &'static str,
    title: &'static str,
    yaml_key: &'static str,
    all: &[&Spec<P>],
) -> Kind {
    Kind { name, title, yaml_key, entries: all.iter().map(|spec| Entry::new(spec)).collect() }
}

fn render(page: &mut String, entry: &Entry) {
    line(page, format_args!("\n### `{}`\n\n{}.", entry.name, entry.help));
    if let Some(alias) = entry.alias {
        line(page, format_args!("\nAlias: `{alias}`."));
    }
    line(page, format_args!("\nSignals read: {}.", signals(entry.needs)));
    if entry.params.is_empty() {
        line(page, format_args!("\nNo parameters."));
        return;
    }
    line(page, format_args!("\n| parameter | kind | legal | default | unit | meaning |"));
    line(page, format_args!("|---|---|---|---|---|---|"));
    for param in entry.params {
        let Param { name, kind, unit, help, when } = param;
        let when = when.map_or(String::new(), |when| format!("; read if {when}"));
        let (word, legal, default) = (kind_word(kind), kind.legal(), kind.default_value());
        let row =
            format_args!("| `{name}` | {word} | {legal} | `{default}` | {unit} | {help}{when} |");
        line(page, row);
    }
}

/// What is behind `needs`, as a list.
fn signals(needs: Needs) -> String {
    // Destructured without `..`, so that a new need is told.
    let Needs {
        load,
        classes,
        kv,
        hit_rate,
        transfers,
        events,
        answers,
        cached,
        priority,
        sessions,
        future,
    } = needs;
    let groups: [(bool, &[&str]); 11] = [
        (load, &["`queue_depth`", "`running`", "`unseen`"]),
        (classes, &["`waiting_by_class`"]),
        (kv, &["`kv_utilization`", "`free_blocks`"]),
        (hit_rate, &["`cache_hit_rate`"]),
        (transfers, &["`pending_transfer_us`", "`thrashing_rate`"]),
        (events, &["`cached_blocks` and `cached_cpu_blocks` from KV events"]),
        (answers, &["answers as they pass the gateway"]),
        (cached, &["`cached_blocks` of waiting requests"]),
        (priority, &["priorities"]),
        (sessions, &["`session_live`"]),
        (future, &["`next_use`, which only an oracle knows"]),
    ];
    let read = groups.iter().filter(|(read, _)| *read);
    let names: Vec<&str> = read.flat_map(|(_, names)| names.iter().copied()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn kind_word(kind: &ParamKind) -> &'static str {
    match kind {
        ParamKind::Float { .. } => "number",
        ParamKind::Log { .. } => "number, searched by its logarithm",
        ParamKind::Int { .. } => "whole number",
        ParamKind::IntOrAuto { .. } => "whole number or `auto`",
        ParamKind::Flag { .. } => "flag",
        ParamKind::Choice { .. } => "choice",
        ParamKind::Formula { .. } => "formula",
    }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_shows_every_policy_and_every_parameter() {
        let page = reference_markdown();
        for kind in kinds() {
            assert!(page.contains(&format!("## {} (`{}`)\n", kind.title, kind.yaml_key)));
            for entry in kind.entries {
                assert!(page.contains(&format!("### `{}`\n\n{}.\n", entry.name, entry.help)));
                for param in entry.params {
                    assert!(page.contains(&format!("| `{}` |", param.name)), "{}", param.name);
                }
            }
        }
        assert!(page.contains(
            "| `lru-capacity` | whole number or `auto` | `auto` or a whole number from 1 to \
             100000000 | `auto` | blocks |"
        ));
        assert!(page.contains("Signals read: `queue_depth`, `running`, `unseen`."));
    }
}
