//! Sessions whose next request waits for the answer to the last.
//!
//! The simulator numbers requests anew, so a chain is found by the name of the request that it
//! waits for; requests of chains therefore always carry their names. An open-loop trace has no
//! chains and pays one comparison for every request that ends.

use crate::names::name_key;
use blis_core::{Ending, Request, Span, Time};
use hashbrown::HashTable;
use std::collections::VecDeque;

/// A request that is sent so long after the answer to another.
#[derive(Clone, Debug)]
pub(super) struct FollowUp {
    pub(super) request: Request,
    pub(super) think: Span,
}

/// A request with an arrival, and those that follow up on one another behind it.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) head: Request,
    pub(super) rest: VecDeque<FollowUp>,
}

impl Group {
    pub(super) fn new(head: Request) -> Group {
        Group { head, rest: VecDeque::new() }
    }
}

/// What is still to be sent of the sessions that are under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    waiting: HashTable<Chain>,
}

#[derive(Clone, Debug)]
struct Chain {
    /// The request that is waited for.
    name: Box<str>,
    rest: VecDeque<FollowUp>,
}

impl Chains {
    /// `rest` follows the request of that name.
    pub(super) fn add(&mut self, name: Option<&str>, rest: VecDeque<FollowUp>) {
        if rest.is_empty() {
            return;
        }
        let name = name.expect("requests of a chain have names");
        let chain = Chain { name: name.into(), rest };
        self.waiting.insert_unique(name_key(name), chain, |chain| name_key(&chain.name));
    }

    /// What the client of `ended` sends next. If it got no answer it has given up, and the rest of
    /// its session is dropped.
    pub(super) fn next(&mut self, ended: &Request, ending: Ending, at: Time) -> Option<Request> {
        if self.waiting.is_empty() {
            return None;
        }
        let name = ended.name.as_deref()?;
        let found = self.waiting.find_entry(name_key(name), |chain| *chain.name == *name).ok()?;
        let (Chain { mut rest, .. }, _) = found.remove();
        if ending != Ending::Finished {
            return None;
        }
        let FollowUp { mut request, think } = rest.pop_front()?;
        // A source never answers at the very instant, see `Source::follow_up`.
        request.arrival = at + think.max(Span::from_nanos(1));
        self.add(request.name.as_deref(), rest);
        Some(request)
    }
}
