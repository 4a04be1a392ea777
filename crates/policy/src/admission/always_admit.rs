//! `always-admit`: no admission control.
//!
//! **Prefers** every request: nobody is turned away at the gateway.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** the behaviour of a vLLM server behind a plain load balancer.

use crate::prelude::*;

/// How `always-admit` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "always-admit",
    help: "Admits every request",
    ..Spec::built_by(|_, _| Box::new(AlwaysAdmit))
};

/// Lets every request in.
#[derive(Clone, Copy, Debug)]
pub struct AlwaysAdmit;

impl Admission for AlwaysAdmit {
    fn admit(&mut self, _: &RequestView<'_>, _: &ClusterView<'_>, _: &mut Dice) -> Verdict {
        Verdict::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    #[test]
    fn a_request_is_let_in_however_full_the_cluster_is() {
        let views = instances(&[1_000_000]);
        let verdict = AlwaysAdmit.admit(&request(&NOTHING), &cluster(&views), &mut dice(0));
        assert_eq!(verdict, Verdict::Admit);
    }
}
