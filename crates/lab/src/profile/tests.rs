//! Tests of profile files.

use super::*;
use blis_latency::{StepShape, StepTime};

fn some_text() -> String {
    SHIPPED[0].1.to_owned()
}

#[test]
fn what_is_written_reads_back_and_predicts_the_same_bits() {
    let file = from_text("p", &some_text()).expect("shipped");
    let again = from_text("q", &text(&file)).expect("written here");
    assert_eq!(again, file);
    let shape = StepShape {
        decode_seqs: 37,
        decode_context: 41_234,
        decode_longest: 2_345,
        ..StepShape::default()
    };
    assert_eq!(again.profile.predict(&shape), file.profile.predict(&shape));
}

#[test]
fn shipped_profiles_are_found_by_machine() {
    let model = "meta-llama/llama-3.1-8b-instruct";
    let found = shipped(model, Some("h200"), Some(1)).expect("it ships");
    assert_eq!(found.machine.hardware.as_deref(), Some("H200"));
    assert!(shipped(model, Some("H200"), None).is_some());
    assert!(shipped(model, Some("H200"), Some(2)).is_none());
    assert!(shipped(model, Some("H100"), None).is_none());
    assert!(!found.profile.parameters().provenance.is_empty());
    assert!(!found.profile.parameters().covariance.is_empty());
    assert!(found.profile.parameters().drift > 0.0);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let refuses = |from: &str, to: &str| {
        let changed = some_text().replacen(from, to, 1);
        assert_ne!(changed, some_text(), "`{from}` is not in the text");
        from_text("p.yaml", &changed).expect_err("illegal").to_string()
    };
    let message = refuses("  kv_read:", "  kv_raed:");
    assert!(message.contains("unknown term `kv_raed`, did you mean `kv_read`?"), "{message}");
    assert!(message.starts_with("p.yaml:"), "{message}");
    assert!(refuses(FORMAT, "blis-profile/9").contains("found `blis-profile/9`"));
    assert!(refuses("  weights: ", "  weights: -").contains("legal: a number from 0"));
    assert!(refuses("sizes: [1, 2,", "sizes: [1, 1,").contains("more than the size before"));
    assert!(refuses("  decode_seqs: [", "  decode_seqs: [7, ").contains("the least and the"));
    assert!(refuses("covariance:\n  - [", "covariance:\n  - [1, ").contains("legal: 1"));
    assert!(refuses("  prefill_seqs: [", "  prefil_seqs: [").contains("`prefill_seqs`"));
}
