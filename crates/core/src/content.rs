//! What a prompt contains, without tokens.
//!
//! A prompt is a list of segments, each the first `tokens` tokens of a stream. Equal stream
//! prefixes mean equal tokens, so two prompts share a prefix exactly where their pieces `(stream,
//! offset, length)` agree. Only full blocks have a hash, and a block's hash is chained on the block
//! before it:
//!
//! ```text
//!   segments  [ sys, 40 tokens             ][ r17, 24 tokens ]   + generated: r17 from 24 on
//!   blocks    [ sys 0..16 ][ sys 16..32 ][ sys 32..40, r17 0..8 ][ r17 8..24 ][ r17 24..40 ] ...
//!   hashes    h0 = H(seed, piece)   h1 = H(h0, piece)   h2 = H(h1, piece, piece)   ...
//! ```
//!
//! Where the generated tokens continue the stream of the prompt's last segment they are one piece
//! with it, so that a conversation hashes the same whether a part of it was prompted or generated.

use crate::ids::StreamId;
use crate::random::mix;
use smallvec::SmallVec;

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
    /// Nearly always one or two, so that a request needs no memory of its own.
    prompt: SmallVec<[Segment; 2]>,
    prompt_tokens: u32,
    output: StreamId,
    output_offset: u32,
}

/// A token's segment (one past the last: generated) and its offset there.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    offset: u32,
}

/// A stretch of consecutive tokens of one stream.
#[derive(Clone, Copy)]
struct Piece {
    stream: StreamId,
    offset: u32,
    tokens: u32,
}

impl Piece {
    /// Folds the first `tokens` tokens into `chain` and takes them off.
    fn take(&mut self, tokens: u32, chain: BlockHash) -> BlockHash {
        let hash = mix(chain ^ self.key(), place_of(self.offset, tokens));
        self.offset += tokens;
        self.tokens -= tokens;
        hash
    }

    /// What tells its stream from others.
    fn key(&self) -> u64 {
        mix(self.stream.0, 0x5EED)
    }
}

/// An offset and a number of tokens, as one number.
fn place_of(offset: u32, tokens: u32) -> u64 {
    (u64::from(offset) << 32) | u64::from(tokens)
}

impl Content {
    /// A prompt of `segments` whose generated tokens continue `output` where the prompt leaves that
    /// stream (at its start if the prompt does not contain it). Empty segments are dropped.
    ///
    /// # Panics
    /// If the prompt is longer than `u32::MAX` tokens; readers refuse such input first.
    pub fn new(segments: impl IntoIterator<Item = Segment>, output: StreamId) -> Content {
        let segments: SmallVec<[Segment; 2]> =
            segments.into_iter().filter(|segment| segment.tokens > 0).collect();
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

    /// Appends the hashes of the full blocks `hashes.len()..blocks` of this content (prompt, then
    /// generated tokens) to `hashes`, which must hold the hashes of the blocks before.
    ///
    /// # Panics
    /// If there are more than `u32::MAX` blocks, or the block size is 0.
    pub fn hash_blocks(&self, block_size: u32, blocks: u32, hashes: &mut Vec<BlockHash>) {
        let first = u32::try_from(hashes.len()).expect("block counts fit u32");
        if first >= blocks {
            return;
        }
        let mut missing = blocks - first;
        hashes.reserve(missing as usize);
        let mut chain = hashes.last().copied().unwrap_or(block_size.into());
        // Tokens that the block under way still lacks.
        let mut lacks = block_size;
        let mut start = self.locate(first * block_size);
        loop {
            let mut piece = self.piece_at(start);
            start = Place { segment: start.segment + 1, offset: 0 };
            while piece.tokens > 0 {
                if lacks == block_size && piece.tokens >= block_size {
                    let whole = missing.min(piece.tokens / block_size);
                    let key = piece.key();
                    let mut place = place_of(piece.offset, block_size);
                    hashes.extend((0..whole).map(|_| {
                        chain = mix(chain ^ key, place);
                        place += u64::from(block_size) << 32;
                        chain
                    }));
                    missing -= whole;
                    piece.offset += whole * block_size;
                    piece.tokens -= whole * block_size;
                } else {
                    let taken = piece.tokens.min(lacks);
                    chain = piece.take(taken, chain);
                    lacks -= taken;
                    if lacks == 0 {
                        hashes.push(chain);
                        missing -= 1;
                        lacks = block_size;
                    }
                }
                if missing == 0 {
                    return;
                }
            }
        }
    }

    /// Where token `token` is.
    fn locate(&self, token: u32) -> Place {
        if token >= self.prompt_tokens {
            return Place { segment: self.prompt.len(), offset: token - self.prompt_tokens };
        }
        let mut offset = token;
        let mut segment = 0;
        while offset >= self.prompt[segment].tokens {
            offset -= self.prompt[segment].tokens;
            segment += 1;
        }
        Place { segment, offset }
    }

    /// The tokens from `place` to the end of its segment; the generated tokens, which never end,
    /// are the last one.
    fn piece_at(&self, place: Place) -> Piece {
        let generated = u32::MAX - self.output_offset;
        match self.prompt.get(place.segment) {
            Some(segment) => {
                let last = place.segment + 1 == self.prompt.len();
                let continued =
                    last && segment.stream == self.output && segment.tokens == self.output_offset;
                let tokens = segment.tokens - place.offset;
                Piece {
                    stream: segment.stream,
                    offset: place.offset,
                    tokens: if continued { tokens + generated } else { tokens },
                }
            }
            None => Piece {
                stream: self.output,
                offset: self.output_offset + place.offset,
                tokens: generated - place.offset,
            },
        }
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
