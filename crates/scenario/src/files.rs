//! What was read from files: scenarios that have a file in common, such as the cells of a study,
//! read it once.

use crate::hash;
use crate::problem::Problem;
use crate::problems::Problems;
use crate::workload_spec::{self, SpecFile, trace_problem};
use blis_workload::{TraceOptions, TraceSource, TraceSummary};
use std::fs::File;
use std::io::Read;
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
    hashes: Memo<PathBuf, u64>,
    traces: Memo<(PathBuf, TraceOptions), TraceSummary>,
}

impl Files {
    /// The specification in the file `path`; see [`workload_spec::read`].
    pub(crate) fn spec(&self, path: &Path, model: Option<&str>) -> Result<SpecFile, Problems> {
        let key = (path.to_owned(), model.map(str::to_owned));
        self.known.specs.get(key, || workload_spec::read(path, model))
    }

    /// A hash of the file `path`.
    pub(crate) fn hash(&self, path: &Path) -> Result<u64, Problems> {
        self.known.hashes.get(path.to_owned(), || {
            let unreadable = |error| Problem::unreadable(&path.display().to_string(), &error);
            Ok(hash_file(path).map_err(unreadable)?)
        })
    }

    /// What is in the trace `path`.
    pub(crate) fn trace(
        &self,
        path: &Path,
        options: &TraceOptions,
    ) -> Result<TraceSummary, Problems> {
        self.known.traces.get((path.to_owned(), *options), || {
            let summary = TraceSource::open(path, options).and_then(TraceSource::summarize);
            Ok(summary.map_err(|error| trace_problem(&error))?)
        })
    }

    /// How often specifications and traces were asked for, how often traces were read from the
    /// disk, and how often they were hashed.
    pub fn counts(&self) -> (usize, usize, usize) {
        let Known { specs, hashes, traces } = &*self.known;
        (specs.counts().0 + traces.counts().0, traces.counts().1, hashes.counts().1)
    }
}

fn hash_file(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut state = hash::START;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(state);
        }
        state = hash::hash_more(state, &buffer[..read]);
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
