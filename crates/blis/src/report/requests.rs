//! `--requests-out`: one CSV row a request, written as requests end.

use crate::failure::Failure;
use crate::output::{Output, failed};
use crate::target::Target;
use blis_core::{Span, Time};
use blis_metrics::{Fact, Listener, Record, Status};
use blis_scenario::Names;
use std::io::{self, Write};
use std::path::PathBuf;

const HEADER: &str = "request_id,arrival_us,class,tenant,session_id,round,instance,status,\
                      input_tokens,output_tokens,cached_tokens,predicted_cached_tokens,queue_us,\
                      reload_us,ttft_us,e2e_us,preemptions";

/// Writes a row for every request that ends.
pub(crate) struct RequestRows {
    path: PathBuf,
    output: Output,
    names: Names,
    /// The first write that failed; a listener cannot stop a run, so it is told at the end.
    failure: Option<io::Error>,
}

impl RequestRows {
    /// Opens the file `target`; `names` must be given to the run as well.
    pub(crate) fn create(target: &Target, names: Names) -> Result<RequestRows, Failure> {
        let path = target.given.clone();
        let mut output = Output::create(target)?;
        writeln!(output, "{HEADER}").map_err(|error| failed(&path, &error))?;
        Ok(RequestRows { path, output, names, failure: None })
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.failure {
            Some(error) => Err(failed(&self.path, &error)),
            None => self.output.finish(),
        }
    }

    fn row(&mut self, status: Status, record: &Record<'_>) -> io::Result<()> {
        let optional = |value: Option<String>| value.unwrap_or_default();
        let name = record.name.map_or_else(|| record.request.0.to_string(), quoted);
        let out = &mut self.output;
        write!(
            out,
            "{name},{},{},",
            micros(record.arrival.since(Time::ZERO)),
            record.class.name()
        )?;
        write!(
            out,
            "{},{},{},{},{},{},{},{},{},",
            quoted(&self.names.tenant(record.tenant)),
            optional(record.session.map(|session| quoted(&self.names.session(session)))),
            record.round,
            optional(record.instance.map(|instance| instance.0.to_string())),
            status.name(),
            record.input_tokens,
            record.output_tokens,
            optional(record.cached_tokens.map(|tokens| tokens.to_string())),
            optional(record.expected_cached_tokens.map(|tokens| tokens.to_string())),
        )?;
        writeln!(
            out,
            "{},{},{},{},{}",
            micros(record.split.queue),
            micros(record.split.reload),
            optional(record.ttft.map(micros)),
            optional(record.e2e.map(micros)),
            record.preemptions
        )
    }
}

impl Listener for RequestRows {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let Fact::Closed { status, record } = fact else { return };
        if self.failure.is_none()
            && let Err(error) = self.row(*status, record)
        {
            self.failure = Some(error);
        }
    }
}

/// Microseconds, exactly, without trailing zeros.
pub(crate) fn micros(span: Span) -> String {
    let (whole, nanos) = (span.as_nanos() / 1_000, span.as_nanos() % 1_000);
    if nanos == 0 {
        return whole.to_string();
    }
    format!("{whole}.{nanos:03}").trim_end_matches('0').to_owned()
}

/// A CSV field, in quotes if it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_exact() {
        for (nanos, text) in [(0, "0"), (1, "0.001"), (1_500, "1.5"), (2_000_000, "2000")] {
            assert_eq!(micros(Span::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn fields_are_quoted_only_where_they_must() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
