//! The pool against a naive reference, under random operations and in all small worlds; the link
//! against exact arithmetic.

mod coverage;
mod exhaustive;
mod link;
mod named;
mod operation;
mod pair;
mod pair_tier;
mod prompts;
mod random;
mod ratio;
mod reference;
mod reference_tier;
