//! What must hold in every world: the audit finds nothing, runs of steps taken at once are the
//! steps one by one, and the recorded trace gives the same run again.

use super::world::BESIDE;
use blis_core::{SessionId, TenantId, Time};
use blis_metrics::{Audit, Fact, Fanout, Listener, RunEnd, Stage, Status, Transcript};
use blis_policy::Cluster;
use blis_scenario::{Draft, Names, Plan, Row, RunFailure, Trial, run_scenario};
use blis_sim::{End, Observer, Outcome, Pace, Policies, Progress};
use blis_workload::write_request;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A run that states more facts than this counts as endless.
const ENDLESS: u64 = 4_000_000;

/// How a run ends whose requests get no further.
const FOR_EVER: &str = "preempt each other for ever";

/// What can happen in a world, for the table of features.
pub(super) const EVENTS: [&str; 20] = [
    "preempted before its last token",
    "preemption",
    "eviction",
    "offloading",
    "reload beside the steps",
    "reload before a step",
    "stall",
    "prefix hit",
    "scheduled ahead",
    "dropped from a batch",
    "rejection",
    "unservable request",
    "gave up at the gateway",
    "gave up waiting",
    "gave up loading",
    "gave up running",
    "reload given up",
    "ended at the horizon",
    "extrapolated steps",
    "replayed",
];

/// What became of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All holds; what happened.
    Holds(BTreeSet<String>),
    /// It is no legal scenario, and why.
    Refused(String),
    /// Something does not hold: what kind of thing, and all about it.
    Fails(Failure),
}

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// In a few words that are the same for worlds that fail alike.
    pub(super) kind: String,
    pub(super) text: String,
}

fn failure(kind: &str, text: impl Into<String>) -> Failure {
    Failure { kind: kind.to_owned(), text: text.into() }
}

thread_local! {
    /// What a check under way panicked with.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static CHECKING: Cell<bool> = const { Cell::new(false) };
}

/// From now on panics of checks are kept for whoever catches them, and not printed.
pub(super) fn keep_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if CHECKING.get() {
            PANIC.set(Some(panic.to_string()));
        } else {
            usual(panic);
        }
    }));
}

/// Checks `tree`; the trace goes to `folder`.
pub(super) fn check(tree: &Value, folder: &Path) -> Verdict {
    CHECKING.set(true);
    let verdict = catch_unwind(AssertUnwindSafe(|| checked(tree, folder)));
    CHECKING.set(false);
    verdict.unwrap_or_else(|_| {
        let text = PANIC.take().unwrap_or_default();
        let place: String = text.split(':').take(2).collect::<Vec<_>>().join(":");
        Verdict::Fails(failure(&place, text))
    })
}

fn checked(tree: &Value, folder: &Path) -> Verdict {
    let (plan, beside) = match plans(tree) {
        Ok(plans) => plans,
        Err(RunFailure::Input(problems)) => return Verdict::Refused(problems.to_string()),
        Err(other) => return Verdict::Fails(failure("no plan", other.to_string())),
    };
    match compare(tree, &plan, beside.as_ref(), folder) {
        Ok(seen) => Verdict::Holds(seen),
        // Said, and what to do about it.
        Err(failure) if failure.text.contains(FOR_EVER) => Verdict::Refused(failure.text),
        Err(failure) => Verdict::Fails(failure),
    }
}

/// The plan of a scenario, and that of its second pool.
fn plans(tree: &Value) -> Result<(Plan, Option<Plan>), RunFailure> {
    let mut own = tree.clone();
    let beside = own.as_object_mut().and_then(|fields| fields.shift_remove(BESIDE));
    let plan = |tree: &Value| Draft::from_text("world.yaml", &tree.to_string())?.plan();
    let second = beside.map(|fields| {
        let mut tree = own.clone();
        for (key, value) in fields.as_object().into_iter().flatten() {
            tree[key] = value.clone();
        }
        for key in ["model", "hardware", "tp"] {
            tree.as_object_mut().and_then(|fields| fields.shift_remove(key));
        }
        plan(&tree)
    });
    Ok((plan(&own)?, second.transpose()?))
}

fn compare(
    tree: &Value,
    plan: &Plan,
    beside: Option<&Plan>,
    folder: &Path,
) -> Result<BTreeSet<String>, Failure> {
    let mut fast = Run { plan, beside, pace: Pace::FastForward }.told()?;
    let mut slow = Run { plan, beside, pace: Pace::Stepwise }.told()?;
    if let Some(found) = fast.difference(&mut slow) {
        return Err(failure("stepwise differs", found));
    }
    if replays(tree, plan) && !fast.trace.is_empty() {
        let path = folder.join("world.jsonl");
        let unwritable = |error: std::io::Error| failure("no trace", error.to_string());
        std::fs::write(&path, &fast.trace).map_err(unwritable)?;
        let mut again = tree.clone();
        let mut workload = json!({ "trace": path });
        if let Some(patience) = tree["workload"].get("patience_ms") {
            workload["patience_ms"] = patience.clone();
        }
        again["workload"] = workload;
        let problem = |error: RunFailure| failure("trace refused", error.to_string());
        let (plan, beside) = plans(&again).map_err(problem)?;
        let again = Run { plan: &plan, beside: beside.as_ref(), pace: Pace::FastForward };
        if let Some(found) = fast.difference(&mut again.told()?) {
            return Err(failure("replay differs", found));
        }
        fast.seen.insert("replayed".to_owned());
    }
    Ok(fast.seen)
}

/// Whether a trace of the run means the same. It has no targets of the workload, and tells an
/// oracle more than a closed loop does.
fn replays(tree: &Value, plan: &Plan) -> bool {
    let foresees = plan.evict().contains("belady") && plan.workload.is_closed_loop();
    tree["workload"].get("preset").is_none() && !foresees
}

/// A run of a world.
struct Run<'a> {
    plan: &'a Plan,
    beside: Option<&'a Plan>,
    pace: Pace,
}

/// What a run told.
struct Told {
    facts: Transcript,
    /// Its numbers, but for a world with two pools.
    numbers: Option<Value>,
    /// The requests as a trace.
    trace: Vec<u8>,
    seen: BTreeSet<String>,
}

impl Told {
    /// Where they differ first.
    fn difference(&mut self, other: &mut Told) -> Option<String> {
        self.facts.difference(&mut other.facts).or_else(|| {
            let told = || format!("numbers:\n  {:?}\n  {:?}", self.numbers, other.numbers);
            (self.numbers != other.numbers).then(told)
        })
    }
}

impl Run<'_> {
    /// Runs it with the audit on, which must find nothing.
    fn told(&self) -> Result<Told, Failure> {
        let mut facts = Transcript::new(without_names);
        let names = Names::with_requests();
        let mut recorder = Recorder { names: names.clone(), trace: Vec::new() };
        let heard = Cell::new(0);
        let (mut seen, limit) = (Seen { heard: &heard, what: BTreeSet::new() }, Limit(&heard));
        let listeners: [&mut dyn Listener; 3] = [&mut facts, &mut recorder, &mut seen];
        let (outcome, numbers) = match self.beside {
            None => self.alone(listeners, names, limit)?,
            Some(beside) => (self.beside(beside, listeners, &names, limit)?, None),
        };
        let mut seen = seen.what;
        match &outcome.end {
            End::Stalled { why } => return Err(failure("stalled", why.clone())),
            End::Interrupted => return Err(failure("endless", "the run does not end")),
            End::Horizon => seen.insert("ended at the horizon".to_owned()),
            End::Drained => outcome.arrived == 0,
        };
        if outcome.extrapolated.steps > 0 {
            seen.insert("extrapolated steps".to_owned());
        }
        Ok(Told { facts, numbers, trace: recorder.trace, seen })
    }

    fn trial(&self) -> Trial {
        Trial { pace: self.pace, audit: true, ..Trial::new(self.plan.seed) }
    }

    fn alone(
        &self,
        mut listeners: [&mut dyn Listener; 3],
        names: Names,
        mut limit: Limit<'_>,
    ) -> Result<(Outcome, Option<Value>), Failure> {
        let result = run_scenario(self.plan, self.trial(), &mut listeners, Some(names), &mut limit);
        let result = result.map_err(|error| failure("no run", error.to_string()))?;
        result.check().map_err(|error| broken(&error.to_string()))?;
        let mut numbers = Row::of(self.plan, &result).numbers();
        if let Some(run) = numbers.get_mut("run").and_then(Value::as_object_mut) {
            run.shift_remove("scenario_hash");
        }
        Ok((result.outcome, Some(numbers)))
    }

    /// Runs it with the pool of another plan beside its own.
    fn beside(
        &self,
        other: &Plan,
        listeners: [&mut dyn Listener; 3],
        names: &Names,
        mut limit: Limit<'_>,
    ) -> Result<Outcome, Failure> {
        let (plan, trial) = (self.plan, self.trial());
        let mut config = plan.config(&trial);
        config.pools.extend(other.config(&trial).pools);
        let instances = config.pools.iter().map(|pool| pool.count).sum();
        let cluster = Cluster { instances, ..plan.cluster() };
        config.policies = Policies::new(&plan.policies, plan.gateways, &cluster);
        let connector = plan.policies.offload.name() == "vllm";
        let fcfs = plan.scheduler() == "fcfs";
        let pools: Vec<_> = config.pools.iter().map(|pool| pool.audited(fcfs, connector)).collect();
        let mut audit = Audit::new(&pools);
        let [facts, recorder, seen] = listeners;
        let mut all = Fanout::new(vec![facts, recorder, seen, &mut audit]);
        let problem = |error: &dyn std::fmt::Display| failure("no run", error.to_string());
        let mut source = names.of(plan.source(trial.seed).map_err(|error| problem(&error))?);
        let outcome = blis_sim::run(config, &mut *source, &mut all, &mut limit);
        let outcome = outcome.map_err(|error| problem(&error))?;
        let end = RunEnd { ended_at: outcome.ended_at, end: outcome.end.clone(), instances };
        let found = audit.finish(&end);
        match found.first.first() {
            Some(violation) if !found.is_clean() => Err(broken(&violation.to_string())),
            _ => Ok(outcome),
        }
    }
}

/// What the audit found.
fn broken(text: &str) -> Failure {
    let rule = text.split(|c: char| !c.is_alphanumeric()).find(|word| {
        word.strip_prefix('I').is_some_and(|n| !n.is_empty() && n.parse::<u32>().is_ok())
    });
    failure(&format!("audit {}", rule.unwrap_or_default()), text)
}

/// Stops a run that does not end.
struct Limit<'a>(&'a Cell<u64>);

impl Observer for Limit<'_> {
    fn go_on(&mut self, _: Progress) -> bool {
        self.0.get() < ENDLESS
    }
}

/// Takes out of a fact what a trace numbers anew.
fn without_names(fact: &mut Fact<'_>) {
    if let Fact::Closed { record, .. } = fact {
        (record.name, record.tenant) = (None, TenantId(0));
        record.session = record.session.map(|_| SessionId(0));
    }
}

/// Records the requests as a trace.
struct Recorder {
    names: Names,
    trace: Vec<u8>,
}

impl Listener for Recorder {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let Fact::Arrived { request: id, .. } = fact else { return };
        let mut request = self.names.arrived(at);
        request.id = *id;
        let tenant = self.names.tenant(request.tenant);
        let session = request.session.map(|session| self.names.session(session));
        let written = write_request(&mut self.trace, &request, &tenant, session.as_deref());
        written.expect("memory can be written to");
    }
}

/// What happened, for the table of features.
struct Seen<'a> {
    /// How many facts were heard.
    heard: &'a Cell<u64>,
    what: BTreeSet<String>,
}

impl Listener for Seen<'_> {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let weight = if let Fact::Steps { count, .. } = fact { *count } else { 1 };
        self.heard.set(self.heard.get() + weight);
        let what = match *fact {
            Fact::Preempted { ended: true, .. } => "preempted before its last token",
            Fact::Preempted { .. } => "preemption",
            Fact::Evicted { .. } => "eviction",
            Fact::Offloaded { .. } => "offloading",
            Fact::Reloading { beside: true, .. } => "reload beside the steps",
            Fact::Reloading { .. } => "reload before a step",
            Fact::Unloaded { .. } => "reload given up",
            Fact::Stalled { .. } => "stall",
            Fact::Scheduled { cached_tokens: 1.., .. } => "prefix hit",
            Fact::Steps { ahead, .. } if ahead > blis_core::Span::ZERO => "scheduled ahead",
            Fact::Dropped { .. } => "dropped from a batch",
            Fact::Closed { status: Status::Rejected(_), .. } => "rejection",
            Fact::Closed { status: Status::Unservable, .. } => "unservable request",
            Fact::Closed { status: Status::Abandoned(stage), .. } => match stage {
                Stage::Gateway => "gave up at the gateway",
                Stage::Waiting => "gave up waiting",
                Stage::Loading => "gave up loading",
                Stage::Running => "gave up running",
            },
            _ => return,
        };
        if !self.what.contains(what) {
            self.what.insert(what.to_owned());
        }
    }
}
