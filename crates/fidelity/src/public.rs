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
//!
//! Of a benchmark with users who each wait for their answer, `workload` has `users`, and a point
//! begins with `tp`, users, prompt and output tokens. Of single requests, it has `requests`. Of
//! runs in this project it has `measured`, their folder, where their numbers are read as well.

mod check;
mod load;

use crate::measured::{Fared, first_runs, read_all};
use crate::replay::{Server, plan, replay};
use blis_core::math::float;
use blis_core::{Span, Time, random};
use blis_metrics::{Fact, Listener, Status};
use blis_scenario::Trial;
use blis_scenario::problem::Problem;
use blis_scenario::run::RunFailure;
use blis_scenario::scenario::{Draft, Plan};
use blis_scenario::yaml::{self, Kind, Node};
use blis_scenario::{Problems, strategy};
use blis_sim::Unobserved;
use load::{Load, Sent};
use serde::Deserialize;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where contexts land first is luck, so arms are replayed with so many seeds.
const fn seeds() -> u64 {
    5
}

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
    /// What its models are: `dense` or `experts`.
    pub models: String,
    /// How many seeds an arm is replayed with.
    #[serde(default = "seeds")]
    pub seeds: u64,
    scenario: Node,
    workload: Load,
    columns: Vec<Column>,
    #[serde(default)]
    arms: Vec<Arm>,
    /// Where `measured` is.
    #[serde(skip)]
    folder: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arm {
    name: String,
    set: Node,
    /// The token budget of a step, as a multiple of the prompt's length, if it was set so.
    budget_per_prompt: Option<f64>,
    /// Requests of this arm, where those of arms differ: s, prompt and output tokens.
    #[serde(default)]
    requests: Vec<[f64; 3]>,
    /// Where it was measured (the rate of a stage, or nothing for all of them) and what.
    points: Vec<Vec<Node>>,
}

/// What is measured, as inference-perf and `vllm bench serve` do.
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
    /// Time to the last token.
    E2eMeanS,
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
            Column::E2eMeanS => "E2E mean, s",
        }
    }

    /// Whether it is a time to first token, other than of the slowest.
    pub const fn is_ttft(self) -> bool {
        matches!(self, Column::TtftMeanS | Column::TtftP50S)
    }
}

/// A published number and what the simulator has in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Where it was measured: at which rate, or with how many users of what.
    pub at: String,
    /// Whether parameters may be fitted to it. Which may be follows from its name.
    pub training: bool,
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
    /// The GPU, what the model is, and where steps' times are from.
    pub kind: [String; 3],
    /// Its points, in the order of the file.
    pub points: Vec<Point>,
}

/// Reads the published measurements in `path`.
///
/// # Errors
/// If it is no such file.
pub fn read(path: &Path) -> Result<Published, Problems> {
    let tree = yaml::read_file(path)?;
    let mut published: Published = yaml::decode(&tree)?;
    let beside = |name: &String| path.parent().unwrap_or(Path::new(".")).join(name);
    published.folder = published.workload.measured.as_ref().map(beside);
    check::check(&published, &tree)?;
    Ok(published)
}

/// The number that is written there, if one is.
fn number(node: &Node) -> Option<f64> {
    yaml::float(node.text()?)
}

impl Published {
    /// The same with every so many-th point of an arm, from its first, to be quick.
    #[must_use]
    pub fn sampled(mut self, every: usize) -> Published {
        for arm in &mut self.arms {
            arm.points = arm.points.iter().step_by(every).cloned().collect();
        }
        self
    }

    /// Replays every arm.
    ///
    /// # Errors
    /// If a scenario is illegal, or a stage of a point does not exist.
    pub fn replay(&self) -> Result<Vec<Replayed>, RunFailure> {
        if let Some(folder) = &self.folder {
            return Ok(vec![self.replay_runs(folder)?]);
        }
        self.arms.iter().map(|arm| self.replay_arm(arm)).collect()
    }

    /// Replays the measured runs of a folder on the machine of the scenario: an arm, whose points
    /// are at the runs.
    fn replay_runs(&self, folder: &PathBuf) -> Result<Replayed, RunFailure> {
        const NAME: &str = "all runs";
        let (server, measured) = (Server::default(), read_all(std::slice::from_ref(folder), &[])?);
        let (mut points, mut kind) = (Vec::new(), None);
        for run in first_runs(&measured) {
            let mut tree = self.scenario.clone();
            if let Some(largest) = server.largest_graph(run) {
                let largest = Node::from_flag("measured", &largest.to_string());
                tree.set(&["engine", "max_cudagraph_capture_size"], largest);
            }
            let machine = Draft::from_tree(tree).without_workload().plan()?;
            let replayed = replay(&plan(run, &server)?, machine.latency.clone())?;
            let measured = [Stage::of_fared(&run.fared())];
            let row = self.columns.iter().map(|column| column.of(&measured));
            let row: Vec<Option<f64>> = row.collect();
            let runs = [vec![Stage::of_fared(&replayed)]];
            points.extend(self.points(NAME, &run.name, &row, &runs, 0..1)?);
            kind = kind.or(Some(self.kind(&machine)));
        }
        Ok(Replayed { name: NAME.to_owned(), kind: kind.unwrap_or_default(), points })
    }

    fn replay_arm(&self, arm: &Arm) -> Result<Replayed, RunFailure> {
        let rows = arm.points.iter().map(|row| row.iter().map(number).collect());
        let rows: Vec<Vec<Option<f64>>> = rows.collect();
        let keys = self.workload.keys();
        let (mut points, mut kind) = (Vec::new(), None);
        if self.workload.users.is_some() {
            for row in &rows {
                let key = [0, 1, 2, 3].map(|at| row[at].unwrap_or_default());
                let plan = self.plan(arm, Some(key))?;
                let runs = self.runs(&plan, |seed| self.workload.closed(key, seed))?;
                let [tp, users, input, output] = key;
                let at = format!("TP {tp}, {users} users, {input} + {output}");
                self.answered(arm, &at, &runs, 0..1)?;
                points.extend(self.points(&arm.name, &at, &row[keys..], &runs, 0..1)?);
                kind = kind.or(Some(self.kind(&plan)));
            }
        } else {
            let plan = self.plan(arm, None)?;
            let rates: Vec<f64> = rows.iter().filter_map(|row| row[0]).collect();
            let load = self.workload.of_arm(&arm.requests, &rates);
            let runs = self.runs(&plan, |seed| load.sent(seed))?;
            for row in &rows {
                let chosen = load.chosen(&arm.name, row[0])?;
                let at = row[0].map_or("all".to_owned(), |rate| rate.to_string());
                self.answered(arm, &at, &runs, chosen.clone())?;
                points.extend(self.points(&arm.name, &at, &row[keys..], &runs, chosen)?);
            }
            kind = Some(self.kind(&plan));
        }
        Ok(Replayed { name: arm.name.clone(), kind: kind.unwrap_or_default(), points })
    }

    /// Refuses stages of which no request was answered.
    fn answered(
        &self,
        arm: &Arm,
        at: &str,
        runs: &[Vec<Stage>],
        chosen: Range<usize>,
    ) -> Result<(), Problem> {
        let empty = |stages: &Vec<Stage>| {
            stages.get(chosen.clone()).is_none_or(|some| some.iter().all(|it| it.ttft.is_empty()))
        };
        if runs.iter().any(empty) {
            let message = format!("`{}` at {at}: no request was answered", arm.name);
            return Err(Problem::of_file(&self.title, message));
        }
        Ok(())
    }

    fn kind(&self, plan: &Plan) -> [String; 3] {
        let gpu = plan.hardware.clone().unwrap_or_default();
        let times = self.scenario.field("latency").and_then(|node| node.field("model"));
        let times = times.map(Node::to_json).unwrap_or_default();
        [gpu, self.models.clone(), times.trim_matches('"').to_owned()]
    }

    /// The numbers of a row beside those of the same stages in all runs.
    ///
    /// # Errors
    /// If one that was published has no sample in any of them.
    fn points(
        &self,
        arm: &str,
        at: &str,
        row: &[Option<f64>],
        runs: &[Vec<Stage>],
        chosen: Range<usize>,
    ) -> Result<Vec<Point>, Problem> {
        let name = format!("{arm} {at}");
        let training = name.bytes().fold(0, |sum, byte| random::mix(sum, u64::from(byte))) % 2 == 0;
        let given = self.columns.iter().zip(row);
        let given = given.filter_map(|(&column, published)| Some((column, (*published)?)));
        let point = |(column, published): (Column, f64)| {
            let found = runs.iter().filter_map(|stages| column.of(&stages[chosen.clone()]));
            let mut found: Vec<f64> = found.collect();
            found.sort_by(f64::total_cmp);
            let (Some(&low), Some(&high)) = (found.first(), found.last()) else {
                let message = "no answer has two tokens; write ~ for its";
                let message = format!("`{arm}` at {at}: {message} {}", column.name());
                return Err(Problem::of_file(&self.title, message));
            };
            let (at, predicted) = (at.to_owned(), found[found.len() / 2]);
            Ok(Point { at, training, column, published, predicted, low, high })
        };
        given.map(point).collect()
    }

    /// The scenario of an arm; with users also of `tp`, users, prompt and output tokens.
    fn plan(&self, arm: &Arm, key: Option<[f64; 4]>) -> Result<Plan, RunFailure> {
        let mut tree = self.scenario.clone();
        if let Kind::Map(fields) = &arm.set.kind {
            for (name, _, value) in fields {
                match name.as_str() {
                    strategy::FIELD => strategy::choose(&mut tree, value.clone()),
                    name => tree.set(&[name], value.clone()),
                }
            }
        }
        if let Some([tp, users, input, _]) = key {
            let limited = tree.has("engine.max_num_running_reqs");
            let mut set = |path: &[&str], value: f64| {
                tree.set(path, Node::from_flag("points", &value.to_string()));
            };
            set(&["tp"], tp);
            if !limited {
                set(&["engine", "max_num_running_reqs"], users);
            }
            if let Some(times) = arm.budget_per_prompt {
                set(&["engine", "max_num_scheduled_tokens"], times * input);
            }
        }
        Draft::from_tree(tree).without_workload().plan()
    }

    /// What each stage comes to, with every seed.
    fn runs(&self, plan: &Plan, sent: impl Fn(u64) -> Sent) -> Result<Vec<Vec<Stage>>, RunFailure> {
        let run = |seed| {
            let Sent { mut client, stages } = sent(seed);
            let count = stages.iter().max().map_or(0, |last| last + 1);
            let mut heard = Heard { stages, answers: vec![Vec::new(); count] };
            blis_sim::run(plan.config(&Trial::new(seed)), &mut client, &mut heard, &mut Unobserved)
                .map_err(|error| Problem::of_file(&self.title, error.to_string()))?;
            Ok(heard.answers.iter().map(|answers| Stage::of(answers)).collect())
        };
        (0..self.seeds).map(|seed| run(plan.seed + seed)).collect()
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
    /// In s, likewise.
    e2e: Vec<f64>,
    /// In ms, one a request with at least two tokens.
    itl: Vec<f64>,
}

impl Stage {
    /// What requests of a measured run, or of its replay, come to, whenever they were sent.
    fn of_fared(fared: &[Fared]) -> Stage {
        let answer = |one: &Fared| Answer {
            arrival: Time::ZERO,
            ttft: Span::from_micros_f64(one.ttft_us),
            e2e: Span::from_micros_f64(one.e2e_us),
            tokens: one.output_tokens,
        };
        Stage::of(&fared.iter().map(answer).collect::<Vec<_>>())
    }

    fn of(answers: &[Answer]) -> Stage {
        let first = answers.iter().map(|one| one.arrival).min().unwrap_or(Time::ZERO);
        let last = answers.iter().map(|one| one.arrival + one.e2e).max().unwrap_or(Time::ZERO);
        let seconds = |span: Span| span.as_millis_f64() / 1e3;
        let gap = |one: &Answer| {
            let lasts = one.e2e.as_millis_f64() - one.ttft.as_millis_f64();
            (one.tokens > 1).then(|| lasts / f64::from(one.tokens - 1))
        };
        Stage {
            lasts_s: seconds(last.since(first)),
            tokens: answers.iter().map(|one| f64::from(one.tokens)).sum(),
            ttft: answers.iter().map(|one| seconds(one.ttft)).collect(),
            e2e: answers.iter().map(|one| seconds(one.e2e)).collect(),
            itl: answers.iter().filter_map(gap).collect(),
        }
    }
}

impl Column {
    /// The number over these stages; `None` without a sample.
    fn of(self, stages: &[Stage]) -> Option<f64> {
        let sum = |of: fn(&Stage) -> f64| stages.iter().map(of).sum::<f64>();
        let all = |of: fn(&Stage) -> &Vec<f64>| {
            let mut all: Vec<f64> = stages.iter().flat_map(of).copied().collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let mean = |all: &[f64]| {
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / float(all.len() as u64))
        };
        let at = |all: &[f64], percent: usize| Some(all[all.len().checked_sub(1)? * percent / 100]);
        let lasts = sum(|stage| stage.lasts_s);
        match self {
            Column::OutputTokensPerS => Some(sum(|stage| stage.tokens) / lasts),
            Column::RequestsPerS => Some(sum(|stage| float(stage.ttft.len() as u64)) / lasts),
            Column::TtftMeanS => mean(&all(|stage| &stage.ttft)),
            Column::TtftP50S => at(&all(|stage| &stage.ttft), 50),
            Column::TtftP90S => at(&all(|stage| &stage.ttft), 90),
            Column::ItlMeanMs => mean(&all(|stage| &stage.itl)),
            Column::E2eMeanS => mean(&all(|stage| &stage.e2e)),
        }
    }
}
