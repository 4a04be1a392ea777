//! Tests of the audit of reports: those of legal runs pass, and impossible numbers are found.

use crate::audit::{cut, legal};
use crate::toy::tell;
use blis_metrics::{Latency, Report, SloTargets, Summary, check_report};

fn legal_report() -> Report {
    let (facts, end) = legal();
    let mut summary = Summary::new(SloTargets::default());
    tell(&mut summary, &facts);
    summary.finish(&end)
}

#[track_caller]
fn check_numbers(invariant: &str, edit: impl FnOnce(&mut Report)) {
    let mut report = legal_report();
    edit(&mut report);
    let found = check_report(&report);
    assert!(found.iter().any(|violation| violation.invariant == invariant), "{found:#?}");
}

#[test]
fn the_report_of_a_legal_run_passes() {
    assert_eq!(check_report(&legal_report()), []);
    let (facts, end) = cut();
    let mut summary = Summary::new(SloTargets::default());
    tell(&mut summary, &facts);
    assert_eq!(check_report(&summary.finish(&end)), []);
    assert_eq!(check_report(&Report::default()), []);
}

#[test]
fn i20_numbers_that_no_run_can_have_are_found() {
    check_numbers("I20", |report| report.cluster.ttft.p99_ms = Some(f64::NAN));
    check_numbers("I20", |report| report.cluster.ttft.mean_ms = Some(-1.0));
    check_numbers("I20", |report| report.cluster.ttft.p50_ms = Some(1e9));
    check_numbers("I20", |report| report.cluster.itl.p95_ms = None);
    check_numbers("I20", |report| report.cluster.e2e = Latency::default());
    check_numbers("I20", |report| report.duration_s = f64::INFINITY);
    check_numbers("I20", |report| report.classes[0].1.slo_attainment = Some(1.5));
    check_numbers("I20", |report| report.instances[0].utilization = Some(2.0));
    check_numbers("I20", |report| report.kv.hit_rate = Some(-0.5));
    check_numbers("I20", |report| {
        report.decomposition.cluster.as_mut().expect("first tokens").mean.queue += 1.0;
    });
}

#[test]
fn i1_and_i7_reports_that_do_not_add_up_are_found() {
    check_numbers("I1", |report| report.cluster.rejected += 1);
    check_numbers("I7", |report| report.classes.truncate(1));
    check_numbers("I7", |report| report.instances[0].requests.total_output_tokens += 1);
    check_numbers("I7", |report| report.routing.sent[0] += 1_000);
}
