//! What decisions are worth and why requests are slow, in real runs.

mod counterfactual;
mod why;
