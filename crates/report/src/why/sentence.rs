//! One sentence of cause.

use super::{length, part, share};
use crate::text::{counted, duration, grouped, percent};
use blis_lab::why::{Answer, Cause};
use blis_metrics::life::StepsOf;

/// What made the request slow, and by how much.
pub(super) fn sentence(answer: &Answer) -> String {
    let record = &answer.record;
    let nanos = part(answer, answer.cause);
    let took = duration(answer.took.as_nanos());
    let of = format!("{} of {took} ({})", length(nanos), percent(share(answer, nanos)));
    match answer.cause {
        Cause::Own => {
            let what = match answer.measure {
                blis_lab::why::Measure::Ttft => counted(computed(answer), "prompt token"),
                _ => counted(record.output_tokens.into(), "output token"),
            };
            format!("Its own work: {of} is what its {what} take alone on an idle instance.")
        }
        Cause::Gateway => format!("The gateway: {of} went by before it was sent to an instance."),
        Cause::Queue => format!("The queue: {of} it waited {}.", behind(answer)),
        Cause::Reload => {
            format!("Reload: {of} it waited for blocks to come back from the CPU tier.")
        }
        Cause::Preemption => format!(
            "Preemption: {of} it waited and computed again, because it lost its blocks {}.",
            counted(record.preemptions.into(), "time")
        ),
        Cause::Prefill => {
            format!(
                "Prefill of others: {of} its steps computed others' prompts{}.",
                largest(answer)
            )
        }
        Cause::Batch => {
            let most = answer.steps().map(|step| step.batch.decode_seqs).max();
            let most = counted(most.unwrap_or(0).into(), "request");
            format!("Decodes of others: {of} its steps computed for a batch of up to {most}.")
        }
        Cause::Host => {
            format!("The host: {of} the GPU had nothing to do while the host prepared its steps.")
        }
        Cause::Phantom => format!(
            "A phantom hit: {of} it computed prompt tokens that the router believed to be cached \
             ({} expected, {} found).",
            grouped(record.expected_cached_tokens.unwrap_or(0).into()),
            grouped(record.cached_tokens.unwrap_or(0).into()),
        ),
        Cause::Stale => stale(answer, &took),
    }
}

/// Prompt tokens that it had to compute.
fn computed(answer: &Answer) -> u64 {
    let record = &answer.record;
    (record.input_tokens - record.cached_tokens.unwrap_or(0)).into()
}

fn behind(answer: &Answer) -> String {
    let ahead = &answer.life.ahead;
    let tokens: u64 = ahead.iter().map(|ahead| u64::from(ahead.tokens)).sum();
    match ahead.len() as u64 {
        0 => {
            format!("for {} to leave room", counted(answer.life.found.1.into(), "running request"))
        }
        many => format!(
            "behind {} with {} to compute",
            counted(many, "request"),
            counted(tokens, "token")
        ),
    }
}

fn largest(answer: &Answer) -> String {
    let tokens = |step: &&StepsOf| step.largest.map(|(_, tokens)| tokens);
    let step = answer.steps().max_by_key(tokens);
    step.and_then(|step| step.largest).map_or_else(String::new, |(request, tokens)| {
        format!(", up to {} of request {} in one step", counted(tokens.into(), "token"), request.0)
    })
}

fn stale(answer: &Answer, took: &str) -> String {
    let chosen = answer.record.instance;
    let Some((fresh, Some(there))) = answer.elsewhere else { return String::new() };
    let considered = answer.life.considered.as_ref();
    let seen = considered.and_then(|it| it.candidates.iter().find(|c| Some(c.instance) == chosen));
    let seen = seen.map_or_else(String::new, |candidate| {
        let now = format!("{} waiting and {} running", candidate.waiting, candidate.running);
        match candidate.load {
            Some((waiting, running, age)) => format!(
                ", where it saw {waiting} waiting and {running} running, {} old; there were {now}",
                duration(age.as_nanos())
            ),
            None => format!(", which had {now}"),
        }
    });
    format!(
        "Stale routing: the router chose instance {}{seen}. With fresh signals it chooses instance \
         {}, where the request takes {} instead of {took}.",
        chosen.map_or(0, |it| it.0),
        fresh.0,
        duration(there.as_nanos()),
    )
}
