//! What the tests of traces share: fixtures, and reading them to the end.

use blis_core::Request;
use blis_workload::{TraceEdit, TraceError, TraceFormat, TraceOptions, TraceSource};
use std::io::Cursor;

/// The fixture of a format.
pub(crate) fn fixture(format: TraceFormat) -> &'static str {
    match format {
        TraceFormat::Native => include_str!("fixtures/native.jsonl"),
        TraceFormat::Mooncake => include_str!("fixtures/mooncake.jsonl"),
        TraceFormat::Azure => include_str!("fixtures/azure.csv"),
        TraceFormat::BurstGpt => include_str!("fixtures/burstgpt.csv"),
        TraceFormat::TraceV2 => include_str!("fixtures/tracev2.csv"),
        TraceFormat::Legacy => include_str!("fixtures/legacy.csv"),
        TraceFormat::H200 => include_str!("fixtures/h200.csv"),
    }
}

/// `text` as a trace of that format (`None`: of the one it is in), changed by `edit`.
pub(crate) fn open(
    text: impl Into<Vec<u8>>,
    format: Option<TraceFormat>,
    edit: TraceEdit,
) -> Result<TraceSource, TraceError> {
    let reader = Box::new(Cursor::new(text.into()));
    TraceSource::from_reader(reader, "t", &TraceOptions { format, edit })
}

/// `text` as a trace whose format is found out.
pub(crate) fn detected(text: impl Into<Vec<u8>>) -> Result<TraceSource, TraceError> {
    open(text, None, TraceEdit::default())
}

/// All requests that have an arrival.
pub(crate) fn all(source: &mut TraceSource) -> Result<Vec<Request>, TraceError> {
    std::iter::from_fn(|| source.read_request().transpose()).collect()
}

/// All requests of `text` that have an arrival.
pub(crate) fn read(text: impl Into<Vec<u8>>) -> Result<Vec<Request>, TraceError> {
    all(&mut detected(text)?)
}

/// `text` is refused with that message.
#[track_caller]
pub(crate) fn refused(text: impl Into<Vec<u8>>, message: &str) {
    assert_eq!(read(text).expect_err(message).to_string(), message);
}

/// Arrivals in microseconds, prompt tokens and output tokens.
pub(crate) fn figures(requests: &[Request]) -> Vec<(u64, u32, u32)> {
    let figures = |request: &Request| {
        let micros = request.arrival.as_nanos() / 1_000;
        (micros, request.content.prompt_tokens(), request.output_tokens)
    };
    requests.iter().map(figures).collect()
}
