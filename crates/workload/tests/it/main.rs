//! What the crate promises as a whole: exact samplers, undisturbed draws, and a strict trace
//! reader.

mod mix;
mod samplers;
mod sessions;
mod trace;
mod trace_round_trip;
