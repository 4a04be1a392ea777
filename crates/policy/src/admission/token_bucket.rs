//! `token-bucket`: a limit on the rate of prompt tokens, with room for bursts.
//!
//! **Prefers** requests that come while the bucket holds as many tokens as their prompt; short
//! prompts therefore pass longer than long ones.
//!
//! **Reads** the request's prompt length. No signals of instances.
//!
//! **Parameters** `capacity` (tokens): the largest burst, and the level at the start.
//! `refill-rate` (tokens/s): the prompt tokens let in per second in the long run.
//!
//! **Origin** the classic token bucket; the cost of a request is its prompt, as gateways for LLMs
//! count it.

use crate::prelude::*;

/// How `token-bucket` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "token-bucket",
    help: "Admits a request if a token bucket holds enough tokens for its prompt",
    params: &[
        Param::log("capacity", 1.0..=1e9, 10_000.0, "tokens")
            .help("Capacity and initial level of the bucket"),
        Param::log("refill-rate", 0.001..=1e9, 1_000.0, "tokens/s")
            .help("Refill rate: prompt tokens admitted per second in the long run"),
    ],
    ..Spec::built_by(|values, _| Box::new(TokenBucket::new(values)))
};

/// The level is kept in millionths of a token times nanoseconds per second, so that a nanosecond's
/// refill is a whole number and the level does not depend on how often it is looked at.
const UNITS_PER_TOKEN: u128 = MILLIONTHS * 1_000_000_000;
const MILLIONTHS: u128 = 1_000_000;

/// A bucket of prompt tokens.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    capacity: u128,
    level: u128,
    /// Units per nanosecond: millionths of a token per second.
    refill: u128,
    filled: Time,
}

impl TokenBucket {
    fn new(values: &Values) -> TokenBucket {
        let millionths = |x: f64| u128::from(math::count(x * 1e6));
        let capacity = millionths(values.float("capacity")) * (UNITS_PER_TOKEN / MILLIONTHS);
        let refill = millionths(values.float("refill-rate"));
        TokenBucket { capacity, level: capacity, refill, filled: Time::ZERO }
    }

    fn fill(&mut self, now: Time) {
        let elapsed = u128::from(now.saturating_since(self.filled).as_nanos());
        // At most 2^64 ns times 10^15 units: far below 2^128.
        self.level = self.capacity.min(self.level + elapsed * self.refill);
        self.filled = self.filled.max(now);
    }
}

impl Admission for TokenBucket {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        self.fill(cluster.now);
        let cost = u128::from(request.input_tokens) * UNITS_PER_TOKEN;
        if cost > self.level {
            return Verdict::Reject("token-bucket");
        }
        self.level -= cost;
        Verdict::Admit
    }

    fn withdrawn(&mut self, request: &RequestView<'_>, now: Time) {
        self.fill(now);
        let cost = u128::from(request.input_tokens) * UNITS_PER_TOKEN;
        self.level = self.capacity.min(self.level + cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};
    use proptest::prelude::*;

    fn bucket(capacity: &'static str, refill_rate: &'static str) -> TokenBucket {
        let given = [("capacity", capacity), ("refill-rate", refill_rate)];
        TokenBucket::new(&Values::parse(SPEC.params, given).expect("legal"))
    }

    fn admits(bucket: &mut TokenBucket, tokens: u32, micros: u64) -> bool {
        let request = RequestView { input_tokens: tokens, ..request(&NOTHING) };
        let views = instances(&[0]);
        let cluster = ClusterView { now: Time::from_micros(micros), ..cluster(&views) };
        bucket.admit(&request, &cluster, &mut dice(0)) == Verdict::Admit
    }

    #[test]
    fn the_bucket_starts_full_and_refills_at_its_rate() {
        let mut bucket = bucket("100", "1000");
        assert!(admits(&mut bucket, 100, 0));
        assert!(!admits(&mut bucket, 1, 999), "a token takes a millisecond");
        assert!(admits(&mut bucket, 1, 1_000));
        assert!(!admits(&mut bucket, 101, 60_000_000), "it never holds more than its capacity");
        assert!(admits(&mut bucket, 100, 60_000_000));
    }

    #[test]
    fn a_rejected_request_costs_nothing() {
        let mut bucket = bucket("10", "1");
        assert!(!admits(&mut bucket, 11, 0));
        assert!(admits(&mut bucket, 10, 0));
    }

    #[test]
    fn who_is_turned_away_by_others_gets_its_tokens_back() {
        let mut bucket = bucket("10", "1");
        assert!(admits(&mut bucket, 10, 0));
        assert!(!admits(&mut bucket, 10, 0));
        bucket.withdrawn(&RequestView { input_tokens: 10, ..request(&NOTHING) }, Time::ZERO);
        assert!(admits(&mut bucket, 10, 0));
    }

    proptest! {
        #[test]
        fn looking_often_does_not_change_the_level(
            gaps in prop::collection::vec(0_u64..5_000, 1..99),
        ) {
            let mut often = bucket("1000", "0.7");
            let mut once = often.clone();
            (often.level, once.level) = (0, 0);
            let mut now = 0;
            for gap in gaps {
                now += gap;
                often.fill(Time::from_nanos(now));
            }
            once.fill(Time::from_nanos(now));
            prop_assert_eq!(often.level, once.level);
        }
    }
}
