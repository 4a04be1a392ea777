//! `write-through`: the blocks of a request are copied out when it leaves the batch.
//!
//! **Prefers** that whatever is dropped later is in the CPU tier already, at the price of copying
//! what is never dropped. While a request runs its blocks cannot be lost, so nothing is gained by
//! copying them earlier.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** vLLM's offloading connector, which stores blocks as they are computed; write-through
//! caches.

use crate::prelude::*;

/// How `write-through` introduces itself.
pub const SPEC: Spec<dyn Offload> = Spec {
    name: "write-through",
    help: "Copies a request's blocks to the CPU tier when it leaves the batch",
    ..Spec::built_by(|_, _| Box::new(WriteThrough))
};

/// Copies everything once.
#[derive(Clone, Copy, Debug)]
pub struct WriteThrough;

impl Offload for WriteThrough {
    fn copies_on_release(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_request_leaves_is_copied() {
        assert!(WriteThrough.copies_on_release() && !WriteThrough.copies_on_evict());
    }
}
