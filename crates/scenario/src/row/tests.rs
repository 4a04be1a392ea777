//! Rows read back as what they were written from.

use super::*;
use crate::run::run_scenario;
use crate::scenario::Draft;
use crate::scenario::Trial;

/// Classes, tenants, a tier that is used, preemptions and a rate that is a share of saturation.
const SCENARIO: &str = "
cluster: {instances: 2}
engine: {total_kv_blocks: 300}
kv_tier: {cpu_blocks: 500}
routing: {policy: weighted, scorers: 'pa:1,qd:1'}
workload: {preset: mixed-slo-multi-turn, num_requests: 300}
";

fn row(scenario: &str, curves: bool) -> Row {
    let plan = Draft::from_text("s.yaml", scenario).expect("YAML").plan().expect("legal");
    let trial = Trial { curves, ..Trial::new(7) };
    let result =
        run_scenario(&plan, trial, &mut [], None, &mut blis_sim::Unobserved).expect("it runs");
    Row::of(&plan, &result)
}

#[test]
fn a_row_reads_back_as_itself_byte_for_byte() {
    let row = row(SCENARIO, true);
    let report = &row.report;
    assert!(report.classes.len() > 1 && report.kv.tier.offloaded_blocks > 0, "there is much in it");
    assert!(report.cluster.preemptions > 0 && report.cluster.ttft.samples > 0);
    assert_eq!(report.curves.as_ref().expect("asked for").classes.len(), report.classes.len());
    let text = row.text();
    let again = Row::parse(&text).expect("a row");
    assert_eq!(again, row);
    assert_eq!(again.text(), text);
}

#[test]
fn numbers_that_are_hard_to_write_read_back_to_the_last_bit() {
    let mut row = Row::default();
    for bits in [1_u64, 0x3fb9_9999_9999_999a, 0x4340_0000_0000_0001, 0x7fef_ffff_ffff_ffff] {
        for bits in bits..bits + 500 {
            row.report.cluster.ttft.mean_ms = Some(f64::from_bits(bits)).filter(|n| n.is_finite());
            assert_eq!(Row::parse(&row.text()).expect("a row"), row, "{bits:x}");
        }
    }
}

#[test]
fn keys_that_are_not_known_are_skipped_and_missing_ones_are_absent() {
    let row = row("workload: {distribution: {num_requests: 20}}", false);
    let mut value: Value = serde_json::from_str(&row.text()).expect("JSON");
    value["cluster"]["novelty"] = true.into();
    value["novelties"] = vec![1, 2].into();
    value["classes"]["royal"] = value["classes"]["standard"].clone();
    assert_eq!(Row::parse(&value.to_string()).expect("a row"), row);
    value["cluster"].as_object_mut().expect("an object").remove("ttft_p99_ms");
    let older = Row::parse(&value.to_string()).expect("a row");
    assert_eq!(older.report.cluster.ttft.p99_ms, None);
}

/// Replaces each number by one that no other is.
fn distinct(value: &mut Value, last: &mut u64) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|value| distinct(value, last)),
        Value::Number(number) => {
            *last += 1;
            *number = (*last).into();
        }
        _ => {}
    }
}

#[test]
fn every_metric_of_the_table_is_the_number_at_its_key() {
    use blis_metrics::metric::{self, Value as Place};
    let mut row = row(SCENARIO, false);
    row.report.cluster.abandoned = 1;
    let mut value: Value = serde_json::from_str(&row.text()).expect("JSON");
    let mut last = 100;
    for group in ["cluster", "kv", "routing", "steady"] {
        distinct(&mut value[group], &mut last);
    }
    let row = Row::parse(&value.to_string()).expect("a row");
    for metric in metric::all().filter(|metric| !metric.key.is_empty()) {
        let (path, found) = match metric.value {
            Place::OfRequests(of) => (format!("cluster.{}", metric.key), of(&row.report.cluster)),
            Place::OfCluster(of) => (metric.key.to_owned(), of(&row.report)),
            Place::Counted | Place::Searched => continue,
        };
        let written = value.pointer(&format!("/{}", path.replace('.', "/")));
        assert!(found.is_some(), "{path}");
        assert_eq!(found, written.and_then(Value::as_f64), "{path}");
    }
}

#[test]
fn what_is_no_row_is_told() {
    let refusal = |text: &str| Row::parse(text).expect_err("no row");
    assert!(refusal("{").starts_with("EOF while parsing"));
    assert_eq!(refusal("{}"), "`schema` is missing: it is not a row of a trial");
    let newer = "its layout is 2, this version reads up to 1; update blis";
    assert_eq!(refusal(r#"{"schema":2}"#), newer);
    let wrong = r#"{"schema":1,"kv":{"tier":1,"evicted_blocks":"many"}}"#;
    assert!(refusal(wrong).starts_with("invalid type: string \"many\", expected u64"));
}
