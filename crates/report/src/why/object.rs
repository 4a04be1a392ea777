//! Why a request was slow, for programs. All times are whole nanoseconds.

use super::sentence::sentence;
use blis_core::{InstanceId, Span};
use blis_lab::why::Answer;
use blis_metrics::life::{Considered, StepsOf};
use blis_metrics::{Candidate, Stretch};
use blis_scenario::json::present;
use serde_json::{Map, Value, json};

/// One request.
pub(super) fn object(answer: &Answer) -> Value {
    let Answer { name, record, life, measure, took, parts, elsewhere, oracle, cause } = answer;
    let part = |(cause, nanos): &(blis_lab::why::Cause, i64)| {
        (cause.name().replace(' ', "_"), json!(nanos))
    };
    let split = record.split.parts().map(|(name, span)| (name.to_owned(), json!(span.as_nanos())));
    present(json!({
        "request": name,
        "class": record.class.name(),
        "instance": record.instance.map(|it| it.0),
        "arrival_ns": record.arrival.as_nanos(),
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "cached_tokens": record.cached_tokens,
        "expected_cached_tokens": record.expected_cached_tokens,
        "preemptions": record.preemptions,
        "ttft_ns": record.ttft.map(Span::as_nanos),
        "e2e_ns": record.e2e.map(Span::as_nanos),
        "ttft_parts_ns": split.into_iter().collect::<Map<_, _>>(),
        "measure": measure.name(),
        "took_ns": took.as_nanos(),
        "parts_ns": parts.iter().map(part).collect::<Map<_, _>>(),
        "cause": cause.name(),
        "why": sentence(answer),
        "life": life.stretches.iter().map(stretch).collect::<Vec<_>>(),
        "steps": life.steps.iter().map(steps).collect::<Vec<_>>(),
        "found": {"waiting": life.found.0, "running": life.found.1},
        "ahead": life.ahead.iter().map(|it| json!({
            "request": it.request.0, "tokens": it.tokens, "overtook": it.overtook,
        })).collect::<Vec<_>>(),
        "considered": life.considered.as_ref().map(considered),
        "elsewhere": elsewhere.map(there),
        "oracle": oracle.map(there),
    }))
}

fn there((instance, took): (InstanceId, Option<Span>)) -> Value {
    json!({"instance": instance.0, "took_ns": took.map(Span::as_nanos)})
}

fn stretch(it: &Stretch) -> Value {
    json!({
        "doing": it.doing.name(),
        "from_ns": it.from.as_nanos(),
        "to_ns": it.to.as_nanos(),
        "preempted": it.preempted,
    })
}

fn steps(it: &StepsOf) -> Value {
    json!({
        "end_ns": it.end.as_nanos(),
        "count": it.count,
        "duration_ns": it.duration.as_nanos(),
        "gpu_ns": it.gpu.as_nanos(),
        "stall_ns": it.stall.as_nanos(),
        "own_tokens": it.own_tokens,
        "prefill_tokens": it.batch.prefill_tokens,
        "decodes": it.batch.decode_seqs,
        "largest": it.largest.map(|(id, tokens)| json!({"request": id.0, "tokens": tokens})),
    })
}

fn considered(it: &Considered) -> Value {
    let candidate = |candidate: &Candidate| {
        let at = candidate.instance.index();
        let scores =
            it.opinions.iter().map(|(name, scores)| ((*name).to_owned(), json!(scores[at])));
        json!({
            "instance": candidate.instance.0,
            "scores": scores.collect::<Map<_, _>>(),
            "waiting_seen": candidate.load.map(|load| load.0),
            "running_seen": candidate.load.map(|load| load.1),
            "load_age_ns": candidate.load.map(|load| load.2.as_nanos()),
            "kv_utilization_seen": candidate.memory.map(|memory| memory.0),
            "kv_age_ns": candidate.memory.map(|memory| memory.1.as_nanos()),
            "waiting": candidate.waiting,
            "running": candidate.running,
            "cached_tokens": candidate.cached_tokens,
        })
    };
    json!({
        "at_ns": it.at.as_nanos(),
        "because": it.because,
        "fresh": it.fresh.0,
        "candidates": it.candidates.iter().map(candidate).collect::<Vec<_>>(),
    })
}
