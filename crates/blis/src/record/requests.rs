//! `--requests-out`: one CSV row a request, written as requests end.

use super::{Lines, Recorder};
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_core::{Span, Time};
use blis_metrics::{Fact, Record, Status};
use blis_report::text::quoted;
use blis_scenario::Names;
use std::io::{self, Write};

const HEADER: &str = "request_id,arrival_us,class,tenant,session_id,round,instance,status,\
                      input_tokens,output_tokens,cached_tokens,predicted_cached_tokens,gateway_us,\
                      queue_us,reload_us,prefill_us,recompute_us,output_us,ttft_us,e2e_us,\
                      preemptions";

/// Opens the file `target`; `names` must be given to the run as well.
pub(crate) fn create(target: &Target, names: Names) -> Result<Box<dyn Recorder>, Failure> {
    let output = Output::begun(target, HEADER)?;
    Ok(Lines::recorder(output, move |out, _, fact: &Fact<'_>| match fact {
        Fact::Closed { status, record } => row(out, &names, *status, record),
        _ => Ok(()),
    }))
}

fn row(out: &mut Output, names: &Names, status: Status, record: &Record<'_>) -> io::Result<()> {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let [gateway, queue, reload, prefill, recompute, output] =
        record.split.parts().map(|(_, span)| micros(span));
    let fields = [
        record.name.map_or_else(|| record.request.0.to_string(), quoted),
        micros(record.arrival.since(Time::ZERO)),
        record.class.name().to_owned(),
        quoted(&names.tenant(record.tenant)),
        optional(record.session.map(|session| quoted(&names.session(session)))),
        record.round.to_string(),
        optional(record.instance.map(|instance| instance.0.to_string())),
        status.name().to_owned(),
        record.input_tokens.to_string(),
        record.output_tokens.to_string(),
        optional(record.cached_tokens.map(|tokens| tokens.to_string())),
        optional(record.expected_cached_tokens.map(|tokens| tokens.to_string())),
        gateway,
        queue,
        reload,
        prefill,
        recompute,
        output,
        optional(record.ttft.map(micros)),
        optional(record.e2e.map(micros)),
        record.preemptions.to_string(),
    ];
    writeln!(out, "{}", fields.join(","))
}

/// Microseconds, exactly, without trailing zeros.
pub(crate) fn micros(span: Span) -> String {
    let (whole, nanos) = (span.as_nanos() / 1_000, span.as_nanos() % 1_000);
    if nanos == 0 {
        return whole.to_string();
    }
    format!("{whole}.{nanos:03}").trim_end_matches('0').to_owned()
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
}
