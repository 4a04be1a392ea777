//! `--perfetto`: the run as a trace that ui.perfetto.dev and Chrome show.
//!
//! Every instance is a process with its steps on one track and counters for waiting and running
//! requests and for KV blocks. A request is an asynchronous slice of its instance, with a slice
//! inside for everything it did; one that no instance had is of the gateway. A request is written
//! when it ends, so that memory does not grow with the run.

use super::requests::micros;
use super::{Lines, Recorder, Sink};
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_core::{InstanceId, Span, Time};
use blis_metrics::{Batch, Fact, Life, Lives, Record, Status};
use blis_scenario::{Plan, limit};
use serde_json::{Value, json};
use std::io::{self, Write};

const GB: u64 = 1_000_000_000;
/// The track of the steps.
const STEPS: u64 = 1;

/// A trace that is being written.
struct Trace {
    output: Output,
    lives: Lives,
    /// The process of requests that no instance had.
    gateway: u64,
    /// Bytes written, and the most that may be.
    bytes: u64,
    max_gb: u64,
}

/// Opens the file `target` for a run of `plan`, which has to state details.
pub(crate) fn create(target: &Target, plan: &Plan) -> Result<Box<dyn Recorder>, Failure> {
    let expected = plan.expected_requests();
    if let Some(message) = expected.and_then(|requests| limit::of_events(requests, plan.max_gb)) {
        return Err(Failure::Input(format!("--perfetto: {message}")));
    }
    let mut trace = Trace {
        output: Output::begun(target, "{\"traceEvents\":[")?,
        lives: Lives::default(),
        gateway: u64::from(plan.instances) + 1,
        bytes: 0,
        max_gb: plan.max_gb,
    };
    trace.processes(plan.instances).map_err(|error| trace.failure(&error))?;
    Ok(Lines::recorder(trace, |trace, at, fact: &Fact<'_>| trace.hear(at, fact)))
}

impl Sink for Trace {
    fn failure(&self, error: &io::Error) -> Failure {
        self.output.failure(error)
    }

    fn finish(mut self) -> Result<(), Failure> {
        write!(self.output, "\n]}}\n").map_err(|error| self.output.failure(&error))?;
        self.output.finish()
    }
}

impl Trace {
    fn processes(&mut self, instances: u32) -> io::Result<()> {
        for instance in (0..instances).map(InstanceId) {
            let name = format!("instance {}", instance.0);
            self.name("process_name", process(instance), &name)?;
            self.name("thread_name", process(instance), "steps")?;
        }
        self.name("process_name", self.gateway, "gateway")
    }

    fn name(&mut self, what: &str, process: u64, name: &str) -> io::Result<()> {
        let args = json!({"name": name});
        self.event(what, "M", process, Time::ZERO, &json!({"tid": STEPS, "args": args}))
    }

    fn hear(&mut self, at: Time, fact: &Fact<'_>) -> io::Result<()> {
        let life = self.lives.hear(at, fact);
        match *fact {
            Fact::Steps { instance, count, duration, gpu, ref batch, blocks_in_use, .. } => {
                let from = at - duration * count;
                self.steps(process(instance), from, duration * count, (count, gpu, batch))?;
                let args = json!({"waiting": batch.waiting, "running": batch.running});
                self.counter("requests", process(instance), from, &args)?;
                let args = json!({"in use": blocks_in_use});
                self.counter("KV blocks", process(instance), at, &args)
            }
            Fact::Closed { status, ref record } => match life {
                Some(life) => self.request(status, record, &life, at),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// A run of equal steps.
    fn steps(
        &mut self,
        process: u64,
        from: Time,
        span: Span,
        (count, gpu, batch): (u64, Span, &Batch),
    ) -> io::Result<()> {
        let name = match (batch.prefill_seqs, batch.decode_seqs) {
            (0, _) => "decode",
            (_, 0) => "prefill",
            _ => "prefill and decode",
        };
        let args = json!({
            "steps": count,
            "prefill_requests": batch.prefill_seqs,
            "prefill_tokens": batch.prefill_tokens,
            "decodes": batch.decode_seqs,
            "gpu_us": micros(gpu),
        });
        let more = json!({"tid": STEPS, "dur": number(span), "cat": "step", "args": args});
        self.event(name, "X", process, from, &more)
    }

    fn counter(&mut self, name: &str, process: u64, at: Time, args: &Value) -> io::Result<()> {
        self.event(name, "C", process, at, &json!({"tid": 0, "args": args}))
    }

    /// A request from its arrival to its end, and in it what it did.
    fn request(
        &mut self,
        status: Status,
        record: &Record<'_>,
        life: &Life,
        end: Time,
    ) -> io::Result<()> {
        let process = record.instance.map_or(self.gateway, process);
        // A local id keeps its track with those of its process.
        let id = json!({"local": format!("{:#x}", record.request.0)});
        let more = |args: &Value| json!({"cat": "request", "id2": id, "tid": 0, "args": args});
        let name = record.name.map_or_else(|| record.request.0.to_string(), str::to_owned);
        let name = format!("request {name}");
        let args = json!({
            "class": record.class.name(),
            "status": status.name(),
            "input_tokens": record.input_tokens,
            "output_tokens": record.output_tokens,
            "cached_tokens": record.cached_tokens,
            "expected_cached_tokens": record.expected_cached_tokens,
            "preemptions": record.preemptions,
            "ttft_us": record.ttft.map(micros),
            "e2e_us": record.e2e.map(micros),
        });
        self.event(&name, "b", process, record.arrival, &more(&args))?;
        for stretch in &life.stretches {
            let args = json!({"preempted": stretch.preempted});
            let name = stretch.doing.name();
            self.event(name, "b", process, stretch.from, &more(&args))?;
            self.event(name, "e", process, stretch.to, &more(&json!({})))?;
        }
        self.event(&name, "e", process, end, &more(&json!({})))
    }

    /// Writes an event with what `more` says besides.
    fn event(
        &mut self,
        name: &str,
        phase: &str,
        process: u64,
        at: Time,
        more: &Value,
    ) -> io::Result<()> {
        let ts = number(at.since(Time::ZERO));
        let mut event = json!({"name": name, "ph": phase, "pid": process, "ts": ts});
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more.clone());
        }
        let separator = if self.bytes == 0 { "" } else { ",\n" };
        let text = format!("{separator}{event}");
        self.bytes += text.len() as u64;
        if self.bytes > self.max_gb * GB {
            return Err(io::Error::other(format!(
                "the trace takes more than {} GB; simulate fewer requests, or raise `max_gb` \
                 (`--max-gb`)",
                self.max_gb
            )));
        }
        self.output.write_all(text.as_bytes())
    }
}

/// The process of an instance; there is none of number 0.
fn process(instance: InstanceId) -> u64 {
    u64::from(instance.0) + 1
}

/// Microseconds, as exactly as a float has them.
fn number(span: Span) -> f64 {
    span.as_micros_f64()
}
