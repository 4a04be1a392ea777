//! `burst-throttle`: sheds the classes that may be shed while a burst of arrivals lasts.
//!
//! **Prefers** important classes during bursts, and before queues show them: it compares the rate
//! of arrivals lately with the usual one. A burst begins when the one is `start` times the other,
//! and is over below `stop` times. Nothing is turned away while the cluster has slack, burst or
//! not.
//!
//! **Reads** when requests come, the requests in flight to each instance (live), and the request's
//! service class.
//!
//! **Parameters** `short` (s) and `long` (s): how far back "lately" and "usual" reach; arrivals
//! fade exponentially, so that two numbers are all that is kept. `short` should hold several
//! arrivals, `long` several bursts. `start` and `stop`: when a burst begins and ends, as multiples
//! of the usual rate. `slack` (requests per instance): below so many in flight nobody is turned
//! away. And one per class, named like it: the share of its requests that is turned away during a
//! burst.
//!
//! **Origin** ours, for arrivals that cluster (gamma gaps with a coefficient of variation of 2 to
//! 3.5): queues and memory tell of a burst when it is in them already.

use crate::classes::{Shares, share};
use crate::prelude::*;

/// How `burst-throttle` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "burst-throttle",
    help: "Sheds low-priority classes during bursts of arrivals",
    params: &[
        Param::log("short", 0.001..=3_600.0, 0.5, "s")
            .help("Time constant of the current arrival rate"),
        Param::log("long", 0.01..=86_400.0, 30.0, "s")
            .help("Time constant of the usual arrival rate"),
        Param::log("start", 1.0..=100.0, 1.8, "times the usual rate")
            .help("A burst starts above this multiple of the usual rate"),
        Param::log("stop", 0.1..=100.0, 1.2, "times the usual rate")
            .help("A burst ends below this multiple of the usual rate"),
        Param::float("slack", 0.0..=100_000.0, 8.0, "requests per instance")
            .help("Nothing is rejected while fewer requests are in flight"),
        share(SloClass::Critical, 0.0, "Share of critical requests rejected in a burst"),
        share(SloClass::Standard, 0.0, "Share of standard requests rejected in a burst"),
        share(SloClass::Sheddable, 1.0, "Share of sheddable requests rejected in a burst"),
        share(SloClass::Batch, 1.0, "Share of batch requests rejected in a burst"),
        share(SloClass::Background, 1.0, "Share of background requests rejected in a burst"),
    ],
    ..Spec::built_by(|values, _| Box::new(BurstThrottle::new(values)))
};

/// A gate that watches arrivals.
#[derive(Clone, Copy, Debug)]
pub struct BurstThrottle {
    lately: FadingRate,
    usual: FadingRate,
    start: f64,
    stop: f64,
    slack: f64,
    shares: Shares,
    in_burst: bool,
    bursts: u64,
}

impl BurstThrottle {
    fn new(values: &Values) -> BurstThrottle {
        BurstThrottle {
            lately: FadingRate::new(values.float("short")),
            usual: FadingRate::new(values.float("long")),
            start: values.float("start"),
            stop: values.float("stop"),
            slack: values.float("slack"),
            shares: Shares::new(values),
            in_burst: false,
            bursts: 0,
        }
    }

    /// Takes note of an arrival, and of whether a burst has begun or ended.
    fn watch(&mut self, now: Time) {
        let times = self.lately.arrive(now) / self.usual.arrive(now);
        if self.in_burst {
            self.in_burst = times >= self.stop;
        } else if times >= self.start {
            self.in_burst = true;
            self.bursts += 1;
        }
    }
}

impl Admission for BurstThrottle {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Verdict {
        self.watch(cluster.now);
        let in_flight: u64 = cluster.instances.iter().map(|view| u64::from(view.in_flight)).sum();
        let instances = math::float(cluster.instances.len() as u64);
        let loaded = math::float(in_flight) >= self.slack * instances;
        if self.in_burst && loaded && self.shares.hit(request.class, dice) {
            return Verdict::Reject("burst-throttle");
        }
        Verdict::Admit
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add("burst-throttle", "bursts", self.bursts);
    }
}

/// A rate of arrivals in which older ones count less.
#[derive(Clone, Copy, Debug)]
struct FadingRate {
    /// After so many seconds an arrival counts 1/e.
    memory: f64,
    count: f64,
    first: Option<Time>,
    last: Time,
}

impl FadingRate {
    const fn new(memory: f64) -> FadingRate {
        FadingRate { memory, count: 0.0, first: None, last: Time::ZERO }
    }

    /// Takes note of an arrival; the rate with it, per second. Before time has passed since the
    /// first it is not a number, which no burst begins or goes on with.
    fn arrive(&mut self, now: Time) -> f64 {
        let first = *self.first.get_or_insert(now);
        let fade =
            |since: Time| math::exp(-(now.saturating_since(since).as_secs_f64() / self.memory));
        self.count = self.count * fade(self.last) + 1.0;
        self.last = now;
        // Nothing is known from before the first arrival: without this share of the memory, rates
        // would start at 0, the long one would lag, and any traffic would begin with a burst.
        let known = 1.0 - fade(first);
        if known > 0.0 { self.count / (self.memory * known) } else { f64::NAN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::InstanceView;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};
    use blis_core::random::Purpose;

    fn throttle() -> BurstThrottle {
        BurstThrottle::new(&Values::defaults(SPEC.params))
    }

    fn admits(throttle: &mut BurstThrottle, class: SloClass, micros: u64, in_flight: u32) -> bool {
        let views = [InstanceView { in_flight, ..instances(&[0])[0] }];
        let cluster = ClusterView { now: Time::from_micros(micros), ..cluster(&views) };
        let request = RequestView { class, ..request(&NOTHING) };
        throttle.admit(&request, &cluster, &mut dice(0)) == Verdict::Admit
    }

    /// Lets 60 s of 20 arrivals a second pass, all of which must be let in.
    fn after_a_usual_minute() -> BurstThrottle {
        let mut throttle = throttle();
        for arrival in 0..1_200 {
            let at = arrival * 50_000;
            assert!(admits(&mut throttle, SloClass::Sheddable, at, 99), "at {at} us");
        }
        throttle
    }

    #[test]
    fn low_classes_are_shed_from_the_start_of_a_burst_to_its_end() {
        let mut throttle = after_a_usual_minute();
        let shed = |throttle: &mut BurstThrottle, class, from: u64, gap: u64, many: u64| {
            let at = |arrival| from + arrival * gap;
            (0..many).filter(|&k| !admits(throttle, class, at(k), 99)).count()
        };
        let burst = shed(&mut throttle, SloClass::Sheddable, 60_000_000, 5_000, 200);
        assert!((120..195).contains(&burst), "{burst} of 200 in a burst of ten times the rate");
        assert_eq!(shed(&mut throttle, SloClass::Critical, 61_000_000, 5_000, 50), 0);
        let after = shed(&mut throttle, SloClass::Sheddable, 61_250_000, 50_000, 200);
        assert!((1..100).contains(&after), "{after} of 200 until the burst has faded");
        assert!(admits(&mut throttle, SloClass::Sheddable, 71_300_000, 99));
        let mut firings = Firings::default();
        throttle.firings(&mut firings);
        assert_eq!(firings.into_list(), [("burst-throttle.bursts".to_owned(), 1)]);
    }

    #[test]
    fn a_cluster_with_slack_takes_bursts() {
        let mut throttle = after_a_usual_minute();
        let at = |arrival: u64| 60_000_000 + arrival * 1_000;
        let mut let_in = |k| admits(&mut throttle, SloClass::Batch, at(k), 7);
        assert!((0..200).all(&mut let_in));
        assert!(!admits(&mut throttle, SloClass::Batch, at(200), 8));
    }

    #[test]
    fn clustered_arrivals_are_throttled_and_steady_ones_are_not() {
        // Gamma gaps of a mean of 50 ms: a shape of 1/cv^2.
        let shed_at = |cv: f64| {
            let mut throttle = throttle();
            let (mut now, shape) = (0.0, 1.0 / (cv * cv));
            let mut refused = |key: u64| {
                let gap = Dice::new(7, Purpose::Arrival, key).gamma(shape) / shape;
                now += gap * 50_000.0;
                let at = math::count(now);
                !admits(&mut throttle, SloClass::Sheddable, at, 99)
            };
            (0..4_000).filter(|&key| refused(key)).count()
        };
        let counts = [0.3, 2.0, 3.5].map(shed_at);
        assert!(counts[0] == 0 && counts[1] > 400 && counts[2] > counts[1], "{counts:?}");
    }
}
