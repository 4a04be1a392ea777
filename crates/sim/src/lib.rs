//! The world: a cluster of engines behind a gateway, simulated event by event.
//!
//! [`run`] takes a [`Config`], a source of requests and a listener, and returns an [`Outcome`]. It
//! is pure: no files, no clock, no printing, no threads. It must never know about scenarios,
//! studies or reports.

mod agenda;
pub mod config;
mod earliest;
mod future;
mod instance;
mod knowledge;
mod live;
mod oracle;
mod outcome;
mod signals;
mod world;

pub use config::{
    Config, Engine, Freshness, Gateway, GatewayPolicies, Instead, KvTier, LONGEST_DRAFT, Oracles,
    Pace, Policies, Pool, Preemption, Prefill, Reload, Signals, Speculation,
};
pub use future::Future;
pub use oracle::{Floor, Floors};
pub use outcome::{Extrapolated, Observer, Outcome, Progress, RunError, Unobserved};

pub use blis_metrics::End;

use blis_core::Source;
use blis_metrics::Listener;

/// Simulates `source` on the cluster `config` and states every fact to `listener`.
///
/// # Errors
/// If the source fails; facts stated until then stand, but requests in flight are not closed.
pub fn run(
    config: Config,
    source: &mut dyn Source,
    listener: &mut dyn Listener,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    world::World::new(config, source, listener).run(observer)
}
