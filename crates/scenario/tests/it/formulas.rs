//! Policies written as formulas against the same ones in Rust, decision for decision.

use crate::harness::{plan, run_audited};
use blis_core::Time;
use blis_metrics::{Fact, Listener};
use blis_sim::Pace;

/// What was decided about every request, and when: admitted, where, in the expectation of what, and
/// how it ended.
#[derive(Default)]
struct Decisions(Vec<String>);

impl Listener for Decisions {
    fn hear(&mut self, now: Time, fact: &Fact<'_>) {
        match fact {
            Fact::Routed { request, instance, expected_cached_tokens, .. } => {
                let line = format!("{now:?} {request:?} {instance:?} {expected_cached_tokens:?}");
                self.0.push(line);
            }
            Fact::Closed { status, record } => {
                // The reason of a refusal is the name of the policy.
                let status = format!("{status:?}");
                let status = status.split('(').next().unwrap_or_default();
                self.0.push(format!("{now:?} {:?} {status} {:?}", record.request, record.ttft));
            }
            _ => {}
        }
    }
}

/// Conversations of three classes in a world that `seed` picks: two to nine instances, short of
/// memory or not, fresh or stale signals.
fn world(seed: u64, policies: &str) -> String {
    let instances = 2 + seed % 8;
    let blocks = [400, 900, 5_000][usize::try_from(seed % 3).expect("small")];
    let poll = [0, 30_000, 400_000][usize::try_from(seed / 2 % 3).expect("small")];
    // Nobody else reads KV events.
    let late = policies.contains("precise") && seed % 2 == 1;
    let delay = if late { ", kv_event_delay_us: 20000" } else { "" };
    let client = |class: &str, prefix: u32| {
        format!(
            "{{id: {class}, slo_class: {class}, rate_fraction: 1, prefix_group: {class}, \
             prefix_length: {prefix}, arrival: {{process: poisson}}, \
             input_distribution: {{type: exponential, params: {{mean: 150}}}}, \
             output_distribution: {{type: exponential, params: {{mean: 30}}}}, \
             reasoning: {{multi_turn: {{max_rounds: 4, think_time_us: 200000, context_growth: \
             accumulate}}}}}}"
        )
    };
    let clients = [client("critical", 64), client("standard", 200), client("batch", 96)].join(", ");
    format!(
        "seed: {seed}\ncluster: {{instances: {instances}}}\n\
         engine: {{total_kv_blocks: {blocks}, max_num_running_reqs: 8}}\n\
         signals: {{snapshot_refresh_interval_us: {poll}{delay}}}\n\
         {policies}\n\
         workload:\n  mix: {{aggregate_rate: {}, num_requests: 300, clients: [{clients}]}}\n",
        60 * instances
    )
}

fn decisions(seed: u64, policies: &str) -> Vec<String> {
    let mut decisions = Decisions::default();
    run_audited(&plan(&world(seed, policies)), Pace::FastForward, &mut decisions);
    decisions.0
}

/// Both make the same decisions in all worlds, and some of them matter: another policy of the kind
/// decides otherwise.
#[track_caller]
fn assert_same(formula: &str, same: &str, other: &str) {
    let mut differ = 0;
    for seed in 0..12 {
        let expected = decisions(seed, same);
        let found = decisions(seed, formula);
        let first = expected.iter().zip(&found).find(|(a, b)| a != b);
        assert!(found == expected, "seed {seed}: {first:?}\n{}", world(seed, formula));
        differ += usize::from(decisions(seed, other) != expected);
    }
    assert!(differ > 6, "in {differ} of 12 worlds `{other}` decides otherwise");
}

fn weighted(scorers: &str) -> String {
    format!("routing: {{policy: weighted, scorers: '{scorers}'}}")
}

#[test]
fn lmetric_as_a_formula_decides_as_lmetric_does() {
    for knowledge in ["approximate", "precise"] {
        let formula = format!(
            "routing: {{formula: '-uncached_tokens * (in_flight + 1)', params: {{knowledge: \
             {knowledge}}}}}"
        );
        assert_same(
            &formula,
            &weighted(&format!("lmetric[knowledge={knowledge}]:1")),
            "routing: {formula: -uncached_tokens}",
        );
    }
    let [formula, same] =
        ["lmetric-formula", "lmetric"].map(|name| format!("strategy: '{name}[knowledge=precise]'"));
    assert_same(&formula, &same, "strategy: round-robin");
}

#[test]
fn three_two_two_as_three_formulas_or_as_one_decides_as_the_scorers_do() {
    let scorers = weighted("pa:3,qd:2,kv:2");
    let three = weighted(
        "formula[formula=1 - kv_utilization,scale=absolute]:2,\
         formula[formula=cached_share,scale=absolute]:3,formula[formula=prefer_low(load)]:2",
    );
    let one = "routing: {formula: '2 / 3 * (1 - kv_utilization) + cached_share + 2 / 3 * \
               prefer_low(load)'}";
    let other = "routing: {formula: '2 * (1 - kv_utilization) + 2 * cached_share + 3 * \
                 prefer_low(load)'}";
    assert_same(&three, &scorers, other);
    assert_same(one, &scorers, other);
}

#[test]
fn gates_priorities_and_orders_as_formulas_decide_as_those_in_rust_do() {
    assert_same(
        "admission: {admit_when: most(waiting) <= 2 or class == critical or class == standard}",
        "admission: slo-gated[threshold=2]",
        "admission: {admit_when: most(waiting) <= 2 or class == critical}",
    );
    assert_same(
        "admission: {admit_when: free_blocks >= 0.05 * kv_blocks or class != batch}",
        "admission: kv-gate[prompt=false]",
        "admission: {admit_when: free_blocks >= 0.9 * kv_blocks or class != batch}",
    );
    assert_same(
        "scheduler: {formula: -priority}\npriority: {formula: 'if(class == critical, 10, \
         if(class == standard, 5, 1)) * age_ms / 1000'}",
        "scheduler: priority-fcfs\npriority: age",
        "scheduler: fcfs",
    );
    assert_same("scheduler: {formula: input_tokens}", "scheduler: sjf", "scheduler: fcfs");
}

#[test]
fn a_formula_over_polled_signals_is_as_stale_as_the_scorer_and_one_over_live_ones_is_not() {
    let polled = |us: u32, formula: &str| {
        let signals = format!("signals: {{snapshot_refresh_interval_us: {us}}}");
        let text = world(3, &format!("routing: {{formula: '{formula}'}}"));
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("signals")).collect();
        let mut decisions = Decisions::default();
        let text = format!("{}\n{signals}\n", text.join("\n"));
        run_audited(&plan(&text), Pace::FastForward, &mut decisions);
        decisions.0
    };
    assert_ne!(polled(0, "-waiting - running"), polled(500_000, "-waiting - running"));
    assert_eq!(polled(0, "-in_flight"), polled(500_000, "-in_flight"));
}
