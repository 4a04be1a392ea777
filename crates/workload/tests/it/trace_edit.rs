//! Slices, samples, limits and speed: what an edit leaves of a trace.

use super::trace_support::{all, detected, figures, fixture, open};
use blis_core::{Ending, Request, Source, Span, Time};
use blis_workload::{Sample, TraceEdit, TraceError, TraceFormat, TraceOptions, TraceSource};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufReader, Cursor, Read};

/// 100 sessions of four requests, a second apart and taking turns, and as many without a session.
fn text() -> String {
    let mut text = String::new();
    for row in 0..800 {
        let session = match row % 2 {
            0 => format!(",\"session\":\"s{}\",\"round\":{}", row / 2 % 100, row / 200),
            _ => String::new(),
        };
        writeln!(
            text,
            "{{\"arrival_us\":{},\"input_tokens\":9,\"output_tokens\":1{session}}}",
            row * 1_000_000
        )
        .expect("memory can be written to");
    }
    text
}

fn edited(edit: TraceEdit) -> Vec<Request> {
    let mut source = open(text(), None, edit).expect("a legal edit");
    all(&mut source).expect("a legal trace")
}

fn secs(request: &Request) -> u64 {
    request.arrival.as_nanos() / 1_000_000_000
}

fn span(secs: u64) -> Span {
    Span::from_micros(secs * 1_000_000)
}

/// The rows that were kept: their names, or their numbers.
fn rows(requests: &[Request]) -> BTreeSet<u64> {
    let name =
        |r: &Request| r.name.as_deref().map_or(r.id.0, |name| name.parse().expect("a number"));
    requests.iter().map(name).collect()
}

const WHOLE: TraceEdit =
    TraceEdit { speedup: 1.0, from: None, until: None, sample: None, limit: None };

#[test]
fn the_default_changes_nothing() {
    assert_eq!(TraceEdit::default(), WHOLE);
    assert_eq!(TraceOptions::default(), TraceOptions { format: None, edit: WHOLE });
    let whole = edited(WHOLE);
    assert_eq!(whole.len(), 800);
    assert!(whole.iter().all(|request| request.name.is_none() && secs(request) == request.id.0));
}

#[test]
fn a_slice_keeps_what_arrives_in_it_and_starts_at_zero() {
    let slice = edited(TraceEdit { from: Some(span(100)), until: Some(span(103)), ..WHOLE });
    assert_eq!(slice.iter().map(secs).collect::<Vec<_>>(), [0, 1, 2], "the end is not in it");
    assert_eq!(rows(&slice), BTreeSet::from([100, 101, 102]), "ids are those of the file");
    assert_eq!(edited(TraceEdit { from: Some(span(790)), ..WHOLE }).len(), 10);
    assert_eq!(edited(TraceEdit { until: Some(span(10)), ..WHOLE }).len(), 10);
}

#[test]
fn a_slice_is_in_the_time_of_the_trace_not_in_that_of_its_dates() {
    let edit = TraceEdit { from: Some(Span::from_micros(500_000)), ..WHOLE };
    let requests = all(&mut open(fixture(TraceFormat::Azure), None, edit).unwrap()).unwrap();
    assert_eq!(figures(&requests), [(0, 3180, 8), (2_250_000, 7433, 14)]);
}

#[test]
fn speed_divides_arrivals_after_slicing() {
    let fast = edited(TraceEdit { speedup: 4.0, from: Some(span(100)), ..WHOLE });
    assert_eq!(fast[0].arrival, Time::ZERO);
    assert_eq!(fast[3].arrival, Time::from_micros(750_000));
    let slow = edited(TraceEdit { speedup: 0.5, ..WHOLE });
    assert_eq!(slow[10].arrival, Time::from_micros(20_000_000));
}

#[test]
fn speed_leaves_think_times_and_deadlines_alone() {
    let edit = TraceEdit { speedup: 10.0, ..WHOLE };
    let mut source = open(fixture(TraceFormat::Native), None, edit).unwrap();
    let heads = all(&mut source).unwrap();
    assert_eq!(heads[1].arrival, Time::from_nanos(150_050));
    assert_eq!(heads[1].deadline, Some(Span::from_micros(2_500_000)));
    let next = source.follow_up(&heads[1], Ending::Finished, Time::ZERO).expect("`c` follows");
    assert_eq!(next.arrival, Time::from_micros(12_500));
}

#[test]
fn a_sample_keeps_whole_sessions() {
    let sample = Some(Sample { share: 0.3, seed: 7 });
    let kept = edited(TraceEdit { sample, ..WHOLE });
    let mut rounds = [0_u32; 100];
    let mut alone = 0;
    for request in &kept {
        match request.session {
            Some(_) => {
                let row = request.name.as_deref().map_or(request.id.0, |n| n.parse().unwrap());
                rounds[usize::try_from(row / 2 % 100).unwrap()] += 1;
            }
            None => alone += 1,
        }
    }
    assert!(rounds.iter().all(|&count| count == 0 || count == 4), "{rounds:?}");
    let sessions = rounds.iter().filter(|&&count| count > 0).count();
    assert!((15..=45).contains(&sessions), "{sessions} of 100 sessions");
    assert!((90..=150).contains(&alone), "{alone} of 400 requests without a session");
}

#[test]
fn a_sample_depends_on_its_seed_and_on_nothing_else() {
    let sample = |share, seed| Some(Sample { share, seed });
    let kept = |edit| rows(&edited(edit));
    let all = kept(TraceEdit { sample: sample(0.3, 7), ..WHOLE });
    assert_eq!(all, kept(TraceEdit { sample: sample(0.3, 7), speedup: 9.0, ..WHOLE }));
    let late = kept(TraceEdit { sample: sample(0.3, 7), from: Some(span(400)), ..WHOLE });
    assert_eq!(late, all.iter().copied().filter(|row| *row >= 400).collect());
    assert_ne!(all, kept(TraceEdit { sample: sample(0.3, 8), ..WHOLE }));
    let more = kept(TraceEdit { sample: sample(0.6, 7), ..WHOLE });
    assert!(all.is_subset(&more), "a larger share keeps what a smaller one has");
    assert_eq!(kept(TraceEdit { sample: sample(1.0, 7), ..WHOLE }).len(), 800);
}

/// A closed-loop session is kept or dropped by its first line.
#[test]
fn an_edit_keeps_or_drops_follow_ups_with_what_they_follow() {
    let mut text = String::new();
    for row in 0..400 {
        let first = format!("\"id\":\"a{row}\",\"arrival_us\":{row}");
        let next = format!("\"id\":\"b{row}\",\"after\":\"a{row}\"");
        for fields in [first, next] {
            writeln!(text, "{{{fields},\"input_tokens\":9,\"output_tokens\":1}}").unwrap();
        }
    }
    let sample = Some(Sample { share: 0.5, seed: 1 });
    let summary = |edit| open(text.clone(), None, edit).unwrap().summarize().unwrap();
    let half = summary(TraceEdit { sample, ..WHOLE });
    assert_eq!(half.requests, 2 * half.follow_ups);
    assert!((150..=250).contains(&half.follow_ups), "{half:?}");
    let slice = summary(TraceEdit { from: Some(Span::from_micros(390)), ..WHOLE });
    assert_eq!((slice.requests, slice.follow_ups), (20, 10));
    let limited = summary(TraceEdit { limit: Some(7), ..WHOLE });
    assert_eq!((limited.requests, limited.follow_ups), (7, 3), "follow-ups count");
}

#[test]
fn a_limit_counts_what_is_left_after_the_rest() {
    let sample = Some(Sample { share: 0.5, seed: 3 });
    let some = edited(TraceEdit { sample, limit: Some(50), ..WHOLE });
    let all = edited(TraceEdit { sample, ..WHOLE });
    assert_eq!(some, all[..50]);
    let skipping = TraceEdit { limit: Some(2), ..WHOLE };
    let mut source = open(fixture(TraceFormat::Azure), None, skipping).unwrap();
    assert_eq!(figures(&self::all(&mut source).unwrap()), [(0, 110, 27), (500_000, 3180, 8)]);
    assert_eq!(source.skipped().total(), 1, "only what was read is counted");
}

/// Gives `text` and then fails.
fn then_broken(text: String) -> Box<dyn std::io::BufRead + Send> {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("read too far"))
        }
    }
    Box::new(BufReader::with_capacity(16, Cursor::new(text).chain(Broken)))
}

#[test]
fn reading_stops_where_nothing_more_can_be_kept() {
    let open = |edit| -> Result<Vec<Request>, TraceError> {
        let options = TraceOptions { format: None, edit };
        all(&mut TraceSource::from_reader(then_broken(text()), "t", &options)?)
    };
    let error = open(WHOLE).expect_err("the whole trace cannot be read");
    assert_eq!(error.to_string(), "t:801:1: cannot read: read too far");
    assert_eq!(open(TraceEdit { until: Some(span(790)), ..WHOLE }).unwrap().len(), 790);
    assert_eq!(open(TraceEdit { limit: Some(790), ..WHOLE }).unwrap().len(), 790);
}

#[test]
fn an_edit_that_leaves_nothing_is_refused() {
    let nothing = |edit| {
        let mut source = open(text(), None, edit).unwrap();
        source.read_request().expect_err("nothing is left").to_string()
    };
    assert_eq!(
        nothing(TraceEdit { from: Some(span(1_000)), ..WHOLE }),
        "t:801:1: no requests: the edit leaves none of the 800 rows that were read"
    );
    let sample = Some(Sample { share: 1e-9, seed: 1 });
    assert!(
        nothing(TraceEdit { sample, until: Some(span(50)), ..WHOLE })
            .contains("none of the 51 rows")
    );
}

#[test]
fn edits_with_values_that_are_not_legal_are_refused() {
    let sample = |share| Some(Sample { share, seed: 0 });
    let speedup = "legal: a number from 0.000001 to 1000000";
    let share = "legal: a number above 0 and up to 1";
    for (edit, message) in [
        (TraceEdit { speedup: 0.0, ..WHOLE }, &*format!("field `speedup`: found 0; {speedup}")),
        (TraceEdit { speedup: -2.0, ..WHOLE }, &format!("field `speedup`: found -2; {speedup}")),
        (
            TraceEdit { speedup: f64::NAN, ..WHOLE },
            &format!("field `speedup`: found NaN; {speedup}"),
        ),
        (
            TraceEdit { speedup: 1e7, ..WHOLE },
            &format!("field `speedup`: found 10000000; {speedup}"),
        ),
        (
            TraceEdit { from: Some(span(9)), until: Some(span(9)), ..WHOLE },
            "field `until`: found 9 s; legal: more than 9 s, where the slice begins",
        ),
        (
            TraceEdit { until: Some(span(0)), ..WHOLE },
            "field `until`: found 0 s; legal: more than 0 s, where the slice begins",
        ),
        (
            TraceEdit { from: Some(span(400_000_000)), ..WHOLE },
            "field `from`: found 400000000 s; legal: at most 315360000 s (ten years)",
        ),
        (
            TraceEdit { sample: sample(0.0), ..WHOLE },
            &format!("field `sample.share`: found 0; {share}"),
        ),
        (
            TraceEdit { sample: sample(1.5), ..WHOLE },
            &format!("field `sample.share`: found 1.5; {share}"),
        ),
        (
            TraceEdit { sample: sample(f64::NAN), ..WHOLE },
            &format!("field `sample.share`: found NaN; {share}"),
        ),
        (
            TraceEdit { limit: Some(0), ..WHOLE },
            "field `limit`: found 0; legal: 1 or more requests",
        ),
    ] {
        assert_eq!(edit.validate().expect_err(message).to_string(), message);
        let error = open(text(), None, edit).err().expect(message);
        assert_eq!(error.to_string(), format!("t: {message}"));
    }
    let slow = TraceEdit { speedup: 1e-6, ..WHOLE };
    let error = all(&mut open(text(), None, slow).unwrap()).expect_err("317 years in all");
    assert_eq!(
        error.to_string(),
        "t:317:1: field `speedup`: found 0.000001 for an arrival after 316 s; \
         legal: a number that leaves all arrivals within ten years"
    );
    assert!(detected(text()).is_ok());
}
