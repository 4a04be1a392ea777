//! `vllm`: what vLLM's offloading connector does.
//!
//! **Prefers** that every prompt is in the CPU tier as soon as it is computed: each step orders
//! copies of the full prompt blocks that it computes and the tier lacks. Answers are not copied. A
//! copy begins with the launch of the next step, and can be read about two steps later. A request
//! whose prompt goes on in the tier waits for the copy back outside the batch; while some of it is
//! being copied, out or back, the request is passed over. The blocks of a preempted request are
//! free once the step under way is processed, so one shortage may preempt several requests.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** vLLM 0.26, `--kv-offloading-size` (`OffloadingConnector` over CPU memory, least
//! recently used, `offload_prompt_only`). There, requests that were passed over come before those
//! that were preempted; here they keep their places in the queue.

use crate::prelude::*;

/// The registry entry of `vllm`.
pub const SPEC: Spec<dyn Offload> = Spec {
    name: "vllm",
    help: "Copies prompt blocks out as they are computed, as vLLM's connector does",
    ..Spec::built_by(|_, _| Box::new(Vllm))
};

/// Copies prompts as they are computed.
#[derive(Clone, Copy, Debug)]
pub struct Vllm;

impl Offload for Vllm {
    fn copies_as_computed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_copied_when_they_are_computed_and_not_later() {
        assert!(Vllm.copies_as_computed());
        assert!(!Vllm.copies_on_release() && !Vllm.copies_on_evict());
    }
}
