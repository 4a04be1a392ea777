//! Requests one at a time, as the theory of caches has them: each claims what is cached of its
//! prompt, makes room for the rest and for what it generates, and is gone before the next comes.

use crate::prompts::{BlockHash, Prompt, Prompts};
use blis_core::random::mix;
use blis_kv::{Judged, Pool, Use};

/// Blocks of the longest prompt, with what it generates: no pool may be smaller.
pub(crate) const LARGEST: u32 = 6;

/// Requests in their order.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) requests: Vec<Request>,
}

/// A request, and the blocks it generates, which are never cached.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) prompt: Prompt,
    pub(crate) generated: u32,
    /// For each block, the next request that has it; none: the number of requests.
    next_use: Vec<usize>,
}

/// How the idle blocks are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evictor {
    /// Least recently used first.
    Lru,
    /// Least often used first.
    Lfu,
    /// Any.
    Random(u64),
    /// Furthest next use first.
    Belady,
}

/// When copies are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offload {
    Never,
    /// Of what is evicted.
    OnEvict,
    /// Of all that a request shares, when it goes.
    OnRelease,
}

/// Which policies serve a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policies {
    pub(crate) evictor: Evictor,
    pub(crate) offload: Offload,
    /// Whether each block is judged by itself, and not a run by its last block.
    pub(crate) by_block: bool,
}

impl Policies {
    pub(crate) fn of(evictor: Evictor) -> Policies {
        Policies { evictor, offload: Offload::Never, by_block: false }
    }
}

/// What a request found: blocks, and copies behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) blocks: u32,
    pub(crate) copied: u32,
}

impl Trace {
    /// `length` requests of prompts from a small tree: at each depth one of `names` blocks.
    pub(crate) fn random(seed: u64, length: u64, names: u64) -> Trace {
        let draw = |request: u64, what: u64, below: u64| {
            mix(mix(mix(seed, request), what), 0x7ACE) % below
        };
        let prompts: Vec<Vec<u64>> = (0..length)
            .map(|request| {
                let blocks = 1 + draw(request, 100, 5);
                (0..blocks).map(|depth| draw(request, depth, names)).collect()
            })
            .collect();
        Trace::new(&prompts, |request| u32::from(draw(request, 200, 4) == 0))
    }

    pub(crate) fn new(prompts: &[Vec<u64>], generated: impl Fn(u64) -> u32) -> Trace {
        let prompts = Prompts::named(prompts).whole;
        let hashes: Vec<Vec<BlockHash>> = prompts.iter().map(|p| p.hashes.clone()).collect();
        let next = |from: usize, hash: &BlockHash| {
            let later = (from + 1..hashes.len()).find(|&request| hashes[request].contains(hash));
            later.unwrap_or(hashes.len())
        };
        let requests = prompts.into_iter().enumerate().map(|(at, prompt)| {
            let next_use = hashes[at].iter().map(|hash| next(at, hash)).collect();
            Request { prompt, generated: generated(at as u64), next_use }
        });
        Trace { requests: requests.collect() }
    }

    /// Serves all requests from a pool; returns what each found.
    pub(crate) fn serve(&self, pool: &mut Pool, policies: Policies) -> Vec<Served> {
        (0..self.requests.len()).map(|at| self.serve_one(pool, at, policies)).collect()
    }

    fn serve_one(&self, pool: &mut Pool, at: usize, policies: Policies) -> Served {
        let Request { prompt, generated, next_use } = &self.requests[at];
        let all = prompt.first(prompt.len());
        let hit = pool.lookup(all);
        let mut table = pool.claim(hit);
        pool.touch(all, hit.blocks, hit.blocks + hit.copied, 0);
        let missing = all.len() - hit.blocks + generated;
        while pool.shortfall(missing) > 0 {
            let run = pool.first_idle().expect("a pool is larger than a request");
            if policies.offload == Offload::OnEvict {
                pool.copy_now(run, pool.shortfall(missing), 0);
            }
            pool.evict(run, pool.shortfall(missing));
        }
        pool.grow(&mut table, missing);
        pool.commit(&mut table, all);
        if policies.offload == Offload::OnRelease {
            pool.copy_table_now(&table, 0);
        }
        pool.release_cut(&mut table, |run| Judged {
            worth: self.worth(run, next_use, policies.evictor),
            from: if policies.by_block { run.upto - 1 } else { 0 },
        });
        pool.check([].iter());
        Served { blocks: hit.blocks, copied: hit.copied }
    }

    /// The worth of a run by its last block. One that is not used again has none.
    fn worth(&self, run: Use, next_use: &[usize], evictor: Evictor) -> u64 {
        match evictor {
            Evictor::Lru => 0,
            Evictor::Lfu => run.uses.into(),
            Evictor::Random(seed) => mix(seed, mix(run.upto.into(), run.uses.into())) % 5,
            Evictor::Belady => (self.requests.len() - next_use[run.upto as usize - 1]) as u64,
        }
    }
}

/// Blocks found in the pool by all requests.
pub(crate) fn hits(served: &[Served]) -> u32 {
    served.iter().map(|found| found.blocks).sum()
}
