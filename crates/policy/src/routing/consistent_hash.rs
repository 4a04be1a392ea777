//! `consistent-hash`: one instance for each session or prefix, whatever happens.
//!
//! **Prefers** the instance that the hash of the request's key points to: of its session, or else
//! of the first blocks of its prompt, or else (a prompt without a full block) of its own number.
//! Bounded, it passes over instances that have more than their part of the load.
//!
//! **Reads** nothing; bounded, `queue_depth` and `running` (as old as the last poll) and `unseen`
//! (live).
//!
//! **Parameters** `key`: `session` hashes the session if there is one, `prefix` always the prompt.
//! `prefix-blocks` (blocks): how many of the prompt's first blocks are hashed. `bounded`: whether
//! loads are looked at. `load-factor`: bounded, the most load that an instance may have, as a
//! multiple of the mean.
//!
//! **Origin** rendezvous hashing (Thaler and Ravishankar), so that an instance that leaves moves
//! its own keys only; bounded loads after Mirrokni, Thorup and Zadimoghaddam, as in Envoy's and
//! other proxies.

use crate::prelude::*;
use blis_core::random::mix;

/// How `consistent-hash` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "consistent-hash",
    help: "Hashes the session or the prefix to an instance",
    params: &[
        Param::choice("key", &["session", "prefix"])
            .help("Hash the session if there is one, or always the prefix"),
        Param::int("prefix-blocks", 1..=1_000_000, 1, "blocks")
            .help("Number of leading prompt blocks to hash"),
        Param::flag("bounded", false).help("Whether to skip instances above the load bound"),
        Param::float("load-factor", 1.0..=100.0, 1.25, "")
            .help("Load bound, as a multiple of the mean")
            .only_if("bounded", &["true"]),
    ],
    needs: |values| Needs { load: values.flag("bounded"), ..Needs::NONE },
    ..Spec::built_by(|values, _| Box::new(ConsistentHash::new(values)))
};

/// Rendezvous hashing, with or without a bound on loads.
#[derive(Clone, Copy, Debug)]
pub struct ConsistentHash {
    by_session: bool,
    prefix_blocks: u32,
    load_factor: Option<f64>,
    /// Whether the last choice was passed on because of a load.
    passed_on: bool,
    spilled: u64,
}

impl ConsistentHash {
    fn new(values: &Values) -> ConsistentHash {
        ConsistentHash {
            by_session: values.choice("key") == "session",
            prefix_blocks: u32::try_from(values.int("prefix-blocks")).unwrap_or(u32::MAX),
            load_factor: values.flag("bounded").then(|| values.float("load-factor")),
            passed_on: false,
            spilled: 0,
        }
    }

    fn key(&self, request: &RequestView<'_>) -> u64 {
        // Keys of different kinds must not meet, so each has a start of its own.
        match request.session.filter(|_| self.by_session) {
            Some(session) => mix(1, session.0),
            None if request.prompt_blocks.is_empty() => mix(3, request.id.0),
            None => mix(2, request.prompt_blocks.first(self.prefix_blocks).fingerprint()),
        }
    }

    /// The most load with which an instance still gets one more request.
    fn most(&self, cluster: &ClusterView<'_>) -> f64 {
        let Some(factor) = self.load_factor else {
            return f64::INFINITY;
        };
        let loads = cluster.instances.iter().map(|view| u64::from(view.load()));
        // With this request, so that there is always an instance below it.
        let mean =
            math::float(loads.sum::<u64>() + 1) / math::float(cluster.instances.len() as u64);
        (factor * mean).ceil() - 1.0
    }
}

impl Router for ConsistentHash {
    fn route(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Choice {
        let key = self.key(request);
        let most = self.most(cluster);
        let hash = |view: &InstanceView| mix(mix(key, u64::from(view.id.0)), key);
        let first = |views: &mut dyn Iterator<Item = &InstanceView>| {
            views.max_by_key(|view| hash(view)).map(|view| view.id)
        };
        let mut all = cluster.instances.iter();
        let own = first(&mut all).expect("there is an instance");
        let mut open = cluster.instances.iter().filter(|view| f64::from(view.load()) <= most);
        let instance = first(&mut open).unwrap_or(own);
        self.passed_on = instance != own;
        Choice::because(SPEC.name, instance)
    }

    fn sent(&mut self, _: &RequestView<'_>, _: InstanceId, _: Time) {
        self.spilled += u64::from(self.passed_on);
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add(SPEC.name, "spilled", self.spilled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{cluster, dice, instances, prompt, request};
    use blis_core::SessionId;

    fn router(given: &[(&'static str, &'static str)]) -> ConsistentHash {
        ConsistentHash::new(&Values::parse(SPEC.params, given.iter().copied()).expect("legal"))
    }

    fn chosen(
        router: &mut ConsistentHash,
        blocks: &[u64],
        session: Option<u64>,
        views: &[InstanceView],
    ) -> u32 {
        let asked = prompt(blocks);
        let request = RequestView { session: session.map(SessionId), ..request(&asked) };
        let choice = router.route(&request, &cluster(views), &mut dice(0));
        router.sent(&request, choice.instance, Time::ZERO);
        choice.instance.0
    }

    #[test]
    fn sessions_or_else_first_blocks_decide() {
        let views = instances(&[0; 8]);
        let mut router = router(&[]);
        let mut go = |blocks: &[u64], session| chosen(&mut router, blocks, session, &views);
        assert!((0..50).all(|s| go(&[s, 1], Some(7)) == go(&[s], Some(7))), "the session");
        assert!((0..50).all(|s| go(&[9, s], None) == go(&[9], None)), "the first block");
        assert!((1..50).any(|s| go(&[s], None) != go(&[0], None)));
        assert!((1..50).any(|s| go(&[0], Some(s)) != go(&[0], Some(0))));
    }

    #[test]
    fn the_key_may_be_the_prefix_and_longer() {
        let views = instances(&[0; 8]);
        let mut router = router(&[("key", "prefix"), ("prefix-blocks", "2")]);
        let mut go = |blocks: &[u64], session| chosen(&mut router, blocks, session, &views);
        assert!((0..50).all(|s| go(&[9, 3, s], Some(s)) == go(&[9, 3], None)));
        assert!((1..50).any(|s| go(&[9, s], None) != go(&[9, 0], None)));
    }

    #[test]
    fn keys_are_spread_evenly_and_only_those_of_an_instance_that_leaves_move() {
        let views = instances(&[0; 4]);
        let mut router = router(&[]);
        let mut sent = [0_u32; 4];
        for session in 0..8_000 {
            let before = chosen(&mut router, &[1], Some(session), &views);
            let after = chosen(&mut router, &[1], Some(session), &views[..3]);
            assert!(before == 3 || after == before);
            sent[before as usize] += 1;
        }
        assert!(sent.iter().all(|n| (1_850..2_150).contains(n)), "{sent:?}");
    }

    #[test]
    fn a_bound_spills_what_an_instance_has_too_much_of_and_always_to_the_same_place() {
        let mut views = instances(&[4; 4]);
        let mut bounded = router(&[("bounded", "true"), ("load-factor", "1.5")]);
        let own = chosen(&mut bounded, &[1], Some(1), &views);
        // 18 requests with this one make a bound of 7, so 6 is room for one more and 7 is not.
        views[own as usize].queue_depth = 6;
        assert_eq!(chosen(&mut bounded, &[1], Some(1), &views), own);
        views[own as usize].queue_depth = 20;
        let spilled = chosen(&mut bounded, &[1], Some(1), &views);
        assert_ne!(spilled, own);
        assert_eq!(chosen(&mut bounded, &[1], Some(1), &views), spilled);
        assert_eq!(bounded.spilled, 2);
        assert_eq!(chosen(&mut router(&[]), &[1], Some(1), &views), own, "without a bound");
    }
}
