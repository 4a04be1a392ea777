//! Writes the pages under `docs/reference`, which are generated from the code and never by hand.

use std::io;
use std::path::{Path, PathBuf};

/// Where the page of all policies lies, relative to the root.
pub const POLICIES: &str = "docs/reference/policies.md";

/// The page of all policies and their parameters.
pub fn policies() -> String {
    blis_policy::registry::reference_markdown()
}

/// Writes the generated pages under `root` and returns where.
///
/// # Errors
/// If a page cannot be written.
pub fn write(root: &Path) -> io::Result<PathBuf> {
    let path = root.join(POLICIES);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&path, policies())?;
    Ok(path)
}
