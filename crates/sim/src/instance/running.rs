//! The running batch, kept so that a step costs by what changes in it and not by its size.
//!
//! A request that decodes step after step is *steady*: at every step boundary it has one token
//! more, whatever else is in the batch. Its counters are therefore not touched; they stand as of a
//! past boundary (`since`) and are brought up to date (*settled*) when somebody looks. One number
//! says when that must be: the boundary at which its blocks are full or it has all its tokens.
//! These are kept side by side, so that finding the few requests that are due is one pass over a
//! small array.

use crate::live::{Live, Slot};
use blis_core::SloClass;
use blis_core::runs::RunId;
use blis_kv::Table;

/// Requests by class: those that arrived when requests are counted, and before that, early ones.
pub(crate) type ByClass = [[u32; SloClass::ALL.len()]; 2];

/// Not at any boundary.
const NEVER: u32 = u32::MAX;

/// The boundary of whoever has all its tokens: no request that goes on has one so early.
const ENDED: u32 = 0;

/// Boundary counts above this are reset, so that they never reach `NEVER`.
const MANY_BOUNDARIES: u32 = 1 << 30;

/// Requests that run, oldest admission first.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningBatch {
    /// Where each of them is among `entries`, so that nobody's counters move when others leave.
    order: Vec<usize>,
    entries: Vec<Running>,
    /// Entries of requests that have left.
    vacant: Vec<usize>,
    /// The boundary at which a steady request has all its tokens.
    finish_at: Vec<u32>,
    /// The boundary at which a steady request has all its tokens, or its blocks are full.
    due_at: Vec<u32>,
    /// No request is due before this boundary.
    soonest_due: u32,
    /// Step boundaries passed.
    boundaries: u32,
    /// Steady requests by class, and all of them.
    steady: ByClass,
    steady_total: u32,
    /// Requests whose last token is on its way.
    ended: usize,
    /// Sum of the goals of steady requests.
    steady_context: u64,
    /// The longest context of a steady request; `None`: not known.
    steady_longest: Option<u32>,
}

/// A request of the batch.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) slot: Slot,
    pub(crate) class: SloClass,
    early: bool,
    /// Whether it generated a token at the last boundary and will at the next.
    pub(crate) steady: bool,
    /// The boundary as of which the counters below are true, if it is steady.
    since: u32,
    /// Tokens whose KV is in its blocks.
    pub(crate) computed: u32,
    /// Tokens generated.
    pub(crate) generated: u32,
    /// Whether the step in which it generated its last token has drafted those that follow.
    pub(crate) has_draft: bool,
    /// With drafts, of a request in a step that is in flight: tokens that it generates there, and
    /// those that are computed for it in vain.
    pub(crate) fresh: u32,
    /// The number of the step that it gets them from.
    pub(crate) step: u32,
    pub(crate) rejected: u32,
    /// Blocks from its start on that other requests may have as well.
    common: u32,
    /// Tokens of its prompt, and those that it will have generated in the end.
    prompt: u32,
    output: u32,
    pub(crate) table: Table,
}

impl Running {
    /// A request that joins the batch with `cached` tokens computed.
    pub(crate) fn new(
        slot: Slot,
        live: &Live,
        table: Table,
        cached: u32,
        block_size: u32,
    ) -> Running {
        Running {
            slot,
            class: live.request.class,
            early: live.early,
            steady: false,
            since: 0,
            computed: cached,
            generated: live.generated,
            has_draft: false,
            fresh: 0,
            step: 0,
            rejected: 0,
            common: live.request.content.blocks(block_size, u32::MAX).common().len(),
            prompt: live.request.content.prompt_tokens(),
            output: live.request.output_tokens,
            table,
        }
    }

    /// Tokens it must have computed to generate its next one: prompt and generated so far.
    pub(crate) fn goal(&self) -> u32 {
        self.prompt + self.generated
    }

    /// Tokens still to generate.
    pub(crate) fn left(&self) -> u32 {
        self.output - self.generated
    }

    /// Tokens that its blocks can still take, if its counters are settled.
    pub(crate) fn room(&self, block_size: u32) -> u32 {
        self.table.blocks() * block_size - self.computed
    }

    /// Tokens still to generate as far as the engine knows: a step in flight brings one at least.
    pub(crate) fn surely_left(&self) -> u32 {
        self.left() + self.fresh.saturating_sub(1)
    }

    /// Tokens that it has computed as far as the engine knows, which takes all of a draft in
    /// flight for right.
    pub(crate) fn reached(&self) -> u32 {
        self.computed + self.rejected
    }

    /// Whether it generates one token a step; otherwise it is catching up on its prompt, or after a
    /// preemption on prompt and output.
    pub(crate) fn decodes(&self) -> bool {
        self.generated > 0 && self.goal() - self.computed == 1
    }

    /// Whether it has computed a block to the end that others may have as well and that the prefix
    /// cache does not know yet.
    pub(crate) fn has_full_block(&self, block_size: u32) -> bool {
        self.has_filled_block(self.computed, block_size)
    }

    /// The same when it will have computed so many tokens.
    fn has_filled_block(&self, computed: u32, block_size: u32) -> bool {
        let shared = self.table.shared();
        shared < self.common && computed >= (shared + 1) * block_size
    }
}

impl RunningBatch {
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(crate) fn get(&self, index: usize) -> &Running {
        &self.entries[self.order[index]]
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Running {
        &mut self.entries[self.order[index]]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Running> {
        self.order.iter().map(|&place| &self.entries[place])
    }

    /// Steady requests of each class.
    pub(crate) fn steady_by_class(&self) -> ByClass {
        self.steady
    }

    /// All steady requests.
    pub(crate) fn steady_total(&self) -> u32 {
        self.steady_total
    }

    /// Sum of the context lengths of steady requests, their next tokens included.
    pub(crate) fn steady_context(&self) -> u64 {
        self.steady_context
    }

    /// The longest context of a steady request, its next token included; 0 if there is none.
    pub(crate) fn steady_longest(&mut self) -> u32 {
        let search = || {
            let steady = self.entries.iter().filter(|running| running.steady);
            steady.map(|running| running.goal() + self.boundaries - running.since).max()
        };
        let longest = self.steady_longest.or_else(search).unwrap_or(0);
        self.steady_longest = Some(longest);
        longest
    }

    pub(crate) fn push(&mut self, running: Running) {
        if let Some(place) = self.vacant.pop() {
            self.order.push(place);
            self.entries[place] = running;
        } else {
            self.order.push(self.entries.len());
            self.entries.push(running);
        }
        self.finish_at.push(NEVER);
        self.due_at.push(NEVER);
    }

    /// Takes a request out of the batch, its counters settled.
    pub(crate) fn remove(&mut self, index: usize) -> Running {
        self.unsteady(index);
        self.ended -= usize::from(self.finish_at[index] == ENDED);
        self.finish_at.remove(index);
        self.due_at.remove(index);
        let place = self.order.remove(index);
        self.vacant.push(place);
        let running = self.entries[place].clone();
        // It has nothing that `uncommitted` looks for.
        self.entries[place].common = 0;
        running
    }

    /// `steps` step boundaries have passed: every steady request has as many tokens more.
    pub(crate) fn advance(&mut self, steps: u32) {
        self.boundaries += steps;
        self.steady_context += u64::from(steps) * u64::from(self.steady_total);
        if self.steady_total > 0 {
            self.steady_longest = self.steady_longest.map(|longest| longest + steps);
        }
    }

    /// A request has generated a token now and will at every boundary, until `unsteady`.
    pub(crate) fn make_steady(&mut self, index: usize, block_size: u32) {
        let running = &mut self.entries[self.order[index]];
        assert!(!running.steady, "it was not steady before");
        running.steady = true;
        running.since = self.boundaries;
        self.steady[usize::from(running.early)][running.class.index()] += 1;
        self.steady_total += 1;
        self.steady_context += u64::from(running.goal());
        self.steady_longest = self.steady_longest.map(|longest| longest.max(running.goal()));
        self.finish_at[index] = self.boundaries + running.left();
        self.note_due(index, block_size);
    }

    /// A request stops generating a token at every boundary. Its counters are settled.
    pub(crate) fn unsteady(&mut self, index: usize) {
        let running = self.settle(index);
        if running.steady {
            running.steady = false;
            let (class, early, goal) = (running.class, running.early, running.goal());
            self.steady[usize::from(early)][class.index()] -= 1;
            self.steady_total -= 1;
            self.steady_context -= u64::from(goal);
            self.steady_longest = self.steady_longest.filter(|&longest| longest > goal);
            self.finish_at[index] = NEVER;
            self.due_at[index] = NEVER;
        }
    }

    /// The last token of a request is on its way: it computes nothing more.
    pub(crate) fn end(&mut self, index: usize) {
        self.unsteady(index);
        self.finish_at[index] = ENDED;
        self.ended += 1;
    }

    /// Requests whose last tokens were on their way and are there, in running order.
    pub(crate) fn ended(&self, found: &mut Vec<usize>) {
        found.clear();
        if self.ended > 0 {
            find(&self.finish_at, found, |finish_at| finish_at == ENDED);
            found.retain(|&index| self.get(index).fresh == 0);
        }
    }

    /// Brings the counters of a request up to date.
    #[inline]
    pub(crate) fn settle(&mut self, index: usize) -> &mut Running {
        let running = &mut self.entries[self.order[index]];
        if running.steady {
            let steps = self.boundaries - running.since;
            running.since = self.boundaries;
            running.computed += steps;
            running.generated += steps;
        }
        running
    }

    /// A request that holds `leaf` and has computed a block behind it to the end.
    pub(crate) fn uncommitted(&self, leaf: Option<RunId>, block_size: u32) -> Option<usize> {
        let is_one = |running: &Running| {
            let since = || if running.steady { self.boundaries - running.since } else { 0 };
            let is_filled = || running.has_filled_block(running.computed + since(), block_size);
            running.table.leaf() == leaf && is_filled()
        };
        // Mostly there is none, which is found sooner without a look at the order.
        self.entries.iter().any(is_one).then(|| self.iter().position(is_one))?
    }

    /// Whether somebody has a prompt to compute, or tokens that a preemption has lost.
    pub(crate) fn catches_up(&self) -> bool {
        self.iter().any(|running| !running.steady && !running.decodes())
    }

    pub(crate) fn settle_all(&mut self) {
        for index in 0..self.len() {
            self.settle(index);
        }
    }

    /// The step in flight has been processed.
    pub(crate) fn know_fresh(&mut self, step: u32) {
        for running in self.entries.iter_mut().filter(|running| running.step == step) {
            (running.fresh, running.rejected) = (0, 0);
        }
    }

    /// Writes down when a request, which has just been settled, is due.
    pub(crate) fn note_due(&mut self, index: usize, block_size: u32) {
        let running = self.get(index);
        if running.steady {
            let full_at = self.boundaries + running.room(block_size);
            let due_at = full_at.min(self.finish_at[index]);
            self.due_at[index] = due_at;
            self.soonest_due = self.soonest_due.min(due_at);
        }
    }

    /// Steps until the first steady request has all its tokens.
    pub(crate) fn steps_to_finish(&self) -> u32 {
        least(&self.finish_at) - self.boundaries
    }

    /// Steps until the first steady request is due.
    pub(crate) fn steps_to_due(&mut self) -> u32 {
        self.soonest_due = least(&self.due_at);
        self.soonest_due - self.boundaries
    }

    /// Blocks that steady requests take in `steps` steps and for the one after them, if none of
    /// them finishes before.
    pub(crate) fn growth(&self, steps: u64, block_size: u32) -> u32 {
        let at = self.boundaries + u32::try_from(steps).expect("no more steps than tokens");
        let full = self.due_at.iter().filter(|due| **due <= at);
        full.map(|due| 1 + (at - due) / block_size).sum()
    }

    /// Steady requests that are due, in running order.
    pub(crate) fn due(&mut self, found: &mut Vec<usize>) {
        let now = self.boundaries;
        found.clear();
        if self.soonest_due <= now {
            find(&self.due_at, found, |due| due <= now);
            // To be found when somebody asks.
            self.soonest_due = 0;
        }
    }

    /// From where on nobody is steady, if before that nobody has to catch up.
    pub(crate) fn behind_steady(&self) -> Option<usize> {
        let mut catching_up = self.len() - self.steady_total as usize - self.ended;
        let mut index = self.len();
        while catching_up > 0 {
            index -= 1;
            let running = self.get(index);
            if running.steady {
                return None;
            }
            catching_up -= usize::from(running.left() > 0);
        }
        Some(index)
    }

    /// Starts to count boundaries anew before the counts get too large.
    pub(crate) fn keep_counts_small(&mut self, block_size: u32) {
        if self.boundaries < MANY_BOUNDARIES {
            return;
        }
        self.settle_all();
        (self.boundaries, self.soonest_due) = (0, 0);
        for index in 0..self.len() {
            if self.get(index).steady {
                self.get_mut(index).since = 0;
                self.finish_at[index] = self.get(index).left();
                self.note_due(index, block_size);
            }
        }
    }
}

fn least(boundaries: &[u32]) -> u32 {
    boundaries.iter().copied().min().unwrap_or(NEVER)
}

/// The indices at which `wanted` holds. Most stretches hold none, and are passed over as a whole.
fn find(boundaries: &[u32], found: &mut Vec<usize>, wanted: impl Fn(u32) -> bool) {
    const STRETCH: usize = 8;
    let (stretches, rest) = boundaries.as_chunks::<STRETCH>();
    for (number, stretch) in stretches.iter().enumerate() {
        if stretch.iter().fold(false, |any, &boundary| any | wanted(boundary)) {
            find_each(stretch, number * STRETCH, found, &wanted);
        }
    }
    find_each(rest, boundaries.len() - rest.len(), found, &wanted);
}

/// The same, looking at each; the first of them has the index `first`.
fn find_each(part: &[u32], first: usize, found: &mut Vec<usize>, wanted: impl Fn(u32) -> bool) {
    for (place, &boundary) in part.iter().enumerate() {
        if wanted(boundary) {
            found.push(first + place);
        }
    }
}
