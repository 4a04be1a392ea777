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
            "w.yaml:11:16: clients[0].streaming: no effect: tokens are always streamed",
        ),
        (
            "    network: {rtt_ms: 5, bandwidth_mbps: 100}\n",
            "w.yaml:11:14: clients[0].network: no effect: the network is not simulated",
        ),
        (
            "    reasoning: {reason_ratio_distribution: {type: constant, params: {value: \
                 0}}}\n",
            "w.yaml:11:44: clients[0].reasoning.reason_ratio_distribution: no effect: reasoning \
             tokens are generated like any others",
        ),
        (
            "    multimodal: {text_distribution: {type: constant, params: {value: 1}}}\n",
            "w.yaml:9:25: clients[0].input_distribution: no effect: `multimodal` sets the prompts",
        ),
        (
            "    prefix_group: g\n    prefix_length: 0\n",
            "w.yaml:11:19: clients[0].prefix_group: the prefix has 50 tokens, because \
                 `prefix_length` is not given",
        ),
        (
            "    diurnal: {peak_to_trough_ratio: 2}\n    drain: {ramp_duration_us: 10}\n",
            "w.yaml:12:12: clients[0].drain: the client never drains: its most active part \
             applies, and `diurnal` does not end",
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
        ["w.yaml:11:16: clients[0].streaming: no effect: tokens are always streamed (and 2 more \
            like it)"]
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
    let plan = draft.plan().expect("legal");
    assert_eq!(
        plan.notes,
        ["s.yaml:1:87: workload.mix.clients[0].streaming: no effect: tokens are always streamed"]
    );
}
