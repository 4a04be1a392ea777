//! Null effects: changes to a scenario that must not change anything, to the byte.
//!
//! One table. A row names a base scenario and a change; both runs must state the same facts at the
//! same times, give the same report and end the same way. Control rows must differ: they show that
//! the base is one in which such a change could have mattered, and that the comparison can fail.
//! A new feature adds its row "off is absent".

use crate::harness::{assert_clean, plan};
use blis_core::{RequestId, Span, Time};
use blis_lab::{Draft, Plan, RunResult, Trial, replicate, run_scenario};
use blis_metrics::{Fact, Listener, Report, Status};
use blis_sim::{Outcome, Pace, Unobserved};
use std::collections::BTreeMap;

/// A row of the table.
struct Row {
    name: &'static str,
    base: Base,
    change: Change,
    verdict: Verdict,
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Four instances with few places and a small token budget, weighted routing, two classes that
    /// share a system prompt.
    Cluster,
    /// One such instance, routed to by load and memory.
    Single,
    /// As the cluster, but one class.
    OneClass,
    /// As the cluster, but no two prompts have anything in common, and routing by load and memory.
    Unshared,
    /// Three instances whose limits are out of reach.
    Roomy,
    /// Two instances short of KV blocks: requests are preempted and cached blocks evicted.
    Tight,
    /// Prompts of 100 tokens of their own; routing by prefix and load.
    Own,
    /// The same, but the first 10 tokens of all prompts are equal: less than a block.
    ShortPrefix,
    /// A scenario that says little.
    Brief,
    /// The same with every default written out.
    WrittenOut,
    /// The same with its keys in another order.
    Reordered,
}

/// What is done to it.
#[derive(Clone, Copy)]
enum Change {
    /// Nothing.
    Again,
    /// Fields set as flags do.
    Set(&'static [(&'static str, &'static str)]),
    /// Another base instead.
    To(Base),
    /// The same fields, but all from flags.
    Flags(&'static [(&'static str, &'static str)]),
    Stepwise,
    Unaudited,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The runs must be equal in everything.
    Same,
    /// As `Same`, except for how many cached tokens a router expected: some have no opinion.
    SameButExpectations,
    /// The runs must differ.
    Differs,
}

use Base::{Brief, Cluster, OneClass, Own, Reordered, Roomy, ShortPrefix, Single, Tight, Unshared};
use Change::{Again, Flags, Set, Stepwise, To, Unaudited};
use Verdict::{Differs, Same, SameButExpectations};

const fn row(name: &'static str, base: Base, change: Change, verdict: Verdict) -> Row {
    Row { name, base, change, verdict }
}

const ROWS: &[Row] = &[
    row("twice", Cluster, Again, Same),
    row("twice, short of memory", Tight, Again, Same),
    row("stepwise is fast-forward", Cluster, Stepwise, Same),
    row("stepwise is fast-forward, with room", Roomy, Stepwise, Same),
    row("stepwise is fast-forward, short of memory", Tight, Stepwise, Same),
    row("unaudited is audited", Cluster, Unaudited, Same),
    row("unaudited is audited, short of memory", Tight, Unaudited, Same),
    // Routing.
    row("one instance: round-robin", Single, Set(&[("routing", "round-robin")]), Same),
    row("one instance: random", Single, Set(&[("routing", "random")]), Same),
    row("one instance: least-loaded", Single, Set(&[("routing", "least-loaded")]), Same),
    row("one instance: always-busiest", Single, Set(&[("routing", "always-busiest")]), Same),
    row("one instance: prefix", Single, Set(&[("routing.scorers", "pa:1")]), SameButExpectations),
    row("one instance: load", Single, Set(&[("routing.scorers", "lb:1")]), Same),
    row("weights x 2", Cluster, Set(&[("routing.scorers", "pa:6,qd:4,kv:4")]), Same),
    row("weights x 3", Cluster, Set(&[("routing.scorers", "pa:9,qd:6,kv:6")]), Same),
    row("weights x 0.1", Cluster, Set(&[("routing.scorers", "pa:0.3,qd:0.2,kv:0.2")]), Same),
    row("scorers permuted", Cluster, Set(&[("routing.scorers", "kv:2,pa:3,qd:2")]), Same),
    row("a weight of 0", Cluster, Set(&[("routing.scorers", "pa:3,qd:2,kv:2,lb:0")]), Same),
    row("memory for every block", Roomy, Set(&[("routing.lru_capacity", "auto")]), Same),
    row(
        "a cache scorer without shared prefixes",
        Unshared,
        Set(&[("routing.scorers", "pa:2,qd:3,kv:3")]),
        SameButExpectations,
    ),
    row("a prefix shorter than a block", Own, To(ShortPrefix), Same),
    row(
        "stale signals of one instance",
        Single,
        Set(&[("signals.snapshot_refresh_interval_us", "700000")]),
        Same,
    ),
    // The engine.
    row("more KV than the peak", Roomy, Set(&[("engine.total_kv_blocks", "90000")]), Same),
    row("a sequence cap above peak", Roomy, Set(&[("engine.max_num_running_reqs", "999")]), Same),
    row("a budget above peak", Roomy, Set(&[("engine.max_num_scheduled_tokens", "99999")]), Same),
    row(
        "a chunk threshold of the longest prompt",
        Roomy,
        Set(&[("engine.long_prefill_token_threshold", "528")]),
        Same,
    ),
    row("first chunk only", Roomy, Set(&[("engine.reserve_full_prompt", "false")]), Same),
    row("a watermark of 0", Tight, Set(&[("engine.watermark", "0.0")]), Same),
    // Order and admission.
    row(
        "priorities of one class",
        OneClass,
        Set(&[("scheduler", "priority-fcfs"), ("priority", "slo-class")]),
        Same,
    ),
    row("equal priorities", Cluster, Set(&[("scheduler", "priority-fcfs")]), Same),
    row("priorities that fcfs ignores", Cluster, Set(&[("priority", "slo-class")]), Same),
    row(
        "a bucket without limit",
        Cluster,
        Set(&[("admission", "token-bucket[capacity=1e9,refill-rate=1e9]")]),
        Same,
    ),
    row("a horizon past the end", Cluster, Set(&[("horizon_us", "3600000000")]), Same),
    row("a horizon past the end, short of memory", Tight, Set(&[("horizon_us", "3600000000")]), Same),
    row(
        "no delays at the gateway",
        Cluster,
        Set(&[("gateway.admission_latency_us", "0"), ("gateway.routing_latency_us", "0")]),
        Same,
    ),
    // Spelling.
    row("defaults written out", Brief, To(Base::WrittenOut), Same),
    row("keys in another order", Brief, To(Reordered), Same),
    row("flags", Brief, Flags(BRIEF_AS_FLAGS), Same),
    row("a name", Cluster, Set(&[("name", "x"), ("description", "y")]), Same),
    // Controls.
    row("another seed", Cluster, Set(&[("seed", "43")]), Differs),
    row("another router", Cluster, Set(&[("routing", "round-robin")]), Differs),
    row("other weights", Cluster, Set(&[("routing.scorers", "pa:3,qd:2,kv:9")]), Differs),
    row("a scorer more", Cluster, Set(&[("routing.scorers", "pa:3,qd:2,kv:2,lb:9")]), Differs),
    row("a cache scorer", Cluster, Set(&[("routing.scorers", "qd:3,kv:3")]), Differs),
    row("a router's short memory", Roomy, Set(&[("routing.lru_capacity", "4")]), Differs),
    row(
        "stale signals of four instances",
        Cluster,
        Set(&[("signals.snapshot_refresh_interval_us", "700000")]),
        Differs,
    ),
    row("less KV than the peak", Roomy, Set(&[("engine.total_kv_blocks", "300")]), Differs),
    row("a sequence cap below peak", Roomy, Set(&[("engine.max_num_running_reqs", "4")]), Differs),
    row("a budget below peak", Roomy, Set(&[("engine.max_num_scheduled_tokens", "400")]), Differs),
    row(
        "a chunk threshold below the longest prompt",
        Roomy,
        Set(&[("engine.long_prefill_token_threshold", "64")]),
        Differs,
    ),
    row("first chunk only, no room", Tight, Set(&[("engine.reserve_full_prompt", "false")]), Differs),
    row("a watermark", Tight, Set(&[("engine.watermark", "0.2")]), Differs),
    row(
        "priorities of two classes",
        Cluster,
        Set(&[("scheduler", "priority-fcfs"), ("priority", "slo-class")]),
        Differs,
    ),
    row("a bucket", Cluster, Set(&[("admission", "token-bucket[capacity=2000]")]), Differs),
    row("a horizon before the end", Cluster, Set(&[("horizon_us", "2000000")]), Differs),
    row("delays", Cluster, Set(&[("gateway.routing_latency_us", "1")]), Differs),
];

const BRIEF_AS_FLAGS: &[(&str, &str)] = &[
    ("cluster.instances", "2"),
    ("workload.distribution.rate", "60"),
    ("workload.distribution.num_requests", "150"),
    ("workload.distribution.prompt_tokens.mean", "300"),
    ("workload.distribution.output_tokens.max", "60"),
];

const BRIEF: &str = "
cluster: {instances: 2}
workload:
  distribution:
    rate: 60
    num_requests: 150
    prompt_tokens: {mean: 300}
    output_tokens: {max: 60}
";

const REORDERED: &str = "
workload:
  distribution:
    output_tokens: {max: 60}
    prompt_tokens: {mean: 300}
    num_requests: 150
    rate: 60
cluster: {instances: 2}
";

const WRITTEN_OUT: &str = "
seed: 42
model: meta-llama/llama-3.1-8b-instruct
hardware: H100
tp: 2
latency: {model: coefficients}
cluster: {instances: 2}
engine:
  preset: seeds
  total_kv_blocks: 132139
  block_size: 16
  max_num_running_reqs: 256
  max_num_scheduled_tokens: 2048
  long_prefill_token_threshold: 0
  reserve_full_prompt: true
  watermark: 0
gateway: {admission_latency_us: 0, routing_latency_us: 0}
signals: {snapshot_refresh_interval_us: 0}
admission: always-admit
routing: round-robin
scheduler: fcfs
priority: constant
preempt: tail
evict: lru
workload:
  distribution:
    rate: 60
    num_requests: 150
    arrival: constant
    prompt_tokens: {mean: 300, stdev: 256, min: 2, max: 7000}
    output_tokens: {mean: 512, stdev: 256, min: 2, max: 60}
    prefix_tokens: 0
";

/// What all clients have in common; after the prefix, prompts have at most 400 tokens.
const CLIENT: &str = "rate_fraction: 1, arrival: {process: gamma, cv: 2}, \
                      output_distribution: {type: geometric, params: {mean: 30}}";
const VARIED: &str = "input_distribution: {type: gaussian, \
                      params: {mean: 150, std_dev: 90, min: 5, max: 400}}";

impl Base {
    fn text(self) -> String {
        let capped =
            "{total_kv_blocks: 500, max_num_running_reqs: 8, max_num_scheduled_tokens: 256}";
        let weighted = |scorers: &str| format!("{{policy: weighted, scorers: '{scorers}'}}");
        let strategy = weighted("pa:3,qd:2,kv:2");
        let shared = |class: &str| {
            let prefix = "prefix_group: system-prompt, prefix_length: 128";
            format!("- {{id: {class}, slo_class: {class}, {CLIENT}, {VARIED}, {prefix}}}")
        };
        let two = format!("{}\n      {}", shared("critical"), shared("batch"));
        let client = |rest: &str| format!("- {{id: one, {CLIENT}, {rest}}}");
        match self {
            Cluster => written(4, capped, &strategy, 160, &two),
            Single => written(1, capped, &weighted("qd:2,kv:2"), 40, &two),
            OneClass => written(4, capped, &strategy, 160, &shared("standard")),
            Unshared => written(4, capped, &weighted("qd:3,kv:3"), 160, &client(VARIED)),
            Roomy => {
                let engine = "{total_kv_blocks: 30000}";
                let routing = "{policy: weighted, scorers: 'pa:3,qd:2', lru_capacity: 20000}";
                written(3, engine, routing, 160, &two)
            }
            Tight => {
                let engine = "{total_kv_blocks: 64, max_num_scheduled_tokens: 256}";
                written(2, engine, &strategy, 50, &two)
            }
            Own => {
                let input = "input_distribution: {type: constant, params: {value: 100}}";
                written(4, capped, &weighted("pa:1,qd:1"), 160, &client(input))
            }
            ShortPrefix => {
                let input = "prefix_group: greeting, prefix_length: 10, \
                             input_distribution: {type: constant, params: {value: 90}}";
                written(4, capped, &weighted("pa:1,qd:1"), 160, &client(input))
            }
            Brief => BRIEF.to_owned(),
            Base::WrittenOut => WRITTEN_OUT.to_owned(),
            Reordered => REORDERED.to_owned(),
        }
    }

    /// The base is one in which something happens.
    fn guard(self, report: &Report) {
        let cluster = &report.cluster;
        assert!(cluster.completed > 100, "{self:?} completes {}", cluster.completed);
        let queue = report.decomposition.cluster.expect("there are first tokens").mean.queue;
        assert!(queue > 1.0, "{self:?} queues for {queue} ms");
        let shares = matches!(self, Cluster | Single | OneClass | Roomy | Tight);
        assert_eq!(report.kv.cached_tokens > 5_000, shares, "{self:?}: {:?}", report.kv);
        let (preempted, evicted) = (cluster.preemption_count, report.kv.evicted_blocks);
        assert_eq!(preempted > 10 && evicted > 100, self == Tight, "{self:?}: {preempted}, {evicted}");
    }
}

fn written(instances: u32, engine: &str, routing: &str, rate: u32, clients: &str) -> String {
    format!(
        "cluster: {{instances: {instances}}}\nengine: {engine}\nrouting: {routing}\n\
         workload:\n  mix:\n    aggregate_rate: {rate}\n    num_requests: 300\n    \
         clients:\n      {clients}\n"
    )
}

/// Everything that a run tells.
struct Told {
    /// Facts, a run of steps step by step, by time and then by who states them.
    facts: Vec<(Time, u32, String)>,
    /// Blocks in use at the end of steps. A run of steps tells only its last.
    blocks: BTreeMap<(Time, u32), u32>,
    report: Report,
    outcome: Outcome,
}

fn told(plan: &Plan, pace: Pace, audit: bool, blind: bool) -> Told {
    let mut scribe = Scribe {
        facts: Vec::new(),
        blocks: BTreeMap::new(),
        steps: (0, 1, Span::ZERO),
        blind,
    };
    let trial = Trial { seed: plan.seed, pace, audit };
    let result = run_scenario(plan, trial, &mut [&mut scribe], None, &mut Unobserved)
        .unwrap_or_else(|failure| panic!("{failure}"));
    if audit {
        assert_clean(&result, plan);
    }
    let RunResult { mut report, outcome, .. } = result;
    if blind {
        (report.kv.phantom_hit_rate, report.kv.missed_hit_rate) = (None, None);
    }
    scribe.facts.sort_by_key(|&(at, lane, _)| (at, lane));
    Told { facts: scribe.facts, blocks: scribe.blocks, report, outcome }
}

/// Writes facts down.
struct Scribe {
    facts: Vec<(Time, u32, String)>,
    blocks: BTreeMap<(Time, u32), u32>,
    /// Who stated the last run of steps, how many and how long: its tokens come right after it.
    steps: (u32, u64, Span),
    /// Whether what routers expect is left out.
    blind: bool,
}

impl Listener for Scribe {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let mut fact = fact.clone();
        let lane = lane(&fact);
        match &mut fact {
            Fact::Routed { expected_cached_tokens, .. } if self.blind => {
                *expected_cached_tokens = None;
            }
            Fact::Closed { record, .. } if self.blind => record.expected_cached_tokens = None,
            _ => {}
        }
        if let Fact::Steps { count, duration, blocks_in_use, .. } = &mut fact {
            self.steps = (lane, *count, *duration);
            self.blocks.insert((at, lane), std::mem::take(blocks_in_use));
        } else if !matches!(fact, Fact::Tokens { .. }) || self.steps.0 != lane {
            self.steps = (lane, 1, Span::ZERO);
        }
        let (_, count, duration) = self.steps;
        if let Fact::Steps { count: n, .. } | Fact::Tokens { count: n, .. } = &mut fact {
            *n /= count;
        }
        let text = format!("{fact:?}");
        let ends = (0..count).rev().map(|back| at - duration * back);
        self.facts.extend(ends.map(|at| (at, lane, text.clone())));
    }
}

/// 0 for the gateway, else the number of the instance: each tells in order of time.
fn lane(fact: &Fact<'_>) -> u32 {
    match fact {
        Fact::Closed { status: Status::Finished | Status::Running | Status::Queued, record } => {
            record.instance.expect("it was routed").0 + 1
        }
        Fact::Arrived { .. }
        | Fact::Admitted { .. }
        | Fact::Routed { .. }
        | Fact::Closed { .. } => 0,
        Fact::Enqueued { instance, .. }
        | Fact::Scheduled { instance, .. }
        | Fact::Preempted { instance, .. }
        | Fact::Evicted { instance, .. }
        | Fact::Steps { instance, .. }
        | Fact::Tokens { instance, .. }
        | Fact::FirstToken { instance, .. } => instance.0 + 1,
    }
}

impl Row {
    /// What the changed scenario tells.
    fn changed(&self) -> Told {
        let blind = self.verdict == SameButExpectations;
        let base = self.base.text();
        let set = |text: &str, fields: &[(&str, &str)]| {
            let mut draft = Draft::from_text("base.yaml", text).expect("well-formed");
            for (path, value) in fields {
                draft.set("--flag", path, value);
            }
            let plan = draft.resolve().unwrap_or_else(|problem| panic!("{}: {problem}", self.name));
            told(&plan, Pace::FastForward, true, blind)
        };
        match self.change {
            Again => set(&base, &[]),
            Set(fields) => set(&base, fields),
            Flags(fields) => set("{}", fields),
            To(other) => set(&other.text(), &[]),
            Stepwise => told(&plan(&base), Pace::Stepwise, true, blind),
            Unaudited => told(&plan(&base), Pace::FastForward, false, blind),
        }
    }

    /// What is wrong, if anything is.
    fn judge(&self) -> Option<String> {
        let blind = self.verdict == SameButExpectations;
        let base = told(&plan(&self.base.text()), Pace::FastForward, true, blind);
        self.base.guard(&base.report);
        let changed = self.changed();
        let wrong = match (self.verdict, difference(&base, &changed)) {
            (Differs, Some(_)) | (Same | SameButExpectations, None) => return None,
            (Differs, None) => "nothing changed".to_owned(),
            (_, Some(difference)) => difference,
        };
        Some(format!("{}: {wrong}", self.name))
    }
}

/// Where two runs differ first, if they do.
fn difference(a: &Told, b: &Told) -> Option<String> {
    if let Some((a, b)) = a.facts.iter().zip(&b.facts).find(|(a, b)| a != b) {
        return Some(format!("the first fact that differs:\n  {a:?}\n  {b:?}"));
    }
    let differs = |(place, blocks): &(&(Time, u32), &u32)| {
        b.blocks.get(place).is_some_and(|other| other != *blocks)
    };
    if let Some((place, blocks)) = a.blocks.iter().find(differs) {
        return Some(format!("blocks at {place:?}: {blocks} and {}", b.blocks[place]));
    }
    let rest = |told: &Told| format!("{} facts, {:?}, {:?}", told.facts.len(), told.outcome, told.report);
    let (a, b) = (rest(a), rest(b));
    (a != b).then(|| format!("what the facts add up to:\n  {a}\n  {b}"))
}

#[test]
fn changes_that_mean_nothing_change_nothing_and_others_do() {
    let wrong: Vec<String> = ROWS.iter().filter_map(Row::judge).collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
    let controls = ROWS.iter().filter(|row| row.verdict == Differs).count();
    assert!(controls >= 3, "only {controls} controls");
}

/// Who was sent when, how long its prompt was and how many tokens it got.
#[derive(Default)]
struct Sent(Vec<(Time, RequestId, u32, u32)>);

impl Listener for Sent {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        if let Fact::Closed { status, record } = fact {
            assert_eq!(*status, Status::Finished, "all finish, so all tokens are known");
            let (prompt, output) = (record.input_tokens, record.output_tokens);
            self.0.push((record.arrival, record.request, prompt, output));
        }
    }
}

/// Common random numbers: strategies are compared on the same requests.
#[test]
fn arrivals_and_lengths_do_not_depend_on_anything_else() {
    let sent = |path: &str, value: &str| {
        let mut draft = Draft::from_text("base.yaml", &Cluster.text()).expect("well-formed");
        draft.set("--flag", path, value);
        let plan = draft.resolve().unwrap_or_else(|problem| panic!("{problem}"));
        let mut sent = Sent::default();
        crate::harness::run_audited(&plan, Pace::FastForward, &mut sent);
        sent.0.sort_unstable();
        sent.0
    };
    let base = sent("name", "base");
    assert_eq!(base.len(), 300);
    let changes = [
        ("routing", "round-robin"),
        ("routing", "random"),
        ("routing", "least-loaded"),
        ("routing", "always-busiest"),
        ("routing.scorers", "kv:1"),
        ("cluster.instances", "1"),
        ("cluster.instances", "3"),
        ("cluster.instances", "40"),
        ("engine.total_kv_blocks", "64"),
        ("engine.total_kv_blocks", "1000000"),
        ("engine.block_size", "7"),
        ("scheduler", "sjf"),
    ];
    for (path, value) in changes {
        assert_eq!(sent(path, value), base, "{path}: {value}");
    }
    assert_ne!(sent("seed", "43"), base);
}

/// Results do not depend on how many trials run at a time, nor on the order of trials.
#[test]
fn replications_are_the_same_with_any_number_of_workers() {
    for base in [Cluster, Tight] {
        let plan = plan(&base.text());
        let trial = |seed| Trial { seed, pace: Pace::FastForward, audit: true };
        let mut trials: Vec<Trial> = (1..=12).map(trial).collect();
        let results = |trials: &[Trial], jobs| {
            let results = replicate(&plan, trials, jobs, |_| Unobserved)
                .unwrap_or_else(|failure| panic!("{failure}"));
            results.iter().for_each(|result| assert_clean(result, &plan));
            let texts: Vec<String> = results.iter().map(|result| format!("{result:?}")).collect();
            texts
        };
        let alone = results(&trials, 1);
        assert_ne!(alone[0], alone[1], "seeds matter");
        for jobs in [2, 4] {
            assert_eq!(results(&trials, jobs), alone, "{base:?} with {jobs} jobs");
        }
        trials.reverse();
        let mut backwards = results(&trials, 2);
        backwards.reverse();
        assert_eq!(backwards, alone, "{base:?} in reverse order");
    }
}
