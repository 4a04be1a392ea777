//! Admission: whether the gateway lets a request in. One file a policy, one line here.

pub mod all_of;
pub mod always_admit;
pub mod any_of;
pub mod burst_throttle;
pub mod class_queue;
pub mod flow_control;
pub mod formula;
pub mod kv_gate;
pub mod latency_slo;
pub mod probabilistic;
pub mod reject_all;
pub mod session_backpressure;
pub mod slo_gated;
pub mod token_bucket;
pub mod ttft_budget;

use crate::contract::Admission;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Admission>] = &[
    &all_of::SPEC,
    &always_admit::SPEC,
    &any_of::SPEC,
    &burst_throttle::SPEC,
    &class_queue::SPEC,
    &flow_control::SPEC,
    &formula::SPEC,
    &kv_gate::SPEC,
    &latency_slo::SPEC,
    &probabilistic::SPEC,
    &reject_all::SPEC,
    &session_backpressure::SPEC,
    &slo_gated::SPEC,
    &token_bucket::SPEC,
    &ttft_budget::SPEC,
];
