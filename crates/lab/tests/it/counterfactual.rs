//! Decisions taken otherwise: what the regret of a router is.

use blis_lab::counterfactual::{Options, Regret, regret};
use blis_scenario::{Draft, Trial};
use blis_sim::Unobserved;

const TEXT: &str = "
cluster: {instances: 3}
engine: {preset: vllm-a100}
workload:
  distribution:
    rate: 60
    num_requests: 400
    prompt_tokens: {mean: 600, stdev: 200, min: 50, max: 1500}
    output_tokens: {mean: 60, stdev: 20, min: 5, max: 150}
";

fn regret_of(routing: &str) -> Regret {
    let text = format!("{TEXT}routing: {routing}\n");
    let plan = Draft::from_text("s.yaml", &text).expect("well-formed").plan().expect("legal");
    let trial = Trial::new(7);
    let options = Options { alternatives: 2, sample: 40, jobs: 0 };
    regret(&plan, trial, &options, || Unobserved).expect("runs")
}

#[test]
fn the_best_score_is_never_regretted_by_scores_but_may_be_by_what_happens() {
    let found = regret_of("{policy: weighted, scorers: 'qd:1'}");
    assert_eq!((found.tried.len(), found.decisions), (40, 400));
    assert_eq!(found.greatest_score_regret(), Some(0.0));
    let (mean, p90, max) = found.summary().expect("decisions");
    assert!(mean >= 0.0 && p90 <= max && max > 0.0, "{mean} {p90} {max}");
}

#[test]
fn a_router_that_piles_up_requests_regrets_more_than_one_that_balances() {
    let mean = |routing| regret_of(routing).summary().expect("decisions").0;
    let (balanced, piled) = (mean("{policy: weighted, scorers: 'qd:1'}"), mean("always-busiest"));
    assert!(piled > 3.0 * balanced, "{piled} ms against {balanced} ms");
}

#[test]
fn an_overruled_request_goes_where_it_is_told_and_no_sooner_than_it_arrives() {
    for tried in regret_of("round-robin").tried {
        assert!(tried.decision.alternatives.iter().all(|(to, _)| *to != tried.decision.chosen));
        assert_eq!(tried.alternative_ttft_ms.len(), 2);
        assert!(tried.alternative_ttft_ms.iter().flatten().all(|ttft| *ttft > 0.0));
    }
}
