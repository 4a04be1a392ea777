//! What a prompt contains, without tokens.
//!
//! A prompt is a list of segments, each the first `tokens` tokens of a stream. Equal stream
//! prefixes mean equal tokens, so two prompts share a prefix exactly as far as their pieces
//! `(stream, offset, length)` agree:
//!
//! ```text
//!   segments  [ sys, 40 tokens             ][ r17, 24 tokens ]   + generated: r17 from 24 on
//!   blocks    [ sys 0..16 ][ sys 16..32 ][ sys 32..40, r17 0..8 ][ r17 8..24 ][ r17 24..40 ] ...
//! ```
//!
//! Where the generated tokens continue the stream of the prompt's last segment they are one piece
//! with it, so that a conversation is the same whether a part of it was prompted or generated.
//! Nothing here costs by tokens or blocks: a prompt of a million tokens is as cheap as one of ten.

use crate::ids::StreamId;
use crate::random::mix;
use smallvec::SmallVec;

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
    /// Tokens from the start on that other requests may have as well.
    common: u32,
}

/// The first blocks of a content.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    content: &'a Content,
    size: u32,
    count: u32,
}

/// A stretch of consecutive tokens of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: StreamId,
    pub(crate) offset: u32,
    pub(crate) tokens: u32,
}

/// A place in a content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    content: &'a Content,
    /// Which segment; one past the last: generated tokens.
    segment: usize,
    offset: u32,
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
            common: u32::MAX,
        }
    }

    /// Takes note that no other request has tokens of the stream that this one generates.
    pub fn set_private(&mut self) {
        let before = self.prompt.iter().take_while(|segment| segment.stream != self.output);
        self.common = before.map(|segment| segment.tokens).sum();
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

    /// The first `count` blocks of `size` tokens (at least 1) of prompt and generated tokens.
    pub fn blocks(&self, size: u32, count: u32) -> Blocks<'_> {
        Blocks { content: self, size, count }
    }

    /// The full blocks of `size` tokens (at least 1) of the prompt.
    pub fn prompt_blocks(&self, size: u32) -> Blocks<'_> {
        self.blocks(size, self.prompt_tokens / size)
    }

    fn cursor(&self, token: u32) -> Cursor<'_> {
        let mut cursor = Cursor { content: self, segment: self.prompt.len(), offset: 0 };
        if token >= self.prompt_tokens {
            cursor.offset = token - self.prompt_tokens;
            return cursor;
        }
        (cursor.segment, cursor.offset) = (0, token);
        while cursor.offset >= self.prompt[cursor.segment].tokens {
            cursor.offset -= self.prompt[cursor.segment].tokens;
            cursor.segment += 1;
        }
        cursor
    }
}

impl<'a> Blocks<'a> {
    /// How many blocks.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The content they are of.
    pub fn content(&self) -> &'a Content {
        self.content
    }

    /// Tokens of one block.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The first `count` of them, or all if there are fewer.
    #[must_use]
    pub fn first(&self, count: u32) -> Blocks<'a> {
        Blocks { count: self.count.min(count), ..*self }
    }

    /// Those that other requests may have as well.
    #[must_use]
    pub fn common(&self) -> Blocks<'a> {
        self.first(self.content.common / self.size)
    }

    /// A hash of their tokens: equal for equal tokens, whatever comes after them.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = u64::from(self.size);
        self.cursor(0).take(self.count * self.size, |piece| hash = piece.fold(hash));
        hash
    }

    /// A cursor on the first token of block `at`.
    pub(crate) fn cursor(&self, at: u32) -> Cursor<'a> {
        self.content.cursor(at * self.size)
    }
}

impl Piece {
    /// Takes the first `tokens` tokens off.
    pub(crate) fn take(&mut self, tokens: u32) -> Piece {
        let taken = Piece { tokens, ..*self };
        self.offset += tokens;
        self.tokens -= tokens;
        taken
    }

    /// Whether `next` continues it.
    pub(crate) fn is_continued_by(&self, next: &Piece) -> bool {
        self.stream == next.stream && self.offset + self.tokens == next.offset
    }

    /// Folds it into a hash.
    pub(crate) fn fold(&self, hash: u64) -> u64 {
        let place = (u64::from(self.offset) << 32) | u64::from(self.tokens);
        mix(mix(hash, self.stream.0), place)
    }
}

impl Cursor<'_> {
    /// The tokens from here on that are of one stream; never empty, because generated tokens never
    /// end.
    pub(crate) fn piece(&self) -> Piece {
        let Content { prompt, output, output_offset, .. } = self.content;
        let generated = u32::MAX - output_offset;
        let Some(segment) = prompt.get(self.segment) else {
            return Piece {
                stream: *output,
                offset: output_offset + self.offset,
                tokens: generated - self.offset,
            };
        };
        let last = self.segment + 1 == prompt.len();
        let continued = last && segment.stream == *output && segment.tokens == *output_offset;
        let tokens = segment.tokens - self.offset;
        Piece {
            stream: segment.stream,
            offset: self.offset,
            tokens: if continued { tokens + generated } else { tokens },
        }
    }

    /// Goes on by `tokens` tokens, no more than the piece here has.
    pub(crate) fn advance(&mut self, tokens: u32) {
        self.offset += tokens;
        while let Some(segment) = self.content.prompt.get(self.segment)
            && self.offset >= segment.tokens
        {
            self.offset -= segment.tokens;
            self.segment += 1;
        }
    }

    /// Takes the next `tokens` tokens, piece by piece.
    pub(crate) fn take(&mut self, mut tokens: u32, mut each: impl FnMut(Piece)) {
        while tokens > 0 {
            let mut piece = self.piece();
            let taken = piece.take(piece.tokens.min(tokens));
            self.advance(taken.tokens);
            tokens -= taken.tokens;
            each(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(stream: u64, tokens: u32) -> Segment {
        Segment { stream: StreamId(stream), tokens }
    }

    fn pieces(content: &Content, from: u32, tokens: u32) -> Vec<(u64, u32, u32)> {
        let mut pieces = Vec::new();
        let mut cursor = content.cursor(from);
        cursor.take(tokens, |piece| pieces.push((piece.stream.0, piece.offset, piece.tokens)));
        pieces
    }

    #[test]
    fn pieces_follow_the_segments_and_then_the_generated_tokens() {
        let content = Content::new([segment(1, 40), segment(2, 10)], StreamId(9));
        assert_eq!(pieces(&content, 0, 60), [(1, 0, 40), (2, 0, 10), (9, 0, 10)]);
        assert_eq!(pieces(&content, 32, 16), [(1, 32, 8), (2, 0, 8)]);
        assert_eq!(pieces(&content, 53, 4), [(9, 3, 4)]);
    }

    #[test]
    fn generated_tokens_are_one_piece_with_the_prompt_that_they_continue() {
        let first_round = Content::new([segment(3, 5), segment(7, 40)], StreamId(7));
        let second_round = Content::new([segment(3, 5), segment(7, 100)], StreamId(7));
        assert_eq!(pieces(&first_round, 0, 90), [(3, 0, 5), (7, 0, 85)]);
        assert_eq!(pieces(&first_round, 0, 90), pieces(&second_round, 0, 90));
        assert_eq!(pieces(&first_round, 50, 9), [(7, 45, 9)]);
    }

    #[test]
    fn fingerprints_tell_the_tokens_of_blocks_and_nothing_behind_them() {
        let content = |own| Content::new([segment(1, 40), segment(own, 30)], StreamId(own));
        let print =
            |content: &Content, blocks| content.prompt_blocks(8).first(blocks).fingerprint();
        assert_eq!(print(&content(2), 5), print(&content(3), 5));
        assert_ne!(print(&content(2), 6), print(&content(3), 6));
        assert_ne!(print(&content(2), 4), print(&content(2), 5));
    }

    #[test]
    fn an_output_stream_that_does_not_end_the_prompt_is_continued_where_it_was_left() {
        let content = Content::new([segment(7, 40), segment(3, 5)], StreamId(7));
        assert_eq!(pieces(&content, 0, 50), [(7, 0, 40), (3, 0, 5), (7, 40, 5)]);
    }

    #[test]
    fn empty_segments_are_as_if_they_were_not_there() {
        let content = Content::new([segment(1, 0), segment(2, 4), segment(3, 0)], StreamId(9));
        assert_eq!(content.segments(), [segment(2, 4)]);
        assert_eq!((content.prompt_tokens(), content.prompt_blocks(3).len()), (4, 1));
    }

    #[test]
    fn taking_in_two_goes_equals_taking_in_one() {
        let content = Content::new([segment(1, 21), segment(2, 50)], StreamId(3));
        let once = pieces(&content, 0, 90);
        for cut in 1..90 {
            let mut twice = pieces(&content, 0, cut);
            for next in pieces(&content, cut, 90 - cut) {
                match twice.last_mut() {
                    Some(last) if (last.0, last.1 + last.2) == (next.0, next.1) => last.2 += next.2,
                    _ => twice.push(next),
                }
            }
            assert_eq!(once, twice, "cut at {cut}");
        }
    }
}
