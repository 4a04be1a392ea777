//! The prompts of a test, hashed as the product hashes them.

use blis_core::{BlockHash, Content, Segment, StreamId};

/// Tokens of a block.
const BLOCK: u32 = 2;

/// A stream that no prompt has.
const STRANGER: u64 = 99;

/// The block hashes of all prompts of a test, and of what is looked up in it.
#[derive(Debug)]
pub(crate) struct Prompts {
    /// One list of full blocks per prompt.
    pub(crate) whole: Vec<Vec<BlockHash>>,
    /// Every prompt whole, truncated twice, and extended by blocks that no request has.
    pub(crate) lookups: Vec<Vec<BlockHash>>,
}

impl Prompts {
    /// Prompts of segments `(stream, tokens)`.
    pub(crate) fn new(prompts: &[&[(u64, u32)]]) -> Prompts {
        let whole: Vec<_> = prompts.iter().map(|segments| hashes(segments, 0)).collect();
        let mut lookups = Vec::new();
        for (segments, hashes_of_prompt) in prompts.iter().zip(&whole) {
            let blocks = hashes_of_prompt.len();
            lookups.push(hashes_of_prompt.clone());
            lookups.push(hashes_of_prompt[..blocks - 1].to_vec());
            lookups.push(hashes_of_prompt[..blocks / 2].to_vec());
            lookups.push(hashes(segments, 2));
        }
        Prompts { whole, lookups }
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

    /// Two prompts of 3 blocks that share the first `shared`.
    pub(crate) fn two(shared: u32) -> Prompts {
        let (same, other) = (shared * BLOCK, (3 - shared) * BLOCK);
        Prompts::new(&[&[(1, 3 * BLOCK)], &[(1, same), (2, other)]])
    }
}

/// The hashes of a prompt's full blocks, and of `more` blocks of strange tokens after it.
fn hashes(segments: &[(u64, u32)], more: u32) -> Vec<BlockHash> {
    let segments: Vec<_> = segments
        .iter()
        .map(|&(stream, tokens)| Segment { stream: StreamId(stream), tokens })
        .collect();
    let content = Content::new(segments, StreamId(STRANGER));
    let mut hashes = Vec::new();
    content.hash_blocks(BLOCK, content.prompt_tokens() / BLOCK + more, &mut hashes);
    hashes
}
