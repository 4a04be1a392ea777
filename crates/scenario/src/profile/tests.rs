//! Tests of profile files.

use super::*;
use blis_latency::{StepShape, StepTime};

/// The one whose terms are all in its steps.
fn some_text() -> String {
    SHIPPED[1].1.to_owned()
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
    assert!(found.profile.parameters().host.is_some(), "vLLM's comes first");
    assert!(shipped(model, Some("H200"), None).is_some());
    assert!(shipped(model, Some("H200"), Some(2)).is_none());
    assert!(shipped(model, Some("H100"), None).is_none());
    assert!(!found.profile.parameters().provenance.is_empty());
    assert!(!found.profile.parameters().covariance.is_empty());
    assert!(found.profile.parameters().drift > 0.0);
}

/// How a profile is refused that has `to` in the place of `from`.
fn refuses(from: &str, to: &str) -> String {
    let changed = some_text().replacen(from, to, 1);
    assert_ne!(changed, some_text(), "`{from}` is not in the text");
    from_text("p.yaml", &changed).expect_err("illegal").to_string()
}

#[test]
fn a_negative_variance_is_refused() {
    let negative = refuses("covariance:\n  - [", "covariance:\n  - [-");
    assert!(negative.contains("legal: a variance, which is 0 or more"), "{negative}");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
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

#[test]
fn a_profile_that_was_cut_off_is_refused() {
    for (name, text) in SHIPPED {
        let end = text.find("\nranges:").expect("it has some") + "\nranges:".len();
        let lines: Vec<usize> = text[..end].match_indices('\n').map(|(at, _)| at).collect();
        assert!(lines.len() > 50, "{name}");
        for at in lines {
            let cut = from_text("p.yaml", &text[..=at]).expect_err(&text[..at]).to_string();
            assert!(cut.starts_with("p.yaml"), "{cut}");
        }
    }
    let text = SHIPPED[0].1.replacen("  prepare: ", "  # prepare: ", 1);
    let message = from_text("p.yaml", &text).expect_err("a host term is missing").to_string();
    assert!(message.contains("missing `prepare`"), "{message}");
}

#[test]
fn a_profile_of_another_machine_says_so() {
    let [model, gpu] = ["m", "H200"].map(|name| Some(name.to_owned()));
    let here = ProfiledMachine { model, hardware: gpu, tp: Some(1) };
    assert_eq!(here.unlike(&ProfiledMachine::default()), None);
    assert_eq!(
        here.unlike(&ProfiledMachine { hardware: Some("h200".to_owned()), ..here.clone() }),
        None
    );
    let other = ProfiledMachine { tp: Some(2), ..here.clone() };
    let message = here.unlike(&other).expect("tp differs");
    assert!(message.ends_with("(m, H200, tp 1, here m, H200, tp 2)"), "{message}");
}

#[test]
fn a_profile_of_an_older_format_is_refused_with_advice() {
    let older = some_text().replacen(FORMAT, "blis-profile/1", 1);
    let message = from_text("p.yaml", &older).expect_err("its terms meant something else");
    let message = message.to_string();
    assert!(message.starts_with("p.yaml:2:9: format: found `blis-profile/1`; legal:"), "{message}");
    assert!(message.ends_with("fit it again with `blis calibrate`"), "{message}");
}

/// The text without a term, as if it had been written before there was one: neither its
/// coefficient, nor its row and column of the covariance.
fn without(name: &str) -> String {
    let place = ALL.iter().position(|term| term.name == name).expect("a term");
    let text = some_text();
    let (head, covariance) = text.split_once("covariance:\n").expect("it has one");
    let rows = covariance.lines().enumerate().filter(|(row, _)| *row != place);
    let rows = rows.map(|(_, line)| {
        let cells = line.trim_start_matches("  - [").trim_end_matches(']').split(", ");
        let cells = cells.enumerate().filter(|(column, _)| *column != place);
        let cells: Vec<&str> = cells.map(|(_, cell)| cell).collect();
        format!("  - [{}]\n", cells.join(", "))
    });
    let line = format!("  {name}: ");
    let head: Vec<&str> = head.lines().filter(|text| !text.starts_with(&line)).collect();
    format!("{}\ncovariance:\n{}", head.join("\n"), rows.collect::<String>())
}

#[test]
fn a_profile_from_before_a_term_does_without_it() {
    let whole = from_text("p", &some_text()).expect("shipped").profile.parameters().clone();
    let name = "mixed";
    let place = ALL.iter().position(|term| term.name == name).expect("a term");
    assert!(whole.terms_us[place] > 0.0 && whole.covariance[place][place] > 0.0);
    let older = from_text("q", &without(name)).expect("a term may be missing");
    let mut expected = whole;
    expected.terms_us[place] = 0.0;
    expected.covariance[place].fill(0.0);
    expected.covariance.iter_mut().for_each(|row| row[place] = 0.0);
    assert_eq!(older.profile.parameters(), &expected);
    let torn = some_text().replacen("  mixed: ", "  # mixed: ", 1);
    let message = from_text("p.yaml", &torn).expect_err("a row too many").to_string();
    assert!(message.contains("covariance: found 40 rows; legal: 39"), "{message}");
}
