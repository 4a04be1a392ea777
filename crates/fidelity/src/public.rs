//! Published measurements: benchmarks that others ran, replayed from what they say of them.
//!
//! A data file names its source and licence, has the scenario and the load as far as they are
//! published, and the numbers that were measured. Nothing here is fitted to them.
//!
//! ```yaml
//! title: a ladder of rates on eight servers
//! source: where the numbers are from
//! licence: Apache-2.0
//! hardware: 16 x H100
//! engine: vLLM, TP 2
//! scenario: {model: qwen/qwen3-32b, hardware: h100, tp: 2, cluster: {instances: 8}}
//! workload:
//!   shared_prefix: {num_groups: 150, num_prompts_per_group: 5, system_prompt_len: 6000,
//!     question_len: 1200, output_len: 1000}
//!   stages: [[15, 50], [3, 20], [10, 20]]  # requests per second, seconds
//!   warmup: 1
//! columns: [output_tokens_per_s, ttft_p90_s]
//! arms:
//!   - name: round-robin
//!     set: {routing: round-robin}
//!     points: [[3, 1797, 0.522], [10, 4215, 1.014]]  # the rate of a stage, or ~ for all
//! ```

use blis_core::math::{count, float};
use blis_core::random::Purpose;
use blis_core::{
    Content, Dice, Request, RequestId, Segment, SloClass, Source, Span, StreamId, TenantId, Time,
};
use blis_metrics::{Fact, Listener, Status};
use blis_scenario::Trial;
use blis_scenario::problem::Problem;
use blis_scenario::run::RunFailure;
use blis_scenario::scenario::{Draft, Plan};
use blis_scenario::yaml::{self, Kind, Node, Whole};
use blis_scenario::{Problems, strategy};
use blis_sim::Unobserved;
use serde::Deserialize;
use std::error::Error;
use std::ops::Range;
use std::path::Path;

/// The client begins a stage when the last one is answered. Nothing happens in between, so it may
/// as well be this long after, which is longer than it takes.
const GAP: f64 = 1_000.0;

/// Every arm is replayed with so many seeds: where contexts land first is luck.
const SEEDS: u64 = 5;

/// A file of published measurements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What was measured.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Under which terms.
    pub licence: String,
    /// On what.
    pub hardware: String,
    /// With what, and what is not known of it.
    pub engine: String,
    scenario: Node,
    workload: Load,
    columns: Vec<Column>,
    arms: Vec<Arm>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    shared_prefix: SharedPrefix,
    /// Rates in requests per second, each for so many seconds.
    stages: Vec<[f64; 2]>,
    /// Stages, from the first, that fill caches and are not measured.
    warmup: usize,
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

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arm {
    name: String,
    set: Node,
    /// The rate of a stage, or nothing for all of them, and what was measured there.
    points: Vec<Vec<Node>>,
}

/// What is measured, as inference-perf does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// Output tokens, over the time from the first request to the last answer.
    OutputTokensPerS,
    /// Requests, likewise.
    RequestsPerS,
    /// Time to first token.
    TtftMeanS,
    /// Its median.
    TtftP50S,
    /// Its 90th percentile.
    TtftP90S,
    /// Mean gap between the tokens of a request.
    ItlMeanMs,
}

impl Column {
    /// What it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Column::OutputTokensPerS => "output tokens/s",
            Column::RequestsPerS => "requests/s",
            Column::TtftMeanS => "TTFT mean, s",
            Column::TtftP50S => "TTFT p50, s",
            Column::TtftP90S => "TTFT p90, s",
            Column::ItlMeanMs => "ITL mean, ms",
        }
    }
}

/// A published number and what the simulator has in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The rate of its stage; `None`: of all.
    pub rate: Option<f64>,
    /// Which number.
    pub column: Column,
    /// As it was published.
    pub published: f64,
    /// As it is predicted: the median over seeds.
    pub predicted: f64,
    /// The lowest of them.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Point {
    /// How far the prediction is off, as a share of what was published.
    pub fn error(&self) -> f64 {
        self.predicted / self.published - 1.0
    }
}

/// An arm, replayed.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Its name.
    pub name: String,
    /// Its points, in the order of the file.
    pub points: Vec<Point>,
}

/// Reads the published measurements in `path`.
///
/// # Errors
/// If it is no such file.
pub fn read(path: &Path) -> Result<Published, Problems> {
    let tree = yaml::read_file(path)?;
    let published: Published = yaml::decode(&tree)?;
    let width = 1 + published.columns.len();
    let wrong = |arm: &&Arm| arm.points.iter().any(|point| point.len() != width);
    if let Some(arm) = published.arms.iter().find(wrong) {
        let message =
            format!("`{}` has a point that is not a rate and {} numbers", arm.name, width - 1);
        return Err(tree.problem("arms", message));
    }
    Ok(published)
}

/// The number that is written there, if one is.
fn number(node: &Node) -> Option<f64> {
    match &node.kind {
        Kind::Scalar { text, .. } => yaml::float(text),
        _ => None,
    }
}

impl Published {
    /// Replays every arm.
    ///
    /// # Errors
    /// If a scenario is illegal, or a stage of a point does not exist.
    pub fn replay(&self) -> Result<Vec<Replayed>, RunFailure> {
        self.arms.iter().map(|arm| self.replay_arm(arm)).collect()
    }

    fn replay_arm(&self, arm: &Arm) -> Result<Replayed, RunFailure> {
        let plan = self.plan(arm)?;
        let runs = (0..SEEDS).map(|seed| self.stages(&plan, plan.seed + seed));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let mut points = Vec::new();
        for row in &arm.points {
            let row: Vec<Option<f64>> = row.iter().map(number).collect();
            let chosen = self.chosen(arm, row[0])?;
            let given = self.columns.iter().zip(&row[1..]);
            points.extend(given.filter_map(|(&column, published)| {
                let found = runs.iter().map(|stages| column.of(&stages[chosen.clone()]));
                let mut found: Vec<f64> = found.collect();
                found.sort_by(f64::total_cmp);
                let (low, high) = (found[0], found[found.len() - 1]);
                let predicted = found[found.len() / 2];
                Some(Point { rate: row[0], column, published: (*published)?, predicted, low, high })
            }));
        }
        Ok(Replayed { name: arm.name.clone(), points })
    }

    /// The stage of that rate, or all that are measured.
    fn chosen(&self, arm: &Arm, rate: Option<f64>) -> Result<Range<usize>, Problem> {
        let Load { stages, warmup, .. } = &self.workload;
        let Some(rate) = rate else { return Ok(*warmup..stages.len()) };
        let is = |at: &usize| (stages[*at][0] - rate).abs() < 1e-9;
        let Some(at) = (*warmup..stages.len()).find(is) else {
            let message = format!("`{}`: no stage has a rate of {rate}", arm.name);
            return Err(Problem::of_file(&self.title, message));
        };
        Ok(at..at + 1)
    }

    fn plan(&self, arm: &Arm) -> Result<Plan, RunFailure> {
        let mut tree = self.scenario.clone();
        if let Kind::Map(fields) = &arm.set.kind {
            for (name, _, value) in fields {
                match name.as_str() {
                    strategy::FIELD => strategy::choose(&mut tree, value.clone()),
                    name => tree.set(&[name], value.clone()),
                }
            }
        }
        Draft::from_tree(tree).without_workload().plan()
    }

    /// What each stage comes to with that seed.
    fn stages(&self, plan: &Plan, seed: u64) -> Result<Vec<Stage>, RunFailure> {
        let (requests, stages) = self.workload.requests(seed);
        let mut source = Client { requests: requests.into_iter() };
        let mut heard = Heard { stages, answers: vec![Vec::new(); self.workload.stages.len()] };
        let config = plan.config(&Trial::new(seed));
        blis_sim::run(config, &mut source, &mut heard, &mut Unobserved)
            .map_err(|error| Problem::of_file(&self.title, error.to_string()))?;
        Ok(heard.answers.iter().map(|answers| Stage::of(answers)).collect())
    }
}

impl Load {
    /// All requests, and the stage of each.
    fn requests(&self, seed: u64) -> (Vec<Request>, Vec<usize>) {
        let SharedPrefix { num_groups, num_prompts_per_group, .. } = self.shared_prefix;
        let mut order: Vec<u64> = (0..num_groups.get() * num_prompts_per_group.get()).collect();
        let mut dice = Dice::new(seed, Purpose::Permutation, 0);
        for at in (1..order.len()).rev() {
            order.swap(at, dice.below(at + 1));
        }
        let (mut requests, mut stages, mut start) = (Vec::new(), Vec::new(), 0.0);
        for (stage, &[rate, lasting]) in self.stages.iter().enumerate() {
            let mut dice = Dice::new(seed, Purpose::Arrival, stage as u64);
            let mut at = dice.exponential() / rate;
            while at < lasting {
                let prompt = order[requests.len() % order.len()];
                requests.push(self.request(requests.len() as u64, prompt, start + at));
                stages.push(stage);
                at += dice.exponential() / rate;
            }
            start += lasting + GAP;
        }
        (requests, stages)
    }

    fn request(&self, number: u64, prompt: u64, at: f64) -> Request {
        let data = self.shared_prefix;
        let (groups, each) = (data.num_groups.get(), data.num_prompts_per_group.get());
        let segment = |stream, tokens| Segment { stream: StreamId(stream), tokens };
        let segments = [
            segment(prompt / each, data.system_prompt_len.get_u32()),
            segment(groups + prompt, data.question_len.get_u32()),
        ];
        Request {
            id: RequestId(number),
            name: None,
            arrival: Time::from_nanos(count(at * 1e9)),
            content: Content::new(segments, StreamId(groups + groups * each + number)),
            output_tokens: data.output_len.get_u32(),
            class: SloClass::Standard,
            tenant: TenantId(0),
            session: None,
            round: 0,
            attempt: 0,
            deadline: None,
            patience: None,
        }
    }
}

struct Client {
    requests: std::vec::IntoIter<Request>,
}

impl Source for Client {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        Ok(self.requests.next())
    }

    fn expected(&self) -> Option<u64> {
        Some(self.requests.len() as u64)
    }

    fn tenant_name(&self, _: TenantId) -> String {
        "all".to_owned()
    }
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
struct Answer {
    arrival: Time,
    ttft: Span,
    e2e: Span,
    tokens: u32,
}

struct Heard {
    stages: Vec<usize>,
    answers: Vec<Vec<Answer>>,
}

impl Listener for Heard {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let Fact::Closed { status: Status::Finished, record } = fact else { return };
        let (Some(ttft), Some(e2e)) = (record.ttft, record.e2e) else { return };
        let stage = self.stages[usize::try_from(record.request.0).unwrap_or(usize::MAX)];
        let (arrival, tokens) = (record.arrival, record.output_tokens);
        self.answers[stage].push(Answer { arrival, ttft, e2e, tokens });
    }

    fn wants_details(&self) -> bool {
        false
    }
}

/// What a stage came to.
#[derive(Clone, Debug)]
struct Stage {
    lasts_s: f64,
    tokens: f64,
    /// In s, one a request.
    ttft: Vec<f64>,
    /// In ms, likewise.
    itl: Vec<f64>,
}

impl Stage {
    fn of(answers: &[Answer]) -> Stage {
        let first = answers.iter().map(|one| one.arrival).min().unwrap_or(Time::ZERO);
        let last = answers.iter().map(|one| one.arrival + one.e2e).max().unwrap_or(Time::ZERO);
        let seconds = |span: Span| span.as_millis_f64() / 1e3;
        let gap = |one: &Answer| {
            let gaps = f64::from(one.tokens.saturating_sub(1).max(1));
            (one.e2e.as_millis_f64() - one.ttft.as_millis_f64()) / gaps
        };
        Stage {
            lasts_s: seconds(last.since(first)),
            tokens: answers.iter().map(|one| f64::from(one.tokens)).sum(),
            ttft: answers.iter().map(|one| seconds(one.ttft)).collect(),
            itl: answers.iter().map(gap).collect(),
        }
    }
}

impl Column {
    /// The number over these stages.
    fn of(self, stages: &[Stage]) -> f64 {
        let sum = |of: fn(&Stage) -> f64| stages.iter().map(of).sum::<f64>();
        let all = |of: fn(&Stage) -> &Vec<f64>| {
            let mut all: Vec<f64> = stages.iter().flat_map(of).copied().collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let mean = |all: &[f64]| all.iter().sum::<f64>() / float(all.len() as u64);
        let at = |all: &[f64], percent: usize| all[(all.len() - 1) * percent / 100];
        let lasts = sum(|stage| stage.lasts_s);
        match self {
            Column::OutputTokensPerS => sum(|stage| stage.tokens) / lasts,
            Column::RequestsPerS => sum(|stage| float(stage.ttft.len() as u64)) / lasts,
            Column::TtftMeanS => mean(&all(|stage| &stage.ttft)),
            Column::TtftP50S => at(&all(|stage| &stage.ttft), 50),
            Column::TtftP90S => at(&all(|stage| &stage.ttft), 90),
            Column::ItlMeanMs => mean(&all(|stage| &stage.itl)),
        }
    }
}
