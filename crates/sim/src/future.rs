//! The future, for oracles: which request begins with which blocks next.
//!
//! Whoever runs a simulation with an oracle reads the requests once beforehand and hands this over
//! with the configuration. Where clients wait for answers, so that requests depend on the run,
//! those of another run stand for them. It is a tree of all prompts; each run of it knows the
//! requests that go through it. A request is *over* once it is scheduled, or turned away: what it
//! looks up, it has looked up. One that is preempted is to come again.
//!
//! Only full blocks that a request can find count: the last token of a prompt is always computed.
//! Nothing here may depend on output lengths.

use crate::live::Slot;
use blis_core::runs::{Match, RunId, RunTree};
use blis_core::{Blocks, Content, Request, RequestId, SessionId, StreamId};
use std::collections::{BTreeMap, VecDeque};

/// Who begins with which blocks.
#[derive(Clone, Debug)]
pub struct Future {
    block_size: u32,
    tree: RunTree<Users>,
    /// Which requests are over, by id.
    over: Vec<bool>,
    /// Requests that were scheduled at the present boundary.
    scheduled: Vec<Slot>,
    /// What was asked about last, from the start on; kept for its memory.
    outlook: Vec<Stretch>,
    /// Who is who, if the requests were recorded in another run.
    record: Option<Record>,
}

/// The requests of a run as they were in another one, where they may have come in another order.
#[derive(Clone, Debug, Default)]
struct Record {
    /// The recorded requests that have not come yet.
    ids: BTreeMap<Likeness, VecDeque<RequestId>>,
    /// What each request that has come is known as, by id.
    known_as: Vec<RequestId>,
}

/// What a request is recognised by: its session, round and attempt, and the content.
type Likeness = (Option<SessionId>, u32, u32, StreamId, u32);

fn likeness(request: &Request) -> Likeness {
    let Request { session, round, attempt, content, .. } = request;
    (*session, *round, *attempt, content.output_stream(), content.prompt_tokens())
}

/// The requests that go through a run.
#[derive(Clone, Debug)]
struct Users {
    /// All of them, in order of arrival.
    ids: Vec<RequestId>,
    /// All before this one are over.
    next: usize,
}

/// Blocks of a content that are used next by the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Its first block.
    pub(crate) from: u32,
    /// The next request that begins with all up to any of its blocks.
    pub(crate) next_use: Option<RequestId>,
}

impl Users {
    /// A request that is not over goes through the run.
    fn expect(&mut self, id: RequestId) {
        let place = self.ids.partition_point(|&other| other < id);
        if self.ids.get(place) != Some(&id) {
            self.ids.insert(place, id);
        }
        self.next = self.next.min(place);
    }
}

impl Future {
    /// The future of a run whose requests depend on it, from those of another run of the same
    /// clients, in order of arrival. Who comes although it was not recorded is not expected.
    pub fn recorded(requests: &[Request], block_size: u32) -> Future {
        let mut future = Future::new(block_size);
        let mut record = Record::default();
        for (id, request) in (0..).map(RequestId).zip(requests) {
            future.add(&request.content);
            record.ids.entry(likeness(request)).or_default().push_back(id);
        }
        future.record = Some(record);
        future
    }

    /// A future without requests.
    pub fn new(block_size: u32) -> Future {
        let (tree, over) = (RunTree::default(), Vec::new());
        let (scheduled, outlook) = (Vec::new(), Vec::new());
        Future { block_size, tree, over, scheduled, outlook, record: None }
    }

    /// A request has come; they come in the order of their ids.
    pub(crate) fn arrive(&mut self, request: &Request) {
        let Some(record) = &mut self.record else { return };
        let expected = record.ids.get_mut(&likeness(request)).and_then(VecDeque::pop_front);
        record.known_as.push(expected.unwrap_or_else(|| {
            self.over.push(false);
            RequestId(self.over.len() as u64 - 1)
        }));
    }

    /// The place of a request in the order of those that were read or recorded.
    fn known_as(&self, id: RequestId) -> RequestId {
        match &self.record {
            None => id,
            Some(record) => record.known_as[usize::try_from(id.0).expect("it has come")],
        }
    }

    /// The next request in order of arrival has this content.
    pub fn add(&mut self, content: &Content) {
        let id = RequestId(self.over.len() as u64);
        self.over.push(false);
        let prompt = self.looked_up(content);
        self.expect(id, prompt);
    }

    /// A request that is not over begins with `blocks`.
    fn expect(&mut self, id: RequestId, blocks: Blocks<'_>) {
        let (mut parent, mut known) = (None, 0);
        let steps: Vec<Match> = self.tree.walk(blocks).collect();
        for step in steps {
            let mut run = step.run;
            if !step.whole {
                run = self.tree.split(run, step.blocks, |users| users.clone());
            }
            self.tree.get_mut(run).expect(id);
            (parent, known) = (Some(run), known + step.blocks);
        }
        if known < blocks.len() {
            self.tree.insert(parent, blocks, known, Users { ids: vec![id], next: 0 });
        }
    }

    /// The blocks that a request looks up when it is scheduled first.
    fn looked_up<'a>(&self, content: &'a Content) -> Blocks<'a> {
        content.blocks(self.block_size, content.prompt_tokens().saturating_sub(1) / self.block_size)
    }

    /// A request is scheduled; whoever takes the note ends it.
    pub(crate) fn note_scheduled(&mut self, slot: Slot) {
        self.scheduled.push(slot);
    }

    /// A request that was scheduled since the last boundary.
    pub(crate) fn take_scheduled(&mut self) -> Option<Slot> {
        self.scheduled.pop()
    }

    /// A request has been scheduled, or will never be.
    pub(crate) fn end(&mut self, id: RequestId) {
        self.set_over(id, true);
    }

    /// A request that was scheduled has lost its place and `held` blocks, and will come again, for
    /// these and for what it has looked up before.
    pub(crate) fn come_again(&mut self, id: RequestId, content: &Content, held: u32) {
        self.set_over(id, false);
        let blocks = held.max(self.looked_up(content).len());
        self.expect(self.known_as(id), content.blocks(self.block_size, blocks));
    }

    fn set_over(&mut self, id: RequestId, over: bool) {
        let id = self.known_as(id);
        let index = usize::try_from(id.0).expect("it was read, so it fits memory");
        self.over[index] = over;
    }

    /// Looks into the future of `content`; then ask [`Future::before`].
    pub(crate) fn look(&mut self, content: Blocks<'_>) {
        self.outlook.clear();
        let steps: Vec<Match> = self.tree.walk(content).collect();
        let mut from = 0;
        for step in steps {
            let next_use = self.next_of(step.run);
            self.note(Stretch { from, next_use });
            from += step.blocks;
        }
        if from < content.len() {
            self.note(Stretch { from, next_use: None });
        }
    }

    fn note(&mut self, stretch: Stretch) {
        if self.outlook.last().is_none_or(|last| last.next_use != stretch.next_use) {
            self.outlook.push(stretch);
        }
    }

    /// The stretch that block `upto` (counted from 1) of what was looked at is in. Must be asked
    /// from the end to the start.
    pub(crate) fn before(&mut self, upto: u32) -> Stretch {
        while self.outlook.last().is_some_and(|last| last.from >= upto) {
            self.outlook.pop();
        }
        *self.outlook.last().expect("the first stretch begins at 0")
    }

    /// The first user of a run that is not over.
    fn next_of(&mut self, run: RunId) -> Option<RequestId> {
        let users = self.tree.get_mut(run);
        let passed = users.ids[users.next..]
            .iter()
            .take_while(|id| self.over[usize::try_from(id.0).expect("it was read")]);
        users.next += passed.count();
        users.ids.get(users.next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::{Segment, StreamId, Time};

    const SIZE: u32 = 4;

    /// A prompt of named blocks and one token more, so that all of them can be found.
    fn prompt(blocks: &[u64]) -> Content {
        let segment = |&stream: &u64| Segment { stream: StreamId(stream), tokens: SIZE };
        let last = Segment { stream: StreamId(u64::MAX), tokens: 1 };
        Content::new(blocks.iter().map(segment).chain([last]), StreamId(u64::MAX))
    }

    fn future(prompts: &[&[u64]]) -> Future {
        let mut future = Future::new(SIZE);
        for blocks in prompts {
            future.add(&prompt(blocks));
        }
        future
    }

    /// The next use of each block.
    fn next_uses(future: &mut Future, blocks: &[u64]) -> Vec<Option<u64>> {
        let content = prompt(blocks);
        future.look(content.blocks(SIZE, u32::try_from(blocks.len()).expect("short")));
        let mut uses = Vec::new();
        for upto in (1..=u32::try_from(blocks.len()).expect("short")).rev() {
            uses.push(future.before(upto).next_use.map(|id| id.0));
        }
        uses.reverse();
        uses
    }

    #[test]
    fn each_block_knows_who_begins_with_it_next() {
        let mut future = future(&[&[1, 2, 3], &[1, 2, 9], &[1, 2, 3, 4], &[7]]);
        let uses = next_uses(&mut future, &[1, 2, 3, 4, 5]);
        assert_eq!(uses, [Some(0), Some(0), Some(0), Some(2), None]);
        future.end(RequestId(0));
        assert_eq!(next_uses(&mut future, &[1, 2, 3, 4]), [1, 1, 2, 2].map(Some));
        future.end(RequestId(2));
        assert_eq!(next_uses(&mut future, &[1, 2, 3]), [Some(1), Some(1), None]);
        future.end(RequestId(1));
        assert_eq!(next_uses(&mut future, &[1, 2, 9]), [None; 3]);
        assert_eq!(next_uses(&mut future, &[8]), [None]);
    }

    #[test]
    fn stretches_are_as_long_as_the_next_use_is_the_same() {
        let mut future = future(&[&[1, 2, 3, 4], &[1, 9]]);
        future.look(prompt(&[1, 2, 3, 4]).blocks(SIZE, 4));
        assert_eq!(future.before(4), Stretch { from: 0, next_use: Some(RequestId(0)) });
        future.end(RequestId(0));
        future.look(prompt(&[1, 2, 3, 4]).blocks(SIZE, 4));
        assert_eq!(future.before(4), Stretch { from: 1, next_use: None });
        assert_eq!(future.before(1), Stretch { from: 0, next_use: Some(RequestId(1)) });
    }

    #[test]
    fn the_block_of_the_last_token_is_never_looked_up() {
        let whole = Content::new([Segment { stream: StreamId(1), tokens: 2 * SIZE }], StreamId(1));
        let mut future = future(&[]);
        future.add(&whole);
        future.look(whole.blocks(SIZE, 2));
        assert_eq!(future.before(2), Stretch { from: 1, next_use: None });
        assert_eq!(future.before(1).next_use, Some(RequestId(0)));
    }

    #[test]
    fn who_is_preempted_comes_again_also_for_what_it_has_generated() {
        let mut future = future(&[&[1, 2], &[1, 2], &[1]]);
        for id in 0..2 {
            future.end(RequestId(id));
        }
        assert_eq!(next_uses(&mut future, &[1, 2]), [Some(2), None]);
        let generated = prompt(&[1, 2, 3]);
        future.come_again(RequestId(0), &generated, 3);
        assert_eq!(next_uses(&mut future, &[1, 2, 3, 4]), [Some(0), Some(0), Some(0), None]);
        future.end(RequestId(0));
        assert_eq!(next_uses(&mut future, &[1, 2, 3]), [Some(2), None, None]);
    }

    #[test]
    fn recorded_requests_are_recognised_in_whatever_order_they_come() {
        let round = |session: u64, round: u32, blocks: &[u64]| Request {
            id: RequestId(0),
            name: None,
            arrival: Time::ZERO,
            content: prompt(blocks),
            output_tokens: 1,
            class: blis_core::SloClass::Standard,
            tenant: blis_core::TenantId(0),
            session: Some(SessionId(session)),
            round,
            attempt: 0,
            deadline: None,
            patience: None,
        };
        let recorded = [round(1, 0, &[1, 2]), round(2, 0, &[1, 3]), round(1, 1, &[1, 2, 4])];
        let mut future = Future::recorded(&recorded, SIZE);
        // The other client is first this time; then somebody comes who was not recorded.
        for request in [&recorded[1], &recorded[0], &round(9, 0, &[1, 3])] {
            future.arrive(request);
        }
        assert_eq!(next_uses(&mut future, &[1, 2]), [Some(0), Some(0)]);
        assert_eq!(next_uses(&mut future, &[1, 3]), [Some(0), Some(1)]);
        future.end(RequestId(0));
        assert_eq!(next_uses(&mut future, &[1, 3]), [Some(0), None]);
        future.end(RequestId(1));
        future.end(RequestId(2));
        assert_eq!(next_uses(&mut future, &[1, 2]), [Some(2), Some(2)]);
        future.come_again(RequestId(2), &prompt(&[1, 3]), 2);
        assert_eq!(next_uses(&mut future, &[1, 3]), [Some(2), Some(3)], "after all others");
    }

    #[test]
    fn who_is_preempted_early_comes_again_for_all_of_its_prompt() {
        let mut future = future(&[&[1, 2, 3]]);
        future.end(RequestId(0));
        assert_eq!(next_uses(&mut future, &[1, 2, 3]), [None; 3]);
        future.come_again(RequestId(0), &prompt(&[1, 2, 3]), 1);
        assert_eq!(next_uses(&mut future, &[1, 2, 3]), [Some(0); 3]);
    }
}
