//! `kv-gate`: turns requests away where KV memory is short.
//!
//! **Prefers** to refuse a request rather than to send it where its prompt leaves too few free
//! blocks: there it would wait, or push others out.
//!
//! **Reads** the free blocks of instances (polled; idle cached blocks count as free), the
//! request's prompt length and its service class.
//!
//! **Parameters** `at`: whether the instance that the router has chosen must have room
//! (`instance`, decided after routing) or all instances on average (`cluster`, decided before).
//! `free-share` (of all blocks) and `free-blocks`: what must stay free; the larger of both holds.
//! `prompt`: whether the request's own prompt must fit besides. And one per class, named like it:
//! whether its requests may be rejected.
//!
//! **Origin** ours, after the free-block watermark of vLLM's block manager, moved to the gateway.

use crate::classes::{flag, flags};
use crate::prelude::*;

/// How `kv-gate` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "kv-gate",
    help: "Sheds low-priority classes when too few KV blocks are free",
    params: &[
        Param::choice("at", &["instance", "cluster"])
            .help("Check the chosen instance, or the mean of the cluster"),
        Param::float("free-share", 0.0..=1.0, 0.05, "of all blocks")
            .help("Share of an instance's blocks to keep free"),
        Param::int("free-blocks", 0..=100_000_000, 0, "blocks")
            .help("Blocks of an instance to keep free"),
        Param::flag("prompt", true).help("Whether the prompt must fit in addition"),
        flag(SloClass::Critical, false, "Whether critical requests may be rejected"),
        flag(SloClass::Standard, false, "Whether standard requests may be rejected"),
        flag(SloClass::Sheddable, true, "Whether sheddable requests may be rejected"),
        flag(SloClass::Batch, true, "Whether batch requests may be rejected"),
        flag(SloClass::Background, true, "Whether background requests may be rejected"),
    ],
    needs: |_| Needs { kv: true, ..Needs::NONE },
    ..Spec::built_by(|values, cluster| Box::new(KvGate::new(values, cluster)))
};

/// A gate before memory.
#[derive(Clone, Copy, Debug)]
pub struct KvGate {
    after_routing: bool,
    /// Blocks that must stay free at an instance.
    spare: f64,
    counts_prompt: bool,
    block_size: u32,
    sheds: PerClass<bool>,
}

impl KvGate {
    fn new(values: &Values, cluster: &Cluster) -> KvGate {
        let share = values.float("free-share") * f64::from(cluster.blocks);
        KvGate {
            after_routing: values.choice("at") == "instance",
            spare: share.max(math::float(values.int("free-blocks"))),
            counts_prompt: values.flag("prompt"),
            block_size: cluster.block_size.max(1),
            sheds: flags(values),
        }
    }

    /// What `request` hears where `free` blocks are free.
    fn verdict(&self, request: &RequestView<'_>, free: f64) -> Verdict {
        let prompt = request.input_tokens.div_ceil(self.block_size);
        let needed = if self.counts_prompt { f64::from(prompt) } else { 0.0 };
        if self.sheds[request.class.index()] && free - needed < self.spare {
            return Verdict::Reject("kv-gate");
        }
        Verdict::Admit
    }
}

impl Admission for KvGate {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        if self.after_routing {
            return Verdict::Admit;
        }
        self.verdict(request, cluster.mean(|view| f64::from(view.free_blocks)))
    }

    fn admit_at(&mut self, request: &RequestView<'_>, chosen: &InstanceView, _: Time) -> Verdict {
        if !self.after_routing {
            return Verdict::Admit;
        }
        self.verdict(request, f64::from(chosen.free_blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    const CLUSTER: Cluster = Cluster { instances: 2, blocks: 100, ..Cluster::SMALL };

    fn gate(given: &[(&'static str, &'static str)]) -> KvGate {
        KvGate::new(&values(SPEC.params, given), &CLUSTER)
    }

    fn asks(class: SloClass) -> RequestView<'static> {
        RequestView { class, input_tokens: 33, ..request(&NOTHING) }
    }

    /// The verdicts about a sheddable prompt of three blocks before routing, and after routing to
    /// an instance with room and to a full one.
    fn verdicts(gate: &mut KvGate, class: SloClass) -> [bool; 3] {
        let mut views = instances(&[0, 0]);
        (views[0].free_blocks, views[1].free_blocks) = (8, 7);
        let request = asks(class);
        [
            gate.admit(&request, &cluster(&views), &mut dice(0)),
            gate.admit_at(&request, &views[0], Time::ZERO),
            gate.admit_at(&request, &views[1], Time::ZERO),
        ]
        .map(|verdict| verdict == Verdict::Admit)
    }

    #[test]
    fn after_routing_only_the_full_instance_turns_away() {
        assert_eq!(verdicts(&mut gate(&[]), SloClass::Sheddable), [true, true, false]);
        assert_eq!(verdicts(&mut gate(&[]), SloClass::Standard), [true, true, true]);
    }

    #[test]
    fn before_routing_the_mean_decides_and_nothing_after_it() {
        let mut cluster_wide = gate(&[("at", "cluster")]);
        assert_eq!(verdicts(&mut cluster_wide, SloClass::Batch), [false, true, true]);
        let mut roomy = gate(&[("at", "cluster"), ("free-share", "0.04")]);
        assert_eq!(verdicts(&mut roomy, SloClass::Batch), [true, true, true]);
    }

    #[test]
    fn the_larger_of_share_and_blocks_holds_and_prompts_count_unless_said_otherwise() {
        let mut blocks = gate(&[("free-blocks", "8"), ("prompt", "false")]);
        assert_eq!(verdicts(&mut blocks, SloClass::Background), [true, true, false]);
        let mut none = gate(&[("free-share", "0"), ("prompt", "false")]);
        assert_eq!(verdicts(&mut none, SloClass::Background), [true, true, true]);
    }
}
