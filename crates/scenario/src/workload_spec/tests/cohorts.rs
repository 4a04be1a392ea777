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
        "w.yaml:5:5: cohorts[0].population: missing; write the number of clients in the cohort, \
         e.g. `100`"
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
        read(&format!("version: 2\naggregate_rate: 1\ncohorts:\n{many}")).expect_err("too many"),
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
    assert_eq!(mix(&draft.plan().expect("legal")).clients.len(), 5);
}
