//! `--results-path`: the cluster's flat object and one row a request, in one JSON file.

use super::Recorder;
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_core::{InstanceId, RequestId, SloClass, Span, TenantId, Time};
use blis_metrics::{Fact, Listener, Record, Status};
use blis_report::sections;
use blis_scenario::json::present;
use blis_scenario::{Names, RunResult};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Collects the rows of a run and writes the file at its end, because rows are in order of arrival.
pub(crate) struct Results {
    output: Output,
    names: Names,
    rows: Vec<Row>,
}

/// What the file says of a request.
struct Row {
    request: RequestId,
    name: Option<Box<str>>,
    arrival: Time,
    input_tokens: u32,
    output_tokens: u32,
    ttft: Option<Span>,
    e2e: Option<Span>,
    /// Absent unless it was scheduled.
    scheduling_delay: Option<Span>,
    class: SloClass,
    tenant: TenantId,
    instance: Option<InstanceId>,
    status: Status,
}

impl Results {
    /// Opens the file `target`; `names` must be given to the run as well.
    pub(crate) fn create(target: &Target, names: Names) -> Result<Box<dyn Recorder>, Failure> {
        Ok(Box::new(Results { output: Output::create(target)?, names, rows: Vec::new() }))
    }

    fn write(&mut self, result: &RunResult) -> io::Result<()> {
        let cluster = pretty(&sections::cluster(result));
        if self.rows.is_empty() {
            return writeln!(self.output, "{cluster}");
        }
        // The rows go into the object, one by one: all of them as one value would be large.
        let open = cluster.strip_suffix("\n}").expect("an object ends with its brace");
        write!(self.output, "{open},\n  \"requests\": [")?;
        for (index, row) in self.rows.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let row = pretty(&row.object(&self.names)).replace('\n', "\n    ");
            write!(self.output, "{comma}\n    {row}")?;
        }
        writeln!(self.output, "\n  ]\n}}")
    }
}

impl Recorder for Results {
    fn finish(mut self: Box<Self>, result: &RunResult) -> Result<(), Failure> {
        self.rows.sort_unstable_by_key(|row| row.request);
        self.write(result).map_err(|error| self.output.failure(&error))?;
        self.output.finish()
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("plain values can be written as JSON")
}

impl Row {
    fn object(&self, names: &Names) -> Value {
        let (ttft, e2e) = (self.ttft.map(Span::as_millis_f64), self.e2e.map(Span::as_millis_f64));
        let gaps = f64::from(self.output_tokens.saturating_sub(1).max(1));
        let number = self.request.0;
        present(json!({
            "arrived_at": self.arrival.as_secs_f64(),
            "requestID":
                self.name.as_deref().map_or_else(|| format!("request_{number}"), Into::into),
            "num_prefill_tokens": self.input_tokens,
            "num_decode_tokens": self.output_tokens,
            // Scripts take these for granted, and 0 for what did not happen.
            "ttft_ms": ttft.unwrap_or(0.0),
            "itl_ms": ttft.zip(e2e).map_or(0.0, |(ttft, e2e)| (e2e - ttft) / gaps),
            "e2e_ms": e2e.unwrap_or(0.0),
            "scheduling_delay_ms": self.scheduling_delay.map_or(0.0, Span::as_millis_f64),
            "slo_class": self.class.name(),
            "tenant_id": names.tenant(self.tenant),
            "handled_by": self.instance.map(|instance| format!("instance_{}", instance.0)),
            "status": self.status.name(),
        }))
    }
}

impl Listener for Results {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let Fact::Closed { status, record } = fact else { return };
        let Record { request, name, arrival, class, tenant, instance, .. } = *record;
        let scheduled = matches!(status, Status::Finished | Status::Running);
        self.rows.push(Row {
            request,
            name: name.map(Into::into),
            arrival,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            ttft: record.ttft,
            e2e: record.e2e,
            scheduling_delay: scheduled.then(|| record.split.gateway + record.split.queue),
            class,
            tenant,
            instance,
            status: *status,
        });
    }
}
