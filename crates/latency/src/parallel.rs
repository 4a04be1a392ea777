//! How the GPUs of an instance share a model.

use std::fmt;

/// How the GPUs of an instance share a model, in vLLM's words. All numbers are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// GPUs that share every layer.
    pub tp: u32,
    /// Stages of a pipeline, each with some of the layers on `tp` GPUs.
    pub pp: u32,
    /// Ranks, each with the attention and the KV cache of its own requests on `tp` GPUs. The
    /// experts are divided over the GPUs of all ranks, which compute every step together.
    pub dp: u32,
    /// Whether a GPU has whole experts, and not a slice of each.
    pub expert: bool,
}

impl Parallel {
    /// Tensor parallelism alone.
    pub const fn tensor(tp: u32) -> Parallel {
        Parallel { tp, pp: 1, dp: 1, expert: false }
    }

    /// GPUs of an instance.
    pub fn gpus(&self) -> u32 {
        self.tp * self.pp * self.dp
    }

    /// GPUs that the experts of a layer are divided over.
    pub(crate) fn sharing_experts(&self) -> u32 {
        self.tp * self.dp
    }

    /// Whole experts of a layer are on one of so many GPUs.
    pub(crate) fn ep(&self) -> u32 {
        if self.expert { self.sharing_experts() } else { 1 }
    }

    /// How many of `layers` each stage has, as vLLM divides them (`get_pp_indices`): those that are
    /// left over go to stages before the last, from its side.
    pub(crate) fn stages(self, layers: u32) -> impl Iterator<Item = u32> {
        let Parallel { pp, .. } = self;
        let (each, left) = (layers / pp, layers % pp);
        (0..pp).map(move |at| each + u32::from(at + 1 < pp && at + 1 + left >= pp))
    }
}

/// `tp 4, pp 2`.
impl fmt::Display for Parallel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "tp {}", self.tp)?;
        for (name, value) in [("pp", self.pp), ("dp", self.dp)] {
            if value > 1 {
                write!(out, ", {name} {value}")?;
            }
        }
        if self.expert { write!(out, ", experts divided") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_divided_as_vllm_divides_them() {
        let stages = |layers, pp| -> Vec<u32> {
            Parallel { pp, ..Parallel::tensor(1) }.stages(layers).collect()
        };
        assert_eq!(stages(32, 1), [32]);
        assert_eq!(stages(32, 4), [8; 4]);
        // One left over of 61 is the last but one's; two are in the middle; three are the first's.
        assert_eq!(stages(61, 4), [15, 15, 16, 15]);
        assert_eq!(stages(62, 4), [15, 16, 16, 15]);
        assert_eq!(stages(63, 4), [16, 16, 16, 15]);
    }

    #[test]
    fn it_is_spelled_by_what_is_more_than_one() {
        let all = Parallel { tp: 4, pp: 2, dp: 8, expert: true };
        assert_eq!(Parallel::tensor(4).to_string(), "tp 4");
        assert_eq!(
            (all.to_string().as_str(), all.gpus()),
            ("tp 4, pp 2, dp 8, experts divided", 64)
        );
    }
}
