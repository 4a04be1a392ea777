//! What policies are written with: contracts, views, and words of `core`.

pub(crate) use crate::contract::{
    Admission, Choice, Evict, Filter, Firings, Offload, Order, Picker, Preempt, Priority, Rescored,
    Router, Scorer, Verdict,
};
pub(crate) use crate::spec::{Cluster, Spec};
pub(crate) use crate::totals::Totals;
pub(crate) use crate::view::{
    Answer, ClusterView, InstanceView, Intent, MemoryView, Needs, PerClass, RunningView, UseView,
    WaitingView,
};
pub(crate) use blis_core::{
    Dice, InstanceId, Param, RequestId, RequestView, SloClass, Span, Time, Values, math,
};
