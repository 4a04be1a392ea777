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
        read(&format!("{}num_requests: 481\n", perf(stage, false))).expect_err("more than come"),
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
        ["w.yaml:4:135: inference_perf.shared_prefix.output_len: a length of 0 is read as 1: \
            prompts and outputs are never empty"]
    );
    assert_eq!(
        notes(format!("{}{}", with(""), perf(stage, false).replace("version: 2\n", ""))),
        ["w.yaml:12:3: inference_perf: no effect: there are other clients; keep one kind of \
              them"]
    );
    let none = read(&perf(stage, false).replace("prompt_len: 100", "prompt_len: 0"));
    assert_eq!(none.expect("legal").mix.clients[0].prefix_group, None, "0 tokens are none");
}
