//! A mix of clients, and the requests that it sends.
//!
//! The lab fills a [`Mix`] from a workload file or from flags; the simulator pulls from its
//! [`MixSource`]. Memory is proportional to the number of clients, never to the number of requests.
//! Every draw is keyed by (seed, purpose, client, index of the request within its client): nothing
//! that one client does, and nothing that is drawn for another purpose, can disturb a draw.
//!
//! ```text
//!   prompt   [ stream of the prefix group, prefix_tokens ][ own stream, sampled input ]
//!   output                                                  own stream, continued
//! ```

use crate::arrival::{Arrival, ArrivalClock};
use crate::error::{SpecError, within};
use crate::length::{Length, MAX_TOKENS};
use crate::merge::Merge;
use crate::names::{Names, PRIVATE};
use blis_core::math::float;
use blis_core::random::{self, Purpose};
use blis_core::{
    Content, Dice, Request, RequestId, Segment, SloClass, Source, Span, StreamId, TenantId, Time,
};
use std::error::Error;

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
    /// Prompt length in tokens after the prefix.
    pub input: Length,
    /// Output length in tokens.
    pub output: Length,
}

/// Clients that send together.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// The clients; at least one.
    pub clients: Vec<Client>,
    /// Requests per second of all clients together (1e-9..=1e9).
    pub rate_per_sec: f64,
    /// Ends after this many requests (1..=10^12); without a horizon they must be expected to arrive
    /// within ten years.
    pub num_requests: Option<u64>,
    /// Ends before the first request that arrives at or after this time (above 0, at most ten
    /// years).
    pub horizon: Option<Time>,
    /// Seed of all draws.
    pub seed: u64,
}

/// Most clients: their number has 20 bits of a stream id.
const MAX_CLIENTS: usize = 1 << 20;
/// Most requests: their number within a client has 40 bits of a stream id.
const MAX_REQUESTS: u64 = 1_000_000_000_000;

impl Mix {
    /// Checks the whole mix.
    ///
    /// # Errors
    /// If a field is illegal; the error's field is its path within the mix, e.g.
    /// `clients[2].arrival.cv`.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.clients.is_empty() || self.clients.len() > MAX_CLIENTS {
            let legal = format!("from 1 to {MAX_CLIENTS} clients");
            return Err(SpecError::new("clients", self.clients.len(), legal));
        }
        for (index, client) in self.clients.iter().enumerate() {
            client.validate().map_err(|error| error.under(&format!("clients[{index}]")))?;
        }
        within("rate_per_sec", self.rate_per_sec, 1e-9, 1e9)?;
        if let Some(requests) = self.num_requests
            && !(1..=MAX_REQUESTS).contains(&requests)
        {
            let legal = format!("a whole number from 1 to {MAX_REQUESTS}");
            return Err(SpecError::new("num_requests", requests, legal));
        }
        self.validate_end()
    }

    /// A mix must end, and its requests must arrive within ten years.
    fn validate_end(&self) -> Result<(), SpecError> {
        let Some(horizon) = self.horizon else {
            let Some(requests) = self.num_requests else {
                let found = "neither a number of requests nor a horizon";
                let legal = "one of the two: else the workload never ends";
                return Err(SpecError::new("num_requests", found, legal));
            };
            return self.validate_span(requests);
        };
        if !(1..=Span::LONGEST.as_nanos()).contains(&horizon.as_nanos()) {
            let legal = format!("from 1 ns to {} (ten years)", Span::LONGEST);
            return Err(SpecError::new("horizon", horizon, legal));
        }
        let expected = horizon.as_secs_f64() * self.rate_per_sec;
        if self.num_requests.is_none() && expected > float(MAX_REQUESTS) {
            let legal = format!("a horizon and a rate that give at most {MAX_REQUESTS} requests");
            return Err(SpecError::new(
                "horizon",
                format!("{horizon}, {expected} requests"),
                legal,
            ));
        }
        Ok(())
    }

    fn validate_span(&self, requests: u64) -> Result<(), SpecError> {
        let rate = self.rate_per_sec;
        if float(requests) / rate <= Span::LONGEST.as_secs_f64() {
            return Ok(());
        }
        let found = format!("{requests} requests at {rate} requests per second");
        let legal = "a rate at which all requests arrive within ten years, or a horizon";
        Err(SpecError::new("rate_per_sec", found, legal))
    }

    /// The requests of this mix, which must be valid ([`Mix::validate`]).
    ///
    /// # Panics
    /// If there is no client.
    pub fn source(&self) -> MixSource {
        assert!(!self.clients.is_empty(), "a mix without clients must be refused by validate");
        let shares: f64 = self.clients.iter().map(|client| client.share).sum();
        let mut tenants = Names::default();
        let mut groups = Names::default();
        let mut lanes: Vec<Lane> = (0_u64..)
            .zip(&self.clients)
            .map(|(number, client)| Lane {
                number,
                sent: 0,
                clock: ArrivalClock::new(self.rate_per_sec * (client.share / shares)),
                arrival: client.arrival.clone(),
                class: client.class,
                tenant: TenantId(tenants.number(&client.tenant)),
                prefix: client.prefix_group.as_ref().map(|group| Segment {
                    stream: StreamId(groups.number(group).into()),
                    tokens: client.prefix_tokens,
                }),
                input: client.input.clone(),
                output: client.output.clone(),
            })
            .collect();
        let first = lanes.iter_mut().map(|lane| lane.next_arrival(self.seed)).collect();
        MixSource {
            seed: self.seed,
            lanes,
            merge: Merge::new(first),
            sent: 0,
            most: self.num_requests,
            horizon: self.horizon,
            tenants,
        }
    }
}

impl Client {
    fn validate(&self) -> Result<(), SpecError> {
        if self.tenant.is_empty() {
            return Err(SpecError::new("tenant", "an empty name", "a name, e.g. `default`"));
        }
        if !(self.share > 0.0 && self.share <= 1e12) {
            return Err(SpecError::new("share", self.share, "a number above 0, at most 1e12"));
        }
        self.arrival.validate().map_err(|error| error.under("arrival"))?;
        if self.prefix_tokens > MAX_TOKENS {
            let legal = format!("a whole number from 0 to {MAX_TOKENS}");
            return Err(SpecError::new("prefix_tokens", self.prefix_tokens, legal));
        }
        if self.prefix_tokens > 0 && self.prefix_group.is_none() {
            let legal = "0, or name the prefix_group whose tokens they are";
            return Err(SpecError::new("prefix_tokens", self.prefix_tokens, legal));
        }
        self.input.validate().map_err(|error| error.under("input"))?;
        self.output.validate().map_err(|error| error.under("output"))
    }
}

/// One client while it sends.
#[derive(Clone, Debug)]
struct Lane {
    number: u64,
    /// Requests sent so far: the index of the one whose arrival is pending.
    sent: u64,
    clock: ArrivalClock,
    arrival: Arrival,
    class: SloClass,
    tenant: TenantId,
    prefix: Option<Segment>,
    input: Length,
    output: Length,
}

impl Lane {
    fn dice(&self, seed: u64, purpose: Purpose) -> Dice {
        Dice::new(seed, purpose, random::mix(self.number, self.sent))
    }

    fn next_arrival(&mut self, seed: u64) -> Time {
        let gap = self.arrival.gap(&mut self.dice(seed, Purpose::Arrival));
        self.clock.advance(gap)
    }

    fn request(&self, seed: u64, id: RequestId, arrival: Time) -> Request {
        debug_assert!(self.sent < 1 << 40, "validate keeps requests below the stream's 40 bits");
        let own = StreamId(PRIVATE | (self.number << 40) | self.sent);
        let input = self.input.sample(&mut self.dice(seed, Purpose::InputLength));
        let output_tokens = self.output.sample(&mut self.dice(seed, Purpose::OutputLength));
        let question = Segment { stream: own, tokens: input };
        let segments = self.prefix.into_iter().chain([question]);
        Request {
            id,
            name: None,
            arrival,
            content: Content::new(segments, own),
            output_tokens,
            class: self.class,
            tenant: self.tenant,
            session: None,
            round: 0,
            deadline: None,
        }
    }
}

/// The requests of a [`Mix`], made one by one as they are asked for.
#[derive(Clone, Debug)]
pub struct MixSource {
    seed: u64,
    lanes: Vec<Lane>,
    merge: Merge,
    sent: u64,
    most: Option<u64>,
    horizon: Option<Time>,
    tenants: Names,
}

impl Source for MixSource {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        if self.most.is_some_and(|most| self.sent >= most) {
            return Ok(None);
        }
        let (arrival, client) = self.merge.earliest();
        // Random arrivals may exceed ten years although their rate was legal: that is an end like
        // the horizon's. Whoever asked for a number of requests is told how many there were.
        let late = arrival.as_nanos() > Span::LONGEST.as_nanos();
        if late || self.horizon.is_some_and(|horizon| arrival >= horizon) {
            return Ok(None);
        }
        let lane = &mut self.lanes[client];
        let request = lane.request(self.seed, RequestId(self.sent), arrival);
        lane.sent += 1;
        self.sent += 1;
        let next = lane.next_arrival(self.seed);
        self.merge.replace_earliest(client, next);
        Ok(Some(request))
    }

    fn expected(&self) -> Option<u64> {
        if self.horizon.is_some() { None } else { self.most }
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        self.tenants.name(tenant.0).to_owned()
    }
}
