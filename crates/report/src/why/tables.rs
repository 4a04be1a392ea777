//! The life of a request, its slowest steps and the choice of its router, as tables.

use super::called;
use crate::chart::{Axis, Chart, Form, Point, Scale};
use crate::model::Table;
use crate::text::{dash, duration, grouped, percent, plain};
use blis_core::math::{count, float};
use blis_core::{Span, Time};
use blis_lab::why::{Answer, Measure};
use blis_metrics::life::{Considered, StepsOf};
use blis_metrics::{Candidate, Doing, Stretch};
use std::cmp::Reverse;

/// Cells of the bar of a life.
const BAR: u64 = 30;
/// Most rows of a life, steps and candidates that are shown.
const LIFE: usize = 10;
const STEPS: usize = 3;
const CANDIDATES: usize = 4;

/// A row of a life.
struct Line {
    what: String,
    from: Time,
    to: Time,
}

/// What the request did, in order.
pub(super) fn life(answer: &Answer) -> Table {
    let record = &answer.record;
    let mut lines: Vec<Line> =
        answer.life.stretches.iter().flat_map(|it| cut(answer, it)).collect();
    let end = lines.last().map_or(record.arrival, |line| line.to);
    lines.push(Line { what: "output".to_owned(), from: end, to: end + record.split.output });
    let lines = fold(lines);
    let whole = record.e2e.unwrap_or(Span::ZERO);
    let first = answer.life.first_token.unwrap_or(Time::NEVER);
    let window = match answer.measure {
        Measure::Ttft => (record.arrival, first.saturating_since(record.arrival)),
        Measure::E2e => (record.arrival, whole),
        Measure::Itl => (first, answer.took),
    };
    let row = |line: &Line| {
        let span = line.to.since(line.from);
        let share = |whole: Span| float(span.as_nanos()) / float(whole.as_nanos().max(1));
        let of_ttft = record.ttft.filter(|_| line.to <= first || line.what == "output");
        vec![
            line.what.clone(),
            bar(line, window),
            duration(span.as_nanos()),
            dash(of_ttft, |ttft| percent(share(ttft))),
            percent(share(whole)),
        ]
    };
    let when = format!("when, of {}", answer.measure.name());
    let header = ["what", &when, "took", "of TTFT", "of E2E"];
    Table::new("", header, lines.iter().map(row)).keyed(2)
}

/// The rows of a stretch: each prefill step has one.
fn cut(answer: &Answer, stretch: &Stretch) -> Vec<Line> {
    let again = if stretch.preempted { ", preempted" } else { "" };
    let line = |what: String, from, to| Line { what: what + again, from, to };
    if stretch.doing != Doing::Prefill {
        return vec![line(stretch.doing.name().to_owned(), stretch.from, stretch.to)];
    }
    let ran = |step: &&StepsOf| step.end > stretch.from && step.end <= stretch.to;
    let mut from = stretch.from;
    let mut lines = Vec::new();
    for step in answer.life.steps.iter().filter(ran).filter(|step| step.own_tokens > 0) {
        let what = format!("prefill of {}", grouped(step.own_tokens.into()));
        lines.push(line(what, from, step.end));
        from = step.end;
    }
    if from < stretch.to {
        lines.push(line("prefill".to_owned(), from, stretch.to));
    }
    lines
}

/// The same with as few rows as are shown: the shortest beside one another become one.
fn fold(mut lines: Vec<Line>) -> Vec<Line> {
    while lines.len() > LIFE {
        let both = |at: &usize| lines[at + 1].to.since(lines[*at].from);
        // The output stays.
        let Some(at) = (0..lines.len() - 2).min_by_key(both) else { break };
        let next = lines.remove(at + 1);
        let parts = |what: &str| -> Vec<String> {
            what.trim_start_matches("several: ").split(" + ").map(str::to_owned).collect()
        };
        let word = |what: &String| what.split(" of ").next().unwrap_or_default().to_owned();
        let mut all: Vec<String> = parts(&lines[at].what);
        all.extend(parts(&next.what));
        let mut all: Vec<String> = all.iter().map(word).collect();
        all.dedup();
        lines[at].what = format!("several: {}", all.join(" + "));
        lines[at].to = next.to;
    }
    lines
}

/// The lives of requests as bars, until the first token if they are the slowest to that.
pub(super) fn lives(answers: &[Answer]) -> Option<Chart> {
    let is_ttft = answers.first().is_some_and(|answer| answer.measure == Measure::Ttft);
    let points = answers.iter().flat_map(|answer| {
        let end = answer.life.first_token.filter(|_| is_ttft).unwrap_or(Time::NEVER);
        let point = |kind: &str, took: Span| {
            Point::named(called(answer), float(took.as_nanos()) / 1e6).of(kind)
        };
        // Each bar begins with nothing of every kind, so that kinds have the same colours.
        let none = KINDS.iter().map(|kind| point(kind, Span::ZERO));
        let stretches = answer.life.stretches.iter().filter(|it| it.from < end);
        let lines = stretches.flat_map(|it| cut(answer, it).into_iter().map(move |one| (it, one)));
        let lines = lines.map(|(it, line)| {
            let label = format!("{} from {:.3} s", line.what, line.from.as_secs_f64());
            point(kind(it), line.to.min(end).since(line.from)).labelled(label)
        });
        let output = point("output", answer.record.split.output);
        none.chain(lines).chain([output]).collect::<Vec<_>>()
    });
    let title = if is_ttft { "From arrival to first token" } else { "From arrival to the end" };
    let axes = [Axis::new("", Scale::Names), Axis::new("ms since arrival", Scale::Zero)];
    let chart = Chart::new(title, Form::Bars, axes, points.collect());
    chart.map(|chart| chart.noted("A click on a request shows its life, and why it was slow."))
}

const KINDS: [&str; 7] =
    ["gateway", "waiting", "reload", "prefill", "preempted", "decode", "output"];

fn kind(stretch: &Stretch) -> &'static str {
    match stretch.doing {
        _ if stretch.preempted => "preempted",
        Doing::Ingress => "gateway",
        doing => doing.name(),
    }
}

/// Where a row is in the latency that is asked about, which begins so and is so long; dots only if
/// it is not part of it.
fn bar(line: &Line, (begin, whole): (Time, Span)) -> String {
    let cell = |at: Time| {
        let share = float(at.saturating_since(begin).as_nanos()) / float(whole.as_nanos().max(1));
        count((share * float(BAR)).floor()).min(BAR)
    };
    let outside = line.to <= begin || line.from >= begin + whole;
    let from = cell(line.from).min(BAR - 1);
    let to = if outside { from } else { cell(line.to).max(from + 1) };
    let cells = |mark: &str, many: u64| mark.repeat(usize::try_from(many).unwrap_or(0));
    format!("{}{}{}", cells("·", from), cells("█", to - from), cells("·", BAR - to))
}

/// The slowest of its steps, in order of time.
pub(super) fn steps(answer: &Answer) -> Table {
    let mut slowest: Vec<&StepsOf> = answer.steps().collect();
    slowest.sort_by_key(|step| Reverse(step.duration));
    slowest.truncate(STEPS);
    slowest.sort_by_key(|step| step.end);
    let row = |step: &&StepsOf| {
        let largest = step
            .largest
            .map(|(request, tokens)| format!("{} (request {})", grouped(tokens.into()), request.0));
        let busy = step.gpu.min(step.duration);
        [
            format!("{:.3} s", step.end.as_secs_f64()),
            duration(step.duration.as_nanos()),
            percent(float(busy.as_nanos()) / float(step.duration.as_nanos().max(1))),
            grouped(step.own_tokens.into()),
            grouped(step.batch.prefill_tokens.into()),
            dash(largest, |text| text),
            grouped(step.batch.decode_seqs.into()),
            grouped(step.batch.waiting.into()),
        ]
    };
    let header = [
        "step ended at",
        "took",
        "GPU busy",
        "own prefill",
        "all prefill",
        "largest other",
        "decodes",
        "waiting",
    ];
    Table::new("", header, slowest.iter().map(row))
}

/// What the router chose among, the chosen first; `None` if it is not known.
pub(super) fn router(answer: &Answer) -> Option<Table> {
    let considered = answer.life.considered.as_ref()?;
    let chosen = answer.record.instance;
    let total = |candidate: &Candidate| {
        let at = candidate.instance.index();
        considered.opinions.iter().map(|(_, scores)| scores[at]).sum::<f64>()
    };
    let mut shown: Vec<&Candidate> = considered.candidates.iter().collect();
    shown.sort_by(|a, b| {
        let first = |it: &Candidate| {
            let [fresh, oracle] = [it.instance != considered.fresh, !is_oracle(answer, it)];
            (Some(it.instance) != chosen, fresh, oracle)
        };
        first(a).cmp(&first(b)).then(total(b).total_cmp(&total(a)))
    });
    shown.truncate(CANDIDATES);
    let scorers = considered.opinions.iter().map(|(name, _)| (*name).to_owned());
    let header = ["instance".to_owned()].into_iter().chain(scorers);
    let rest = ["total", "waiting (now)", "running (now)", "age", "cached now"];
    let header: Vec<String> = header.chain(rest.map(str::to_owned)).collect();
    let row = |it: &&Candidate| candidate(answer, considered, it, total(it));
    Some(Table::new("", header, shown.iter().map(row)).without_empty())
}

/// Whether the oracle chooses that one.
fn is_oracle(answer: &Answer, it: &Candidate) -> bool {
    answer.oracle.is_some_and(|(oracle, _)| oracle == it.instance)
}

fn candidate(answer: &Answer, considered: &Considered, it: &Candidate, total: f64) -> Vec<String> {
    let chosen = Some(it.instance) == answer.record.instance;
    let marks = [
        (chosen, ", chosen"),
        (!chosen && it.instance == considered.fresh, ", if fresh"),
        (is_oracle(answer, it), ", oracle"),
    ];
    let mark: String = marks.iter().filter(|(holds, _)| *holds).map(|(_, mark)| *mark).collect();
    let score = |value: f64| if value.is_finite() { plain(value) } else { "left out".to_owned() };
    let parts = considered.opinions.iter().map(|(_, scores)| score(scores[it.instance.index()]));
    let scored = !considered.opinions.is_empty();
    let seen = |seen: Option<u32>, now: u32| {
        format!("{} ({})", dash(seen, |seen| grouped(seen.into())), grouped(now.into()))
    };
    let rest = [
        if scored { score(total) } else { String::new() },
        seen(it.load.map(|load| load.0), it.waiting),
        seen(it.load.map(|load| load.1), it.running),
        it.load.map_or_else(String::new, |load| duration(load.2.as_nanos())),
        grouped(it.cached_tokens.into()),
    ];
    [format!("{}{mark}", it.instance.0)].into_iter().chain(parts).chain(rest).collect()
}
