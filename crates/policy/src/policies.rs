//! The policies of one cluster, one of each kind: what a scenario chooses and a run is built from.

use crate::admission::always_admit;
use crate::chosen::Chosen;
use crate::contract::{Evict, Offload, Order, Preempt, Priority};
use crate::evict::lru;
use crate::gate::Gate;
use crate::offload::threshold;
use crate::order::fcfs;
use crate::preempt::tail;
use crate::priority::constant;
use crate::routing::round_robin;
use crate::routing::router::Routing;
use crate::spec::PolicyError;
use crate::view::Needs;

/// One policy of each kind.
#[derive(Clone, Debug)]
pub struct Policies {
    /// Who enters.
    pub admission: Gate,
    /// Where they go.
    pub routing: Routing,
    /// Who is scheduled first.
    pub order: Chosen<dyn Order>,
    /// How important a waiting request is.
    pub priority: Chosen<dyn Priority>,
    /// Who is preempted.
    pub preempt: Chosen<dyn Preempt>,
    /// Which cached blocks go first.
    pub evict: Chosen<dyn Evict>,
    /// Which blocks are copied to the CPU tier, if there is one.
    pub offload: Chosen<dyn Offload>,
}

/// What a scenario that says nothing gets.
impl Default for Policies {
    fn default() -> Policies {
        Policies {
            admission: Gate::One(Chosen::plain(&always_admit::SPEC)),
            routing: Routing { router: Chosen::plain(&round_robin::SPEC), parts: None },
            order: Chosen::plain(&fcfs::SPEC),
            priority: Chosen::plain(&constant::SPEC),
            preempt: Chosen::plain(&tail::SPEC),
            evict: Chosen::plain(&lru::SPEC),
            offload: Chosen::plain(&threshold::SPEC),
        }
    }
}

impl Policies {
    /// What those of the gateway read.
    pub fn gateway_needs(&self) -> Needs {
        self.admission.needs().or(self.routing.needs())
    }

    /// What those of the engine read.
    pub fn engine_needs(&self) -> Needs {
        let Policies { admission: _, routing: _, order, priority, preempt, evict, offload } = self;
        let needs = order.needs().or(priority.needs()).or(preempt.needs());
        needs.or(evict.needs()).or(offload.needs())
    }

    /// Refuses priorities that nobody reads: they would change nothing, and look as if they did not
    /// help.
    ///
    /// # Errors
    /// If that is so.
    pub fn check_priority_is_read(&self) -> Result<(), PolicyError> {
        let Policies { order, priority, preempt, evict, .. } = self;
        let readers = [order.needs(), preempt.needs(), evict.needs()];
        if priority.name() == constant::SPEC.name || readers.iter().any(|needs| needs.priority) {
            return Ok(());
        }
        Err(PolicyError::NobodyReads {
            setting: "priority",
            readers: format!("scheduler `{order}`, preempt `{preempt}` and evict `{evict}`"),
            remedy: "give the scheduler `priority-fcfs`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_that_nobody_reads_are_refused() {
        let priority = Chosen::parse("slo-class").expect("legal");
        let unread = Policies { priority, ..Policies::default() };
        let error = unread.check_priority_is_read().expect_err("nobody reads them").to_string();
        assert!(error.contains("none of scheduler `fcfs`, preempt `tail` and evict `lru`"));
        for read in [
            Policies { order: Chosen::parse("priority-fcfs").expect("legal"), ..unread.clone() },
            Policies {
                preempt: Chosen::parse("lowest-priority").expect("legal"),
                ..unread.clone()
            },
            Policies { evict: Chosen::parse("intent-aware").expect("legal"), ..unread },
            Policies::default(),
        ] {
            assert!(read.check_priority_is_read().is_ok(), "{read:?}");
        }
    }

    #[test]
    fn what_all_read_is_what_any_reads() {
        let policies = Policies {
            evict: Chosen::parse("belady").expect("legal"),
            order: Chosen::parse("cache-first").expect("legal"),
            ..Policies::default()
        };
        let needs = policies.engine_needs();
        assert!(needs.future && needs.cached && !needs.load);
        assert_eq!(policies.gateway_needs(), Needs::NONE);
    }
}
