//! The audit's view of one instance: its clock, who is there, when it must compute, what it did.

use super::{AuditConfig, AuditReport, Loads, Place, Steps};
use crate::audit::request::State;
use crate::fact::{Record, Status};
use blis_core::{InstanceId, Span, Time};
use std::collections::{BTreeSet, VecDeque};

/// Facts at one instant that are always fine, and how many more per request there.
const INSTANT_FACTS: u64 = 64;
const INSTANT_FACTS_PER_REQUEST: u64 = 16;

/// What the facts so far say about an instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Instance {
    /// What is known of its pool.
    pub(super) config: AuditConfig,
    clock: Time,
    waiting: u64,
    /// Requests that wait for blocks from the CPU tier, and whether there were any since the last
    /// step ended.
    loading: u64,
    loaded: bool,
    running: u64,
    /// Requests without blocks whose last token is on its way.
    ending: u64,
    /// Steps under way, perhaps although nobody is there, because a request was dropped, or
    /// finished, that they compute for.
    dropped: u32,
    /// `waiting` and `running` before the instant of `clock`, which is when a step that ends now
    /// was still on.
    waiting_before: u64,
    running_before: u64,
    /// The same at the end of past instants, if steps are formed ahead.
    past: VecDeque<(Time, [u64; 2])>,
    /// Requests there at this instant, and facts that could come again and again.
    crowd: u64,
    recurring: u64,
    busy: Span,
    gpu: Span,
    idle: Span,
    /// Time without a step because all that could be computed waited for the CPU tier.
    held_up: Span,
    pub(super) copies: Copies,
    /// Since when it has been without work, if it is.
    idle_since: Time,
    last_end: Time,
    /// When it and those before it ended: as many as may be under way, and one.
    ends: VecDeque<Time>,
    /// When the last one was formed.
    last_formed: Time,
    /// The instant at which the next step has to begin, if there is work.
    due: Time,
    /// Facts of a step's begin and end that wait for the step to be stated.
    begun: VecDeque<Time>,
    ended: Option<Time>,
    cut: Cut,
    turns_given: u64,
    turns_taken: u64,
    /// Turns of requests that left without having been scheduled.
    turns_skipped: BTreeSet<u64>,
    /// Turns of requests that were passed over, if that may happen.
    turns_passed: Option<BTreeSet<u64>>,
    tokens: Tokens,
    /// The prefill tokens of each step that has been stated to be formed and has not ended.
    pub(super) chunks: VecDeque<u64>,
}

/// Whom the run's end took away: somebody who ran, or only those who did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    #[default]
    Nobody,
    Waiting,
    Running,
}

/// Blocks that were copied beside the steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    pub(super) leaving: u64,
    pub(super) left: u64,
    /// `left` when the last step ended.
    left_before: u64,
    pub(super) returning: u64,
    pub(super) returned: u64,
}

impl Copies {
    /// Whether blocks were being copied out since the last step ended, so that requests may have
    /// waited for the room.
    fn under_way(&self) -> bool {
        self.leaving > self.left_before
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    emitted: u64,
    recorded: u64,
    computed: u64,
    cached: u64,
    lost: u64,
    /// What finished and dropped requests had computed, and at most what cut ones had.
    completed: u64,
    cut: u64,
}

impl Instance {
    pub(super) fn new(config: AuditConfig) -> Instance {
        let turns_passed = (config.loads == Loads::Connector).then(BTreeSet::new);
        Instance { config, turns_passed, ..Instance::default() }
    }

    /// Requests that wait, load and run.
    pub(super) fn population(&self) -> [u64; 3] {
        [self.waiting, self.loading, self.running]
    }

    /// Everybody there.
    fn here(&self) -> u64 {
        self.waiting + self.loading + self.running + self.ending
    }

    /// Whether nobody is there, but a step is under way.
    fn runs_for_nobody(&self) -> bool {
        self.dropped > 0 && self.here() == 0
    }

    /// Something was stated about this instance.
    pub(super) fn heard(&mut self, place: Place, log: &mut AuditReport) {
        let clock = self.clock;
        log.check(place.at >= clock, "I8", place, || {
            format!("the instance was already at {clock}")
        });
        if place.at > clock {
            if self.config.ahead > 0 {
                self.past.push_back((clock, [self.waiting, self.running]));
            }
            self.clock = place.at;
            self.waiting_before = self.waiting;
            self.running_before = self.running;
            self.crowd = self.here();
            self.recurring = 0;
        }
    }

    /// The fact just heard is of a kind that could recur without end at one instant.
    pub(super) fn recurs(&mut self, place: Place, log: &mut AuditReport) {
        self.recurring += 1;
        let most = INSTANT_FACTS + INSTANT_FACTS_PER_REQUEST * self.crowd;
        // Noted once per instant, or a livelock would fill the list.
        log.check(self.recurring != most + 1, "I15", place, || {
            format!("more than {most} facts at one instant with {} requests", self.crowd)
        });
    }

    /// The number of the next request to join the queue.
    pub(super) fn next_turn(&self) -> u64 {
        self.turns_given
    }

    /// A request joined the queue.
    pub(super) fn enqueue(&mut self, at: Time) {
        if self.here() == 0 && !self.runs_for_nobody() {
            self.idle += at.saturating_since(self.idle_since);
            self.due = at.max(self.last_end);
        }
        self.waiting += 1;
        self.crowd += 1;
        self.turns_given += 1;
    }

    /// A request joined the batch, with its `turn` if for the first time. Returns whose turn it
    /// was.
    pub(super) fn schedule(&mut self, before: State, cached: u32, turn: Option<u64>) -> u64 {
        let place = if before == State::Loading { &mut self.loading } else { &mut self.waiting };
        *place = place.saturating_sub(1);
        self.running += 1;
        self.tokens.cached += u64::from(cached);
        self.take_turn(turn)
    }

    /// A request left the queue for blocks from the CPU tier, with its `turn` if for the first
    /// time. Returns whose turn it was.
    pub(super) fn load(&mut self, turn: Option<u64>) -> u64 {
        self.waiting = self.waiting.saturating_sub(1);
        self.loading += 1;
        self.loaded = true;
        self.take_turn(turn)
    }

    /// A request gave its blocks up and is back in the queue.
    pub(super) fn unload(&mut self) {
        self.loading = self.loading.saturating_sub(1);
        self.waiting += 1;
    }

    fn take_turn(&mut self, turn: Option<u64>) -> u64 {
        while self.turns_skipped.remove(&self.turns_taken) {
            self.turns_taken += 1;
        }
        let due = self.turns_taken;
        let Some(turn) = turn else { return due };
        let Copies { leaving, left, returning, returned, .. } = self.copies;
        let copying = left < leaving || returned < returning;
        self.turns_taken = due.max(turn + 1);
        let Some(passed) = &mut self.turns_passed else { return due };
        if passed.remove(&turn) {
            self.turns_taken = due;
            return turn;
        }
        if copying {
            passed.extend((due..turn).filter(|turn| !self.turns_skipped.contains(turn)));
        }
        if copying && turn > due { turn } else { due }
    }

    /// A request left the queue for good and was never scheduled.
    pub(super) fn skip_turn(&mut self, turn: u64) {
        self.turns_skipped.insert(turn);
    }

    /// A request left the batch because its client has given up.
    pub(super) fn drop_running(&mut self, computed: u32, under_way: u32) {
        self.dropped = self.dropped.max(under_way);
        self.tokens.completed += u64::from(computed);
    }

    /// A request that has all its tokens leaves while a step computes for it.
    pub(super) fn overrun(&mut self) {
        self.dropped = self.dropped.max(1);
    }

    pub(super) fn preempt(&mut self, lost: u32, ended: bool) {
        self.running = self.running.saturating_sub(1);
        *(if ended { &mut self.ending } else { &mut self.waiting }) += 1;
        self.tokens.lost += u64::from(lost);
    }

    pub(super) fn emit(&mut self, tokens: u64) {
        self.tokens.emitted += tokens;
    }

    /// A request that was in state `before` left: it finished, its client gave up, or the run
    /// ended.
    pub(super) fn leave(&mut self, at: Time, before: State, status: Status, record: &Record<'_>) {
        let place = match before {
            State::Running | State::Dropped => &mut self.running,
            State::Loading => &mut self.loading,
            State::Ended => &mut self.ending,
            _ => &mut self.waiting,
        };
        *place = place.saturating_sub(1);
        let output = u64::from(record.output_tokens);
        self.tokens.recorded += output;
        let computed = (u64::from(record.input_tokens) + output).saturating_sub(1);
        match status {
            // What it had computed was lost when it was preempted.
            _ if before == State::Ended => {}
            Status::Finished => self.tokens.completed += computed,
            Status::Running => {
                self.tokens.cut += computed;
                self.cut = Cut::Running;
            }
            _ => {}
        }
        match status {
            Status::Finished | Status::Abandoned(_) => {
                if self.here() == 0 {
                    self.idle_since = at;
                }
            }
            _ => self.cut = self.cut.max(Cut::Waiting),
        }
    }

    /// A request that was not served left. If it was the last, all of them have waited since the
    /// last step ended, which they only do for the CPU tier.
    pub(super) fn gave_up(&mut self, place: Place, log: &mut AuditReport) {
        // The step that ends now may be stated after its effects.
        let stepping = self.ended == Some(place.at) || self.last_end == place.at;
        if stepping || self.here() > 0 || self.runs_for_nobody() {
            return;
        }
        let (due, held_up) = (self.due, self.loaded || self.copies.under_way());
        log.check(held_up || place.at == due, "I14", place, || {
            format!("the last left, but there was work from {due} on")
        });
        self.held_up += place.at.saturating_since(due);
        self.loaded = false;
    }

    /// Something happened that only happens when a step begins.
    pub(super) fn begins(&mut self, place: Place, log: &mut AuditReport) {
        if self.begun.back() == Some(&place.at) {
            return;
        }
        self.begun.push_back(place.at);
        let most = 1 + self.config.ahead;
        if let (true, Some(pending)) =
            (self.begun.len() > most as usize, self.begun.front().copied())
        {
            log.note("I9", place, || format!("a step began at {pending} and has not ended"));
            self.begun.pop_front();
        }
    }

    /// Something happened that only happens when a step ends.
    pub(super) fn ends(&mut self, place: Place, log: &mut AuditReport) {
        if place.at == self.last_end {
            return;
        }
        // The step that ends now may be stated after its effects.
        let pending = *self.ended.get_or_insert(place.at);
        log.check(pending == place.at, "I9", place, || {
            format!("tokens left at {pending} without a step that ended then")
        });
    }

    /// The engine ran.
    pub(super) fn ran(&mut self, place: Place, run: &Steps, log: &mut AuditReport) {
        let at = place.at;
        let nanos = run.count.checked_mul(run.duration.as_nanos());
        let begin = nanos.and_then(|nanos| at.as_nanos().checked_sub(nanos)).map(Time::from_nanos);
        let (Some(begin), true) = (begin, run.count > 0) else {
            log.note("I4", place, || {
                format!("{} steps of {} before {at}", run.count, run.duration)
            });
            return;
        };
        let (last_end, due) = (self.last_end, self.due);
        if begin < last_end {
            log.note("I4", place, || {
                format!("a step begins at {begin} before the last one ended at {last_end}")
            });
        } else if begin > due && (self.loaded || self.copies.under_way()) {
            self.held_up += begin.since(due);
        } else {
            let work = self.crowd > 0 || self.dropped > 0;
            log.check(begin == due && work, "I14", place, || {
                format!("a step begins at {begin}, but there was work from {due} on")
            });
        }
        self.check_formed(place, begin, run, log);
        let prefill = u64::from(run.batch.prefill_tokens);
        let chunks = if prefill > 0 { self.chunks.pop_front() } else { None };
        log.check(chunks.is_none_or(|tokens| tokens == prefill), "I18", place, || {
            format!("chunks of {chunks:?} tokens in a step with {prefill} of prefill")
        });
        let ended = self.ended.take().unwrap_or(at);
        log.check(ended == at, "I9", place, || {
            format!("tokens left at {ended}, but the step ended at {at}")
        });
        self.busy += at.saturating_since(begin);
        self.gpu += run.gpu * run.count;
        self.ends.extend((run.count > 1).then(|| at - run.duration));
        self.ends.push_back(at);
        let kept = 1 + self.config.ahead as usize;
        self.ends.drain(..self.ends.len().saturating_sub(kept));
        self.last_end = at;
        self.due = at;
        if self.runs_for_nobody() {
            self.idle_since = at;
        }
        self.dropped = self.dropped.saturating_sub(1);
        self.loaded = self.loading > 0;
        self.copies.left_before = self.copies.left;
        let kept = run.batch.tokens().saturating_sub(run.batch.wasted_tokens.into());
        self.tokens.computed += run.count * kept;
    }

    /// Steps are formed in order, when something was scheduled that belongs to them, no more of
    /// them ahead of time than may be, and of those who were there then.
    fn check_formed(&mut self, place: Place, begin: Time, run: &Steps, log: &mut AuditReport) {
        let ahead = run.ahead.as_nanos();
        let formed = Time::from_nanos(begin.as_nanos().saturating_sub(ahead));
        let Instance { config: AuditConfig { ahead: most, .. }, ends, .. } = &*self;
        let landed = ends.front().filter(|_| ends.len() > *most as usize);
        let most = match most {
            0 => Span::ZERO,
            _ => begin.saturating_since(landed.copied().unwrap_or(Time::ZERO)),
        };
        let last = if run.count > 1 { run.duration.min(most) } else { most };
        let in_order = formed >= self.last_formed && run.ahead <= last;
        log.check(in_order, "I4", place, || {
            format!("a step that begins at {begin} was formed {} before", run.ahead)
        });
        let later = |begun: &&Time| self.config.ahead > 0 && **begun > formed;
        if let Some(&begun) = self.begun.front().filter(|begun| !later(begun)) {
            self.begun.pop_front();
            log.check(begun == formed, "I9", place, || {
                format!("scheduling happened at {begun}, but the step was formed at {formed}")
            });
        }
        let before_end = run.duration.as_nanos().saturating_add(ahead);
        self.last_formed = Time::from_nanos(place.at.as_nanos().saturating_sub(before_end));
        self.check_batch(place, formed, run, log);
    }

    /// The batch must be what the facts before it made it.
    fn check_batch(&mut self, place: Place, formed: Time, run: &Steps, log: &mut AuditReport) {
        // A step without duration begins at the instant it ends: what was there before does not
        // say who was in it; nor does it where several may be formed at one instant.
        if run.duration == Span::ZERO || self.config.ahead > 1 {
            return;
        }
        let mut before = [self.waiting_before, self.running_before];
        if self.config.ahead > 0 {
            while self.past.get(1).is_some_and(|&(at, _)| at <= formed) {
                self.past.pop_front();
            }
            // Two steps may be formed at one instant if nothing was under way.
            let Some(&(_, then)) = self.past.front().filter(|_| run.ahead > Span::ZERO) else {
                return;
            };
            before = then;
        }
        let [waiting, running] = before;
        log.check(u64::from(run.batch.running) == running, "I1", place, || {
            format!("the batch has {} running, the facts {running}", run.batch.running)
        });
        // Requests that joined the queue during the step were not waiting when it began.
        log.check(u64::from(run.batch.waiting) <= waiting, "I1", place, || {
            format!("the batch left {} waiting, the facts {waiting}", run.batch.waiting)
        });
    }

    pub(super) fn emitted(&self) -> u64 {
        self.tokens.emitted
    }

    /// Checks what must hold at the run's end.
    pub(super) fn check_end(&self, id: InstanceId, ended_at: Time, log: &mut AuditReport) {
        let place = Place::instance(ended_at, id);
        log.check(self.clock <= ended_at, "I8", place, || {
            format!("the instance was active at {}, after the run's end", self.clock)
        });
        log.check(self.ended.is_none(), "I9", place, || {
            format!("tokens left at {:?} without a step that ended then", self.ended)
        });
        let left = self.here();
        log.check(left == 0, "I1", place, || format!("{left} requests are still there"));
        let works = self.cut > Cut::Nobody || self.runs_for_nobody();
        let idle_now = if works { Span::ZERO } else { ended_at.saturating_since(self.idle_since) };
        let unfinished = if works { ended_at.saturating_since(self.due) } else { Span::ZERO };
        // Before the cut somebody was there; if nobody ran, no step was on.
        let held_up = self.loaded || self.copies.under_way() || self.config.ahead > 0;
        let stalled = self.cut == Cut::Waiting && !held_up && unfinished > Span::ZERO;
        log.check(!stalled, "I14", place, || {
            format!("idle since {} with requests waiting", self.due)
        });
        let (busy, idle, gpu) = (self.busy, self.idle + idle_now, self.gpu);
        log.check(gpu <= busy, "I4", place, || format!("the GPU computed {gpu}, busy {busy}"));
        let total = busy + idle + self.held_up + unfinished;
        log.check(Time::ZERO + total == ended_at, "I4", place, || {
            let held_up = self.held_up;
            format!(
                "busy {busy} + idle {idle} + held up {held_up} + unfinished {unfinished} is not \
                 the elapsed time"
            )
        });
        let Copies { leaving, left, returning, returned, .. } = self.copies;
        log.check(left <= leaving && returned <= returning, "I5", place, || {
            format!("{left} of {leaving} blocks left, {returned} of {returning} returned")
        });
        self.check_tokens(place, log);
    }

    fn check_tokens(&self, place: Place, log: &mut AuditReport) {
        let Tokens { emitted, recorded, computed, cached, lost, completed, cut } = self.tokens;
        log.check(emitted == recorded, "I7", place, || {
            format!("{emitted} tokens left the engine, {recorded} are in the records")
        });
        // Each stretch of running takes a request from its cached tokens to those it had when it
        // was preempted (and lost them) or finished (all but the last token it generated).
        let (known, most) = (computed + cached, completed + lost + cut);
        // What was lost or dropped may have been computed by a step that has not ended.
        let cut_short = self.config.ahead > 0 && self.cut > Cut::Nobody;
        let open = self.cut == Cut::Running || cut_short || self.dropped > 0;
        let holds = if open { known <= most } else { known == most };
        log.check(holds, "I2", place, || {
            format!(
                "{computed} tokens computed + {cached} cached, but {completed} of finished \
                 requests + {lost} lost + at most {cut} of running ones"
            )
        });
    }
}
