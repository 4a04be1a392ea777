//! What the source of a run knows and the facts do not tell, for those who write rows as it goes:
//! names of tenants and sessions and, if asked for, the requests themselves.
//!
//! The simulator borrows the source for the whole run, so a listener cannot ask it. `Named` wraps
//! the source and notes what passes in a shared [`Names`]. It must never change a request.

use blis_core::{Ending, Request, SessionId, Source, TenantId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names seen so far; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    tenants: BTreeMap<TenantId, String>,
    sessions: BTreeMap<SessionId, String>,
    /// Requests that have not arrived, if they are kept.
    pending: Option<Pending>,
}

/// Requests that are known and have not arrived: first requests in the order of the source, and
/// follow-ups by arrival, then in the order in which they became known. This is the order in which
/// the simulator lets them arrive.
#[derive(Debug, Default)]
struct Pending {
    first: VecDeque<Request>,
    follow_ups: BTreeMap<(Time, u64), Request>,
    followed: u64,
}

impl Pending {
    fn add_follow_up(&mut self, request: Request) {
        self.follow_ups.insert((request.arrival, self.followed), request);
        self.followed += 1;
    }

    /// The one that arrives at `at`. At one instant first requests come before follow-ups.
    fn arrived(&mut self, at: Time) -> Option<Request> {
        if self.first.front().is_some_and(|request| request.arrival == at) {
            return self.first.pop_front();
        }
        let next = self.follow_ups.first_entry().filter(|entry| entry.key().0 == at)?;
        Some(next.remove())
    }
}

impl Names {
    /// Names that keep requests as well, each until it arrives, for [`Names::arrived`].
    pub fn with_requests() -> Names {
        let known = Known { pending: Some(Pending::default()), ..Known::default() };
        Names { known: Arc::new(Mutex::new(known)) }
    }

    /// `source`, of which these names note what passes.
    pub fn of(&self, source: Box<dyn Source>) -> Box<dyn Source> {
        Box::new(Named { source, names: self.clone() })
    }

    /// The request that arrives at `at`, as its source made it. To be asked once for each
    /// [`Fact::Arrived`](blis_metrics::Fact::Arrived), in their order.
    ///
    /// # Panics
    /// If no request arrives then, or requests are not kept.
    pub fn arrived(&self, at: Time) -> Request {
        let mut known = self.known();
        let request = known.pending.as_mut().and_then(|pending| pending.arrived(at));
        request.expect("a request that arrives was given by the source before")
    }

    /// The name of `tenant`; its number if no request of it was seen.
    pub fn tenant(&self, tenant: TenantId) -> String {
        let known = self.known();
        known.tenants.get(&tenant).cloned().unwrap_or_else(|| tenant.0.to_string())
    }

    /// The name of `session`; its number if no request of it was seen.
    pub fn session(&self, session: SessionId) -> String {
        let known = self.known();
        known.sessions.get(&session).cloned().unwrap_or_else(|| session.0.to_string())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, source: &dyn Source, request: &Request) {
        let tenant = request.tenant;
        self.tenants.entry(tenant).or_insert_with(|| source.tenant_name(tenant));
        if let Some(session) = request.session {
            self.sessions.entry(session).or_insert_with(|| source.session_name(session));
        }
    }
}

/// A source that notes the names in its requests.
struct Named {
    source: Box<dyn Source>,
    names: Names,
}

impl Source for Named {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        let request = self.source.next_request()?;
        if let Some(request) = &request {
            let mut known = self.names.known();
            known.note(&*self.source, request);
            if let Some(pending) = &mut known.pending {
                pending.first.push_back(request.clone());
            }
        }
        Ok(request)
    }

    fn is_waiting(&self) -> bool {
        self.source.is_waiting()
    }

    fn is_closed_loop(&self) -> bool {
        self.source.is_closed_loop()
    }

    fn follow_up(&mut self, ended: &Request, ending: Ending, at: Time) -> Option<Request> {
        let request = self.source.follow_up(ended, ending, at)?;
        let mut known = self.names.known();
        known.note(&*self.source, &request);
        if let Some(pending) = &mut known.pending {
            pending.add_follow_up(request.clone());
        }
        Some(request)
    }

    fn expected(&self) -> Option<u64> {
        self.source.expected()
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        self.source.tenant_name(tenant)
    }

    fn session_name(&self, session: SessionId) -> String {
        self.source.session_name(session)
    }
}
