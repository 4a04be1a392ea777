//! Native traces in which requests wait for answers, have deadlines, and are counted.

use super::trace_support::{all, detected, fixture, open, read, refused};
use blis_core::{Ending, Request, RequestId, Source, Span, Time};
use blis_workload::{
    After, TraceEdit, TraceEntry, TraceFormat, TraceSource, write_follow_up, write_header,
    write_request,
};

fn line(fields: &str) -> String {
    format!("{{{fields},\"input_tokens\":5,\"output_tokens\":2}}\n")
}

fn head(id: &str, micros: u64) -> String {
    line(&format!("\"id\":\"{id}\",\"arrival_us\":{micros}"))
}

fn after(id: &str, above: &str) -> String {
    line(&format!("\"id\":\"{id}\",\"after\":\"{above}\",\"think_ms\":1.5"))
}

/// Two sessions of three and two requests, and a request of its own between them.
fn sessions() -> String {
    [head("a", 10), after("b", "a"), after("c", "b"), head("3", 20), head("x", 30), after("y", "x")]
        .concat()
}

/// The request as the simulator has it: with another id.
fn renumbered(request: &Request) -> Request {
    Request { id: RequestId(request.id.0 + 1_000), ..request.clone() }
}

#[test]
fn follow_ups_arrive_after_the_answer_and_some_thought() {
    let mut source = detected(sessions()).unwrap();
    assert!(source.is_closed_loop());
    let heads = all(&mut source).unwrap();
    let names: Vec<_> = heads.iter().map(|head| head.name.as_deref()).collect();
    assert_eq!(names, [Some("a"), Some("3"), Some("x")], "numbers are not places any more");
    let at = Time::from_micros(5_000);
    let finished = Ending::Finished;
    let b = source.follow_up(&renumbered(&heads[0]), finished, at).expect("`b` follows");
    assert_eq!((b.name.as_deref(), b.arrival), (Some("b"), at + Span::from_micros(1_500)));
    assert_eq!(source.follow_up(&renumbered(&heads[0]), finished, at), None, "only once");
    assert_eq!(source.follow_up(&renumbered(&heads[1]), finished, at), None, "nothing follows");
    let y = source.follow_up(&renumbered(&heads[2]), finished, at).expect("`y` follows");
    let c = source.follow_up(&renumbered(&b), finished, y.arrival).expect("`c` follows");
    assert_eq!((c.name.as_deref(), c.arrival), (Some("c"), y.arrival + Span::from_micros(1_500)));
    assert_eq!(source.follow_up(&renumbered(&c), finished, c.arrival), None);
    assert_eq!(source.follow_up(&renumbered(&y), finished, y.arrival), None);
}

#[test]
fn a_client_that_gets_no_answer_gives_up() {
    for ending in [Ending::Rejected, Ending::Unservable] {
        let mut source = detected(sessions()).unwrap();
        let heads = all(&mut source).unwrap();
        let at = Time::from_micros(99);
        assert_eq!(source.follow_up(&heads[0], ending, at), None);
        assert_eq!(source.follow_up(&heads[0], Ending::Finished, at), None, "it was dropped");
        assert!(source.follow_up(&heads[2], Ending::Finished, at).is_some(), "others go on");
    }
}

#[test]
fn a_line_without_an_id_is_followed_by_its_number() {
    let text = [
        line("\"arrival_us\":1"),
        line("\"arrival_us\":2"),
        line("\"after\":\"1\""),
        line("\"after\":\"2\""),
    ];
    let mut source = detected(text.concat()).unwrap();
    let heads = all(&mut source).unwrap();
    let names: Vec<_> = heads.iter().map(|head| head.name.as_deref()).collect();
    assert_eq!(names, [None, Some("1")]);
    let at = Time::from_micros(7);
    let next = source.follow_up(&heads[1], Ending::Finished, at).expect("line 3 follows");
    let soon = at + Span::from_nanos(1);
    assert_eq!((next.name.as_deref(), next.arrival), (Some("2"), soon), "no thought, no delay");
    assert!(source.follow_up(&next, Ending::Finished, at).is_some());
}

#[test]
fn a_summary_counts_follow_ups() {
    let summary = detected(sessions()).unwrap().summarize().unwrap();
    assert_eq!((summary.requests, summary.follow_ups), (6, 3));
    assert_eq!((summary.input_tokens, summary.output_tokens), (30, 12));
    assert_eq!((summary.first, summary.last), (Time::from_micros(10), Time::from_micros(30)));
}

#[test]
fn follow_ups_that_follow_nothing_are_refused() {
    refused(
        after("b", "a"),
        "t:1:1: field `after`: found `a`; \
         legal: to stand right below the line it names, and this is the first",
    );
    let below = "t:3:1: field `after`: found `a`; legal:";
    refused(
        [head("a", 1), head("b", 2), after("c", "a")].concat(),
        &format!("{below} `b`, the line above"),
    );
    refused(
        [head("a", 1), after("b", "a"), after("c", "a")].concat(),
        &format!("{below} `b`, the line above"),
    );
    for (first, second, found) in
        [("\"s\"", "\"t\"", "`t`"), ("\"s\"", "null", "nothing"), ("null", "\"t\"", "`t`")]
    {
        let first = line(&format!("\"id\":\"a\",\"arrival_us\":1,\"session\":{first}"));
        let second = line(&format!("\"after\":\"a\",\"session\":{second}"));
        let legal = "the session of the line that it follows up on";
        refused(
            [first, second].concat(),
            &format!("t:2:1: field `session`: found {found}; legal: {legal}"),
        );
    }
    refused(
        [head("a", 1), line("\"after\":\"a\",\"arrival_us\":2.5")].concat(),
        "t:2:1: field `arrival_us`: found 2.5; \
         legal: to leave it out with `after`: a follow-up arrives after the answer",
    );
    refused(
        line("\"arrival_us\":2,\"think_ms\":1.5"),
        "t:1:1: field `think_ms`: found 1.5; legal: to leave it out without `after`",
    );
    for (field, value, legal) in [
        ("after", "7", "a string that is not empty"),
        ("after", "\"\"", "a string that is not empty"),
        ("think_ms", "-1", "a number from 0 to 315360000000 (ten years)"),
        ("think_ms", "\"1s\"", "a number from 0 to 315360000000 (ten years)"),
        ("think_ms", "315360000001", "a number from 0 to 315360000000 (ten years)"),
    ] {
        let error = read(line(&format!("\"arrival_us\":1,\"{field}\":{value}"))).expect_err(value);
        assert_eq!(error.message, format!("field `{field}`: found {value}; legal: {legal}"));
    }
}

#[test]
fn deadlines_are_read_and_bad_ones_refused() {
    let deadline = |value: &str| line(&format!("\"arrival_us\":1,\"deadline_ms\":{value}"));
    for (value, nanos) in
        [("2500", 2_500_000_000), ("0.5", 500_000), ("315360000000", 315_360_000_000_000_000)]
    {
        let requests = read(deadline(value)).unwrap();
        assert_eq!(requests[0].deadline, Some(Span::from_nanos(nanos)));
    }
    assert_eq!(read(deadline("null")).unwrap()[0].deadline, None);
    for (value, found) in [
        ("0", "0"),
        ("-1", "-1"),
        ("1e-9", "1e-9"),
        ("315360000001", "315360000001"),
        ("\"1s\"", "\"1s\""),
    ] {
        let error = read(deadline(value)).expect_err(value);
        let legal = "a number above 0 and up to 315360000000 (ten years)";
        assert_eq!(error.message, format!("field `deadline_ms`: found {found}; legal: {legal}"));
    }
}

#[test]
fn a_first_line_that_counts_the_requests_is_checked_at_the_end() {
    let counted = |rows: &str, lines: &str| format!("{{\"rows\":{rows}}}\n{lines}");
    let sessions = sessions();
    assert_eq!(read(counted("6", &sessions)).unwrap().len(), 3);
    assert_eq!(read(format!("\n {}", counted("6", &sessions))).unwrap().len(), 3);
    let cut: String = sessions.split_inclusive('\n').take(4).collect();
    refused(
        counted("6", &cut),
        "t:6:1: the trace has 4 requests and its first line says 6: it is cut off",
    );
    refused(
        counted("2", &head("a", 1)) + &head("b", 1) + &head("c", 2),
        "t:5:1: the trace has 3 requests and its first line says 2: lines were added",
    );
    refused(
        counted("1", ""),
        "t:2:1: the trace has 0 requests and its first line says 1: it is cut off",
    );
    for value in ["0", "-1", "1.5", "\"6\"", "null"] {
        let error = read(counted(value, &sessions)).expect_err(value);
        let legal = "the number of requests in the trace, 1 or more";
        assert_eq!(
            error.to_string(),
            format!("t:1:{}: field `rows`: found {value}; legal: {legal}", 8 + value.len())
        );
    }
    refused("{\"rows\":1,\"rows\":1}\n", "t:1:16: field `rows`: given twice");
    refused("{\"rows\":1,\"id\":\"a\"}\n", "t:1:14: unknown field `id`; known: `rows`");
    let late = read(head("a", 1) + "{\"rows\":1}\n").expect_err("not the first line");
    assert!(late.message.starts_with("unknown field `rows`"), "{late}");
    // A reader that stops early has not seen the end.
    let edit = TraceEdit { limit: Some(1), ..TraceEdit::default() };
    let mut part = open(counted("9", &sessions), None, edit).unwrap();
    assert_eq!(all(&mut part).unwrap().len(), 1);
}

fn entries(source: &mut TraceSource) -> Vec<TraceEntry> {
    let entries = std::iter::from_fn(|| source.read_entry().transpose());
    entries.collect::<Result<_, _>>().expect("a legal trace")
}

/// Writes what `source` gives, in full.
fn copy(source: &mut TraceSource) -> Vec<u8> {
    let entries = entries(source);
    let mut text = Vec::new();
    write_header(&mut text, entries.len() as u64).expect("memory can be written to");
    for TraceEntry { request, after } in &entries {
        let tenant = source.tenant_name(request.tenant);
        let session = request.session.map(|session| source.session_name(session));
        match after {
            None => write_request(&mut text, request, &tenant, session.as_deref()),
            Some(after) => write_follow_up(&mut text, request, &tenant, session.as_deref(), after),
        }
        .expect("memory can be written to");
    }
    text
}

#[test]
fn a_closed_loop_trace_that_was_written_reads_back_as_the_same_requests() {
    for text in [sessions(), fixture(TraceFormat::Native).to_owned()] {
        let mut source = detected(text).unwrap();
        let written = copy(&mut source);
        // Private streams come back under other ids, so compare what was written of them twice.
        let again = copy(&mut detected(written.clone()).unwrap());
        let third = copy(&mut detected(again.clone()).unwrap());
        assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(third.clone()).unwrap());
        let (first, last) =
            (entries(&mut detected(written).unwrap()), entries(&mut detected(third).unwrap()));
        assert_eq!(first.len(), last.len());
        for (first, last) in first.iter().zip(&last) {
            let content = first.request.content.clone();
            assert_eq!(first.after, last.after);
            assert_eq!(first.request, Request { content, ..last.request.clone() });
        }
    }
    let fixture = entries(&mut detected(fixture(TraceFormat::Native)).unwrap());
    let think = Span::from_micros(12_500);
    assert_eq!(fixture[2].after, Some(After { name: "b".into(), think }));
    assert_eq!(fixture.iter().filter(|entry| entry.after.is_some()).count(), 1);
}

/// Every format can be copied into the native one: what counts is the same.
#[test]
fn every_format_can_be_written_as_a_native_trace() {
    for format in TraceFormat::ALL {
        let mut source = detected(fixture(format)).unwrap();
        let written = copy(&mut source);
        let mut native = detected(written).unwrap();
        assert_eq!(native.format(), TraceFormat::Native);
        let (before, after) =
            (entries(&mut detected(fixture(format)).unwrap()), entries(&mut native));
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            let (before, after) = (&before.request, &after.request);
            assert_eq!(
                (before.arrival, before.round, before.class),
                (after.arrival, after.round, after.class)
            );
            assert_eq!(
                (before.deadline, before.output_tokens),
                (after.deadline, after.output_tokens)
            );
            assert_eq!(before.content.prompt_tokens(), after.content.prompt_tokens());
            assert_eq!(before.name, after.name);
        }
    }
}
