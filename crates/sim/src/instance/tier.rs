//! The CPU tier of one engine: when blocks are copied out and back, and who waits for it.
//!
//! Copies out happen beside the steps, or a step waits for them: the copies of victims
//! (`on-evict`) and of swapped requests, whose blocks cannot be used again before. Copies back
//! either hold up the step of the whole batch (*blocking*), or the request waits for them in the
//! state *loading* while others run (*async*), as with vLLM's connectors. What is done is noticed
//! at step boundaries, as an engine that asks its connector once a step does.

use super::connector::Connector;
use super::running::Running;
use super::{Instance, Kit, Released, release};
use crate::config::{KvTier, Reload};
use crate::live::{Place, Slot};
use blis_core::{RequestId, Span, Time};
use blis_kv::{Departure, Hit, Link, Table, TransferId};
use blis_metrics::Fact;
use blis_policy::MemoryView;
use std::collections::VecDeque;

/// The tier's side of an engine.
#[derive(Clone)]
pub(super) struct TierState {
    pub(super) out: Link,
    pub(super) back: Link,
    /// Copies out that are under way beside the steps.
    pub(super) departures: Vec<Leaving>,
    /// Requests that wait for their blocks.
    pub(super) loading: Vec<Load>,
    /// Requests whose blocks are back, in that order.
    pub(super) ready: VecDeque<Load>,
    transfers: u64,
    /// Blocks copied out and back that the step which is being formed waits for.
    victims: u32,
    returning: u32,
    /// How long steps have waited for copies so far.
    stalled: Span,
    /// Whether a request has joined or left the batch since idle blocks were last copied.
    changed: bool,
    thrashing: Thrashing,
    /// What else a policy needs that copies prompts as they are computed.
    pub(super) connector: Connector,
}

/// A copy out under way beside the steps.
#[derive(Clone)]
pub(super) struct Leaving {
    pub(super) id: TransferId,
    pub(super) departure: Departure,
    /// The request that it is made for, if that has to wait for it.
    pub(super) of: Option<RequestId>,
}

/// A request on its way from the queue to the batch, with blocks from the tier.
#[derive(Clone)]
pub(super) struct Load {
    id: TransferId,
    slot: Slot,
    pub(super) table: Table,
    /// Blocks that are copied back, and from the start of the prompt to their end.
    blocks: u32,
    upto: u32,
    /// All blocks of its prompt and of what it has generated.
    pub(super) whole: u32,
    since: Time,
    /// What holds the copies in the tier meanwhile.
    reads: Option<Departure>,
}

/// Shares of the blocks copied out lately that came back soon; what is long ago fades away.
#[derive(Clone, Copy, Debug, Default)]
struct Thrashing {
    out: f64,
    back_soon: f64,
    as_of: Time,
}

impl Thrashing {
    fn count(&mut self, now: Time, window: Span, out: u32, back_soon: u32) {
        let age = now.saturating_since(self.as_of).as_secs_f64();
        let fade = blis_core::math::exp(-age / window.as_secs_f64().max(1e-9));
        self.out = self.out * fade + f64::from(out);
        self.back_soon = self.back_soon * fade + f64::from(back_soon);
        self.as_of = now;
    }

    /// Absent before anything was copied out.
    fn rate(&self) -> Option<f64> {
        (self.out > 0.0).then(|| (self.back_soon / self.out).min(1.0))
    }
}

impl TierState {
    pub(super) fn new(tier: &KvTier) -> TierState {
        TierState {
            out: Link::new(tier.out),
            back: Link::new(tier.back),
            departures: Vec::new(),
            loading: Vec::new(),
            ready: VecDeque::new(),
            transfers: 0,
            victims: 0,
            returning: 0,
            stalled: Span::ZERO,
            changed: false,
            thrashing: Thrashing::default(),
            connector: Connector::default(),
        }
    }

    pub(super) fn next_id(&mut self) -> TransferId {
        self.transfers += 1;
        TransferId(self.transfers)
    }

    /// When the first copy under way is done.
    pub(super) fn next_done(&self) -> Option<Time> {
        match (self.out.next_done(), self.back.next_done()) {
            (Some(out), Some(back)) => Some(out.min(back)),
            (out, back) => out.or(back),
        }
    }

    /// Whether somebody waits for the tier, or has waited and can join the batch.
    pub(super) fn has_loads(&self) -> bool {
        !(self.loading.is_empty() && self.ready.is_empty())
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn stalled(&self) -> Span {
        self.stalled
    }

    /// Requests that wait for their blocks, or have them and wait for room.
    pub(super) fn loads(&self) -> usize {
        self.loading.len() + self.ready.len()
    }

    /// Transfers that are under way at `now`, out and back.
    pub(super) fn transfers(&self, now: Time) -> (usize, usize) {
        (self.out.transfers_at(now), self.back.transfers_at(now))
    }

    /// How long the copies back that are under way at `now` still take.
    pub(super) fn backlog(&self, now: Time) -> Span {
        self.back.backlog(now)
    }

    pub(super) fn thrashing_rate(&self) -> Option<f64> {
        self.thrashing.rate()
    }

    /// Tables that hold blocks, but of requests that run.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        let loads = self.loading.iter().chain(&self.ready).map(|load| &load.table);
        loads.chain(self.connector.tables())
    }
}

impl Instance {
    /// Lands the copies that were done by the time at which the engine `asked`, if not now.
    pub(super) fn land_transfers(&mut self, now: Time, asked: Option<Time>, kit: &mut Kit<'_>) {
        let Some(tier) = &mut self.tier else { return };
        let asked = asked.map_or(now, |asked| asked.min(now));
        while let Some((done, id)) = tier.out.take_done(asked) {
            let place = tier.departures.iter().position(|leaving| leaving.id == id);
            // Copies that a step has waited for were landed when they began.
            let Some(place) = place else { continue };
            let departure = tier.departures.swap_remove(place).departure;
            // The copies are as old as the transfer says, however late that is noticed.
            let blocks = self.pool.land(&departure, done.as_nanos());
            let abandoned = departure.blocks - blocks;
            let window = kit.engine.tier.map_or(Span::ZERO, |tier| tier.thrashing_window);
            tier.thrashing.count(now, window, blocks, 0);
            let (instance, cpu_blocks) = (self.id, self.pool.copied());
            let fact = Fact::Offloaded { instance, blocks, abandoned, cpu_blocks, beside: true };
            kit.listener.hear(now, &fact);
        }
        while let Some((_, id)) = tier.back.take_done(asked) {
            let place = tier.loading.iter().position(|load| load.id == id);
            let Some(place) = place else { continue };
            let mut load = tier.loading.remove(place);
            if let Some(reads) = load.reads.take() {
                // Whoever reads them again soon does not count as thrashing again.
                self.pool.land(&reads, 0);
            }
            let live = kit.live.get(load.slot);
            let request = &live.request;
            // A request that was aborted meanwhile leaves nothing in the cache, as in vLLM.
            if !live.gave_up {
                let full = request.content.blocks(kit.engine.block_size, load.upto);
                self.pool.commit(&mut load.table, full);
            }
            let (request, blocks) = (request.id, load.blocks);
            kit.listener.hear(now, &Fact::Reloaded { request, instance: self.id, blocks });
            tier.ready.push_back(load);
        }
    }

    /// Takes a request out of the queue whose prompt goes on in the tier, if its blocks fit: they
    /// are claimed, and the copy begins. `hit` is what was found; the caller has checked the fit.
    pub(super) fn load(&mut self, slot: Slot, hit: Hit, now: Time, kit: &mut Kit<'_>) {
        let (blocks, upto) = (hit.copied, hit.blocks + hit.copied);
        let mut table = self.pool.claim(hit);
        // What is read is the warmest in the tier before room is made, which may fill the tier.
        self.note_reload(slot, hit.blocks, upto, true, now, kit);
        let tier = self.tier.as_mut().expect("only a tier has blocks to load");
        let id = tier.next_id();
        let live = kit.live.get_mut(slot);
        let block_size = kit.engine.block_size;
        let content = &live.request.content;
        let reads = if kit.policies.offload.copies_as_computed() {
            tier.connector.order_load(id, blocks);
            live.stored = upto;
            Some(self.pool.start_load(content.blocks(block_size, upto), hit.blocks, id))
        } else {
            tier.back.start(now, blocks, id);
            None
        };
        let whole = (content.prompt_tokens() + live.generated).div_ceil(block_size);
        self.make_room(blocks, now, kit);
        self.pool.grow(&mut table, blocks);
        let load = Load { id, slot, table, blocks, upto, whole, since: now, reads };
        self.tier.as_mut().expect("it has just been used").loading.push(load);
        let live = kit.live.get_mut(slot);
        live.place = Place::Loading;
        if live.first_token.is_none() {
            live.split.queue += now.since(live.enqueued);
        }
    }

    /// Blocks `from..upto` of a request are copied back from the tier.
    pub(super) fn note_reload(
        &mut self,
        slot: Slot,
        from: u32,
        upto: u32,
        beside: bool,
        now: Time,
        kit: &mut Kit<'_>,
    ) {
        let window = kit.engine.tier.map_or(Span::ZERO, |tier| tier.thrashing_window);
        let request = &kit.live.get(slot).request;
        let since = now.as_nanos().saturating_sub(window.as_nanos());
        let content = request.content.blocks(kit.engine.block_size, upto);
        let recent = self.pool.touch(content, from, upto, since).recent;
        let blocks = upto - from;
        let (request, instance) = (request.id, self.id);
        let tier = self.tier.as_mut().expect("only a tier gives blocks back");
        tier.thrashing.count(now, window, 0, recent);
        if !beside {
            tier.returning += blocks;
        }
        let fact = Fact::Reloading { request, instance, blocks, recent, beside };
        kit.listener.hear(now, &fact);
    }

    /// The first request whose blocks are back and that has room for its next chunk of at most
    /// `budget` tokens, and that chunk. `Err` if there is one that has no room.
    pub(super) fn next_ready(
        &mut self,
        budget: u32,
        now: Time,
        kit: &mut Kit<'_>,
    ) -> Result<Option<(Running, u32)>, ()> {
        let Some(tier) = &self.tier else { return Ok(None) };
        let Some(load) = tier.ready.front() else { return Ok(None) };
        let (slot, block_size) = (load.slot, kit.engine.block_size);
        let live = kit.live.get(slot);
        let goal = live.request.content.prompt_tokens() + live.generated;
        // At least the last token is computed.
        let cached = (load.upto * block_size).min(goal - 1);
        let chunk = self.first_chunk(goal - cached, budget, kit).ok_or(())?;
        let reach = cached + chunk + kit.engine.lookahead();
        let first = reach.div_ceil(block_size) - load.upto;
        let wanted = if kit.engine.reserve_full_prompt {
            goal.max(reach).div_ceil(block_size) - load.upto
        } else {
            first
        };
        if !self.pool.fits(&Hit::NONE, wanted) {
            return Err(());
        }
        let tier = self.tier.as_mut().expect("seen above");
        let mut load = tier.ready.pop_front().expect("seen above");
        self.make_room(first, now, kit);
        self.pool.grow(&mut load.table, first);
        let live = kit.live.get_mut(slot);
        if live.first_token.is_none() {
            live.split.reload += now.since(load.since);
        }
        // Its time in the queue was counted when the copy began.
        live.enqueued = now;
        Ok(Some((Running::new(slot, live, load.table, cached, kit.engine.block_size), chunk)))
    }

    /// The blocks of a request that has them back and waits for room; `None` if it waits for them.
    pub(super) fn take_loaded(&mut self, slot: Slot) -> Option<Table> {
        let tier = self.tier.as_mut().expect("only a tier gives blocks back");
        let place = tier.ready.iter().position(|load| load.slot == slot)?;
        tier.ready.remove(place).map(|load| load.table)
    }

    /// Nothing runs and nothing is under way, yet the first request whose blocks are back has no
    /// room, because of others like it: these give way.
    pub(super) fn unload_others(&mut self, now: Time, kit: &mut Kit<'_>) {
        let Some(tier) = &mut self.tier else { return };
        let mut others = tier.ready.split_off(tier.ready.len().min(1));
        kit.tally.in_vain += others.len() as u64;
        for load in &mut others {
            release(&mut self.pool, &mut load.table, load.slot, Released::ComesBack, now, kit);
            let live = kit.live.get_mut(load.slot);
            live.place = Place::Waiting;
            if live.first_token.is_none() {
                live.split.reload += now.since(load.since);
            }
            live.enqueued = now;
            let request = live.request.id;
            kit.listener.hear(now, &Fact::Unloaded { request, instance: self.id });
            self.queue.put_back(load.slot, &kit.rules(), &self.pool, kit.live, now);
        }
    }

    /// A request joins or leaves the batch, so that the memory is looked at.
    pub(super) fn note_change(&mut self) {
        if let Some(tier) = &mut self.tier {
            tier.changed = true;
        }
    }

    /// Copies the full blocks of a table out before it is released, as the policy wants.
    pub(super) fn copy_out(&mut self, table: &Table, now: Time, kit: &mut Kit<'_>) {
        let Some(tier) = &mut self.tier else { return };
        if !kit.policies.offload.copies_on_release() {
            return;
        }
        let id = tier.next_id();
        if let Some(departure) = self.pool.start_copy(table, id) {
            tier.out.start(now, departure.blocks, id);
            self.depart(id, departure, None, now, kit);
        }
    }

    /// Copies the full blocks of a preempted request out at once; the step waits for it.
    pub(super) fn swap_out(&mut self, table: &Table, now: Time, kit: &mut Kit<'_>) {
        if self.tier.is_none() {
            return;
        }
        let blocks = self.pool.copy_table_now(table, now.as_nanos());
        self.note_victims(blocks, now, kit);
    }

    /// Copies of `blocks` blocks are in the tier, and the step that is being formed waits for them.
    pub(super) fn note_victims(&mut self, blocks: u32, now: Time, kit: &mut Kit<'_>) {
        let (Some(tier), true) = (&mut self.tier, blocks > 0) else { return };
        tier.victims += blocks;
        let window = kit.engine.tier.map_or(Span::ZERO, |tier| tier.thrashing_window);
        tier.thrashing.count(now, window, blocks, 0);
        let (instance, cpu_blocks) = (self.id, self.pool.copied());
        let fact = Fact::Offloaded { instance, blocks, abandoned: 0, cpu_blocks, beside: false };
        kit.listener.hear(now, &fact);
    }

    /// Copies idle blocks out as the policy wants, if a request has joined or left the batch.
    pub(super) fn copy_idle(&mut self, now: Time, kit: &mut Kit<'_>) {
        let Some(tier) = &mut self.tier else { return };
        if !std::mem::take(&mut tier.changed) {
            return;
        }
        let memory = MemoryView {
            total: self.pool.total(),
            in_use: self.pool.in_use(),
            idle: self.pool.idle(),
        };
        let blocks = kit.policies.offload.idle_blocks_to_copy(&memory);
        if blocks > 0 {
            let id = tier.next_id();
            if let Some(departure) = self.pool.start_copy_of_idle(blocks, id) {
                tier.out.start(now, departure.blocks, id);
                self.depart(id, departure, None, now, kit);
            }
        }
    }

    /// A copy out is under way, or ordered.
    pub(super) fn depart(
        &mut self,
        id: TransferId,
        departure: Departure,
        of: Option<RequestId>,
        now: Time,
        kit: &mut Kit<'_>,
    ) {
        let tier = self.tier.as_mut().expect("only a tier takes copies");
        let fact = Fact::Offloading { instance: self.id, blocks: departure.blocks };
        tier.departures.push(Leaving { id, departure, of });
        kit.listener.hear(now, &fact);
    }

    /// How long the step that begins now waits for copies: first for those that make room, then for
    /// those that fill it.
    pub(super) fn stall(&mut self, now: Time, schedule: Span, kit: &mut Kit<'_>) -> Span {
        // A connector does its work when a step is launched.
        let mut until = self.submit(now, now + schedule);
        let Some(tier) = &mut self.tier else { return Span::ZERO };
        let victims = std::mem::take(&mut tier.victims);
        if victims > 0 {
            let id = tier.next_id();
            tier.out.start(now, victims, id);
            until = tier.out.done_at(id);
        }
        let returning = std::mem::take(&mut tier.returning);
        if returning > 0 {
            let id = tier.next_id();
            tier.back.start(until, returning, id);
            until = tier.back.done_at(id);
        }
        let span = until.since(now);
        if span > Span::ZERO {
            tier.stalled += span;
            kit.listener.hear(now, &Fact::Stalled { instance: self.id, span });
        }
        span
    }

    /// Whether prompts that go on in the tier wait for it on their own.
    pub(super) fn loads_beside(kit: &Kit<'_>) -> bool {
        let beside = kit.policies.offload.copies_as_computed();
        beside || kit.engine.tier.is_some_and(|tier| tier.reload == Reload::Async)
    }
}
