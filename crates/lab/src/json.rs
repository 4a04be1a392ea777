//! Numbers as JSON values: finite or absent, never NaN, never a made-up zero.

use blis_metrics::{Latency, Section};
use serde_json::{Map, Number, Value};

/// Fields of a JSON object in the order they are added.
#[derive(Debug, Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Adds a count.
    pub(crate) fn count(&mut self, name: &str, value: u64) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Adds a number, if there is one.
    pub(crate) fn number(&mut self, name: &str, value: Option<f64>) {
        if let Some(number) = value.and_then(Number::from_f64) {
            self.0.insert(name.to_owned(), Value::Number(number));
        }
    }

    /// Adds text.
    pub(crate) fn text(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), Value::String(value.into()));
    }

    /// Adds anything.
    pub(crate) fn value(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Adds the statistics of a latency, e.g. `ttft_mean_ms` to `ttft_p99_ms`.
    pub(crate) fn latency(&mut self, name: &str, latency: &Latency) {
        let Latency { samples: _, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms } = *latency;
        for (statistic, value) in [
            ("mean", mean_ms),
            ("p50", p50_ms),
            ("p90", p90_ms),
            ("p95", p95_ms),
            ("p99", p99_ms),
            ("max", max_ms),
        ] {
            self.number(&format!("{name}_{statistic}_ms"), value);
        }
    }

    /// Adds everything about a group of requests.
    pub(crate) fn section(&mut self, section: &Section) {
        // Destructured without `..`, so that a new number makes this line decide how it is called.
        let Section {
            injected,
            completed,
            rejected,
            unservable,
            in_transit,
            still_queued,
            still_running,
            preemption_count,
            total_input_tokens,
            total_output_tokens,
            ttft,
            e2e,
            itl,
            scheduling_delay,
            responses_per_sec,
            tokens_per_sec,
            goodput_per_sec,
            slo_attainment,
        } = section;
        self.count("injected_requests", *injected);
        self.count("completed_requests", *completed);
        self.count("rejected_requests", *rejected);
        self.count("unservable_requests", *unservable);
        self.count("in_transit", *in_transit);
        self.count("still_queued", *still_queued);
        self.count("still_running", *still_running);
        self.count("preemption_count", *preemption_count);
        self.count("total_input_tokens", *total_input_tokens);
        self.count("total_output_tokens", *total_output_tokens);
        self.number("responses_per_sec", *responses_per_sec);
        self.number("tokens_per_sec", *tokens_per_sec);
        self.number("goodput_per_sec", *goodput_per_sec);
        self.number("slo_attainment", *slo_attainment);
        self.latency("ttft", ttft);
        self.latency("itl", itl);
        self.latency("e2e", e2e);
        self.latency("scheduling_delay", scheduling_delay);
    }

    /// The object.
    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
