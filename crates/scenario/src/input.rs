//! Opens the files that the user has named, directly or in another file, and remembers them.
//!
//! Every reader opens its files here, and whoever writes files asks [`opened`], so that nothing
//! that was read is overwritten.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The files that this process has opened to read them.
static OPENED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Opens a file to read it.
///
/// # Errors
/// If the system cannot open it.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
    Ok(file)
}

/// All bytes of a file.
///
/// # Errors
/// If the system cannot open or read it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The files that this process has opened to read them, as they were named.
pub fn opened() -> BTreeSet<PathBuf> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
