//! `cache-first`: schedules the longest cached prefix first, up to a bound of patience.
//!
//! **Prefers** the request with the most prompt blocks cached: it costs the least to compute, and
//! what it needs may be dropped while it waits. A request that has waited for the patience cannot
//! be overtaken any more: those go before all others, in the order of joining the queue.
//!
//! **Reads** what of a prompt is cached at the engine now (`by=cached`; every waiting prompt is
//! looked up at every step), or what the router expected to be cached (`by=expected`, which travels
//! with the request and costs nothing; a router without an opinion expects nothing).
//!
//! **Parameters** `by`: `cached` or `expected`. `patience` (s): for how long a request can be
//! overtaken.
//!
//! **Origin** `SGLang`'s longest-prefix-match scheduling, which has no such bound.

use crate::prelude::*;

/// How `cache-first` introduces itself.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "cache-first",
    help: "Schedules the longest cached prefix first, with a limit on overtaking",
    params: &[
        Param::choice("by", &["cached", "expected"])
            .help("Use what is cached, or what the router expected to be"),
        Param::log("patience", 0.001..=86_400.0, 2.0, "s")
            .help("How long a request can be overtaken"),
    ],
    needs: |values| Needs { cached: values.choice("by") == "cached", ..Needs::NONE },
    ..Spec::built_by(|values, _| Box::new(CacheFirst::new(values)))
};

/// Longest cached prefix first.
#[derive(Clone, Copy, Debug)]
pub struct CacheFirst {
    by_expected: bool,
    patience: Span,
}

/// Before everybody who can still be overtaken.
const OUT_OF_PATIENCE: f64 = -1e10;
const _: () = assert!(OUT_OF_PATIENCE < -(u32::MAX as f64), "no prefix is as long");

impl CacheFirst {
    fn new(values: &Values) -> CacheFirst {
        CacheFirst {
            by_expected: values.choice("by") == "expected",
            patience: Span::from_secs_f64(values.float("patience")),
        }
    }
}

impl Order for CacheFirst {
    fn rank(&self, waiting: &WaitingView<'_>, _: f64, now: Time) -> f64 {
        if now.saturating_since(waiting.enqueued) >= self.patience {
            return OUT_OF_PATIENCE;
        }
        let blocks = if self.by_expected {
            waiting.intent.expected_hit_blocks.unwrap_or(0)
        } else {
            waiting.cached_blocks
        };
        0.0 - f64::from(blocks)
    }

    /// Patience runs out.
    fn varies(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Intent;
    use crate::view::examples::waiting;
    use std::cmp::Ordering;

    fn order(by: &'static str) -> CacheFirst {
        let given = [("by", by), ("patience", "2")];
        CacheFirst::new(&Values::parse(SPEC.params, given).expect("legal"))
    }

    /// The rank after `now` us of waiting, of a request with so many blocks cached and expected.
    fn rank(by: &'static str, now: u64, cached_blocks: u32, expected: Option<u32>) -> f64 {
        let intent = Intent { expected_hit_blocks: expected, because: "weighted" };
        let waiting = WaitingView { intent, cached_blocks, ..waiting(1) };
        order(by).rank(&waiting, 0.0, Time::from_micros(now))
    }

    #[test]
    fn a_longer_cached_prefix_ranks_first() {
        assert!(rank("cached", 0, 8, None) < rank("cached", 0, 7, Some(99)));
        assert!(rank("expected", 0, 0, Some(8)) < rank("expected", 0, 99, Some(7)));
        assert_eq!(rank("expected", 0, 99, None).total_cmp(&0.0), Ordering::Equal);
    }

    #[test]
    fn who_has_waited_for_the_patience_is_not_overtaken_any_more() {
        let (before, after) = (1_999_999, 2_000_000);
        for by in ["cached", "expected"] {
            let overtakes =
                |waited| rank(by, 0, u32::MAX, Some(u32::MAX)) < rank(by, waited, 0, None);
            assert!(overtakes(before) && !overtakes(after), "{by}");
            let alike = rank(by, after, 0, None).total_cmp(&rank(by, 9_000_000, 5, Some(5)));
            assert_eq!(alike, Ordering::Equal, "the order of joining decides");
        }
    }

    #[test]
    fn the_engine_looks_prompts_up_only_if_that_is_what_counts() {
        let needs = |by: &'static str| {
            (SPEC.needs)(&Values::parse(SPEC.params, [("by", by)]).expect("legal")).cached
        };
        assert!(needs("cached") && !needs("expected"));
        assert!(order("expected").varies());
    }
}
