//! Names of tenants and sessions while a run is under way, for those who write rows as it goes.
//!
//! The simulator borrows the source for the whole run, so a listener cannot ask it. `Named` wraps
//! the source and notes every new name in a shared [`Names`].

use blis_core::{Request, SessionId, Source, TenantId};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// The names seen so far; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    tenants: BTreeMap<TenantId, String>,
    sessions: BTreeMap<SessionId, String>,
}

impl Names {
    /// The name of `tenant`; its number if no request of it was seen.
    pub fn tenant(&self, tenant: TenantId) -> String {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.tenants.get(&tenant).cloned().unwrap_or_else(|| tenant.0.to_string())
    }

    /// The name of `session`; its number if no request of it was seen.
    pub fn session(&self, session: SessionId) -> String {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.sessions.get(&session).cloned().unwrap_or_else(|| session.0.to_string())
    }

    fn note(&self, source: &dyn Source, request: &Request) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let tenant = request.tenant;
        known.tenants.entry(tenant).or_insert_with(|| source.tenant_name(tenant));
        if let Some(session) = request.session {
            known.sessions.entry(session).or_insert_with(|| source.session_name(session));
        }
    }
}

/// A source that notes the names in its requests.
pub(crate) struct Named {
    pub(crate) source: Box<dyn Source>,
    pub(crate) names: Names,
}

impl Source for Named {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        let request = self.source.next_request()?;
        if let Some(request) = &request {
            self.names.note(&*self.source, request);
        }
        Ok(request)
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
