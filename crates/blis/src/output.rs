//! Where results go: standard output, and files that appear whole or not at all.
//!
//! Every file is opened before the run under a temporary name beside its own, and takes its name
//! only after everything was written and synced. What is left unfinished is removed.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Temporary files that exist right now, so that a second Ctrl-C can remove them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    /// Where it is written meanwhile; `None` if it is written in place (a device or a pipe).
    temporary: Option<PathBuf>,
    writer: BufWriter<File>,
}

impl Output {
    /// Opens `path` for writing.
    pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
        let fail = |error: io::Error| failed(path, &error);
        let in_place = match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                let text = format!("cannot write `{}`: it is a directory", path.display());
                return Err(Failure::Io(text));
            }
            Ok(meta) => !meta.is_file(),
            Err(_) => false,
        };
        if in_place {
            let file = File::options().write(true).open(path).map_err(fail)?;
            let writer = BufWriter::new(file);
            return Ok(Output { path: path.to_owned(), temporary: None, writer });
        }
        let name = path.file_name().ok_or_else(|| {
            Failure::Io(format!("cannot write `{}`: it names no file", path.display()))
        })?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        // A file of that name is what a killed process left behind, so it may be overwritten.
        let file = File::create(&temporary).map_err(fail)?;
        unfinished(|list| list.push(temporary.clone()));
        let writer = BufWriter::new(file);
        Ok(Output { path: path.to_owned(), temporary: Some(temporary), writer })
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.complete().map_err(|error| failed(&self.path, &error))
    }

    fn complete(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        self.writer.get_ref().sync_all()?;
        fs::rename(temporary, &self.path)?;
        if let Some(temporary) = self.temporary.take() {
            unfinished(|list| list.retain(|path| *path != temporary));
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
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
            // It is on its way out already: nothing more can be done if this fails, too.
            let _ = fs::remove_file(&temporary);
            unfinished(|list| list.retain(|path| *path != temporary));
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
