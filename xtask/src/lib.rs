//! Chores of the workspace, run as `cargo xtask <chore>`.
//!
//! [`tidy`] holds the house rules and runs inside `cargo test`; [`reference`] writes the generated
//! pages; [`bench`] measures the costs that the project promises; [`lines`] counts the code;
//! [`same`] compares what two builds compute; [`soak`] tries random worlds and command lines;
//! [`archive`] replays the scripts of the Go program.
//! Nothing here is part of the product, and no crate may import this one.

pub mod archive;
pub mod bench;
#[cfg(test)]
mod fixture;
pub mod lines;
mod modules;
pub mod reference;
pub mod same;
pub mod soak;
mod source;
pub mod tidy;
mod tree;

use std::path::{Path, PathBuf};

/// The root of the workspace that this program was built from.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
