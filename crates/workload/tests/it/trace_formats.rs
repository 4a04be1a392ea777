//! The formats of traces: how they are told apart, what is read.

use super::trace_support::{all, detected, figures, fixture, open, read, refused};
use blis_core::{Request, Segment, SloClass, Source, Span};
use blis_workload::{Skipped, TraceEdit, TraceFormat, TraceOptions, TraceSource};
use std::io::{BufReader, Cursor};

/// The requests of a fixture, and the source they came from.
fn requests(format: TraceFormat) -> (Vec<Request>, TraceSource) {
    let mut source = detected(fixture(format)).expect("the format is known");
    let requests = all(&mut source).expect("a legal trace");
    (requests, source)
}

fn names(requests: &[Request]) -> Vec<Option<&str>> {
    requests.iter().map(|request| request.name.as_deref()).collect()
}

/// How many tokens at the start of two prompts are the same.
fn shared(a: &Request, b: &Request) -> u32 {
    let mut tokens = 0;
    for (a, b) in a.content.segments().iter().zip(b.content.segments()) {
        if a.stream != b.stream {
            break;
        }
        tokens += a.tokens.min(b.tokens);
        if a.tokens != b.tokens {
            break;
        }
    }
    tokens
}

#[test]
fn every_format_is_known_by_its_first_line() {
    for format in TraceFormat::ALL {
        let text = fixture(format);
        let (expected, _) = requests(format);
        assert!(expected.len() >= 3, "{format:?}");
        let variants = [
            format!("\u{FEFF}{text}"),
            format!("\n  \r\n{text}"),
            text.replace('\n', "\r\n"),
            text.trim_end().to_owned(),
            text.replace('\n', "\n\n"),
        ];
        for variant in variants {
            let mut source = detected(variant.clone()).expect("the format is known");
            assert_eq!(source.format(), format, "{variant}");
            assert_eq!(all(&mut source).unwrap(), expected, "{variant}");
        }
        // Nothing is sought, and a line may come in pieces.
        let pieces = BufReader::with_capacity(1, Cursor::new(text));
        let mut source =
            TraceSource::from_reader(Box::new(pieces), "t", &TraceOptions::default()).unwrap();
        assert_eq!(all(&mut source).unwrap(), expected);
        let mut given = open(text, Some(format), TraceEdit::default()).unwrap();
        assert_eq!(all(&mut given).unwrap(), expected);
    }
}

#[test]
fn formats_have_names_that_lead_back_to_them() {
    let expected = ["native", "mooncake", "azure", "burstgpt", "tracev2", "legacy-csv", "h200"];
    assert_eq!(TraceFormat::ALL.map(TraceFormat::name), expected);
    for format in TraceFormat::ALL {
        assert_eq!(TraceFormat::from_name(format.name()), Some(format));
    }
    assert_eq!(TraceFormat::from_name("csv"), None);
}

#[test]
fn a_first_line_of_no_format_is_refused_with_the_formats() {
    let advice = "give it with `--from` (`--trace-format` of a run), one of `native`, `mooncake`, \
                  `azure`, `burstgpt`, `tracev2`, `legacy-csv`, `h200`";
    for line in ["{}", "[1,2]", "5", "time,prompt", "TIMESTAMP,in,out", "<html>"] {
        refused(
            line,
            &format!("t:1:1: cannot tell the format from the first line `{line}`; {advice}"),
        );
    }
    refused(
        "\n\nhello\nworld\n",
        &format!("t:3:1: cannot tell the format from the first line `hello`; {advice}"),
    );
}

#[test]
fn a_misspelt_name_is_reported_by_the_format_that_was_meant() {
    for (format, right, wrong) in [
        (TraceFormat::Native, "output_tokens", "output_token"),
        (TraceFormat::Mooncake, "hash_ids", "hash_id"),
        (TraceFormat::Azure, "ContextTokens", "ContextToken"),
        (TraceFormat::BurstGpt, "Request tokens", "Request token"),
        (TraceFormat::TraceV2, "slo_class", "slo_clas"),
        (TraceFormat::Legacy, "prefill_tokens", "prefil_tokens"),
        (TraceFormat::H200, "arrival_us", "arival_us"),
    ] {
        let text = fixture(format).replace("{\"rows\":4}\n", "").replacen(right, wrong, 1);
        let error = read(text).expect_err(wrong).to_string();
        let expected = format!("`{wrong}`, did you mean `{right}`?; known: `");
        assert!(error.starts_with("t:1:") && error.contains(&expected), "{error}");
    }
}

#[test]
fn mooncake_ids_are_streams_of_512_tokens_and_the_last_is_partial() {
    let (requests, source) = requests(TraceFormat::Mooncake);
    assert_eq!(
        figures(&requests),
        [(0, 1200, 52), (0, 1024, 26), (3_750_000, 1300, 7), (6_000_000, 9, 3)]
    );
    let blocks = |request: &Request| -> Vec<(u64, u32)> {
        request.content.segments().iter().map(|s| (s.stream.0, s.tokens)).collect()
    };
    assert_eq!(blocks(&requests[0]), [(0, 512), (1, 512), (2, 176)]);
    assert_eq!(blocks(&requests[1]), [(0, 512), (3, 512)]);
    assert_eq!(blocks(&requests[2]), [(0, 512), (1, 512), (5, 276)]);
    assert_eq!(blocks(&requests[3]), [(9_007_199_254_740_993, 9)]);
    assert_eq!(
        (shared(&requests[0], &requests[2]), shared(&requests[0], &requests[1])),
        (1024, 512)
    );
    assert!(requests.iter().all(|r| r.content.output_stream().0 >= 1 << 63), "outputs are private");
    assert_eq!(source.skipped(), Skipped { without_output: 1, ..Skipped::default() });
    assert!(!source.is_closed_loop());
}

#[test]
fn mooncake_lines_of_other_tools_may_leave_out_ids_and_add_sessions() {
    let line = |rest: &str| {
        format!("{{\"timestamp\":1.5,\"input_length\":600,\"output_length\":2{rest}}}\n")
    };
    let text = [line(",\"session_id\":\"s\""), line(",\"session_id\":7"), line("")].concat();
    let mut source = detected(text).unwrap();
    let requests = all(&mut source).unwrap();
    assert_eq!(shared(&requests[0], &requests[1]), 0);
    let sessions = requests.iter().map(|r| r.session.map(|s| source.session_name(s)));
    assert_eq!(sessions.collect::<Vec<_>>(), [Some("s".to_owned()), Some("7".to_owned()), None]);
}

#[test]
fn azure_dates_are_counted_from_the_first_row() {
    let (requests, source) = requests(TraceFormat::Azure);
    assert_eq!(figures(&requests), [(0, 110, 27), (500_000, 3180, 8), (2_750_000, 7433, 14)]);
    assert_eq!(
        source.skipped(),
        Skipped { failed: 0, without_input: 1, without_output: 1 },
        "{}",
        source.skipped()
    );
    assert_eq!(source.skipped().total(), 2);
    assert_eq!(source.skipped().to_string(), "1 without prompt tokens, 1 without output tokens");
    assert_eq!(names(&requests), [None, None, None]);
    let summary = detected(fixture(TraceFormat::Azure)).unwrap().summarize().unwrap();
    assert_eq!((summary.requests, summary.skipped), (3, source.skipped()));
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
                2024-05-10 00:00:00.009930+00:00,2162,5\n\
                2024-05-10 00:00:00+00:00,2399,6\n";
    refused(
        text,
        "t:3:25: field `TIMESTAMP`: found 2024-05-10 00:00:00; \
         legal: at least 2024-05-10 00:00:00.00993, the arrival on line 2",
    );
    assert_eq!(read(text.replace(".009930", "")).unwrap().len(), 2, "ties are legal");
}

#[test]
fn burstgpt_rows_are_rounds_of_their_sessions() {
    let (requests, source) = requests(TraceFormat::BurstGpt);
    assert_eq!(
        figures(&requests),
        [(0, 906, 446), (5_500_000, 36, 29), (5_500_000, 1779, 123), (20_250_000, 1500, 80)]
    );
    let rounds = requests.iter().map(|r| (r.session.map(|s| source.session_name(s)), r.round));
    let session = |name: &str| Some(name.to_owned());
    assert_eq!(
        rounds.collect::<Vec<_>>(),
        [(session("aaaa-1"), 0), (None, 0), (session("bbbb-2"), 0), (session("aaaa-1"), 1)],
        "the failed row is no round"
    );
    assert_eq!(shared(&requests[0], &requests[3]), 0, "no sharing is made up");
    assert_eq!(source.skipped().to_string(), "1 without output tokens");
    let first_release = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                         5,ChatGPT,472,18,490,Conversation log\n\
                         45,ChatGPT,1087,230,1317,Conversation log\n";
    assert_eq!(figures(&read(first_release).unwrap()), [(0, 472, 18), (40_000_000, 1087, 230)]);
}

#[test]
fn version_2_prompts_are_the_prefix_of_their_group_and_their_own_tokens() {
    let (requests, source) = requests(TraceFormat::TraceV2);
    assert_eq!(
        figures(&requests),
        [(1000, 150, 10), (5000, 200, 20), (9000, 350, 30), (12_000, 400, 35)],
        "in the order of arrival, with 50 tokens of a shared prefix"
    );
    assert_eq!(names(&requests), [None, None, None, Some("4")], "row 3 failed");
    assert_eq!(shared(&requests[0], &requests[2]), 50);
    assert_eq!(shared(&requests[0], &requests[1]), 0);
    let classes = requests.iter().map(|r| r.class).collect::<Vec<_>>();
    assert_eq!(classes[..2], [SloClass::Critical, SloClass::Standard]);
    let tenants = requests.iter().map(|r| source.tenant_name(r.tenant)).collect::<Vec<_>>();
    assert_eq!(tenants, ["acme", "zeta", "acme", "acme"]);
    let last = &requests[3];
    assert_eq!((last.session.map(|s| source.session_name(s)), last.round), (Some("s9".into()), 1));
    assert_eq!(source.skipped(), Skipped { failed: 1, ..Skipped::default() });
}

#[test]
fn version_2_files_of_later_years_say_how_long_a_prefix_is() {
    let text = fixture(TraceFormat::TraceV2);
    let mut rows = text.lines();
    let header = rows.next().expect("a header").replace(",streaming", ",prefix_length,streaming");
    let header = header + ",finish_reason";
    let first = rows.next().expect("a row").replace(",docs,", ",docs,400,");
    let short = read(format!("{header}\n{first}\n")).expect_err("the reason is missing");
    assert_eq!(short.message, "the row has 23 columns and the header has 24");
    let first = first + ",stop";
    let requests = read(format!("{header}\n{first}\n")).unwrap();
    assert_eq!(requests[0].content.prompt_tokens(), 500);
}

#[test]
fn legacy_prompts_share_their_equal_blocks_of_16_tokens() {
    let (requests, source) = requests(TraceFormat::Legacy);
    assert_eq!(figures(&requests), [(0, 18, 3), (50, 17, 1), (250_000, 18, 2), (1_500_000, 18, 2)]);
    assert_eq!(names(&requests), ["req_0", "req_1", "req_2", "req_4"].map(Some));
    let lengths = |r: &Request| r.content.segments().iter().map(|s| s.tokens).collect::<Vec<_>>();
    assert_eq!(lengths(&requests[0]), [16, 2]);
    let shares = [1, 2, 3].map(|other| shared(&requests[0], &requests[other]));
    assert_eq!(shares, [16, 0, 18], "17 of 18 equal tokens but the 15th are nothing shared");
    assert_eq!(source.skipped().to_string(), "1 without prompt tokens");
}

#[test]
fn h200_rounds_are_starts_of_one_stream_and_groups_share_their_prefix() {
    let (requests, source) = requests(TraceFormat::H200);
    assert_eq!(
        figures(&requests),
        [
            (14_000, 512, 41),
            (90_000, 826, 34),
            (95_000, 793, 351),
            (95_000, 600, 9),
            (97_000, 64, 2),
            (6_014_000, 1065, 66),
        ]
    );
    let expected = [None, Some("2"), Some("3"), Some("4"), Some("5"), Some("1")];
    assert_eq!(names(&requests), expected, "numbers are places in the order of arrival");
    let (first, second) = (&requests[0], &requests[5]);
    assert_eq!((first.round, second.round), (0, 1));
    assert_eq!(source.session_name(second.session.expect("has one")), "0");
    let stream = first.content.output_stream();
    assert_eq!(first.content.segments(), [Segment { stream, tokens: 512 }]);
    assert_eq!(second.content.segments(), [Segment { stream, tokens: 1065 }]);
    assert_eq!(second.content.output_stream(), stream, "the answer is part of the conversation");
    assert_eq!(shared(&requests[1], &requests[2]), 512);
    let both = &requests[3];
    assert_eq!(shared(&requests[1], both), 512);
    assert_eq!(both.content.segments()[1].tokens, 88);
    assert_eq!(both.content.output_stream(), both.content.segments()[1].stream);
    assert_eq!((both.session.is_some(), requests[1].session), (true, None));
    assert_eq!(shared(&requests[4], first), 0);
}

#[test]
fn an_h200_row_with_a_think_time_waits_for_the_answer_to_the_row_above() {
    let header = "request_id,arrival_us,session_id,round,prefix_group,prefix_tokens,input_tokens,\
                  output_tokens,think_us";
    let rows = ["0,500,7,0,-1,0,64,8,", "1,90000,7,1,-1,0,100,8,2500", "2,100,-1,0,-1,0,32,4,"];
    let text = format!("{header}\n{}\n", rows.join("\n"));
    let mut source = detected(text.clone()).expect("the format is known");
    let mut entries = Vec::new();
    while let Some(entry) = source.read_entry().expect("legal") {
        let name = entry.request.name.as_deref().map(str::to_owned);
        entries.push((name, entry.after.map(|after| (after.name.to_string(), after.think))));
    }
    let named = |name: &str| Some(name.to_owned());
    let after = ("0".to_owned(), Span::from_nanos(2_500_000));
    assert_eq!(entries, [(named("2"), None), (named("0"), None), (named("1"), Some(after))]);
    let stray = text.replace("1,90000,7", "1,90000,8");
    let legal = "where `think_us` is set, that of the row above";
    refused(stray, &format!("t:3:9: field `session_id`: found `8`; legal: {legal}"));
}
