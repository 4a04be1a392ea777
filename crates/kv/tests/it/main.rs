//! The pool against a naive reference, under random operations and in all small worlds; the link
//! against exact arithmetic.

mod exhaustive;
mod link;
mod named;
mod pair;
mod prompts;
mod random;
mod ratio;
mod reference;
