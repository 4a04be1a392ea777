//! Every field of a client, what it may say, and what is refused.

use super::*;

pub(super) const EVERY_FIELD: &str = "\
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
    patience_ms: 250.25
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
        patience: Some(Span::from_micros(250_250)),
        retry: None,
    };
    assert_eq!(file.mix.clients, [expected]);
    file.mix.validate().expect("what is read is legal");
}

#[test]
fn a_client_can_retry() {
    let retry = client("    retry: {retries: 3, backoff_ms: 250}\n").retry;
    assert_eq!(retry, Some(Retry { at_most: 3, backoff: Span::from_micros(250_000) }));
    assert_eq!(client("").retry, None);
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
        "w.yaml:11:26: clients[0].lifecycle.windows: there is no window, so the client would \
         never be active; add one, or remove `lifecycle`",
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
        "    patience_ms: -1\n",
        "w.yaml:11:18: clients[0].patience_ms: found `-1`; legal: a number from 1e-6 to \
         315360000000 (milliseconds)",
    );
    refused(
        "    retry: {retries: 3}\n",
        "w.yaml:11:12: clients[0].retry: `retries` and `backoff_ms` are needed; write e.g. \
         `{retries: 3, backoff_ms: 500}`",
    );
    refused(
        "    retry: {retries: 3, backoff_ms: 5}\n    reasoning: {multi_turn: {max_rounds: 2, \
         closed_loop: true}}\n",
        "w.yaml:11:12: clients[0].retry: closed-loop sessions handle rejections themselves; write \
         `on_rejection: retry` there, or remove it",
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
            "29: {turns}: the number of rounds is missing; write `max_rounds`, e.g. `4`, or a \
             distribution as `rounds`"
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
            "59: {turns}.on_rejection: only closed loops handle rejections; add `closed_loop: \
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
        &format!("78: {turns}.on_rejection: `retry` needs `retry_after_us`, the client's wait"),
    );
    refused(
        "max_rounds: 2, closed_loop: true, on_rejection: retry, retry_after_us: 3",
        &format!("78: {turns}.on_rejection: `retry` needs `retries`, the most attempts"),
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
         `image_count_distribution`, their number",
    );
    refused(
        "    multimodal: {video_count_distribution: {type: constant, params: {value: 9}}}\n",
        "w.yaml:11:44: clients[0].multimodal.video_count_distribution: it needs \
         `video_distribution`, the tokens of each",
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
