//! Where results go: standard output, and files that appear whole or not at all.
//!
//! Every file is opened before the run under a temporary name beside the one it gets (that of its
//! target, where the path is a link), and takes its name only after everything was written and
//! synced. What is left unfinished is removed.

use crate::failure::Failure;
use crate::target::{Kind, Target};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How many names are tried for a temporary file: others may stem from killed processes.
const MOST_NAMES: u32 = 10_000;
/// The longest name, in bytes, that a temporary name repeats; the file system's limit is 255.
const LONGEST_NAME: usize = 200;

/// Temporary files that exist right now, so that a second Ctrl-C can remove them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Output {
    /// The path as it was given; `None`: it is standard output.
    path: Option<PathBuf>,
    /// Where it is written meanwhile, and where it goes; `None` if it is written in place (a device
    /// or a pipe).
    temporary: Option<Temporary>,
    writer: BufWriter<File>,
}

/// A file under a temporary name.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl Output {
    /// Opens `target` for writing.
    pub(crate) fn create(target: &Target) -> Result<Output, Failure> {
        let (file, temporary) =
            open(&target.kind, &target.given).map_err(|error| failed(&target.given, &error))?;
        let path = (!target.is_stdout()).then(|| target.given.clone());
        Ok(Output { path, temporary, writer: BufWriter::new(file) })
    }

    /// A write to it failed.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        match &self.path {
            Some(path) => failed(path, error),
            None => Failure::stdout(error),
        }
    }

    /// Whether what was written can still be changed.
    pub(crate) fn can_rewrite(&self) -> bool {
        self.temporary.is_some()
    }

    /// Writes `bytes` over the first ones; everything else must have been written.
    pub(crate) fn rewrite_start(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.seek(SeekFrom::Start(0))?;
        self.writer.write_all(bytes)
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.complete().map_err(|error| self.failure(&error))
    }

    fn complete(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        self.writer.get_ref().sync_all()?;
        fs::rename(&temporary.path, &temporary.target)?;
        let folder = temporary.target.parent().map(Path::to_owned);
        if let Some(temporary) = self.temporary.take() {
            unfinished(|list| list.retain(|path| *path != temporary.path));
        }
        match folder {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// The file to write to, and its temporary name if it has one.
fn open(kind: &Kind, given: &Path) -> io::Result<(File, Option<Temporary>)> {
    match kind {
        // Opening these anew would write from their start, over what was written before.
        Kind::Descriptor(1) => Ok((File::from(io::stdout().as_fd().try_clone_to_owned()?), None)),
        Kind::Descriptor(2) => Ok((File::from(io::stderr().as_fd().try_clone_to_owned()?), None)),
        Kind::Descriptor(_) => Ok((File::options().append(true).open(given)?, None)),
        Kind::Stream => Ok((File::options().write(true).open(given)?, None)),
        Kind::File { path, permissions } => {
            if permissions.is_some() {
                // A file that may not be written must not be replaced either.
                File::options().write(true).open(path)?;
            }
            let (file, temporary) = open_beside(path)?;
            unfinished(|list| list.push(temporary.clone()));
            let temporary = Temporary { path: temporary, target: path.clone() };
            if let Some(permissions) = permissions
                && let Err(error) = file.set_permissions(permissions.clone())
            {
                discard(&temporary);
                return Err(error);
            }
            Ok((file, Some(temporary)))
        }
    }
}

/// A new file beside `path`.
fn open_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().filter(|name| name.len() <= LONGEST_NAME);
    for number in 0..MOST_NAMES {
        let mut hidden = OsString::from(".");
        hidden.push(name.unwrap_or(OsStr::new("blis")));
        hidden.push(format!(".{}.{number}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match File::create_new(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many temporary files are left beside it; remove them"))
}

/// Removes a temporary file. It is on its way out already: nothing more can be done if this fails,
/// too.
fn discard(temporary: &Temporary) {
    let _ = fs::remove_file(&temporary.path);
    unfinished(|list| list.retain(|path| *path != temporary.path));
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            discard(&temporary);
        }
    }
}

/// A failed write to `path`.
pub(crate) fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::Io(format!("cannot write `{}`: {error}", path.display()))
}

/// Removes every temporary file.
pub(crate) fn remove_unfinished() {
    unfinished(|list| {
        for path in list.drain(..) {
            let _ = fs::remove_file(path);
        }
    });
}

fn unfinished(change: impl FnOnce(&mut Vec<PathBuf>)) {
    change(&mut UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Writes `text` to standard output, all of it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Writes a line to standard error. There is nobody left to tell if that fails.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
