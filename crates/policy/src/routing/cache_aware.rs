//! `cache-aware`: to the best match while loads are balanced, else to the least loaded.
//!
//! **Prefers** the instance with the fewest requests if the loads are out of balance: the most
//! exceeds the fewest by more than `absolute` requests and by more than a factor `relative`.
//! Otherwise the one with the longest match, if it covers more than `threshold` of the prompt;
//! otherwise the one that was sent the fewest blocks that it may still hold.
//!
//! **Reads** the router's own count (live): `in_flight`, and a memory of what it sent (live).
//!
//! **Parameters** `threshold`: the least share of the prompt that a match must cover. `absolute`
//! (requests) and `relative`: when loads are out of balance. `ties`: which of several equals.
//!
//! **Origin** the cache-aware policy of `sgl-router` with its defaults (026f853,
//! router arguments of 2026). It matches characters; here blocks of tokens.

use crate::prelude::*;
use crate::routing::knowledge::Knowledge;
use crate::routing::ties::{self, Ties};

/// What it remembers of an instance: `--max-tree-size`, at four characters per token.
const TREE_TOKENS: u64 = (1 << 26) / 4;

/// How `cache-aware` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "cache-aware",
    help: "Longest prefix match while loads are balanced, else the fewest requests (SGLang)",
    params: &[
        Param::float("threshold", 0.0..=1.0, 0.3, "")
            .help("Share of the prompt above which the longest match is chosen"),
        Param::int("absolute", 0..=1_000_000, 64, "requests")
            .help("Largest difference of loads that counts as balanced"),
        Param::float("relative", 1.0..=1_000.0, 1.5, "")
            .help("Largest ratio of loads that counts as balanced"),
        ties::PARAM,
    ],
    ..Spec::built_by(|values, cluster| {
        Box::new(CacheAware {
            threshold: values.float("threshold"),
            absolute: u32::try_from(values.int("absolute")).unwrap_or(u32::MAX),
            relative: values.float("relative"),
            ties: Ties::of(values),
            knowledge: Knowledge::approximate(TREE_TOKENS / u64::from(cluster.block_size.max(1))),
            counts: [0; 3],
            last: Reason::Unbalanced,
        })
    })
};

/// A switch between balance and affinity.
#[derive(Clone, Debug)]
pub struct CacheAware {
    threshold: f64,
    absolute: u32,
    relative: f64,
    ties: Ties,
    knowledge: Knowledge,
    /// Of all that were sent, by reason.
    counts: [u64; 3],
    last: Reason,
}

/// Why a request goes where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Unbalanced,
    Match,
    NoMatch,
}

impl Reason {
    const ALL: [(Reason, &str); 3] = [
        (Reason::Unbalanced, "unbalanced"),
        (Reason::Match, "match"),
        (Reason::NoMatch, "no-match"),
    ];

    fn name(self) -> &'static str {
        Reason::ALL[self as usize].1
    }
}

impl CacheAware {
    fn reason(&self, request: &RequestView<'_>, cluster: &ClusterView<'_>) -> Reason {
        let loads = cluster.instances.iter().map(|view| view.in_flight);
        let (most, fewest) = (loads.clone().max().unwrap_or(0), loads.min().unwrap_or(0));
        let apart = f64::from(most) > self.relative * f64::from(fewest);
        let shares = cluster.instances.iter().map(|view| self.knowledge.share(request, view));
        match shares.fold(0.0, f64::max) {
            _ if most - fewest > self.absolute && apart => Reason::Unbalanced,
            best if best > self.threshold => Reason::Match,
            _ => Reason::NoMatch,
        }
    }
}

impl Router for CacheAware {
    fn route(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Choice {
        self.knowledge.look(request, cluster);
        self.last = self.reason(request, cluster);
        let (last, knowledge) = (self.last, &self.knowledge);
        let least = |view: &InstanceView| match last {
            Reason::Unbalanced => u64::from(view.in_flight),
            Reason::Match => u64::MAX - u64::from(knowledge.blocks(view.id)),
            Reason::NoMatch => knowledge.held(view.id),
        };
        let instance = self.ties.least(cluster, dice, least);
        let expected_hit_blocks = Some(self.knowledge.blocks(instance));
        Choice { instance, intent: Intent { expected_hit_blocks, because: self.last.name() } }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        self.knowledge.sent(request, instance);
        self.counts[self.last as usize] += 1;
    }

    fn firings(&self, firings: &mut Firings) {
        for (reason, name) in Reason::ALL {
            firings.add(SPEC.name, name, self.counts[reason as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{cluster, dice, instances, prompt, request};

    /// Where prompts go one after the other, with these requests in flight each time.
    fn sent(prompts: &[(&[u64], [u32; 3])]) -> (Vec<u32>, Vec<u64>) {
        let given = [("absolute", "4"), ("relative", "2"), ("ties", "lowest-index")];
        let values = Values::parse(SPEC.params, given).expect("legal");
        let mut router = (SPEC.build)(&values, &Cluster::SMALL);
        let mut places = Vec::new();
        for (blocks, in_flight) in prompts {
            let (content, views) = (prompt(blocks), instances(in_flight));
            let choice = router.route(&request(&content), &cluster(&views), &mut dice(0));
            router.sent(&request(&content), choice.instance, Time::ZERO);
            places.push(choice.instance.0);
        }
        let mut firings = Firings::default();
        router.firings(&mut firings);
        (places, firings.into_list().into_iter().map(|(_, times)| times).collect())
    }

    #[test]
    fn a_prompt_follows_its_prefix_and_a_new_one_goes_where_the_least_is_remembered() {
        let calm = [0; 3];
        let prompts: [(&[u64], _); 4] =
            [(&[1, 2, 3], calm), (&[7], calm), (&[1, 2, 3, 4], calm), (&[8], calm)];
        assert_eq!(sent(&prompts), (vec![0, 1, 0, 2], vec![0, 1, 3]));
    }

    #[test]
    fn a_match_of_no_more_than_the_threshold_does_not_count() {
        // 1 of 4 blocks, then 2 of 6: 0.25 and 0.33 against 0.3.
        let prompts: [(&[u64], _); 3] =
            [(&[1, 2], [0; 3]), (&[1, 4, 5, 6], [0; 3]), (&[1, 2, 6, 7, 8, 9], [0; 3])];
        assert_eq!(sent(&prompts).0, [0, 1, 0]);
    }

    #[test]
    fn loads_out_of_balance_send_a_prompt_away_from_its_prefix() {
        let at = |loads| sent(&[(&[1, 2], [0; 3]), (&[1, 2], loads)]).0[1];
        assert_eq!(at([4, 1, 0]), 0, "4 more, not more than 4");
        assert_eq!(at([5, 1, 0]), 2, "5 more, and more than twice as many");
        assert_eq!(at([10, 5, 5]), 0, "5 more, but only twice as many");
    }
}
