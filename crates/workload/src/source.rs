//! The requests of a mix, drawn one by one as they are asked for.
//!
//! Memory is proportional to the number of clients and of open-loop sessions under way, never to
//! the number of requests. Every draw is keyed by (seed, purpose, client, index of the arrival
//! within its client, round): nothing that one client does, nothing that is drawn for another
//! purpose and nothing that the cluster does can disturb a draw.
//!
//! ```text
//!   prompt   [ stream of the prefix group, prefix_tokens ][ own stream, context + sampled input ]
//!   output                                                  own stream, continued
//! ```

use crate::arrival::ArrivalClock;
use crate::merge::Merge;
use crate::mix::{Client, Mix};
use crate::names::{CLIENT_BITS, Names, PRIVATE, session_name};
use crate::rate::{Rate, Users};
use crate::session::{Context, Next, Sessions};
use crate::turns::InTurn;
use blis_core::random::{self, Purpose};
use blis_core::{
    Content, Dice, Ending, Request, RequestId, Segment, SessionId, Source, Span, StreamId,
    TenantId, Time,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;

/// The bits of a stream number that are a round's.
const ROUND_BITS: u32 = 10;
/// The longest conversation in tokens: with prefix, question and answer at their longest it still
/// fits the 32-bit counts of the engine. A session ends there.
const MAX_CONTEXT: u32 = 1 << 29;

/// The stream of a client that asks the same every time; no arrival has that number.
const LAST_OF_CLIENT: u64 = (1 << CLIENT_BITS) - 1;

/// How soon a client asks again at the earliest, as [`Source::follow_up`] demands.
const QUICKEST: Span = Span::from_nanos(1);

/// How soon a user goes on at the earliest who was not answered.
const REFUSED: Span = Span::from_micros(1_000_000);

/// The requests of a [`Mix`].
#[derive(Clone, Debug)]
pub struct MixSource {
    seed: u64,
    rate: Rate,
    lanes: Vec<Lane>,
    merge: Merge,
    /// The next rounds of open-loop sessions.
    turns: BinaryHeap<Reverse<Turn>>,
    /// Requests sent or, for the later rounds of closed-loop sessions, promised.
    sent: u64,
    most: Option<u64>,
    /// Ends before the first request at or after this.
    end: Time,
    expected: Option<u64>,
    closed_loop: bool,
    /// Who sends, if it is not a rate, and how many of them have come.
    users: Option<Users>,
    joined: u32,
    /// The closed-loop session that the number of requests cut short, and its rounds.
    cut: Option<(SessionId, u32)>,
    /// Whose turn it is, if clients take turns.
    in_turn: Option<InTurn>,
    tenants: Names,
}

/// One client while it sends.
#[derive(Clone, Debug)]
struct Lane {
    number: u64,
    /// Arrivals so far: the index of the one that is pending.
    arrived: u64,
    clock: ArrivalClock,
    /// Its part of the mix's rate, if that or its activity changes over time.
    part_of_rate: Option<f64>,
    tenant: TenantId,
    prefix: Option<Segment>,
    /// Whether it asks the same every time.
    repeats: bool,
    client: Client,
}

/// A round that an open-loop session will send, ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    at: Time,
    lane: usize,
    /// Index of the arrival that started the session.
    session: u64,
    round: u32,
    /// Tokens of the conversation so far.
    context: u32,
}

impl Mix {
    /// The requests of this mix, which must be valid ([`Mix::validate`]).
    ///
    /// # Panics
    /// If there is no client.
    pub fn source(&self) -> MixSource {
        MixSource::new(self)
    }
}

impl MixSource {
    fn new(mix: &Mix) -> MixSource {
        assert!(!mix.clients.is_empty(), "a mix without clients must be refused by validate");
        let shares: f64 = mix.clients.iter().map(|client| client.share).sum();
        let mut tenants = Names::default();
        let mut groups = Names::default();
        let mut lanes: Vec<Lane> = (0_u64..)
            .zip(&mix.clients)
            .map(|(number, client)| {
                let part = if mix.in_turn { 1.0 } else { client.share / shares };
                let steady = mix.rate.steady().filter(|_| client.activity.is_constant());
                let steady = steady.map(|rate| rate * part);
                Lane {
                    number,
                    arrived: 0,
                    clock: ArrivalClock::new(steady.unwrap_or(1.0)),
                    part_of_rate: if steady.is_some() { None } else { Some(part) },
                    tenant: TenantId(tenants.number(&client.tenant)),
                    prefix: client.prefix_group.as_ref().map(|group| Segment {
                        stream: StreamId(groups.number(group).into()),
                        tokens: client.prefix_tokens,
                    }),
                    repeats: mix.in_turn,
                    client: client.clone(),
                }
            })
            .collect();
        let users = match mix.rate {
            Rate::Users(users) => Some(users),
            Rate::Steady(_) | Rate::Shaped(_) => None,
        };
        let first = lanes.iter_mut().map(|lane| match lane.number {
            1.. if mix.in_turn => Time::NEVER,
            _ => lane.next_arrival(mix.seed, &mix.rate),
        });
        let first = first.collect();
        MixSource {
            seed: mix.seed,
            rate: mix.rate.clone(),
            lanes,
            merge: Merge::new(first),
            turns: BinaryHeap::new(),
            sent: 0,
            most: mix.num_requests.or(users.map(|_| mix.most())),
            end: mix.end(),
            expected: mix.expected(),
            closed_loop: mix.is_closed_loop(),
            users,
            joined: 0,
            cut: None,
            in_turn: mix.in_turn.then(|| InTurn::new(mix.clients.len(), &mix.rate, mix.seed)),
            tenants,
        }
    }

    /// The stage of each of its requests, in their order: which step of the rate sends it.
    pub fn stages(&self) -> Vec<usize> {
        let mut all = self.clone();
        let next = || {
            all.in_turn.iter_mut().for_each(InTurn::drain);
            all.next().map(|_| all.in_turn.as_ref().map_or(0, |turns| turns.stage))
        };
        std::iter::from_fn(next).collect()
    }

    /// The next arrival of a client, or the next round of an open-loop session, whichever is first.
    fn next(&mut self) -> Option<Request> {
        if self.most.is_some_and(|most| self.sent >= most) {
            return None;
        }
        let (arrival, lane) = self.merge.earliest();
        if let Some(&Reverse(turn)) = self.turns.peek()
            && turn.at <= arrival
        {
            self.turns.pop();
            return (turn.at < self.end).then(|| self.send(turn));
        }
        if arrival >= self.end {
            return None;
        }
        let turn = match &mut self.in_turn {
            Some(turns) => {
                let at = turns.sent(arrival)?;
                let (lane, session) = turns.client(self.sent);
                Some(Turn { at, lane, session, round: 0, context: 0 })
            }
            None => None,
        };
        let sender = &mut self.lanes[lane];
        let session = sender.arrived;
        sender.arrived += 1;
        let next = sender.next_arrival(self.seed, &self.rate);
        self.merge.replace_earliest(lane, next);
        let drawn = Turn { at: arrival, lane, session, round: 0, context: 0 };
        Some(self.send(turn.unwrap_or(drawn)))
    }

    /// What a user sends who has nothing more to ask of a request that ended at `at`. Whoever was
    /// turned away does not come back at once, or a gate that refuses would be asked without end.
    fn next_of_user(&mut self, ending: Ending, at: Time) -> Option<Request> {
        let think = self.users?.think;
        let least = if ending == Ending::Finished { QUICKEST } else { REFUSED };
        let mut dice = Dice::new(self.seed, Purpose::Think, random::mix(u64::MAX, self.sent));
        let arrival = later(at, think.sample(&mut dice).max(least));
        let request = self.next().filter(|_| arrival < self.end)?;
        Some(Request { arrival, ..request })
    }

    /// What the client of a request that ended at `at` asks because of that. It follows from the
    /// request and from keyed draws, so that nothing is kept for the sessions under way.
    fn next_of_client(&self, ended: &Request, ending: Ending, at: Time) -> Option<Request> {
        let own = ended.content.output_stream().0 & !PRIVATE;
        let number = usize::try_from(own >> CLIENT_BITS).expect("a request of this source");
        let lane = &self.lanes[number];
        let again = |after: Span| {
            let attempt = ended.attempt + 1;
            Request { arrival: later(at, after.max(QUICKEST)), attempt, ..ended.clone() }
        };
        let closed = lane.client.sessions.as_ref().filter(|sessions| sessions.is_closed_loop());
        let next = match closed {
            None => again(lane.client.retry?.after(ending, ended.attempt)?),
            Some(sessions) => match sessions.after(ending, ended.attempt) {
                Next::Nothing => return None,
                Next::Again(after) => again(after),
                Next::Round => self.next_round(number, sessions, ended, at)?,
            },
        };
        let there = next.arrival < self.end && lane.client.activity.is_active(next.arrival);
        there.then_some(next)
    }

    /// What a closed-loop client asks after `ended` was answered at `at`.
    fn next_round(
        &self,
        number: usize,
        sessions: &Sessions,
        ended: &Request,
        at: Time,
    ) -> Option<Request> {
        let lane = &self.lanes[number];
        let id = ended.session?;
        let session = id.0 & ((1 << CLIENT_BITS) - 1);
        let round = ended.round + 1;
        let rounds = match self.cut {
            Some((cut, rounds)) if cut == id => rounds,
            _ => lane.rounds(self.seed, sessions, session),
        };
        if round >= rounds {
            return None;
        }
        let think = lane.think(self.seed, sessions, session, round).max(QUICKEST);
        let context = lane.context_after(sessions, ended)?;
        let round = Turn { at: later(at, think), lane: number, session, round, context };
        Some(lane.request(self.seed, ended.id, round))
    }

    /// Sends a round, and sees to the next one of its session.
    fn send(&mut self, turn: Turn) -> Request {
        let lane = &self.lanes[turn.lane];
        let request = lane.request(self.seed, RequestId(self.sent), turn);
        self.sent += 1;
        let Some(sessions) = &lane.client.sessions else { return request };
        let rounds = lane.rounds(self.seed, sessions, turn.session);
        if sessions.is_closed_loop() {
            let later = u64::from(rounds - 1);
            let left = self.most.map_or(later, |most| later.min(most - self.sent));
            if left < later {
                let rounds = u32::try_from(left).expect("no more than a session has") + 1;
                self.cut = request.session.map(|session| (session, rounds));
            }
            self.sent += left;
        } else if let Some(next) = lane.open_round(self.seed, sessions, turn, &request, rounds) {
            self.turns.push(Reverse(next));
        }
        request
    }
}

impl Lane {
    fn next_arrival(&mut self, seed: u64, rate: &Rate) -> Time {
        let single = self.client.sessions.as_ref().is_some_and(|sessions| sessions.single);
        if single && self.arrived > 0 {
            return Time::NEVER;
        }
        let mut dice = Dice::new(seed, Purpose::Arrival, random::mix(self.number, self.arrived));
        let gap = self.client.arrival.gap(&mut dice);
        let Some(part) = self.part_of_rate else { return self.clock.advance(gap) };
        let activity = &self.client.activity;
        self.clock.advance_along(gap, |at| {
            let (share, until) = activity.stretch(at);
            rate.stretch(at).scaled(part * share, until)
        })
    }

    /// The dice of one round of one arrival; a request that stands alone is no round.
    fn dice(&self, seed: u64, purpose: Purpose, session: u64, round: Option<u32>) -> Dice {
        let key = random::mix(self.number, session);
        let key = round.map_or(key, |round| random::mix(key, u64::from(round) + 1));
        Dice::new(seed, purpose, key)
    }

    /// How many rounds a session has.
    fn rounds(&self, seed: u64, sessions: &Sessions, session: u64) -> u32 {
        sessions.sample_rounds(&mut self.dice(seed, Purpose::Rounds, session, None))
    }

    /// How long the client thinks before a round.
    fn think(&self, seed: u64, sessions: &Sessions, session: u64, round: u32) -> Span {
        sessions.think.sample(&mut self.dice(seed, Purpose::Think, session, Some(round)))
    }

    fn request(&self, seed: u64, id: RequestId, turn: Turn) -> Request {
        let Turn { at, lane: _, session, round, context } = turn;
        let sessions = self.client.sessions.as_ref();
        let in_session = sessions.map(|_| round);
        let drawn = if self.repeats { 0 } else { session };
        let dice = |purpose| self.dice(seed, purpose, drawn, in_session);
        let input = self.client.input.sample(&mut dice(Purpose::InputLength));
        let output_tokens = self.client.output.sample(&mut dice(Purpose::OutputLength));
        let within = match sessions.map(|sessions| sessions.context) {
            None => session,
            Some(Context::Accumulate) => session << ROUND_BITS,
            Some(Context::Fresh) => (session << ROUND_BITS) | u64::from(round),
        };
        assert!(within < 1 << CLIENT_BITS, "validate keeps arrivals below these bits");
        let base = self.number << CLIENT_BITS;
        let own = StreamId(PRIVATE | base | within);
        let asked = if self.repeats { StreamId(PRIVATE | base | LAST_OF_CLIENT) } else { own };
        let question = Segment { stream: asked, tokens: context + input };
        Request {
            id,
            name: None,
            arrival: at,
            content: Content::new(self.prefix.into_iter().chain([question]), own),
            output_tokens,
            class: self.client.class,
            tenant: self.tenant,
            session: sessions.map(|_| SessionId(base | session)),
            round,
            attempt: 0,
            deadline: self.client.deadline,
            patience: self.client.patience,
        }
    }

    /// Tokens of the conversation after `answered`; `None` if it is too long to go on.
    fn context_after(&self, sessions: &Sessions, answered: &Request) -> Option<u32> {
        if sessions.context == Context::Fresh {
            return Some(0);
        }
        let prefix = self.prefix.map_or(0, |prefix| prefix.tokens);
        let context = answered.content.prompt_tokens() - prefix + answered.output_tokens;
        (context <= MAX_CONTEXT).then_some(context)
    }

    /// The round after `sent` of an open-loop session. One that falls into a time when the client
    /// is away is not sent, and adds nothing to the conversation.
    fn open_round(
        &self,
        seed: u64,
        sessions: &Sessions,
        sent: Turn,
        request: &Request,
        rounds: u32,
    ) -> Option<Turn> {
        let context = self.context_after(sessions, request)?;
        let mut next = Turn { context, ..sent };
        loop {
            next.round += 1;
            if next.round >= rounds {
                return None;
            }
            next.at = later(next.at, self.think(seed, sessions, next.session, next.round));
            if self.client.activity.is_active(next.at) {
                return Some(next);
            }
        }
    }
}

/// `at` and `span` later, without running over.
fn later(at: Time, span: Span) -> Time {
    Time::from_nanos(at.as_nanos().saturating_add(span.as_nanos()))
}

impl Source for MixSource {
    fn has_private_streams(&self) -> bool {
        let single = |lane: &Lane| lane.client.sessions.is_none() && lane.client.retry.is_none();
        self.in_turn.is_none() && self.lanes.iter().all(single)
    }

    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        let Some(users) = self.users else { return Ok(self.next()) };
        let arrival = users.joins(self.joined);
        if self.joined == users.count || arrival >= self.end {
            return Ok(None);
        }
        self.joined += 1;
        Ok(self.next().map(|request| Request { arrival, ..request }))
    }

    fn is_closed_loop(&self) -> bool {
        self.closed_loop
    }

    fn is_waiting(&self) -> bool {
        self.in_turn.as_ref().is_some_and(InTurn::is_waiting)
    }

    fn follow_up(&mut self, ended: &Request, ending: Ending, at: Time) -> Option<Request> {
        self.in_turn.iter_mut().for_each(|turns| turns.end(at));
        self.next_of_client(ended, ending, at).or_else(|| self.next_of_user(ending, at))
    }

    fn expected(&self) -> Option<u64> {
        self.expected
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        self.tenants.name(tenant.0).to_owned()
    }

    fn session_name(&self, session: SessionId) -> String {
        session_name(session)
    }
}
