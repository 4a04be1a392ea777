//! Where an output really goes: what a path means once its symbolic links are followed.
//!
//! A file is written beside the place where it ends up, so a link stays a link. What is no file (a
//! device, a pipe, an open file of this process) is written as it stands. Two outputs, or an output
//! and an input, that are one file are refused before anything runs.

use crate::failure::Failure;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The most links that are followed, as Linux does.
const MOST_LINKS: u32 = 40;

/// What a path leads to.
#[derive(Debug)]
pub(crate) struct Target {
    /// The path as it was given.
    pub(crate) given: PathBuf,
    /// What is there.
    pub(crate) kind: Kind,
    identity: Identity,
}

/// What is there.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A file, or nothing yet: its path without links, and the permissions that it has.
    File { path: PathBuf, permissions: Option<fs::Permissions> },
    /// An open file of this process, by its number.
    Descriptor(u32),
    /// A device or a pipe.
    Stream,
}

/// What makes two spellings the same file.
#[derive(Debug)]
struct Identity {
    path: Option<PathBuf>,
    /// Device and inode. Character devices have none: `/dev/null` may take any number of outputs.
    inode: Option<(u64, u64)>,
}

impl Identity {
    fn is(&self, other: &Identity) -> bool {
        let same = |a: &Option<PathBuf>, b: &Option<PathBuf>| a.is_some() && a == b;
        same(&self.path, &other.path) || (self.inode.is_some() && self.inode == other.inode)
    }
}

impl Target {
    /// What `path`, which `flag` gives, leads to; refused if it is one of `inputs`.
    pub(crate) fn new<P: AsRef<Path>>(
        flag: &str,
        path: &Path,
        inputs: &[P],
    ) -> Result<Target, Failure> {
        let target = Target::of(path)?;
        let Some(input) = inputs.iter().find(|input| target.is_input(input.as_ref())) else {
            return Ok(target);
        };
        let input = input.as_ref().display();
        Err(Failure::Input(format!("{flag}: it is the input `{input}`; name another file")))
    }

    /// Where `--out` goes; `-` is standard output.
    pub(crate) fn out<P: AsRef<Path>>(path: &Path, inputs: &[P]) -> Result<Target, Failure> {
        if path == Path::new("-") {
            let identity = Identity { path: None, inode: None };
            return Ok(Target { given: path.to_owned(), kind: Kind::Descriptor(1), identity });
        }
        Target::new("--out", path, inputs)
    }

    /// What `path` leads to.
    pub(crate) fn of(path: &Path) -> Result<Target, Failure> {
        let fail = |what: &dyn std::fmt::Display| {
            Failure::Io(format!("cannot write `{}`: {what}", path.display()))
        };
        let meta = match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => return Err(fail(&"it is a directory")),
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(&error)),
        };
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(fail(&"it names no file"));
        }
        let end = follow(path).map_err(|error| fail(&error))?;
        let kind = match (&meta, descriptor(&end)) {
            (_, Some(number)) => Kind::Descriptor(number),
            (Some(meta), None) if !meta.is_file() => Kind::Stream,
            _ => Kind::File {
                path: end.clone(),
                permissions: meta.as_ref().map(Metadata::permissions),
            },
        };
        let named = matches!(kind, Kind::File { .. });
        let identity =
            Identity { path: named.then_some(end), inode: meta.as_ref().and_then(inode) };
        Ok(Target { given: path.to_owned(), kind, identity })
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.kind, Kind::Descriptor(1))
    }

    /// Whether both are the same file.
    pub(crate) fn is(&self, other: &Target) -> bool {
        self.identity.is(&other.identity)
    }

    /// Whether it is the file that is read as `input`.
    pub(crate) fn is_input(&self, input: &Path) -> bool {
        let inode = fs::metadata(input).ok().as_ref().and_then(inode);
        self.identity.is(&Identity { path: fs::canonicalize(input).ok(), inode })
    }
}

fn inode(meta: &Metadata) -> Option<(u64, u64)> {
    let device = meta.file_type().is_char_device();
    (!device).then(|| (meta.dev(), meta.ino()))
}

/// The path at the end of all links, in a folder without links. Nothing need be there.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let folder = match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => fs::canonicalize(folder)?,
            None => fs::canonicalize(".")?,
        };
        let end = folder.join(name);
        // The links in there are not paths, but stand for the open files themselves.
        if descriptor(&end).is_some() {
            return Ok(end);
        }
        match fs::read_link(&end) {
            Ok(next) => path = folder.join(next),
            Err(_) => return Ok(end),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The number in `/proc/PROCESS/fd/NUMBER`.
fn descriptor(path: &Path) -> Option<u32> {
    let folder = path.parent()?;
    let process = folder.strip_prefix("/proc").ok()?.parent()?;
    let is_open_file = folder.file_name()? == "fd" && process.components().count() > 0;
    path.file_name()?.to_str()?.parse().ok().filter(|_| is_open_file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_where_nothing_need_be() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let real = fs::canonicalize(folder.path()).expect("it is there");
        let at = |name: &str| folder.path().join(name);
        symlink("b", at("a")).expect("links can be made");
        symlink("there/c", at("b")).expect("links can be made");
        fs::create_dir(at("there")).expect("folders can be made");
        assert_eq!(follow(&at("a")).expect("no loop"), real.join("there/c"));
        symlink("loop", at("loop")).expect("links can be made");
        assert!(follow(&at("loop")).is_err());
    }

    #[test]
    fn open_files_are_known_by_their_number() {
        assert_eq!(descriptor(Path::new("/proc/77/fd/1")), Some(1));
        assert_eq!(descriptor(Path::new("/proc/77/task/78/fd/12")), Some(12));
        assert_eq!(descriptor(Path::new("/proc/fd/1")), None);
        assert_eq!(descriptor(Path::new("/dev/fd/1")), None);
        assert_eq!(descriptor(Path::new("/proc/77/fd/x")), None);
    }

    #[test]
    fn spellings_of_a_file_are_one_target() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| Target::of(&folder.path().join(name)).expect("legal");
        assert!(at("x").is(&at("./x")), "although nothing is there");
        assert!(!at("x").is(&at("y")));
        fs::write(folder.path().join("x"), "").expect("it can be written");
        fs::hard_link(folder.path().join("x"), folder.path().join("h")).expect("a link");
        symlink("x", folder.path().join("s")).expect("a link");
        assert!(at("x").is(&at("h")) && at("x").is(&at("s")));
        assert!(at("s").is_input(&folder.path().join("h")));
        let null = || Target::of(Path::new("/dev/null")).expect("Linux has it");
        assert!(!null().is(&null()), "it takes any number of outputs");
    }
}
