//! `all-of`: several gates, one behind the other.
//!
//! **Prefers** requests that every member lets in. Members are asked in their order up to the first
//! that turns the request away, whose reason is reported; those before it take back what letting
//! the request in has changed, so that a bucket is not charged for whom others refuse, and those
//! behind it never hear of the request. After routing they are asked again in the same way.
//!
//! **Reads** what its members read.
//!
//! **Parameters** none of its own: the members stand in parentheses, as in
//! `all-of(slo-gated[threshold=8]; token-bucket)`.
//!
//! **Origin** the chain of admission plugins of llm-d's endpoint picker.

use crate::prelude::*;

/// How `all-of` introduces itself; its members are given beside it.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "all-of",
    help: "Admits a request if all members do, as in `all-of(slo-gated; kv-gate)`",
    ..Spec::built_by(|_, _| Box::new(AllOf::new(Vec::new())))
};

/// Gates one behind the other.
pub struct AllOf {
    members: Vec<Box<dyn Admission>>,
}

impl AllOf {
    /// These gates in this order.
    pub fn new(members: Vec<Box<dyn Admission>>) -> AllOf {
        AllOf { members }
    }
}

impl Admission for AllOf {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Verdict {
        for at in 0..self.members.len() {
            let verdict = self.members[at].admit(request, cluster, dice);
            if verdict != Verdict::Admit {
                for before in &mut self.members[..at] {
                    before.withdrawn(request, cluster.now);
                }
                return verdict;
            }
        }
        Verdict::Admit
    }

    fn admit_at(&mut self, request: &RequestView<'_>, chosen: &InstanceView, now: Time) -> Verdict {
        for at in 0..self.members.len() {
            let verdict = self.members[at].admit_at(request, chosen, now);
            if verdict != Verdict::Admit {
                for (other, member) in self.members.iter_mut().enumerate() {
                    if other != at {
                        member.withdrawn(request, now);
                    }
                }
                return verdict;
            }
        }
        Verdict::Admit
    }

    fn withdrawn(&mut self, request: &RequestView<'_>, now: Time) {
        for member in &mut self.members {
            member.withdrawn(request, now);
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

    fn gates(text: &str) -> Box<dyn Admission> {
        Gate::new(text, &[], &Guests::NONE).expect("legal").build(&Cluster::SMALL)
    }

    fn asks(class: SloClass) -> RequestView<'static> {
        RequestView { class, input_tokens: 10, ..request(&NOTHING) }
    }

    #[test]
    fn the_first_that_turns_away_gives_the_reason() {
        let verdict = |text: &str, queue| {
            let views = instances(&[queue]);
            gates(text).admit(&asks(SloClass::Batch), &cluster(&views), &mut dice(0))
        };
        assert_eq!(verdict("all-of(slo-gated; token-bucket)", 0), Verdict::Admit);
        let both = "all-of(token-bucket[capacity=9]; slo-gated)";
        assert_eq!(verdict(both, 9), Verdict::Reject("token-bucket"));
        let both = "all-of(slo-gated; token-bucket[capacity=9])";
        assert_eq!(verdict(both, 9), Verdict::Reject("slo-gated"));
        assert_eq!(verdict(both, 0), Verdict::Reject("token-bucket"));
    }

    #[test]
    fn a_bucket_is_not_charged_for_whom_others_turn_away_before_or_after_routing() {
        let full = InstanceView { queue_depth: 9, free_blocks: 0, ..instances(&[0])[0] };
        let idle = instances(&[0])[0];
        for (text, here, there) in [
            ("all-of(token-bucket[capacity=10]; slo-gated)", full, idle),
            ("all-of(slo-gated; token-bucket[capacity=10])", full, idle),
            ("all-of(token-bucket[capacity=10]; kv-gate)", idle, full),
            ("all-of(kv-gate; token-bucket[capacity=10])", idle, full),
            ("all-of(any-of(token-bucket[capacity=10]; reject-all); kv-gate)", idle, full),
            ("all-of(kv-gate; any-of(reject-all; token-bucket[capacity=10]))", idle, full),
        ] {
            let mut gates = gates(text);
            let mut enter = |class, chosen: InstanceView| {
                let (request, views) = (asks(class), [here]);
                let verdict = gates.admit(&request, &cluster(&views), &mut dice(0));
                if verdict != Verdict::Admit {
                    return verdict;
                }
                gates.admit_at(&request, &chosen, Time::ZERO)
            };
            assert_ne!(enter(SloClass::Batch, there), Verdict::Admit, "{text}");
            assert_eq!(enter(SloClass::Critical, idle), Verdict::Admit, "{text}");
            let third = enter(SloClass::Critical, idle);
            assert_ne!(third, Verdict::Admit, "{text}: who got in has paid");
        }
    }
}
