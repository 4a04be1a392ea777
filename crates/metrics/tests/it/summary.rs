//! Tests of the summary on the toy cluster.

use crate::toy::{Cluster, Facts, Fate, Job, mixed_jobs, run, single_server_jobs, tell};
use blis_core::math::float;
use blis_core::{InstanceId, SloClass, Span, Time};
use blis_metrics::{
    End, Fact, KvSection, Report, RunEnd, Saturation, Section, SloTarget, SloTargets, SplitStats,
    Summary, check_report,
};

const ONE: Cluster = Cluster { instances: 1, max_running: 1, preempt_every: None, horizon: None };
const FOUR: Cluster =
    Cluster { instances: 4, max_running: 8, preempt_every: Some(7), horizon: None };

fn report(facts: &Facts, end: &RunEnd, targets: SloTargets) -> Report {
    let mut summary = Summary::new(targets);
    tell(&mut summary, facts);
    summary.finish(end)
}

fn simulate(jobs: &[Job], cluster: Cluster) -> Report {
    let (facts, end) = run(jobs, cluster);
    report(&facts, &end, SloTargets::default())
}

fn job(arrival: u64, output: u32) -> Job {
    let (class, fate) = (SloClass::Standard, Fate::Served);
    let (prefill, decode) = (1_000_000, 100_000);
    Job { arrival, class, tenant: 0, input: 100, output, prefill, decode, fate }
}

fn close(a: Option<f64>, b: f64) {
    let a = a.expect("a value");
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
}

/// 2.4 ms of steps in 2.400025 ms: if the GPU computes three quarters of it, the host has the rest.
#[test]
fn time_that_is_not_the_gpus_is_the_hosts() {
    let (mut facts, end) = run(&[job(0, 3), job(0, 3)], ONE);
    assert_eq!(report(&facts, &end, SloTargets::default()).engine_time, None);
    for (_, fact) in &mut facts {
        if let Fact::Steps { gpu, duration, .. } = fact {
            *gpu = Span::from_nanos(duration.as_nanos() / 4 * 3);
        }
    }
    let all = report(&facts, &end, SloTargets::default());
    let time = all.engine_time.expect("the host took some");
    close(Some(time.gpu_bound), 1.8 / 2.400_025);
    close(Some(time.host_bound), 0.6 / 2.400_025);
    assert_eq!(all.instances[0].engine_time, all.engine_time);
}

/// Two tokens leave together 0.2 ms after the first: 0.2 ms between hand-outs, 0.1 ms a token.
#[test]
fn tokens_that_leave_together_count_once_in_percentiles_and_each_in_the_mean() {
    let (mut facts, end) = run(&[job(0, 3)], ONE);
    let of_tokens = |facts: &Facts| {
        facts.iter().position(|(_, fact)| matches!(fact, Fact::Tokens { .. })).expect("some")
    };
    facts.remove(of_tokens(&facts));
    let second = of_tokens(&facts);
    if let Fact::Tokens { gap, tokens, .. } = &mut facts[second].1 {
        (*gap, *tokens) = (Span::from_micros(200), 2);
    }
    let all = report(&facts, &end, SloTargets::default());
    for section in [&all.cluster, &all.instances[0].requests, &all.tenants[0].1] {
        close(section.itl.mean_ms, 0.1);
    }
    close(all.cluster.itl.p50_ms, 0.2);
    assert!(check_report(&all).is_empty());
}

/// The last step waits for copies until after the run: neither it nor its stall is counted.
#[test]
fn a_stall_that_the_end_of_the_run_cuts_off_does_not_count() {
    let (mut facts, end) = run(&[job(0, 3), job(0, 3)], ONE);
    let steps: Vec<usize> =
        (0..facts.len()).filter(|&at| matches!(facts[at].1, Fact::Steps { .. })).collect();
    let stall = |span| Fact::Stalled { instance: InstanceId(0), span: Span::from_micros(span) };
    facts.push((end.ended_at, stall(50_000)));
    let (at, _) = facts[steps[0]];
    facts.insert(steps[1], (at, stall(60)));
    let all = report(&facts, &end, SloTargets::default());
    close(all.kv.tier.transfer_stall_share, 0.06 / 2.4);
    assert_eq!(all.instances[0].tier, all.kv.tier);
    assert!(check_report(&all).is_empty());
}

#[test]
fn a_run_worked_out_by_hand_is_reported_exactly() {
    // Two requests at 0 on one server of one sequence: 25 ns gateway, 1 ms prefill, 2 x 0.1 ms
    // decode, so the second starts 1.2 ms later; 5 ns output processing.
    let all = simulate(&[job(0, 3), job(0, 3)], ONE);
    let cluster = &all.cluster;
    assert_eq!((cluster.offered, cluster.completed), (2, 2));
    assert_eq!((cluster.total_input_tokens, cluster.total_output_tokens), (200, 6));
    close(cluster.ttft.mean_ms, 1.600_03);
    close(cluster.ttft.p50_ms, 1.600_03);
    close(cluster.ttft.max_ms, 2.200_03);
    close(cluster.e2e.p99_ms, 1.200_03 + 0.99 * 1.2);
    close(cluster.itl.mean_ms, 0.1);
    close(cluster.scheduling_delay.mean_ms, 0.600_025);
    close(cluster.responses_per_sec, 2.0 / 0.002_400_025);
    close(cluster.tokens_per_sec, 6.0 / 0.002_400_025);
    close(all.mean_in_system, 3.600_05 / 2.400_025);
    let instance = &all.instances[0];
    assert_eq!((instance.steps, instance.peak_blocks_in_use), (6, 1));
    close(instance.utilization, 2.4 / 2.400_025);
    close(instance.mean_batch, 1.0);
    close(instance.mean_queue_depth, 1.2 / 2.400_025);
    close(instance.mean_step_tokens, (2.0 * 75.0 + 4.0) / 6.0);
    close(all.kv.hit_rate, 0.25);
    close(all.kv.phantom_hit_rate, 0.0);
    close(all.kv.missed_hit_rate, 48.0 / 50.0);
    let split = all.decomposition.cluster.expect("there are first tokens");
    close(Some(split.mean.queue), 0.6);
    close(Some(split.mean.prefill), 1.0);
    close(Some(split.p99.total()), cluster.ttft.p99_ms.expect("a percentile"));
    close(all.jain_fairness, 1.0);
}

#[test]
fn without_requests_everything_is_absent_and_nothing_is_nan() {
    let end = RunEnd { ended_at: Time::ZERO, end: End::Drained, instances: 2 };
    let empty = report(&Facts::new(), &end, SloTargets::default());
    assert_eq!(empty.cluster, Section::default());
    assert_eq!((empty.jain_fairness, empty.saturation, empty.mean_in_system), (None, None, None));
    assert_eq!((empty.classes.len(), empty.tenants.len(), empty.instances.len()), (0, 0, 2));
    assert_eq!(empty.kv, KvSection::default());
    assert_eq!(empty.routing.sent, [0, 0]);
    assert_eq!(empty.routing.jain_balance, None);
}

#[test]
fn groups_add_up_to_the_cluster() {
    let all = simulate(&mixed_jobs(3_000, 400_000.0, 5), FOUR);
    assert!(all.cluster.preemptions > 0 && all.cluster.rejected > 0, "{:?}", all.cluster);
    assert!(all.cluster.unservable > 0 && all.classes.len() == 3 && all.tenants.len() == 4);
    let counts = |s: &Section| {
        [s.offered, s.completed, s.rejected, s.unservable, s.preemptions]
            .into_iter()
            .chain([s.total_input_tokens, s.total_output_tokens])
            .collect::<Vec<_>>()
    };
    let sum = |sections: &mut dyn Iterator<Item = &Section>| {
        sections.map(counts).fold(vec![0; 7], |a, b| a.iter().zip(b).map(|(a, b)| a + b).collect())
    };
    assert_eq!(sum(&mut all.classes.iter().map(|(_, s)| s)), counts(&all.cluster));
    assert_eq!(sum(&mut all.tenants.iter().map(|(_, s)| s)), counts(&all.cluster));
    let on_instances = sum(&mut all.instances.iter().map(|i| &i.requests));
    assert_eq!(on_instances[1], all.cluster.completed);
    assert_eq!(on_instances[6], all.cluster.total_output_tokens);
    assert_eq!(all.routing.sent.iter().sum::<u64>(), all.cluster.completed);
}

#[test]
fn the_decomposition_adds_up_to_the_time_to_first_token() {
    let all = simulate(&mixed_jobs(3_000, 400_000.0, 6), FOUR);
    let check = |section: &Section, split: &SplitStats| {
        close(section.ttft.mean_ms, split.mean.total());
        close(section.ttft.p99_ms, split.p99.total());
    };
    check(&all.cluster, &all.decomposition.cluster.expect("there are first tokens"));
    assert_eq!(all.decomposition.classes.len(), all.classes.len());
    for ((class, section), (same, split)) in all.classes.iter().zip(&all.decomposition.classes) {
        assert_eq!(class, same);
        check(section, split);
    }
}

#[test]
fn pooled_tenant_gaps_agree_with_the_cluster() {
    let all = simulate(&mixed_jobs(2_000, 400_000.0, 7), FOUR);
    let weighted = all.tenants.iter().map(|(_, s)| {
        let gaps = float(s.total_output_tokens - s.completed);
        (s.itl.mean_ms.expect("a mean") * gaps, gaps)
    });
    let (sum, gaps) = weighted.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    close(all.cluster.itl.mean_ms, sum / gaps);
    assert!(all.tenants.iter().all(|(_, s)| s.itl.p99_ms.is_none()));
}

#[test]
fn a_run_cut_by_its_horizon_counts_what_is_left() {
    let cluster = Cluster { horizon: Some(300_000_000), ..FOUR };
    let jobs = mixed_jobs(3_000, 100_000.0, 8);
    let all = simulate(&jobs, cluster);
    let left = all.cluster.still_queued + all.cluster.still_running + all.cluster.in_transit;
    let refused = all.cluster.rejected + all.cluster.unservable;
    assert!(left > 0 && all.cluster.still_queued > 0 && all.cluster.still_running > 0);
    assert_eq!(all.cluster.offered, all.cluster.completed + refused + left);
    close(Some(all.duration_s), 0.3);
}

#[test]
fn attainment_counts_refused_requests_as_missed() {
    let mut jobs = vec![job(0, 3), job(0, 3), job(0, 3), job(0, 3)];
    jobs[3].fate = Fate::Rejected;
    let (facts, end) = run(&jobs, ONE);
    let target = |ttft_ms| SloTarget { ttft_ms, ..SloTarget::default() };
    let with = |t| report(&facts, &end, SloTargets::default().with(SloClass::Standard, t)).cluster;
    assert_eq!(with(target(None)).slo_attainment, None, "nothing was promised");
    close(with(target(Some(1e9))).slo_attainment, 0.75);
    close(with(target(Some(2.3))).slo_attainment, 0.5);
    close(with(target(Some(2.3))).goodput_per_sec, 2.0 / end.ended_at.as_secs_f64());
    close(with(target(Some(0.1))).slo_attainment, 0.0);
}

#[test]
fn a_request_that_misses_its_own_deadline_is_no_good_output() {
    let (mut facts, end) = run(&[job(0, 3), job(0, 3), job(0, 3), job(0, 3)], ONE);
    let mut deadlines = [Span::from_nanos(1), Span::LONGEST].into_iter();
    for (_, fact) in &mut facts {
        if let Fact::Closed { record, .. } = fact {
            record.deadline = deadlines.next();
        }
    }
    let found = report(&facts, &end, SloTargets::default()).cluster;
    close(found.slo_attainment, 0.75);
}

#[test]
fn fairness_compares_what_tenants_got_of_what_they_asked() {
    let mut jobs: Vec<Job> = (0..8).map(|i| job(i * 10_000_000, 2)).collect();
    for (i, job) in (0..).zip(&mut jobs) {
        job.tenant = i % 2;
        job.fate = if i % 2 == 1 { Fate::Rejected } else { Fate::Served };
    }
    close(simulate(&jobs, ONE).jain_fairness, 0.5);
    for job in &mut jobs {
        job.fate = Fate::Rejected;
    }
    close(simulate(&jobs, ONE).jain_fairness, 1.0);
}

#[test]
fn littles_law_holds_exactly() {
    let all = simulate(&single_server_jobs(5_000, 0.7, 3), ONE);
    // Time in the system ends with the engine's last step, 5 ns before the token leaves.
    let mean_s = all.cluster.e2e.mean_ms.expect("a mean") / 1e3 - 5e-9;
    close(all.mean_in_system, mean_s * float(all.cluster.offered) / all.duration_s);
}

#[test]
fn saturation_tells_a_busy_queue_from_an_overloaded_one() {
    for (n, rho, expected) in [
        (20_000, 0.5, Saturation::Stable),
        (20_000, 0.9, Saturation::Stable),
        (20_000, 1.3, Saturation::Overloaded),
        (1_000, 0.5, Saturation::Stable),
        (1_000, 0.9, Saturation::Stable),
        (1_000, 1.5, Saturation::Overloaded),
        (2_000, 4.0, Saturation::Overloaded),
        (60_000, 1.03, Saturation::Growing),
    ] {
        let mut verdicts: Vec<_> = (0..10)
            .map(|seed| simulate(&single_server_jobs(n, rho, seed), ONE).saturation)
            .map(|verdict| verdict.expect("there were arrivals").name())
            .collect();
        verdicts.sort_unstable();
        let agreeing = verdicts.iter().filter(|name| **name == expected.name()).count();
        assert!(agreeing >= 9, "{n} requests at {rho}: {verdicts:?}");
    }
}

#[test]
fn filling_an_empty_cluster_is_neither_stable_nor_overload() {
    // Everybody is served at once and takes as long as three quarters of the arrival period.
    let cluster = Cluster { instances: 400, max_running: 8, ..ONE };
    let mut jobs: Vec<Job> = (0..400).map(|i| job(i * 1_000_000, 300)).collect();
    for job in &mut jobs {
        job.decode = 1_000_000;
    }
    assert_eq!(simulate(&jobs, cluster).saturation, Some(Saturation::Growing));
}

#[test]
fn an_overload_that_a_horizon_cuts_short_is_still_an_overload() {
    let cluster = Cluster { horizon: Some(1_000_000_000), ..ONE };
    let all = simulate(&single_server_jobs(5_000, 1.6, 2), cluster);
    assert!(all.cluster.still_queued > 100, "{:?}", all.cluster);
    assert_eq!(all.saturation, Some(Saturation::Overloaded));
}

#[test]
fn requests_before_the_warm_up_are_not_counted() {
    let jobs = single_server_jobs(2_000, 0.7, 1);
    let (facts, end) = run(&jobs, ONE);
    let whole = report(&facts, &end, SloTargets::default());
    let mut summary = Summary::new(SloTargets::default());
    let cut = Time::from_nanos(jobs[999].arrival + 1);
    summary = summary.counting_from(cut);
    tell(&mut summary, &facts);
    let late = summary.finish(&end);
    assert_eq!((whole.cluster.offered, late.cluster.offered), (2_000, 1_000));
    assert_eq!(late.cluster.completed, 1_000);
    assert_eq!(late.routing.sent.iter().sum::<u64>(), 1_000);
    assert_eq!(late.steady, whole.steady, "the steady state is that of the whole run");
    assert_eq!((late.saturation, late.duration_s), (whole.saturation, whole.duration_s));
    let seconds = end.ended_at.since(cut).as_secs_f64();
    close(late.cluster.responses_per_sec, 1_000.0 / seconds);
    assert!(check_report(&late).is_empty(), "{:?}", check_report(&late));
}

#[test]
fn steady_throughput_is_the_offered_load_of_a_stable_cluster() {
    let all = simulate(&single_server_jobs(20_000, 0.6, 3), ONE);
    let offered = all.offered_per_sec.expect("requests arrived");
    let found = all.steady.responses_per_sec.expect("requests finished");
    assert!((found / offered - 1.0).abs() < 0.03, "{found} of {offered}");
    assert!(!all.steady.is_too_short(), "{:?}", all.steady);
    let overload = simulate(&single_server_jobs(5_000, 1.6, 2), ONE);
    assert!(overload.steady.is_too_short(), "{:?}", overload.steady);
    assert!(all.overloaded_from_s.is_none() && overload.overloaded_from_s.is_some());
    let found = overload.steady.responses_per_sec.expect("requests finished");
    let offered = overload.offered_per_sec.expect("requests arrived");
    assert!(found < 0.7 * offered, "{found} of {offered}: what is served, not what is sent");
}

#[test]
fn the_longer_a_run_near_saturation_is_the_less_it_is_too_short() {
    let short = |requests: u64, load: f64| {
        let found = |seed: &u64| {
            let run = simulate(&single_server_jobs(requests, load, *seed), ONE);
            run.steady.is_too_short()
        };
        (1..=6).filter(found).count()
    };
    let found = [1_500, 20_000, 200_000].map(|requests| short(requests, 0.98));
    assert!(found.is_sorted_by(|more, less| more >= less), "{found:?}");
    assert!(found[0] >= 3 && found[2] <= 1, "{found:?}");
    assert!(short(1_500, 0.4) <= 1, "where nobody waits a short run is enough");
}

/// A thousand requests a second for two seconds, and then ten a second for ten, which are round
/// number `round` of sessions.
fn a_rush_and_a_trickle(round: u32) -> Report {
    const MS: u64 = 1_000_000;
    let rush = (0..2_000).map(|n| job(n * MS, 3));
    let trickle = (0..100).map(|n| job(2_000 * MS + n * 100 * MS, 3));
    let jobs: Vec<Job> = rush.chain(trickle).collect();
    let (mut facts, end) = run(&jobs, FOUR);
    for (at, fact) in &mut facts {
        if let Fact::Arrived { round: told, .. } = fact
            && at.as_nanos() >= 2_000 * MS
        {
            *told = round;
        }
    }
    report(&facts, &end, SloTargets::default())
}

#[test]
fn later_rounds_that_trickle_in_are_not_the_steady_state() {
    let found = a_rush_and_a_trickle(1).steady.responses_per_sec.expect("requests finished");
    assert!((found - 1_000.0).abs() < 10.0, "{found}");
    // Requests that nobody had to wait for are an offered load like any other.
    let all = a_rush_and_a_trickle(0).steady.responses_per_sec.expect("requests finished");
    assert!((all - 10.0).abs() < 1.0, "{all}");
}

#[test]
fn the_rounds_of_users_who_all_came_at_once_are_the_steady_state() {
    const MS: u64 = 1_000_000;
    let jobs: Vec<Job> = (0..4_000).map(|n| job(n * MS, 3)).collect();
    let (mut facts, end) = run(&jobs, FOUR);
    for (at, fact) in &mut facts {
        if let Fact::Arrived { round, .. } = fact {
            *round = u32::from(at.as_nanos() >= 10 * MS);
        }
    }
    let steady = report(&facts, &end, SloTargets::default()).steady;
    let found = steady.responses_per_sec.expect("requests finished");
    assert!((found - 1_000.0).abs() < 10.0, "{found}");
}
