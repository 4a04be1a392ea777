//! The requests that specifications and presets stand for, counted and measured.
//!
//! The source is driven directly, so that 20,000 requests cost milliseconds; closed loops are told
//! that every answer took a second.

use crate::harness::{plan, run_audited};
use blis_core::math::float;
use blis_core::{Ending, Request, SloClass, Source, Span, Time};
use blis_metrics::{Fact, Listener};
use blis_scenario::presets::{self, Preset};
use blis_scenario::scenario::Workload;
use blis_scenario::workload_spec::{SpecFile, read_text};
use blis_sim::Pace;
use blis_workload::Mix;

const MODEL: &str = "meta-llama/llama-3.1-8b-instruct";
/// Sampling errors beyond this many standard deviations are none.
const SIGMAS: f64 = 4.5;

/// All requests of `mix`, the later rounds of a closed loop right after the first.
fn drive(mix: &Mix) -> Vec<Request> {
    mix.validate().unwrap_or_else(|error| panic!("{error}"));
    let mut source = mix.source();
    let mut requests = Vec::new();
    while let Some(request) = source.next_request().expect("a mix does not fail") {
        let mut next = Some(request);
        while let Some(request) = next {
            let answered = request.arrival + Span::from_secs_f64(1.0);
            next = source.follow_up(&request, Ending::Finished, answered);
            requests.push(request);
        }
    }
    requests
}

fn spec(text: &str) -> SpecFile {
    read_text("w.yaml", text, Some(MODEL)).unwrap_or_else(|problem| panic!("{problem}"))
}

fn number(count: usize) -> f64 {
    float(count as u64)
}

/// The mean of `of` over `requests`.
fn mean(requests: &[Request], of: impl Fn(&Request) -> u32) -> f64 {
    requests.iter().map(|request| f64::from(of(request))).sum::<f64>() / number(requests.len())
}

/// `found` is within the sampling error of `expected`, whose standard deviation is `deviation`.
#[track_caller]
fn near(found: f64, expected: f64, deviation: f64, what: &str) {
    let off = (found - expected).abs();
    assert!(off <= SIGMAS * deviation, "{what}: {found}, not {expected} ± {deviation}");
}

/// What a preset promises.
struct Promise {
    name: &'static str,
    /// Share of the requests of each class.
    classes: &'static [(SloClass, f64)],
    /// Tenants, and tokens of the prefix.
    tenants: usize,
    prefix: u32,
    /// Mean tokens of the new part of a first prompt, and of an output.
    input: f64,
    output: f64,
    /// Mean rounds; 1: requests stand alone.
    rounds: f64,
    /// The greatest coefficient of variation of the gaps.
    cv: f64,
}

const TIERS: &[(SloClass, f64)] =
    &[(SloClass::Critical, 0.2), (SloClass::Standard, 0.5), (SloClass::Sheddable, 0.3)];
const TURNS: &[(SloClass, f64)] = &[(SloClass::Critical, 0.3), (SloClass::Batch, 0.7)];
const STANDARD: &[(SloClass, f64)] = &[(SloClass::Standard, 1.0)];

const fn alone(name: &'static str, input: f64, output: f64) -> Promise {
    let (classes, tenants, prefix, rounds, cv) = (STANDARD, 1, 0, 1.0, 1.0);
    Promise { name, classes, tenants, prefix, input, output, rounds, cv }
}

const fn tiers(name: &'static str, input: f64) -> Promise {
    Promise { classes: TIERS, tenants: 3, cv: 2.0, ..alone(name, input, 128.0) }
}

const PROMISES: &[Promise] = &[
    Promise { prefix: 512, ..tiers("orthogonal-slo", 256.4) },
    Promise { tenants: 32, prefix: 512, rounds: 4.0, ..tiers("orthogonal-slo-32", 256.4) },
    Promise { tenants: 32, prefix: 512, rounds: 4.0, cv: 6.0, ..alone("bursts-32", 256.4, 128.0) },
    tiers("independent", 768.4),
    Promise { classes: TURNS, tenants: 2, rounds: 4.0, ..alone("multi-turn-4x512", 512.0, 256.0) },
    Promise { tenants: 5, prefix: 4_096, ..alone("rag-4096", 256.4, 128.0) },
    Promise { tenants: 10, prefix: 2_048, rounds: 5.0, ..alone("agentic-2048", 256.4, 128.0) },
    Promise { tenants: 150, prefix: 6_000, ..alone("saas-150x6000", 1_200.0, 1_000.0) },
    alone("chatbot", 256.3, 256.3),
    alone("summarization", 4_096.0, 512.0),
    alone("contentgen", 1_024.0, 1_024.0),
    alone("multidoc", 10_240.0, 1_536.0),
];

/// The preset's mix at a saturation of 1,000 a second, with `requests` requests.
fn mix_of(preset: &Preset, requests: u64) -> Mix {
    let file = preset.read(Some(MODEL)).unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(file.notes, [""; 0], "{}: a preset has nothing without effect", preset.name);
    assert!(file.slo.is_some() && file.description.is_some(), "{}", preset.name);
    let rate = file.rate.expect("a preset has a rate").rate(1_000.0);
    Mix { rate, num_requests: Some(requests), seed: 11, ..file.mix }
}

#[test]
fn every_preset_keeps_its_promise() {
    for promise in PROMISES {
        let preset = presets::find(promise.name).expect("it ships");
        let mix = mix_of(preset, 20_000);
        let requests = drive(&mix);
        assert_eq!(requests.len(), 20_000, "{}", promise.name);
        check_shares(promise, &requests);
        check_lengths(promise, &requests);
        check_rate(promise, &mix, &requests);
    }
    // The one with two different parts has a test of its own.
    assert_eq!(PROMISES.len() + 1, presets::ALL.len(), "a preset without a promise");
}

fn check_shares(promise: &Promise, requests: &[Request]) {
    let name = promise.name;
    let total = number(requests.len());
    for &(class, share) in promise.classes {
        let found = number(requests.iter().filter(|request| request.class == class).count());
        // Bursts and rounds come together: fewer independent choices than requests.
        let spread = promise.cv * promise.cv * promise.rounds;
        let deviation = (spread * share * (1.0 - share) / total).sqrt();
        near(found / total, share, deviation, &format!("{name}: share of {}", class.name()));
    }
    let known = |class| promise.classes.iter().any(|&(known, _)| known == class);
    assert!(requests.iter().all(|request| known(request.class)), "{name}: another class");
    let mut tenants: Vec<u32> = requests.iter().map(|request| request.tenant.0).collect();
    tenants.sort_unstable();
    tenants.dedup();
    assert_eq!(tenants.len(), promise.tenants, "{name}: tenants");
}

fn check_lengths(promise: &Promise, requests: &[Request]) {
    let name = promise.name;
    let first: Vec<Request> = requests.iter().filter(|r| r.round == 0).cloned().collect();
    assert!(first.len() > 2_000, "{name}: enough sessions");
    let groups = |request: &Request| {
        let segments = request.content.segments();
        if promise.prefix == 0 { segments.len() == 1 } else { segments[0].tokens == promise.prefix }
    };
    assert!(requests.iter().all(groups), "{name}: prefix of {} tokens", promise.prefix);
    // No length here varies more than an exponential one.
    let deviation = |mean: f64, requests: &[Request]| mean / number(requests.len()).sqrt();
    let input = mean(&first, |request| request.content.prompt_tokens() - promise.prefix);
    near(input, promise.input, deviation(promise.input, &first), &format!("{name}: input"));
    let output = mean(requests, |request| request.output_tokens);
    near(output, promise.output, deviation(promise.output, requests), &format!("{name}: output"));
    let rounds = number(requests.len()) / number(first.len());
    let spread = if promise.rounds > 4.0 { promise.rounds } else { 0.01 };
    near(rounds, promise.rounds, spread / number(first.len()).sqrt(), &format!("{name}: rounds"));
}

/// Arrivals follow the rate: their number is what the rate gives until the last of them.
fn check_rate(promise: &Promise, mix: &Mix, requests: &[Request]) {
    let arrivals: Vec<Time> =
        requests.iter().filter(|request| request.round == 0).map(|r| r.arrival).collect();
    let last = arrivals.iter().copied().max().expect("there are some");
    let expected = mix.rate.requests_before(last);
    let deviation = promise.cv * expected.sqrt();
    near(number(arrivals.len()), expected, deviation, &format!("{}: arrivals", promise.name));
}

#[test]
fn conversations_of_the_preset_grow_by_768_tokens_a_round() {
    let requests = drive(&mix_of(presets::find("multi-turn-4x512").expect("it ships"), 4_000));
    for request in &requests {
        assert_eq!(request.content.prompt_tokens(), 512 + 768 * request.round);
    }
    assert!(requests.iter().any(|request| request.round == 3), "the last round was met");
}

#[test]
fn the_mixed_preset_has_critical_requests_alone_and_batch_conversations() {
    let requests = drive(&mix_of(presets::find("mixed-slo-multi-turn").expect("it ships"), 20_000));
    let (critical, batch): (Vec<Request>, Vec<Request>) =
        requests.into_iter().partition(|request| request.class == SloClass::Critical);
    // Each conversation is four requests at once.
    near(number(critical.len()) / 20_000.0, 0.3, (4.0 * 0.21 / 20_000.0_f64).sqrt(), "critical");
    assert!(critical.iter().all(|r| r.session.is_none() && r.content.segments()[0].tokens == 512));
    assert!(batch.iter().all(|r| r.session.is_some() && r.class == SloClass::Batch));
    assert!(batch.iter().any(|r| r.content.prompt_tokens() == 2_816), "a fourth round");
}

#[test]
fn the_ramp_of_the_tenants_ends_by_itself() {
    let preset = presets::find("saas-150x6000").expect("it ships");
    let file = preset.read(Some(MODEL)).expect("it is legal");
    let requests = drive(&Mix { seed: 3, ..file.mix });
    near(number(requests.len()), 18_900.0, 18_900.0_f64.sqrt(), "requests of the ramp");
    let half = requests.iter().filter(|r| r.arrival < Time::from_micros(300_000_000)).count();
    near(number(half), 5_175.0, 5_175.0_f64.sqrt(), "requests of its first half");
}

#[test]
fn an_unknown_preset_is_refused_with_the_nearest_name() {
    let message = presets::find("chatbut").expect_err("unknown");
    assert!(message.starts_with("unknown preset `chatbut`, did you mean `chatbot`?; known: `orth"));
}

#[test]
fn presets_have_headers_that_say_where_the_numbers_are_from() {
    for preset in presets::ALL {
        for part in ["# Models ", "# Numbers: ", "# Reading it: "] {
            let found = preset.text.contains(part) || preset.name == "independent";
            assert!(found, "{}: no `{part}`", preset.name);
        }
        assert!(!preset.summary.contains('\n') && preset.summary.len() < 90, "{}", preset.name);
    }
}

/// Our own copy of a specification with everything that the Go program's sample has.
const THREE_CLASSES: &str = r#"
version: "2"
seed: 42
category: reasoning
aggregate_rate: 20
num_requests: 20000
clients:
  - id: chat
    tenant_id: tenant-a
    slo_class: critical
    rate_fraction: 0.4
    streaming: true
    prefix_group: sys-a
    prefix_length: 128
    arrival: {process: poisson}
    input_distribution: {type: gaussian, params: {mean: 128, std_dev: 40, min: 16, max: 512}}
    output_distribution: {type: exponential, params: {mean: 64}}
    reasoning:
      reason_ratio_distribution: {type: gaussian, params: {mean: 30, std_dev: 10, min: 0, max: 90}}
      multi_turn: {max_rounds: 4, think_time_us: 500000, context_growth: accumulate}
  - id: api
    tenant_id: tenant-b
    slo_class: standard
    rate_fraction: 0.4
    arrival: {process: gamma, cv: 2.0}
    input_distribution: {type: pareto_lognormal, params: {alpha: 2.0, xm: 100, mu: 5.0, sigma: 0.5, mix_weight: 0.3}}
    output_distribution: {type: constant, params: {value: 50}}
  - id: bulk
    tenant_id: tenant-c
    slo_class: batch
    rate_fraction: 0.2
    arrival: {process: weibull, cv: 1.5}
    input_distribution: {type: empirical, params: {"100": 0.5, "500": 0.3, "1000": 0.2}}
    output_distribution: {type: exponential, params: {mean: 128}}
"#;

#[test]
fn three_classes_with_conversations_come_in_their_shares() {
    let file = spec(THREE_CLASSES);
    assert_eq!(file.notes.len(), 2, "streaming and the ratio of reasoning: {:?}", file.notes);
    let requests = drive(&Mix { seed: 42, ..file.mix });
    let total = number(requests.len());
    // Of 20 arrivals a second 8 are conversations of 4 rounds: 32 + 8 + 4 requests.
    for (class, rate, spread) in [
        (SloClass::Critical, 32.0, 4.0),
        (SloClass::Standard, 8.0, 4.0),
        (SloClass::Batch, 4.0, 2.25),
    ] {
        let found = number(requests.iter().filter(|r| r.class == class).count());
        let share = rate / 44.0;
        let deviation = (spread * share / total).sqrt();
        near(found / total, share, deviation, class.name());
    }
    let critical = requests.iter().filter(|r| r.class == SloClass::Critical);
    let rounds: Vec<usize> =
        (0..4).map(|round| critical.clone().filter(|r| r.round == round).count()).collect();
    assert!(rounds.is_sorted_by(|a, b| a >= b) && rounds[3] > 3_000, "{rounds:?}");
}

fn steady(rate: f64, lines: &str) -> Mix {
    let text = format!(
        "version: 2\naggregate_rate: {rate}\nhorizon: 1\ncohorts:\n  - population: 20\n    \
         rate_fraction: 1\n    arrival: {{process: poisson}}\n    input_distribution: {{type: \
         constant, params: {{value: 1}}}}\n    output_distribution: {{type: constant, params: \
         {{value: 1}}}}\n{lines}"
    );
    spec(&text).mix
}

#[test]
fn a_diurnal_cohort_follows_the_hours_of_two_days() {
    const HOUR: u64 = 3_600_000_000;
    let mix = steady(0.5, "    diurnal: {peak_hour: 14, peak_to_trough_ratio: 4}\n");
    let horizon = Some(Time::from_micros(48 * HOUR));
    let requests = drive(&Mix { horizon, seed: 5, ..mix });
    let mut hours = [0_u32; 48];
    for request in &requests {
        hours[usize::try_from(request.arrival.as_nanos() / (1_000 * HOUR)).expect("an hour")] += 1;
    }
    for (hour, &found) in (0_u32..).zip(&hours) {
        let angle = std::f64::consts::TAU * (f64::from(hour) - 14.0) / 24.0;
        let share = 0.25 + 0.75 * (1.0 + blis_core::math::cos(angle)) / 2.0;
        let expected = 0.5 * 3_600.0 * share;
        near(f64::from(found), expected, expected.sqrt(), &format!("hour {hour}"));
    }
    assert!(hours[14] > 3 * hours[2] && hours[38] > 3 * hours[26], "both days peak: {hours:?}");
}

#[test]
fn windows_spikes_and_drains_bound_the_requests() {
    let inside = |mix: &Mix, horizon_s: u64| {
        let horizon = Some(Time::from_micros(horizon_s * 1_000_000));
        let requests = drive(&Mix { horizon, seed: 5, ..mix.clone() });
        requests.iter().map(|r| r.arrival.as_nanos() / 1_000_000_000).collect::<Vec<u64>>()
    };
    let windows = "    lifecycle: {windows: [{start_us: 2000000, end_us: 4000000}, {start_us: \
                   6000000, end_us: 7000000}]}\n    spike: {start_time_us: 9000000, duration_us: \
                   1000000}\n";
    let seconds = inside(&steady(1_000.0, windows), 20);
    near(number(seconds.len()), 4_000.0, 4_000.0_f64.sqrt(), "requests of 4 s");
    let mut met = seconds.clone();
    met.dedup();
    assert_eq!(met, [2, 3, 6, 9], "only while the clients are there");
    let drain = "    drain: {start_time_us: 5000000, ramp_duration_us: 10000000}\n";
    let seconds = inside(&steady(1_000.0, drain), 20);
    for (second, expected) in [(0, 1_000.0), (4, 1_000.0), (5, 1_000.0), (6, 900.0), (14, 100.0)] {
        let found = number(seconds.iter().filter(|&&at| at == second).count());
        near(found, expected, f64::sqrt(expected), &format!("second {second} of a drain"));
    }
    assert_eq!(seconds.iter().max(), Some(&14), "drained");
}

#[test]
fn stages_send_at_their_rates_and_stop() {
    let text = |chat: bool| {
        format!(
            "version: 2\ninference_perf:\n  stages: [{{rate: 40, duration: 50}}, {{rate: 10, \
             duration: 100}}]\n  shared_prefix: {{num_unique_system_prompts: 4, \
             num_users_per_system_prompt: 5, system_prompt_len: 64, question_len: 8, output_len: \
             8, enable_multi_turn_chat: {chat}}}\n"
        )
    };
    let in_stages = |mix: &Mix| {
        let requests = drive(mix);
        let boundary = Time::from_micros(50_000_000);
        let first = requests.iter().filter(|request| request.arrival < boundary).count();
        let last = requests.iter().map(|request| request.arrival).max().expect("some");
        // The second stage waits for answers, which take a second.
        assert!(last < Time::from_micros(151_000_000), "ends with its last stage: {last}");
        (number(first), number(requests.len() - first))
    };
    let (first, second) = in_stages(&spec(&text(false)).mix);
    near(first, 2_000.0, 2_000.0_f64.sqrt(), "first stage");
    near(second, 1_000.0, 1_000.0_f64.sqrt(), "second stage");
    // Users who chat begin at a random time of their stage and then ask at equal intervals. The
    // time that they begin at is exponential with a mean of one interval, and what they miss of
    // their share is its whole part: 1 / (e - 1) requests in the mean, with a variance of
    // e / (e - 1)^2.
    let e = std::f64::consts::E;
    let (missed, deviation) = (20.0 / (e - 1.0), (20.0 * e).sqrt() / (e - 1.0));
    let (first, second) = in_stages(&spec(&text(true)).mix);
    near(first, 2_000.0 - missed, deviation, "first stage of chats");
    near(second, 1_000.0 - missed, deviation, "second stage of chats");
}

/// The most requests that were under way when one arrived behind a pause of two seconds.
#[derive(Default)]
struct Drained {
    last: Time,
    open: u64,
    behind_pauses: Vec<u64>,
}

impl Listener for Drained {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        match fact {
            Fact::Arrived { .. } => {
                if at.since(self.last) > Span::from_secs_f64(2.0) {
                    self.behind_pauses.push(self.open);
                }
                (self.last, self.open) = (at, self.open + 1);
            }
            Fact::Closed { .. } => self.open -= 1,
            _ => {}
        }
    }
}

#[test]
fn a_stage_is_drained_before_the_next_and_questions_are_asked_again() {
    let mut plan = plan(
        "latency: {model: constant, step_us: 10000}\nengine: {max_num_running_reqs: 4, \
         total_kv_blocks: 1000}\nworkload: {preset: chatbot}\n",
    );
    let text = "version: 2
inference_perf:
  stages: [{rate: 20, duration: 20}, {rate: 10, duration: 20}]
  shared_prefix: {num_unique_system_prompts: 2, num_users_per_system_prompt: 2,
    system_prompt_len: 64, question_len: 32, output_len: 40}
";
    plan.workload = Workload::Mix(spec(text).mix);
    // Ten requests a second are served, so that half of the first stage is left at its end.
    let mut drained = Drained::default();
    let result = run_audited(&plan, Pace::FastForward, &mut drained);
    assert_eq!(drained.behind_pauses, [0]);
    let rate = result.report.kv.hit_rate.expect("prompts were looked up");
    // All but the last token of a prompt that was asked before, in whole blocks: 80 of 96.
    assert!((rate - 80.0 / 96.0).abs() < 0.01, "{rate}");
}

/// Counts who arrives.
#[derive(Default)]
struct Arrivals(u64);

impl Listener for Arrivals {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        self.0 += u64::from(matches!(fact, Fact::Arrived { .. }));
    }
}

#[test]
fn who_is_turned_away_comes_back_as_often_as_it_says() {
    let arrivals = |admission: &str, retry: &str| {
        let text = format!(
            "admission: {admission}\nworkload:\n  mix:\n    aggregate_rate: 50\n    \
             num_requests: 20\n    clients:\n      - {{id: a, rate_fraction: 1, {retry}arrival: \
             {{process: poisson}}, input_distribution: {{type: constant, params: {{value: 9}}}}, \
             output_distribution: {{type: constant, params: {{value: 2}}}}}}\n"
        );
        let mut arrivals = Arrivals::default();
        run_audited(&plan(&text), Pace::FastForward, &mut arrivals);
        arrivals.0
    };
    let retry = "retry: {retries: 2, backoff_ms: 100}, ";
    assert_eq!([arrivals("reject-all", ""), arrivals("reject-all", retry)], [20, 60]);
    assert_eq!(arrivals("always-admit", retry), 20);
}
