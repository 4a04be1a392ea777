//! Writes requests in the native trace format, so that what was simulated can be read and run
//! again.

use super::native::ROWS;
use blis_core::{Request, Span, Time};
use std::io::{self, Write};

/// What a request follows up on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Name of the request whose answer it waits for.
    pub name: Box<str>,
    /// How long the client thinks about the answer.
    pub think: Span,
}

/// Writes the line that may come first and says how many requests follow, so that a reader notices
/// if some are lost.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_header(out: &mut dyn Write, rows: u64) -> io::Result<()> {
    writeln!(out, "{{\"{ROWS}\":{rows}}}")
}

/// Writes `request` as one line, with the names of its tenant and session. Streams are written as
/// their ids, so that the line reads back as the same request, and a run of the written trace
/// repeats the run itself. Streams of requests whose own trace named none come back under other
/// ids, equal where they were equal.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_request(
    out: &mut dyn Write,
    request: &Request,
    tenant: &str,
    session: Option<&str>,
) -> io::Result<()> {
    begin(out, request)?;
    write!(out, ",\"arrival_us\":{}", micros(request.arrival))?;
    finish(out, request, tenant, session)
}

/// Writes `request` as one line that is sent after the one before it, which must be `after`; when
/// it arrives is not written.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_follow_up(
    out: &mut dyn Write,
    request: &Request,
    tenant: &str,
    session: Option<&str>,
    after: &After,
) -> io::Result<()> {
    begin(out, request)?;
    out.write_all(b",\"after\":")?;
    text(out, &after.name)?;
    write!(out, ",\"think_ms\":{}", millis(after.think))?;
    finish(out, request, tenant, session)
}

/// Writes the id.
fn begin(out: &mut dyn Write, request: &Request) -> io::Result<()> {
    out.write_all(b"{\"id\":")?;
    match &request.name {
        Some(name) => text(out, name),
        None => write!(out, "\"{}\"", request.id.0),
    }
}

/// Writes what stands behind the arrival.
fn finish(
    out: &mut dyn Write,
    request: &Request,
    tenant: &str,
    session: Option<&str>,
) -> io::Result<()> {
    out.write_all(b",\"prompt\":[")?;
    for (index, segment) in request.content.segments().iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(out, "{comma}[\"{}\",{}]", segment.stream.0, segment.tokens)?;
    }
    let output_stream = request.content.output_stream().0;
    write!(out, "],\"output_tokens\":{},", request.output_tokens)?;
    write!(out, "\"output_stream\":\"{output_stream}\",\"class\":\"{}\"", request.class.name())?;
    out.write_all(b",\"tenant\":")?;
    text(out, tenant)?;
    if let Some(session) = session {
        out.write_all(b",\"session\":")?;
        text(out, session)?;
        write!(out, ",\"round\":{}", request.round)?;
    }
    if let Some(deadline) = request.deadline {
        write!(out, ",\"deadline_ms\":{}", millis(deadline))?;
    }
    if let Some(patience) = request.patience {
        write!(out, ",\"patience_ms\":{}", millis(patience))?;
    }
    out.write_all(b"}\n")
}

fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}

/// `time` in microseconds, exactly.
pub(super) fn micros(time: Time) -> String {
    decimal(time.as_nanos(), 3)
}

pub(super) fn millis(span: Span) -> String {
    decimal(span.as_nanos(), 6)
}

/// `nanos` with the last `places` digits behind the point, without trailing zeros.
pub(super) fn decimal(nanos: u64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let rest = format!("{rest:0width$}", width = places as usize);
    format!("{whole}.{}", rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_exactly_and_without_trailing_zeros() {
        for (nanos, expected) in [(0, "0"), (1_200_000, "1200"), (1_500, "1.5"), (7, "0.007")] {
            assert_eq!(micros(Time::from_nanos(nanos)), expected);
        }
        assert_eq!(millis(Span::from_nanos(500_000_000)), "500");
        assert_eq!(millis(Span::from_nanos(u64::MAX)), "18446744073709.551615");
    }
}
