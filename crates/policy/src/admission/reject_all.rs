//! `reject-all`: a closed gateway.
//!
//! **Prefers** nobody: every request is turned away.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** pathological, for tests of reports and of clients that retry.

use crate::prelude::*;

/// How `reject-all` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "reject-all",
    help: "Rejects every request (pathological, for tests)",
    ..Spec::built_by(|_, _| Box::new(RejectAll))
};

/// Turns every request away.
#[derive(Clone, Copy, Debug)]
pub struct RejectAll;

impl Admission for RejectAll {
    fn admit(&mut self, _: &RequestView<'_>, _: &ClusterView<'_>, _: &mut Dice) -> Verdict {
        Verdict::Reject("reject-all")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    #[test]
    fn a_request_is_turned_away_with_the_name_of_the_policy_as_the_reason() {
        let views = instances(&[0]);
        let verdict = RejectAll.admit(&request(&NOTHING), &cluster(&views), &mut dice(0));
        assert_eq!(verdict, Verdict::Reject("reject-all"));
    }
}
