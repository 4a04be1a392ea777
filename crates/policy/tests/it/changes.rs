//! A router that looks only at the instances that have changed decides as one that looks at all.

use crate::views::{CLUSTER, Question, instance, prompt};
use blis_core::{InstanceId, SloClass};
use blis_policy::routing::scorers;
use blis_policy::{ClusterView, Firings, Guests, InstanceView, PartsText, Router, Routing};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// As many as are looked at one by one only if they have changed.
const INSTANCES: usize = 70;

/// What happens before a decision: views that change, and the prompt that comes.
#[derive(Clone, Debug)]
struct Moment {
    changes: Vec<(usize, InstanceView)>,
    question: Question,
}

fn moments() -> impl Strategy<Value = Vec<Moment>> {
    let change = (0..INSTANCES, instance());
    let moment = (prop::collection::vec(change, 0..6), prompt()).prop_map(|(changes, prompt)| {
        let (class, instances) = (SloClass::Standard, Vec::new());
        let question = Question { prompt, class, session: 0, round: 0, deadline: None, instances };
        Moment { changes, question }
    });
    prop::collection::vec(moment, 1..60)
}

fn router(policy: &str, scorers: &str) -> Box<dyn Router> {
    let parts = PartsText { scorers: Some(scorers), ..PartsText::default() };
    Routing::new(policy, &[], &parts, &Guests::NONE).expect("legal").build(&CLUSTER)
}

/// What can be seen of a decision and of all decisions before it.
fn seen(router: &mut dyn Router, choice: InstanceId) -> (InstanceId, Vec<u64>, String) {
    let mut firings = Firings::default();
    router.firings(&mut firings);
    let told = format!("{:?} {:?} {firings:?}", router.because(), router.opinions());
    (choice, router.totals().iter().map(|total| total.to_bits()).collect(), told)
}

/// Decides with both; returns how many decisions were about a prompt that somebody has.
fn compare(policy: &str, scorers: &str, start: InstanceView, moments: &[Moment]) -> u32 {
    let mut routers = [router(policy, scorers), router(policy, scorers)];
    let view = |id| InstanceView { id: InstanceId(id), ..start };
    let mut views: Vec<InstanceView> = (0..).take(INSTANCES).map(view).collect();
    let mut warm = 0;
    for (number, Moment { changes, question }) in (0..).zip(moments) {
        for (place, view) in changes {
            views[*place] = InstanceView { id: views[*place].id, ..*view };
        }
        let places: Vec<usize> = changes.iter().map(|(place, _)| *place).collect();
        let request = question.request(number);
        let all = ClusterView { instances: &views, ..question.cluster(number) };
        let some = ClusterView { changed: Some(&places), ..all };
        let [plain, quick] = &mut routers;
        let choice = plain.route(&request, &all, &mut Question::dice(number));
        let quickly = quick.route(&request, &some, &mut Question::dice(number));
        assert_eq!(choice, quickly, "{policy} of {scorers}, decision {number}");
        let quickly = seen(&mut **quick, quickly.instance);
        assert_eq!(seen(&mut **plain, choice.instance), quickly, "{policy} of {scorers}");
        warm += u32::from(choice.intent.expected_hit_blocks.is_some_and(|blocks| blocks > 0));
        for router in &mut routers {
            router.sent(&request, choice.instance, all.now);
        }
    }
    warm
}

proptest! {
    #[test]
    fn looking_at_what_has_changed_is_looking_at_all(start in instance(), moments in moments()) {
        compare("weighted", "pa:3,qd:2,kv:2", start, &moments);
        compare("weighted", "lb:1,queue:2,running-requests:1,pa:1", start, &moments);
        compare("kv-adaptive[scarce-above=0.5]", "pa:3/1,qd:2,kv:1/4", start, &moments);
        for spec in scorers::ALL {
            compare("weighted", &format!("{}:1", spec.name), start, &moments);
        }
    }
}

/// The property above is about warm and cold prompts, and about spreads that move and that do not.
#[test]
fn the_moments_are_worth_comparing() {
    let mut runner = TestRunner::deterministic();
    let (mut warm, mut decisions) = (0, 0);
    for _ in 0..30 {
        let start = instance().new_tree(&mut runner).expect("a view").current();
        let moments = moments().new_tree(&mut runner).expect("moments").current();
        warm += compare("weighted", "pa:3,qd:2,kv:2", start, &moments);
        decisions += u32::try_from(moments.len()).expect("few");
    }
    assert!(warm > decisions / 5 && warm < decisions * 4 / 5, "{warm} of {decisions}");
}
