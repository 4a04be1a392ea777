//! What was read from files: scenarios that have a file in common, such as the cells of a study,
//! read it once.
//!
//! A trace is too long to keep, so it is read again in every run. What it holds is hashed when it
//! is first read, and every later reader gets those bytes or an error.

use crate::hash;
use crate::input;
use crate::problem::Problem;
use crate::problems::Problems;
use crate::workload_spec::{self, SpecFile, trace_problem};
use blis_workload::{TraceOptions, TraceSource, TraceSummary};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What was read from files, and what was wrong with it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Files {
    known: Arc<Known>,
}

#[derive(Debug, Default)]
struct Known {
    specs: Memo<(PathBuf, Option<String>), SpecFile>,
    contents: Memo<PathBuf, Arc<Content>>,
    traces: Memo<(PathBuf, TraceOptions), TraceSummary>,
}

impl Files {
    /// The specification in the file `path`; see [`workload_spec::read`].
    pub(crate) fn spec(&self, path: &Path, model: Option<&str>) -> Result<SpecFile, Problems> {
        let key = (path.to_owned(), model.map(str::to_owned));
        self.known.specs.get(key, || workload_spec::read(path, model))
    }

    /// What the file `path` holds.
    pub(crate) fn content(&self, path: &Path) -> Result<Arc<Content>, Problems> {
        self.known.contents.get(path.to_owned(), || {
            let unreadable = |error| Problem::unreadable(&path.display().to_string(), &error);
            Ok(Arc::new(Content::of(path).map_err(unreadable)?))
        })
    }

    /// What is in the trace `path`, which holds `content`.
    pub(crate) fn trace(
        &self,
        path: &Path,
        options: &TraceOptions,
        content: &Arc<Content>,
    ) -> Result<TraceSummary, Problems> {
        self.known.traces.get((path.to_owned(), *options), || {
            let summary = open_trace(path, options, content)?.summarize();
            Ok(summary.map_err(|error| trace_problem(&error))?)
        })
    }

    /// How often specifications and traces were asked for, how often traces were read from the
    /// disk, and how often they were hashed.
    pub fn counts(&self) -> (usize, usize, usize) {
        let Known { specs, contents, traces } = &*self.known;
        (specs.counts().0 + traces.counts().0, traces.counts().1, contents.counts().1)
    }
}

/// The requests of the trace `path`, as long as it holds `content`.
pub(crate) fn open_trace(
    path: &Path,
    options: &TraceOptions,
    content: &Arc<Content>,
) -> Result<TraceSource, Problem> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Problem::unreadable(&name, &error))?;
    let reader = Box::new(Unchanged::new(file, content.clone()));
    TraceSource::from_reader(reader, &name, options).map_err(|error| trace_problem(&error))
}

/// Bytes that are hashed, and later compared, at a time.
const PART: usize = 256 << 10;

/// What a file held when it was first read: for each part, the hash of all bytes up to its end.
#[derive(Debug, Default)]
pub struct Content {
    parts: Vec<u64>,
}

impl Content {
    fn of(path: &Path) -> io::Result<Content> {
        let (mut file, mut buffer) = (input::open(path)?, Vec::new());
        let mut content = Content::default();
        while read_part(&mut file, &mut buffer)? {
            content.parts.push(hash::hash_more(content.hash(), &buffer));
        }
        Ok(content)
    }

    /// The hash of all of it.
    pub fn hash(&self) -> u64 {
        self.parts.last().copied().unwrap_or(hash::START)
    }
}

/// Puts the next part of `file` into `buffer`; false at its end.
fn read_part(file: &mut File, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    Ok(file.take(PART as u64).read_to_end(buffer)? > 0)
}

/// A file that gives the bytes of `content`, or an error: nobody sees others.
struct Unchanged {
    file: File,
    content: Arc<Content>,
    buffer: Vec<u8>,
    /// How far the buffer was consumed.
    at: usize,
    /// Parts that were read, and the hash of all their bytes.
    parts: usize,
    hash: u64,
}

impl Unchanged {
    fn new(file: File, content: Arc<Content>) -> Unchanged {
        Unchanged { file, content, buffer: Vec::new(), at: 0, parts: 0, hash: hash::START }
    }
}

impl BufRead for Unchanged {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.buffer.len() {
            self.at = 0;
            let expected = self.content.parts.get(self.parts);
            let found = read_part(&mut self.file, &mut self.buffer)?.then(|| {
                self.parts += 1;
                self.hash = hash::hash_more(self.hash, &self.buffer);
                &self.hash
            });
            if found != expected {
                let message = "the file has changed since it was checked; run again, and leave \
                    it alone meanwhile";
                self.buffer.clear();
                return Err(io::Error::other(message));
            }
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
    }
}

impl Read for Unchanged {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

/// What was read for each key, and how often somebody asked.
#[derive(Debug)]
struct Memo<K, V> {
    known: Mutex<Vec<(K, Result<V, Problems>)>>,
    asked: AtomicUsize,
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Memo<K, V> {
        Memo { known: Mutex::default(), asked: AtomicUsize::default() }
    }
}

impl<K: PartialEq, V: Clone> Memo<K, V> {
    /// What is known for `key`, or else what `read` gives.
    fn get(&self, key: K, read: impl FnOnce() -> Result<V, Problems>) -> Result<V, Problems> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = known.iter().find(|(other, _)| *other == key) {
            return value.clone();
        }
        let value = read();
        known.push((key, value.clone()));
        value
    }

    /// How often somebody asked, and how often something was read.
    fn counts(&self) -> (usize, usize) {
        let read = self.known.lock().unwrap_or_else(PoisonError::into_inner).len();
        (self.asked.load(Ordering::Relaxed), read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_gives_the_bytes_that_were_hashed_or_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t");
        for length in [0, 1, PART - 1, PART, PART + 1, 3 * PART] {
            let bytes: Vec<u8> = (0..=250).cycle().take(length).collect();
            fs::write(&path, &bytes).expect("written");
            let content = Arc::new(Content::of(&path).expect("readable"));
            assert_eq!(content.hash(), hash::hash(&bytes));
            let read = |found: &[u8]| {
                fs::write(&path, found).expect("written");
                let file = File::open(&path).expect("it is there");
                let mut all = Vec::new();
                let end = Unchanged::new(file, content.clone()).read_to_end(&mut all);
                assert!(bytes.starts_with(&all), "bytes of another content were given");
                end.map_err(|error| error.to_string())
            };
            assert_eq!(read(&bytes), Ok(length));
            let refused = |found: &[u8]| {
                let error = read(found).expect_err("it has changed");
                assert!(error.starts_with("the file has changed since"), "{error}");
            };
            refused(&[&bytes[..], b"x"].concat());
            refused(&[&bytes[..], &vec![7; PART]].concat());
            for at in [0, length / 2, length.saturating_sub(1)].into_iter().filter(|_| length > 0) {
                let mut other = bytes.clone();
                other[at] ^= 4;
                refused(&other);
                refused(&bytes[..at]);
            }
        }
    }
}
