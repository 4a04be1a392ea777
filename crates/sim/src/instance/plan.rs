//! What a step is to compute: the value between forming a batch and carrying it out.

/// Who computes how much in a step. A steady request computes one token and is not listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchPlan {
    chunks: Vec<Chunk>,
}

/// The part of a request that is not steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its place in the running batch.
    pub(crate) place: usize,
    /// Tokens that it computes.
    pub(crate) tokens: u32,
    /// Those of them that are not in vain. Nobody in the engine knows before the step is processed.
    pub(crate) kept: u32,
}

impl Chunk {
    /// A part of what a request lacks: none of it is in vain.
    pub(crate) fn catching_up(place: usize, tokens: u32) -> Chunk {
        Chunk { place, tokens, kept: tokens }
    }
}

impl BatchPlan {
    /// In running order.
    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
    }

    /// A request behind all others of the plan computes a chunk.
    pub(crate) fn add(&mut self, chunk: Chunk) {
        self.chunks.push(chunk);
    }

    /// What the request at `place` is to compute, if it is not steady.
    pub(crate) fn of(&self, place: usize) -> Option<Chunk> {
        self.chunks.iter().find(|chunk| chunk.place == place).copied()
    }

    /// Tokens that are computed in vain.
    pub(crate) fn wasted(&self) -> u32 {
        self.chunks.iter().map(|chunk| chunk.tokens - chunk.kept).sum()
    }

    /// The request at `place` leaves the running batch, and those behind it move up. Returns what
    /// it was to compute.
    pub(crate) fn forget(&mut self, place: usize) -> u32 {
        let first = self.chunks.partition_point(|chunk| chunk.place < place);
        let planned = self.chunks.get(first).filter(|chunk| chunk.place == place);
        let tokens = planned.map_or(0, |chunk| chunk.tokens);
        if tokens > 0 {
            self.chunks.remove(first);
        }
        for chunk in &mut self.chunks[first..] {
            chunk.place -= 1;
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leaves_is_forgotten_and_the_others_move_up() {
        let mut plan = BatchPlan::default();
        for (place, tokens) in [(1, 10), (3, 30), (4, 40)] {
            plan.add(Chunk::catching_up(place, tokens));
        }
        assert_eq!((plan.forget(2), plan.forget(2), plan.forget(7)), (0, 30, 0));
        let left = [Chunk::catching_up(1, 10), Chunk::catching_up(2, 40)];
        assert_eq!(plan.chunks(), left);
    }
}
