//! Studies from file to verdict.

use super::*;
use crate::verdict::Outcome;
use blis_core::math::float;
use blis_scenario::yaml;

fn read(text: &str) -> Result<Study, Problems> {
    file::study(&yaml::read_text("s.yaml", text).expect("well-formed")).map(|all| all.study)
}

const STRATEGY: &str = "
question: does it help?
base:
  cluster: {instances: 2}
  workload: {distribution: {rate: 8, num_requests: 400}}
components:
  router: {routing: {policy: weighted, scorers: 'pa:3,qd:2'}}
  order: {scheduler: priority-fcfs, priority: slo-class}
  gate: {admission: 'token-bucket[capacity=2000,refill-rate=1000]'}
arms:
  - {name: plain}
  - {name: full, with: [router, order, gate], tests: everything}
metrics: [ttft_p99]
";

#[test]
fn arms_are_put_together_from_components() {
    let study = read(STRATEGY).expect("legal");
    let full = &study.cells[1].plan;
    assert!(full.routing().starts_with("weighted"), "{full:?}");
    assert_eq!(full.scheduler(), "priority-fcfs");
    let admission = full.policies.admission.to_string();
    assert!(admission.starts_with("token-bucket"), "{admission}");
    assert_eq!(study.with(1), ["router", "order", "gate"]);
    assert_eq!(study.tests("arm", 1), Some("everything"));
}

#[test]
fn an_arm_with_a_gate_or_a_priority_stands_beside_its_references() {
    let study = read(STRATEGY).expect("legal");
    let names: Vec<&str> = study.cells.iter().map(|cell| cell.levels[0].as_str()).collect();
    let (gate, priority) = ("gate of full on round-robin", "priority of full on round-robin");
    assert_eq!(names, ["plain", "full", gate, priority]);
    let policies = |cell: usize| {
        let plan = &study.cells[cell].plan;
        let gated = plan.policies.admission.to_string().starts_with("token-bucket");
        (plan.routing(), plan.scheduler(), gated)
    };
    assert_eq!(policies(2), ("round-robin".to_owned(), "fcfs".to_owned(), true));
    assert_eq!(policies(3), ("round-robin".to_owned(), "priority-fcfs".to_owned(), false));
    assert_eq!(study.design.factors[0].stated, 2, "claims about all arms are about these");
    let without = read(&format!("{STRATEGY}references: false\n")).expect("legal");
    assert_eq!(without.cells.len(), 2);
    // What is an arm already is not added again.
    let own = STRATEGY.replace(
        "metrics:",
        "  - {name: own, with: [gate], set: {routing: round-robin}}\nmetrics:",
    );
    assert_eq!(read(&own).expect("legal").cells.len(), 4);
}

#[test]
fn each_cell_is_resolved_once_and_a_trace_is_read_and_hashed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.jsonl");
    let request = "{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":2}\n";
    std::fs::write(&trace, request.repeat(9)).expect("it is written");
    let arms = STRATEGY.find("components:").expect("it has components");
    let text = format!(
        "question: q?\nbase: {{workload: {{trace: {}}}}}\n\
         sweep: {{engine.total_kv_blocks: [900, 800], workload.trace_limit: [9, 5]}}\n{}",
        trace.display(),
        &STRATEGY[arms..]
    );
    let study = read(&text).expect("legal");
    assert_eq!(study.cells.len(), 4 * 4, "two arms, two references, four swept combinations");
    let (asked, read, hashed) = study.files.counts();
    assert_eq!(asked, study.cells.len(), "a cell that is resolved asks for its trace");
    assert_eq!((read, hashed), (2, 1), "once with each limit");
    // What explains a cell later has it too.
    study.plan_with(&[1, 0, 0], 1, None).expect("legal");
    assert_eq!(study.files.counts(), (asked + 1, read, hashed));
}

#[test]
fn a_matrix_has_none_each_alone_all_but_each_and_all() {
    let arms = STRATEGY.find("arms:").expect("it has arms");
    let metrics = STRATEGY.find("metrics:").expect("it has metrics");
    let text = format!(
        "{}matrix: [router, order, gate]\nreferences: false\n{}",
        &STRATEGY[..arms],
        &STRATEGY[metrics..]
    );
    let study = read(&text).expect("legal");
    let names: Vec<&str> = study.cells.iter().map(|cell| cell.levels[0].as_str()).collect();
    assert_eq!(names[..4], ["none", "only router", "only order", "only gate"]);
    assert_eq!(names[4..], ["all but router", "all but order", "all but gate", "all"]);
    assert_eq!(study.cells[4].plan.routing(), study.cells[0].plan.routing());
    assert_eq!(study.with(7).len(), 3);
}

#[test]
fn mistakes_in_hypotheses_and_components_are_told_before_anything_runs() {
    let claim = |claim: &str| format!("{STRATEGY}hypotheses: [{{claim: '{claim}'}}]\n");
    for (text, message) in [
        (claim("ttft_p99(ful) < 1"), "s.yaml:14:22: hypotheses[0].claim: unknown arm `ful`, did"),
        (claim("ttft_p99(full) < 1").replace("}]", ", predict: much}]"), "found `much`; legal: a"),
        (claim("ttft_p99(full) < 1").replace("}]", ", fires: [x]}]"), "fires[0]: unknown number"),
        (claim("ttft_p99(full) < 1").replace("}]", ", cause: x}]"), "unknown field `cause`"),
        (
            STRATEGY.replace("[router, order", "[ruoter, order"),
            "arms[1].with[0]: unknown component",
        ),
        (format!("{STRATEGY}matrix: [gate]\n"), "matrix: it makes the arms"),
        (format!("{STRATEGY}seeds: 9\nmax_seeds: 3\n"), "max_seeds: found `3`; legal: at least"),
        (format!("{STRATEGY}warmup: soon\n"), "warmup: found `soon`; legal: `auto`, or seconds"),
    ] {
        let problem = read(&text).expect_err(message);
        assert!(problem.to_string().contains(message), "{problem}");
    }
    let problems = read(&claim("ttft_p99(ful) < 1")).expect_err("unknown arm");
    let excerpts: Vec<_> = problems.iter().filter_map(|one| one.excerpt.as_deref()).collect();
    assert_eq!(excerpts, ["  ttft_p99(ful) < 1\n           ^^^"]);
}

fn run(text: &str) -> Findings {
    let study = read(text).unwrap_or_else(|problem| panic!("{problem}"));
    study.run(&Runner::default()).expect("it runs")
}

/// Servers of about 10 ms a request.
const SERVERS: &str = "
question: do more instances help?
base:
  latency: {model: constant, step_us: 1000}
  engine: {max_num_running_reqs: 1, total_kv_blocks: 1000}
  workload: {distribution: {rate: 60, num_requests: 1000, prompt_tokens: {mean: 16, stdev: 0}, \
output_tokens: {mean: 10, stdev: 8, min: 1, max: 40}}}
arms:
  - {name: one}
  - {name: two, set: {cluster: {instances: 2}}}
";

#[test]
fn a_study_runs_until_its_hypotheses_are_answered() {
    let text = &[
        SERVERS,
        "metrics: [ttft_mean]
seeds: 3
max_seeds: 12
hypotheses:
  - claim: ttft_mean(two) < ttft_mean(one)
    because: each has half of the requests
  - claim: ttft_mean(two) ~ ttft_mean(one) within 1%
  - {claim: preemptions(two) <= preemptions(one), fires: [preemptions(one)]}
",
    ]
    .concat();
    let findings = run(text);
    let outcomes: Vec<Outcome> = findings.verdicts.iter().map(|v| v.outcome).collect();
    let expected = [Outcome::Confirmed, Outcome::Refuted, Outcome::NoEffect];
    assert_eq!(outcomes, expected, "{:#?}", findings.verdicts);
    assert!(findings.verdicts[2].why.starts_with("the mechanism never fired: preemptions(one)"));
    assert!(findings.seeds() < 12, "all are answered");
    assert!(findings.lengths.warmup.is_some(), "claims cut the warm-up by default");
    assert_eq!(findings.lengths.times, [1, 1], "a thousand are enough at 62 % load");
    let again = run(text);
    assert_eq!(again.verdicts, findings.verdicts);
    // At 99 % load not even what is allowed is enough; at 125 % no run is.
    let claim = &text[..text.find("    because:").expect("it has a reason")];
    for (rate, outcome) in [("95", Outcome::TooShort), ("120", Outcome::Overloaded)] {
        let near = run(&claim.replace("rate: 60", &format!("rate: {rate}")));
        assert_eq!(near.verdicts[0].outcome, outcome, "{}", near.verdicts[0]);
        assert_eq!(near.seeds(), 3, "more seeds do not help");
        assert_eq!(near.lengths.of(0) > 1, outcome == Outcome::TooShort, "{:?}", near.lengths);
        assert_eq!(near.lengths.of(0), near.lengths.of(1), "arms are sent the same requests");
    }
}

#[test]
fn cells_whose_claims_are_answered_get_no_more_seeds_and_verdicts_stay_what_they_are() {
    let text = &[
        SERVERS,
        "  - {name: three, set: {cluster: {instances: 3}}}
metrics: [ttft_mean]
seeds: 3
max_seeds: 6
hypotheses:
  - claim: ttft_mean(three) < ttft_mean(one)
  # It stays open, since nothing is preempted.
  - {claim: ttft_mean(two) < ttft_mean(one), fires: [preemptions(two)]}
",
    ]
    .concat();
    let seeds = |found: &Findings| found.rows.iter().map(Vec::len).collect::<Vec<usize>>();
    let found = run(text);
    assert_eq!(seeds(&found), [6, 6, 3]);
    assert_eq!(found.seeds(), 6);
    let told: Vec<(Outcome, usize)> = found.verdicts.iter().map(|v| (v.outcome, v.seeds)).collect();
    assert_eq!(told, [(Outcome::Confirmed, 3), (Outcome::Inconclusive, 6)]);
    let study = read(text).expect("legal");
    let place = &study.answer(&found).expect("arms differ").places[0];
    let ranked = place.ranked[1..].iter().filter_map(|one| one.times_best);
    assert_eq!(ranked.map(|ratio| ratio.values).collect::<Vec<usize>>(), [3, 3], "what all have");
    // A judge that is shown all seeds of all cells says the same.
    let warmup = found.lengths.warmup;
    let rows = study.rows(&[0, 1, 2], 6, warmup, &Runner::default()).expect("it runs");
    let all = Findings { rows, lengths: found.lengths.clone(), ..Findings::default() };
    let mut judge = Judge::new(&study.hypotheses, &study.design, (3, 6), ALPHA);
    while judge.next_look().is_some() {
        judge.look(&study.evidence(&all));
    }
    assert_eq!(judge.finish(), found.verdicts);
    let counted = run(&text.replace("preemptions(two)", "preemptions(three)"));
    assert_eq!(seeds(&counted), [6, 6, 6], "a mechanism is looked at too");
}

/// One server of 10 ms a request at this rate, in these seeds.
fn one_server(rate: u32, requests: u32, first_seed: u64) -> Study {
    let text = format!(
        "
question: how long is the tail?
base:
  latency: {{model: constant, step_us: 1000}}
  engine: {{max_num_running_reqs: 1, total_kv_blocks: 1000}}
  workload:
    mix:
      aggregate_rate: {rate}
      num_requests: {requests}
      clients:
        - rate_fraction: 1
          arrival: {{process: poisson}}
          input_distribution: {{type: constant, params: {{value: 16}}}}
          output_distribution: {{type: constant, params: {{value: 10}}}}
arms: [{{name: one}}]
metrics: [ttft_p99]
first_seed: {first_seed}
seeds: 5
max_seeds: 5
hypotheses: [{{claim: ttft_p99(one) > 1}}]
"
    );
    read(&text).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn near_saturation_runs_are_long_enough_for_the_tail_or_the_verdict_is_too_short() {
    let p99 = study_metric("ttft_p99");
    let mut answered = Vec::new();
    for (rate, truth) in [(70, 66.4), (90, 229.0), (95, 466.0), (98, 1_150.0)] {
        let mut found = Vec::new();
        for first_seed in (0..4).map(|set| 1_000 + 100 * set) {
            let study = one_server(rate, 1_000, first_seed);
            let findings = study.run(&Runner::default()).expect("it runs");
            if findings.verdicts[0].outcome != Outcome::TooShort {
                found.push(findings.mean(0, &p99).expect("it has a tail").0 / truth);
            }
        }
        let mean = found.iter().sum::<f64>() / float(found.len().max(1) as u64);
        assert!(found.is_empty() || (mean - 1.0).abs() < 0.2, "{rate}: {found:?}");
        answered.push(found.len());
    }
    assert_eq!((answered[0], answered[3]), (4, 0), "at 70 and at 98 %: {answered:?}");
}

#[test]
fn longer_runs_are_called_too_short_less_often() {
    let flagged = |requests: u32| {
        let short = |set: &u64| {
            let study = one_server(90, requests, 1_000 + 100 * set);
            let rows = study.rows(&[0], 5, Some(0.0), &Runner::default());
            lengths::are_too_short(&rows.expect("it runs")[0])
        };
        (0..12).filter(short).count()
    };
    let flagged: Vec<usize> = [500, 2_000, 8_000, 32_000].map(flagged).to_vec();
    assert!(flagged.is_sorted_by(|short, long| short >= long), "{flagged:?}");
    assert!(flagged[0] == 12 && flagged[3] <= 2, "{flagged:?}");
}

#[test]
fn rankings_get_longer_runs_where_most_arms_still_fill_up_but_not_for_one_bad_arm() {
    // Nobody waits. 200 tokens of so many ms each; all requests come within 3 s.
    let times = |step_ms: [u32; 3]| {
        let arm = |(name, ms): (&str, u32)| {
            format!("  - {{name: {name}, set: {{latency: {{step_us: {}}}}}}}\n", 1_000 * ms)
        };
        let arms: String = ["a", "b", "c"].into_iter().zip(step_ms).map(arm).collect();
        let text = format!(
            "
question: which?
base:
  latency: {{model: constant}}
  engine: {{max_num_running_reqs: 4096, total_kv_blocks: 1000000}}
  workload: {{distribution: {{rate: 300, num_requests: 900, prompt_tokens: {{mean: 16, stdev: 0}}, output_tokens: {{mean: 200, stdev: 0}}}}}}
arms:
{arms}metrics: [ttft_p99]
warmup: 0s
hypotheses: [{{claim: responses_per_sec(a) > 1}}]
"
        );
        let study = read(&text).unwrap_or_else(|problem| panic!("{problem}"));
        let findings = study.run(&Runner::default()).expect("it runs");
        let loads: Vec<_> = (0..3).map(|cell| study.load(&findings, cell)).collect();
        let ranked = study.answer(&findings).expect("arms differ").places[0].ranked.len();
        (findings.lengths.of(0), loads, ranked)
    };
    assert_eq!(times([10, 10, 1]), (4, vec!["growing", "growing", "stable"], 1));
    assert_eq!(times([1, 1, 10]), (1, vec!["stable", "stable", "growing"], 2));
}

#[test]
fn at_least_half_of_each_run_counts_at_every_rate() {
    let text = "
question: what happens above saturation?
base: {workload: {distribution: {num_requests: 1000}}}
arms: [{name: a}, {name: b, set: {cluster: {instances: 2}}}]
sweep: {workload.distribution.rate: [10, 50]}
metrics: [ttft_p99]
warmup: auto
";
    let study = read(text).unwrap_or_else(|problem| panic!("{problem}"));
    let times = |study: &Study, warmup: f64| {
        let mut lengths = Lengths { warmup: Some(warmup), times: vec![1; study.cells.len()] };
        study.outlast(&mut lengths);
        let of = |rate| study.cells.iter().position(|cell| cell.levels.contains(&rate));
        ["10", "50"].map(|rate| lengths.of(of(rate.to_owned()).expect("a cell")))
    };
    assert_eq!(times(&study, 9.0), [1, 1], "of 100 s and 20 s");
    assert_eq!(times(&study, 30.0), [1, 4]);
    assert_eq!(times(&study, 1e6), [16, 16], "there is a bound");
    let written = read(&format!("{text}length: written\n")).expect("it is a study");
    assert_eq!(times(&written, 30.0), [1, 1]);
}

#[test]
fn the_warm_up_is_the_same_for_all_cells_and_their_requests_are_not_counted() {
    let text = "
question: nothing
base: {workload: {distribution: {rate: 10, num_requests: 200}}}
arms: [{name: a}, {name: b, set: {cluster: {instances: 2}}}]
metrics: [offered]
seeds: 2
warmup: 5s
";
    let findings = run(text);
    assert_eq!(findings.lengths.warmup, Some(5.0));
    let offered = Metric::parse("offered").expect("known");
    for seed in 0..2 {
        let counted = |cell: usize| findings.values(cell, &offered)[seed];
        assert!((100.0..190.0).contains(&counted(0)), "{}", counted(0));
        assert!((counted(0) - counted(1)).abs() < 1e-9, "both are sent the same");
    }
}

/// Servers of 10 ms a request, one and two of them.
const CAPACITY: &str = "
question: how much more do two serve?
base:
  latency: {model: constant, step_us: 1000}
  engine: {max_num_running_reqs: 1, total_kv_blocks: 1000}
  workload: {distribution: {rate: 20, num_requests: 1000, prompt_tokens: {mean: 16, stdev: 0}, \
output_tokens: {mean: 10, stdev: 0}}}
arms:
  - {name: one}
  - {name: two, set: {cluster: {instances: 2}}}
seeds: 3
capacity: {slo: ['ttft_p99 <= 6ms', 'completed >= 0.99 * offered']}
metrics: [capacity, ttft_p99]
hypotheses:
  - {claim: capacity(two) >= 1.9 * capacity(one)}
  - {claim: capacity(two) <= 1.5 * capacity(one)}
  - {claim: capacity(one) > 90}
";

#[test]
fn claims_about_capacities_are_answered_by_searches() {
    let found = run(CAPACITY);
    let outcomes: Vec<Outcome> = found.verdicts.iter().map(|verdict| verdict.outcome).collect();
    assert_eq!(outcomes, [Outcome::Confirmed, Outcome::Refuted, Outcome::Confirmed]);
    let capacity = Metric::CAPACITY;
    let (one, _) = found.mean(0, &capacity).expect("there is one");
    assert!((one - 100.0).abs() < 3.0, "10 ms a request: 100 a second, not {one}");
    let ratio = found.paired(1, 0, &capacity, 0.05).and_then(|paired| paired.ratio);
    assert!(ratio.is_some_and(|ratio| (ratio.mean - 2.0).abs() < 0.1), "{ratio:?}");
    assert!(found.mean(0, &study_metric("ttft_p99")).is_some(), "the runs are there as well");
}

fn study_metric(name: &str) -> Metric {
    Metric::parse(name).expect("known")
}

#[test]
fn capacities_are_only_claimed_where_it_is_said_what_must_hold() {
    for (from, to, message) in [
        (
            "capacity: {slo: ['ttft_p99 <= 6ms', 'completed >= 0.99 * offered']}\n",
            "",
            "with `capacity",
        ),
        ("'ttft_p99 <= 6ms'", "'ttft_p98 <= 6ms'", "capacity.slo[0]: unknown number `ttft_p98`"),
        ("['ttft_p99 <= 6ms', 'completed >= 0.99 * offered']", "[]", "any rate would do"),
        ("offered']}", "offered'], vary: rates}", "found `rates`, did you mean `rate`?"),
        ("offered']}", "offered'], vary: instances}", "`capacity` takes a search"),
    ] {
        let text = CAPACITY.replace(from, to);
        assert_ne!(text, CAPACITY, "{from}");
        let found = read(&text).expect_err(message).to_string();
        assert!(found.contains(message), "{found}\nnot: {message}");
    }
}

const SETTINGS: &str = "
question: does it help?
base: {workload: {distribution: {rate: 20, num_requests: 300}}}
workloads:
  - {name: as written, set: {warmup_s: 0, workload: {distribution: {num_requests: 200}}}}
  - {name: twice, set: {cluster: {instances: 2}}}
  - {name: four times, set: {cluster: {instances: 4}}}
arms:
  - {name: plain}
  - {name: full, set: {scheduler: sjf}}
metrics: [ttft_mean]
discussion: |
  First.

  Second.
";

#[test]
fn a_hypothesis_in_each_workload_is_one_for_each() {
    let hypotheses = "
hypotheses:
  - {name: H1, in: each, claim: ttft_mean(full) < ttft_mean(plain), predict: -20%,
     because: short ones go first, fires: [preemptions(plain)]}
  - {name: H2, in: [four times, as written], claim: ttft_mean(full) < ttft_mean(plain @ twice)}
  - {name: H3, claim: ttft_mean(full) > 0}
";
    let study = read(&format!("{SETTINGS}{hypotheses}")).expect("legal");
    let told: Vec<(&str, &str)> =
        study.hypotheses.iter().map(|one| (one.name.as_str(), one.text.as_str())).collect();
    assert_eq!(told[0].0, "H1 @ as written");
    assert_eq!(told[1], ("H1 @ twice", "ttft_mean(full @ twice) < ttft_mean(plain @ twice)"));
    assert_eq!(told[2].0, "H1 @ four times");
    let other = "ttft_mean(full @ four times) < ttft_mean(plain @ twice)";
    assert_eq!(told[3], ("H2 @ four times", other), "what is named stays");
    assert_eq!(told[4].0, "H2 @ as written");
    assert_eq!(told[5], ("H3", "ttft_mean(full) > 0"), "one verdict on all workloads");
    let second = &study.hypotheses[1];
    assert_eq!(second.fires[0].0, "preemptions(plain @ twice)");
    assert!(second.predict.is_some() && second.because.is_some(), "{second:?}");
    assert_eq!(second.claim, crate::hypothesis::parse(told[1].1, &study.design).expect("legal"));
}

#[test]
fn workloads_that_are_none_are_told_before_anything_runs() {
    let with = |places: &str| {
        let text = format!("hypotheses: [{{claim: ttft_mean(full) < 1, in: {places}}}]\n");
        read(&format!("{SETTINGS}{text}")).expect_err(places).to_string()
    };
    assert!(with("[twcie]").contains("hypotheses[0].in: unknown workload `twcie`, did you mean"));
    assert!(with("[]").contains("hypotheses[0].in: legal: `each`, or a list of workloads: `as"));
    assert!(with("{a: 1}").contains("hypotheses[0].in: found a group of fields; legal: "));
    assert!(with("[[twice]]").contains("hypotheses[0].in[0]: found a list of 1; legal: text"));
    let none = format!("{STRATEGY}hypotheses: [{{claim: ttft_p99(full) < 1, in: each}}]\n");
    let found = read(&none).expect_err("no workloads").to_string();
    assert!(found.contains("the study has no workloads; remove it"), "{found}");
}

#[test]
fn a_workload_that_says_its_warm_up_keeps_it() {
    for (line, seconds) in [("warmup: 4s", Some(4.0)), ("warmup: auto", None)] {
        let study = read(&format!("{SETTINGS}{line}\n")).expect("legal");
        let own: Vec<bool> = study.cells.iter().map(|cell| cell.own_warmup).collect();
        assert_eq!(own, [true, true, false, false, false, false]);
        let warmup = study.settle(&Runner::default()).expect("it runs");
        let expected = seconds.or(warmup).expect("it is known");
        let plans = study.plans(&Lengths { warmup, ..Lengths::default() });
        for (plan, own) in plans.iter().zip(own) {
            let left_out = plan.warmup.as_secs_f64();
            let expected = if own { 0.0 } else { expected };
            assert!((left_out - expected).abs() < 1e-9, "{line}: {left_out}, not {expected}");
        }
    }
}

#[test]
fn what_is_said_besides_is_kept_as_written() {
    let study = read(SETTINGS).expect("legal");
    assert_eq!(study.discussion.as_deref(), Some("First.\n\nSecond.\n"));
}

#[test]
fn the_arm_of_a_study_may_choose_a_strategy_and_sweep_its_parameters() {
    let arm = yaml::read_text("a.yaml", "strategy: {name: no-kv, params: {pa: 5}}");
    let mut tree = yaml::read_text("b.yaml", "routing: random\nscheduler: sjf").expect("YAML");
    patch::apply(&mut tree, &patch::settings(&arm.expect("YAML")));
    let plan = blis_scenario::Draft::from_tree(tree).plan().expect("legal");
    assert_eq!(plan.routing(), "weighted(prefix-affinity:5,queue-depth:2; max-score)");
    assert_eq!(plan.scheduler(), "fcfs");
}

#[test]
fn the_answer_ranks_arms_by_place_and_leaves_out_overloaded_ones() {
    let text = "
question: which?
base:
  latency: {model: constant, step_us: 1000}
  engine: {max_num_running_reqs: 1, total_kv_blocks: 1000, async_scheduling: false}
workloads:
  - {name: calm, set: {workload: {distribution: {rate: 40, num_requests: 900, prompt_tokens: {mean: 16, stdev: 0}, output_tokens: {mean: 10, stdev: 8, min: 1, max: 40}}}}}
  - {name: busy, set: {workload: {distribution: {rate: 150, num_requests: 900, prompt_tokens: {mean: 16, stdev: 0}, output_tokens: {mean: 10, stdev: 8, min: 1, max: 40}}}}}
arms:
  - {name: one}
  - {name: two, set: {cluster: {instances: 2}}}
  - {name: also two, set: {cluster: {instances: 2}, routing: round-robin}}
references: false
metrics: [ttft_p99]
seeds: 4
";
    let outline = file::study(&yaml::read_text("s.yaml", text).expect("well-formed"));
    let study = outline.expect("legal").settle(&Runner::default()).expect("legal");
    let findings = study.run(&Runner::default()).expect("it runs");
    let answer = study.answer(&findings).expect("arms differ");
    let names: Vec<&str> = answer.places.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["calm", "busy"]);
    let last = answer.places[0].ranked.last().expect("three arms");
    assert!(last.arm == 0 && !last.is_level(), "one server is slower for sure: {last:?}");
    assert!(answer.places[0].ranked[1].is_level(), "two equal arms cannot be told apart");
    let busy: Vec<usize> = answer.places[1].ranked.iter().map(|one| one.arm).collect();
    assert_eq!((busy.len(), &answer.places[1].overloaded[..]), (2, &[0][..]));
    let worst = answer.regrets.last().expect("three arms");
    assert_eq!((worst.arm, &worst.overloaded[..]), (0, &[1][..]), "it does not keep up");
    assert!(answer.regrets[0].times.is_some_and(|(times, _)| (1.0..1.1).contains(&times.mean)));
}

#[test]
fn a_gate_that_refuses_what_every_arm_without_one_serves_is_found() {
    let text = format!("{STRATEGY}references: false\nseeds: 3\nmax_seeds: 3\n");
    let gates = |text: &str| {
        let outline = file::study(&yaml::read_text("s.yaml", text).expect("well-formed"));
        let settled = outline.expect("legal").settle(&Runner::default());
        let study = settled.expect("legal");
        let found = study.run(&Runner::default()).expect("it runs");
        study.needless_gates(&found)
    };
    let found = gates(&text);
    let [gate] = found[..] else { panic!("one arm has a gate: {found:?}") };
    assert_eq!((gate.cell, gate.class, gate.served_in), (1, blis_core::SloClass::Standard, 0));
    assert!(gate.refused > 0.1 && gate.refused < 1.0, "{gate:?}");
    // Where nobody can serve everybody, refusing is right.
    assert_eq!(gates(&text.replace("rate: 8,", "rate: 800,")), []);
}
