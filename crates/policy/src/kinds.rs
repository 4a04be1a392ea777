//! The kinds of policies: what each is called, those that ship, and which guests it may have.

use crate::chosen::Policy;
use crate::chosen::guest::{Guest, Guests};
use crate::contract::{
    Admission, Evict, Filter, Offload, Order, Picker, Preempt, Priority, Router, Scorer,
};
use crate::routing::{filters, pickers, scorers};
use crate::spec::Spec;
use crate::{admission, evict, offload, order, preempt, priority, routing};
use std::sync::Arc;

macro_rules! kinds {
    ($($contract:ident, $kind:literal, $all:path $(, $guests:ident)?;)*) => {$(
        impl Policy for dyn $contract {
            const KIND: &'static str = $kind;
            const ALL: &'static [&'static Spec<dyn $contract>] = $all;
            $(fn of(guests: &Guests) -> &[Arc<Guest<dyn $contract>>] {
                &guests.$guests
            })?
        }
    )*};
}

kinds! {
    Admission, "admission policy", admission::ALL, admissions;
    Router, "routing policy", routing::ALL;
    Scorer, "scorer", scorers::ALL, scorers;
    Filter, "filter", filters::ALL;
    Picker, "picker", pickers::ALL;
    Order, "order", order::ALL, orders;
    Priority, "priority policy", priority::ALL;
    Preempt, "preemption policy", preempt::ALL;
    Evict, "eviction policy", evict::ALL;
    Offload, "offload policy", offload::ALL;
}
