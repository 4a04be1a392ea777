//! What decisions are worth, in real runs.

mod counterfactual;
