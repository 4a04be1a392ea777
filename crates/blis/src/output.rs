//! Where results go: standard output, and files that appear whole or not at all.
//!
//! Every file is opened before the run under a temporary name beside the one it gets (that of its
//! target, where the path is a link), and takes its name only after everything was written and
//! synced. What is left unfinished is removed.

use crate::failure::Failure;
use crate::target::{self, Kind, Target};
use blis_scenario::problem::visible_lines;
use blis_scenario::{Problem, json};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::{Builder, TempPath};

/// The longest name, in bytes, that a temporary name repeats; the file system's limit is 255.
const LONGEST_NAME: usize = 200;

/// All temporary files, so that a second Ctrl-C can remove those that are still there.
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

/// A file under a temporary name, which is removed unless it is given its own.
#[derive(Debug)]
struct Temporary {
    path: TempPath,
    target: PathBuf,
}

impl Output {
    /// Opens `target` for writing.
    pub(crate) fn create(target: &Target) -> Result<Output, Problem> {
        let (file, temporary) = open(&target.kind, &target.given)
            .map_err(|error| target::unwritable(&target.given, &error))?;
        let path = (!target.is_stdout()).then(|| target.given.clone());
        Ok(Output { path, temporary, writer: BufWriter::new(file) })
    }

    /// Claims and opens the file that `flag` gives, if it does.
    pub(crate) fn open(flag: &str, path: Option<&Path>) -> Result<Option<Output>, Problem> {
        path.map(|path| Output::create(&Target::claim(flag, path)?)).transpose()
    }

    /// The same with `first` as its first line.
    pub(crate) fn begun(target: &Target, first: &str) -> Result<Output, Failure> {
        let mut output = Output::create(target)?;
        writeln!(output, "{first}").map_err(|error| output.failure(&error))?;
        Ok(output)
    }

    /// Writes `text` to `target`, all of it.
    pub(crate) fn whole(target: &Target, text: &str) -> Result<(), Failure> {
        Output::create(target)?.fill(text)
    }

    /// Writes `text` and gives the file its name.
    pub(crate) fn fill(mut self, text: &str) -> Result<(), Failure> {
        self.write_all(text.as_bytes()).map_err(|error| self.failure(&error))?;
        self.finish()
    }

    /// A write to it failed.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        match &self.path {
            Some(path) => target::unwritable(path, error).into(),
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
        let Some(Temporary { path, target }) = self.temporary.take() else { return Ok(()) };
        self.writer.get_ref().sync_all()?;
        target::refuse_input(&target)?;
        path.persist(&target).map_err(|failed| failed.error)?;
        match target.parent() {
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
            let (file, temporary) = open_beside(path).map_err(|error| bare(&error))?;
            if let Some(permissions) = permissions {
                file.set_permissions(permissions.clone())?;
            }
            Ok((file, Some(Temporary { path: temporary, target: path.clone() })))
        }
    }
}

/// A new file beside `path`.
fn open_beside(path: &Path) -> io::Result<(File, TempPath)> {
    let name = path.file_name().filter(|name| name.len() <= LONGEST_NAME);
    let mut hidden = OsString::from(".");
    hidden.push(name.unwrap_or(OsStr::new("blis")));
    hidden.push(".");
    // As any other file: the system takes away what the user's mask says.
    let mode = Permissions::from_mode(0o666);
    let mut builder = Builder::new();
    builder.prefix(&hidden).suffix(".tmp").permissions(mode);
    let folder = path.parent().unwrap_or(Path::new("."));
    let (file, temporary) = builder.tempfile_in(folder)?.into_parts();
    unfinished(|list| list.push(temporary.to_path_buf()));
    Ok((file, temporary))
}

/// What the system said, without the temporary name that was tried.
fn bare(error: &io::Error) -> io::Error {
    let cause = error.get_ref().and_then(Error::source).and_then(|cause| cause.downcast_ref());
    match cause.and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}

impl Write for Output {
    /// On standard output, what a terminal would obey is written out.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) if self.path.is_none() => {
                self.writer.write_all(json::visible(text).as_bytes())?;
                Ok(bytes.len())
            }
            _ => self.writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
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

/// Writes `text` to standard output, all of it. What a terminal would obey is written out, in a way
/// that JSON has too.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_raw(&json::visible(text))
}

/// Writes `text`, which may have colours of our own, to standard output, all of it.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Tells what the user should know about a scenario, each note once; nothing if `quiet`.
pub(crate) fn notes<'a>(quiet: bool, notes: impl IntoIterator<Item = &'a String>) {
    let mut told: Vec<&String> = Vec::new();
    for text in notes.into_iter().filter(|_| !quiet) {
        if !told.contains(&text) {
            note(&format!("note: {text}"));
            told.push(text);
        }
    }
}

/// Writes a line to standard error. There is nobody left to tell if that fails.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible_lines(line));
}
