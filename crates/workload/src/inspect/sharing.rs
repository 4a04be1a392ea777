//! What requests share: the prefix hits of a cache that never forgets.
//!
//! The cache works like an engine's: whole blocks of prompt and generated tokens enter it, a block
//! is found only if all blocks before it are, and the last token of a prompt is always computed.
//! Every request is taken to end before the next one arrives, and there is one cache for all. So
//! the share of hits is a bound that no cluster can beat with blocks of this size.

use blis_core::runs::{RunId, RunTree};
use blis_core::{Blocks, Request};
use std::cmp::Reverse;

/// Stretches that are listed.
const LISTED: usize = 5;

/// What requests share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Tokens of a block.
    pub block_size: u32,
    /// Prompt tokens of all requests.
    pub prompt_tokens: u64,
    /// Those of them that a cache which never forgets has.
    pub hit_tokens: u64,
    /// Requests of which it has a block or more.
    pub requests_with_hit: u64,
    /// Different blocks of prompts and answers: what such a cache holds in the end.
    pub blocks: u64,
    /// The stretches of prompts that save most, the most first.
    pub stretches: Vec<SharedStretch>,
}

/// A stretch of tokens with which several prompts go on in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedStretch {
    /// Tokens of the prompts before it.
    pub from: u64,
    /// Tokens of the prompts up to its end.
    pub to: u64,
    /// Prompts that found it.
    pub hits: u64,
    /// Tokens that they did not have to compute.
    pub saved_tokens: u64,
}

impl Sharing {
    /// The share of all prompt tokens that are hits; `None` if there is no prompt.
    pub fn hit_share(&self) -> Option<f64> {
        let share = |all| blis_core::math::float(self.hit_tokens) / blis_core::math::float(all);
        (self.prompt_tokens > 0).then(|| share(self.prompt_tokens))
    }
}

/// Counts hits.
#[derive(Clone, Debug)]
pub(super) struct SharingCount {
    /// What is counted; its stretches are found in the end.
    found: Sharing,
    /// The payload is the number of prompts that found the run.
    tree: RunTree<u64>,
    /// The runs that a prompt follows; kept to save an allocation.
    path: Vec<RunId>,
}

impl SharingCount {
    pub(super) fn new(block_size: u32) -> SharingCount {
        let found = Sharing { block_size, ..Sharing::default() };
        SharingCount { found, tree: RunTree::default(), path: Vec::new() }
    }

    pub(super) fn see(&mut self, request: &Request) {
        let (content, size) = (&request.content, self.found.block_size);
        let prompt = content.prompt_tokens();
        // The last generated token is returned, but its keys and values are never computed.
        let kept = u64::from(prompt) + u64::from(request.output_tokens) - 1;
        let kept = u32::try_from(kept / u64::from(size)).unwrap_or(u32::MAX);
        let all = content.blocks(size, kept);
        let known = all.first((prompt - 1) / size);
        let hit = self.find(known);
        for run in &self.path {
            *self.tree.get_mut(*run) += 1;
        }
        let hit_tokens = u64::from(hit) * u64::from(size);
        self.found.prompt_tokens += u64::from(prompt);
        self.found.hit_tokens += hit_tokens;
        self.found.requests_with_hit += u64::from(hit > 0);
        // What was not asked for because the prompt's last token is always computed may be there.
        let there = if hit == known.len() { self.find(all) } else { hit };
        if there < kept {
            self.tree.insert(self.path.last().copied(), all, there, 0);
            self.found.blocks += u64::from(kept - there);
        }
    }

    /// Puts the runs that `blocks` follow into `self.path`, cutting the last one where they leave
    /// it, and returns how many blocks they have.
    fn find(&mut self, blocks: Blocks<'_>) -> u32 {
        self.path.clear();
        let mut found = 0;
        let mut cut = None;
        for step in self.tree.walk(blocks) {
            self.path.push(step.run);
            found += step.blocks;
            cut = (!step.whole).then_some((step.run, step.blocks));
        }
        if let Some((tail, at)) = cut {
            self.path.pop();
            self.path.push(self.tree.split(tail, at, |hits| *hits));
        }
        found
    }

    pub(super) fn finish(self) -> Sharing {
        let size = u64::from(self.found.block_size);
        let saved = |run: &RunId| u64::from(self.tree.blocks(*run)) * self.tree.get(*run) * size;
        let mut runs: Vec<RunId> =
            self.tree.runs().filter(|run| *self.tree.get(*run) > 0).collect();
        runs.sort_by_key(|run| (Reverse(saved(run)), *run));
        runs.truncate(LISTED);
        let stretch = |run: &RunId| {
            let above = std::iter::successors(self.tree.parent(*run), |run| self.tree.parent(*run));
            let before: u64 = above.map(|run| u64::from(self.tree.blocks(run))).sum();
            SharedStretch {
                from: before * size,
                to: (before + u64::from(self.tree.blocks(*run))) * size,
                hits: *self.tree.get(*run),
                saved_tokens: saved(run),
            }
        };
        Sharing { stretches: runs.iter().map(stretch).collect(), ..self.found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::random::Purpose;
    use blis_core::{Content, Dice, RequestId, Segment, SloClass, StreamId, TenantId, Time};
    use std::collections::BTreeSet;

    fn request(segments: &[(u64, u32)], output: u64, output_tokens: u32) -> Request {
        let segment = |&(stream, tokens): &(u64, u32)| Segment { stream: StreamId(stream), tokens };
        Request {
            id: RequestId(0),
            name: None,
            arrival: Time::ZERO,
            content: Content::new(segments.iter().map(segment), StreamId(output)),
            output_tokens,
            class: SloClass::Standard,
            tenant: TenantId(0),
            session: None,
            round: 0,
            attempt: 0,
            deadline: None,
            patience: None,
        }
    }

    fn sharing(size: u32, requests: &[Request]) -> Sharing {
        let mut count = SharingCount::new(size);
        for request in requests {
            count.see(request);
        }
        count.finish()
    }

    /// All tokens whose keys and values are computed: every one is a stream and a place in it.
    fn tokens(request: &Request) -> Vec<(u64, u32)> {
        let content = &request.content;
        let mut tokens: Vec<(u64, u32)> = Vec::new();
        for segment in content.segments() {
            tokens.extend((0..segment.tokens).map(|at| (segment.stream.0, at)));
        }
        let output = content.output_stream();
        let there = content.segments().iter().filter(|segment| segment.stream == output);
        let from = there.map(|segment| segment.tokens).max().unwrap_or(0);
        tokens.extend((from..from + request.output_tokens - 1).map(|at| (output.0, at)));
        tokens
    }

    /// The same numbers, from the set of all prefixes of whole blocks: (hit tokens, blocks).
    fn naive(size: usize, requests: &[Request]) -> (u64, u64) {
        let mut cache: BTreeSet<Vec<(u64, u32)>> = BTreeSet::new();
        let mut hits = 0;
        for request in requests {
            let tokens = tokens(request);
            let prompt = request.content.prompt_tokens() as usize;
            let blocks = (1..).map(|n| n * size).take_while(|end| *end < prompt);
            let found = blocks.take_while(|end| cache.contains(&tokens[..*end])).count();
            hits += (found * size) as u64;
            for end in (1..=tokens.len() / size).map(|n| n * size) {
                cache.insert(tokens[..end].to_vec());
            }
        }
        (hits, cache.len() as u64)
    }

    #[test]
    fn hits_and_blocks_are_those_of_a_set_of_all_prefixes() {
        let (mut with_hits, mut with_misses, mut exact_ends) = (0, 0, 0);
        for seed in 0..300 {
            let mut dice = Dice::new(seed, Purpose::InputLength, 0);
            let mut below = |n: u32| u32::try_from(dice.below(n as usize)).unwrap();
            let size = 1 + below(5);
            let requests: Vec<Request> = (0..2 + below(25))
                .map(|_| {
                    let segments: Vec<(u64, u32)> =
                        (0..=below(3)).map(|_| (u64::from(below(4)), 1 + below(14))).collect();
                    request(&segments, u64::from(below(5)), 1 + below(12))
                })
                .collect();
            let found = sharing(size, &requests);
            let expected = naive(size as usize, &requests);
            assert_eq!((found.hit_tokens, found.blocks), expected, "seed {seed}: {requests:?}");
            with_hits += u32::from(found.hit_tokens > 0);
            with_misses += u32::from(found.hit_tokens < found.prompt_tokens / 2);
            exact_ends += requests
                .iter()
                .filter(|request| request.content.prompt_tokens().is_multiple_of(size))
                .count();
        }
        assert!(with_hits > 100 && with_misses > 100 && exact_ends > 500, "a test of something");
    }

    #[test]
    fn the_last_token_of_a_prompt_is_computed_and_answers_are_kept() {
        let ask = request(&[(1, 64)], 1, 33);
        let again = sharing(16, &[ask.clone(), ask.clone(), ask.clone()]);
        assert_eq!((again.hit_tokens, again.prompt_tokens), (2 * 48, 192), "not the fourth block");
        assert_eq!(
            again.blocks, 6,
            "64 + 32 tokens: the last generated one has no keys and values"
        );
        let next_round = request(&[(1, 64 + 33 + 20)], 1, 5);
        assert_eq!(sharing(16, &[ask, next_round]).hit_tokens, 96, "prompt and answer");
    }

    #[test]
    fn the_stretches_that_save_most_come_first() {
        let mut requests = Vec::new();
        for number in 0..10 {
            requests.push(request(&[(1, 160), (100 + number, 40)], 200 + number, 1));
            requests.push(request(&[(1, 160), (2, 32), (300 + number, 40)], 400 + number, 1));
        }
        let found = sharing(16, &requests);
        let first = SharedStretch { from: 0, to: 160, hits: 19, saved_tokens: 19 * 160 };
        let second = SharedStretch { from: 160, to: 192, hits: 9, saved_tokens: 9 * 32 };
        assert_eq!(found.stretches, [first, second]);
        assert_eq!(found.hit_tokens, 19 * 160 + 9 * 32);
        assert_eq!(found.requests_with_hit, 19);
    }
}
