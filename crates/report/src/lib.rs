//! What BLIS tells people: one document for every command, and four ways to write it.
//!
//! A module for each kind of result builds a [`Document`] (headings, prose, tables, charts, verdict
//! cards, warnings) once. [`terminal`], [`markdown`] and [`html`] write it, and it serialises to
//! JSON. Nothing here runs, prints or reads anything, so the binary and the Python package share
//! all of it.

pub mod calibrate;
pub mod capacity;
pub mod chart;
pub mod compare;
pub mod evolve;
pub mod explain;
pub mod html;
pub mod ledger;
pub mod lists;
pub mod markdown;
mod model;
pub mod over_time;
pub mod public;
pub mod run;
pub mod search;
pub mod sections;
pub mod studies;
pub mod study;
pub mod svg;
pub mod terminal;
pub mod text;
pub mod trace;
pub mod validate;
pub mod why;

pub use model::{Block, Card, Document, Group, Table};
