//! A mix of clients: what each sends, how often, and until when.
//!
//! The lab fills a [`Mix`] from a workload file or from flags; the simulator pulls requests from
//! the source that it makes. Here is what a mix may say and the check of it; how the
//! requests are drawn is in `source.rs`.

use crate::activity::Activity;
use crate::arrival::Arrival;
use crate::error::{SpecError, ensure};
use crate::input::Input;
use crate::length::{Length, MAX_TOKENS};
use crate::rate::Rate;
use crate::retry::Retry;
use crate::session::{Context, MAX_ROUNDS, Sessions};
use blis_core::math::float;
use blis_core::{SloClass, Span, Time};

/// One kind of client: how often it sends, and what.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// Label for messages.
    pub name: String,
    /// Tenant that its requests are accounted to; not empty.
    pub tenant: String,
    /// Service class of its requests.
    pub class: SloClass,
    /// Its share of the mix's rate, relative to the other clients' shares (above 0, at most 1e12).
    pub share: f64,
    /// Its arrival process.
    pub arrival: Arrival,
    /// The group of clients that share the start of their prompts.
    pub prefix_group: Option<String>,
    /// How many tokens of the group's stream start its prompts (0..=[`MAX_TOKENS`]; 0 without a
    /// group).
    pub prefix_tokens: u32,
    /// What its prompts hold after the prefix; in a session, the new part of a round's prompt.
    pub input: Input,
    /// Output length in tokens.
    pub output: Length,
    /// When it is there.
    pub activity: Activity,
    /// Its conversations; `None`: every request stands alone. With sessions, arrivals are those of
    /// sessions, and each of them sends as many requests as it has rounds.
    pub sessions: Option<Sessions>,
    /// Its own deadline for the whole answer (above 0).
    pub deadline: Option<Span>,
    /// How long it waits for the first token of a request before it gives up (above 0).
    pub patience: Option<Span>,
    /// What it does when a request is rejected or when it gave up waiting; `None`: nothing more.
    /// Not with closed-loop sessions, which say it themselves.
    pub retry: Option<Retry>,
}

/// Clients that send together.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// The clients; at least one.
    pub clients: Vec<Client>,
    /// Requests (of clients with sessions: sessions) per second of all clients together.
    pub rate: Rate,
    /// Ends after this many requests (1..=10^12); without a horizon they must be expected to arrive
    /// within ten years. All rounds of a closed-loop session are counted when it starts, so that
    /// the same sessions start whatever the cluster does.
    pub num_requests: Option<u64>,
    /// Ends before the first request that arrives at or after this time (above 0, at most ten
    /// years).
    pub horizon: Option<Time>,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether it is the load of a benchmark tool. The requests of the first client's arrival
    /// process, at the rate of all, are those of the clients in turn, in an order that is shuffled
    /// once; each client asks the same tokens every time; and where the rate steps, the mix waits
    /// until all that it has sent is answered.
    pub in_turn: bool,
}

/// Most clients: their number has 20 bits of a stream id.
const MAX_CLIENTS: usize = 1 << 20;
/// Most requests: their number within a client has 40 bits of a stream id.
const MAX_REQUESTS: u64 = 1_000_000_000_000;
/// Most requests of a mix with sessions: a session's number has 30 bits, its rounds the other 10.
const MAX_IN_SESSIONS: u64 = (1 << 40) / MAX_ROUNDS as u64;

impl Mix {
    /// A mix that ends after so many requests, if it is said.
    pub fn new(clients: Vec<Client>, rate: Rate, num_requests: Option<u64>) -> Mix {
        Mix { clients, rate, num_requests, horizon: None, seed: 0, in_turn: false }
    }

    /// Checks the whole mix.
    ///
    /// # Errors
    /// If a field is illegal; the error's field is its path within the mix, e.g.
    /// `clients[2].arrival.cv`.
    pub fn validate(&self) -> Result<(), SpecError> {
        let clients = self.clients.len();
        let legal = || format!("from 1 to {MAX_CLIENTS} clients");
        ensure((1..=MAX_CLIENTS).contains(&clients), "clients", clients, legal)?;
        for (index, client) in self.clients.iter().enumerate() {
            client.validate().map_err(|error| error.under(&format!("clients[{index}]")))?;
        }
        self.rate.validate().map_err(|error| error.under("rate"))?;
        if self.has_users() {
            self.validate_users()?;
        }
        if let Some(requests) = self.num_requests {
            let legal = || format!("a whole number from 1 to {}", self.most());
            ensure((1..=self.most()).contains(&requests), "num_requests", requests, legal)?;
        }
        self.validate_end()
    }

    /// Whether arrivals are, in part, those of sessions.
    pub fn has_sessions(&self) -> bool {
        self.clients.iter().any(|client| client.sessions.is_some())
    }

    /// The mean number of requests of an arrival: a session sends several. `None` without sessions,
    /// and where their mean length has no closed form.
    pub fn requests_per_arrival(&self) -> Option<f64> {
        let (mut requests, mut shares) = (0.0, 0.0);
        for client in &self.clients {
            let rounds = match &client.sessions {
                None => 1.0,
                Some(sessions) => sessions.rounds.mean().filter(|_| !sessions.single)?,
            };
            requests += client.share * rounds;
            shares += client.share;
        }
        (self.has_sessions() && shares > 0.0).then(|| requests / shares)
    }

    /// Whether prompts begin alike: with the prefix of a group, or with the rounds before.
    pub fn shares_prefixes(&self) -> bool {
        let resends = |sessions: &Sessions| sessions.context == Context::Accumulate;
        self.clients
            .iter()
            .any(|client| client.prefix_tokens > 0 || client.sessions.as_ref().is_some_and(resends))
    }

    /// Users are always there, and wait for the answer of a round.
    fn validate_users(&self) -> Result<(), SpecError> {
        for (index, client) in self.clients.iter().enumerate() {
            let field = |name: &str| format!("clients[{index}].{name}");
            let waits = client.sessions.as_ref().is_none_or(Sessions::is_closed_loop);
            let legal = || "sessions in a closed loop, because users wait for answers";
            ensure(waits, field("sessions"), "an open loop", legal)?;
            let legal = || "a client that is always there, because users come and stay";
            let stays = client.activity.is_constant();
            ensure(stays, field("activity"), "a client that comes and goes", legal)?;
        }
        Ok(())
    }

    /// The most requests that it can have.
    pub(crate) fn most(&self) -> u64 {
        if self.has_sessions() { MAX_IN_SESSIONS } else { MAX_REQUESTS }
    }

    /// Whether some clients wait for how a request ends before they ask again.
    pub fn is_closed_loop(&self) -> bool {
        let waits = self.has_users() || (self.in_turn && !self.rate.jumps().is_empty());
        waits || self.clients.iter().any(Client::is_closed_loop)
    }

    /// Whether users send its requests.
    pub fn has_users(&self) -> bool {
        matches!(self.rate, Rate::Users(_))
    }

    /// How many requests there will be, if that is certain.
    pub fn expected(&self) -> Option<u64> {
        let endless = |client: &Client| {
            let single = client.sessions.as_ref().is_some_and(|sessions| sessions.single);
            !single && !client.is_closed_loop() && !client.activity.ends()
        };
        let certain = self.horizon.is_none() && self.clients.iter().all(endless);
        self.num_requests.filter(|_| certain)
    }

    /// A mix must end, and its requests must arrive within ten years.
    fn validate_end(&self) -> Result<(), SpecError> {
        let Some(horizon) = self.horizon else {
            let Some(requests) = self.num_requests else {
                if self.rate.last_change().is_some() {
                    return Ok(());
                }
                let found = "neither a number of requests nor a horizon";
                let legal = "one of the two: else the workload never ends";
                return Err(SpecError::new("num_requests", found, legal));
            };
            return if self.has_users() { Ok(()) } else { self.validate_span(requests) };
        };
        let legal = || format!("from 1 ns to {} (ten years)", Span::LONGEST);
        let is_legal = (1..=Span::LONGEST.as_nanos()).contains(&horizon.as_nanos());
        ensure(is_legal, "horizon", horizon, legal)?;
        if self.has_users() {
            return Ok(());
        }
        let expected = self.rate.requests_before(horizon);
        let legal = || format!("a horizon and a rate that give at most {} requests", self.most());
        let bounded = self.num_requests.is_some() || expected <= float(self.most());
        ensure(bounded, "horizon", format!("{horizon}, {expected} requests"), legal)
    }

    fn validate_span(&self, requests: u64) -> Result<(), SpecError> {
        // What cannot be reached for other reasons, such as clients that go, is no mistake.
        if float(requests) <= self.rate.requests_before(Time::ZERO + Span::LONGEST) {
            return Ok(());
        }
        let found = match self.rate {
            Rate::Steady(rate) => format!("{requests} requests at {rate} requests per second"),
            Rate::Shaped(_) | Rate::Users(_) => format!("{requests} requests at this rate"),
        };
        let legal = "a rate at which all requests arrive within ten years, or a horizon";
        Err(SpecError::new("rate", found, legal))
    }

    /// Requests that arrive at or after this are not sent: the horizon, or else, where nothing
    /// limits their number, the end of the last change of the rate, and at the latest ten years.
    /// Random arrivals may exceed those although their rate was legal: that is an end like the
    /// horizon's, and whoever asked for a number of requests is told how many there were.
    pub(crate) fn end(&self) -> Time {
        let last_change = self.rate.last_change().filter(|_| self.num_requests.is_none());
        let latest = Time::from_nanos(Span::LONGEST.as_nanos() + 1);
        self.horizon.or(last_change).map_or(latest, |end| end.min(latest))
    }
}

impl Client {
    /// A client of class `standard` with Poisson arrivals, who shares nothing and never gives up.
    pub fn plain(name: String, tenant: String, input: Length, output: Length) -> Client {
        Client {
            name,
            tenant,
            class: SloClass::Standard,
            share: 1.0,
            arrival: Arrival::Poisson,
            prefix_group: None,
            prefix_tokens: 0,
            input: input.into(),
            output,
            activity: Activity::default(),
            sessions: None,
            deadline: None,
            patience: None,
            retry: None,
        }
    }

    /// Whether it waits for how a request ends before it asks again.
    fn is_closed_loop(&self) -> bool {
        self.retry.is_some() || self.sessions.as_ref().is_some_and(Sessions::is_closed_loop)
    }

    fn validate(&self) -> Result<(), SpecError> {
        let (named, legal) = (!self.tenant.is_empty(), || "a name, e.g. `default`");
        ensure(named, "tenant", "an empty name", legal)?;
        let legal = || "a number above 0, at most 1e12";
        ensure(self.share > 0.0 && self.share <= 1e12, "share", self.share, legal)?;
        self.arrival.validate().map_err(|error| error.under("arrival"))?;
        let prefix = self.prefix_tokens;
        let legal = || format!("a whole number from 0 to {MAX_TOKENS}");
        ensure(prefix <= MAX_TOKENS, "prefix_tokens", prefix, legal)?;
        let legal = || "0, or name the prefix_group whose tokens they are";
        ensure(prefix == 0 || self.prefix_group.is_some(), "prefix_tokens", prefix, legal)?;
        self.input.validate().map_err(|error| error.under("input"))?;
        self.output.validate().map_err(|error| error.under("output"))?;
        self.activity.validate().map_err(|error| error.under("activity"))?;
        if let Some(sessions) = &self.sessions {
            sessions.validate().map_err(|error| error.under("sessions"))?;
        }
        if let Some(retry) = &self.retry {
            retry.validate().map_err(|error| error.under("retry"))?;
            let closed = self.sessions.as_ref().is_some_and(Sessions::is_closed_loop);
            let legal = || "none, because closed-loop sessions say what becomes of a rejection";
            ensure(!closed, "retry", "a retry", legal)?;
        }
        for (field, span) in [("deadline", self.deadline), ("patience", self.patience)] {
            let span = span.unwrap_or(Span::LONGEST);
            let legal = || format!("above 0, at most {} (ten years)", Span::LONGEST);
            ensure(span > Span::ZERO && span <= Span::LONGEST, field, span, legal)?;
        }
        Ok(())
    }
}
