//! Oracles: decisions with knowledge that nobody has, to see what is left to gain.
//!
//! They are no policies. No strategy can name them, they are in no registry, and nothing that they
//! know (output lengths, the exact state of every engine now) passes through the views that
//! policies get. A run with an oracle is sent the same requests as one without.
//!
//! The router looks ahead: for each instance, a copy of the engine as it is now, with all that is
//! on its way there, takes its steps until the first token of the request comes, as if nobody came
//! later or gave up. What it finds is exact if nobody does. It is not the best that can be: it does
//! not plan for those who come later. The order is that of the least work left. The third oracle,
//! `belady`, is an evictor that is told of the [`Future`](crate::Future).

mod floor;
mod work;

pub use floor::{Floor, Floors};
pub(crate) use work::Work;
