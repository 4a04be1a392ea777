//! Where an output really goes: what a path means once its symbolic links are followed.
//!
//! A file is written beside the place where it ends up, so a link stays a link. What is no file (a
//! device, a pipe, an open file of this process) is written as it stands.
//!
//! An output is opened for a [`Target`] and nothing else, and whoever wants one has to claim it. So
//! no output is a file that was read, nor one that another flag writes, nor a part of the ledger.

use blis_scenario::input;
use blis_scenario::problem::{Place, Problem};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The most links that are followed, as Linux does.
const MOST_LINKS: u32 = 40;

/// What this command writes, by flag.
static CLAIMED: Mutex<Vec<(String, Identity)>> = Mutex::new(Vec::new());

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
#[derive(Clone, Debug, Default)]
struct Identity {
    path: Option<PathBuf>,
    /// Device and inode. Character devices have none: `/dev/null` may take any number of outputs.
    inode: Option<(u64, u64)>,
    /// Whether the files whose names go on with a `-` belong to it.
    family: bool,
}

impl Identity {
    /// The file at `path`, which need not be there.
    fn of(path: &Path) -> Identity {
        let inode = fs::metadata(path).ok().as_ref().and_then(inode);
        Identity { path: follow(path).ok(), inode, family: false }
    }

    fn is(&self, other: &Identity) -> bool {
        let paths = self.path.as_ref().zip(other.path.as_ref());
        let has = |head: &Identity, [whole, path]: [&PathBuf; 2]| {
            let rest = path.as_os_str().as_encoded_bytes();
            let rest = rest.strip_prefix(whole.as_os_str().as_encoded_bytes());
            head.family && rest.is_some_and(|rest| rest.starts_with(b"-"))
        };
        paths.is_some_and(|(a, b)| a == b || has(self, [a, b]) || has(other, [b, a]))
            || (self.inode.is_some() && self.inode == other.inode)
    }

    /// The file as it was named when it was read, if it was.
    fn read_as(&self) -> Option<PathBuf> {
        input::opened().into_iter().find(|path| self.is(&Identity::of(path)))
    }

    /// Claims it for `flag`.
    fn claim(self, flag: &str) -> Result<(), Problem> {
        let refuse = |text| Err(Problem::new(Place::Flag(flag.into()), "", text));
        if let Some(input) = self.read_as() {
            return refuse(format!("it is the input `{}`; name another file", input.display()));
        }
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((other, _)) = claimed.iter().find(|(_, other)| self.is(other)) {
            return refuse(format!("it is also the file of `{other}`; name another"));
        }
        claimed.push((flag.to_owned(), self));
        Ok(())
    }
}

/// Claims the ledger at `path`, which `flag` gives, with the files that are kept beside it.
pub(crate) fn claim_ledger(flag: &str, path: &Path) -> Result<(), Problem> {
    Identity { family: true, ..Identity::of(path) }.claim(flag)
}

/// Refuses to write over a file that was read since its place was claimed.
pub(crate) fn refuse_input(path: &Path) -> io::Result<()> {
    match Identity::of(path).read_as() {
        Some(input) => Err(io::Error::other(format!("it is the input `{}`", input.display()))),
        None => Ok(()),
    }
}

impl Target {
    /// Claims what `path`, which `flag` gives, leads to.
    pub(crate) fn claim(flag: &str, path: &Path) -> Result<Target, Problem> {
        let target = Target::of(path)?;
        target.identity.clone().claim(flag)?;
        Ok(target)
    }

    /// Claims where `--out` goes; `-` is standard output.
    pub(crate) fn out(path: &Path) -> Result<Target, Problem> {
        if path == Path::new("-") {
            let (given, identity) = (path.to_owned(), Identity::default());
            return Ok(Target { given, kind: Kind::Descriptor(1), identity });
        }
        Target::claim("--out", path)
    }

    /// What `path` leads to.
    fn of(path: &Path) -> Result<Target, Problem> {
        let fail = |what: &dyn std::fmt::Display| unwritable(path, what);
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
        let (path_of, inode) = (named.then_some(end), meta.as_ref().and_then(inode));
        let identity = Identity { path: path_of, inode, family: false };
        Ok(Target { given: path.to_owned(), kind, identity })
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.kind, Kind::Descriptor(1))
    }
}

/// The system cannot write `path`.
pub(crate) fn unwritable(path: &Path, what: &dyn std::fmt::Display) -> Problem {
    let message = format!("cannot write `{}`: {what}", path.display());
    Problem { io: true, ..Problem::new(Place::Unknown, "", message) }
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
        let path = |name: &str| folder.path().join(name);
        let at = |name: &str| Target::of(&path(name)).expect("legal").identity;
        assert!(at("x").is(&at("./x")), "although nothing is there");
        assert!(!at("x").is(&at("y")));
        fs::write(path("x"), "").expect("it can be written");
        fs::hard_link(path("x"), path("h")).expect("a link");
        symlink("x", path("s")).expect("a link");
        assert!(at("x").is(&at("h")) && at("x").is(&at("s")));
        assert!(at("s").is(&Identity::of(&path("h"))));
        let null = || Target::of(Path::new("/dev/null")).expect("Linux has it").identity;
        assert!(!null().is(&null()), "it takes any number of outputs");
    }

    #[test]
    fn a_ledger_is_all_files_whose_names_begin_with_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| Identity::of(&folder.path().join(name));
        let ledger = Identity { family: true, ..at("l.db") };
        for name in ["l.db", "l.db-wal", "l.db-shm", "l.db-journal", "l.db-lock", "l.db-owner-3"] {
            assert!(ledger.is(&at(name)) && at(name).is(&ledger), "{name}");
        }
        assert!(!ledger.is(&at("l.db.csv")) && !ledger.is(&at("l.d-wal")) && !ledger.is(&at("x")));
    }

    #[test]
    fn a_file_that_is_read_after_its_place_was_claimed_is_not_written_over() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x");
        fs::write(&path, "kept").expect("it can be written");
        let output = crate::output::Output::create(&Target::claim("--out", &path).expect("free"));
        input::read(&path).expect("it is there");
        let failure = output.expect("it opens").fill("lost").expect_err("it was read");
        assert!(failure.message().is_some_and(|text| text.contains("it is the input")));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "kept");
    }
}
