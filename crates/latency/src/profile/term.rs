//! The terms of the `profile` model: what each one multiplies, and what that means.
//!
//! The fitter and the prediction both read a shape through `features`, so that they cannot
//! disagree about it.

use super::padding::Padding;
use crate::shape::StepShape;
use blis_core::math::float;

/// How many terms there are.
pub const TERMS: usize = 20;

/// The values of all terms for one shape.
pub type Features = [f64; TERMS];

/// Sequences whose attention the GPU works on at once: an H200 has 132 multiprocessors, and a
/// sequence of 8 KV heads takes 8 of them.
const AT_ONCE: f64 = 16.5;

/// Where more sequences decode and contexts differ, so many of them take as long as the longest:
/// seen from 33 to 80 sequences while the longest was up to twice the mean. A paged kernel that was
/// measured apart has 30, up to one context of 8,192 among 192 (`data/h200/uneven_reads.csv`).
const UNEVEN: f64 = 33.0;

/// One sequence alone takes as long as so many sequences that share the memory's bandwidth: on the
/// H200 0.363 us against 0.0306 us a context token.
const ALONE: f64 = 12.0;

/// Padded tokens from which on the dense layers cost more by the token: memory bound at first,
/// compute bound in the end. The last is the first of vLLM's: Hopper's matrix instructions take 64
/// rows at a time, so up to 64 sequences only the weights' reading counts. With a knee at 128
/// instead, steps of 96 to 112 sequences take 3 to 5 % longer than the fit says, on two machines
/// (`pressure60` of `data/vllm`; `pressure50`, `prio60` and `prio70` of `data/vllm-held-out`).
const KNEES: [f64; 3] = [128.0, 256.0, 64.0];

/// Matrix products of more than `TILED` tokens are computed in tiles of so many tokens: steps that
/// were measured apart, without a server's padding, take as long as the next whole tile.
const TILE: u32 = 128;

/// Tokens up to which the tiles are so small that they do not matter.
const TILED: u32 = 512;

/// What a term is called, and what its coefficient means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Name in a profile.
    pub name: &'static str,
    /// Unit of its coefficient.
    pub unit: &'static str,
    /// What it stands for.
    pub help: &'static str,
}

pub(super) const fn term(name: &'static str, unit: &'static str, help: &'static str) -> Term {
    Term { name, unit, help }
}

/// All terms, in the order of the coefficients.
pub const ALL: [Term; TERMS] = [
    term("weights", "us/step", "weights are read once a step, however few the tokens"),
    term("dense", "us/padded token", "dense layers, for every token of the padded batch"),
    term("dense_beyond_128", "us/padded token", "and more for each beyond 128"),
    term("dense_beyond_256", "us/padded token", "and more for each beyond 256"),
    term("kv_read", "us/context token", "decode attention reads keys and values from memory"),
    term("kv_read_shared", "us/context token", "and those that another sequence read already"),
    term("attention", "us/pair", "prefill attention, for every query-key pair"),
    term("past_read", "us/past token", "prefill attention reads what is cached"),
    term("prefill_seq", "us/sequence", "setting up a sequence that catches up"),
    term("mixed", "us/step", "prefill and decode in one step take two attention kernels"),
    term("output", "us/sequence", "output layer and sampling, for every sequence"),
    term("host_step", "us/step", "the server prepares and launches a step"),
    term("host_prefill", "us/step", "and more one with prefill"),
    term("host_seq", "us/sequence", "and every sequence that decodes"),
    term("host_context", "us/context token", "and copies its block table"),
    term("decode_ramp", "us/padded sequence", "small decode batches do not fill the GPU, to 16"),
    term("kv_read_mixed", "us/context token", "and more in a step with prefill"),
    term("kv_read_mixed_shared", "us/context token", "and more for those that were read already"),
    term("dense_beyond_64", "us/padded token", "dense layers, for each token beyond 64"),
    term("decode_mixed", "us/sequence", "decoding a sequence in a step with prefill"),
];

/// How many terms there are of a server whose host is in its steps: the others
/// cannot be told from these there.
pub(crate) const IN_STEP: usize = 16;

/// The terms of a server whose host is logged apart: those of the GPU that can be told from one
/// another. The others are 0.
pub(crate) const GPU_ALONE: [&str; 12] = [
    "weights",
    "dense_beyond_64",
    "dense_beyond_256",
    "kv_read",
    "kv_read_shared",
    "attention",
    "prefill_seq",
    "output",
    "decode_ramp",
    "kv_read_mixed",
    "kv_read_mixed_shared",
    "decode_mixed",
];

/// Place of the term `kv_read`.
pub(crate) const KV_READ: usize = 4;

/// Place of the term `kv_read_shared`.
pub(crate) const KV_READ_SHARED: usize = 5;

/// Place of the term `host_seq`.
pub(crate) const HOST_SEQ: usize = 13;

/// Place of the term `host_context`.
pub(crate) const HOST_CONTEXT: usize = 14;

/// Where a step ran: what surrounds the kernels is only there in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// In a server that pads, schedules and launches.
    Served,
    /// Alone, as kernels measured apart, without padding.
    Bare,
}

/// What is looked at besides the shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Lens {
    /// How the server pads.
    pub padding: Padding,
    /// Longest context by mean context of a batch, where the longest is not known.
    pub usual_spread: f64,
    /// Whether decode attention splits long contexts over the GPU, as `FlashAttention` 3 does: then
    /// no sequence waits for the longest.
    pub split_attention: bool,
}

impl Lens {
    /// Tokens that the dense layers compute.
    pub fn padded(&self, shape: &StepShape, site: Site) -> u32 {
        let tokens = shape.tokens();
        match site {
            Site::Bare if shape.only_decodes() || tokens <= TILED => tokens,
            Site::Bare => tokens.next_multiple_of(TILE),
            Site::Served if shape.only_decodes() => self.padding.decode.hold(tokens),
            Site::Served => self.padding.prefill.hold(tokens),
        }
    }

    /// The size whose kernels a step with prefill meets, if it is one that the server pads to.
    /// Steps measured apart have none unless they are exactly as large.
    pub fn size(&self, shape: &StepShape, site: Site) -> Option<u32> {
        if shape.only_decodes() {
            return None;
        }
        let size = self.padded(shape, site);
        self.padding.prefill.listed.binary_search(&size).is_ok().then_some(size)
    }

    /// The value of every term.
    pub fn features(&self, shape: &StepShape, site: Site) -> Features {
        let served = if site == Site::Served { 1.0 } else { 0.0 };
        let padded = self.padded(shape, site);
        let tokens = f64::from(padded);
        let (kv, shared) = self.kv_tokens(shape);
        let (ramp, mixed, prefill) = match (shape.only_decodes(), shape.decode_seqs) {
            (true, _) => (tokens.min(AT_ONCE.floor()), 0.0, 0.0),
            (false, 0) => (0.0, 0.0, 1.0),
            (false, _) => (0.0, 1.0, 1.0),
        };
        // A captured graph computes the outputs of its padding too.
        let outputs = if shape.only_decodes() { tokens } else { f64::from(shape.outputs()) };
        [
            1.0,
            tokens,
            (tokens - KNEES[0]).max(0.0),
            (tokens - KNEES[1]).max(0.0),
            kv,
            shared,
            float(shape.prefill_attention_pairs),
            float(shape.prefill_past_tokens),
            f64::from(shape.prefill_seqs),
            mixed,
            outputs,
            served,
            served * prefill,
            served * f64::from(shape.decode_seqs),
            served * float(shape.decode_context),
            served * ramp,
            prefill * kv,
            prefill * shared,
            (tokens - KNEES[2]).max(0.0),
            prefill * f64::from(shape.decode_seqs),
        ]
    }

    /// Context tokens that decode attention takes the time of, and those of them that were read
    /// already.
    fn kv_tokens(&self, shape: &StepShape) -> (f64, f64) {
        if shape.decode_seqs == 0 {
            return (0.0, 0.0);
        }
        let seqs = f64::from(shape.decode_seqs);
        let all = float(shape.decode_context);
        let shared = float(shape.shared_context);
        if self.split_attention {
            return ((all - shared).max(0.0), shared);
        }
        let mean = all / seqs;
        let longest = match shape.decode_longest {
            0 => mean * self.usual_spread,
            longest => f64::from(longest).max(mean),
        };
        let above = longest - mean;
        let wait = if seqs <= AT_ONCE { ALONE * above } else { UNEVEN.min(seqs) * above };
        ((all + wait - shared).max(ALONE * longest), shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens() -> Lens {
        Lens { padding: Padding::measured_server(), usual_spread: 1.5, split_attention: false }
    }

    fn kv(seqs: u32, context: u64, longest: u32, shared: u64) -> (f64, f64) {
        let shape = StepShape {
            decode_seqs: seqs,
            decode_context: context,
            decode_longest: longest,
            shared_context: shared,
            ..StepShape::default()
        };
        lens().kv_tokens(&shape)
    }

    fn is(found: (f64, f64), expected: (f64, f64)) {
        assert!((found.0 - expected.0).abs() < 1e-9, "{found:?}, expected {expected:?}");
        assert!((found.1 - expected.1).abs() < 1e-9, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn equal_contexts_are_read_once_each_and_few_of_them_take_the_time_of_twelve() {
        is(kv(64, 64 * 1000, 1000, 0), (64_000.0, 0.0));
        is(kv(1, 1000, 1000, 0), (12_000.0, 0.0));
        is(kv(8, 8000, 1000, 0), (12_000.0, 0.0));
    }

    #[test]
    fn up_to_16_sequences_wait_for_the_longest_context() {
        is(kv(10, 10_000, 3000, 0), (36_000.0, 0.0));
        is(kv(16, 16_000, 3000, 0), (16_000.0 + 12.0 * 2000.0, 0.0));
    }

    #[test]
    fn more_sequences_wait_longer_but_never_longer_than_if_all_were_the_longest() {
        is(kv(20, 20_000, 1500, 0), (20.0 * 1500.0, 0.0));
        is(kv(100, 100_000, 1500, 0), (100_000.0 + 33.0 * 500.0, 0.0));
        is(kv(100, 100_000, 8000, 0), (100_000.0 + 33.0 * 7000.0, 0.0));
    }

    #[test]
    fn what_is_measured_apart_is_computed_in_tiles() {
        let padded = |prefill_tokens, decode_seqs| {
            let shape = StepShape { prefill_tokens, decode_seqs, ..StepShape::default() };
            lens().padded(&shape, Site::Bare)
        };
        assert_eq!([padded(300, 0), padded(512, 0), padded(0, 600)], [300, 512, 600]);
        assert_eq!([padded(512, 32), padded(1024, 0), padded(1024, 32)], [640, 1024, 1152]);
    }

    #[test]
    fn an_unknown_longest_context_is_the_usual_one() {
        is(kv(20, 20_000, 0, 0), kv(20, 20_000, 1500, 0));
    }

    #[test]
    fn shared_blocks_are_read_from_memory_once() {
        is(kv(64, 64_000, 1000, 20_000), (44_000.0, 20_000.0));
    }

    #[test]
    fn split_attention_reads_every_context_once_however_they_differ() {
        let lens = Lens { split_attention: true, ..lens() };
        let shape = StepShape {
            decode_seqs: 10,
            decode_context: 10_000,
            decode_longest: 3000,
            shared_context: 4000,
            ..StepShape::default()
        };
        is(lens.kv_tokens(&shape), (6000.0, 4000.0));
        let alone = lens.features(&shape, Site::Served);
        let mixed = StepShape { prefill_seqs: 1, prefill_tokens: 9, ..shape };
        let mixed = lens.features(&mixed, Site::Served);
        assert!(alone[16].abs() + alone[17].abs() < 1e-9, "{alone:?}");
        is((mixed[16], mixed[17]), (6000.0, 4000.0));
    }

    #[test]
    fn a_step_without_a_server_is_not_padded_and_has_no_host() {
        let shape = StepShape { decode_seqs: 9, decode_context: 900, ..StepShape::default() };
        let bare = lens().features(&shape, Site::Bare);
        assert_eq!(lens().padded(&shape, Site::Bare), 9);
        assert_eq!(lens().padded(&shape, Site::Served), 16);
        assert!(bare[11..16].iter().all(|&value| value.abs() < 1e-12), "{bare:?}");
    }

    #[test]
    fn a_draft_is_padded_with_its_step_and_reads_no_cache_of_its_own() {
        let shape = StepShape { decode_seqs: 9, decode_context: 900, ..StepShape::default() };
        let drafted = StepShape { draft_tokens: 18, ..shape };
        assert_eq!(lens().padded(&drafted, Site::Served), 32);
        let [plain, drafted] = [shape, drafted].map(|shape| lens().features(&shape, Site::Served));
        let same = [KV_READ, KV_READ_SHARED, HOST_SEQ, HOST_CONTEXT];
        assert!(same.iter().all(|&at| (plain[at] - drafted[at]).abs() < 1e-12), "{drafted:?}");
        assert!((drafted[1] - 32.0).abs() < 1e-12 && (drafted[10] - 32.0).abs() < 1e-12);
    }

    #[test]
    fn places_are_those_of_the_terms() {
        let names = [KV_READ, KV_READ_SHARED, HOST_SEQ, HOST_CONTEXT].map(|at| ALL[at].name);
        assert_eq!(names, ["kv_read", "kv_read_shared", "host_seq", "host_context"]);
    }

    #[test]
    fn the_terms_of_a_gpu_alone_are_terms() {
        for name in GPU_ALONE {
            assert!(ALL.iter().any(|term| term.name == name), "{name}");
        }
    }

    #[test]
    fn names_are_unique() {
        for (index, term) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != term.name), "{}", term.name);
        }
    }
}
