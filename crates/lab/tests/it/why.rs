//! Why requests are slow: for each cause a few requests of which the facts prove it.

use blis_core::Span;
use blis_lab::why::{Answer, Cause, Measure, Which, why};
use blis_metrics::Doing;
use blis_scenario::{Draft, Plan, Trial};
use blis_sim::Unobserved;
use std::fmt::Write as _;
use std::fs;

/// A step takes 1 ms, and 10 µs more for each prefill token and 100 µs for each decode.
const SIMPLE: &str = "
latency: {model: coefficients, alpha_us: [0, 0, 0], beta_us: [1000, 10, 100]}
engine: {preset: vllm-a100, long_prefill_token_threshold: 0}
";

/// A request: when it arrives in ms, its prompt as a stream and tokens, and its output tokens.
type Sent = (u32, &'static str, u32, u32);

/// Runs `sent` under `scenario` and asks about the request of that number.
fn ask(scenario: &str, fields: &[(&str, &str)], sent: &[Sent], measure: Measure, n: u32) -> Answer {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = String::new();
    for (id, (at_ms, stream, tokens, output)) in sent.iter().enumerate() {
        let at = at_ms * 1000;
        writeln!(
            trace,
            "{{\"id\":\"{id}\",\"arrival_us\":{at},\"prompt\":[[\"{stream}\",{tokens}]],\
             \"output_tokens\":{output}}}"
        )
        .expect("text");
    }
    let path = folder.path().join("t.jsonl");
    fs::write(&path, trace).expect("written");
    let mut draft = Draft::from_text("s.yaml", scenario).expect("well-formed");
    draft.set("--trace", "workload.trace", path.to_str().expect("text"));
    for (field, value) in fields {
        draft.set("--flag", field, value);
    }
    let plan = draft.plan().unwrap_or_else(|problem| panic!("{problem}"));
    let which = Which::Named(n.to_string());
    answers(&plan, measure, &which).pop().expect("it finished")
}

fn answers(plan: &Plan, measure: Measure, which: &Which) -> Vec<Answer> {
    let trial = Trial { audit: true, ..Trial::new(plan.seed) };
    why(plan, trial, measure, which, || Unobserved).expect("it runs")
}

fn part_us(answer: &Answer, cause: Cause) -> i64 {
    answer.parts.iter().find(|part| part.0 == cause).expect("a part").1 / 1000
}

#[test]
fn a_burst_ahead_is_the_queue() {
    let burst = [(0, "a", 100, 10), (0, "b", 200, 10), (0, "c", 300, 10), (0, "d", 100, 1)];
    let one = [("engine.max_num_running_reqs", "1")];
    let found = ask(SIMPLE, &one, &burst, Measure::Ttft, 3);
    assert_eq!(found.cause, Cause::Queue);
    // Three prefills of 1 ms + 10 µs a token, and nine decodes of 1.1 ms after each.
    assert_eq!(part_us(&found, Cause::Queue), 3 * 1_000 + 6_000 + 27 * 1_100);
    assert_eq!(part_us(&found, Cause::Own), 2_000);
    assert_eq!(found.life.found, (3, 0));
    let ahead: Vec<_> = found.life.ahead.iter().map(|it| (it.request.0, it.tokens)).collect();
    assert_eq!(ahead, [(0, 100), (1, 200), (2, 300)]);
    assert!(found.life.ahead.iter().all(|ahead| !ahead.overtook));
}

#[test]
fn whoever_joined_later_and_was_scheduled_first_overtook() {
    let sent = [(0, "a", 900, 1), (1, "b", 800, 1), (2, "c", 16, 1)];
    let fields = [("engine.max_num_running_reqs", "1"), ("scheduler", "sjf")];
    let found = ask(SIMPLE, &fields, &sent, Measure::Ttft, 1);
    // The step of the first lasts until 10 ms, and then the third is in front.
    assert_eq!(part_us(&found, Cause::Prefill), 9_000);
    assert_eq!(part_us(&found, Cause::Queue), 1_160);
    let last = found.life.ahead.last().expect("somebody");
    assert_eq!((last.request.0, last.tokens, last.overtook), (2, 16, true));
}

#[test]
fn a_long_prompt_in_its_step_is_the_prefill_of_others() {
    let sent = [(0, "long", 1_900, 1), (0, "short", 16, 1)];
    let found = ask(SIMPLE, &[], &sent, Measure::Ttft, 1);
    assert_eq!(found.cause, Cause::Prefill);
    assert_eq!(part_us(&found, Cause::Prefill), 19_000);
    let step = found.life.steps[0];
    assert_eq!((step.own_tokens, step.largest.map(|it| (it.0.0, it.1))), (16, Some((0, 1_900))));
}

#[test]
fn a_long_prompt_in_the_step_under_way_is_the_prefill_of_others() {
    let sent = [(0, "long", 1_900, 1), (1, "short", 16, 1)];
    let found = ask(SIMPLE, &[], &sent, Measure::Ttft, 1);
    assert_eq!((found.cause, part_us(&found, Cause::Queue)), (Cause::Prefill, 0));
    assert_eq!(part_us(&found, Cause::Prefill), 19_000);
}

#[test]
fn many_decodes_in_its_steps_are_the_decodes_of_others() {
    let mut sent: Vec<Sent> = vec![(0, "a", 16, 100); 40];
    sent.push((5, "b", 16, 50));
    let found = ask(SIMPLE, &[], &sent, Measure::Itl, 40);
    assert_eq!(found.cause, Cause::Batch);
    // 49 tokens, with 40 others in each step.
    assert_eq!(part_us(&found, Cause::Batch), 49 * 4_000);
    assert_eq!(part_us(&found, Cause::Own), 49 * 1_100);
}

#[test]
fn a_request_that_loses_its_blocks_is_slow_because_of_the_preemption() {
    let sent = [(0, "a", 160, 160), (0, "b", 160, 100)];
    let few = [("engine.total_kv_blocks", "24"), ("engine.reserve_full_prompt", "false")];
    let found = ask(SIMPLE, &few, &sent, Measure::E2e, 1);
    assert_eq!((found.record.preemptions, found.cause), (1, Cause::Preemption));
    let preempted = found.life.stretches.iter().filter(|it| it.preempted);
    let doing: Vec<Doing> = preempted.clone().map(|it| it.doing).collect();
    assert_eq!(doing, [Doing::Waiting, Doing::Prefill]);
    let sum: u64 = preempted.map(|it| it.span().as_nanos()).sum();
    assert_eq!(part_us(&found, Cause::Preemption), i64::try_from(sum / 1000).expect("small"));
}

#[test]
fn blocks_that_come_back_from_the_cpu_tier_are_the_reload() {
    for reload in ["blocking", "async"] {
        let sent = [(0, "a", 1_616, 1), (10_000, "b", 1_616, 1), (60_000, "a", 1_616, 1)];
        let slow = [
            ("engine.total_kv_blocks", "110"),
            ("kv_tier.cpu_blocks", "1000"),
            ("kv_tier.offload", "write-through"),
            ("kv_tier.reload", reload),
            ("kv_tier.bandwidth_blocks_per_us", "0.001"),
        ];
        let found = ask(SIMPLE, &slow, &sent, Measure::Ttft, 2);
        assert_eq!(found.cause, Cause::Reload, "{reload}: {:?}", found.parts);
        assert!(part_us(&found, Cause::Reload) > 50_000, "{reload}: {:?}", found.parts);
        assert_eq!(found.record.split.reload.as_micros(), {
            u64::try_from(part_us(&found, Cause::Reload)).expect("positive")
        });
    }
}

#[test]
fn a_choice_that_fresh_signals_would_not_make_is_stale_routing() {
    let sent = [(0, "a", 1_000, 20), (5, "b", 1_000, 20)];
    let fields = [
        ("cluster.instances", "2"),
        ("engine.max_num_running_reqs", "1"),
        ("routing.policy", "weighted"),
        ("routing.scorers", "kv:1"),
        ("routing.picker", "max-score[ties=lowest-index]"),
        ("signals.snapshot_refresh_interval_us", "1000000000"),
    ];
    let found = ask(SIMPLE, &fields, &sent, Measure::Ttft, 1);
    assert_eq!(found.cause, Cause::Stale, "{:?}", found.parts);
    let (there, took) = found.elsewhere.expect("somewhere else");
    assert_eq!((there.0, took.map(Span::as_micros)), (1, Some(11_000)));
    assert_eq!(found.oracle, found.elsewhere, "the oracle sees the same");
    let considered = found.life.considered.expect("a choice");
    assert_eq!(considered.candidates[0].memory.map(|seen| seen.0), Some(0.0));
    assert_eq!((considered.candidates[0].running, considered.candidates[1].running), (1, 0));
    assert_eq!(considered.opinions[0].0, "kv-utilization");
    // With fresh signals it is not.
    let fresh = [&fields[..5], &[("signals.snapshot_refresh_interval_us", "0")]].concat();
    let found = ask(SIMPLE, &fresh, &sent, Measure::Ttft, 1);
    assert_eq!((found.elsewhere, found.cause), (None, Cause::Own));
    assert_eq!(found.oracle.map(|(there, took)| (there.0, took)), Some((1, Some(found.took))));
}

#[test]
fn blocks_that_the_router_expected_and_that_were_gone_are_a_phantom_hit() {
    let sent = [(0, "a", 1_616, 1), (1_000, "b", 1_616, 1), (2_000, "a", 1_616, 1)];
    let fields = [
        ("engine.total_kv_blocks", "110"),
        ("routing.policy", "weighted"),
        ("routing.scorers", "pa:1"),
        ("routing.lru_capacity", "10000"),
    ];
    let found = ask(SIMPLE, &fields, &sent, Measure::Ttft, 2);
    assert_eq!(found.cause, Cause::Phantom, "{:?}", found.parts);
    let (expected, real) = (found.record.expected_cached_tokens, found.record.cached_tokens);
    let gone = i64::from(expected.unwrap_or(0) - real.unwrap_or(0));
    assert!(gone > 1_000, "{expected:?} expected, {real:?} found");
    assert_eq!(part_us(&found, Cause::Phantom), 10 * gone);
}

#[test]
fn steps_that_the_host_cannot_launch_fast_enough_are_the_host() {
    // Every small prefill makes the host launch a step in pieces, for longer than the GPU computes.
    let mut sent: Vec<Sent> = vec![(0, "a", 512, 60)];
    sent.extend((1..60).map(|n| (10 * n, "b", 32, 1)));
    let vllm = "latency: {model: h200-vllm-0.26-llama-3.1-8b}\nhardware: H200\ntp: 1\n";
    let found = ask(vllm, &[], &sent, Measure::Itl, 0);
    assert_eq!(found.cause, Cause::Host, "{:?}", found.parts);
    let bound =
        |it: &&blis_metrics::life::StepsOf| it.batch.prefill_seqs > 0 && it.gpu < it.duration;
    assert!(found.life.steps.iter().filter(bound).count() > 20);
}

#[test]
fn a_long_prompt_of_its_own_and_a_slow_gateway_are_told_apart() {
    let sent = [(0, "a", 4_000, 1)];
    let found = ask(SIMPLE, &[], &sent, Measure::Ttft, 0);
    // Two steps of 2,048 and 1,952 tokens.
    assert_eq!((found.cause, part_us(&found, Cause::Own)), (Cause::Own, 42_000));
    assert_eq!(found.life.steps.iter().map(|it| it.own_tokens).collect::<Vec<_>>(), [2048, 1952]);
    let slow = [("gateway.admission_latency_us", "500000")];
    let found = ask(SIMPLE, &slow, &sent, Measure::Ttft, 0);
    assert_eq!((found.cause, part_us(&found, Cause::Gateway)), (Cause::Gateway, 500_000));
}

#[test]
fn the_parts_of_ten_slow_requests_of_many_tenants_add_up_to_their_ttft() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/many-tenants.yaml");
    let plan = Draft::read(path.as_ref()).expect("it is there").plan().expect("legal");
    for measure in [Measure::Ttft, Measure::E2e, Measure::Itl] {
        let found = answers(&plan, measure, &Which::Slowest(10));
        assert_eq!(found.len(), 10);
        for answer in found {
            let sum: i64 = answer.parts.iter().map(|part| part.1).sum();
            assert_eq!(u64::try_from(sum), Ok(answer.took.as_nanos()), "{}", answer.name);
            let lived = answer.life.before_first_token().map(|it| it.span().as_nanos());
            let ttft = lived.sum::<u64>() + answer.record.split.output.as_nanos();
            assert_eq!(Some(ttft), answer.record.ttft.map(Span::as_nanos));
            let most = answer.parts.iter().map(|part| part.1).max();
            let blamed = answer.parts.iter().find(|part| part.0 == answer.cause);
            assert!(answer.cause == Cause::Stale || blamed.map(|part| part.1) == most);
        }
    }
}

#[test]
fn the_oracle_knows_what_the_router_cannot_and_one_decision_is_changed() {
    // Both instances have one request, and the router sees that; only one of them is long.
    let sent = [(0, "a", 160, 400), (0, "b", 160, 4), (5, "c", 160, 1), (6, "d", 160, 1)];
    let fields = [
        ("cluster.instances", "2"),
        ("engine.max_num_running_reqs", "1"),
        ("routing.policy", "weighted"),
        ("routing.scorers", "qd:1"),
        ("routing.picker", "max-score[ties=lowest-index]"),
    ];
    let found = ask(SIMPLE, &fields, &sent, Measure::Ttft, 2);
    assert_eq!((found.record.instance.map(|it| it.0), found.cause), (Some(0), Cause::Queue));
    assert_eq!(found.elsewhere, None, "nothing that it reads is stale");
    // The prefill of `b` takes 2.6 ms, its three decodes 1.1 ms each, and its own prefill 2.6 ms.
    let there = found.oracle.map(|(there, took)| (there.0, took.map(Span::as_micros)));
    assert_eq!(there, Some((1, Some(2_600 + 3 * 1_100 + 2_600 - 5_000))));
    let alone = ask(SIMPLE, &fields[1..], &sent, Measure::Ttft, 2);
    assert_eq!(alone.oracle, None, "there is no other place");
}
