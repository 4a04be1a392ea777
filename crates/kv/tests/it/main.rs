//! The pool against a naive reference, under random operations and in all small worlds; the laws of
//! caches; the link against exact arithmetic.

mod coverage;
mod exhaustive;
mod laws;
mod link;
mod named;
mod null;
mod operation;
mod pair;
mod pair_tier;
mod prompts;
mod random;
mod ratio;
mod reference;
mod reference_tier;
mod trace;
mod worth;
