//! What fits in memory: the KV blocks of one engine, which prompts they remember, the tier behind
//! them and the links between the two.
//!
//! The engine (`sim`) asks for blocks, tells when they are full, and gives them back. This crate
//! must never know about requests, priorities or why a block is wanted; which idle blocks go first
//! is the evictor's choice, and when to copy is the offloader's.

pub mod link;
pub mod mirror;
pub mod pool;

pub use link::{Link, LinkSpeed, TransferId};
pub use mirror::{Change, Mirror, Shown};
pub use pool::{Behind, Departure, Hit, Judged, NoRoom, Pool, Table, Touched, Use};
