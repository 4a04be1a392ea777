//! Pools: instances that are alike among others that are not.

use crate::harness::{Listed, Scenario, request, small_world};
use blis_core::{Dice, RequestView};
use blis_latency::Coefficients;
use blis_metrics::{RunEnd, SloTargets, Status, Summary};
use blis_policy::{Choice, ClusterView, Router};
use blis_sim::Pool;
use std::sync::Arc;

/// One instance of the small world, beside two that take twice as long for everything.
fn two_speeds() -> Scenario {
    let mut scenario = small_world();
    scenario.beside = Some(Pool {
        name: "slow".to_owned(),
        count: 2,
        engine: scenario.engine,
        latency: Arc::new(
            Coefficients::new([200.0, 2.0, 20.0], [2000.0, 4.0, 6.0]).expect("legal"),
        ),
    });
    scenario
}

/// Ingress 150, prefill 1100, two decode steps of 1003, output 10, and twice that.
#[test]
fn each_instance_works_by_the_latency_model_of_its_pool() {
    let scenario = two_speeds().with((0..3).map(|_| request(0, 50, 3)).collect());
    let told = scenario.run();
    assert_eq!(told.ttfts_us(), [1_260, 2_520, 2_520]);
    assert_eq!(told.e2es_us(), [3_266, 6_532, 6_532]);
}

#[test]
fn each_instance_works_by_the_engine_of_its_pool() {
    let mut scenario = two_speeds().with((0..4).map(|_| request(0, 50, 3)).collect());
    let slow = scenario.beside.as_mut().expect("set");
    (slow.count, slow.engine.max_num_running_reqs) = (1, 1);
    // Two requests a pool: side by side in the first, one after the other in the second.
    let told = scenario.run();
    assert_eq!(told.ttfts_us(), [1_360, 2_520, 1_360, 2_520 + 2_200 + 4_012]);
}

#[test]
fn the_numbers_of_each_pool_are_reported() {
    let scenario = two_speeds().with((0..4).map(|_| request(0, 50, 3)).collect());
    let pools = scenario.pools().into_iter().map(|pool| (pool.name, pool.count as usize));
    let mut summary = Summary::new(SloTargets::default()).by_pool(pools.collect());
    let mut source = Listed::new(scenario.requests.clone());
    let outcome = scenario.run_audited(&mut source, &mut summary);
    let (ended_at, end) = (outcome.ended_at, outcome.end);
    let report = summary.finish(&RunEnd { ended_at, end, instances: 3 });
    assert!(blis_metrics::check_report(&report).is_empty());
    let [first, slow] = &report.pools[..] else { panic!("{:?}", report.pools) };
    assert_eq!((&first.name[..], first.instances, first.requests.completed), ("first", 1, 2));
    assert_eq!((&slow.name[..], slow.instances, slow.requests.completed), ("slow", 2, 2));
    assert_eq!((first.requests.ttft.max_ms, first.steps), (Some(1.36), 3));
    assert_eq!((slow.requests.ttft.max_ms, slow.steps), (Some(2.52), 6));
    assert_eq!((slow.requests.itl.mean_ms, slow.requests.e2e.p50_ms), (Some(2.006), Some(6.532)));
    // A step was under way from 300 on until 6512 of 6532.
    assert_eq!(slow.utilization, Some(6_212.0 / 6_532.0));
}

/// Sends everything to the last instance of the second pool.
#[derive(Debug)]
struct ToTheSecond;

impl Router for ToTheSecond {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, _: &mut Dice) -> Choice {
        let other = cluster.instances.iter().rfind(|view| view.pool == 1).expect("two pools");
        Choice::because("test", other.id)
    }
}

#[test]
fn routers_see_which_pool_an_instance_is_of() {
    let scenario = two_speeds().with((0..3).map(|n| request(n * 10, 50, 3)).collect());
    let told = scenario.run_sent_by(Box::new(ToTheSecond));
    assert!(told.closed.iter().all(|ended| ended.instance == Some(2)), "{:?}", told.closed);
}

/// Routers do not ask what fits where.
#[test]
fn a_request_that_the_smallest_pool_cannot_hold_is_refused() {
    let mut scenario = two_speeds().with(vec![request(0, 48, 1), request(0, 48, 2)]);
    scenario.beside.as_mut().expect("set").engine.total_kv_blocks = 3;
    let ends: Vec<Status> = scenario.run().closed.iter().map(|ended| ended.status).collect();
    assert_eq!(ends, [Status::Finished, Status::Unservable]);
}
