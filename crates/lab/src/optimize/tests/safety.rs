//! What a search recommends: the best that it measured, and nothing that harms anybody.

use super::{read, run};
use crate::ledger::Ledger;
use crate::optimize::{Call, Chosen, Findings, Group, LEVEL, Number, Search};
use crate::stats::estimate;
use crate::trial::Runner;
use blis_core::SloClass;
use blis_core::math::ln;

/// Two classes and two tenants with conversations, where refusing reports shortens the tail of
/// chats. Nobody sends standard requests, so their priority has no effect.
const TENANTS: &str = include_str!("tenants.yaml");

/// The logarithm of the objective at a point with each of the first seeds.
fn logs(search: &Search, settings: &[(String, String)], runner: &Runner<'_>) -> Vec<f64> {
    let free = |(name, _): &&(String, String)| search.points.dimension(0, name).is_some();
    let values: Vec<_> = settings.iter().filter(free).cloned().collect();
    let found = search.measure_at(&values, runner).expect("it runs");
    found.objectives[0].iter().map(|value| ln(value.expect("a sample"))).collect()
}

/// Legal points that are surely better than `chosen` on the seeds that all points were run with.
fn better<'a>(
    search: &Search,
    found: &'a Findings,
    chosen: &Chosen,
    runner: &Runner<'_>,
) -> Vec<&'a Call> {
    let own = logs(search, &chosen.settings, runner);
    let is_better = |call: &&Call| {
        let other = logs(search, &call.settings, runner);
        let gains: Vec<f64> = own.iter().zip(&other).map(|(own, other)| own - other).collect();
        estimate(&gains, LEVEL).is_some_and(|gain| gain.low > 0.0)
    };
    let legal = found.calls.iter().filter(|call| call.is_usable() && call.seeds > 1);
    legal.filter(is_better).collect()
}

/// Whether what is recommended harms nobody on fresh seeds, by hand from the rows.
fn assert_harmless(search: &Search, found: &Findings) {
    let mean = |cell: usize, number: &Number| found.mean(cell, number).expect("a sample").0;
    let groups = search.groups(&found.fresh[0]);
    let names: Vec<String> = groups.iter().map(Group::name).collect();
    assert_eq!(names, ["critical", "sheddable", "tenant acme", "tenant beta"]);
    for group in &groups {
        let [own, hand] = [1, 0].map(|cell| mean(cell, &group.number("refused_share")));
        assert!(own <= hand + 0.01, "{}: {own} is refused, by hand {hand}", group.name());
    }
    let [critical, sheddable] = [0, 1].map(|class| mean(1, &groups[class].number("ttft_p99")));
    assert!(critical <= sheddable, "{critical} {sheddable}");
}

#[test]
fn no_recommendation_harms_a_tenant_or_is_surely_worse_than_another_measured_point() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = Ledger::open(&folder.path().join("l.sqlite")).expect("a ledger");
    let runner = Runner { jobs: 2, ledger: Some(&ledger), ..Runner::default() };
    let mut changed = 0;
    for seed in 0..5 {
        let text = TENANTS.replace("seeds: 3}", &format!("seeds: 3, seed: {seed}}}"));
        let search = read(&text).expect("legal");
        let found = search.run(&runner, false).expect("it runs");
        let [chosen] = &found.chosen[..] else { panic!("one point is recommended") };
        let hand = &search.points.candidates[0].hand;
        assert_eq!(better(&search, &found, chosen, &runner), Vec::<&Call>::new(), "seed {seed}");
        assert_harmless(&search, &found);
        let is_at_default = |name: &str| {
            let value = |all: &[(String, String)]| all.iter().find(|one| one.0 == name).cloned();
            value(&chosen.settings) == value(hand)
        };
        assert!(is_at_default("base-standard"), "seed {seed}: nobody sends standard requests");
        changed += usize::from(chosen.settings != *hand);
        for rival in found.rivals.iter().filter(|rival| rival.legal) {
            let worse = rival.worse.expect("several seeds");
            assert!(worse.high >= 0.0, "seed {seed}: {rival:?} is surely better");
        }
    }
    assert!(changed > 0, "at least one search finds something better");
}

#[test]
fn where_nothing_has_an_effect_everything_stays_at_its_default() {
    let text = format!("{TENANTS}parameters: [base-standard]\n");
    let found = run(&text, &Runner::default(), false);
    assert!(found.calls.iter().all(|call| call.scores[0].abs() <= 0.0));
    assert_eq!(found.chosen[0].call, 0, "the hand-set point");
}

#[test]
fn a_gate_of_the_hand_set_point_that_refuses_what_could_be_served_is_told() {
    let refusals = |rate: &str| {
        let text = TENANTS.replace("gate=64,age-weight=50", "gate=1");
        let text = text.replace("aggregate_rate: 320\n      num_requests: 1200", rate);
        let text = text.replace("calls: 14", "calls: 4");
        run(&format!("{text}parameters: [qd]\n"), &Runner::default(), false).needless_refusals
    };
    let found = refusals("aggregate_rate: 40\n      num_requests: 2400");
    let [refusal] = &found[..] else { panic!("{found:?}") };
    assert_eq!((refusal.class, refusal.workload.as_ref()), (SloClass::Sheddable, None));
    assert!(refusal.refused > 0.05, "{refusal:?}");
    assert_eq!(refusals("aggregate_rate: 900\n      num_requests: 3000"), [], "too many to serve");
}

#[test]
fn guards_can_be_loosened_and_turned_off() {
    let with = |guards: &str| read(&format!("{TENANTS}guards: {guards}\n"));
    let usual = read(TENANTS).expect("legal").guards;
    assert_eq!((usual.refused, usual.class_order), (Some(0.01), true));
    let loose = with("{refused: 5%, class_order: false}").expect("legal").guards;
    assert_eq!((loose.refused, loose.class_order), (Some(0.05), false));
    assert_eq!(with("{refused: false}").expect("legal").guards.refused, None);
    let told = with("{refused: some}").expect_err("no share");
    assert!(told.contains("guards.refused: found `some`; legal: a share"), "{told}");
}

#[test]
fn weights_with_the_same_ratios_are_one_point_written_as_by_hand() {
    let search = read(TENANTS).expect("legal");
    let points = &search.points;
    let hand = points.hand(0).expect("within the ranges");
    let mut unit = points.space.unit(&hand).expect("a point of the space");
    assert!((unit[0] - 1.0).abs() < 1e-9 && (unit[1] - 0.75).abs() < 1e-9, "{unit:?}");
    assert_eq!(points.settings(&points.space.point(&unit)).1, points.candidates[0].hand);
    let written = |pa: f64, qd: f64, unit: &mut Vec<f64>| {
        (unit[0], unit[1]) = (pa, qd);
        points.space.snap(unit);
        let (_, settings) = points.settings(&points.space.point(unit));
        [settings[0].1.clone(), settings[1].1.clone()]
    };
    assert_eq!(written(0.4, 0.2, &mut unit), ["4", "2"]);
    assert_eq!(written(0.2, 0.1, &mut unit), ["4", "2"]);
    assert_eq!(written(0.0, 0.1, &mut unit), ["0", "3"]);
    assert_eq!(written(0.1, 1.0, &mut unit), ["1", "10"], "as large as the range allows");
    let on = |pa: &str, gate: &str| {
        let mut settings = points.candidates[0].hand.clone();
        (settings[0].1, settings[2].1) = (pa.to_owned(), gate.to_owned());
        points.on_bound(0, &settings)
    };
    assert_eq!(on("4", "5"), Vec::<String>::new());
    assert_eq!(on("10", "256"), ["gate"], "only ratios of weights matter");
    assert_eq!(on("0", "1"), ["pa", "gate"]);
}
