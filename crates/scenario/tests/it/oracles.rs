//! Oracles of scenarios: how they are named, that they are sent the same, and what they learn of
//! clients that wait for answers.

use crate::harness::{plan, run_audited};
use blis_core::{Span, Time};
use blis_metrics::{Fact, Listener};
use blis_scenario::{Draft, RunFailure, Trial, run_scenario};
use blis_sim::{Observer, Pace, Progress};

const TEXT: &str = "
cluster: {instances: 3}
engine: {total_kv_blocks: 900}
priority: slo-class
scheduler: priority-fcfs
workload: {preset: rag-4096, rate: 9, num_requests: 200}
";

/// Conversations on one instance whose memory holds a few of them; clients wait for answers.
const CLOSED: &str = "
engine: {total_kv_blocks: 800}
workload:
  mix:
    aggregate_rate: 2
    num_requests: 300
    clients:
      - id: a
        rate_fraction: 1
        arrival: {process: poisson}
        input_distribution: {type: constant, params: {value: 300}}
        output_distribution: {type: constant, params: {value: 30}}
        reasoning: {multi_turn: {max_rounds: 5, think_time_us: 900000, closed_loop: true,
          context_growth: accumulate}}
";

/// Hears what is sent.
#[derive(Debug, Default, PartialEq)]
struct Sent(Vec<(Time, String)>);

impl Listener for Sent {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if let Fact::Arrived { .. } = fact {
            self.0.push((at, format!("{fact:?}")));
        }
    }
}

#[test]
fn oracles_are_named_told_about_and_another_scenario() {
    let plain = plan(TEXT);
    let all = plan(&format!("{TEXT}oracles: [scheduler, routing, evict]\n"));
    assert_eq!(all.routing(), "oracle:look-ahead");
    assert_eq!(all.scheduler(), "oracle:shortest-remaining");
    assert_eq!(all.evict(), "oracle:belady");
    assert_eq!(
        all.policies.priority.to_string(),
        plain.policies.priority.to_string(),
        "nobody took that decision"
    );
    assert!(all.notes.iter().any(|note| note.contains("not of a strategy")), "{:?}", all.notes);
    let one = plan(&format!("{TEXT}oracles: [evict]\n"));
    let hashes = [plain.hash(), one.hash(), all.hash()];
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2], "{hashes:?}");
    let refused = |text: &str| {
        let draft = Draft::from_text("s.yaml", text).expect("YAML");
        draft.plan().expect_err(text).to_string()
    };
    assert!(refused("oracles: [router]").contains("s.yaml:1:11: oracles[0]: "));
    assert!(refused("oracles: [routing]\nscheduler: sfj").contains("unknown order `sfj`"));
}

#[test]
fn runs_with_oracles_are_sent_the_same_requests() {
    let mut plain = Sent::default();
    let report = run_audited(&plan(TEXT), Pace::FastForward, &mut plain).report;
    for oracles in ["routing", "scheduler", "evict", "routing, scheduler, evict"] {
        let mut sent = Sent::default();
        let text = format!("{TEXT}oracles: [{oracles}]\n");
        let with = run_audited(&plan(&text), Pace::FastForward, &mut sent).report;
        assert_eq!(sent, plain, "{oracles}");
        assert_ne!(with.cluster.ttft, report.cluster.ttft, "{oracles} decided otherwise");
    }
}

#[test]
fn the_evictor_learns_from_a_recorded_run_what_clients_that_wait_will_send() {
    let with = |more: &str| {
        let plan = plan(&format!("{CLOSED}{more}"));
        let report = run_audited(&plan, Pace::FastForward, &mut Sent::default()).report;
        (plan.evict(), report.kv.evicted_blocks, report.kv.hit_rate.expect("prompts"))
    };
    let (_, evicted, lru) = with("");
    assert!(evicted > 1_000, "{evicted} blocks were dropped");
    let (name, _, foreseen) = with("oracles: [evict]\n");
    assert_eq!(name, "oracle:belady(recorded with lru)");
    assert!(foreseen > 1.05 * lru, "{foreseen} instead of {lru}");
}

#[test]
fn belady_as_a_policy_is_the_oracle() {
    let with = |more: &str| {
        let plan = plan(&format!("{TEXT}{more}"));
        run_audited(&plan, Pace::FastForward, &mut Sent::default()).report
    };
    assert_eq!(with("evict: belady\n"), with("oracles: [evict]\n"));
}

#[test]
fn the_requests_of_a_closed_loop_under_an_oracle_can_be_told() {
    let plan = plan(&format!("{CLOSED}oracles: [evict]\n"));
    let mut sent = 0;
    let told = blis_scenario::run::requests(&plan, Trial::new(plan.seed), |_| sent += 1);
    told.expect("the run ends");
    assert_eq!(sent, 300);
}

/// Stops whatever it watches.
struct Stops;

impl Observer for Stops {
    fn go_on(&mut self, _progress: Progress) -> bool {
        false
    }
}

#[test]
fn reading_ahead_of_a_run_can_be_stopped() {
    let (plain, oracle) = (plan(TEXT), plan(&format!("{TEXT}oracles: [evict]\n")));
    let sampled = Trial { sample_interval: Some(Span::from_micros(1000)), ..Trial::new(1) };
    for (plan, trial) in [(&plain, sampled), (&oracle, Trial::new(1))] {
        let stopped = run_scenario(plan, trial, &mut [], None, &mut Stops);
        assert!(matches!(stopped, Err(RunFailure::Interrupted)), "{stopped:?}");
    }
}
