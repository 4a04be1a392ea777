//! `always-admit`: no admission control.
//!
//! **Prefers** every request: nobody is turned away at the gateway.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** the behaviour of a vLLM server behind a plain load balancer.

use crate::contract::{Admission, Verdict};
use crate::spec::Spec;
use crate::view::{InstanceView, Needs};
use blis_core::{RequestView, Time};

/// How `always-admit` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "always-admit",
    alias: None,
    help: "Lets every request in",
    params: &[],
    needs: Needs::NONE,
    build: |_, _| Box::new(AlwaysAdmit),
};

/// Lets every request in.
#[derive(Clone, Copy, Debug)]
pub struct AlwaysAdmit;

impl Admission for AlwaysAdmit {
    fn admit(&mut self, _: &RequestView<'_>, _: &[InstanceView], _: Time) -> Verdict {
        Verdict::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, request};

    #[test]
    fn a_request_is_let_in_even_if_there_are_no_instances() {
        assert_eq!(AlwaysAdmit.admit(&request(&NOTHING), &[], Time::ZERO), Verdict::Admit);
    }
}
