//! The pool against a naive reference, under random operations and in all small worlds.

mod exhaustive;
mod pair;
mod prompts;
mod random;
mod reference;
