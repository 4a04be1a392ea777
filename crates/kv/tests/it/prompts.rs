//! The prompts of a test: as contents for the pool, and token by token for the reference.

use blis_core::random::mix;
use blis_core::{Blocks, Content, Segment, StreamId};

/// Tokens of a block.
pub(crate) const BLOCK: u32 = 2;

/// A stream that no prompt has.
const STRANGER: u64 = 99;

/// What tells a block, with all before it, from others; made here from single tokens.
pub(crate) type BlockHash = u64;

/// All prompts of a test, and what is looked up in it.
#[derive(Debug)]
pub(crate) struct Prompts {
    /// One a prompt.
    pub(crate) whole: Vec<Prompt>,
    /// Every prompt whole, truncated twice, and extended by blocks that no request has.
    pub(crate) lookups: Vec<Prompt>,
    /// Single blocks that no prompt has.
    pub(crate) strangers: Vec<Prompt>,
}

/// Full blocks of a content.
#[derive(Debug)]
pub(crate) struct Prompt {
    content: Content,
    pub(crate) hashes: Vec<BlockHash>,
}

impl Prompt {
    /// The first `blocks` of prompt `segments`, and of a strange stream behind them.
    fn new(segments: &[(u64, u32)], blocks: usize) -> Prompt {
        let segment = |&(stream, tokens): &(u64, u32)| Segment { stream: StreamId(stream), tokens };
        let content = Content::new(segments.iter().map(segment), StreamId(STRANGER));
        let prompted = segments.iter().flat_map(|&(stream, n)| (0..n).map(move |at| (stream, at)));
        let tokens = prompted.chain((0..).map(|at| (STRANGER, at)));
        let chain = |hash: &mut u64, (stream, at): (u64, u32)| {
            *hash = mix(mix(*hash, stream), at.into());
            Some(*hash)
        };
        let ends = tokens.scan(7, chain).skip(BLOCK as usize - 1).step_by(BLOCK as usize);
        Prompt { content, hashes: ends.take(blocks).collect() }
    }

    /// How many blocks.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The first `blocks` of them, as the pool sees them.
    pub(crate) fn first(&self, blocks: usize) -> Blocks<'_> {
        self.content.blocks(BLOCK, u32::try_from(blocks.min(self.len())).expect("short prompts"))
    }
}

impl Prompts {
    /// Prompts of segments `(stream, tokens)`.
    pub(crate) fn new(prompts: &[&[(u64, u32)]]) -> Prompts {
        let length = |segments: &[(u64, u32)]| {
            (segments.iter().map(|&(_, tokens)| tokens).sum::<u32>() / BLOCK) as usize
        };
        let whole =
            prompts.iter().map(|segments| Prompt::new(segments, length(segments))).collect();
        let mut lookups = Vec::new();
        for segments in prompts {
            let blocks = length(segments);
            for some in [blocks, blocks - 1, blocks / 2, blocks + 2] {
                lookups.push(Prompt::new(segments, some));
            }
        }
        let strangers = (0..40).map(|at| Prompt::new(&[(1_000 + at, BLOCK)], 1)).collect();
        Prompts { whole, lookups, strangers }
    }

    /// Eight prompts of 5 to 10 blocks in two families, sharing 0, 2, 6, 7 or 8 blocks; one is the
    /// beginning of another.
    pub(crate) fn families() -> Prompts {
        Prompts::new(&[
            &[(1, 20)],
            &[(1, 12), (2, 8)],
            &[(1, 12), (2, 5), (3, 3)],
            &[(1, 12), (2, 2), (4, 6)],
            &[(1, 5), (5, 11)],
            &[(6, 14)],
            &[(6, 14), (7, 6)],
            &[(6, 1), (8, 9)],
        ])
    }

    /// Prompts of blocks that are named; equal names after equal beginnings are equal blocks.
    pub(crate) fn named(prompts: &[Vec<u64>]) -> Prompts {
        let segments: Vec<Vec<(u64, u32)>> =
            prompts.iter().map(|names| names.iter().map(|&name| (name, BLOCK)).collect()).collect();
        Prompts::new(&segments.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Two prompts of 3 blocks that share the first `shared`.
    pub(crate) fn two(shared: u32) -> Prompts {
        let (same, other) = (shared * BLOCK, (3 - shared) * BLOCK);
        Prompts::new(&[&[(1, 3 * BLOCK)], &[(1, same), (2, other)]])
    }
}
