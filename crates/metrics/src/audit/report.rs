//! What an audit finds, and where.

use blis_core::{InstanceId, RequestId, Time};
use std::fmt;

/// The most violations that are kept; the rest is counted.
pub(super) const KEPT: usize = 20;

/// Something impossible that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant, as numbered in the reliability plan: `I1` to `I20`.
    pub invariant: &'static str,
    /// When, in simulated time.
    pub at: Time,
    /// The request concerned.
    pub request: Option<RequestId>,
    /// The instance concerned.
    pub instance: Option<InstanceId>,
    /// What was found and what was expected.
    pub what: String,
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// The first violations, at most 20.
    pub first: Vec<Violation>,
    /// How many there were.
    pub count: u64,
}

/// Where something happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) at: Time,
    pub(super) request: Option<RequestId>,
    pub(super) instance: Option<InstanceId>,
}

impl AuditReport {
    /// Whether nothing impossible was heard.
    pub fn is_clean(&self) -> bool {
        self.count == 0
    }

    /// Notes a violation of `invariant` unless `holds`.
    #[inline]
    pub(super) fn check(
        &mut self,
        holds: bool,
        invariant: &'static str,
        place: Place,
        what: impl FnOnce() -> String,
    ) {
        if !holds {
            self.note(invariant, place, what);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn note(
        &mut self,
        invariant: &'static str,
        place: Place,
        what: impl FnOnce() -> String,
    ) {
        self.count += 1;
        if self.first.len() < KEPT {
            let Place { at, request, instance } = place;
            self.first.push(Violation { invariant, at, request, instance, what: what() });
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.invariant, self.at)?;
        if let Some(request) = self.request {
            write!(f, ", request {}", request.0)?;
        }
        if let Some(instance) = self.instance {
            write!(f, ", instance {}", instance.0)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl Place {
    pub(super) fn run(at: Time) -> Place {
        Place { at, request: None, instance: None }
    }

    pub(super) fn instance(at: Time, instance: InstanceId) -> Place {
        Place { at, request: None, instance: Some(instance) }
    }
}
