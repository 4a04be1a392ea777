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
    let text = exported("strategy: seeds-3-2-2\nkv_tier: {cpu_blocks: 1000}");
    assert!(text.contains("    autoTune: true\n- type"), "as large as llm-d makes it:\n{text}");
    let text = exported("strategy: seeds-3-2-2\nrouting: {lru_capacity: 4000}");
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
fn a_throughput_of_the_simulated_engine_is_no_exact_one() {
    let text = exported("strategy: llm-d-1.0").replace("\n#  ", "");
    let note =
        "# [approximate] filter `prefix-affinity-filter`: the same with a `peak-prefill` that";
    assert!(text.contains(note) && text.contains("divide their tokens by their TTFT"), "{text}");
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
        ("apiVersion: llm-d.ai/v1", "apiVersion: v1"),
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

/// The scenario fields that the strategy in this file sets.
fn fields(strategy: &str) -> String {
    let (_, set) = strategy.split_once("set:\n").expect("it sets something");
    set.lines().map(|line| &line[2..]).collect::<Vec<_>>().join("\n")
}

/// Admission and routing of a scenario, in full.
fn decides(scenario: &str) -> (String, String) {
    let draft = Draft::from_text("s.yaml", scenario).expect("YAML");
    let plan = plan(&draft).unwrap_or_else(|problem| panic!("{problem}"));
    (plan.policies.admission.to_string(), plan.routing())
}

fn imported(text: &str) -> Imported {
    import(&yaml::read_text("epp.yaml", text).expect("YAML"), "mine").expect("a strategy")
}

/// A configuration without its comments.
fn bare(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

#[test]
fn import_after_export_gives_back_every_shipped_strategy_that_can_be_exported() {
    let (mut same, mut alike) = (Vec::new(), Vec::new());
    for shipped in strategy::ALL {
        let scenario = format!("strategy: {}", shipped.name);
        let draft = Draft::from_text("s.yaml", &scenario).expect("YAML");
        let Exported { text, missing } = export(&plan(&draft).expect("legal"), "a test");
        if !missing.is_empty() {
            continue;
        }
        let back = imported(&text);
        assert!(back.left_out.is_empty(), "{}: {:?}", shipped.name, back.left_out);
        let (back, before) = (fields(&back.text), decides(&scenario));
        assert_eq!(bare(&exported(&back)), bare(&text), "{}: another picker", shipped.name);
        // The filter's throughput is that of the engine, and a number in llm-d.
        let after = decides(&back);
        let peak = |text: &str| {
            let (_, behind) = text.split_once("peak-prefill=")?;
            let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
            let given = format!("peak-prefill={digits}");
            let bare = text.replace(&format!(",{given}"), "").replace(&format!("{given},"), "");
            Some(bare.replace(&format!("[{given}]"), ""))
        };
        let after = (after.0, peak(&after.1).unwrap_or(after.1));
        if after == before { &mut same } else { &mut alike }.push(shipped.name);
    }
    let wanted = [
        "llm-d-fallback-3-2-2",
        "llm-d-1.0",
        "llm-d-1.0-precise",
        "llm-d-prefix-active",
        "llm-d-three-scorers",
        "llm-d-three-scorers-precise",
        "llm-d-predicted-latency",
        "session-sticky",
    ];
    assert_eq!(same, wanted, "the same strategy, part by part");
    // What llm-d has instead comes back: queues for loads, requests in flight, random choice.
    let wanted = [
        "least-loaded",
        "seeds-3-2-2",
        "no-kv",
        "pa4qd3",
        "kv-heavy",
        "precise",
        "predicted-latency",
        "slo-tiered",
        "slo-gated",
        "slo-compound",
        "all-layers",
    ];
    assert_eq!(alike, wanted, "the same picker");
}

#[test]
fn flow_control_comes_back_as_it_was() {
    for gate in [
        "flow-control",
        "flow-control[queue-threshold=7,kv-threshold=0.9,staleness=500,standard=200,ttl=30]",
        "flow-control[detector=requests,max-concurrency=132,critical=500,background=50,max-waiting=1000]",
        "flow-control[detector=hybrid,max-tokens=20000,fairness=round-robin,order=slo-deadline]",
    ] {
        let scenario = format!("strategy: llm-d-fallback-3-2-2\nadmission: '{gate}'");
        let back = imported(&exported(&scenario));
        assert!(back.left_out.is_empty(), "{:?}", back.left_out);
        assert_eq!(decides(&fields(&back.text)), decides(&scenario));
    }
}

/// What becomes of a configuration with these plugins, profile and other fields, which is `v1` and
/// `v1alpha1` alike: admission, routing, and what is left out.
fn guide(plugins: &str, profile: &str, more: &str) -> (String, String, Vec<String>) {
    let [v1, v1alpha1] = ["v1", "v1alpha1"].map(|version| {
        imported(&format!(
            "apiVersion: llm-d.ai/{version}\nkind: EndpointPickerConfig\nplugins: [{plugins}]\n\
             schedulingProfiles: [{{name: default, plugins: [{profile}]}}]\n{more}"
        ))
    });
    assert_eq!(v1, v1alpha1);
    let (admission, routing) = decides(&fields(&v1.text));
    (admission, routing, v1.left_out)
}

/// As of `llm-d/llm-d`: guides/optimized-baseline @0a3b0c9, precise-prefix-cache-routing @076e65d,
/// flow-control @99fba21, predicted-latency-routing @4ccd449.
#[test]
fn the_configurations_of_the_guides_of_llm_d_are_imported() {
    let (_, routing, left_out) = guide(
        "{type: token-load-scorer}, {type: inflight-load-producer},
         {type: approx-prefix-cache-producer, parameters: {maxPrefixTokensToMatch: 40960}},
         {type: prefix-cache-affinity-filter, parameters:
           {affinityThreshold: 0.80, maxTokensInFlightPenalty: 286720, maxTTFTPenaltyMs: 0}}",
        "{pluginRef: prefix-cache-affinity-filter}, {pluginRef: token-load-scorer}",
        "",
    );
    let filter = "prefix-affinity-filter[max-penalty=286720,peak-prefill=1000]";
    assert!(routing.contains(filter), "{routing}");
    assert!(routing.contains("token-load[count=projected,normalise=threshold]:1"), "{routing}");
    let capped = "parameter `maxPrefixTokensToMatch` of `approx-prefix-cache-producer`";
    assert_eq!(left_out, [format!("{capped}: no counterpart")]);

    let (_, routing, left_out) = guide(
        "{type: tokenizer, parameters: {modelName: Qwen/Qwen3-32B}},
         {type: endpoint-notification-source}, {type: metrics-data-source},
         {type: core-metrics-extractor}, {type: single-profile-handler}, {type: decode-filter},
         {type: precise-prefix-cache-scorer, parameters:
           {tokenProcessorConfig: {blockSize: 64}, speculativeIndexing: true}},
         {type: kv-cache-utilization-scorer}, {type: queue-scorer}, {type: no-hit-lru-scorer},
         {type: max-score-picker}",
        "{pluginRef: decode-filter}, {pluginRef: kv-cache-utilization-scorer, weight: 2.0},
         {pluginRef: queue-scorer, weight: 2.0},
         {pluginRef: precise-prefix-cache-scorer, weight: 3.0},
         {pluginRef: no-hit-lru-scorer, weight: 2.0}, {pluginRef: max-score-picker}",
        "",
    );
    for scorer in ["precise-prefix:3", "queue:2", "kv-utilization:2", "no-hit-lru"] {
        assert!(routing.contains(scorer), "{scorer} is not in {routing}");
    }
    assert!(left_out.is_empty(), "{left_out:?}");

    let (_, routing, left_out) = guide(
        "{type: approx-prefix-cache-producer}, {type: predicted-latency-producer},
         {name: loose, type: prefix-cache-affinity-filter, parameters:
           {affinityThreshold: 0.8, ttftSource: latencyPredictor, maxTTFTPenaltyMs: 5000}},
         {type: latency-scorer}, {type: weighted-random-picker}",
        "{pluginRef: loose}, {pluginRef: latency-scorer}, {pluginRef: weighted-random-picker}",
        "",
    );
    assert_eq!(routing, decides("strategy: llm-d-predicted-latency").1);
    for part in ["max-penalty=5000,ttft=predicted", "[normalise=llm-d]:1", "weighted-random"] {
        assert!(routing.contains(part), "{part} is not in {routing}");
    }
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn the_flow_control_of_the_guides_is_imported_with_its_bands() {
    let band = |priority: i32, most: u32| {
        format!(
            "{{priority: {priority}, maxRequests: \"{most}\", \
             fairnessPolicyRef: round-robin-fairness-policy, \
             orderingPolicyRef: fcfs-ordering-policy}}"
        )
    };
    let more = format!(
        "featureGates: [flowControl]
flowControl:
  maxBytes: 10Gi
  maxRequests: 1k
  defaultRequestTTL: 60s
  saturationDetector: {{pluginRef: concurrency-detector}}
  priorityBands: [{}, {}, {}]
",
        band(100, 500),
        band(0, 200),
        band(-10, 50)
    );
    let (admission, routing, left_out) = guide(
        "{type: queue-scorer}, {type: kv-cache-utilization-scorer}, {type: prefix-cache-scorer},
         {type: round-robin-fairness-policy}, {type: fcfs-ordering-policy},
         {type: concurrency-detector, parameters:
           {maxConcurrency: 132, concurrencyMode: requests, headroom: 0.0}}",
        "{pluginRef: queue-scorer, weight: 2}, {pluginRef: kv-cache-utilization-scorer, weight: 2},
         {pluginRef: prefix-cache-scorer, weight: 3}",
        &more,
    );
    let wanted = "flow-control[detector=requests,max-concurrency=132,max-waiting=1000,\
                  critical=500,standard=200,sheddable=50,fairness=round-robin]";
    assert_eq!(admission, wanted);
    assert_eq!(routing, decides("strategy: llm-d-fallback-3-2-2").1);
    assert_eq!(left_out, ["`flowControl.maxBytes`: no counterpart"]);
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
            "plugin `ghost`: it is not declared",
            "plugin `lora-affinity-scorer` of type `lora-affinity-scorer`: no counterpart",
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
    assert!(refused(bad).contains("maxBusyScore: found `7`; legal: a number from 0 to 1"));
}

#[test]
fn every_parameter_with_a_value_that_it_cannot_have_is_named_at_its_place() {
    let config = |plugins: &str| {
        let text = format!(
            "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins: [{plugins}]\n\
             schedulingProfiles: [{{plugins: [{{pluginRef: latency-scorer}}]}}]"
        );
        import(&yaml::read_text("epp.yaml", &text).expect("YAML"), "x")
    };
    let refused = config(
        "{type: latency-scorer, parameters: {ttftWeight: much, tpotWeight: -1}},
        {type: approx-prefix-cache-producer, parameters: {autoTune: 3, lruCapacityPerServer: big}},
        {type: session-id-producer, parameters: {ttl: soon}},
        {type: concurrency-detector, parameters: {headroom: [1], maxConcurrency: .inf}},
        {type: precise-prefix-cache-scorer, parameters: {speculativeTTL: 5,
          indexerConfig: {kvCacheBackendConfigs: [{name: cpu, weight: half}]}}}",
    );
    let refused = refused.expect_err("illegal values").to_string();
    for told in [
        "epp.yaml:3:59: plugins[0].parameters.ttftWeight: found `much`; legal: a number from 0\n",
        "plugins[0].parameters.tpotWeight: found `-1`",
        "plugins[1].parameters.autoTune: found `3`; legal: `true` or `false`",
        "plugins[1].parameters.lruCapacityPerServer: found `big`; legal: a whole number from 0",
        "plugins[2].parameters.ttl: found `soon`; legal: a time such as `30s`",
        "plugins[3].parameters.headroom: found `[1]`",
        "plugins[3].parameters.maxConcurrency: found `.inf`",
        "plugins[4].parameters.speculativeTTL: found `5`",
        "[0].weight: found `half`; legal: a number from 0 to 1",
    ] {
        assert!(refused.contains(told), "{told} is not in {refused}");
    }
    let legal = config(
        "{type: latency-scorer, parameters: {ttftWeight: 1, headroomSelectionStrategy: composite}},
        {type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 16}},
        {type: session-id-producer, parameters: {ttl: 1m30s}}",
    );
    let word = "`plugins[0].parameters.headroomSelectionStrategy: composite`: no counterpart";
    assert_eq!(legal.expect("legal").left_out, [word]);
}

#[test]
fn without_profiles_all_plugins_route() {
    let found = imported(
        "kind: EndpointPickerConfig
plugins: [{type: queue-scorer}, {type: utilization-detector}, {type: active-request-scorer}]
",
    );
    let (_, routing) = decides(&fields(&found.text));
    assert!(routing.contains("queue:1") && routing.contains("active-request:1"), "{routing}");
    assert!(!routing.contains("kv-filter"), "it detects saturation: {routing}");
}

#[test]
fn nothing_of_a_configuration_is_dropped_in_silence() {
    let config = |more: &str| {
        let text = format!(
            "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\n\
             plugins: [{{type: queue-scorer}}]\n\
             schedulingProfiles: [{{name: default, plugins: [{{pluginRef: queue-scorer}}]}}]\n{more}"
        );
        import(&yaml::read_text("epp.yaml", &text).expect("YAML"), "x")
    };
    assert!(config("").expect("legal").left_out.is_empty());
    for (more, line) in [
        (
            "saturationDetector: {queueDepthThreshold: 20}",
            "saturationDetector.queueDepthThreshold`",
        ),
        ("featureGates: [foo]", "feature gate `foo`"),
        ("saturationDetector: {pluginRef: nope}", "there is no plugin `nope`"),
        ("foo: 1", "`foo`: no counterpart"),
        ("flowControl: {foo: 1}", "`flowControl.foo`"),
        ("flowControl: {maxRequests: 5}", "its feature gate is off"),
        (
            "flowControl: {priorityBands: [{maxBytes: 5}]}",
            "`flowControl.priorityBands[0].maxBytes`",
        ),
    ] {
        let left_out = config(more).expect(more).left_out;
        assert!(left_out.iter().any(|told| told.contains(line)), "{more}: {left_out:?}");
    }
    for (more, told) in [
        ("featureGates: flowControl", "epp.yaml:5:15: featureGates: found `flowControl`; legal: a"),
        ("flowControl: {defaultRequestTTL: -5s}", "legal: a time such as `30s`"),
        ("flowControl: {priorityBands: [{maxRequests: -1}]}", "[0].maxRequests: found `-1`; legal"),
        ("flowControl: x", "epp.yaml:5:14: flowControl: found `x`; legal: fields"),
    ] {
        let found = config(more).expect_err(more).to_string();
        assert!(found.contains(told), "{found}");
    }
    let changed = |from: &str, to: &str| {
        let text = "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\n\
                    plugins: [{type: queue-scorer}]\nschedulingProfiles: [{plugins: [\
                    {pluginRef: queue-scorer, weight: 2}]}]";
        import(&yaml::read_text("epp.yaml", &text.replace(from, to)).expect("YAML"), "x")
    };
    let version = changed("llm-d.ai/v1", "foo/v9").expect("read all the same").left_out;
    assert!(version[0].contains("`apiVersion: foo/v9`"), "{version:?}");
    for (from, to, told) in [
        (
            "weight: 2",
            "weight: []",
            "epp.yaml:4:67: schedulingProfiles[0].plugins[0].weight: found",
        ),
        ("[{type: queue-scorer}]", "x", "epp.yaml:3:10: plugins: found `x`; legal: a list"),
        ("weight: 2", "weight: 0", "epp.yaml:1:1: routing.scorers: "),
    ] {
        let found = changed(from, to).expect_err(to).to_string();
        assert!(found.starts_with(told), "{found}");
    }
}
