//! The requests of published benchmarks.

use blis_core::math::count;
use blis_core::random::Purpose;
use blis_core::{
    Content, Dice, Ending, Request, RequestId, Segment, SloClass, Source, Span, StreamId, TenantId,
    Time,
};
use blis_scenario::problem::Problem;
use blis_scenario::yaml::Whole;
use serde::Deserialize;
use std::error::Error;
use std::ops::Range;

/// The client begins a stage when the last one is answered. Nothing happens in between, so it may
/// as well be this long after, which is longer than it takes.
const GAP: f64 = 1_000.0;

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
}

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

/// What is sent, and the stage of each request.
pub(super) struct Sent {
    pub(super) client: Client,
    pub(super) stages: Vec<usize>,
}

impl Load {
    /// How many numbers say where a point was measured.
    pub(super) fn keys(&self) -> usize {
        if self.users.is_some() { 4 } else { 1 }
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
        let (requests, stages) = if let Some(data) = self.shared_prefix {
            self.staged(data, seed)
        } else {
            let request = |(number, one): (usize, &[f64; 3])| single(number as u64, *one);
            let requests = self.requests.iter().enumerate().map(request).collect();
            (requests, vec![0; self.requests.len()])
        };
        Sent { client: Client { requests: requests.into_iter(), begin: self.most }, stages }
    }

    /// All requests of all stages, and the stage of each.
    fn staged(&self, data: SharedPrefix, seed: u64) -> (Vec<Request>, Vec<usize>) {
        let prompts = data.num_groups.get() * data.num_prompts_per_group.get();
        let mut order: Vec<u64> = (0..prompts).collect();
        let mut dice = Dice::new(seed, Purpose::Permutation, 0);
        for at in (1..order.len()).rev() {
            order.swap(at, dice.below(at + 1));
        }
        let (mut requests, mut stages, mut start) = (Vec::new(), Vec::new(), 0.0);
        for (stage, &[rate, lasting]) in self.stages.iter().enumerate() {
            let mut dice = Dice::new(seed, Purpose::Arrival, stage as u64);
            let mut next = || if self.even_s.is_some() { 1.0 } else { dice.exponential() } / rate;
            let mut at = next();
            while at < lasting {
                let prompt = order[requests.len() % order.len()];
                requests.push(data.request(requests.len() as u64, prompt, start + at));
                stages.push(stage);
                at += next();
            }
            start += lasting + GAP;
        }
        (requests, stages)
    }
}

impl SharedPrefix {
    fn request(self, number: u64, prompt: u64, at: f64) -> Request {
        let (groups, each) = (self.num_groups.get(), self.num_prompts_per_group.get());
        let segments = [
            (prompt / each, self.system_prompt_len.get_u32()),
            (groups + prompt, self.question_len.get_u32()),
        ];
        let own = groups + groups * each + number;
        request(number, at, &segments, own, self.output_len.get_u32())
    }
}

/// A request that shares nothing.
fn single(number: u64, [at, input, output]: [f64; 3]) -> Request {
    let tokens = |length: f64| u32::try_from(count(length)).unwrap_or(u32::MAX);
    request(number, at, &[(2 * number, tokens(input))], 2 * number + 1, tokens(output))
}

/// A request at that second with those streams, so many tokens of each, that generates `own`.
fn request(number: u64, at: f64, streams: &[(u64, u32)], own: u64, output: u32) -> Request {
    let segment = |&(stream, tokens): &(u64, u32)| Segment { stream: StreamId(stream), tokens };
    Request {
        id: RequestId(number),
        name: None,
        arrival: Time::from_nanos(count(at * 1e9)),
        content: Content::new(streams.iter().map(segment), StreamId(own)),
        output_tokens: output,
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
pub(super) struct Client {
    requests: std::vec::IntoIter<Request>,
    /// How many it may still send without an answer; `None`: all.
    begin: Option<usize>,
}

impl Source for Client {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        match &mut self.begin {
            Some(0) => return Ok(None),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(self.requests.next())
    }

    fn is_closed_loop(&self) -> bool {
        self.begin.is_some()
    }

    fn follow_up(&mut self, _: &Request, _: Ending, at: Time) -> Option<Request> {
        self.begin?;
        let next = self.requests.next()?;
        let arrival = next.arrival.max(at + Span::from_nanos(1));
        Some(Request { arrival, ..next })
    }

    fn expected(&self) -> Option<u64> {
        Some(self.requests.len() as u64)
    }

    fn tenant_name(&self, _: TenantId) -> String {
        "all".to_owned()
    }
}
