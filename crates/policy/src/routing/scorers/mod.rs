//! Scorers: how good each instance is for a request, in the eyes of the `weighted` router.
//! One file a scorer, one line here.

pub mod active_request;
pub mod cost_benefit;
pub mod dynamo_kv;
pub mod formula;
pub mod kv_pressure;
pub mod kv_pressure_slo;
pub mod kv_utilization;
pub mod least_harm;
pub mod lmetric;
pub mod load_balance;
pub mod no_hit_lru;
mod plain;
pub mod precise_prefix;
pub mod predicted_latency;
pub mod prefix_affinity;
pub mod queue;
pub mod queue_depth;
pub mod running_requests;
pub mod session;
pub mod slo_headroom;
pub mod token_load;

use crate::contract::Scorer;
use crate::scale::{Best, min_max};
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Scorer>] = &[
    &active_request::SPEC,
    &cost_benefit::SPEC,
    &dynamo_kv::SPEC,
    &formula::SPEC,
    &kv_pressure::SPEC,
    &kv_pressure_slo::SPEC,
    &kv_utilization::SPEC,
    &least_harm::SPEC,
    &lmetric::SPEC,
    &load_balance::SPEC,
    &no_hit_lru::SPEC,
    &precise_prefix::SPEC,
    &predicted_latency::SPEC,
    &prefix_affinity::SPEC,
    &queue::SPEC,
    &queue_depth::SPEC,
    &running_requests::SPEC,
    &session::SPEC,
    &slo_headroom::SPEC,
    &token_load::SPEC,
];
