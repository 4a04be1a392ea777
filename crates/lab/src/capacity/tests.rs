//! Searches whose answer is known.

use super::{Findings, Found, Question, Search, Slo, Standing, Subject, Vary};
use crate::design::Warmup;
use crate::trial::Runner;
use blis_scenario::scenario::Draft;

/// One request at a time, each 10 steps of 1 ms: a server with a constant service of 10 ms.
fn server(arrival: &str, rate: f64, instances: u32, requests: u32) -> Draft {
    let text = format!(
        "cluster: {{instances: {instances}}}\n\
         latency: {{model: constant, step_us: 1000}}\n\
         engine: {{max_num_running_reqs: 1, total_kv_blocks: 1000}}\n\
         workload: {{distribution: {{rate: {rate}, arrival: {arrival}, num_requests: {requests}, \
         prompt_tokens: {{mean: 16, stdev: 0}}, output_tokens: {{mean: 10, stdev: 0}}}}}}\n"
    );
    Draft::from_text("s.yaml", &text).expect("well-formed")
}

fn subject(name: &str, draft: Draft, vary: Vary) -> Subject {
    let plan = draft.plan().expect("legal");
    Subject::new(name, draft, &plan, vary).expect("legal")
}

fn question(slo: &str, vary: Vary) -> Question {
    Question::new(Slo::parse(slo).expect("legal"), vary)
}

fn found(search: &Search, jobs: usize) -> Findings {
    let runner = Runner { jobs, ..Runner::default() };
    search.run(&runner).expect("it runs")
}

/// The load at which the mean wait in M/D/1 is so many services: rho / (2 (1 - rho)).
fn pollaczek_khinchine(services: f64) -> f64 {
    2.0 * services / (1.0 + 2.0 * services)
}

#[test]
fn the_capacity_of_a_single_server_is_that_of_pollaczek_and_khinchine() {
    let draft = || server("poisson", 20.0, 1, 8_000);
    let mut last = 0.0;
    for wait_ms in [2.5, 25.0] {
        // The first token comes one step after the wait.
        let slo = format!("ttft_mean <= {}ms", wait_ms + 1.0);
        let question = Question { warmup: Warmup::Seconds(5.0), ..question(&slo, Vary::Rate) };
        let search = Search {
            name: "test".to_owned(),
            question,
            subjects: vec![subject("one", draft(), Vary::Rate)],
        };
        let all = found(&search, 2);
        let answer = &all.answers[0];
        let exact = 100.0 * pollaczek_khinchine(wait_ms / 10.0);
        let estimate = answer.estimate.expect("several seeds");
        assert!((estimate.mean / exact - 1.0).abs() < 0.02, "{estimate:?}, exactly {exact}");
        assert!(estimate.low <= exact && exact <= estimate.high, "{estimate:?} without {exact}");
        let safe = answer.safe.expect("some rate meets it");
        assert!(safe <= 1.01 * exact && safe >= 0.9 * exact, "{safe} of {exact}");
        assert!(estimate.mean > last, "a looser bound allows more");
        last = estimate.mean;
        let beyond = answer.points.last().expect("there are points");
        assert_eq!(beyond.standing, Standing::Misses, "{beyond:?}");
        assert_eq!(answer.points[0].standing, Standing::Meets);
        assert!(answer.points.windows(2).all(|pair| pair[0].value < pair[1].value));
    }
}

#[test]
fn the_capacity_of_one_tenant_is_that_of_a_server_with_its_requests_alone() {
    let text = "latency: {model: constant, step_us: 1000}
engine: {max_num_running_reqs: 1, total_kv_blocks: 1000}
workload:
  mix:
    aggregate_rate: 20
    num_requests: 1000
    clients:
      - {id: c, tenant_id: acme, rate_fraction: 1, arrival: {process: poisson},
         input_distribution: {type: constant, params: {value: 16}},
         output_distribution: {type: constant, params: {value: 10}}}
";
    let capacity = |slo: &str| {
        let draft = Draft::from_text("s.yaml", text).expect("well-formed");
        let question =
            Question { warmup: Warmup::Seconds(5.0), max_seeds: 5, ..question(slo, Vary::Rate) };
        let subjects = vec![subject("one", draft, Vary::Rate)];
        found(&Search { name: "test".to_owned(), question, subjects }, 2).answers[0].estimate
    };
    let all = capacity("ttft_mean <= 11ms");
    assert!(all.is_some(), "some rate meets it");
    assert_eq!(capacity("tenants.acme.ttft_mean <= 11ms"), all, "nobody else sends requests");
}

#[test]
fn what_no_target_limits_is_limited_by_saturation() {
    // 10 ms a request: 100 a second, however patient the clients.
    let search = Search {
        name: "test".to_owned(),
        question: question("e2e_mean <= 1000s", Vary::Rate),
        subjects: vec![subject("one", server("constant", 400.0, 1, 2_000), Vary::Rate)],
    };
    let answer = &found(&search, 0).answers[0];
    let estimate = answer.estimate.expect("several seeds");
    assert!((estimate.mean / 100.0 - 1.0).abs() < 0.03, "{estimate:?}");
    let last = answer.points.last().expect("there are points");
    assert_eq!(last.standing, Standing::Saturated);
}

#[test]
fn the_fewest_instances_are_as_many_as_the_load_fills() {
    // Evenly spaced arrivals, 250 a second, to servers of 100 a second each.
    let search = Search {
        name: "test".to_owned(),
        question: question("ttft_p99 <= 2ms", Vary::Instances),
        subjects: vec![subject("k", server("constant", 250.0, 8, 2_000), Vary::Instances)],
    };
    let answer = &found(&search, 0).answers[0];
    assert_eq!(answer.safe, Some(3.0));
    assert!(answer.values.iter().all(|value| *value == Some(3.0)), "{:?}", answer.values);
    let standings: Vec<(f64, Standing)> =
        answer.points.iter().map(|point| (point.value, point.standing)).collect();
    assert!(standings.contains(&(3.0, Standing::Meets)), "{standings:?}");
    assert!(standings.contains(&(2.0, Standing::Saturated)), "{standings:?}");
}

#[test]
fn a_cluster_twice_as_large_has_twice_the_capacity_seed_by_seed() {
    let question = question("ttft_mean <= 6ms", Vary::Rate);
    let subjects = [1, 2].map(|instances| {
        let draft = server("constant", 20.0, instances, 2_000);
        subject(&instances.to_string(), draft, Vary::Rate)
    });
    let all = found(&Search { name: "test".to_owned(), question, subjects: subjects.to_vec() }, 0);
    assert!(all.ratios[0].is_none());
    let ratio = all.ratios[1].expect("both have one");
    assert!((ratio.mean - 2.0).abs() < 0.05, "{ratio:?}");
}

#[test]
fn the_same_question_has_the_same_answer_on_any_number_of_threads() {
    let search = Search {
        name: "test".to_owned(),
        question: Question { max_seeds: 5, ..question("ttft_p90 <= 30ms", Vary::Rate) },
        subjects: vec![subject("one", server("poisson", 3.0, 1, 1_500), Vary::Rate)],
    };
    let (one, four) = (found(&search, 1), found(&search, 4));
    assert_eq!(format!("{one:?}"), format!("{four:?}"));
    assert!(one.trials > 30 && one.trials < 200, "{} runs", one.trials);
}

#[test]
fn runs_that_are_too_short_are_made_longer() {
    let search = Search {
        name: "test".to_owned(),
        question: question("ttft_mean <= 11ms", Vary::Rate),
        subjects: vec![subject("one", server("poisson", 20.0, 1, 100), Vary::Rate)],
    };
    let all = found(&search, 0);
    assert!(all.stretch >= 8 && all.requests >= 1_000, "{} times as long", all.stretch);
    let capped =
        Search { question: Question { most_requests: 100, ..search.question.clone() }, ..search };
    assert_eq!(found(&capped, 0).stretch, 1);
}

#[test]
fn a_target_that_no_rate_meets_or_that_none_breaks_is_told() {
    let one = |slo: &str, more: &str| {
        let mut draft = server("constant", 20.0, 1, 1_000);
        if !more.is_empty() {
            draft.set_policy("--admission-policy", "admission", more);
        }
        let question = question(slo, Vary::Rate);
        let search = Search {
            name: "test".to_owned(),
            question,
            subjects: vec![subject("one", draft, Vary::Rate)],
        };
        found(&search, 0).answers.remove(0)
    };
    let never = one("e2e_mean <= 9ms", "");
    let Found::Never { why, .. } = &never.found else { panic!("{never:?}") };
    assert_eq!(why, "`e2e_mean <= 9ms`: it is 10 ms there");
    assert!(never.estimate.is_none() && never.points.is_empty());
    let unlimited = one("completed >= 0", "reject-all");
    assert!(matches!(unlimited.found, Found::Unlimited { at } if at > 1e6), "{unlimited:?}");
}

#[test]
fn usual_targets_are_those_of_the_classes_that_send() {
    let mut draft = server("constant", 20.0, 1, 1_000);
    let none = Slo::usual(&draft.plan().expect("legal")).expect_err("no targets");
    assert!(none.to_string().contains("no class with requests has a target"), "{none}");
    draft.set("--slo", "slo", "chat");
    let usual = Slo::usual(&draft.plan().expect("legal")).expect("targets");
    let texts: Vec<&str> = usual.iter().map(|slo| slo.text.as_str()).collect();
    assert_eq!(texts, ["standard.slo_attainment >= 95%"]);
}
