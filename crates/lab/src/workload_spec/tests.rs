//! What a specification means, field by field, and what is refused with which words.

use super::*;
use crate::scenario::{Draft, Plan, Workload};
use blis_core::{SloClass, Span};
use blis_workload::{
    Activity, ActivityPart, Arrival, Client, Context, Empirical, Input, Length, Media, OnRejection,
    Pacing, Rate, Sessions, Think,
};

fn spec(text: &str) -> Result<Plan, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("w.yaml");
    std::fs::write(&path, text).expect("the temporary folder can be written");
    let mut draft = Draft::default();
    draft.choose_workload("--workload-spec", "spec", path.to_str());
    draft.resolve().map_err(|problem| {
        problem.to_string().replace(path.to_str().expect("temporary names are text"), "w.yaml")
    })
}

fn with(client: &str) -> String {
    format!(
        "version: '2'\nseed: 7\naggregate_rate: 10\nnum_requests: 5\nclients:\n  - id: c\n    \
         rate_fraction: 1\n    arrival: {{process: poisson}}\n    input_distribution: {{type: \
         constant, params: {{value: 10}}}}\n    output_distribution: {{type: constant, params: \
         {{value: 5}}}}\n{client}"
    )
}

#[track_caller]
fn refused(client: &str, message: &str) {
    assert_eq!(spec(&with(client)).expect_err("must be refused"), message, "{client}");
}

fn mix(plan: &Plan) -> &Mix {
    match &plan.workload {
        Workload::Mix(mix) => mix,
        Workload::Trace { .. } => panic!("a specification is a mix"),
    }
}

#[test]
fn what_is_left_out_has_the_usual_defaults() {
    let plan = spec(&with("    prefix_group: g\n    streaming: yes\n")).expect("legal");
    let client = &mix(&plan).clients[0];
    assert_eq!((client.tenant.as_str(), client.class), ("default", SloClass::Standard));
    assert_eq!((client.prefix_group.as_deref(), client.prefix_tokens), (Some("g"), 50));
    assert_eq!(plan.seed, 7, "the specification's own seed");
}

#[test]
fn a_prefix_needs_a_group_and_a_group_has_one_usual_length() {
    refused(
        "    prefix_length: 9\n",
        "w.yaml:11:20: clients[0].prefix_length: there is no `prefix_group` whose tokens these \
         are; name one",
    );
    let one = with("    prefix_group: g\n    prefix_length: 70\n");
    let (head, client) = one.split_once("clients:\n").expect("clients");
    let second = client.replace("    prefix_length: 70\n", "");
    let third = client.replace("70", "30");
    let plan = spec(&format!("{head}clients:\n{client}{second}{third}")).expect("legal");
    let lengths: Vec<u32> = mix(&plan).clients.iter().map(|c| c.prefix_tokens).collect();
    assert_eq!(lengths, [70, 70, 30]);
}

#[test]
fn version_1_has_other_class_names() {
    let old = with("    slo_class: realtime\n").replace("version: '2'", "version: 1");
    assert_eq!(mix(&spec(&old).expect("legal")).clients[0].class, SloClass::Critical);
    refused(
        "    slo_class: realtime\n",
        "w.yaml:11:16: clients[0].slo_class: found `realtime`; legal: `critical`, `standard`, \
         `sheddable`, `batch`, `background`",
    );
}

#[test]
fn a_rate_from_outside_replaces_the_specifications() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("w.yaml");
    std::fs::write(&path, with("")).expect("the temporary folder can be written");
    let mut draft = Draft::default();
    draft.choose_workload("--workload-spec", "spec", path.to_str());
    draft.set_amount("--rate", "rate", "99");
    draft.set_amount("--num-requests", "num_requests", "3");
    let plan = draft.resolve().expect("legal");
    assert_eq!(mix(&plan).num_requests, Some(3));
    assert_eq!(mix(&plan).rate, Rate::Steady(99.0));
}

#[test]
fn labels_are_known_words() {
    let head = |line: &str| spec(&with("").replace("version: '2'", line)).err();
    for good in ["version: 2", "version: \"2\"", "version: ''", "version: 1", "seed: 7"] {
        let text = with("").replace("version: '2'\nseed: 7", good);
        assert_eq!(spec(&text).err(), None, "{good}");
    }
    assert_eq!(
        head("version: 3").as_deref(),
        Some("w.yaml:1:10: version: found `3`; legal: `1`, `2`")
    );
    assert_eq!(
        head("version: v2").as_deref(),
        Some("w.yaml:1:10: version: found `v2`; legal: `1`, `2`")
    );
    for good in ["''", "language", "multimodal", "reasoning"] {
        assert_eq!(head(&format!("category: {good}")), None, "{good}");
    }
    assert_eq!(
        head("category: langauge").as_deref(),
        Some(
            "w.yaml:1:11: category: found `langauge`, did you mean `language`?; legal: \
             `language`, `multimodal`, `reasoning`"
        )
    );
    assert_eq!(spec(&with("    streaming: false\n")).err(), None);
    for group in ["lifecycle", "reasoning", "multimodal", "network", "diurnal", "spike", "drain"] {
        let file = read(&with(&format!("    {group}: null\n"))).expect("nothing is asked for");
        assert_eq!(file.notes, [""; 0], "{group}");
    }
}

#[test]
fn a_client_can_only_have_the_model_that_is_simulated() {
    for good in ["''", "meta-llama/llama-3.1-8b-instruct", "META-LLAMA/Llama-3.1-8B-Instruct"] {
        assert_eq!(spec(&with(&format!("    model: {good}\n"))).err(), None, "{good}");
    }
    refused(
        "    model: gpt\n",
        "w.yaml:11:12: clients[0].model: found `gpt`; legal: \
         `meta-llama/llama-3.1-8b-instruct`, the scenario's, or no `model`: only one is \
         simulated",
    );
}

#[test]
fn only_gamma_arrivals_have_a_cv() {
    for process in ["poisson", "constant"] {
        let text = with("").replace("process: poisson", &format!("process: {process}, cv: 2"));
        let column = 26 + process.len();
        assert_eq!(
            spec(&text).expect_err("must be refused"),
            format!(
                "w.yaml:8:{}: clients[0].arrival.cv: arrivals that are `{process}` have no \
                 `cv`; remove it, or use `gamma`",
                column + 4
            )
        );
    }
}

#[test]
fn a_workload_of_more_than_ten_years_is_refused_where_it_was_asked_for() {
    let text = with("").replace("aggregate_rate: 10", "aggregate_rate: 1e-9");
    let found = "found 5 requests at 0.000000001 requests per second; legal: a rate at which \
                 all requests arrive within ten years, or a horizon";
    assert_eq!(
        spec(&text).expect_err("must be refused"),
        format!("w.yaml:3:17: aggregate_rate: {found}")
    );
    let text = with("").replace("num_requests: 5\n", "");
    assert_eq!(
        spec(&text).expect_err("must be refused"),
        "w.yaml:1:1: num_requests: a workload needs a number of requests or a horizon; give \
         one of them"
    );
}

#[test]
fn weibull_arrivals_take_the_variation_that_they_can_have() {
    let weibull = |cv| with("").replace("poisson", &format!("weibull, cv: {cv}"));
    assert_eq!(spec(&weibull("1.5")).err(), None);
    assert_eq!(
        spec(&weibull("11")).expect_err("must be refused"),
        "w.yaml:8:37: clients[0].arrival.cv: found `11`; legal: a number from 0.01 to 10.4"
    );
}

#[test]
fn distributions_need_exactly_their_parameters() {
    let length = |text: &str| {
        spec(&with("").replace("{type: constant, params: {value: 10}}", text))
            .err()
            .unwrap_or_default()
    };
    assert_eq!(length("{type: exponential, params: {mean: 9, max: 20}}"), "");
    assert_eq!(length("{type: geometric, params: {mean: 9}}"), "");
    assert_eq!(
        length("{type: constant, params: {value: 10.4}}"),
        "w.yaml:9:58: clients[0].input_distribution.params.value: found `10.4`; legal: a whole \
         number from 1 to 1073741824"
    );
    assert_eq!(
        length("{type: gaussian, params: {mean: 9, std_dev: 1, min: 10, max: 20}}"),
        "w.yaml:9:57: clients[0].input_distribution.params.mean: found `9`; legal: a number \
         from 10 to 20 (`min` to `max`)"
    );
    assert_eq!(
        length("{type: gaussian, params: {mean: 9}}"),
        "w.yaml:9:50: clients[0].input_distribution.params: parameter `std_dev` of \
         `gaussian` is missing; add it"
    );
    assert_eq!(
        length("{type: geometric, params: {maen: 9}}"),
        "w.yaml:9:58: clients[0].input_distribution.params.maen: unknown parameter `maen`, did \
         you mean `mean`?; known: `mean`"
    );
    assert_eq!(
        length("{type: geometric, params: {mean: 0.5}}"),
        "w.yaml:9:58: clients[0].input_distribution.params.mean: found `0.5`; legal: a number \
         from 1 to 1073741824"
    );
    assert_eq!(
        length("{type: guassian}"),
        "w.yaml:9:32: clients[0].input_distribution.type: found `guassian`, did you mean \
         `gaussian`?; legal: `constant`, `empirical`, `exponential`, `gaussian`, `geometric`, \
         `lognormal`, `pareto_lognormal`"
    );
    assert_eq!(length("{type: lognormal, params: {mu: 5, sigma: 0.5, max: 900}}"), "");
    assert_eq!(
        length(
            "{type: pareto_lognormal, params: {alpha: 2, xm: 100, mu: 5, sigma: 0.5, \
             mix_weight: 0.3}}"
        ),
        ""
    );
    assert_eq!(length("{type: empirical, params: {\"100\": 0.5, 500: 0.3}}"), "");
    assert_eq!(
        length("{type: empirical, params: {many: 0.5}}"),
        "w.yaml:9:58: clients[0].input_distribution.params.many: found `many`; legal: a \
         length, a whole number from 1 to 1073741824"
    );
    assert_eq!(
        length("{type: empirical, params: {5: -1}}"),
        "w.yaml:9:55: clients[0].input_distribution.params.5: found `-1`; legal: a number \
         from 0 to 1000000000000"
    );
}

const MODEL: &str = "meta-llama/llama-3.1-8b-instruct";

fn read(text: &str) -> Result<SpecFile, String> {
    read_text("w.yaml", text, MODEL).map_err(|problem| problem.to_string())
}

/// The one client of [`with`].
#[track_caller]
fn client(lines: &str) -> Client {
    let mut file = read(&with(lines)).unwrap_or_else(|message| panic!("{message}\n{lines}"));
    assert_eq!(file.mix.clients.len(), 1);
    file.mix.clients.remove(0)
}

fn secs(secs: u64) -> Time {
    Time::from_micros(secs * 1_000_000)
}

const EVERY_FIELD: &str = "\
version: \"2\"
aggregate_rate: 10
num_requests: 5
clients:
  - id: everything
    tenant_id: t
    slo_class: batch
    model: meta-llama/llama-3.1-8b-instruct
    rate_fraction: 0.25
    arrival: {process: gamma, cv: 2}
    prefix_group: g
    prefix_length: 7
    deadline_ms: 1500.5
    lifecycle: {windows: [{start_us: 1000000, end_us: 2000000}, {end_us: 9223372036854775807}]}
    diurnal: {peak_hour: 14, peak_to_trough_ratio: 4}
    spike: {start_time_us: 5000000, duration_us: 1000000}
    output_distribution: {type: exponential, params: {mean: 128, min: 2, max: 900}}
    multimodal:
      text_distribution: {type: constant, params: {value: 20}}
      image_distribution: {type: constant, params: {value: 576}}
      image_count_distribution: {type: empirical, params: {0: 0.5, 2: 0.5}}
      audio_distribution: {type: constant, params: {value: 30}}
      audio_count_distribution: {type: constant, params: {value: 0}}
      video_distribution: {type: constant, params: {value: 40}}
      video_count_distribution: {type: gaussian, params: {mean: 1, std_dev: 1, min: 0, max: 3}}
    reasoning:
      multi_turn:
        rounds: {type: geometric, params: {mean: 5}}
        think_time_us: 500000
        think_time: exponential
        context_growth: accumulate
        single_session: true
        closed_loop: true
        on_rejection: retry
        retry_after_us: 250000
        retries: 3
";

#[test]
fn every_field_of_a_client_arrives() {
    let file = read(EVERY_FIELD).expect("legal");
    assert_eq!(file.notes, [""; 0]);
    let things = |kind, count, tokens| Media { kind, count, tokens: Length::Constant(tokens) };
    let images = Length::Empirical(Empirical::counts([(0, 0.5), (2, 0.5)]).unwrap());
    let videos = Length::Gaussian { mean: 1.0, std_dev: 1.0, min: 0, max: 3 };
    let longest = Time::ZERO + Span::LONGEST + Span::from_micros(1);
    let expected = Client {
        name: "everything".to_owned(),
        tenant: "t".to_owned(),
        class: SloClass::Batch,
        share: 0.25,
        arrival: Arrival::Gamma { cv: 2.0 },
        prefix_group: Some("g".to_owned()),
        prefix_tokens: 7,
        input: Input {
            text: Some(Length::Constant(20)),
            media: vec![
                things("image", images, 576),
                things("audio", Length::Constant(0), 30),
                things("video", videos, 40),
            ],
        },
        output: Length::Exponential { mean: 128.0, min: 2, max: 900 },
        activity: Activity {
            parts: vec![
                ActivityPart::Window { from: secs(1), until: secs(2) },
                ActivityPart::Window { from: Time::ZERO, until: longest },
                ActivityPart::Diurnal { peak_hour: 14, peak_to_trough: 4.0 },
                ActivityPart::Window { from: secs(5), until: secs(6) },
            ],
        },
        sessions: Some(Sessions {
            rounds: Length::Geometric { mean: 5.0 },
            think: Think::Exponential(Span::from_micros(500_000)),
            context: Context::Accumulate,
            pacing: Pacing::Closed(OnRejection::Retry {
                after: Span::from_micros(250_000),
                at_most: 3,
            }),
            single: true,
        }),
        deadline: Some(Span::from_micros(1_500_500)),
    };
    assert_eq!(file.mix.clients, [expected]);
    file.mix.validate().expect("what is read is legal");
}

#[test]
fn sessions_are_open_loop_and_forget_unless_told_otherwise() {
    let usual = client("    reasoning: {multi_turn: {max_rounds: 4}}\n");
    let expected = Sessions {
        rounds: Length::Constant(4),
        think: Think::Constant(Span::ZERO),
        context: Context::Fresh,
        pacing: Pacing::Open,
        single: false,
    };
    assert_eq!(usual.sessions, Some(expected));
    let closed = client("    reasoning: {multi_turn: {max_rounds: 1, closed_loop: true}}\n");
    assert_eq!(closed.sessions.unwrap().pacing, Pacing::Closed(OnRejection::End));
    let none = client("    reasoning: {multi_turn: {max_rounds: 1, context_growth: none}}\n");
    assert_eq!(none.sessions.unwrap().context, Context::Fresh);
}

#[test]
fn conversations_may_show_images() {
    let both = client(
        "    multimodal: {image_distribution: {type: constant, params: {value: 9}}, \
         image_count_distribution: {type: constant, params: {value: 2}}}\n    \
         reasoning: {multi_turn: {max_rounds: 3, context_growth: accumulate}}\n",
    );
    assert_eq!((both.input.text, both.input.media.len()), (None, 1));
    assert!(both.sessions.is_some());
}

#[test]
fn a_drain_and_the_default_hour_are_read() {
    let drain = client("    drain: {start_time_us: 3000000, ramp_duration_us: 10000000}\n");
    let over = Span::from_micros(10_000_000);
    assert_eq!(drain.activity.parts, [ActivityPart::Drain { from: secs(3), over }]);
    let day = client("    diurnal: {peak_to_trough_ratio: 1}\n");
    let part = ActivityPart::Diurnal { peak_hour: 0, peak_to_trough: 1.0 };
    assert_eq!(day.activity.parts, [part]);
}

#[test]
fn illegal_times_are_refused() {
    refused(
        "    lifecycle: {windows: [{start_us: 5, end_us: 5}]}\n",
        "w.yaml:11:49: clients[0].lifecycle.windows[0].end_us: found `5`; legal: later than \
         `start_us`, 5",
    );
    refused(
        "    lifecycle: {windows: [{start_us: -1, end_us: 5}]}\n",
        "w.yaml:11:38: clients[0].lifecycle.windows[0].start_us: found `-1`; legal: a whole number \
         from 0 to 315360000000000",
    );
    refused(
        "    lifecycle: {windows: []}\n",
        "w.yaml:11:26: clients[0].lifecycle.windows: there is no window, so the client would never \
         be there; add one, or remove `lifecycle`",
    );
    refused(
        "    lifecycle: {}\n",
        "w.yaml:11:16: clients[0].lifecycle: field `windows` is missing; add it",
    );
    refused(
        "    lifecycle: {windows: [{start: 1, end_us: 5}]}\n",
        "w.yaml:11:28: clients[0].lifecycle.windows[0].start: unknown field `start`, did you mean \
         `start_us`?; known: `start_us`, `end_us`",
    );
    refused(
        "    diurnal: {peak_hour: 24, peak_to_trough_ratio: 2}\n",
        "w.yaml:11:26: clients[0].diurnal.peak_hour: found `24`; legal: a whole number from 0 to \
         23",
    );
    refused(
        "    diurnal: {peak_to_trough_ratio: 0.5}\n",
        "w.yaml:11:37: clients[0].diurnal.peak_to_trough_ratio: found `0.5`; legal: a number from \
         1 to 1e6",
    );
    refused(
        "    spike: {start_time_us: 1, duration_us: 0}\n",
        "w.yaml:11:44: clients[0].spike.duration_us: found `0`; legal: a whole number, at least 1",
    );
    refused(
        "    drain: {ramp_duration_us: 0}\n",
        "w.yaml:11:31: clients[0].drain.ramp_duration_us: found `0`; legal: a whole number from 1 \
         to 315360000000000",
    );
    refused(
        "    deadline_ms: 0\n",
        "w.yaml:11:18: clients[0].deadline_ms: found `0`; legal: a number from 1e-6 to \
         315360000000 (milliseconds)",
    );
    refused(
        "    drain: 5\n",
        "w.yaml:11:12: clients[0].drain: found `5`; legal: a group of fields",
    );
}

const TURNS: &str = "clients[0].reasoning.multi_turn";

#[track_caller]
fn refused_turns(fields: &str, message: &str) {
    let client = format!("    reasoning: {{multi_turn: {{{fields}}}}}\n");
    let found = spec(&with(&client)).expect_err("must be refused");
    assert_eq!(found, format!("w.yaml:11:{message}"), "{fields}");
}

#[test]
fn illegal_rounds_are_refused() {
    let (refused, turns) = (refused_turns, TURNS);
    refused(
        "think_time_us: 1",
        &format!(
            "29: {turns}: how many rounds a session has is missing; write `max_rounds`, e.g. `4`, \
             or a distribution as `rounds`"
        ),
    );
    refused(
        "max_rounds: 0",
        &format!("42: {turns}.max_rounds: found `0`; legal: a whole number from 1 to 1024"),
    );
    refused(
        "max_rounds: 2, rounds: {type: constant, params: {value: 2}}",
        &format!(
            "53: {turns}.rounds: `rounds` and `max_rounds` are given together; keep one of them"
        ),
    );
    refused(
        "rounds: {type: constant, params: {value: 1025}}",
        &format!(
            "71: {turns}.rounds.params.value: found `1025`; legal: a whole number from 1 to 1024"
        ),
    );
    refused(
        "max_rounds: 2, context_growth: grow",
        &format!("61: {turns}.context_growth: found `grow`; legal: `accumulate`, `none`"),
    );
    refused(
        "max_rounds: 2, think_time: exponental",
        &format!(
            "57: {turns}.think_time: found `exponental`, did you mean `exponential`?; legal: \
             `constant`, `exponential`"
        ),
    );
}

#[test]
fn illegal_closed_loops_are_refused() {
    let (refused, turns) = (refused_turns, TURNS);
    refused(
        "max_rounds: 2, on_rejection: end",
        &format!(
            "59: {turns}.on_rejection: only a closed loop hears of a rejection; add `closed_loop: \
             true`, or remove it"
        ),
    );
    refused(
        "max_rounds: 2, closed_loop: true, retries: 3",
        &format!(
            "73: {turns}.retries: only `on_rejection: retry` reads it; add that, or remove it"
        ),
    );
    refused(
        "max_rounds: 2, closed_loop: true, on_rejection: retry, retries: 3",
        &format!(
            "78: {turns}.on_rejection: `retry` needs `retry_after_us`; add how long the client \
             waits"
        ),
    );
    refused(
        "max_rounds: 2, closed_loop: true, on_rejection: retry, retry_after_us: 3",
        &format!(
            "78: {turns}.on_rejection: `retry` needs `retries`; add how often a round is sent \
             again"
        ),
    );
    refused(
        "max_round: 2",
        &format!(
            "30: {turns}.max_round: unknown field `max_round`, did you mean `max_rounds`?; known: \
             `max_rounds`, `rounds`, `think_time_us`, `think_time`, `context_growth`, \
             `single_session`, `closed_loop`, `on_rejection`, `retry_after_us`, `retries`"
        ),
    );
}

#[test]
fn illegal_media_are_refused() {
    refused(
        "    multimodal: {}\n",
        "w.yaml:11:17: clients[0].multimodal: neither text nor media; give at least one \
         distribution",
    );
    refused(
        "    multimodal: {image_distribution: {type: constant, params: {value: 9}}}\n",
        "w.yaml:11:38: clients[0].multimodal.image_distribution: it needs \
         `image_count_distribution`; add how many there are",
    );
    refused(
        "    multimodal: {video_count_distribution: {type: constant, params: {value: 9}}}\n",
        "w.yaml:11:44: clients[0].multimodal.video_count_distribution: it needs \
         `video_distribution`; add the tokens of each",
    );
    refused(
        "    multimodal: {text_distribution: {type: constant, params: {value: 0}}}\n",
        "w.yaml:11:70: clients[0].multimodal.text_distribution.params.value: found `0`; legal: a \
         whole number from 1 to 1073741824",
    );
    refused(
        "    multimodal: {image_distribution: {type: constant, params: {value: 1}}, \
         image_count_distribution: {type: gaussian, params: {mean: 5, std_dev: 1, min: 0, max: \
         3}}}\n",
        "w.yaml:11:134: clients[0].multimodal.image_count_distribution.params.mean: found `5`; \
         legal: a number from 0 to 3 (`min` to `max`)",
    );
    refused(
        "    network: {rtt_ms: -1}\n",
        "w.yaml:11:23: clients[0].network.rtt_ms: found `-1`; legal: a number from 0 to 1e12",
    );
}

#[test]
fn other_illegal_fields_of_a_client_are_refused() {
    let text = with("").replace("rate_fraction: 1", "rate_fraction: 0");
    assert_eq!(
        read(&text).expect_err("no share"),
        "w.yaml:7:20: clients[0].rate_fraction: found `0`; legal: a number above 0, at most 1e12"
    );
    let text = with("").replace("process: poisson", "process: gamma, cv: 200");
    assert_eq!(
        read(&text).expect_err("a CV out of range"),
        "w.yaml:8:35: clients[0].arrival.cv: found `200`; legal: a number from 0.01 to 100"
    );
    let text = with("").replace("{type: constant, params: {value: 10}}", "{file: lengths.csv}");
    assert_eq!(
        read(&text).expect_err("a file"),
        "w.yaml:9:32: clients[0].input_distribution.file: lengths are not read from a file; write \
         them as `params`, e.g. `{type: empirical, params: {100: 0.5, 500: 0.5}}`"
    );
    let text = with("    priority: 3\n");
    let message = read(&text).expect_err("an unknown field");
    assert!(
        message.starts_with("w.yaml:11:5: clients[0].priority: unknown field `priority`"),
        "{message}"
    );
    assert_eq!(
        read("version: 2\naggregate_rate: 1\n").expect_err("nobody"),
        "w.yaml:1:1: clients: there are no clients; add at least one"
    );
}

#[test]
fn a_mangled_specification_never_panics() {
    let swaps = ["0", "-1", "{", "]", ":", "~", ".nan", "1e400", "\"", "*a", "9999999999999999999"];
    let agents = crate::presets::find("agentic-2048").expect("it ships").text;
    let (mut read_well, mut refused) = (0, 0);
    for whole in [EVERY_FIELD, agents] {
        let words: Vec<usize> = whole.match_indices([' ', '\n']).map(|(at, _)| at).collect();
        for (number, pair) in words.windows(2).enumerate() {
            let swap = swaps[number % swaps.len()];
            let swapped = format!("{} {swap}{}", &whole[..pair[0]], &whole[pair[1]..]);
            for text in [swapped.as_str(), &whole[..pair[1]]] {
                match read(text) {
                    Ok(_) => read_well += 1,
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(read_well > 10 && refused > 100, "both were met: {read_well} and {refused}");
}

mod noted {
    //! What has no effect is said, once a file.

    use super::*;

    fn notes(text: &str) -> Vec<String> {
        read(text).expect("legal").notes
    }

    #[test]
    fn fields_without_an_effect_are_noted_with_their_place() {
        for (client, note) in [
            (
                "    streaming: true\n",
                "w.yaml:11:16: clients[0].streaming: no effect: tokens leave the server one by one \
                 in any case",
            ),
            (
                "    network: {rtt_ms: 5, bandwidth_mbps: 100}\n",
                "w.yaml:11:14: clients[0].network: no effect: all times are the server's, without \
                 the network",
            ),
            (
                "    reasoning: {reason_ratio_distribution: {type: constant, params: {value: \
                 0}}}\n",
                "w.yaml:11:44: clients[0].reasoning.reason_ratio_distribution: no effect: tokens \
                 of reasoning are generated like any others",
            ),
            (
                "    multimodal: {text_distribution: {type: constant, params: {value: 1}}}\n",
                "w.yaml:9:25: clients[0].input_distribution: no effect: `multimodal` says what the \
                 prompts hold",
            ),
            (
                "    prefix_group: g\n    prefix_length: 0\n",
                "w.yaml:11:19: clients[0].prefix_group: the prefix has 50 tokens, because \
                 `prefix_length` is not given",
            ),
            (
                "    diurnal: {peak_to_trough_ratio: 2}\n    drain: {ramp_duration_us: 10}\n",
                "w.yaml:12:12: clients[0].drain: the client never drains: the most active of its \
                 parts counts, and `diurnal` does not end",
            ),
        ] {
            assert_eq!(notes(&with(client)), [note], "{client}");
        }
        assert_eq!(notes(&with("    streaming: false\n")), [""; 0], "nothing is asked for");
    }

    #[test]
    fn a_note_comes_once_and_says_how_often_it_holds() {
        let one = with("    streaming: true\n");
        let (head, client) = one.split_once("clients:\n").expect("clients");
        assert_eq!(
            notes(&format!("{head}clients:\n{client}{client}{client}")),
            ["w.yaml:11:16: clients[0].streaming: no effect: tokens leave the server one by one \
              in any case (and 2 more like it)"]
        );
    }

    #[test]
    fn a_checked_field_without_effect_is_still_checked() {
        refused(
            "    reasoning: {reason_ratio_distribution: {type: constant, params: {value: -1}}}\n",
            "w.yaml:11:77: clients[0].reasoning.reason_ratio_distribution.params.value: found \
             `-1`; legal: a whole number from 0 to 1073741824",
        );
    }

    #[test]
    fn the_notes_of_a_file_and_of_a_mix_reach_the_plan() {
        let plan = spec(&with("    streaming: true\n")).expect("legal");
        assert_eq!(plan.notes.len(), 1);
        let scenario = "workload: {mix: {clients: [{rate_fraction: 1, arrival: {process: poisson}, \
                        streaming: true, input_distribution: {type: constant, params: {value: 1}}, \
                        output_distribution: {type: constant, params: {value: 1}}}]}}";
        let draft = Draft::from_text("s.yaml", scenario).expect("well-formed");
        let plan = draft.resolve().expect("legal");
        assert_eq!(
            plan.notes,
            ["s.yaml:1:87: workload.mix.clients[0].streaming: no effect: tokens leave the server \
              one by one in any case"]
        );
    }
}

mod cohorts {
    //! Many clients in one entry.

    use super::*;

    const TAIL: &str = "    rate_fraction: 3\n    arrival: {process: poisson}\n    \
                        input_distribution: {type: constant, params: {value: 10}}\n    \
                        output_distribution: {type: constant, params: {value: 5}}\n";

    fn cohort(lines: &str) -> Result<SpecFile, String> {
        read(&format!(
            "version: 2\naggregate_rate: 1\nnum_requests: 9\ncohorts:\n  - id: crowd\n{lines}{TAIL}"
        ))
    }

    #[test]
    fn members_are_alike_and_share_the_rate() {
        let lines = "    population: 3\n    tenant_id: t\n    slo_class: sheddable\n    \
                     prefix_group: g\n    prefix_length: 40\n    deadline_ms: 5\n    diurnal: \
                     {peak_hour: 3, peak_to_trough_ratio: 2}\n    reasoning: {multi_turn: \
                     {max_rounds: 2}}\n    lifecycle: {windows: [{end_us: 9}]}\n";
        let clients = cohort(lines).expect("legal").mix.clients;
        let names: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
        assert_eq!(names, ["crowd-0", "crowd-1", "crowd-2"]);
        for client in &clients {
            assert_eq!(*client, Client { name: client.name.clone(), ..clients[0].clone() });
        }
        let first = &clients[0];
        assert_eq!((first.share, first.prefix_tokens), (1.0, 40));
        assert_eq!((first.tenant.as_str(), first.class), ("t", SloClass::Sheddable));
        assert_eq!(first.activity.parts.len(), 2);
        assert!(first.sessions.is_some() && first.deadline.is_some());
    }

    #[test]
    fn each_member_can_have_a_tenant_and_a_prefix_of_its_own() {
        let lines = "    population: 12\n    tenant_id: tenant-{member}\n    prefix_group: \
                     \"{member}/{member}\"\n";
        let file = cohort(lines).expect("legal");
        let last = file.mix.clients.last().expect("twelve");
        assert_eq!(last.tenant, "tenant-11");
        assert_eq!((last.prefix_group.as_deref(), last.prefix_tokens), (Some("11/11"), 50));
        assert_eq!(
            file.notes,
            ["w.yaml:8:19: cohorts[0].prefix_group: the prefix has 50 tokens, because \
              `prefix_length` is not given (and 11 more like it)"]
        );
    }

    #[test]
    fn cohorts_come_after_clients_and_share_their_groups() {
        let one = with("    prefix_group: g\n    prefix_length: 70\n");
        let crowd = "    population: 2\n    prefix_group: g\n";
        let file = read(&format!("{one}cohorts:\n  - id: crowd\n{crowd}{TAIL}")).expect("legal");
        let found: Vec<(&str, u32)> =
            file.mix.clients.iter().map(|c| (c.name.as_str(), c.prefix_tokens)).collect();
        assert_eq!(found, [("c", 70), ("crowd-0", 70), ("crowd-1", 70)]);
    }

    #[test]
    fn classes_of_version_1_hold_for_cohorts_too() {
        let old = format!(
            "aggregate_rate: 1\nnum_requests: 9\ncohorts:\n  - population: 1\n    slo_class: \
             realtime\n{TAIL}"
        );
        assert_eq!(read(&old).expect("legal").mix.clients[0].class, SloClass::Critical);
        assert_eq!(
            cohort("    population: 1\n    slo_class: realtime\n").expect_err("version 2"),
            "w.yaml:7:16: cohorts[0].slo_class: found `realtime`; legal: `critical`, `standard`, \
             `sheddable`, `batch`, `background`"
        );
    }

    #[test]
    fn populations_are_bounded_and_belong_to_cohorts() {
        assert_eq!(
            cohort("").expect_err("how many?"),
            "w.yaml:5:5: cohorts[0].population: missing; write how many clients the cohort stands \
             for, e.g. `100`"
        );
        for bad in ["0", "100001"] {
            assert_eq!(
                cohort(&format!("    population: {bad}\n")).expect_err("out of range"),
                format!(
                    "w.yaml:6:17: cohorts[0].population: found `{bad}`; legal: a whole number from \
                     1 to 100000"
                )
            );
        }
        refused(
            "    population: 5\n",
            "w.yaml:11:17: clients[0].population: only a cohort has it; write the client under \
             `cohorts`",
        );
        let many = format!("  - population: 100000\n{TAIL}").repeat(11);
        assert_eq!(
            read(&format!("version: 2\naggregate_rate: 1\ncohorts:\n{many}"))
                .expect_err("too many"),
            "w.yaml:54:17: cohorts[10].population: found `100000`; legal: at most 48576: a workload \
             has at most 1048576 clients"
        );
    }

    #[test]
    fn what_is_wrong_with_a_cohort_is_told_at_the_cohort() {
        assert_eq!(
            cohort("    population: 100000\n    prefix_length: 5\n").expect_err("no group"),
            "w.yaml:7:20: cohorts[0].prefix_length: there is no `prefix_group` whose tokens these \
             are; name one"
        );
    }

    #[test]
    fn a_scenario_may_have_cohorts_in_its_mix() {
        let scenario = format!(
            "workload:\n  mix:\n    cohorts:\n      - population: 5\n{}",
            TAIL.replace("    ", "        ").replace("\n        \n", "\n")
        );
        let draft = Draft::from_text("s.yaml", &scenario).expect("well-formed");
        assert_eq!(mix(&draft.resolve().expect("legal")).clients.len(), 5);
    }
}

mod whole_files {
    //! What stands beside the clients: rates, targets, blocks that stand for clients.

    use super::*;

    #[test]
    fn a_rate_may_ramp_or_be_a_share_of_saturation() {
        let rate = |rate: &str| {
            let text = with("").replace("aggregate_rate: 10", &format!("aggregate_rate: {rate}"));
            read(&text).expect("legal").rate.expect("a rate")
        };
        assert_eq!(rate("10"), RateSpec::Level(Level::PerSecond(10.0)));
        assert_eq!(rate("{of_saturation: 0.9}"), RateSpec::Level(Level::OfSaturation(0.9)));
        let ramp = rate("{ramp: {from: 3, to: 60, over_s: 600}}");
        assert_eq!(ramp.rate(1.0), Rate::ramp(3.0, 60.0, Span::from_secs_f64(600.0)));
    }

    #[test]
    fn a_file_may_carry_targets_and_a_description() {
        let text = with("").replace("seed: 7", "seed: 7\nslo: chat\ndescription: chats");
        let file = read(&text).expect("legal");
        assert_eq!(file.slo, crate::slo::find("chat").map(crate::slo::SloSet::targets));
        assert_eq!(file.description.as_deref(), Some("chats"));
        let text = with("").replace("seed: 7", "seed: 7\nslo: {standard: {ttft_ms: 5}}");
        let targets = read(&text).expect("legal").slo.expect("targets");
        assert_eq!(targets.of(SloClass::Standard).ttft_ms, Some(5.0));
    }

    fn perf(stages: &str, chat: bool) -> String {
        format!(
            "version: 2\ninference_perf:\n  stages: [{stages}]\n  shared_prefix: \
             {{num_unique_system_prompts: 3, num_users_per_system_prompt: 2, system_prompt_len: \
             100, question_len: 20, output_len: 30, enable_multi_turn_chat: {chat}}}\n"
        )
    }

    #[test]
    fn stages_are_steps_of_the_rate_that_end() {
        let text = perf("{rate: 8, duration: 600}, {rate: 16, duration: 300}", false);
        let file = read(&text).expect("legal");
        assert_eq!(file.notes, [""; 0]);
        let secs = Span::from_secs_f64;
        let steps = Rate::steps([(8.0, secs(600.0)), (16.0, secs(300.0)), (0.0, Span::ZERO)]);
        assert_eq!(file.mix.rate, steps);
        let clients = &file.mix.clients;
        assert_eq!(clients.len(), 6);
        let last = &clients[5];
        assert_eq!((last.name.as_str(), last.tenant.as_str()), ("prompt-2-user-1", "prompt-2"));
        assert_eq!((last.prefix_group.as_deref(), last.prefix_tokens), (Some("prompt-2"), 100));
        assert_eq!((last.class, &last.arrival), (SloClass::Batch, &Arrival::Poisson));
        assert_eq!(last.input, Input::from(Length::Constant(20)));
        assert_eq!(last.output, Length::Constant(30));
        file.mix.validate().expect("it ends by itself");
    }

    #[test]
    fn users_who_chat_have_a_session_in_every_stage() {
        let text = perf("{rate: 2, duration: 60}, {rate: 4, duration: 31}", true);
        let file = read(&text).expect("legal");
        assert_eq!(file.mix.clients.len(), 12);
        let second = &file.mix.clients[6];
        assert_eq!(second.name, "stage-1-prompt-0-user-0");
        let window = ActivityPart::Window { from: secs(60), until: secs(91) };
        assert_eq!(second.activity.parts, [window]);
        let sessions = second.sessions.as_ref().expect("a session");
        // 4 x 31 / 6 users, and 6 users at 4 a second.
        assert_eq!(sessions.rounds, Length::Constant(21));
        assert_eq!(sessions.think, Think::Constant(Span::from_micros(1_500_000)));
        assert!(sessions.single && sessions.pacing == Pacing::Open);
        file.mix.validate().expect("it ends by itself");
    }

    #[test]
    fn blocks_are_refused_or_noted_like_anything_else() {
        let stage = "{rate: 8, duration: 60}";
        assert_eq!(
            read(&perf("", false)).expect_err("no stage"),
            "w.yaml:3:11: inference_perf.stages: there is no stage; add at least one"
        );
        assert_eq!(
            read(&perf("{rate: 0, duration: 60}", false)).expect_err("no rate"),
            "w.yaml:3:19: inference_perf.stages[0].rate: found `0`; legal: a number from 1e-9 to \
             1e9 (requests per second)"
        );
        assert_eq!(
            read(&perf("{rate: 8, duration: 6000}", true)).expect_err("too many rounds"),
            "w.yaml:4:163: inference_perf.shared_prefix.enable_multi_turn_chat: found 8000 rounds \
             of a user in a stage; legal: at most 1024; give more users or shorter stages"
        );
        assert_eq!(
            read(&perf(stage, false).replace("prompts: 3", "prompts: 1000000"))
                .expect_err("too many users"),
            "w.yaml:4:18: inference_perf.shared_prefix: found 2000000 clients; legal: at most \
             1048576 clients in a workload"
        );
        assert_eq!(
            read(&format!("{}num_requests: 481\n", perf(stage, false)))
                .expect_err("more than come"),
            "w.yaml:5:15: num_requests: found `481`; legal: at most 480, which the stages of \
             `inference_perf` send"
        );
        let notes = |text: String| read(&text).expect("legal").notes;
        assert_eq!(
            notes(format!("{}aggregate_rate: 5\n", perf(stage, false))),
            ["w.yaml:5:17: aggregate_rate: no effect: the stages of `inference_perf` are the rate"]
        );
        assert_eq!(
            notes(perf(stage, false).replace("output_len: 30", "output_len: 0")),
            [
                "w.yaml:4:135: inference_perf.shared_prefix.output_len: a length of 0 is taken for 1: \
              no prompt and no output is empty"
            ]
        );
        assert_eq!(
            notes(format!("{}{}", with(""), perf(stage, false).replace("version: 2\n", ""))),
            ["w.yaml:12:3: inference_perf: no effect: there are other clients; keep one kind of \
              them"]
        );
        let none = read(&perf(stage, false).replace("prompt_len: 100", "prompt_len: 0"));
        assert_eq!(none.expect("legal").mix.clients[0].prefix_group, None, "0 tokens are none");
    }
}

mod servegen {
    //! A folder of measured clients.

    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const LENGTHS: &str = r#"{"1000": {"input_tokens": "{7: 1}", "output_tokens": "{8: 1}"},
        "0": {"input_tokens": "{}"},
        "300": {"input_tokens": "{100: 0.25, 200.9: 7.5e-1,}", "output_tokens": "{0: 1}"}}"#;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(files: &[(&str, &str)]) -> Folder {
            let folder = tempfile::tempdir().expect("a temporary folder");
            fs::create_dir(folder.path().join("data")).expect("it can be made");
            for (name, text) in files {
                fs::write(folder.path().join("data").join(name), text).expect("it can be written");
            }
            Folder(folder)
        }

        fn spec(&self) -> PathBuf {
            self.0.path().join("w.yaml")
        }

        fn read(&self, fields: &str) -> Result<SpecFile, String> {
            let text = format!("version: 2\nservegen_data: {{path: data{fields}}}\n");
            fs::write(self.spec(), text).expect("it can be written");
            let root = format!("{}/", self.0.path().display());
            super::super::read(&self.spec(), MODEL)
                .map(|file| {
                    let notes = file.notes.iter().map(|note| note.replace(&root, "")).collect();
                    SpecFile { notes, ..file }
                })
                .map_err(|problem| problem.to_string().replace(&root, ""))
        }
    }

    #[test]
    fn a_byte_order_mark_costs_no_row_and_other_bytes_are_refused() {
        let marked = "\u{feff}0,2,1,x\n600,1,1,x\n";
        let files = [("chunk-a-trace.csv", marked), ("chunk-a-dataset.json", LENGTHS)];
        let folder = Folder::new(&files);
        let file = folder.read("").expect("legal");
        assert_eq!(file.mix.clients[0].share.to_bits(), 2.0_f64.to_bits());
        assert_eq!(file.files.len(), 2);
        let path = folder.0.path().join("data/chunk-a-trace.csv");
        fs::write(path, b"0,2,1,\xff\n").expect("it can be written");
        let message = folder.read("").expect_err("not UTF-8");
        assert_eq!(message, "data/chunk-a-trace.csv: not a text file: byte 6 is not UTF-8");
    }

    #[test]
    fn a_chunk_is_a_client_with_its_highest_rate() {
        let folder = Folder::new(&[
            (
                "chunk-b-trace.csv",
                "0,1.5,2.0,Gamma,0,0\n600,2.5,0.8,weibull,0,0\n1200,2.5,1,x,0,0\n",
            ),
            ("chunk-b-dataset.json", LENGTHS),
            ("chunk-a-trace.csv", "start,rate,cv,pattern\n0,0,,\n600,0.5,3,exponential\n"),
            ("chunk-a-dataset.json", LENGTHS),
            ("chunk-c-trace.csv", "0,0,0,gamma,0,0\n"),
            ("README", "not a chunk"),
        ]);
        let file = folder.read("").expect("legal");
        assert_eq!(file.rate, Some(RateSpec::Level(Level::PerSecond(3.0))));
        let [a, b] = file.mix.clients.as_slice() else { panic!("{:?}", file.mix.clients) };
        assert_eq!((a.name.as_str(), a.tenant.as_str()), ("servegen-chunk-a", "chunk-a"));
        assert_eq!((a.share, &a.arrival), (0.5, &Arrival::Poisson));
        let weibull = arrival("weibull", Some(0.8)).unwrap();
        assert_eq!((b.share, &b.arrival), (2.5, &weibull));
        let lengths = Length::Empirical(Empirical::new([(100, 0.25), (200, 0.75)]).unwrap());
        assert_eq!(b.input, Input::from(lengths));
        assert_eq!(b.output, Length::Empirical(Empirical::new([(1, 1.0)]).unwrap()));
        let silent = "data/chunk-c-trace.csv: no effect: it sends nothing in the span";
        assert_eq!(file.notes, [silent]);
    }

    #[test]
    fn a_span_chooses_rows_and_windows() {
        let folder = Folder::new(&[
            ("chunk-0-trace.csv", "0,9,2,gamma\n600,2,3,gamma\n1200,5,4,gamma\n"),
            ("chunk-0-dataset.json", LENGTHS),
        ]);
        let file = folder.read(", span_start: 500, span_end: 1200").expect("legal");
        let client = &file.mix.clients[0];
        assert_eq!((client.share, &client.arrival), (2.0, &Arrival::Gamma { cv: 3.0 }));
        let seven = Length::Empirical(Empirical::new([(7, 1.0)]).unwrap());
        assert_eq!(client.input, Input::from(seven));
    }

    #[test]
    fn what_is_malformed_is_refused_with_file_and_line() {
        let refused = |trace: &str, dataset: &str, fields: &str| {
            let files = [("chunk-0-trace.csv", trace), ("chunk-0-dataset.json", dataset)];
            Folder::new(&files).read(fields).expect_err("must be refused")
        };
        let good = "0,9,2,gamma\n";
        assert_eq!(
            refused("0,9,2,gamma\n5,x,2,gamma\n", LENGTHS, ""),
            "data/chunk-0-trace.csv:2:1: rate: found `x`; legal: a number from 0 to 1e12"
        );
        assert_eq!(
            refused("0,9\n", LENGTHS, ""),
            "data/chunk-0-trace.csv:1:1: found 2 columns; legal: at least 4: start, rate, CV, \
             pattern"
        );
        assert_eq!(
            refused("0,9,0,gamma\n", LENGTHS, ""),
            "data/chunk-0-trace.csv:1:1: CV: found `0`; legal: a number from 0.01 to 100"
        );
        assert_eq!(
            refused(good, "{\"0\": 5}", ""),
            "data/chunk-0-dataset.json:1:1: not a data set of ServeGen: invalid type: integer \
             `5`, expected struct Window at line 1 column 7"
        );
        assert_eq!(
            refused(good, "{\"0\": {\"input_tokens\": \"{5: x}\", \"output_tokens\": \"{}\"}}", ""),
            "data/chunk-0-dataset.json: 0.input_tokens: found `5: x`; legal: `tokens: chance`, \
             tokens from 0 to 1073741824"
        );
        assert_eq!(
            refused(good, "{}", ""),
            "data/chunk-0-dataset.json: no window of the span has both `input_tokens` and \
             `output_tokens`"
        );
        assert_eq!(
            refused("0,0,2,gamma\n", LENGTHS, ""),
            "data: no chunk of the folder sends anything in the span; choose another"
        );
        assert_eq!(
            refused(good, LENGTHS, ", span_start: 5, span_end: 5"),
            "w.yaml:2:54: servegen_data.span_end: found `5`; legal: later than `span_start`, 5, or \
             0 for no end"
        );
        assert_eq!(
            Folder::new(&[]).read("").expect_err("an empty folder"),
            "data: found 0; legal: from 1 to 100000 files `chunk-<id>-trace.csv`"
        );
        assert_eq!(
            Folder::new(&[("chunk-0-trace.csv", good)]).read("").expect_err("no data set"),
            "data/chunk-0-dataset.json: cannot read: No such file or directory (os error 2); check \
             the name"
        );
    }
}
