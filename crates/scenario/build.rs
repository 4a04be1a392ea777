//! Hashes what the numbers of a run depend on: the sources of every crate that a run goes through,
//! and the versions of the crates below them. The hash is `BLIS_CODE`; see decision 11.

#[path = "src/hash.rs"]
#[expect(dead_code, unreachable_pub, reason = "the crate uses the rest of it")]
mod hash;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders of crates.
const CRATES: [&str; 8] =
    ["core", "kv", "latency", "metrics", "policy", "scenario", "sim", "workload"];

fn main() -> io::Result<()> {
    // A build script runs in the folder of its crate, wherever it was compiled.
    let crates = Path::new("..");
    let mut files = vec![PathBuf::from("../Cargo.lock")];
    for name in CRATES {
        println!("cargo::rerun-if-changed=../{name}");
        collect(crates, Path::new(name), &mut files)?;
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    files.sort();
    let mut state = hash::START;
    for file in files {
        let content = fs::read(crates.join(&file))?;
        // The length keeps the end of one file from passing for the beginning of the next.
        let head = format!("{} {}\n", file.display(), content.len());
        state = hash::hash_more(hash::hash_more(state, head.as_bytes()), &content);
    }
    println!("cargo::rustc-env=BLIS_CODE={state:016x}");
    Ok(())
}

/// The files under `folder`, without those of tests.
fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let is_test = entry.file_name() == "tests" || entry.file_name() == "tests.rs";
        match entry.file_type()? {
            kind if kind.is_dir() && !is_test => collect(root, &path, files)?,
            kind if kind.is_file() && !is_test => files.push(path),
            _ => {}
        }
    }
    Ok(())
}
