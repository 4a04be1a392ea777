//! Requests whose story is not over: the only memory that grows with load.
//!
//! A request lives in a slot from arrival to its last fact; slots are used again, so a long run
//! allocates nothing once it has reached its greatest number of live requests.

use blis_core::{InstanceId, Request, RequestId, Span, Time};
use blis_metrics::{Record, TtftSplit};
use blis_policy::{Intent, WaitingView};

/// Where a live request is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

/// Where a live request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the gateway, or on the way to its instance.
    Gateway,
    /// In the instance's waiting queue.
    Waiting,
    /// Waiting for blocks from the CPU tier.
    Loading,
    /// In the running batch.
    Running,
    /// Preempted with its last token on its way.
    Ended,
}

/// A request and its story so far.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) request: Request,
    pub(crate) place: Place,
    /// The replica of the gateway that it came to.
    pub(crate) gateway: usize,
    pub(crate) instance: Option<InstanceId>,
    pub(crate) intent: Intent,
    pub(crate) cached_tokens: Option<u32>,
    /// Tokens generated; while it runs, the batch keeps the count and this one lags.
    pub(crate) generated: u32,
    pub(crate) preemptions: u32,
    /// Blocks of its prompt that the CPU tier was given, by a policy that copies as they are
    /// computed.
    pub(crate) stored: u32,
    /// Place in the instance's order of joining; kept over preemptions.
    pub(crate) turn: u64,
    /// When it joined the queue of its instance, or will if it is on its way there.
    pub(crate) enqueued: Time,
    pub(crate) scheduled: Time,
    /// How long the steps of its instance had waited for copies when it was scheduled.
    pub(crate) stalled: Span,
    /// When the last token left the engine; up to date only while it is not decoding step after
    /// step.
    pub(crate) last_token: Time,
    /// When the first token left the engine.
    pub(crate) first_token: Option<Time>,
    pub(crate) priority: f64,
    /// The priority that it had when it was first scheduled.
    pub(crate) standing: f64,
    /// Whether its client has given up, and its engine has yet to let go of it.
    pub(crate) gave_up: bool,
    /// Whether it arrived before the warm-up was over.
    pub(crate) early: bool,
    pub(crate) split: TtftSplit,
}

impl Live {
    pub(crate) fn waiting_view(&self, block_size: u32, cached_blocks: u32) -> WaitingView<'_> {
        WaitingView {
            request: self.request.view(block_size),
            enqueued: self.enqueued,
            generated: self.generated,
            intent: self.intent,
            cached_blocks,
        }
    }

    /// Prompt tokens that the router believed would have to be computed.
    pub(crate) fn expected_work(&self, block_size: u32) -> u64 {
        let hit = self.intent.expected_hit_blocks.unwrap_or(0) * block_size;
        u64::from(self.request.content.prompt_tokens().saturating_sub(hit))
    }

    /// The story so far. `ttft` and `e2e` are filled in by whoever closes the request.
    pub(crate) fn record(&self, block_size: u32) -> Record<'_> {
        let request = &self.request;
        let expected = self.intent.expected_hit_blocks;
        Record {
            request: request.id,
            name: request.name.as_deref(),
            arrival: request.arrival,
            class: request.class,
            tenant: request.tenant,
            session: request.session,
            round: request.round,
            deadline: request.deadline,
            patience: request.patience,
            instance: self.instance,
            input_tokens: request.content.prompt_tokens(),
            output_tokens: self.generated,
            cached_tokens: self.cached_tokens,
            expected_cached_tokens: expected.map(|blocks| blocks * block_size),
            preemptions: self.preemptions,
            // Nobody was there any more for a token of the last step.
            ttft: self.first_token.filter(|_| !self.gave_up).map(|_| self.split.total()),
            e2e: None,
            split: self.split,
        }
    }
}

/// All live requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveRequests {
    slots: Vec<Option<Live>>,
    vacant: Vec<Slot>,
}

impl LiveRequests {
    pub(crate) fn insert(&mut self, request: Request, gateway: usize, warmup: Time) -> Slot {
        let live = Live {
            place: Place::Gateway,
            gateway,
            instance: None,
            intent: Intent::NONE,
            cached_tokens: None,
            generated: 0,
            preemptions: 0,
            stored: 0,
            turn: 0,
            enqueued: request.arrival,
            scheduled: request.arrival,
            stalled: Span::ZERO,
            last_token: request.arrival,
            first_token: None,
            priority: 0.0,
            standing: 0.0,
            gave_up: false,
            early: request.arrival < warmup,
            split: TtftSplit::default(),
            request,
        };
        if let Some(slot) = self.vacant.pop() {
            self.slots[slot.0 as usize] = Some(live);
            return slot;
        }
        let slot = Slot(u32::try_from(self.slots.len()).expect("live requests fit u32"));
        self.slots.push(Some(live));
        slot
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Whether the request in `slot` is the one of that id.
    pub(crate) fn holds(&self, slot: Slot, id: RequestId) -> bool {
        let live = self.slots[slot.0 as usize].as_ref();
        live.is_some_and(|live| live.request.id == id)
    }

    pub(crate) fn get(&self, slot: Slot) -> &Live {
        self.slots[slot.0 as usize].as_ref().expect("the slot is taken")
    }

    /// The request in a slot; `None` once its story is over.
    pub(crate) fn find(&self, slot: Slot) -> Option<&Live> {
        self.slots[slot.0 as usize].as_ref()
    }

    /// All that are on their way to an instance.
    pub(crate) fn on_the_way(&self) -> impl Iterator<Item = (InstanceId, Slot, &Live)> {
        let arriving = |live: &&Live| live.place == Place::Gateway;
        (0..).zip(&self.slots).filter_map(move |(index, live)| {
            let live = live.as_ref().filter(arriving)?;
            Some((live.instance?, Slot(index), live))
        })
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Live {
        self.slots[slot.0 as usize].as_mut().expect("the slot is taken")
    }

    /// Puts a request into a slot, whatever was there.
    pub(crate) fn put(&mut self, slot: Slot, live: Live) {
        self.slots[slot.0 as usize] = Some(live);
    }

    /// The story of a request is over; its slot is free.
    pub(crate) fn remove(&mut self, slot: Slot) -> Request {
        let live = self.slots[slot.0 as usize].take().expect("the slot is taken");
        self.vacant.push(slot);
        live.request
    }

    /// The same, where nobody wants the request.
    pub(crate) fn forget(&mut self, slot: Slot) {
        assert!(self.slots[slot.0 as usize].is_some(), "the slot is taken");
        self.slots[slot.0 as usize] = None;
        self.vacant.push(slot);
    }

    /// All taken slots, in order of arrival.
    pub(crate) fn in_order_of_arrival(&self) -> Vec<Slot> {
        let mut slots: Vec<(u64, Slot)> = (0..)
            .zip(&self.slots)
            .filter_map(|(index, live)| Some((live.as_ref()?.request.id.0, Slot(index))))
            .collect();
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| slot).collect()
    }
}

/// What happened to the requests that the gateway sent to an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Requests that have ended.
    pub(crate) requests: u64,
    /// Their prompt tokens.
    pub(crate) tokens: u64,
    /// Expected work of the requests whose first token has come.
    pub(crate) started_work: u64,
}
