//! A request, what a policy may see of it, and where requests come from.

use crate::content::{Blocks, Content};
use crate::ids::{RequestId, SessionId, TenantId};
use crate::time::{Span, Time};
use std::error::Error;

/// Service class of a request, most important first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SloClass {
    /// Interactive, premium.
    Critical,
    /// The default.
    #[default]
    Standard,
    /// May be shed under load.
    Sheddable,
    /// Throughput work.
    Batch,
    /// Best effort.
    Background,
}

impl SloClass {
    /// All classes, most important first.
    pub const ALL: [SloClass; 5] = [
        SloClass::Critical,
        SloClass::Standard,
        SloClass::Sheddable,
        SloClass::Batch,
        SloClass::Background,
    ];

    /// The spelling in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            SloClass::Critical => "critical",
            SloClass::Standard => "standard",
            SloClass::Sheddable => "sheddable",
            SloClass::Batch => "batch",
            SloClass::Background => "background",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<SloClass> {
        SloClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The class as an index into tables of `SloClass::ALL.len()` entries.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// One request as its source describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Place in the order of arrival.
    pub id: RequestId,
    /// The name the trace gave it; `None`: its number is its name.
    pub name: Option<Box<str>>,
    /// When the client sent it.
    pub arrival: Time,
    /// Its tokens.
    pub content: Content,
    /// How many tokens it will generate (>= 1). Only the engine knows, and only when it is done.
    pub output_tokens: u32,
    /// Service class.
    pub class: SloClass,
    /// Tenant.
    pub tenant: TenantId,
    /// Session, if it is a round of one.
    pub session: Option<SessionId>,
    /// Round within the session, from 0.
    pub round: u32,
    /// How often the client has sent it before, because it was rejected or not answered in time.
    pub attempt: u32,
    /// The client's own deadline for the whole answer, from arrival.
    pub deadline: Option<Span>,
    /// How long the client waits for the first token, from arrival; then it gives up.
    pub patience: Option<Span>,
}

/// What a policy may see of a request. The output length is not here, and must never be.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// Place in the order of arrival; also the key of the request's random streams.
    pub id: RequestId,
    /// When the client sent it.
    pub arrival: Time,
    /// Prompt length in tokens.
    pub input_tokens: u32,
    /// The prompt's full blocks.
    pub prompt_blocks: Blocks<'a>,
    /// Service class.
    pub class: SloClass,
    /// Tenant.
    pub tenant: TenantId,
    /// Session, if it is a round of one.
    pub session: Option<SessionId>,
    /// Round within the session, from 0.
    pub round: u32,
    /// How often the client has sent it before, because it was rejected or not answered in time.
    pub attempt: u32,
    /// The client's own deadline for the whole answer, from arrival.
    pub deadline: Option<Span>,
}

impl Request {
    /// What a policy may see, where a block has `block_size` tokens.
    pub fn view(&self, block_size: u32) -> RequestView<'_> {
        // Destructured without `..`, so that a new field makes this line decide whether policies
        // see it.
        let Request {
            id,
            name: _,
            arrival,
            content,
            output_tokens: _,
            class,
            tenant,
            session,
            round,
            attempt,
            deadline,
            // A client tells nobody when it will hang up.
            patience: _,
        } = self;
        RequestView {
            id: *id,
            arrival: *arrival,
            input_tokens: content.prompt_tokens(),
            prompt_blocks: content.prompt_blocks(block_size),
            class: *class,
            tenant: *tenant,
            session: *session,
            round: *round,
            attempt: *attempt,
            deadline: *deadline,
        }
    }
}

/// How a request ended, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All its tokens left the server.
    Finished,
    /// Admission turned it away.
    Rejected,
    /// It can never fit the KV memory of an instance.
    Unservable,
    /// Its client gave up before the first token.
    Abandoned,
}

/// Where requests come from, in order of arrival.
///
/// A source may be *closed loop*: a client that waits for an answer before it asks again. It then
/// gives only first requests by itself, and the others as follow-ups.
pub trait Source: Send {
    /// The next request; arrivals never decrease. `None`: there are no more. Ids are given anew in
    /// the order of arrival, so what the source puts there is of no meaning.
    ///
    /// # Errors
    /// If the underlying file turns out to be unreadable or malformed; the run ends with
    /// that error.
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>>;

    /// Whether the source wants to hear how requests end, because some follow up on others.
    fn is_closed_loop(&self) -> bool {
        false
    }

    /// A request ended at `at`: when its last token left the server, or when it was turned away, or
    /// when its client gave up.
    /// Returns what its client sends next, which arrives later than `at`, be it by a nanosecond:
    /// all that arrives at an instant is then known before it, so that the order of events is that
    /// of an open-loop source with the same arrivals.
    fn follow_up(&mut self, _ended: &Request, _ending: Ending, _at: Time) -> Option<Request> {
        None
    }

    /// Whether [`Source::next_request`] may have more after it had none, once requests have ended.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Whether no request has tokens of a stream that another one generates: there are no sessions
    /// that go on, and nobody asks the same again.
    fn has_private_streams(&self) -> bool {
        false
    }

    /// How many requests there will be, if that is known, for progress bars.
    fn expected(&self) -> Option<u64>;

    /// The name of a tenant that a request has carried.
    fn tenant_name(&self, tenant: TenantId) -> String;

    /// The name of a session that a request has carried.
    fn session_name(&self, session: SessionId) -> String {
        session.0.to_string()
    }
}
