//! What the fuzz targets check of a text: that its reader neither panics nor takes for ever, and
//! that what it accepts is worth something.
//!
//! The targets in `fuzz_targets` call it with whatever the fuzzer thinks of. Nothing here may
//! depend on anything but the text, so that a finding can be repeated from its file.

use blis_core::{Ending, Request, Source};
use blis_workload::{
    TraceEdit, TraceError, TraceFormat, TraceOptions, TraceSource, write_follow_up, write_request,
};
use std::io::Cursor;

/// Requests that are drawn from a workload that was accepted.
const DRAWN: usize = 64;

/// Whether the fuzzer may resolve a scenario. Saturation is measured by simulating, which takes too
/// long here; some presets ask for it.
pub fn is_cheap(text: &str) -> bool {
    let engines = text.matches("preset: vllm").count();
    !text.contains("saturation") && !text.contains('%') && text.matches("preset").count() == engines
}

/// Whether the text names no folder to read, which could be any.
pub fn stands_alone(text: &str) -> bool {
    !text.contains("servegen")
}

/// Draws some requests, with what their clients send after the answers.
///
/// # Panics
/// If one is empty or arrives before another that was drawn earlier.
pub fn draw(source: &mut dyn Source) {
    let mut last = None;
    for _ in 0..DRAWN {
        let Some(request) = source.next_request().expect("generated requests never fail") else {
            return;
        };
        assert!(last.is_none_or(|last| last <= request.arrival), "time goes back");
        last = Some(request.arrival);
        check(&request);
        let at = request.arrival;
        if let Some(next) = source.follow_up(&request, Ending::Finished, at) {
            assert!(next.arrival > at, "a follow-up arrives before the answer");
            check(&next);
        }
    }
}

fn check(request: &Request) {
    assert!(request.content.prompt_tokens() > 0 && request.output_tokens > 0, "{request:?}");
}

/// Reads `bytes` as a trace of `format`, or of the one that it looks like: as it stands, edited
/// and converted.
///
/// # Panics
/// If a trace that was read is not written and read again as the same requests.
pub fn read_trace(bytes: &[u8], format: Option<TraceFormat>) {
    let edit = TraceEdit { speedup: 0.37, limit: Some(5), ..TraceEdit::default() };
    if let Ok(source) = open(bytes, TraceOptions { format, edit }) {
        let _ = source.summarize();
    }
    let Ok(written) = rewrite(bytes, format) else { return };
    // Private streams get other ids once, and keep them from then on.
    let second = native(&written);
    assert_eq!(text(&second), text(&native(&second)), "another conversion changes the trace");
    assert_eq!(lengths(&written), lengths(&second), "a conversion changes the requests");
    let edit = TraceEdit::default();
    let options = TraceOptions { format: Some(TraceFormat::Native), edit };
    open(&written, options).and_then(TraceSource::summarize).expect("it was read before");
}

/// A trace that we have written, written once more.
fn native(bytes: &[u8]) -> Vec<u8> {
    let again = rewrite(bytes, Some(TraceFormat::Native));
    again.unwrap_or_else(|error| panic!("{error}: {}", text(bytes)))
}

/// The trace without the ids of its streams.
fn lengths(bytes: &[u8]) -> String {
    let mut quoted = false;
    let plain = text(bytes).replace("\\\"", "");
    let parts = plain.split('"').filter(|part| {
        quoted = !quoted;
        quoted || part.parse::<u64>().is_err()
    });
    parts.collect::<Vec<_>>().join("\"")
}

fn open(bytes: &[u8], options: TraceOptions) -> Result<TraceSource, TraceError> {
    TraceSource::from_reader(Box::new(Cursor::new(bytes.to_vec())), "trace", &options)
}

/// The trace in the native format, as `blis trace convert` writes it.
fn rewrite(bytes: &[u8], format: Option<TraceFormat>) -> Result<Vec<u8>, TraceError> {
    let mut source = open(bytes, TraceOptions { format, edit: TraceEdit::default() })?;
    let mut out = Vec::new();
    while let Some(entry) = source.read_entry()? {
        let request = &entry.request;
        check(request);
        let tenant = source.tenant_name(request.tenant);
        let session = request.session.map(|session| source.session_name(session));
        let session = session.as_deref();
        let written = match &entry.after {
            Some(after) => write_follow_up(&mut out, request, &tenant, session, after),
            None => write_request(&mut out, request, &tenant, session),
        };
        written.expect("memory can be written to");
    }
    Ok(out)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
