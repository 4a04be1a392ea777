//! From texts to policies of one run.

use crate::chosen::guest::Guests;
use crate::chosen::{Chosen, Policy};
use crate::contract::{Admission, Evict, Offload, Order, Preempt, Priority, Router};
use crate::gate::Gate;
use crate::routing::router::{PartsText, Routing};
use crate::spec::{Cluster, PolicyError};
use crate::view::Needs;
use std::fmt;

/// A policy made from its text.
pub struct Built<P: ?Sized> {
    /// The policy.
    pub policy: Box<P>,
    /// What it reads.
    pub needs: Needs,
    /// Its full spelling.
    pub canonical: String,
}

impl<P: ?Sized> fmt::Debug for Built<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Built").field(&self.canonical).finish()
    }
}

/// The settings of routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingText<'a> {
    /// The routing policy: `name` or `name[parameter=value,...]`.
    pub policy: &'a str,
    /// Scorers with weights.
    pub scorers: Option<&'a str>,
    /// Filters.
    pub filters: Option<&'a str>,
    /// The picker.
    pub picker: Option<&'a str>,
    /// The parameter `lru-capacity` of the scorer `prefix-affinity`.
    pub lru_capacity: Option<u64>,
}

fn built<P: Policy + ?Sized>(
    text: &str,
    guests: &Guests,
    cluster: &Cluster,
) -> Result<Built<P>, PolicyError> {
    let chosen = Chosen::<P>::new(text, &[], guests)?;
    let (policy, needs) = (chosen.build(cluster), chosen.needs());
    Ok(Built { policy, needs, canonical: chosen.to_string() })
}

impl Guests {
    /// The router that `text` spells.
    ///
    /// # Errors
    /// As [`Routing::new`].
    pub fn build_router(
        &self,
        text: &RoutingText<'_>,
        cluster: &Cluster,
    ) -> Result<Built<dyn Router>, PolicyError> {
        let RoutingText { policy, scorers, filters, picker, lru_capacity } = *text;
        let parts = PartsText { scorers, filters, picker, lru_capacity };
        let chosen = Routing::new(policy, &[], &parts, self)?;
        let (policy, needs) = (chosen.build(cluster), chosen.needs());
        Ok(Built { policy, needs, canonical: chosen.to_string() })
    }

    /// The admission policy that `text` spells.
    ///
    /// # Errors
    /// As [`Gate::new`].
    pub fn build_admission(
        &self,
        text: &str,
        cluster: &Cluster,
    ) -> Result<Built<dyn Admission>, PolicyError> {
        let chosen = Gate::new(text, &[], self)?;
        let (policy, needs) = (chosen.build(cluster), chosen.needs());
        Ok(Built { policy, needs, canonical: chosen.to_string() })
    }

    /// The order of waiting requests that `text` spells.
    ///
    /// # Errors
    /// As [`Chosen::new`].
    pub fn build_order(
        &self,
        text: &str,
        cluster: &Cluster,
    ) -> Result<Built<dyn Order>, PolicyError> {
        built(text, self, cluster)
    }
}

/// The router that `text` spells.
///
/// # Errors
/// As [`Routing::new`].
pub fn build_router(
    text: &RoutingText<'_>,
    cluster: &Cluster,
) -> Result<Built<dyn Router>, PolicyError> {
    Guests::NONE.build_router(text, cluster)
}

/// The admission policy that `text` spells.
///
/// # Errors
/// As [`Gate::new`].
pub fn build_admission(text: &str, cluster: &Cluster) -> Result<Built<dyn Admission>, PolicyError> {
    Guests::NONE.build_admission(text, cluster)
}

/// The order of waiting requests that `text` spells.
///
/// # Errors
/// As [`Chosen::new`].
pub fn build_order(text: &str, cluster: &Cluster) -> Result<Built<dyn Order>, PolicyError> {
    built(text, &Guests::NONE, cluster)
}

/// The priority policy that `text` spells.
///
/// # Errors
/// As [`Chosen::new`].
pub fn build_priority(text: &str, cluster: &Cluster) -> Result<Built<dyn Priority>, PolicyError> {
    built(text, &Guests::NONE, cluster)
}

/// The preemption policy that `text` spells.
///
/// # Errors
/// As [`Chosen::new`].
pub fn build_preempt(text: &str, cluster: &Cluster) -> Result<Built<dyn Preempt>, PolicyError> {
    built(text, &Guests::NONE, cluster)
}

/// The eviction policy that `text` spells.
///
/// # Errors
/// As [`Chosen::new`].
pub fn build_evict(text: &str, cluster: &Cluster) -> Result<Built<dyn Evict>, PolicyError> {
    built(text, &Guests::NONE, cluster)
}

/// The offload policy that `text` spells.
///
/// # Errors
/// As [`Chosen::new`].
pub fn build_offload(text: &str, cluster: &Cluster) -> Result<Built<dyn Offload>, PolicyError> {
    built(text, &Guests::NONE, cluster)
}
