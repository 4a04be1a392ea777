//! The sizes that a server pads its batches to.

/// Batches run as captured graphs of a few sizes; what a batch lacks to the next size is computed
/// for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padding {
    /// Sizes in sequences of steps that only decode.
    pub decode: Sizes,
    /// Sizes in tokens of all other steps.
    pub prefill: Sizes,
}

/// Sizes in ascending order, and what comes after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The listed sizes, ascending.
    pub listed: Vec<u32>,
    /// Beyond the last listed size, batches are padded to a multiple of this; 1 pads nothing.
    pub then_multiples_of: u32,
}

impl Sizes {
    /// The smallest size that holds `count`.
    pub fn hold(&self, count: u32) -> u32 {
        let at = self.listed.partition_point(|&size| size < count);
        self.listed
            .get(at)
            .copied()
            .unwrap_or_else(|| count.next_multiple_of(self.then_multiples_of.max(1)))
    }

    /// The largest listed size; `None` if none is listed.
    pub fn largest(&self) -> Option<u32> {
        self.listed.last().copied()
    }

    /// Sizes that hold everything exactly.
    pub const fn exact() -> Sizes {
        Sizes { listed: Vec::new(), then_multiples_of: 1 }
    }
}

impl Padding {
    /// No padding.
    pub const fn none() -> Padding {
        Padding { decode: Sizes::exact(), prefill: Sizes::exact() }
    }

    /// The graphs that vLLM captures up to a size of `largest`: 1, 2, 4, then multiples of 8 below
    /// 256 and of 16 from there. Larger batches are not padded.
    pub fn vllm(largest: u32) -> Padding {
        let small = [1, 2, 4].into_iter().chain((8..256).step_by(8));
        let listed = small.chain((256..=largest).step_by(16)).filter(|&size| size <= largest);
        let sizes = Sizes { listed: listed.collect(), then_multiples_of: 1 };
        Padding { decode: sizes.clone(), prefill: sizes }
    }

    /// The same without the sizes beyond `largest`, and no padding there.
    #[must_use]
    pub fn up_to(&self, largest: u32) -> Padding {
        let cut = |sizes: &Sizes| {
            let listed = sizes.listed.iter().copied().filter(|&size| size <= largest);
            Sizes { listed: listed.collect(), then_multiples_of: 1 }
        };
        Padding { decode: cut(&self.decode), prefill: cut(&self.prefill) }
    }

    /// The sizes of the server that was measured on an H200 (`data/h200/README.md`).
    pub fn measured_server() -> Padding {
        let prefill = [
            16, 32, 64, 96, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536,
            1792, 2048, 2304,
        ];
        Padding {
            decode: Sizes { listed: vec![1, 2, 4, 8], then_multiples_of: 8 },
            prefill: Sizes { listed: prefill.to_vec(), then_multiples_of: 256 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_batches_pad_to_1_2_4_8_and_then_to_multiples_of_8() {
        let sizes = Padding::measured_server().decode;
        let padded: Vec<u32> =
            [1, 2, 3, 4, 5, 8, 9, 16, 17, 250, 256, 257].map(|n| sizes.hold(n)).to_vec();
        assert_eq!(padded, [1, 2, 4, 4, 8, 8, 16, 16, 24, 256, 256, 264]);
    }

    #[test]
    fn steps_with_prefill_pad_to_the_listed_sizes() {
        let sizes = Padding::measured_server().prefill;
        let padded: Vec<u32> =
            [1, 16, 17, 449, 512, 513, 2048, 2049, 2304, 2305].map(|n| sizes.hold(n)).to_vec();
        assert_eq!(padded, [16, 16, 32, 512, 512, 640, 2048, 2304, 2304, 2560]);
    }

    #[test]
    fn vllm_captures_graphs_in_steps_of_8_and_16_and_pads_nothing_beyond() {
        let sizes = Padding::vllm(512).prefill;
        let padded = [3, 9, 250, 257, 512, 513].map(|n| sizes.hold(n));
        assert_eq!(padded, [4, 16, 256, 272, 512, 513]);
        assert_eq!(Padding::vllm(2048).up_to(512), Padding::vllm(512));
    }

    #[test]
    fn without_padding_a_batch_is_as_large_as_it_is() {
        let sizes = Sizes::exact();
        assert_eq!([0, 1, 7, 8191].map(|n| sizes.hold(n)), [0, 1, 7, 8191]);
    }
}
