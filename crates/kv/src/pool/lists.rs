//! The lists of idle runs, one for each worth: who goes first stands first.
//!
//! Kept by the pool; a run is in a list exactly while it is resident and nobody holds it.

use super::{Pool, Run};
use blis_core::runs::RunId;

impl Pool {
    pub(super) fn list_newest(&mut self, run: RunId) {
        let worth = self.tree.get(run).worth;
        self.link(worth, self.newest(worth), Some(run));
        self.link(worth, Some(run), None);
    }

    /// The idle run of `worth` that was released last.
    pub(super) fn newest(&self, worth: u64) -> Option<RunId> {
        if worth == 0 { self.worthless.newest } else { self.worthy.get(&worth)?.newest }
    }

    pub(super) fn unlist(&mut self, run: RunId) {
        self.unpass(run);
        let Run { older, newer, worth, .. } = *self.tree.get(run);
        self.link(worth, older, newer);
        if older.is_none() && newer.is_none() && worth != 0 {
            self.worthy.remove(&worth);
        }
    }

    /// Makes `older` and `newer` neighbours in the list of idle runs of `worth`; `None` is the
    /// list's end.
    pub(super) fn link(&mut self, worth: u64, older: Option<RunId>, newer: Option<RunId>) {
        if let Some(run) = older {
            self.tree.get_mut(run).newer = newer;
        }
        if let Some(run) = newer {
            self.tree.get_mut(run).older = older;
        }
        if older.is_none() || newer.is_none() {
            let ends = match worth {
                0 => &mut self.worthless,
                _ => self.worthy.entry(worth).or_default(),
            };
            if older.is_none() {
                ends.oldest = newer;
            }
            if newer.is_none() {
                ends.newest = older;
            }
        }
    }
}
