//! What a prompt contains, without tokens.
//!
//! A prompt is a list of segments, each the first `tokens` tokens of a stream. Equal stream prefixes mean equal
//! tokens, so two prompts share a prefix exactly where their pieces `(stream, offset, length)` agree. Only full
//! blocks have a hash, and a block's hash is chained on the block before it:
//!
//! ```text
//!   segments   [ sys, 40 tokens                  ][ r17, 24 tokens        ]   + generated: r17 from 24 on
//!   blocks     [ sys 0..16 ][ sys 16..32 ][ sys 32..40, r17 0..8 ][ r17 8..24 ][ r17 24..40 ] ...
//!   hashes      h0 = H(seed, piece)  h1 = H(h0, piece)  h2 = H(h1, piece, piece)  ...
//! ```
//!
//! Adjacent pieces that continue the same stream are merged before hashing, so that a conversation hashes the
//! same whether a part of it was prompted or generated.

use crate::ids::StreamId;
use crate::random::mix;

/// The chained hash of one full block: equal hashes mean equal tokens up to the end of that block.
pub type BlockHash = u64;

/// The first `tokens` tokens of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Which stream.
    pub stream: StreamId,
    /// How many of its first tokens.
    pub tokens: u32,
}

/// All the tokens of one request: its prompt, and the stream that its generated tokens continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    prompt: Vec<Segment>,
    prompt_tokens: u32,
    output: StreamId,
    output_offset: u32,
}

/// A stretch of consecutive tokens of one stream.
#[derive(Clone, Copy)]
struct Piece {
    stream: StreamId,
    offset: u32,
    tokens: u32,
}

impl Content {
    /// A prompt of `segments` whose generated tokens continue `output` where the prompt leaves that stream
    /// (at its start if the prompt does not contain it). Empty segments are dropped.
    ///
    /// # Panics
    /// If the prompt is longer than `u32::MAX` tokens; readers refuse such input first.
    pub fn new(mut segments: Vec<Segment>, output: StreamId) -> Content {
        segments.retain(|segment| segment.tokens > 0);
        let total: u64 = segments.iter().map(|segment| u64::from(segment.tokens)).sum();
        let output_offset = segments
            .iter()
            .filter(|segment| segment.stream == output)
            .map(|segment| segment.tokens)
            .max();
        Content {
            prompt: segments,
            prompt_tokens: u32::try_from(total).expect("a prompt has at most 2^32 - 1 tokens"),
            output,
            output_offset: output_offset.unwrap_or(0),
        }
    }

    /// Prompt length in tokens.
    pub fn prompt_tokens(&self) -> u32 {
        self.prompt_tokens
    }

    /// The prompt's segments.
    pub fn segments(&self) -> &[Segment] {
        &self.prompt
    }

    /// The stream that generated tokens continue.
    pub fn output_stream(&self) -> StreamId {
        self.output
    }

    /// Appends the hashes of the full blocks `hashes.len()..blocks` of this content (prompt, then generated
    /// tokens) to `hashes`, which must hold the hashes of the blocks before.
    pub fn hash_blocks(&self, block_size: u32, blocks: u32, hashes: &mut Vec<BlockHash>) {
        let first = u32::try_from(hashes.len()).expect("block counts fit u32");
        if first >= blocks {
            return;
        }
        let mut chain = hashes.last().copied().unwrap_or(block_size.into());
        let mut pieces = self.pieces_from(first * block_size);
        let mut piece = pieces.next().expect("generated tokens never end");
        for _ in first..blocks {
            let mut missing = block_size;
            while missing > 0 {
                let taken = piece.tokens.min(missing);
                let place = (u64::from(piece.offset) << 32) | u64::from(taken);
                chain = mix(mix(chain, piece.stream.0), place);
                missing -= taken;
                piece.offset += taken;
                piece.tokens -= taken;
                if piece.tokens == 0 {
                    piece = pieces.next().expect("generated tokens never end");
                }
            }
            hashes.push(chain);
        }
    }

    /// The pieces from token `start` on, merged where one continues the stream of the one before; the last one
    /// stands for all generated tokens.
    fn pieces_from(&self, start: u32) -> impl Iterator<Item = Piece> + '_ {
        let generated = Piece {
            stream: self.output,
            offset: self.output_offset,
            tokens: u32::MAX - self.output_offset,
        };
        let mut skip = start;
        let mut all = self
            .prompt
            .iter()
            .map(|s| Piece { stream: s.stream, offset: 0, tokens: s.tokens })
            .chain(std::iter::once(generated))
            .filter_map(move |piece| {
                let cut = skip.min(piece.tokens);
                skip -= cut;
                let rest =
                    Piece { offset: piece.offset + cut, tokens: piece.tokens - cut, ..piece };
                (rest.tokens > 0).then_some(rest)
            })
            .peekable();
        std::iter::from_fn(move || {
            let mut piece = all.next()?;
            while let Some(next) = all.next_if(|next| {
                next.stream == piece.stream && next.offset == piece.offset + piece.tokens
            }) {
                piece.tokens = piece.tokens.saturating_add(next.tokens);
            }
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(stream: u64, tokens: u32) -> Segment {
        Segment { stream: StreamId(stream), tokens }
    }

    fn hashes(segments: Vec<Segment>, output: u64, blocks: u32) -> Vec<BlockHash> {
        let mut hashes = Vec::new();
        Content::new(segments, StreamId(output)).hash_blocks(16, blocks, &mut hashes);
        hashes
    }

    #[test]
    fn prompts_share_hashes_exactly_as_far_as_their_full_blocks_agree() {
        let a = hashes(vec![segment(1, 40), segment(2, 40)], 9, 5);
        let b = hashes(vec![segment(1, 40), segment(3, 40)], 9, 5);
        assert_eq!(a[..2], b[..2], "the first 32 tokens are the same stream");
        assert!(a[2..].iter().zip(&b[2..]).all(|(x, y)| x != y), "block 2 holds 8 other tokens");
    }

    #[test]
    fn generated_tokens_hash_like_the_same_tokens_prompted_later() {
        let first_round = hashes(vec![segment(7, 40)], 7, 6);
        let second_round = hashes(vec![segment(7, 100)], 7, 6);
        assert_eq!(first_round, second_round);
    }

    #[test]
    fn hashing_in_two_goes_equals_hashing_in_one() {
        let content = Content::new(vec![segment(1, 21), segment(2, 50)], StreamId(3));
        let mut once = Vec::new();
        content.hash_blocks(16, 9, &mut once);
        for cut in 0..=9 {
            let mut twice = Vec::new();
            content.hash_blocks(16, cut, &mut twice);
            content.hash_blocks(16, 9, &mut twice);
            assert_eq!(once, twice, "cut at {cut}");
        }
    }

    #[test]
    fn repeating_a_stream_is_not_the_same_as_continuing_it() {
        assert_ne!(
            hashes(vec![segment(1, 16), segment(1, 16)], 9, 2),
            hashes(vec![segment(1, 32)], 9, 2)
        );
    }

    #[test]
    fn an_output_stream_absent_from_the_prompt_starts_at_its_beginning() {
        let content = Content::new(vec![segment(1, 16)], StreamId(5));
        let mut generated = Vec::new();
        content.hash_blocks(16, 2, &mut generated);
        assert_eq!(generated, hashes(vec![segment(1, 16), segment(5, 16)], 9, 2));
    }
}
