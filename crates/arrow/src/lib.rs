//! Columns that other programs read in place, through Arrow's C data interface.
//!
//! Whoever has rows to hand out pushes them into a [`Table`], column by column, and gives a reader
//! a [`Stream`] of it: three plain C structs whose layout is fixed for good, so that no library is
//! needed on this side. The reader sees the very memory of the columns, which lives until the last
//! reader lets go of it. Tables never change once they are streamed.

mod column;
mod export;
pub mod layout;

pub use column::{Column, Table};
pub use layout::{ArrayStream, Schema};
