//! What a specification means, field by field, and what is refused with which words.

mod clients;
mod cohorts;
mod noted;
mod servegen;
mod whole_files;

use super::*;
use crate::scenario::{Draft, Plan, Workload};
use blis_core::{SloClass, Span};
use blis_workload::{
    Activity, ActivityPart, Arrival, Client, Context, Empirical, Input, Length, Media, OnRejection,
    Pacing, Rate, Retry, Sessions, Think,
};

fn spec(text: &str) -> Result<Plan, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("w.yaml");
    std::fs::write(&path, text).expect("the temporary folder can be written");
    let mut draft = Draft::default();
    draft.choose_workload("--workload-spec", "spec", path.to_str());
    draft.plan().map_err(|problem| {
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
    let plan = draft.plan().expect("legal");
    assert_eq!(mix(&plan).num_requests, Some(3));
    assert_eq!(mix(&plan).rate, Rate::Steady(99.0));
}

#[test]
fn labels_are_known_words() {
    let head = |line: &str| spec(&with("").replace("version: '2'", line)).err();
    for good in
        ["version: 2", "version: \"2\"", "version: ''", "version: 1", "version: '1.0'", "seed: 7"]
    {
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
         `meta-llama/llama-3.1-8b-instruct`, the scenario's, or none: only one model is simulated",
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
    read_text("w.yaml", text, Some(MODEL)).map_err(|problem| problem.to_string())
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

#[test]
fn a_mangled_specification_never_panics() {
    let swaps = ["0", "-1", "{", "]", ":", "~", ".nan", "1e400", "\"", "*a", "9999999999999999999"];
    let agents = crate::presets::find("agentic-2048").expect("it ships").text;
    let (mut read_well, mut refused) = (0, 0);
    for whole in [clients::EVERY_FIELD, agents] {
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
