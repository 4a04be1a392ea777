//! Fits what the host takes to the steps of engines that log it apart.
//!
//! Means, not medians: a host that is slow now and then delays requests as much as one that is
//! always a little slow. What is far off is pulled in, so that an interruption does not bend them.

use super::design::dot;
use super::log::Run;
use super::nnls::Normal;
use super::trace::{COPY_US, Trace, TracedStep};
use crate::profile::host::{HOST_TERMS, Host, SAMPLE};
use blis_core::math::float;

/// Rounds of pulling in.
const ROUNDS: usize = 12;

/// Times the median error that a value may be off.
const FAR: f64 = 6.0;

/// More than this after the launch is no sampling, in microseconds.
const LONGEST_SAMPLE_US: f64 = 4000.0;

/// Longer than this between two turns is an interruption, in microseconds.
const LONGEST_TURN_US: f64 = 2000.0;

/// A server without asynchronous runs is taken to launch sampling in this time: on vLLM's.
const USUAL_SAMPLE_US: f64 = 1000.0;

/// Launching a step without a graph takes so many times the launching of its pieces, where only one
/// of them was seen: read off vLLM on an H200 (`data/vllm`), 22.4 ms against 9.5.
const USUAL_EAGER: f64 = 2.35;

/// An observation: what it is multiplied by, what was seen, and its weight.
type Seen = ([f64; 3], f64, f64);

/// What the hosts of `runs` take.
pub(super) fn fit(runs: &[Run]) -> Host {
    let traces = || runs.iter().filter_map(|run| run.trace.as_ref());
    let asynchronous = traces().any(Trace::is_asynchronous);
    let traces: Vec<&Trace> =
        traces().filter(|trace| trace.is_asynchronous() == asynchronous).collect();
    let mut us = [0.0; HOST_TERMS];
    let schedule = solve(&collect(&traces, |_, step| {
        Some(([1.0, seqs(step), prefills(step)], step.schedule_us))
    }));
    us[..3].copy_from_slice(&schedule);
    us[0] += mean_turn(&traces);
    // One graph: nothing but its preparation.
    let whole = |trace: &Trace, step: &TracedStep| {
        step.shape.only_decodes() && trace.is_captured(&step.shape)
    };
    let decodes = |trace: &Trace, step: &TracedStep| {
        whole(trace, step).then_some(([1.0, seqs(step), 0.0], step.launch_us))
    };
    us[3..5].copy_from_slice(&solve(&collect(&traces, decodes))[..2]);
    // A sequence costs the same with and without graphs. Fitted apart, one run without graphs and
    // with at most 45 sequences made it 133 us, which 540 sequences do not take.
    let prepare = (us[3], us[4]);
    let launches = |trace: &Trace, step: &TracedStep| {
        let rest = step.launch_us - prepare.0 - prepare.1 * seqs(step);
        let captured = f64::from(u8::from(trace.is_captured(&step.shape)));
        (!whole(trace, step)).then_some(([captured, 1.0 - captured, seqs(step)], rest))
    };
    let [pieces, eager, each] = solve(&collect(&traces, launches));
    us[5] = if pieces > 0.0 { pieces } else { eager / USUAL_EAGER };
    us[6] = each;
    us[7] = if eager > 0.0 { eager } else { pieces * USUAL_EAGER };
    let sample = solve(&samples(&traces));
    (us[8], us[9]) = ((sample[0] - COPY_US).max(0.0), sample[1]);
    if !asynchronous {
        us[8] = USUAL_SAMPLE_US;
    }
    let update = solve(&collect(&traces, |_, step| Some(([1.0, seqs(step), 0.0], step.update_us))));
    (us[10], us[11]) = (update[0] + COPY_US, update[1]);
    us[12] = way_in(&traces);
    us[13..].copy_from_slice(&way_out(&traces));
    let host = Host { us, drift: 0.0 };
    let drift = drift(runs, &host);
    Host { drift, ..host }
}

fn seqs(step: &TracedStep) -> f64 {
    f64::from(step.seqs())
}

fn prefills(step: &TracedStep) -> f64 {
    f64::from(step.shape.prefill_seqs)
}

/// What `of` finds in every step; a run counts by the root of how many it has.
fn collect(
    traces: &[&Trace],
    of: impl Fn(&Trace, &TracedStep) -> Option<([f64; 3], f64)>,
) -> Vec<Seen> {
    let mut all = Vec::new();
    for trace in traces {
        let found: Vec<([f64; 3], f64)> =
            trace.steps.iter().filter_map(|step| of(trace, step)).collect();
        let weight = 1.0 / (1.0 + float(found.len() as u64)).sqrt();
        all.extend(found.into_iter().map(|(columns, micros)| (columns, micros, weight)));
    }
    all
}

/// How long after the end of a launch with prefill the tokens of the step before came, where that
/// one only decoded: its GPU had been done for long.
fn samples(traces: &[&Trace]) -> Vec<Seen> {
    let mut all = Vec::new();
    for trace in traces {
        let pairs = trace.steps.windows(2).filter(|pair| {
            pair[0].shape.only_decodes()
                && !pair[1].shape.only_decodes()
                && pair[1].scheduled_us < pair[0].done_us
        });
        let waits = pairs.map(|pair| {
            let next = &pair[1];
            let launched = next.scheduled_us + next.schedule_us + next.launch_us;
            ([1.0, seqs(next), 0.0], pair[0].done_us - launched)
        });
        let waits: Vec<([f64; 3], f64)> =
            waits.filter(|&(_, wait)| wait < LONGEST_SAMPLE_US).collect();
        let weight = 1.0 / (1.0 + float(waits.len() as u64)).sqrt();
        all.extend(waits.into_iter().map(|(columns, wait)| (columns, wait, weight)));
    }
    all
}

/// From the end of an update to the next `schedule()`: outputs are handed out, requests taken in.
fn turns(trace: &Trace) -> Vec<f64> {
    let apart = if trace.is_asynchronous() { 2 } else { 1 };
    let pairs = trace.steps.iter().zip(trace.steps.iter().skip(apart));
    let turns = pairs.map(|(step, next)| next.scheduled_us - step.done_us - step.update_us);
    turns.filter(|turn| (0.0..LONGEST_TURN_US).contains(turn)).collect()
}

/// How long that takes on average.
fn mean_turn(traces: &[&Trace]) -> f64 {
    let mut seen = Vec::new();
    for trace in traces {
        let turns = turns(trace);
        let weight = 1.0 / (1.0 + float(turns.len() as u64)).sqrt();
        seen.extend(turns.into_iter().map(|turn| ([1.0, 0.0, 0.0], turn, weight)));
    }
    solve(&seen)[0]
}

/// The mean way in. A client that is busy makes it long, but then requests wait longer for other
/// things: every run counts by how much its TTFT is made of it.
fn way_in(traces: &[&Trace]) -> f64 {
    let known = || traces.iter().filter_map(|trace| trace.ways.as_ref());
    let weights: f64 = known().map(|ways| ways.ttft.powi(-2)).sum();
    known().map(|ways| ways.inwards * ways.ttft.powi(-2) / weights).sum()
}

/// The way out, and what each sequence of the step adds to it; runs count as for the way in.
fn way_out(traces: &[&Trace]) -> [f64; 2] {
    let mut all = Vec::new();
    for trace in traces {
        let Some(ways) = &trace.ways else { continue };
        let weight = 1.0 / (1.0 + float(ways.outwards.len() as u64)) / ways.ttft.powi(2);
        let seen = ways.outwards.iter();
        all.extend(seen.map(|&(seqs, micros)| ([1.0, f64::from(seqs), 0.0], micros, weight)));
    }
    let [step, seq, _] = solve(&all);
    [step, seq]
}

/// Least squares without negative coefficients; what is far off counts as if it were less so.
fn solve(seen: &[Seen]) -> [f64; 3] {
    let mut solution = [0.0; 3];
    let mut far = f64::INFINITY;
    for _ in 0..ROUNDS {
        let mut normal = Normal::new(3);
        for (columns, micros, weight) in seen {
            let expected = dot(columns, &solution);
            let target = expected + (micros - expected).clamp(-far, far);
            normal.add(columns, target, *weight);
        }
        solution.copy_from_slice(&normal.solve_not_negative());
        let mut off: Vec<f64> = seen
            .iter()
            .map(|(columns, micros, _)| (micros - dot(columns, &solution)).abs())
            .collect();
        let middle = off.len() / 2;
        if middle < off.len() {
            off.select_nth_unstable_by(middle, f64::total_cmp);
        }
        far = 1.0 + FAR * off.get(middle).copied().unwrap_or(0.0);
    }
    solution
}

/// How many times as long as `host` says the host of a run took in all; `None` of a host that takes
/// no time, as in a fit to what clients saw.
pub(super) fn pace(trace: &Trace, host: &Host) -> Option<f64> {
    let steps = float(trace.steps.len() as u64);
    let (mut took, mut expected) = (mean_turn(&[trace]) * steps, 0.0);
    for step in &trace.steps {
        took += step.schedule_us + step.launch_us + step.update_us;
        let time = host.time(&step.shape, trace.is_captured(&step.shape));
        let parts = time.schedule + time.prepare + time.launch + time.update;
        expected += parts.as_micros_f64() - host.cost(SAMPLE, step.seqs()) - COPY_US;
    }
    (expected > 0.0).then(|| took / expected)
}

/// How far the time that the host of each run took in all is off: the root mean square.
fn drift(runs: &[Run], host: &Host) -> f64 {
    let off = runs.iter().filter_map(|run| run.trace.as_ref());
    let off = off.filter_map(|trace| pace(trace, host)).map(|pace| pace.recip() - 1.0);
    let (squares, count) = off.fold((0.0, 0.0), |(sum, count), off| (sum + off * off, count + 1.0));
    if count > 0.0 { f64::min((squares / count).sqrt(), 1.0) } else { 0.0 }
}
