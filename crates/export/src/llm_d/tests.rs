//! Tests of the file beside.

use super::*;
use crate::coverage::{self, System};
use crate::plan;
use blis_policy::kinds;
use blis_scenario::scenario::Draft;
use blis_scenario::{strategy, yaml};

fn exported(text: &str) -> String {
    let draft = Draft::from_text("s.yaml", text).expect("YAML");
    export(&plan(&draft).expect(text), "a test").text
}

/// A scenario with the policy `name` of `kind`, for those of the gateway.
fn scenario(kind: &str, name: &str) -> String {
    let tier = "kv_tier: {cpu_blocks: 1000}";
    match (kind, name) {
        ("admission", "all-of" | "any-of") => format!("admission: '{name}(slo-gated; kv-gate)'"),
        ("admission", _) => format!("admission: {name}"),
        ("routing", _) => format!("routing: {name}"),
        ("scorer", "kv-utilization") => "routing: {policy: weighted, scorers: 'kv:1'}".to_owned(),
        ("scorer", _) => format!("routing: {{policy: weighted, scorers: '{name}:3,kv:1'}}\n{tier}"),
        ("filter", _) => format!("routing: {{policy: weighted, scorers: 'qd:1', filters: {name}}}"),
        ("picker", _) => format!("routing: {{policy: weighted, scorers: 'qd:1', picker: {name}}}"),
        _ => panic!("{kind} is not the gateway's"),
    }
}

#[test]
fn every_policy_of_the_gateway_is_exported_as_the_table_says() {
    let mut seen = 0;
    for kind in kinds().into_iter().filter(|kind| System::of(kind.name) == System::LlmD) {
        for entry in &kind.entries {
            // `export` itself refuses what llm-d does not read.
            let text = exported(&scenario(kind.name, entry.name));
            let mapping = coverage::of(kind.name, entry.name);
            for plugin in &mapping.by {
                let line = format!("- type: {plugin}\n");
                assert!(text.contains(&line), "{} does not become {plugin}:\n{text}", entry.name);
            }
            let (word, _) = mapping.fit.told();
            let note = format!("# [{word}] {} `{}`", kind.name, entry.name);
            assert!(text.contains(&note), "no comment `{note}`:\n{text}");
            seen += 1;
        }
    }
    assert!(seen > 35, "a short registry: {seen}");
}

#[test]
fn every_strategy_that_ships_is_exported() {
    for shipped in strategy::ALL {
        let text = exported(&format!("strategy: {}", shipped.name));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(schema::problems(&text).is_empty());
    }
}

#[test]
fn the_default_of_llm_d_has_its_weights_and_a_memory_of_as_many_tokens() {
    let text = exported("strategy: seeds-3-2-2\nengine: {total_kv_blocks: 4000}");
    assert!(
        text.contains("    autoTune: true\n- type"),
        "as large as the servers' caches:\n{text}"
    );
    let tier = "engine: {total_kv_blocks: 3000}\nkv_tier: {cpu_blocks: 1000}";
    let text = exported(&format!("strategy: seeds-3-2-2\n{tier}"));
    let profile = "\
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: kv-cache-utilization-scorer
    weight: 2
  - pluginRef: approximate-prefix
    weight: 3
  - pluginRef: queue-scorer
    weight: 2
  - pluginRef: max-score-picker
";
    assert!(text.ends_with(profile), "{text}");
    let memory = "    blockSizeTokens: 64\n    lruCapacityPerServer: 1000\n";
    assert!(text.contains(memory), "4000 blocks of 16 tokens are 1000 of 64:\n{text}");
}

#[test]
fn precise_knowledge_brings_its_events_tiers_and_speculation_along() {
    let text = exported(
        "strategy: precise\nkv_tier: {cpu_blocks: 500}\nsignals: {speculative_ttl_us: 1500000}",
    );
    for part in [
        "      blockSize: 16\n",
        "{\"name\": \"cpu\", \"weight\": 0.8}",
        "    speculativeIndexing: true\n    speculativeTTL: \"1500ms\"\n",
        "  - pluginRef: endpoint-notification-source\n    extractors:\n    - pluginRef: precise-prefix-cache-producer\n",
        "    prefixMatchInfoProducerName: precise-prefix-cache-producer\n",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
    assert!(!text.contains("approx-prefix-cache-producer"), "{text}");
}

#[test]
fn gates_become_the_thresholds_of_the_detector() {
    let text = exported("admission: 'all-of(slo-gated[threshold=8]; kv-gate[free-share=0.1])'");
    let detector = "\
- type: utilization-detector
  parameters:
    queueDepthThreshold: 8
    kvCacheUtilThreshold: 0.9
";
    assert!(text.contains(detector), "{text}");
    assert!(
        text.contains("  saturationDetector:\n    pluginRef: utilization-detector\n"),
        "{text}"
    );
}

#[test]
fn what_llm_d_does_not_read_is_found() {
    let good = exported("strategy: precise\nkv_tier: {cpu_blocks: 500}\nadmission: slo-gated");
    assert!(schema::problems(&good).is_empty());
    for (from, to) in [
        ("type: queue-scorer", "type: queue-depth-scorer"),
        ("queueDepthThreshold: 5", "queueDepthLimit: 5"),
        ("queueDepthThreshold: 5", "queueDepthThreshold: 0"),
        ("kvCacheUtilThreshold: 1", "kvCacheUtilThreshold: 1.5"),
        ("blockSize: 16", "blockSize: 16.5"),
        ("\"name\": \"cpu\"", "\"name\": \"tape\""),
        ("  - pluginRef: queue-scorer", "  - pluginRef: queue"),
        ("  - pluginRef: max-score-picker\n", ""),
        ("    pluginRef: utilization-detector", "    pluginRef: detector"),
        ("    - pluginRef: precise-prefix-cache-producer", "    - pluginRef: precise"),
        ("apiVersion: llm-d.ai/v1alpha1", "apiVersion: v1"),
        ("kind: EndpointPickerConfig", "kind: InferencePool"),
        ("schedulingProfiles:", "profiles:"),
        ("- type: max-score-picker", "- type: max-score-picker\n- type: max-score-picker"),
        ("    weight: 1\n", ""),
        ("plugins:\n", "plugins: [\n"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "`{from}` is not in\n{good}");
        assert!(!schema::problems(&bad).is_empty(), "`{to}` was accepted");
    }
}

/// The routing of the strategy in this file.
fn routing(strategy: &str) -> String {
    let (_, set) = strategy.split_once("set:\n").expect("it sets something");
    let fields: Vec<&str> = set.lines().map(|line| &line[2..]).collect();
    let draft = Draft::from_text("s.yaml", &fields.join("\n")).expect("YAML");
    plan(&draft).unwrap_or_else(|problem| panic!("{problem}")).routing()
}

fn imported(text: &str) -> Imported {
    import(&yaml::read_text("epp.yaml", text).expect("YAML"), "mine").expect("a strategy")
}

#[test]
fn an_exported_strategy_of_llm_d_is_imported_as_it_was() {
    for name in ["llm-d-fallback-3-2-2", "llm-d-1.0", "llm-d-1.0-precise"] {
        let scenario = format!("strategy: {name}");
        let draft = Draft::from_text("s.yaml", &scenario).expect("YAML");
        let before = plan(&draft).expect("legal");
        let back = imported(&exported(&scenario));
        let given = match back.text.split_once("peak-prefill=") {
            // The filter's throughput is that of the engine, and a number in llm-d.
            Some((head, rest)) => {
                let rest = rest.split_once(',').expect("it is not the last").1;
                format!("{head}peak-prefill=auto,{rest}")
            }
            None => back.text.clone(),
        };
        assert_eq!(routing(&given), before.routing(), "{name}");
        assert!(back.left_out.is_empty(), "{:?}", back.left_out);
    }
}

#[test]
fn a_configuration_inside_helm_values_is_found_and_what_has_no_counterpart_is_listed() {
    let values = "
router:
  epp:
    pluginsCustomConfig:
      mine.yaml: |
        apiVersion: llm-d.ai/v1
        kind: EndpointPickerConfig
        plugins:
        - type: approx-prefix-cache-producer
        - type: precise-prefix-cache-producer
        - {name: warm, type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
        - {type: active-request-scorer, parameters: {idleThreshold: 3}}
        - {type: lora-affinity-scorer}
        - {type: no-hit-lru-scorer}
        - {type: probabilistic-admitter, parameters: {k: 200}}
        schedulingProfiles:
        - name: prefill
        - name: default
          plugins:
          - {pluginRef: warm, weight: 2}
          - {pluginRef: active-request-scorer, weight: 4}
          - {pluginRef: lora-affinity-scorer}
          - {pluginRef: no-hit-lru-scorer}
          - {pluginRef: ghost}
";
    let Imported { text, left_out } = imported(values);
    let wanted = "name: \"mine\"
help: \"llm-d's endpoint picker, as configured\"
set:
  admission: \"probabilistic[k=200]\"
  routing:
    policy: weighted
    scorers: \"precise-prefix:2,active-request[idle=3]:4,no-hit-lru[knowledge=approximate]:1\"
    picker: max-score
";
    assert_eq!(text, wanted);
    assert_eq!(
        left_out,
        [
            "profile `prefill`: one profile routes here",
            "plugin `lora-affinity-scorer` of type `lora-affinity-scorer`: no counterpart",
            "plugin `ghost`: it is not declared",
        ]
    );
}

#[test]
fn what_is_no_configuration_or_has_an_illegal_value_is_refused() {
    let refused = |text: &str| {
        let tree = yaml::read_text("epp.yaml", text).expect("YAML");
        import(&tree, "mine").expect_err("refused").to_string()
    };
    assert!(refused("kind: Pod").contains("no `kind: EndpointPickerConfig`"));
    let bad = "
kind: EndpointPickerConfig
plugins: [{type: active-request-scorer, parameters: {maxBusyScore: 7}}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: active-request-scorer}]}]
";
    assert!(refused(bad).contains("max-busy"), "{}", refused(bad));
}
