//! Null effects: changes to a scenario that must not change anything, to the byte.
//!
//! One table. A row names a base scenario and a change; both runs must state the same facts at the
//! same times, give the same report and end the same way. Control rows must differ: they show that
//! the base is one in which such a change could have mattered, and that the comparison can fail.
//! A new feature adds its row "off is absent".

use crate::bases::Base;
use crate::harness::{assert_clean, plan, run_audited};
use crate::telling::{Manner, Told, difference, told};
use blis_core::{RequestId, Span, Time};
use blis_metrics::{Fact, Listener, Status};
use blis_scenario::{Draft, RunResult, Trial, replicate};
use blis_sim::{Pace, Unobserved};

/// A row of the table.
struct Row {
    name: &'static str,
    base: Base,
    change: Change,
    verdict: Verdict,
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
    /// With samples for a timeline.
    Sampled,
    /// With chunks and what routers considered.
    Detailed,
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

use Base::{
    Brief, Cluster, Evicting, OneClass, Own, Reordered, Roomy, ShortPrefix, Single, Tight,
    Unshared, Warmed,
};
use Change::{Again, Detailed, Flags, Sampled, Set, Stepwise, To, Unaudited};
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
    row("stepwise is fast-forward, with a warm-up", Warmed, Stepwise, Same),
    row("a timeline", Tight, Sampled, Same),
    row("a timeline, with a warm-up", Warmed, Sampled, Same),
    row("details", Cluster, Detailed, Same),
    row("details, short of memory", Tight, Detailed, Same),
    row("details, with a warm-up", Warmed, Detailed, Same),
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
    row("a weight of 0", Roomy, Set(&[("routing.scorers", "pa:3,qd:2,kv:0")]), Same),
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
    // The CPU tier.
    row("a tier without blocks", Tight, Set(&[("kv_tier.cpu_blocks", "0")]), Same),
    row("a tier behind a GPU with room", Roomy, Set(&[("kv_tier.cpu_blocks", "500")]), Same),
    row(
        "a threshold of 1 behind a GPU with room",
        Roomy,
        Set(&[("kv_tier.cpu_blocks", "500"), ("kv_tier.offload", "threshold[threshold=1]")]),
        Same,
    ),
    row(
        "copies of victims behind a GPU with room",
        Roomy,
        Set(&[("kv_tier.cpu_blocks", "500"), ("kv_tier.offload", "on-evict")]),
        Same,
    ),
    row(
        "swapping behind a GPU with room",
        Roomy,
        Set(&[("kv_tier.cpu_blocks", "500"), ("engine.preemption", "swap")]),
        Same,
    ),
    row("recomputing", Tight, Set(&[("engine.preemption", "recompute")]), Same),
    // Eviction and preemption.
    row("evictors behind a GPU with room", Roomy, Set(&[("evict", "lfu")]), Same),
    row("an oracle behind a GPU with room", Roomy, Set(&[("evict", "belady")]), Same),
    row("protection of the only class", Evicting, Set(&[("evict", "slo-aware")]), Same),
    row("protection of all classes", Tight, Set(&[("evict", PROTECTED)]), Same),
    row("grace for sessions, without one", Evicting, Set(&[("evict", "session-aware")]), Same),
    row("victims of equal priority", Tight, Set(&[("preempt", "lowest-priority")]), Differs),
    row("victims of a GPU with room", Roomy, Set(&[("preempt", "fewest-blocks")]), Same),
    // Order and admission.
    row(
        "priorities of one class",
        OneClass,
        Set(&[("scheduler", "priority-fcfs"), ("priority", "slo-class")]),
        Same,
    ),
    row("equal priorities", Cluster, Set(&[("scheduler", "priority-fcfs")]), Same),
    row(
        "tiers without aging",
        OneClass,
        Set(&[("scheduler", "priority-fcfs"), ("priority", "slo-tiered[age-weight=0]")]),
        Same,
    ),
    row("gates that nothing reaches", Cluster, Set(&[("admission", OPEN_GATES)]), Same),
    row("one gate of its own", Tight, Set(&[("admission", "all-of(always-admit)")]), Same),
    row(
        "a bucket without limit",
        Cluster,
        Set(&[("admission", "token-bucket[capacity=1e9,refill-rate=1e9]")]),
        Same,
    ),
    row("a horizon past the end", Cluster, Set(&[("horizon_us", "3600000000")]), Same),
    row(
        "a horizon past the end, short of memory",
        Tight,
        Set(&[("horizon_us", "3600000000")]),
        Same,
    ),
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
    row("a weight above 0", Roomy, Set(&[("routing.scorers", "pa:3,qd:2,kv:1")]), Differs),
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
    row(
        "first chunk only, no room",
        Tight,
        Set(&[("engine.reserve_full_prompt", "false")]),
        Differs,
    ),
    row("a watermark", Tight, Set(&[("engine.watermark", "0.2")]), Differs),
    row("a tier", Tight, Set(&[("kv_tier.cpu_blocks", "500")]), Differs),
    row(
        "copies of everything",
        Roomy,
        Set(&[("kv_tier.cpu_blocks", "500"), ("kv_tier.offload", "write-through")]),
        Differs,
    ),
    row("eviction by use", Evicting, Set(&[("evict", "lfu")]), Differs),
    row("eviction by the future", Evicting, Set(&[("evict", "belady")]), Differs),
    row("protection of one class of two", Tight, Set(&[("evict", "slo-aware")]), Differs),
    row("grace for the preempted", Tight, Set(&[("evict", "session-aware")]), Differs),
    row(
        "victims by priority",
        Tight,
        Set(&[("preempt", "lowest-priority"), ("priority", "slo-class")]),
        Differs,
    ),
    row("victims by progress", Tight, Set(&[("preempt", "least-progress")]), Differs),
    row("victims by blocks", Tight, Set(&[("preempt", "fewest-blocks")]), Differs),
    row(
        "priorities of two classes",
        Cluster,
        Set(&[("scheduler", "priority-fcfs"), ("priority", "slo-class")]),
        Differs,
    ),
    row("a gate", Tight, Set(&[("admission", "slo-gated[threshold=0,standard=1]")]), Differs),
    row("a bucket", Cluster, Set(&[("admission", "token-bucket[capacity=2000]")]), Differs),
    row("a horizon before the end", Cluster, Set(&[("horizon_us", "2000000")]), Differs),
    row("delays", Cluster, Set(&[("gateway.routing_latency_us", "1")]), Differs),
];

/// Thresholds beyond what there is.
const OPEN_GATES: &str = "all-of(slo-gated[threshold=1e5]; kv-gate[free-share=0,prompt=false]; \
     session-backpressure[threshold=1e5])";

/// All classes are worth as much, so that none is protected from another.
const PROTECTED: &str = "slo-aware[critical=3,standard=3,sheddable=3,batch=3,background=3]";

const BRIEF_AS_FLAGS: &[(&str, &str)] = &[
    ("cluster.instances", "2"),
    ("workload.distribution.rate", "60"),
    ("workload.distribution.num_requests", "150"),
    ("workload.distribution.prompt_tokens.mean", "300"),
    ("workload.distribution.output_tokens.mean", "50"),
    ("workload.distribution.output_tokens.max", "60"),
];

impl Row {
    /// How both runs are listened to.
    fn manner(&self) -> Manner {
        let expectations = self.verdict != SameButExpectations;
        let (pace, sample_interval) = (Pace::FastForward, None);
        Manner { pace, audit: true, expectations, sample_interval, details: false }
    }

    /// What the changed scenario tells.
    fn changed(&self) -> Told {
        let manner = self.manner();
        let base = self.base.text();
        let set = |text: &str, fields: &[(&str, &str)]| {
            let mut draft = Draft::from_text("base.yaml", text).expect("well-formed");
            for (path, value) in fields {
                draft.set("--flag", path, value);
            }
            let plan = draft.plan().unwrap_or_else(|problem| panic!("{}: {problem}", self.name));
            told(&plan, manner)
        };
        match self.change {
            Again => set(&base, &[]),
            Set(fields) => set(&base, fields),
            Flags(fields) => set("{}", fields),
            To(other) => set(&other.text(), &[]),
            Stepwise => told(&plan(&base), Manner { pace: Pace::Stepwise, ..manner }),
            Sampled => {
                let sample_interval = Some(Span::from_micros(7_700));
                told(&plan(&base), Manner { sample_interval, ..manner })
            }
            Detailed => told(&plan(&base), Manner { details: true, ..manner }),
            Unaudited => told(&plan(&base), Manner { audit: false, ..manner }),
        }
    }

    /// What is wrong, if anything is.
    fn judge(&self) -> Option<String> {
        let base = told(&plan(&self.base.text()), self.manner());
        self.base.guard(&base.report);
        let changed = self.changed();
        let wrong = match (self.verdict, difference(base, changed)) {
            (Differs, Some(_)) | (Same | SameButExpectations, None) => return None,
            (Differs, None) => "nothing changed".to_owned(),
            (_, Some(difference)) => difference,
        };
        Some(format!("{}: {wrong}", self.name))
    }
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
        let plan = draft.plan().unwrap_or_else(|problem| panic!("{problem}"));
        let mut sent = Sent::default();
        run_audited(&plan, Pace::FastForward, &mut sent);
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
        let trial = |seed| Trial { audit: true, ..Trial::new(seed) };
        let mut trials: Vec<Trial> = (1..=12).map(trial).collect();
        let results = |trials: &[Trial], jobs| {
            let results = replicate(&plan, trials, jobs, |_| Unobserved)
                .unwrap_or_else(|failure| panic!("{failure}"));
            let text = |result: &RunResult| {
                assert_clean(result, &plan);
                format!("{result:?}")
            };
            results.iter().map(text).collect::<Vec<String>>()
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
