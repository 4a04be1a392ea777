//! The requests of published benchmarks.

use blis_core::math::count;
use blis_core::random::Purpose;
use blis_core::{
    Content, Dice, Ending, Request, RequestId, Segment, SloClass, Source, Span, StreamId, TenantId,
    Time,
};
use blis_scenario::problem::{Problem, quoted};
use blis_scenario::yaml::Whole;
use blis_workload::{Activity, Arrival, Client, Length, Mix, MixSource, Rate};
use serde::Deserialize;
use std::error::Error;
use std::ops::Range;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    shared_prefix: Option<SharedPrefix>,
    /// Rates in requests per second, each for so many seconds.
    #[serde(default)]
    stages: Vec<[f64; 2]>,
    /// Instead of `stages`: the rates of an arm's points, each for so many seconds, evenly spaced.
    even_s: Option<f64>,
    /// At most so many requests are under way: the next ones wait at the client.
    most: Option<usize>,
    /// Stages, from the first, that fill caches and are not measured.
    #[serde(default)]
    warmup: usize,
    pub(super) users: Option<Users>,
    /// Single requests: s, prompt and output tokens.
    #[serde(default)]
    requests: Vec<[f64; 3]>,
    /// Instead of all that: a folder of measured runs, which are the points of an arm.
    pub(super) measured: Option<String>,
}

/// Most tokens of a prompt, and of an answer.
pub(super) const MOST_TOKENS: f64 = 1e7;

/// Users who each send the next request when they have an answer.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Users {
    /// How many requests each sends on average.
    requests_each: f64,
    /// The shortest prompt and answer, as a share of the longest; all in between are as likely.
    shortest: f64,
}

/// The data of inference-perf's `shared_prefix`: groups of questions behind one system prompt, all
/// of which are asked again and again in one shuffled order.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedPrefix {
    num_groups: Whole<1, 1_000_000>,
    num_prompts_per_group: Whole<1, 1_000>,
    system_prompt_len: Whole<0, 10_000_000>,
    question_len: Whole<1, 10_000_000>,
    output_len: Whole<1, 10_000_000>,
}

/// What says what is sent, and what goes with it; the first that is given counts.
const KINDS: [(&str, &[&str]); 4] = [
    ("measured", &[]),
    ("users", &[]),
    (SHARED, &["even_s", "stages", "warmup", "most"]),
    ("requests", &["most"]),
];
const SHARED: &str = "shared_prefix";

const MOST_PROMPTS: u64 = 1_000_000;
const MOST_REQUESTS: f64 = 1e8;

/// What is sent, and the stage of each request.
pub(super) struct Sent {
    pub(super) client: Tool,
    pub(super) stages: Vec<usize>,
}

impl Load {
    /// How many numbers say where a point was measured.
    pub(super) fn keys(&self) -> usize {
        if self.users.is_some() { 4 } else { 1 }
    }

    /// Its fields that say nothing beside the others, and what is missing; `own`: arms have
    /// requests.
    pub(super) fn odd(&self, own: bool) -> Vec<String> {
        let given = [
            ("measured", self.measured.is_some()),
            ("users", self.users.is_some()),
            (SHARED, self.shared_prefix.is_some()),
            ("requests", own || !self.requests.is_empty()),
            ("even_s", self.even_s.is_some()),
            ("stages", !self.stages.is_empty()),
            ("warmup", self.warmup > 0),
            ("most", self.most.is_some()),
        ];
        let given: Vec<&str> = given.iter().filter(|it| it.1).map(|it| it.0).collect();
        let kind = KINDS.iter().find(|(kind, _)| given.contains(kind));
        let Some((kind, with)) = kind else {
            let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            return vec![format!("nothing is sent; write one of {}", quoted(&kinds))];
        };
        // The rates of points take the place of stages.
        let instead = given.contains(&"even_s") && *kind == SHARED;
        let idle = |name: &&&str| {
            let replaced = instead && matches!(**name, "stages" | "warmup");
            **name != *kind && (replaced || !with.contains(*name))
        };
        let beside = if instead { "even_s" } else { *kind };
        let idle = given.iter().filter(idle);
        let mut odd: Vec<String> =
            idle.map(|it| format!("`{it}` has no effect beside `{beside}`; remove it")).collect();
        if *kind == SHARED && !instead && self.warmup >= self.stages.len() {
            let (found, stages) = (self.warmup, self.stages.len());
            odd.push(match stages {
                0 => format!("`{SHARED}` has no rates; add `stages` or `even_s`"),
                _ => format!("`warmup`: found {found}; legal: fewer than the {stages} `stages`"),
            });
        }
        odd
    }

    /// Its numbers that nobody can send, with what is legal.
    pub(super) fn illegal(&self) -> Vec<String> {
        let mut illegal = Vec::new();
        if let Some(data) = self.shared_prefix
            && data.num_groups.get() * data.num_prompts_per_group.get() > MOST_PROMPTS
        {
            illegal.push(format!("`{SHARED}`: more than {MOST_PROMPTS} prompts"));
        }
        if !self.requests.is_sorted_by(|one, next| one[0] <= next[0]) {
            illegal.push("`requests`: sort them by their times".to_owned());
        }
        let users = self.users.map(|users| [users.requests_each, users.shortest]);
        let stages = self.stages.iter().map(|[rate, lasting]| (rate, lasting));
        let each = |at: usize| self.requests.iter().map(move |one| one[at]);
        let all = [
            ("rates of `stages`", stages.clone().map(|stage| *stage.0).collect(), 0.0..=1e6),
            ("seconds of `stages`", stages.map(|stage| *stage.1).collect(), 0.0..=1e9),
            ("`even_s`", self.even_s.into_iter().collect(), 1e-3..=1e9),
            ("`requests_each`", users.iter().map(|users| users[0]).collect(), 1e-3..=1e6),
            ("`shortest`", users.iter().map(|users| users[1]).collect(), 0.0..=1.0),
            ("times of `requests`", each(0).collect(), 0.0..=1e9),
            ("prompts of `requests`", each(1).collect(), 1.0..=MOST_TOKENS),
            ("answers of `requests`", each(2).collect::<Vec<f64>>(), 1.0..=MOST_TOKENS),
        ];
        illegal.extend(all.into_iter().filter_map(|(what, values, legal)| {
            let found = values.iter().find(|value| !legal.contains(value))?;
            Some(format!("{what}: found {found}; legal: {} to {}", legal.start(), legal.end()))
        }));
        let sent: f64 = self.stages.iter().map(|[rate, lasting]| rate * lasting).sum();
        if sent > MOST_REQUESTS {
            illegal.push(format!("`stages`: {sent:e} requests; legal: up to {MOST_REQUESTS:e}"));
        }
        illegal
    }

    /// The load of an arm with those requests of its own and points at those rates.
    pub(super) fn of_arm(&self, requests: &[[f64; 3]], rates: &[f64]) -> Load {
        let mut load = self.clone();
        if let Some(lasting) = self.even_s {
            load.stages = rates.iter().map(|&rate| [rate, lasting]).collect();
        }
        if !requests.is_empty() {
            requests.clone_into(&mut load.requests);
        }
        load
    }

    /// The stage of that rate, or all that are measured.
    pub(super) fn chosen(&self, arm: &str, rate: Option<f64>) -> Result<Range<usize>, Problem> {
        let Some(rate) = rate else { return Ok(self.warmup..self.stages.len().max(1)) };
        let is = |at: &usize| (self.stages[*at][0] - rate).abs() < 1e-9;
        let Some(at) = (self.warmup..self.stages.len()).find(is) else {
            return Err(Problem::of_file(arm, format!("no stage has a rate of {rate}")));
        };
        Ok(at..at + 1)
    }

    /// What `users` send of that many prompt and output tokens at most; all begin at once.
    pub(super) fn closed(&self, [_, users, input, output]: [f64; 4], seed: u64) -> Sent {
        let Some(Users { requests_each, shortest }) = self.users else { return self.sent(seed) };
        let mut dice = Dice::new(seed, Purpose::InputLength, 0);
        let mut length = |most: f64| {
            let least = (most * shortest).floor();
            (least + (dice.unit() * (most - least + 1.0)).floor()).max(1.0)
        };
        let requests = 0..count(users * requests_each);
        let requests = requests.map(|_| [0.0, length(input), length(output)]).collect();
        let most = usize::try_from(count(users)).ok();
        Load { most, requests, ..self.clone() }.sent(seed)
    }

    pub(super) fn sent(&self, seed: u64) -> Sent {
        let shared = self.shared_prefix.map(|data| self.shared(data, seed).source());
        let request = |(number, one): (usize, &[f64; 3])| single(number as u64, *one);
        let requests: Vec<Request> = self.requests.iter().enumerate().map(request).collect();
        let stages = match &shared {
            Some(source) => source.stages(),
            None => vec![0; requests.len()],
        };
        let requests = requests.into_iter();
        Sent { client: Tool { shared, requests, free: self.most, ended: Time::ZERO }, stages }
    }

    /// The load of inference-perf.
    fn shared(&self, data: SharedPrefix, seed: u64) -> Mix {
        let arrival = if self.even_s.is_some() { Arrival::Constant } else { Arrival::Poisson };
        let (groups, each) = (data.num_groups.get(), data.num_prompts_per_group.get());
        let client = |prompt: u64| Client {
            name: prompt.to_string(),
            tenant: "all".to_owned(),
            class: SloClass::Standard,
            share: 1.0,
            arrival: arrival.clone(),
            prefix_group: Some((prompt / each).to_string()),
            prefix_tokens: data.system_prompt_len.get_u32(),
            input: Length::Constant(data.question_len.get_u32()).into(),
            output: Length::Constant(data.output_len.get_u32()),
            activity: Activity::default(),
            sessions: None,
            deadline: None,
            patience: None,
            retry: None,
        };
        let stages =
            self.stages.iter().map(|&[rate, lasting]| (rate, Span::from_secs_f64(lasting)));
        Mix {
            clients: (0..groups * each).map(client).collect(),
            rate: Rate::steps(stages.chain([(0.0, Span::ZERO)])),
            num_requests: None,
            horizon: None,
            seed,
            in_turn: true,
        }
    }
}

/// A request that shares nothing.
fn single(number: u64, [at, input, output]: [f64; 3]) -> Request {
    let tokens = |length: f64| u32::try_from(count(length)).unwrap_or(u32::MAX);
    let prompt = Segment { stream: StreamId(2 * number), tokens: tokens(input) };
    Request {
        id: RequestId(number),
        name: None,
        arrival: Time::from_nanos(count(at * 1e9)),
        content: Content::new([prompt], StreamId(2 * number + 1)),
        output_tokens: tokens(output),
        class: SloClass::Standard,
        tenant: TenantId(0),
        session: None,
        round: 0,
        attempt: 0,
        deadline: None,
        patience: None,
    }
}

/// Sends its requests when they are due, and no more at a time than it may.
pub(super) struct Tool {
    shared: Option<MixSource>,
    /// Instead of that.
    requests: std::vec::IntoIter<Request>,
    /// How many more may be under way; `None`: all.
    free: Option<usize>,
    /// When the last request ended.
    ended: Time,
}

impl Source for Tool {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        if self.free == Some(0) {
            return Ok(None);
        }
        let next = match &mut self.shared {
            Some(shared) => shared.next_request()?,
            None => self.requests.next(),
        };
        let Some(next) = next else { return Ok(None) };
        let Some(free) = &mut self.free else { return Ok(Some(next)) };
        *free -= 1;
        Ok(Some(Request { arrival: next.arrival.max(self.ended + Span::from_nanos(1)), ..next }))
    }

    fn is_closed_loop(&self) -> bool {
        self.free.is_some() || self.shared.as_ref().is_some_and(MixSource::is_closed_loop)
    }

    fn is_waiting(&self) -> bool {
        true
    }

    fn follow_up(&mut self, ended: &Request, ending: Ending, at: Time) -> Option<Request> {
        self.free.iter_mut().for_each(|free| *free += 1);
        self.ended = self.ended.max(at);
        self.shared.as_mut()?.follow_up(ended, ending, at)
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn tenant_name(&self, _: TenantId) -> String {
        "all".to_owned()
    }
}
