//! `any-of`: several gates, side by side.
//!
//! **Prefers** requests that at least one member lets in, before routing and after it. All members
//! are asked; among those that let the request in, the first that also lets it in where it was
//! routed to has it, and the others take back what letting it in has changed, so that one bucket is
//! charged and not all. If none does, the reason of the last one asked is reported.
//!
//! **Reads** what its members read. It remembers who let a request in from admission to routing.
//!
//! **Parameters** none of its own: the members stand in parentheses, as in
//! `any-of(session-backpressure; token-bucket)`.
//!
//! **Origin** ours: the other way to combine gates, for quotas that protect a share of the traffic
//! from a gate.

use crate::prelude::*;
use std::collections::BTreeMap;

/// How `any-of` introduces itself; its members are given beside it.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "any-of",
    help: "Admits a request if any member does, as in `any-of(slo-gated; token-bucket)`",
    ..Spec::built_by(|_, _| Box::new(AnyOf::new(Vec::new())))
};

/// What `any-of` says without members.
const NOBODY: Verdict = Verdict::Reject("any-of");

/// Gates side by side.
pub struct AnyOf {
    members: Vec<Box<dyn Admission>>,
    /// The members that have let in each request that is not routed yet.
    open: BTreeMap<RequestId, Vec<usize>>,
    /// The last request that was let in for good, and by whom.
    last: Option<(RequestId, usize)>,
}

impl AnyOf {
    /// These gates, the first of which goes before the others.
    pub fn new(members: Vec<Box<dyn Admission>>) -> AnyOf {
        AnyOf { members, open: BTreeMap::new(), last: None }
    }
}

impl Admission for AnyOf {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Verdict {
        let mut verdict = NOBODY;
        let mut open = Vec::new();
        for (at, member) in self.members.iter_mut().enumerate() {
            match member.admit(request, cluster, dice) {
                Verdict::Admit => open.push(at),
                other => verdict = other,
            }
        }
        if open.is_empty() {
            return verdict;
        }
        self.open.insert(request.id, open);
        Verdict::Admit
    }

    fn admit_at(&mut self, request: &RequestView<'_>, chosen: &InstanceView, now: Time) -> Verdict {
        let mut verdict = NOBODY;
        for at in self.open.remove(&request.id).unwrap_or_default() {
            if verdict == Verdict::Admit {
                self.members[at].withdrawn(request, now);
                continue;
            }
            verdict = self.members[at].admit_at(request, chosen, now);
            if verdict == Verdict::Admit {
                self.last = Some((request.id, at));
            }
        }
        verdict
    }

    fn withdrawn(&mut self, request: &RequestView<'_>, now: Time) {
        let last = self.last.take_if(|(id, _)| *id == request.id).map(|(_, at)| at);
        for at in self.open.remove(&request.id).into_iter().flatten().chain(last) {
            self.members[at].withdrawn(request, now);
        }
    }

    fn given_up(&mut self, request: RequestId) {
        for member in &mut self.members {
            member.given_up(request);
        }
    }

    fn answered(&mut self, answer: &Answer) {
        for member in &mut self.members {
            member.answered(answer);
        }
    }

    fn firings(&self, firings: &mut Firings) {
        for member in &self.members {
            member.firings(firings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chosen::guest::Guests;
    use crate::gate::Gate;
    use crate::spec::Cluster;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};
    use blis_core::SloClass;

    /// Verdicts about batch requests of ten tokens that come to a cluster with queues of 9 and go
    /// to an instance with so many free blocks, one after the other.
    fn verdicts(text: &str, free: &[u32]) -> Vec<Verdict> {
        let mut gates = Gate::new(text, &[], &Guests::NONE).expect("legal").build(&Cluster::SMALL);
        let views = instances(&[9]);
        let asks = RequestView { class: SloClass::Batch, input_tokens: 10, ..request(&NOTHING) };
        let mut enter = |free_blocks: &u32| {
            let verdict = gates.admit(&asks, &cluster(&views), &mut dice(0));
            if verdict != Verdict::Admit {
                return verdict;
            }
            let chosen = InstanceView { free_blocks: *free_blocks, ..views[0] };
            gates.admit_at(&asks, &chosen, Time::ZERO)
        };
        free.iter().map(&mut enter).collect()
    }

    #[test]
    fn one_that_lets_in_is_enough_and_the_last_refusal_is_the_reason() {
        let (bucket, gated) = (Verdict::Reject("token-bucket"), Verdict::Reject("slo-gated"));
        let text = "any-of(slo-gated; token-bucket[capacity=10])";
        assert_eq!(verdicts(text, &[99, 99]), [Verdict::Admit, bucket]);
        let text = "any-of(token-bucket[capacity=10]; slo-gated)";
        assert_eq!(verdicts(text, &[99, 99]), [Verdict::Admit, gated]);
    }

    #[test]
    fn a_member_that_refuses_after_routing_leaves_the_request_to_the_others() {
        let text = "any-of(kv-gate; token-bucket[capacity=10])";
        let (yes, no) = (Verdict::Admit, Verdict::Reject("kv-gate"));
        // Where there is room, the gate lets in and the bucket stays full.
        assert_eq!(verdicts(text, &[99, 99, 0, 0, 99]), [yes, yes, yes, no, yes]);
    }

    #[test]
    fn without_members_nobody_is_let_in() {
        let mut none = AnyOf::new(Vec::new());
        let views = instances(&[0]);
        let verdict = none.admit(&request(&NOTHING), &cluster(&views), &mut dice(0));
        assert_eq!(verdict, Verdict::Reject("any-of"));
    }
}
