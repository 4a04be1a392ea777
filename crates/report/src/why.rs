//! Why a request was slow: its life, what it took more than alone, and a sentence of cause.

mod object;
mod sentence;
mod tables;

use crate::model::{Block, Document, Table};
use crate::text::{counted, duration, grouped, listed, percent, slug};
use blis_core::math::float;
use blis_lab::why::{Answer, Cause, Measure};
use sentence::sentence;
use serde_json::Value;

/// Parts that are shown as 0.0 % are left out.
const LEAST_SHARE: f64 = 0.0005;

/// What was found about the requests that were asked about, of which there is at least one.
pub fn document(answers: &[Answer]) -> Document {
    let data = Value::Array(answers.iter().map(object::object).collect());
    if let [answer] = answers {
        return Document::new(title(answer), blocks(answer), data);
    }
    let measure = answers.first().map_or("", |answer| answer.measure.name());
    Document::new(
        format!("The {} slowest requests by {measure}", answers.len()),
        list(answers),
        data,
    )
}

/// A line for each request, and behind it all that was found.
pub(crate) fn list(answers: &[Answer]) -> Vec<Block> {
    let row = |answer: &Answer| {
        [
            answer.name.clone(),
            duration(answer.took.as_nanos()),
            length(part(answer, Cause::Own)),
            with_oracle(answer),
            answer.cause.name().to_owned(),
            percent(share(answer, part(answer, answer.cause))),
        ]
    };
    let header = ["request", "took", "alone", "with oracle", "cause", "of it"];
    let mut table = Table::new("", header, answers.iter().map(row)).without_empty();
    table.links = answers.iter().map(|answer| format!("#{}", slug(&called(answer)))).collect();
    let one = |answer: &Answer| Block::folded(&called(answer), blocks(answer));
    let lives = tables::lives(answers).map(Block::from);
    let shown = lives.into_iter().chain([table.into(), Block::List(causes(answers))]);
    shown.chain(answers.iter().map(one)).collect()
}

/// Each cause once, the most frequent first: its requests, and what it did to the slowest of them.
fn causes(answers: &[Answer]) -> Vec<String> {
    let mut all: Vec<Vec<&Answer>> = Vec::new();
    for answer in answers {
        match all.iter_mut().find(|same| same[0].cause == answer.cause) {
            Some(same) => same.push(answer),
            None => all.push(vec![answer]),
        }
    }
    all.sort_by_key(|same| std::cmp::Reverse(same.len()));
    let told = |same: Vec<&Answer>| {
        let names = listed(same.iter().map(|answer| Some(answer.name.clone())));
        match same[..] {
            [one] => format!("Request {names}: {}", sentence(one)),
            _ => format!("Requests {names}, e.g. {}: {}", same[0].name, sentence(same[0])),
        }
    };
    all.into_iter().map(told).collect()
}

/// What its marks and its details are called.
pub(crate) fn called(answer: &Answer) -> String {
    format!("Request {}", answer.name)
}

fn title(answer: &Answer) -> String {
    let Answer { name, record, measure, took, .. } = answer;
    let took = took.as_nanos();
    match measure {
        Measure::Itl => {
            let tokens = u64::from(record.output_tokens) - 1;
            let (mean, all) = (duration(took / tokens), duration(took));
            format!("Request {name}: mean ITL {mean}, {all} for {}", counted(tokens, "token"))
        }
        _ => format!("Request {name}: {} {}", measure.name(), duration(took)),
    }
}

fn blocks(answer: &Answer) -> Vec<Block> {
    vec![
        Block::prose(about(answer)),
        tables::life(answer).into(),
        Block::prose(compared(answer)),
        Block::prose(ahead(answer)),
        tables::steps(answer).into(),
        tables::router(answer).map_or_else(|| Block::List(Vec::new()), Block::from),
        Block::prose(oracle(answer)),
        Block::prose(sentence(answer)),
    ]
}

/// What the request is.
fn about(answer: &Answer) -> String {
    let record = &answer.record;
    let cached =
        record.cached_tokens.map(|tokens| format!("{} of them cached", grouped(tokens.into())));
    let expected = record.expected_cached_tokens;
    let expected = expected.map(|tokens| format!("{} expected", grouped(tokens.into())));
    let instance = record.instance.map_or_else(String::new, |it| format!(" at instance {}", it.0));
    format!(
        "{}: {} ({}), {}; arrived at {:.3} s, served{instance}.",
        record.class.name(),
        counted(record.input_tokens.into(), "prompt token"),
        listed([cached, expected]),
        counted(record.output_tokens.into(), "output token"),
        record.arrival.as_secs_f64(),
    )
}

/// What it took more than alone, the most first.
fn compared(answer: &Answer) -> String {
    let counts = |&(cause, nanos): &(Cause, i64)| {
        cause != Cause::Own && share(answer, nanos).abs() >= LEAST_SHARE
    };
    let mut parts: Vec<(Cause, i64)> = answer.parts.iter().copied().filter(counts).collect();
    parts.sort_by_key(|&(_, nanos)| std::cmp::Reverse(nanos));
    let shown = parts.iter().map(|&(cause, nanos)| {
        let sign = if nanos < 0 { "-" } else { "+" };
        format!("{} {sign}{} ({})", cause.name(), length(nanos), percent(share(answer, nanos)))
    });
    let shown: Vec<String> = shown.collect();
    let own = part(answer, Cause::Own);
    let alone = format!("{} ({})", length(own), percent(share(answer, own)));
    let more = if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") };
    format!("Alone on an idle instance it would take {alone}. Beyond that: {more}.")
}

/// Who came first.
fn ahead(answer: &Answer) -> String {
    let life = &answer.life;
    let Some(instance) = answer.record.instance else { return String::new() };
    let (waiting, running) = life.found;
    let tokens: u64 = life.ahead.iter().map(|ahead| u64::from(ahead.tokens)).sum();
    let overtook = life.ahead.iter().filter(|ahead| ahead.overtook).count() as u64;
    let first = life.ahead.iter().max_by_key(|ahead| ahead.tokens);
    let most = first
        .map(|it| format!(", the most {} (request {})", grouped(it.tokens.into()), it.request.0));
    let scheduled = match life.ahead.len() as u64 {
        0 => "nobody was scheduled before it".to_owned(),
        many => format!(
            "{} scheduled before it ({} joined later), with {} to compute{}",
            if many == 1 { "1 was".to_owned() } else { format!("{} were", grouped(many)) },
            grouped(overtook),
            counted(tokens, "token"),
            most.unwrap_or_default(),
        ),
    };
    format!(
        "When it joined the queue of instance {}, {} waiting and {} running; {scheduled}.",
        instance.0,
        counted(waiting.into(), "request") + if waiting == 1 { " was" } else { " were" },
        grouped(running.into()),
    )
}

/// What the oracle of routing would have done, and what that would have changed.
fn oracle(answer: &Answer) -> String {
    let Some((instance, there)) = answer.oracle else { return String::new() };
    let told = "The oracle, which knows the state of every instance and takes the one with the \
                soonest first token if nobody comes later,";
    if Some(instance) == answer.record.instance {
        return format!("{told} chooses instance {} too.", instance.0);
    }
    let what = match answer.measure {
        Measure::Itl => "time from the first token to the last",
        measure => measure.name(),
    };
    let took = duration(answer.took.as_nanos());
    let there = match there {
        Some(there) if there > answer.took => {
            format!("{} instead of {took}, because of who comes later", duration(there.as_nanos()))
        }
        Some(there) => format!("{} instead of {took}", duration(there.as_nanos())),
        None => "unknown, as it does not finish".to_owned(),
    };
    format!(
        "{told} chooses instance {}. With only this decision changed in the run, its {what} is \
         {there}.",
        instance.0
    )
}

/// The same in a word: how long it would take, and where.
fn with_oracle(answer: &Answer) -> String {
    match answer.oracle {
        Some((instance, _)) if Some(instance) == answer.record.instance => "same".to_owned(),
        Some((instance, Some(there))) => {
            format!("{} at {}", duration(there.as_nanos()), instance.0)
        }
        _ => String::new(),
    }
}

/// The part of `cause`, in ns.
fn part(answer: &Answer, cause: Cause) -> i64 {
    answer.parts.iter().find(|part| part.0 == cause).map_or(0, |part| part.1)
}

/// A length of time without its sign.
fn length(nanos: i64) -> String {
    duration(nanos.unsigned_abs())
}

/// How much of the latency that is.
fn share(answer: &Answer, nanos: i64) -> f64 {
    let sign = if nanos < 0 { -1.0 } else { 1.0 };
    sign * float(nanos.unsigned_abs()) / float(answer.took.as_nanos().max(1))
}
