//! What is refused of the formats, and how.

use super::trace_support::{all, figures, fixture, open, read, refused};
use blis_core::Time;
use blis_workload::{TraceEdit, TraceFormat};

#[test]
fn files_that_are_no_text_are_refused_whatever_the_format() {
    let formats = TraceFormat::ALL.map(Some).into_iter().chain([None]);
    for format in formats {
        let refused = |bytes: &[u8], message: &str| {
            let result = open(bytes, format, TraceEdit::default());
            let error = result.and_then(|mut source| all(&mut source)).expect_err(message);
            assert_eq!(error.to_string(), message);
        };
        let gzip = "t:1:1: the trace is compressed with gzip; decompress it first";
        refused(b"\x1F\x8B\x08\x00", gzip);
        refused(b"\xFF\xFEa\x00", "t:1:1: the trace is UTF-16 text; save it as UTF-8");
        let empty = "t:1:1: no requests: every line of the trace is blank, or there is none";
        let found = open("", format, TraceEdit::default())
            .and_then(|mut source| all(&mut source))
            .expect_err(empty);
        let rows = "t:1:1: no requests: the trace has no rows";
        assert!([empty, rows].contains(&found.to_string().as_str()), "{found}");
    }
    for format in TraceFormat::ALL {
        let lines: Vec<&str> = fixture(format).lines().collect();
        let damaged = [lines[0], "\n", lines[1], "\0\n"].concat();
        let error = read(damaged).expect_err("has a NUL byte");
        let place = (error.line, error.column);
        assert_eq!(place, (2, lines[1].len() + 1), "{format:?}: {error}");
        let message = "the line contains a NUL byte: the trace is damaged or not text";
        assert_eq!(error.message, message);
    }
}

/// A legal Mooncake line but for `value` in `field`.
fn mooncake(field: &str, value: &str) -> String {
    let mut fields = [
        ("timestamp", "0"),
        ("input_length", "600"),
        ("output_length", "5"),
        ("hash_ids", "[1,2]"),
    ];
    let place = fields.iter().position(|(name, _)| *name == field).expect("a field");
    fields[place].1 = value;
    let fields = fields.map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}\n", fields.join(","))
}

#[test]
fn malformed_mooncake_numbers_are_refused() {
    let length = "legal: a whole number from 0 to 4294967295";
    for (field, value, message) in [
        ("input_length", "-1", &*format!("field `input_length`: found -1; {length}")),
        ("input_length", "1e9", &format!("field `input_length`: found 1000000000.0; {length}")),
        (
            "output_length",
            "4294967296",
            &format!("field `output_length`: found 4294967296; {length}"),
        ),
        ("output_length", "\"5\"", &format!("field `output_length`: found \"5\"; {length}")),
        (
            "timestamp",
            "-0.5",
            "field `timestamp`: found -0.5; \
             legal: a number of milliseconds, 0 or more, up to 315360000000 (ten years)",
        ),
        (
            "timestamp",
            "1.8e12",
            "field `timestamp`: found 1800000000000.0; \
             legal: a number of milliseconds, 0 or more, up to 315360000000 (ten years)",
        ),
        ("timestamp", "NaN", "not JSON: expected value"),
        ("timestamp", "1,\"timestamp\":2", "field `timestamp`: given twice"),
        (
            "timestamp",
            "1,\"delay\":2",
            "unknown field `delay`; known: `timestamp`, `input_length`, `output_length`, \
             `hash_ids`, `session_id`",
        ),
        (
            "timestamp",
            "1,\"session_id\":null",
            "field `session_id`: found null; legal: a string that is not empty, or a whole number",
        ),
        (
            "input_length",
            "4294967295",
            "field `input_length`: found 4294967295 tokens and 5 of output; \
             legal: together at most 4294967295",
        ),
    ] {
        let error = read(mooncake(field, value)).expect_err(message);
        assert_eq!((error.line, error.message.as_str()), (1, message), "{field}: {value}");
    }
    refused(
        "{\"timestamp\":5,\"input_length\":9}\n",
        "t:1:1: field `output_length`: found nothing; legal: a whole number from 0 to 4294967295",
    );
    let at = |millis: &str| mooncake("timestamp", millis);
    refused(
        [at("7"), at("12.5"), at("12.5"), at("9")].concat(),
        "t:4:1: field `timestamp`: found 9; legal: at least 12.5, the arrival on line 3",
    );
}

#[test]
fn malformed_mooncake_block_ids_are_refused() {
    let ids = "legal: a list of whole numbers from 0 to 9223372036854775807";
    for (field, value, message) in [
        ("hash_ids", "[1,-2]", &*format!("field `hash_ids[1]`: found -2; {ids}")),
        ("hash_ids", "[1.5]", &format!("field `hash_ids[0]`: found 1.5; {ids}")),
        (
            "hash_ids",
            "[9223372036854775808,1]",
            &format!("field `hash_ids[0]`: found 9223372036854775808; {ids}"),
        ),
        (
            "hash_ids",
            "7",
            "invalid type: integer `7`, expected `hash_ids` to be a list of whole numbers from 0 \
             to 9223372036854775807",
        ),
        (
            "hash_ids",
            "[1]",
            "field `hash_ids`: found 1 ids for an `input_length` of 600; \
             legal: 2: one for every 512 tokens, the last for what is left",
        ),
        (
            "hash_ids",
            "[1,2,3]",
            "field `hash_ids`: found 3 ids for an `input_length` of 600; \
             legal: 2: one for every 512 tokens, the last for what is left",
        ),
    ] {
        let error = read(mooncake(field, value)).expect_err(message);
        assert_eq!((error.line, error.message.as_str()), (1, message), "{field}: {value}");
    }
}

#[test]
fn columns_are_bound_by_their_names() {
    let text = "\"GeneratedTokens\",TIMESTAMP,ContextTokens\n\
                27,\"2023-11-16 18:00:00\",110\n";
    assert_eq!(figures(&read(text).unwrap()), [(0, 110, 27)]);
    let known = "`TIMESTAMP`, `ContextTokens`, `GeneratedTokens`";
    for (header, message) in [
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens,Model",
            &*format!("format `azure`: unknown column `Model`; known: {known}"),
        ),
        (
            "TIMESTAMP,ContextTokens, GeneratedTokens",
            &format!(
                "format `azure`: unknown column ` GeneratedTokens`, did you mean \
                 `GeneratedTokens`?; known: {known}"
            ),
        ),
        (
            "TIMESTAMP,ContextTokens",
            &format!("format `azure`: column `GeneratedTokens` is missing; required: {known}"),
        ),
        ("TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP", "column `TIMESTAMP`: given twice"),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens,",
            &format!("format `azure`: unknown column ``; known: {known}"),
        ),
    ] {
        refused(format!("{header}\n"), &format!("t:1:1: {message}"));
    }
    let wide = format!("TIMESTAMP,ContextTokens{}\n", ",x".repeat(200));
    refused(wide, "t:1:1: the row has more than 128 columns");
}

#[test]
fn rows_that_do_not_fit_their_header_are_refused() {
    let row = "2023-11-16 18:00:00,110,27";
    let azure = |rows: &str| format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}");
    refused(azure(""), "t:2:1: no requests: the trace has no rows");
    refused(
        azure(&format!("{row}\n{row},1\n")),
        "t:3:1: the row has 4 columns and the header has 3",
    );
    refused(
        azure(&format!("{row}\n\n2023-11-16 18:00:00,110\n")),
        "t:4:1: the row has 2 columns and the header has 3",
    );
    refused(
        azure(&format!("{row}\n2023-11-16 18:0")),
        "t:3:1: the row has 1 columns and the header has 3: the trace is cut off",
    );
    refused(
        azure(&format!("{row}\n2023-11-16 18:00:00,110,")),
        "t:3:24: field `GeneratedTokens`: found nothing; \
         legal: a whole number from 0 to 4294967295",
    );
    let quoted = "the trace ends inside a value in quotes: it is cut off, or a quote is missing in \
                  this row";
    refused(
        azure(&format!("{row}\n\"2023-11-16 18:00:00,110,27\n{row}\n")),
        &format!("t:3:1: {quoted}"),
    );
    refused(azure(&format!("{row}\n2023-11-16 18:00:00,110,\"27")), &format!("t:3:1: {quoted}"));
    refused(
        azure(&format!("{row}\rx\n")),
        "t:2:28: field `GeneratedTokens`: found `27\\rx`; \
         legal: a whole number from 0 to 4294967295",
    );
    let skipped = azure("2023-11-16 18:00:00,110,0\n2023-11-16 18:00:00,0,0\n");
    refused(
        skipped,
        "t:4:1: no requests: none of 2 rows can be used: 1 without prompt tokens, 1 without output \
         tokens",
    );
}

#[test]
fn values_of_csv_rows_that_are_not_legal_are_refused_with_their_column() {
    let tokens = "legal: a whole number from 0 to 4294967295";
    let mut cases = 0;
    for value in [
        "-1",
        "+1",
        "1.5",
        "1e3",
        "NaN",
        "inf",
        "0x10",
        "1_000",
        " 7",
        "4294967296",
        "99999999999999999999",
        "seven",
        "½",
    ] {
        let row = format!("2023-11-16 18:00:00,{value}");
        refused(
            format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{row},27\n"),
            &format!("t:2:{}: field `ContextTokens`: found `{value}`; {tokens}", row.len()),
        );
        cases += 1;
    }
    refused(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00,\xFF,27\n",
        "t:2:21: field `ContextTokens`: found `\u{FFFD}`; legal: UTF-8 text",
    );
    refused(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16,1,27\n",
        "t:2:10: field `TIMESTAMP`: found `2023-11-16`; legal: a date such as 2023-11-16 \
         18:17:03.9799600 (with up to 9 decimals and an offset such as +00:00), from 1970 to 2200",
    );
    refused(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00,4294967295,1\n",
        "t:2:30: field `ContextTokens`: found 4294967295 tokens and 1 of output; \
         legal: together at most 4294967295",
    );
    refused(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n\
         2000-01-01 00:00:00,1,1\n2011-01-01 00:00:00,1,1\n",
        "t:3:19: field `TIMESTAMP`: found 2011-01-01 00:00:00; \
         legal: at most ten years after 2000-01-01 00:00:00, the first row",
    );
    assert_eq!(cases, 13);
}

#[test]
fn malformed_burstgpt_rows_are_refused() {
    let burst = |rows: &str| {
        format!("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n{rows}")
    };
    for value in ["", "-5", "soon", "NaN", "1e999"] {
        let found = if value.is_empty() { "nothing".to_owned() } else { format!("`{value}`") };
        let column = value.len().max(1);
        refused(
            burst(&format!("{value},m,1,2,3,l\n")),
            &format!(
                "t:2:{column}: field `Timestamp`: found {found}; \
                 legal: a number of seconds, 0 or more"
            ),
        );
    }
    refused(
        burst("7,m,1,2,3,l\n6.5,m,1,2,3,l\n"),
        "t:3:3: field `Timestamp`: found 6.5; legal: at least 7, the arrival on line 2",
    );
    // Microseconds where seconds belong.
    refused(
        burst("7,m,1,2,3,l\n1000000000.5,m,1,2,3,l\n"),
        "t:3:12: field `Timestamp`: found 1000000000.5; \
         legal: at most 315360000 (ten years) more than 7, the first row",
    );
}

#[test]
fn malformed_version_2_rows_are_refused() {
    let text = fixture(TraceFormat::TraceV2);
    for (from, to, message) in [
        (
            "\n2,c1",
            "\n0,c1",
            "t:3:1: field `request_id`: found `0` for the second time; \
             legal: an id that no row above has",
        ),
        (
            "\n2,c1",
            "\nr2,c1",
            "t:3:2: field `request_id`: found `r2`; \
             legal: a whole number from 0 to 18446744073709551615",
        ),
        (
            "critical",
            "critcal",
            "t:2:17: unknown class `critcal`, did you mean `critical`?; known: `critical`, \
             `standard`, `sheddable`, `batch`, `background`",
        ),
        (
            "1000,1000",
            "-1000,1000",
            "t:2:56: field `arrival_time_us`: found `-1000`; \
             legal: a number from 0 to 315360000000000 (ten years in µs)",
        ),
        (
            "1000,1000",
            "1715299200000000,1000",
            "t:2:67: field `arrival_time_us`: found `1715299200000000`; \
             legal: a number from 0 to 315360000000000 (ten years in µs)",
        ),
        (
            ",,0,,true,200",
            ",,3,,true,200",
            "t:4:13: field `round_index`: found `3`; legal: 0, or a `session_id`",
        ),
    ] {
        refused(text.replacen(from, to, 1), message);
    }
}

#[test]
fn malformed_legacy_rows_are_refused() {
    let ids = "legal: a list of token ids such as [1,2,3], each from 0 to 4294967295";
    let legacy =
        |rows: &str| format!("arrival_time,request_id,model,prefill_tokens,decode_tokens\n{rows}");
    for value in [
        "[1",
        "[-1]",
        "[1.5]",
        "[4294967296]",
        "[null]",
        "{}",
        "7",
        "[1] [2]",
        "[\"\"1\"\"]",
        "[NaN]",
    ] {
        let shown = value.replace("\"\"", "\"");
        refused(
            legacy(&format!("0,a,m,\"{value}\",[1]\n")),
            &format!("t:2:1: field `prefill_tokens`: found `{shown}`; {ids}"),
        );
    }
    refused(
        legacy("0,a,m,[1],\n"),
        &format!("t:2:10: field `decode_tokens`: found nothing; {ids}"),
    );
    refused(
        legacy("0,a,m,[1],[1]\n0,a,m,[1],[1]\n"),
        "t:3:3: field `request_id`: found `a`; legal: an id that no row above has",
    );
    refused(
        legacy("3,a,m,[1],[1]\n2.5,b,m,[1],[1]\n"),
        "t:3:3: field `arrival_time`: found 2.5; legal: at least 3, the arrival on line 2",
    );
    refused(
        legacy("1700000000,a,m,[1],[1]\n"),
        "t:2:10: field `arrival_time`: found 1700000000; legal: at most 315360000 (ten years)",
    );
    let bare = "arrival_time,prefill_tokens,decode_tokens\n1,\"[5]\",\"[6]\"\n";
    assert_eq!(figures(&read(bare).unwrap()), [(1_000_000, 1, 1)]);
}

#[test]
fn malformed_h200_rows_are_refused() {
    let text = fixture(TraceFormat::H200);
    for (from, to, message) in [
        (
            "\n1,6014000",
            "\n0,6014000",
            "t:3:1: field `request_id`: found `0` for the second time; \
             legal: an id that no row above has",
        ),
        (
            "90000,-1,0",
            "90000,-2,0",
            "t:4:10: field `session_id`: found `-2`; \
             legal: a whole number from 0 to 18446744073709551615, or -1 for none",
        ),
        (
            "90000,-1,0",
            "90000,-1,2",
            "t:4:12: field `round`: found `2`; legal: 0 where `session_id` is -1",
        ),
        (
            "3,512,826",
            "-1,512,826",
            "t:4:19: field `prefix_tokens`: found `512`; legal: 0 where `prefix_group` is -1",
        ),
        (
            "3,512,826",
            "3,900,826",
            "t:4:18: field `prefix_tokens`: found `900`; \
             legal: at most 826, the `input_tokens`, which contain it",
        ),
        (
            "3,512,826",
            "3,512,4294967290",
            "t:4:29: field `input_tokens`: found 4294967290 tokens and 34 of output; \
             legal: together at most 4294967295",
        ),
    ] {
        refused(text.replacen(from, to, 1), message);
    }
}

#[test]
fn rows_may_be_out_of_order_only_as_far_as_is_looked_ahead() {
    let h200 = |late: usize| {
        let header = "request_id,arrival_us,session_id,round,prefix_group,prefix_tokens,\
                      input_tokens,output_tokens\n";
        let rows = (0..70_000).map(|row| {
            let arrival = if row == late { 5 } else { row + 10 };
            format!("{row},{arrival},-1,0,-1,0,1,1\n")
        });
        header.to_owned() + &rows.collect::<String>()
    };
    let requests = read(h200(65_535)).unwrap();
    assert_eq!(requests.len(), 70_000);
    assert_eq!(
        (requests[0].arrival, requests[0].name.as_deref()),
        (Time::from_micros(5), Some("65535"))
    );
    assert!(requests.is_sorted_by_key(|request| request.arrival));
    refused(
        h200(65_536),
        "t:65538:1: field `arrival_us`: found 5; legal: at least 10, the arrival on line 2: rows \
         may be out of order by at most 65536; sort the file by `arrival_us`",
    );
}

#[test]
fn a_line_break_in_quotes_is_part_of_its_value_and_lines_are_still_counted() {
    let text = fixture(TraceFormat::TraceV2);
    assert_eq!(text.lines().count(), 7, "five rows, of which one has two lines");
    let error = read(text.replacen("s9,1", "s9,-1", 1)).expect_err("a bad last row");
    assert_eq!((error.line, error.column), (7, 24), "{error}");
    assert_eq!(
        error.message,
        "field `round_index`: found `-1`; legal: a whole number from 0 to 4294967295"
    );
}
