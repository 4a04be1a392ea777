//! Measured steps: what a fit is made from, and how a server's log becomes that.
//!
//! Whoever reads the log's file hands over its columns as plain values.

use super::trace::{Trace, TracedStep, Ways};
use crate::profile::Profile;
use crate::profile::host::Host;
use crate::profile::term::Site;
use crate::shape::StepShape;
use blis_core::math::{count, float};

/// One measured step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// What it computed.
    pub shape: StepShape,
    /// How long it took, in microseconds.
    pub micros: f64,
    /// How long the server then took to begin the next, in microseconds; `None` if it had no work.
    pub gap_micros: Option<f64>,
    /// How much it counts; 1 as a rule.
    pub weight: f64,
}

/// The steps of one run, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it is called in reports.
    pub name: String,
    /// What was served; runs of one workload are left out together, and weigh as much as one.
    pub workload: String,
    /// Where the steps ran.
    pub site: Site,
    /// The steps.
    pub rows: Vec<Row>,
    /// What its engine's host did when, if that was logged: then `rows` are those steps whose time
    /// on the GPU shows.
    pub trace: Option<Trace>,
}

/// When an engine's host did what for a step, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoggedHost {
    /// When `schedule()` began.
    pub scheduled_us: f64,
    /// How long that took.
    pub schedule_us: f64,
    /// How long launching took, without sampling.
    pub launch_us: f64,
    /// How long processing the tokens took.
    pub update_us: f64,
}

/// One line of a server's step log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoggedStep {
    /// When it began.
    pub start_us: f64,
    /// How long it took.
    pub duration_us: f64,
    /// Its shape; longest context and shared context may be 0 where they are not logged.
    pub shape: StepShape,
    /// Sequences in the batch afterwards.
    pub running_after: u32,
    /// Requests in the queue afterwards.
    pub waiting_after: u32,
    /// KV blocks that no running sequence holds afterwards.
    pub free_blocks_after: u32,
    /// What the host did, if that was logged.
    pub host: Option<LoggedHost>,
}

/// One line of a server's request log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoggedRequest {
    /// When it arrived.
    pub arrival_us: f64,
    /// When it was first scheduled.
    pub scheduled_us: f64,
    /// When its first token came out.
    pub first_token_us: f64,
    /// When its last token came out.
    pub last_token_us: f64,
    /// Tokens of its prompt.
    pub input_tokens: u32,
    /// Tokens it generated.
    pub output_tokens: u32,
}

impl Run {
    /// How many times as long as `host` says the run's host took in all, if both are known.
    pub fn host_pace(&self, host: &Host) -> Option<f64> {
        super::host::pace(self.trace.as_ref()?, host)
    }

    /// The run of a server that logged these steps and requests.
    ///
    /// The log says neither the longest context nor how much of it is shared. The first follows
    /// from the requests, exactly unless one was preempted between its first and last token, and is
    /// left unknown without them. The second follows from the blocks in use.
    pub fn from_log(
        name: &str,
        workload: &str,
        steps: &[LoggedStep],
        requests: &[LoggedRequest],
        block_size: u32,
    ) -> Run {
        let longest = longest_contexts(steps, requests);
        let shared = shared_contexts(steps, block_size);
        let gaps = steps.windows(2).map(|pair| {
            let idle = pair[0].running_after + pair[0].waiting_after == 0;
            let gap = pair[1].start_us - pair[0].start_us - pair[0].duration_us;
            (!idle).then_some(gap.max(0.0))
        });
        let gaps = gaps.chain([None]);
        let rows = steps.iter().zip(gaps).zip(longest.iter().zip(&shared));
        let rows: Vec<Row> = rows
            .map(|((step, gap_micros), (&longest, &shared))| Row {
                shape: StepShape {
                    decode_longest: match (step.shape.decode_seqs, step.shape.decode_longest) {
                        (0, _) => 0,
                        (_, 0) => longest,
                        (_, logged) => logged,
                    },
                    shared_context: shared,
                    ..step.shape
                },
                micros: step.duration_us,
                gap_micros,
                weight: 1.0,
            })
            .collect();
        let trace = trace(steps, &rows, requests);
        let works = |row: &Row| row.shape.prefill_tokens + row.shape.decode_seqs > 0;
        let rows = rows.into_iter().filter(|row| works(row) && row.micros > 0.0).collect();
        let (name, workload) = (name.to_owned(), workload.to_owned());
        Run { name, workload, site: Site::Served, rows, trace }
    }

    /// The same with those steps as rows whose time on the GPU shows, if its host was logged.
    /// `profile` guesses the others.
    #[must_use]
    pub fn seen_by(&self, host: &Host, profile: Option<&Profile>) -> Run {
        let Some(trace) = &self.trace else { return self.clone() };
        let rows = match profile {
            None => trace.visible(host, None),
            Some(profile) => {
                let profile = profile.with_graphs_up_to(trace.largest_graph);
                let guess = |shape: &StepShape| profile.step_micros(shape, Site::Served);
                trace.visible(host, Some(&guess))
            }
        };
        Run { rows, ..self.clone() }
    }
}

/// What the host did in `steps`, whose shapes are those of `rows`, if all of them say so.
fn trace(steps: &[LoggedStep], rows: &[Row], requests: &[LoggedRequest]) -> Option<Trace> {
    let step = |(step, row): (&LoggedStep, &Row)| {
        let host = step.host?;
        Some(TracedStep {
            shape: row.shape,
            scheduled_us: host.scheduled_us,
            schedule_us: host.schedule_us,
            launch_us: host.launch_us,
            done_us: step.start_us + step.duration_us,
            update_us: host.update_us,
        })
    };
    let steps: Vec<TracedStep> = steps.iter().zip(rows).map(step).collect::<Option<_>>()?;
    let ways = ways(&steps, requests);
    Some(Trace { steps, largest_graph: None, ways })
}

/// The way in is the least time from arrival to scheduling, but for one request in a hundred; the
/// ways out are those from the end of an update to the first tokens that came after it.
fn ways(steps: &[TracedStep], requests: &[LoggedRequest]) -> Option<Ways> {
    let mut to: Vec<f64> =
        requests.iter().map(|request| request.scheduled_us - request.arrival_us).collect();
    let ends: Vec<f64> = steps.iter().map(|step| step.done_us + step.update_us).collect();
    let outwards = requests.iter().filter_map(|request| {
        let after = ends.partition_point(|&end| end <= request.first_token_us);
        let step = after.checked_sub(1)?;
        Some((steps[step].seqs(), request.first_token_us - ends[step]))
    });
    to.sort_by(f64::total_cmp);
    let waited = requests.iter().map(|request| request.first_token_us - request.arrival_us);
    Some(Ways {
        inwards: to.get(to.len() / 100)?.max(0.0),
        outwards: outwards.collect(),
        ttft: waited.sum::<f64>() / float(requests.len() as u64),
    })
}

/// The longest context of each step; 0 where no request is known to decode.
fn longest_contexts(steps: &[LoggedStep], requests: &[LoggedRequest]) -> Vec<u32> {
    let ends: Vec<f64> = steps.iter().map(|step| step.start_us + step.duration_us).collect();
    // Logs are rounded, so the nearest end of a step is meant.
    let step_ending_at = |time: f64| {
        let after = ends.partition_point(|&end| end < time);
        let before = after.saturating_sub(1);
        let nearer = |&i: &usize| ends.get(i).map_or(f64::INFINITY, |end| (end - time).abs());
        if nearer(&before) <= nearer(&after) { before } else { after }
    };
    let mut longest = vec![0_u32; steps.len()];
    for request in requests {
        let first = step_ending_at(request.first_token_us);
        let last = step_ending_at(request.last_token_us);
        let most = request.input_tokens + request.output_tokens;
        let mut context = request.input_tokens;
        for longest in longest.iter_mut().take(last + 1).skip(first + 1) {
            context = (context + 1).min(most);
            *longest = (*longest).max(context);
        }
    }
    longest
}

/// Context tokens of each step that are held more than once.
///
/// Between two steps the blocks in use are known, and so are the tokens they must hold if nobody
/// has just left. Where somebody has, sequences share as much as they did before.
fn shared_contexts(steps: &[LoggedStep], block_size: u32) -> Vec<u64> {
    let size = f64::from(block_size);
    let total = steps.iter().map(|step| step.free_blocks_after).max().unwrap_or(0);
    let mut by_sequence = 0.0;
    let shared = steps.iter().map(|step| {
        let shape = &step.shape;
        let seqs = shape.prefill_seqs + shape.decode_seqs;
        if seqs > 0 && seqs == step.running_after {
            let prompts = shape.prefill_past_tokens + u64::from(shape.prefill_tokens);
            // The last block of a sequence is half empty on average.
            let slots =
                float(shape.decode_context + prompts) + f64::from(seqs) * (size - 1.0) / 2.0;
            let used = size * f64::from(total - step.free_blocks_after);
            by_sequence = (slots - used) / f64::from(seqs);
        }
        // Less than half a block each is the error of that average.
        let each = if by_sequence < size / 2.0 { 0.0 } else { by_sequence };
        count(each * f64::from(shape.decode_seqs)).min(shape.decode_context)
    });
    shared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(start_us: f64, seqs: u32, context: u64, running_after: u32, free: u32) -> LoggedStep {
        LoggedStep {
            start_us,
            duration_us: 10.0,
            shape: StepShape { decode_seqs: seqs, decode_context: context, ..StepShape::default() },
            running_after,
            free_blocks_after: free,
            ..LoggedStep::default()
        }
    }

    #[test]
    fn the_longest_context_follows_from_the_requests() {
        let steps = [
            LoggedStep {
                duration_us: 10.0,
                shape: StepShape { prefill_seqs: 1, prefill_tokens: 5, ..StepShape::default() },
                running_after: 1,
                ..LoggedStep::default()
            },
            decode(20.0, 1, 6, 1, 0),
            decode(40.0, 1, 7, 0, 0),
        ];
        let request = LoggedRequest {
            first_token_us: 10.4,
            last_token_us: 49.8,
            input_tokens: 5,
            output_tokens: 3,
            ..LoggedRequest::default()
        };
        let run = Run::from_log("a", "a", &steps, &[request], 16);
        let longest: Vec<u32> = run.rows.iter().map(|row| row.shape.decode_longest).collect();
        assert_eq!(longest, [0, 6, 7]);
        let blind = Run::from_log("a", "a", &steps, &[], 16);
        assert!(blind.rows.iter().all(|row| row.shape.decode_longest == 0));
    }

    #[test]
    fn the_gap_is_unknown_after_the_last_step_and_when_there_was_no_work() {
        let steps = [decode(0.0, 1, 6, 1, 9), decode(13.0, 1, 7, 0, 9), decode(99.0, 1, 9, 1, 9)];
        let run = Run::from_log("a", "a", &steps, &[], 16);
        let gaps: Vec<Option<f64>> = run.rows.iter().map(|row| row.gap_micros).collect();
        assert_eq!(gaps, [Some(3.0), None, None]);
    }

    #[test]
    fn what_is_held_twice_follows_from_the_blocks_in_use() {
        // Ten sequences of 40 blocks each, 32 of them the same: 32 + 10 * 8 blocks in use.
        let context = 10 * (40 * 16 - 8);
        let busy = decode(0.0, 10, context, 10, 1000 - 112);
        let leaving = decode(20.0, 10, context + 10, 4, 1000 - 64);
        let steps = [busy, leaving, decode(40.0, 0, 0, 0, 1000)];
        let run = Run::from_log("a", "a", &steps, &[], 16);
        let truth = 9.0 * 32.0 * 16.0;
        for row in &run.rows {
            let found = float(row.shape.shared_context);
            assert!((found - truth).abs() < 0.02 * truth, "{found} against {truth}");
        }
        assert_eq!(run.rows.len(), 2, "a step without work is no step");
    }

    #[test]
    fn sequences_that_share_nothing_share_nothing() {
        let steps = [decode(0.0, 10, 10 * 632, 10, 600), decode(20.0, 0, 0, 0, 1000)];
        let run = Run::from_log("a", "a", &steps, &[], 16);
        assert_eq!(run.rows[0].shape.shared_context, 0);
    }
}
