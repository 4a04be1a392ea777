//! What the crate promises as a whole: exact samplers, undisturbed draws, and a strict trace
//! reader.

mod in_turn;
mod mix;
mod rates;
mod samplers;
mod sessions;
mod trace;
mod trace_closed_loop;
mod trace_damage;
mod trace_edit;
mod trace_formats;
mod trace_malformed;
mod trace_round_trip;
mod trace_support;
mod users;
