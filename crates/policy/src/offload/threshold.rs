//! `threshold`: above a utilisation, the idle blocks that would be dropped first are copied out.
//!
//! **Prefers** to have a copy of as many blocks as the occupied ones, in use or idle, exceed the
//! threshold's share of the memory by: those that would be dropped first. They stay in the GPU's
//! memory until the room is needed; dropping them then costs nothing. No more are copied than the
//! tier holds, since they would only push each other out of it.
//!
//! **Reads** the engine's own memory, when a request joins or leaves the batch.
//!
//! **Parameters** `threshold`, a share of the blocks.
//!
//! **Origin** the Go program's `--kv-offload-threshold`.

use crate::prelude::*;
use blis_core::math::count;

/// How `threshold` introduces itself.
pub const SPEC: Spec<dyn Offload> = Spec {
    name: "threshold",
    help: "Copies the oldest idle blocks to the CPU tier above a threshold",
    params: &[Param::float("threshold", 0.0..=1.0, 0.9, "share")
        .help("Occupancy to stay below: blocks in use, or idle without a copy")],
    ..Spec::built_by(|values, _| Box::new(Threshold { share: values.float("threshold") }))
};

/// Keeps a share of the memory replaceable.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// The share of the blocks that may have no copy.
    pub share: f64,
}

impl Offload for Threshold {
    fn idle_blocks_to_copy(&self, memory: &MemoryView) -> u32 {
        let allowed = count(self.share * f64::from(memory.total));
        let occupied = u64::from(memory.in_use) + u64::from(memory.idle);
        let excess = occupied.saturating_sub(allowed).min(memory.idle.into());
        u32::try_from(excess).expect("no more than the idle blocks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_over_the_threshold_is_copied_as_far_as_it_is_idle() {
        let threshold = Threshold { share: 0.8 };
        for (in_use, idle, copies) in
            [(50, 30, 0), (50, 31, 1), (50, 50, 20), (90, 10, 10), (100, 0, 0), (0, 100, 20)]
        {
            let memory = MemoryView { total: 100, in_use, idle };
            assert_eq!(threshold.idle_blocks_to_copy(&memory), copies, "{memory:?}");
        }
    }

    #[test]
    fn a_threshold_of_one_copies_nothing_and_of_zero_everything() {
        let full = MemoryView { total: 100, in_use: 40, idle: 60 };
        assert_eq!(Threshold { share: 1.0 }.idle_blocks_to_copy(&full), 0);
        assert_eq!(Threshold { share: 0.0 }.idle_blocks_to_copy(&full), 60);
    }
}
