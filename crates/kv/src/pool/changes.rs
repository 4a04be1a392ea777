//! What a pool tells its mirrors.

use super::Pool;
use crate::mirror::{Change, Step};
use std::vec::Drain;

impl Pool {
    /// From now on, every change is kept until somebody takes it.
    ///
    /// # Panics
    /// If something has changed already: a mirror starts with an empty pool.
    pub fn tell_changes(&mut self) {
        assert!(self.tree.is_empty(), "changes are told from the start, or not at all");
        self.changes = Some(Vec::new());
    }

    /// Takes the changes since the last time; `None` if there are none.
    pub fn take_changes(&mut self) -> Option<Drain<'_, Change>> {
        let changes = self.changes.as_mut().filter(|changes| !changes.is_empty());
        changes.map(|changes| changes.drain(..))
    }

    /// Keeps a change if somebody wants to know.
    pub(crate) fn tell(&mut self, step: impl FnOnce() -> Step) {
        if let Some(changes) = &mut self.changes {
            changes.push(Change(step()));
        }
    }
}
