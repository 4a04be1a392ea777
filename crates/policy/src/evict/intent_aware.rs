//! `intent-aware`: the cached blocks that nobody upstream counts on any more.
//!
//! **Prefers** to keep what other layers rely on. Blocks are dropped in the order in which their
//! credit runs out; without any, that is the order of release. Blocks that the router had expected
//! to be cached have credit, because it goes on sending prompts here for them; so have blocks of a
//! session of which another request waits or runs here, and blocks of requests with a high
//! priority. Of several uses, the one whose credit lasts longest counts.
//!
//! **Reads** when a use ended, the router's expectation, whether the session is live, and the
//! priority that the request was scheduled with (live; the engine asks itself).
//!
//! **Parameters** `routed` (s): credit of blocks that the router expected to be cached. `live` (s):
//! credit of blocks of live sessions. `per-priority` (s): credit for each unit of priority. `most`
//! (s): the most credit of all together, so that nothing stays for good.
//!
//! **Origin** ours: an evictor that acts on the same expectations as prefix-aware routing, which
//! otherwise meets an engine that has dropped what it was chosen for.

use crate::prelude::*;

/// How `intent-aware` introduces itself.
pub const SPEC: Spec<dyn Evict> = Spec {
    name: "intent-aware",
    help: "Keeps blocks that the router, live sessions or high-priority requests rely on",
    params: &[
        credit("routed", 30.0, "Credit for blocks the router expected to be cached"),
        credit("live", 60.0, "Credit for blocks of sessions with another request here"),
        credit("per-priority", 1.0, "Credit per unit of priority"),
        credit("most", 300.0, "Most credit in total"),
    ],
    needs: |values| Needs {
        sessions: values.float("live") > 0.0,
        priority: values.float("per-priority") > 0.0,
        ..Needs::NONE
    },
    ..Spec::built_by(|values, _| Box::new(IntentAware::new(values)))
};

const fn credit(name: &'static str, default: f64, help: &'static str) -> Param {
    Param::float(name, 0.0..=86_400.0, default, "s").help(help)
}

/// A run is worth the second in which its credit runs out; the latest that was ever said holds, and
/// the router expects prefixes, so that a prefix's credit lasts no shorter than that of what
/// continues it.
#[derive(Clone, Copy, Debug)]
pub struct IntentAware {
    routed: f64,
    live: f64,
    per_priority: f64,
    most: f64,
}

impl IntentAware {
    fn new(values: &Values) -> IntentAware {
        IntentAware {
            routed: values.float("routed"),
            live: values.float("live"),
            per_priority: values.float("per-priority"),
            most: values.float("most"),
        }
    }
}

impl Evict for IntentAware {
    fn worth(&self, ended: &UseView) -> f64 {
        let expected = ended.intent.expected_hit_blocks.unwrap_or(0);
        let routed = if ended.upto <= expected { self.routed } else { 0.0 };
        let live = if ended.session_live { self.live } else { 0.0 };
        let priority = self.per_priority * ended.priority.max(0.0);
        let credit = (routed + live + priority).min(self.most);
        (ended.now.as_secs_f64() + credit).max(ended.worth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Intent;
    use crate::view::examples::used;
    use blis_core::Time;

    /// When the credit of a use that ended after 10 s runs out.
    fn until(given: &[(&'static str, &'static str)], ended: UseView) -> f64 {
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        let now = Time::from_micros(10_000_000);
        IntentAware::new(&values).worth(&UseView { now, ..ended })
    }

    fn expecting(blocks: u32, upto: u32) -> UseView {
        let intent = Intent { expected_hit_blocks: Some(blocks), because: "weighted" };
        UseView { intent, upto, ..used() }
    }

    #[test]
    fn blocks_that_the_router_counted_on_are_kept_longer_than_those_behind_them() {
        let found = [3, 4, 5].map(|upto| until(&[], expecting(4, upto)));
        assert_eq!(found.to_vec(), [40.0, 40.0, 10.0]);
        assert_eq!(until(&[], used()).to_bits(), 10.0_f64.to_bits(), "no opinion, no credit");
    }

    #[test]
    fn live_sessions_and_priorities_add_to_it_up_to_the_most() {
        let live = UseView { session_live: true, priority: 5.0, ..expecting(4, 1) };
        assert_eq!(until(&[], live).to_bits(), (10.0 + 30.0 + 60.0 + 5.0_f64).to_bits());
        assert_eq!(until(&[("most", "50")], live).to_bits(), 60.0_f64.to_bits());
        let negative = UseView { priority: -5.0, ..used() };
        assert_eq!(until(&[], negative).to_bits(), 10.0_f64.to_bits());
    }

    #[test]
    fn of_several_uses_the_longest_credit_counts() {
        let before = UseView { worth: 99.0, ..used() };
        assert_eq!(until(&[], before).to_bits(), 99.0_f64.to_bits());
    }

    #[test]
    fn what_is_worth_nothing_is_not_read() {
        let needs = |given: [(&'static str, &'static str); 2]| {
            (SPEC.needs)(&Values::parse(SPEC.params, given).expect("legal"))
        };
        assert_eq!(needs([("live", "0"), ("per-priority", "0")]), Needs::NONE);
        let all = needs([("live", "1"), ("per-priority", "1")]);
        assert!(all.sessions && all.priority);
    }
}
