//! How a gateway knows which blocks of a prompt are cached where: by memory or by messages.
//!
//! `approximate` remembers what it sent ([`PrefixIndex`]): at once, but it sees no eviction and
//! nothing of what an instance computed for others. `precise` reads the KV events of the instances:
//! true, but some time after the fact, and it does not know of prompts that are still on their way.
//! Used by every routing policy that guesses hits; instances are told apart by their ids, because
//! filters may have left some out.

use crate::routing::prefix_index::PrefixIndex;
use crate::spec::Cluster;
use crate::view::{ClusterView, InstanceView, Needs};
use blis_core::{InstanceId, Param, RequestId, RequestView, Values};

/// The parameter `knowledge`.
pub const PARAM: Param = Param::choice("knowledge", &["approximate", "precise"])
    .help("Estimate hits from past routing, or read them from KV events");

/// The parameter `cpu-weight`.
pub const CPU_WEIGHT: Param = Param::float("cpu-weight", 0.0..=1.0, 0.8, "blocks")
    .help("Value of a cached block in the CPU tier, in GPU blocks")
    .only_if("knowledge", &["precise"]);

/// What the policy whose `values` have [`PARAM`] reads for it.
pub fn needs(values: &Values) -> Needs {
    Needs { events: is_precise(values), ..Needs::NONE }
}

fn is_precise(values: &Values) -> bool {
    values.choice(PARAM.name) == "precise"
}

/// Tokens of a block of llm-d's approximate index, unless those of the engine are larger.
const INDEX_BLOCK: u32 = 64;

/// Which blocks of the prompt looked at last are cached where.
#[derive(Clone, Debug)]
pub struct Knowledge {
    source: Source,
    /// By instance id, as of the last `look`.
    blocks: Vec<u32>,
    /// Ids of those that had some at the `look_again` before, so many, and that have some now.
    hits: Vec<usize>,
    before: Option<usize>,
    /// The request that was looked at last, if nothing was sent since.
    looked_at: Option<RequestId>,
}

#[derive(Clone, Debug)]
enum Source {
    Approximate(PrefixIndex),
    Precise { cpu_weight: f64 },
}

impl Knowledge {
    /// As the parameters [`PARAM`] and [`CPU_WEIGHT`] say.
    pub fn of(values: &Values, cluster: &Cluster) -> Knowledge {
        if is_precise(values) {
            Knowledge::precise(values.float(CPU_WEIGHT.name))
        } else {
            Knowledge::indexed(None, cluster)
        }
    }

    /// The index of llm-d: it remembers `capacity` blocks per instance, if that is given, else as
    /// many of its own larger blocks as the instance has of the engine's. So it does not see what
    /// an engine has evicted for long.
    pub fn indexed(capacity: Option<u64>, cluster: &Cluster) -> Knowledge {
        let larger = INDEX_BLOCK.div_ceil(cluster.block_size.max(1));
        Knowledge::approximate(capacity.unwrap_or(u64::from(cluster.blocks) * u64::from(larger)))
    }

    /// A memory of `capacity` blocks per instance.
    pub fn approximate(capacity: u64) -> Knowledge {
        Knowledge::new(Source::Approximate(PrefixIndex::new(capacity)))
    }

    /// What KV events tell, where a block in the CPU tier counts `cpu_weight`.
    pub fn precise(cpu_weight: f64) -> Knowledge {
        Knowledge::new(Source::Precise { cpu_weight })
    }

    fn new(source: Source) -> Knowledge {
        Knowledge { source, blocks: Vec::new(), hits: Vec::new(), before: None, looked_at: None }
    }

    /// Finds out about the prompt of `request`.
    pub fn look(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>) {
        let ids = cluster.instances.last().map_or(0, |view| view.id.index() + 1);
        self.blocks.clear();
        self.blocks.resize(ids, 0);
        self.before = None;
        self.looked_at = Some(request.id);
        match &mut self.source {
            Source::Approximate(index) => index.matches(request.prompt_blocks, |id, matched| {
                if let Some(blocks) = self.blocks.get_mut(id) {
                    *blocks = matched;
                }
            }),
            Source::Precise { cpu_weight } => {
                for view in cluster.instances {
                    let cpu = if *cpu_weight > 0.0 { view.cached_cpu_blocks } else { 0 };
                    let blocks = (view.cached_blocks + cpu).min(request.prompt_blocks.len());
                    self.blocks[view.id.index()] = blocks;
                }
            }
        }
    }

    /// Full blocks of the prompt that are believed to be cached at `instance`, as of the last
    /// `look`; in its CPU tier as well, if that counts.
    pub fn blocks(&self, instance: InstanceId) -> u32 {
        self.blocks.get(instance.index()).copied().unwrap_or(0)
    }

    /// Finds out about the prompt of `request`, like `look`, in a cluster where all instances can
    /// be chosen. Returns whether `moved` tells where the blocks may differ from those of the look
    /// before.
    pub fn look_again(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>) -> bool {
        let Source::Approximate(index) = &mut self.source else {
            self.look(request, cluster);
            return false;
        };
        self.looked_at = Some(request.id);
        let known = self.before.is_some();
        if let Some(before) = self.before {
            self.hits.drain(..before);
        } else {
            self.hits.clear();
            self.blocks.clear();
            self.blocks.resize(cluster.instances.len(), 0);
        }
        for id in &self.hits {
            self.blocks[*id] = 0;
        }
        self.before = Some(self.hits.len());
        index.matches(request.prompt_blocks, |id, matched| {
            self.blocks[id] = matched;
            self.hits.push(id);
        });
        known
    }

    /// Ids of the instances that had blocks at the last `look_again` or the one before, some
    /// perhaps twice.
    pub fn moved(&self) -> &[usize] {
        &self.hits
    }

    /// Blocks that `instance` was sent and that are remembered; 0 if events are read instead.
    pub fn held(&self, instance: InstanceId) -> u64 {
        match &self.source {
            Source::Approximate(index) => index.held(instance),
            Source::Precise { .. } => 0,
        }
    }

    /// What they are worth, in blocks of GPU memory.
    pub fn worth(&self, view: &InstanceView) -> f64 {
        let blocks = self.blocks(view.id);
        match self.source {
            Source::Approximate(_) => f64::from(blocks),
            Source::Precise { cpu_weight } => {
                let gpu = view.cached_blocks.min(blocks);
                f64::from(gpu) + cpu_weight * f64::from(blocks - gpu)
            }
        }
    }

    /// Their share of the prompt of `request`, 0..=1; 0 if it fills no block.
    pub fn share(&self, request: &RequestView<'_>, view: &InstanceView) -> f64 {
        self.worth(view) / f64::from(request.prompt_blocks.len().max(1))
    }

    /// Learns that `request` was sent to `instance`.
    pub fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId) {
        let looked_at = self.looked_at.take();
        if let Source::Approximate(index) = &mut self.source {
            if looked_at == Some(request.id) {
                index.record_matched(instance, request.prompt_blocks);
            } else {
                index.record(instance, request.prompt_blocks);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{cluster, instances, prompt, request};

    #[test]
    fn memory_knows_what_was_sent_and_nothing_that_events_tell() {
        let mut knowledge = Knowledge::approximate(100);
        knowledge.sent(&request(&prompt(&[1, 2])), InstanceId(2));
        let mut views = instances(&[0, 0, 0]);
        views[0].cached_blocks = 4;
        let asked = prompt(&[1, 2, 3, 4]);
        knowledge.look(&request(&asked), &cluster(&views));
        assert_eq!([0, 1, 2].map(|id| knowledge.blocks(InstanceId(id))), [0, 0, 2]);
        assert_eq!(vec![knowledge.share(&request(&asked), &views[2])], [0.5]);
    }

    #[test]
    fn the_index_has_as_many_blocks_as_an_instance_but_of_64_tokens() {
        let long: Vec<u64> = (1..=20).collect();
        for (block_size, capacity) in [(16, 12), (32, 6), (48, 6), (128, 3)] {
            let cluster = Cluster { blocks: 3, block_size, ..Cluster::SMALL };
            let mut knowledge = Knowledge::indexed(None, &cluster);
            knowledge.sent(&request(&prompt(&long)), InstanceId(0));
            assert_eq!(knowledge.held(InstanceId(0)), capacity, "{block_size}");
        }
    }

    #[test]
    fn events_tell_of_both_tiers_and_nothing_that_was_sent() {
        let mut knowledge = Knowledge::precise(0.5);
        let asked = prompt(&[1, 2, 3, 4]);
        knowledge.sent(&request(&asked), InstanceId(0));
        let mut views = instances(&[0, 0]);
        (views[1].cached_blocks, views[1].cached_cpu_blocks) = (1, 2);
        knowledge.look(&request(&asked), &cluster(&views));
        assert_eq!([0, 1].map(|id| knowledge.blocks(InstanceId(id))), [0, 3]);
        assert_eq!(vec![knowledge.worth(&views[1])], [2.0]);
        let mut blind = Knowledge::precise(0.0);
        blind.look(&request(&asked), &cluster(&views));
        assert_eq!(blind.blocks(InstanceId(1)), 1, "a tier without worth is not looked at");
    }

    #[test]
    fn instances_are_told_apart_by_their_ids_when_some_are_left_out() {
        for mut knowledge in [Knowledge::approximate(100), Knowledge::precise(1.0)] {
            let asked = prompt(&[1, 2]);
            knowledge.sent(&request(&asked), InstanceId(2));
            let mut views = instances(&[0, 0, 0]);
            views[2].cached_blocks = 2;
            knowledge.look(&request(&asked), &cluster(&views[1..]));
            assert_eq!([1, 2, 7].map(|id| knowledge.blocks(InstanceId(id))), [0, 2, 0]);
        }
    }
}
