//! The native trace: what is read, what is refused and how.

use blis_core::{Request, RequestId, SloClass, Source, StreamId, Time};
use blis_workload::{
    Skipped, TraceError, TraceErrorKind, TraceFormat, TraceOptions, TraceSource, TraceSummary,
};
use proptest::prelude::*;
use std::io::{BufRead, Cursor, Read, Write};

fn open(text: impl Into<Vec<u8>>) -> Result<TraceSource, TraceError> {
    let options = TraceOptions { format: Some(TraceFormat::Native), ..TraceOptions::default() };
    TraceSource::from_reader(Box::new(Cursor::new(text.into())), "t.jsonl", &options)
}

fn source(text: impl Into<Vec<u8>>) -> TraceSource {
    open(text).expect("opens")
}

fn read(text: impl Into<Vec<u8>>) -> Result<Vec<Request>, TraceError> {
    let mut source = open(text)?;
    std::iter::from_fn(|| source.read_request().transpose()).collect()
}

#[track_caller]
fn refused(text: impl Into<Vec<u8>>, message: &str) {
    assert_eq!(read(text).expect_err(message).to_string(), message);
}

/// A legal line with `field` in addition.
fn with(field: &str) -> String {
    format!("{{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":2,{field}}}\n")
}

/// A legal line whose `output_tokens` are `value`.
fn output(value: &str) -> String {
    format!("{{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":{value}}}\n")
}

fn prompt(value: &str) -> String {
    format!("{{\"arrival_us\":1,\"output_tokens\":2,\"prompt\":{value}}}\n")
}

const PLAIN: &str = "{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":2}\n";

#[test]
fn a_line_with_every_field_is_read_in_full() {
    let line = r#"{"id":"x17","arrival_us":1200.5,"prompt":[["sys",512],["r17",256]],
        "output_tokens":128,"output_stream":"r17","class":"critical","tenant":"a","session":"s3",
        "round":2,"deadline_ms":null}"#;
    let mut source = source(line.replace('\n', ""));
    let request = source.read_request().unwrap().expect("one request");
    assert_eq!(request.name.as_deref(), Some("x17"));
    assert_eq!(request.arrival, Time::from_nanos(1_200_500));
    let segments = request.content.segments();
    assert_eq!(segments.iter().map(|s| s.tokens).collect::<Vec<_>>(), [512, 256]);
    assert_eq!(request.content.output_stream(), segments[1].stream);
    assert_ne!(segments[0].stream, segments[1].stream);
    assert_eq!((request.output_tokens, request.class), (128, SloClass::Critical));
    assert_eq!(source.tenant_name(request.tenant), "a");
    assert_eq!(source.session_name(request.session.expect("has one")), "s3");
    assert_eq!((request.round, request.deadline), (2, None));
    assert_eq!(source.read_request(), Ok(None));
}

#[test]
fn a_line_with_the_required_fields_gets_the_defaults() {
    let text = [PLAIN, PLAIN].concat();
    let requests = read(text.clone()).unwrap();
    let first = &requests[0];
    assert_eq!((first.id, &first.name, first.class), (RequestId(0), &None, SloClass::Standard));
    assert_eq!((first.session, first.round, first.deadline), (None, 0, None));
    assert_eq!(first.content.output_stream(), first.content.segments()[0].stream);
    assert_ne!(first.content.output_stream(), requests[1].content.output_stream());
    assert_eq!(source(text).expecting(2, false).expected(), Some(2));
}

#[test]
fn names_are_shared_between_lines_and_output_without_a_stream_is_unique() {
    let text = [prompt("[[\"sys\",64],[\"a\",5]]"), prompt("[[\"sys\",64],[\"b\",5]]")].concat();
    let requests = read(text).unwrap();
    let streams: Vec<_> = requests.iter().flat_map(|r| r.content.segments()).collect();
    assert_eq!(streams[0], streams[2]);
    assert_ne!(streams[1].stream, streams[3].stream);
    let outputs = requests.iter().map(|r| r.content.output_stream());
    assert!(outputs.clone().all(|output| streams.iter().all(|s| s.stream != output)));
    assert_ne!(outputs.clone().next(), outputs.clone().nth(1));
}

#[test]
fn a_number_for_a_name_is_never_the_private_stream_of_another_line() {
    let private = (3_u64 << 62).to_string();
    let text = [PLAIN, &prompt(&format!("[[\"{private}\",5]]"))].concat();
    let requests = read(text).unwrap();
    let own = requests[0].content.output_stream();
    assert_eq!(own, StreamId(3 << 62), "the first line has no name");
    assert_ne!(requests[1].content.segments()[0].stream, own);
}

#[test]
fn values_are_repeated_in_part_and_columns_count_from_1() {
    let long = "x".repeat(81);
    let cut = format!("{}...", "x".repeat(80));
    let error = read(with(&format!("\"class\":\"{long}\""))).expect_err("no class");
    assert!(error.message.starts_with(&format!("field `class`: found \"{cut}\"; ")), "{error}");
    let error = read(with(&format!("\"prompt\":\"{long}\""))).expect_err("no list");
    let start = format!("invalid type: string \"{}..., expected", "x".repeat(72));
    assert!(error.message.starts_with(&start), "{error}");
    let error = read(with(&format!("\"{long}\":1"))).expect_err("no field");
    assert!(error.message.starts_with(&format!("unknown field `{cut}`; ")), "{error}");
    refused(
        "5\n",
        "t.jsonl:1:1: invalid type: integer `5`, expected a JSON object with the fields of a \
         request",
    );
    refused(
        "[1,2]\n",
        "t.jsonl:1:1: invalid type: sequence, expected a JSON object with the fields of a request",
    );
}

#[test]
fn byte_order_mark_carriage_returns_blank_lines_nulls_and_escapes_are_accepted() {
    let text = format!(
        "\u{FEFF}{}\r\n\r\n  \n{}{}",
        PLAIN.trim_end(),
        with("\"tenant\":\"a\\u0062\",\"session\":null,\"id\":\"\\\"q\\\"\""),
        with("\"tenant\":\"ab\"").trim_end()
    );
    let requests = read(text).unwrap();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[1].name.as_deref(), Some("\"q\""));
    assert_eq!((requests[1].tenant, requests[1].session), (requests[2].tenant, None));
    assert_eq!(read(format!("\u{FEFF}\n{PLAIN}")).unwrap().len(), 1);
}

#[test]
fn values_of_the_wrong_kind_or_out_of_range_are_refused() {
    let tokens = "legal: a whole number from 1 to 4294967295";
    for (value, found) in [
        ("0", "0"),
        ("-3", "-3"),
        ("1.5", "1.5"),
        ("128.0", "128.0"),
        ("1e3", "1000.0"),
        ("4294967296", "4294967296"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("\"7\"", "\"7\""),
        ("true", "true"),
        ("[1,[2]]", "a list"),
        ("{\"a\":1}", "an object"),
    ] {
        let column = output(value).len() - 2;
        let message = format!("t.jsonl:1:{column}: field `output_tokens`: found {found}; {tokens}");
        refused(output(value), &message);
    }
    let arrival = |value: &str| PLAIN.replace(":1,", &format!(":{value},"));
    for value in ["-1", "-0.5", "1e308", "315360000000001", "\"now\""] {
        let error = read(arrival(value)).expect_err(value).to_string();
        let legal = "legal: a number from 0 to 315360000000000 (ten years)";
        assert!(error.contains("field `arrival_us`: found") && error.ends_with(legal), "{error}");
    }
    refused(
        with("\"round\":-1,\"session\":\"s\""),
        "t.jsonl:1:61: field `round`: found -1; legal: a whole number from 0 to 4294967295",
    );
    refused(
        with("\"id\":17"),
        "t.jsonl:1:58: field `id`: found 17; legal: a string that is not empty",
    );
    refused(
        with("\"session\":\"\""),
        "t.jsonl:1:63: field `session`: found \"\"; legal: a string that is not empty",
    );
}

#[test]
fn numbers_that_are_not_json_are_refused() {
    for value in ["NaN", "Infinity", "+1", "0x10", "1_000", "01", "1,5", ".5", "1e999"] {
        let error = read(output(value)).expect_err(value).to_string();
        assert!(error.starts_with("t.jsonl:1:"), "{error}");
        assert!(error.contains(": not JSON: "), "{error}");
    }
}

#[test]
fn malformed_prompts_are_refused_with_the_segment() {
    let pair = "legal: a pair of a stream's name and a number of tokens";
    for (value, message) in [
        (
            "[]",
            "field `prompt`: found an empty list; \
             legal: a list, not empty, of [\"stream\", tokens] pairs",
        ),
        (
            "[[\"a\",1],[\"b\",0]]",
            "field `prompt[1][1]`: found 0; legal: a whole number from 1 to 4294967295",
        ),
        ("[[7,1]]", "field `prompt[0][0]`: found 7; legal: a string that is not empty"),
        ("[[\"\",1]]", "field `prompt[0][0]`: found \"\"; legal: a string that is not empty"),
        ("[[]]", &format!("field `prompt[0]`: found an empty list; {pair}")),
        ("[[\"a\"]]", &format!("field `prompt[0]`: found a list of one; {pair}")),
        ("[[\"a\",1,2]]", &format!("field `prompt[0]`: found a list of more than two; {pair}")),
        (
            "5",
            "invalid type: integer `5`, \
             expected `prompt` to be a list, not empty, of [\"stream\", tokens] pairs",
        ),
        (
            "[\"a\",1]",
            "invalid type: string \"a\", \
             expected `prompt[0]` to be a pair of a stream's name and a number of tokens",
        ),
        (
            "[[\"a\",4294967295]]",
            "field `prompt`: found 4294967295 tokens and 2 of output; \
             legal: together at most 4294967295",
        ),
        (
            "[[\"a\",4294967295],[\"b\",4294967295]]",
            "field `prompt`: found 8589934590 tokens and 2 of output; \
             legal: together at most 4294967295",
        ),
    ] {
        let error = read(prompt(value)).expect_err(message);
        assert_eq!(error.message, message);
    }
    refused(
        PLAIN.replace('}', ",\"prompt\":[[\"a\",3],[\"b\",3]]}"),
        "t.jsonl:1:1: field `input_tokens`: found 5; \
         legal: 6, the sum of the segments of `prompt`, or no `input_tokens`",
    );
    assert!(read(PLAIN.replace('}', ",\"prompt\":[[\"a\",2],[\"b\",3]]}")).is_ok());
}

#[test]
fn missing_fields_are_named() {
    for (line, field, legal) in [
        (
            "{}",
            "arrival_us",
            "a number from 0 to 315360000000000 (ten years), or `after` and the id of the line \
             above",
        ),
        ("{\"arrival_us\":1}", "output_tokens", "a whole number from 1 to 4294967295"),
        ("{\"arrival_us\":1,\"output_tokens\":1}", "prompt", "a prompt, or `input_tokens`"),
        (
            "{\"arrival_us\":1,\"output_tokens\":1,\"prompt\":null}",
            "prompt",
            "a prompt, or `input_tokens`",
        ),
    ] {
        refused(line, &format!("t.jsonl:1:1: field `{field}`: found nothing; legal: {legal}"));
    }
}

#[test]
fn unknown_and_repeated_fields_are_refused_with_the_nearest_name() {
    let known = "known: `id`, `arrival_us`, `prompt`, `input_tokens`, `output_tokens`, \
                 `output_stream`, `class`, `tenant`, `session`, `round`, `deadline_ms`, \
                 `patience_ms`, `after`, `think_ms`";
    refused(
        "{\"arival_us\":1}",
        &format!("t.jsonl:1:12: unknown field `arival_us`, did you mean `arrival_us`?; {known}"),
    );
    refused(with("\"colour\":1"), &format!("t.jsonl:1:59: unknown field `colour`; {known}"));
    refused(with("\"arrival_us\":2"), "t.jsonl:1:63: field `arrival_us`: given twice");
}

#[test]
fn an_unknown_class_is_refused_with_the_nearest_name() {
    let legal = "legal: one of `critical`, `standard`, `sheddable`, `batch`, `background`";
    refused(
        with("\"class\":\"critcal\""),
        &format!(
            "t.jsonl:1:68: field `class`: found \"critcal\", did you mean `critical`?; {legal}"
        ),
    );
    refused(with("\"class\":3"), &format!("t.jsonl:1:60: field `class`: found 3; {legal}"));
}

#[test]
fn arrivals_that_go_back_are_refused_with_both_values() {
    let at = |micros: &str| PLAIN.replace(":1,", &format!(":{micros},"));
    refused(
        [at("7"), at("1200.5"), "\n".to_owned(), at("900")].concat(),
        "t.jsonl:4:1: field `arrival_us`: found 900; legal: at least 1200.5, the arrival on line 2",
    );
    assert_eq!(read([at("7"), at("7")].concat()).unwrap().len(), 2, "ties are legal");
}

#[test]
fn repeated_ids_are_refused_whether_written_or_implied() {
    let legal = "legal: an id that no line above has (a line without one has its number, from 0)";
    let named = |name: &str| with(&format!("\"id\":\"{name}\""));
    refused(
        [named("a"), named("b"), named("a")].concat(),
        &format!("t.jsonl:3:1: field `id`: found `a` for the second time; {legal}"),
    );
    refused(
        [named("1"), PLAIN.to_owned()].concat(),
        &format!("t.jsonl:2:1: field `id`: found `1` for the second time; {legal}"),
    );
    assert_eq!(read([named("0"), named("01"), named("1")].concat()).unwrap()[0].name, None);
}

#[test]
fn a_round_needs_a_session_unless_it_is_the_first() {
    assert!(read(with("\"round\":0")).is_ok());
    refused(
        with("\"round\":2"),
        "t.jsonl:1:1: field `round`: found 2; legal: 0, or name the session it belongs to",
    );
}

#[test]
fn damaged_files_are_refused() {
    let cut = [PLAIN, &PLAIN[..30]].concat();
    refused(cut.clone(), "t.jsonl:2:30: the trace ends inside this line: its last line is cut off");
    refused(
        cut + "\n",
        "t.jsonl:2:30: the line ends inside its JSON object; a request must stand on one line",
    );
    refused(
        with("\"tenant\":\"a\0b\""),
        "t.jsonl:1:63: the line contains a NUL byte: the trace is damaged or not text",
    );
    refused(
        b"\x1F\x8B\x08".to_vec(),
        "t.jsonl:1:1: the trace is compressed with gzip; decompress it first",
    );
    for (text, message) in [
        (
            &b"[1,2]\n"[..],
            "invalid type: sequence, expected a JSON object with the fields of a request",
        ),
        (b"arrival_us,input\n", "not JSON: expected value"),
        (b"{} {}\n", "not JSON: trailing characters"),
        (b"{\"tenant\":\"\xFF\"}\n", "not JSON: invalid unicode code point"),
        (b"{'id':1}\n", "not JSON: key must be a string"),
    ] {
        assert_eq!(read(text).expect_err(message).message, message);
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert!(
        read(with(&format!("\"id\":{deep}"))).is_err(),
        "refused without overflowing the stack"
    );
}

#[test]
fn a_trace_without_requests_is_refused() {
    let message = "no requests: every line of the trace is blank, or there is none";
    refused("", &format!("t.jsonl:1:1: {message}"));
    refused("\n \r\n", &format!("t.jsonl:3:1: {message}"));
}

#[test]
fn an_endless_line_is_refused_before_it_fills_the_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b' '));
    let mut source =
        TraceSource::from_reader(Box::new(endless), "t.jsonl", &TraceOptions::default()).unwrap();
    let error = source.read_request().expect_err("has no end").to_string();
    assert_eq!(error, "t.jsonl:1:67108864: the line is longer than 67108864 bytes");
}

#[test]
fn an_error_stays_an_error() {
    let mut source = source(output("0") + PLAIN);
    let first = source.read_request();
    assert!(first.is_err());
    assert_eq!(source.read_request(), first);
    assert!(source.next_request().is_err());
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the cable is out"))
    }
}

#[test]
fn files_that_cannot_be_opened_or_read_are_told_apart_from_bad_ones() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.jsonl");
    let error = TraceSource::open(&absent, &TraceOptions::default()).err().expect("is not there");
    assert_eq!(error.kind, TraceErrorKind::Io);
    assert!(error.to_string().starts_with(&format!("{}: ", absent.display())), "{error}");
    let reader: Box<dyn BufRead + Send> = Box::new(std::io::BufReader::new(Broken));
    let error = TraceSource::from_reader(reader, "t.jsonl", &TraceOptions::default())
        .err()
        .expect("broken");
    assert_eq!(error.kind, TraceErrorKind::Io);
    assert_eq!(error.to_string(), "t.jsonl:1:1: cannot read: the cable is out");
}

#[test]
fn a_summary_reads_the_whole_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for micros in [3, 5, 900] {
        file.write_all(PLAIN.replace(":1,", &format!(":{micros},")).as_bytes()).unwrap();
    }
    let whole = TraceSource::open(file.path(), &TraceOptions::default()).unwrap();
    let (first, last) = (Time::from_micros(3), Time::from_micros(900));
    assert_eq!(
        whole.summarize().unwrap(),
        TraceSummary {
            requests: 3,
            follow_ups: 0,
            first,
            last,
            input_tokens: 15,
            output_tokens: 6,
            skipped: Skipped::default(),
        }
    );
    assert!(source(output("0")).summarize().is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(bytes);
    }

    #[test]
    fn no_damage_to_a_line_makes_the_reader_panic(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let fields = r#""prompt":[["a",2],["b",3]],"class":"batch","round":0"#;
        let mut text = with(fields).into_bytes();
        let place = place.index(text.len());
        text[place] = byte;
        text.truncate(cut.index(text.len()) + 1);
        let _ = read(text);
    }
}
