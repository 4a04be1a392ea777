//! The link against exact arithmetic.

use crate::ratio::Ratio;
use blis_core::{Span, Time};
use blis_kv::{Link, LinkSpeed, TransferId};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;

/// A link and what is sent over it.
#[derive(Clone, Debug)]
struct Story {
    base: u64,
    /// Bandwidth in sixteenths of a block a microsecond, which a float has exactly.
    sixteenths: u32,
    /// When each transfer starts, in nanoseconds, and its blocks.
    starts: Vec<(u64, u32)>,
    /// When somebody looks, in nanoseconds, ascending.
    looks: Vec<u64>,
}

/// How often each of the interesting cases happened.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    shared: u64,
    idle_between: u64,
    ties: u64,
    overtaken: u64,
}

fn story() -> impl Strategy<Value = Story> {
    let gap = prop_oneof![1 => Just(0_u64), 2 => 1..5_000_u64, 1 => 5_000..200_000_u64];
    let blocks = prop_oneof![Just(8_u32), 1..=40_u32];
    let starts = prop::collection::vec((gap, blocks), 1..=9);
    let looks = prop::collection::vec(0..600_000_u64, 0..30);
    let base = prop_oneof![Just(0_u64), 1..20_000_u64];
    (base, 1..=160_u32, starts, looks).prop_map(|(base, sixteenths, gaps, mut looks)| {
        looks.sort_unstable();
        let mut now = 0;
        let start = |(gap, blocks)| {
            now += gap;
            (now, blocks)
        };
        let starts = gaps.into_iter().map(start).collect();
        Story { base, sixteenths, starts, looks }
    })
}

impl Story {
    fn link(&self) -> Link {
        let blocks_per_us = f64::from(self.sixteenths) / 16.0;
        Link::new(LinkSpeed { base: Span::from_nanos(self.base), blocks_per_us })
    }

    /// Blocks a nanosecond, exactly.
    fn bandwidth(&self) -> Ratio {
        Ratio::new(self.sixteenths.into(), 16_000)
    }

    /// When each transfer begins to move.
    fn moves(&self, transfer: usize) -> u64 {
        self.starts[transfer].0 + self.base
    }

    /// When each transfer is done, by fractions: those that move share alike, until one of them is
    /// done or another begins.
    fn exact(&self) -> Vec<Ratio> {
        let count = self.starts.len();
        let whole = |blocks: u32| Ratio::new(blocks.into(), 1);
        let mut left: Vec<Ratio> = self.starts.iter().map(|&(_, blocks)| whole(blocks)).collect();
        let mut done = vec![None; count];
        let mut now = Ratio::ZERO;
        while done.contains(&None) {
            let begun = |at: usize| Ratio::new(self.moves(at).into(), 1) <= now;
            let moving: Vec<usize> =
                (0..count).filter(|&at| done[at].is_none() && begun(at)).collect();
            let later = (0..count).map(|at| Ratio::new(self.moves(at).into(), 1));
            let next_start = later.filter(|&start| start > now).min();
            let share = self.bandwidth() / Ratio::new(moving.len().max(1) as i128, 1);
            let least = moving.iter().map(|&at| left[at]).min();
            let next_done = least.map(|least| now + least / share);
            let next = match (next_start, next_done) {
                (Some(start), Some(done)) => start.min(done),
                (start, done) => start.or(done).expect("something is left to do"),
            };
            for &at in &moving {
                left[at] = left[at] - (next - now) * share;
                if left[at] == Ratio::ZERO {
                    done[at] = Some(next);
                }
            }
            now = next;
        }
        done.into_iter().flatten().collect()
    }

    /// Who is done when, if nobody looks but to start a transfer.
    fn run(&self) -> Vec<(usize, u64)> {
        self.run_looking(&[], |_, _| ())
    }

    /// The same, if somebody looks now and then.
    fn run_looking(&self, looks: &[u64], mut look: impl FnMut(&Link, Time)) -> Vec<(usize, u64)> {
        let mut link = self.link();
        let mut done = Vec::new();
        let mut looks = looks.iter().copied().peekable();
        for (id, &(start, blocks)) in (0..).zip(&self.starts) {
            while let Some(at) = looks.next_if(|&at| at < start) {
                look(&link, Time::from_nanos(at));
                take(&mut link, Time::from_nanos(at), &mut done);
            }
            let now = Time::from_nanos(start);
            take(&mut link, now, &mut done);
            link.start(now, blocks, TransferId(id));
            assert_eq!(id + 1, (done.len() + link.transfers()) as u64, "landed and in flight");
        }
        for at in looks {
            look(&link, Time::from_nanos(at));
            take(&mut link, Time::from_nanos(at), &mut done);
        }
        take(&mut link, Time::NEVER, &mut done);
        assert!(link.is_idle() && link.transfers() == 0, "everything lands");
        assert_eq!(done.len(), self.starts.len(), "once");
        done
    }
}

fn take(link: &mut Link, now: Time, done: &mut Vec<(usize, u64)>) {
    while let Some((at, TransferId(id))) = link.take_done(now) {
        assert!(at <= now, "nothing is done before its time");
        done.push((usize::try_from(id).expect("a small id"), at.as_nanos()));
    }
}

fn for_all(cases: u32, test: impl Fn(&Story)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&story(), |story| {
        test(&story);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Each landing is rounded up to a whole nanosecond, in which the link moves nothing. So whatever
/// lands is never early; and it lacks at most what the link moves in as many nanoseconds as have
/// landed before, for which it may wait as many times longer as there are others to share with.
/// Floats may be wrong in the last digits.
#[test]
fn transfers_land_when_exact_fair_shares_say_but_for_the_rounding() {
    let seen = RefCell::new(Seen::default());
    for_all(1_000, |story| {
        let exact = story.exact();
        let found = story.run();
        let slack = Ratio::new(1, 100_000);
        for (before, &(id, at)) in (1..).zip(&found) {
            let late = Ratio::new(at.into(), 1) - exact[id];
            assert!(late + slack >= Ratio::ZERO, "transfer {id} lands at {at} before its time");
            let most = Ratio::new(before * found.len() as i128, 1) + slack;
            assert!(late <= most, "transfer {id} lands at {at}, later than {before} roundings");
        }
        assert!(found.is_sorted_by_key(|&(_, at)| at), "in the order of time");
        let seen = &mut *seen.borrow_mut();
        for (id, &end) in exact.iter().enumerate() {
            let others = (0..exact.len()).filter(|&other| other != id);
            let start = |at: usize| Ratio::new(story.moves(at).into(), 1);
            let meets = |&other: &usize| start(other) < end && start(id) < exact[other];
            seen.shared += u64::from(others.clone().any(|other| meets(&other)));
            seen.idle_between += u64::from(id > 0 && exact[..id].iter().all(|&e| e < start(id)));
            seen.ties += u64::from(exact[..id].contains(&end));
            seen.overtaken += u64::from(exact[..id].iter().any(|&earlier| earlier > end));
        }
    });
    let Seen { shared, idle_between, ties, overtaken } = seen.into_inner();
    for times in [shared, idle_between, ties, overtaken] {
        assert!(times >= 100, "{shared}, {idle_between}, {ties}, {overtaken}");
    }
}

/// In any stretch of time, what began to move and landed within it is no more than the bandwidth
/// allows; in particular from the start on.
#[test]
fn no_stretch_of_time_moves_more_than_the_bandwidth() {
    for_all(1_000, |story| {
        let found = story.run();
        for &(_, end) in &found {
            for first in 0..story.starts.len() {
                let begin = story.moves(first);
                let within = |&&(id, at): &&(usize, u64)| story.moves(id) >= begin && at <= end;
                let blocks: u32 =
                    found.iter().filter(within).map(|&(id, _)| story.starts[id].1).sum();
                let time = Ratio::new(i128::from(end) - i128::from(begin), 1);
                let room = time * story.bandwidth() + Ratio::new(1, 1_000_000);
                let blocks = Ratio::new(blocks.into(), 1);
                assert!(blocks == Ratio::ZERO || blocks <= room, "{begin}..{end}");
            }
        }
    });
}

#[test]
fn who_lands_when_does_not_depend_on_who_looks() {
    let looked = RefCell::new(0_u64);
    for_all(1_000, |story| {
        let expected = story.run();
        let all: Vec<u64> = (0..600_000).step_by(911).collect();
        for looks in [&story.looks, &all] {
            let found = story.run_looking(looks, |link, now| {
                *looked.borrow_mut() += u64::from(!link.is_idle());
                let _ = (link.next_done(), link.backlog(now));
            });
            assert_eq!(found, expected);
        }
    });
    assert!(looked.into_inner() >= 10_000, "looks at a link that is not idle");
}

#[test]
fn what_is_foretold_comes_true_if_nothing_more_starts() {
    for_all(1_000, |story| {
        let mut link = story.link();
        for (id, &(start, blocks)) in (0..).zip(&story.starts) {
            take(&mut link, Time::from_nanos(start), &mut Vec::new());
            link.start(Time::from_nanos(start), blocks, TransferId(id));
            let now = Time::from_nanos(start);
            let mut rest = Vec::new();
            take(&mut link.clone(), Time::NEVER, &mut rest);
            assert_eq!(link.next_done(), Some(Time::from_nanos(rest[0].1)));
            for &(id, at) in &rest {
                assert_eq!(link.done_at(TransferId(id as u64)), Time::from_nanos(at));
            }
            let (_, last) = rest[rest.len() - 1];
            assert_eq!(link.backlog(now), Time::from_nanos(last).saturating_since(now));
        }
    });
}

#[test]
fn a_transfer_that_has_the_link_to_itself_takes_exactly_what_is_computed_by_hand() {
    for blocks_per_us in [0.1, 0.3, 3.0, 7.0, 11.7, 0.000_123] {
        let speed = LinkSpeed { base: Span::from_micros(3), blocks_per_us };
        let mut link = Link::new(speed);
        let mut now = Time::from_nanos(1);
        for blocks in 1..500 {
            link.start(now, blocks, TransferId(blocks.into()));
            let (done, _) = link.take_done(Time::NEVER).expect("it is done some time");
            let case = format!("{blocks} blocks at {blocks_per_us} a microsecond");
            assert_eq!(done, now + speed.alone(blocks), "{case}");
            now = done;
        }
    }
}
