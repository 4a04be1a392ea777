//! `kv-adaptive`: one set of weights while blocks are plenty, another when they are scarce.
//!
//! **Prefers** instances with a high weighted sum of scores, like `weighted`, but with two weights
//! a scorer. It goes over to the second ones when the share of KV blocks in use passes a limit, and
//! back when it has fallen clearly below it, so that it does not flutter.
//!
//! **Reads** `kv_utilization` (as old as the last poll), and what its filters and scorers read.
//!
//! **Parameters** `scarce-above`: the share of blocks in use beyond which they are scarce.
//! `hysteresis`: how far below that it must fall until they are plenty again. `measure`: whether
//! the fullest instance counts or the mean of all. Scorers are a setting beside it, spelled
//! `pa:3/2,qd:2,kv:2/5`: weights while plenty / when scarce, one where they are the same; filters
//! and picker are as of `weighted`.
//!
//! **Origin** gain scheduling, the plainest of adaptive controls: affinity pays while there is room
//! for what it keeps, and costs preemptions when there is none.

use crate::prelude::*;
use crate::routing::router::RouterParts;
use crate::routing::weighted::{Parts, Weighted};

/// The scorers when none are given.
pub const DEFAULT_SCORERS: &str = "pa:3/2,qd:2,kv:2/5";

/// What it reads besides its parts.
pub(crate) const OWN_NEEDS: Needs = Needs { kv: true, ..Needs::NONE };

/// How `kv-adaptive` introduces itself. Its needs are those of the default scorers; a router built
/// with other scorers has theirs.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "kv-adaptive",
    help: "Weighted scorers, with a second set of weights when KV blocks are scarce",
    params: &[
        Param::float("scarce-above", 0.0..=1.0, 0.8, "")
            .help("Share of KV blocks in use above which they are scarce"),
        Param::float("hysteresis", 0.0..=1.0, 0.1, "")
            .help("How far below that the share must fall to switch back"),
        Param::choice("measure", &["max", "mean"])
            .help("Compare the fullest instance, or the mean"),
    ],
    needs: |values| RouterParts::default_of("kv-adaptive", values).needs(),
    ..Spec::built_by(|values, cluster| {
        RouterParts::default_of("kv-adaptive", values).build(values, cluster)
    })
};

/// Two profiles of weights, switched by the share of blocks in use.
pub struct KvAdaptive {
    weighted: Weighted,
    /// While blocks are plenty, and when they are scarce.
    profiles: [Vec<f64>; 2],
    scarce_above: f64,
    plenty_below: f64,
    by_mean: bool,
    scarce: bool,
    /// What the last choice took it for; the state once it is sent.
    judged: bool,
    switches: u64,
    sent_when_scarce: u64,
}

impl KvAdaptive {
    /// A router made of `parts`, with the parameters `values`.
    pub(crate) fn new(parts: Parts, values: &Values) -> KvAdaptive {
        let plenty = parts.scorers.scorers.iter().map(|(_, weight, _)| *weight).collect();
        let profiles = [plenty, parts.scorers.second.clone()];
        let scarce_above = values.float("scarce-above");
        KvAdaptive {
            weighted: parts.weighted(),
            profiles,
            scarce_above,
            plenty_below: scarce_above - values.float("hysteresis"),
            by_mean: values.choice("measure") == "mean",
            scarce: false,
            judged: false,
            switches: 0,
            sent_when_scarce: 0,
        }
    }

    fn is_scarce(&self, cluster: &ClusterView<'_>) -> bool {
        let used = |view: &InstanceView| view.kv_utilization;
        let most = || cluster.instances.iter().map(used).fold(0.0, f64::max);
        let share = if self.by_mean { cluster.mean(used) } else { most() };
        if self.scarce { share >= self.plenty_below } else { share > self.scarce_above }
    }
}

impl Router for KvAdaptive {
    fn route(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Choice {
        let judged = self.is_scarce(cluster);
        if judged != self.judged {
            self.judged = judged;
            self.weighted.reweigh(self.profiles[usize::from(judged)].iter().copied());
        }
        self.weighted.route(request, cluster, dice)
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, now: Time) {
        self.switches += u64::from(self.scarce != self.judged);
        self.sent_when_scarce += u64::from(self.judged);
        self.scarce = self.judged;
        self.weighted.sent(request, instance, now);
    }

    fn because(&self) -> Option<&'static str> {
        self.weighted.because()
    }

    fn totals(&mut self) -> &[f64] {
        self.weighted.totals()
    }

    fn opinions(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.weighted.opinions()
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add(SPEC.name, "switched", self.switches);
        firings.add(SPEC.name, "scarce", self.sent_when_scarce);
        self.weighted.firings(firings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chosen::guest::Guests;
    use crate::routing::router::{PartsText, Routing};
    use crate::spec::Cluster;
    use crate::view::examples::{cluster, dice, instances, prompt, request};

    fn router(policy: &str) -> Box<dyn Router> {
        let parts = PartsText { scorers: Some("pa:2/0,kv:1"), ..PartsText::default() };
        let routing = Routing::new(policy, &[], &parts, &Guests::NONE).expect("legal");
        let mut router = routing.build(&Cluster::SMALL);
        router.sent(&request(&prompt(&[1])), InstanceId(0), Time::ZERO);
        router
    }

    /// Where a prompt that is warm on instance 0 goes, when that uses such shares of its blocks.
    fn chosen(router: &mut dyn Router, shares: &[f64]) -> Vec<u32> {
        let choose = |share: &f64| {
            let mut views = instances(&[0, 0]);
            views[0].kv_utilization = *share;
            let asked = prompt(&[1]);
            let choice = router.route(&request(&asked), &cluster(&views), &mut dice(0));
            router.sent(&request(&asked), choice.instance, Time::ZERO);
            choice.instance.0
        };
        shares.iter().map(choose).collect()
    }

    fn firing(router: &dyn Router, name: &str) -> u64 {
        let mut firings = Firings::default();
        router.firings(&mut firings);
        let list = firings.into_list();
        list.iter().find(|(known, _)| known == name).expect(name).1
    }

    #[test]
    fn affinity_rules_while_blocks_are_plenty_and_memory_when_they_are_scarce() {
        let mut router = router("kv-adaptive[scarce-above=0.8]");
        assert_eq!(chosen(&mut *router, &[0.2, 0.79]), [0, 0]);
        assert_eq!(chosen(&mut *router, &[0.81]), [1]);
        assert_eq!(firing(&*router, "kv-adaptive.switched"), 1);
        assert_eq!(firing(&*router, "kv-adaptive.scarce"), 1);
    }

    #[test]
    fn it_does_not_go_back_until_use_has_fallen_clearly_below_the_limit() {
        let switches = |policy: &str| {
            let mut router = router(policy);
            chosen(&mut *router, &[0.81, 0.75, 0.81, 0.75, 0.69]);
            firing(&*router, "kv-adaptive.switched")
        };
        assert_eq!(switches("kv-adaptive[scarce-above=0.8,hysteresis=0.1]"), 2);
        assert_eq!(switches("kv-adaptive[scarce-above=0.8,hysteresis=0]"), 4);
    }

    #[test]
    fn the_mean_may_be_measured_instead_of_the_fullest() {
        let mut router = router("kv-adaptive[scarce-above=0.8,measure=mean]");
        chosen(&mut *router, &[1.0]);
        assert_eq!(firing(&*router, "kv-adaptive.switched"), 0);
    }

    #[test]
    fn asking_does_not_switch_it() {
        let mut router = router("kv-adaptive");
        let mut views = instances(&[0, 0]);
        views[0].kv_utilization = 0.9;
        let asked = prompt(&[1]);
        router.route(&request(&asked), &cluster(&views), &mut dice(0));
        views[0].kv_utilization = 0.75;
        let choice = router.route(&request(&asked), &cluster(&views), &mut dice(0));
        assert_eq!(choice.instance.0, 0, "plenty, because nothing was sent at 0.9");
    }
}
