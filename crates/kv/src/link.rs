//! A link between two memories: transfers that share its bandwidth fairly.
//!
//! A transfer first waits for the link's base latency, which costs no bandwidth, and then moves its
//! blocks at an equal share of the bandwidth with all others that are moving. Alone it takes
//! `base + blocks / bandwidth`; a burst queues.
//!
//! Progress is kept as *work*: what one transfer that is always there would have moved so far. A
//! transfer that starts to move at work w is done at work w + blocks. The work is only written down
//! when a transfer starts to move or is done, so that it does not matter how often anybody looks.

use blis_core::math::float;
use blis_core::{Span, Time};

/// How fast a link is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpeed {
    /// Before the first block moves.
    pub base: Span,
    /// Blocks moved in a microsecond (> 0; may be infinite).
    pub blocks_per_us: f64,
}

impl LinkSpeed {
    /// How long `blocks` blocks take that have the link to themselves.
    pub fn alone(&self, blocks: u32) -> Span {
        self.base + self.moving(f64::from(blocks))
    }

    /// How long so many blocks move at the whole bandwidth.
    fn moving(&self, blocks: f64) -> Span {
        up(blocks * 1e3 / self.blocks_per_us)
    }
}

/// A number that the owner of a link gives a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferId(pub u64);

/// A link and the transfers that are on it.
#[derive(Clone, Debug)]
pub struct Link {
    speed: LinkSpeed,
    /// Transfers within their base latency: when it ends, in that order.
    announced: Vec<(Time, TransferId, u32)>,
    /// Transfers that move: the work at which they are done, ascending.
    moving: Vec<(f64, TransferId)>,
    /// The work as of `as_of`.
    work: f64,
    as_of: Time,
}

impl Link {
    /// A link without transfers.
    pub fn new(speed: LinkSpeed) -> Link {
        let (announced, moving) = (Vec::new(), Vec::new());
        Link { speed, announced, moving, work: 0.0, as_of: Time::ZERO }
    }

    /// Whether no transfer is on it.
    pub fn is_idle(&self) -> bool {
        self.announced.is_empty() && self.moving.is_empty()
    }

    /// How many transfers are on it.
    pub fn transfers(&self) -> usize {
        self.announced.len() + self.moving.len()
    }

    /// How many transfers have begun before `at` and are not done before it. A transfer may have
    /// been announced for later.
    pub fn transfers_at(&self, at: Time) -> usize {
        let Some(mut link) = self.clone_if_needed() else { return 0 };
        // What is done at `at` itself is still on its way just before.
        while at > Time::ZERO && link.take_done(at - Span::from_nanos(1)).is_some() {}
        let begun = |&&(moves, ..): &&(Time, TransferId, u32)| moves < at + self.speed.base;
        link.announced.iter().filter(begun).count() + link.moving.len()
    }

    /// Starts a transfer of `blocks` blocks (> 0) at `at`, which nobody has looked beyond.
    ///
    /// # Panics
    /// If somebody has.
    pub fn start(&mut self, at: Time, blocks: u32, id: TransferId) {
        assert!(at + self.speed.base >= self.as_of, "a transfer starts in the past");
        self.announced.push((at + self.speed.base, id, blocks));
    }

    /// Starts a transfer at `at`, or when all others are done.
    pub fn start_in_line(&mut self, at: Time, blocks: u32, id: TransferId) {
        self.start(at + self.backlog(at), blocks, id);
    }

    /// When the first transfer is done, if no other starts.
    pub fn next_done(&self) -> Option<Time> {
        let mut link = self.clone_if_needed()?;
        link.next_event(Time::NEVER).map(|(at, _)| at)
    }

    /// The next transfer that is done at `now` or before, and when.
    pub fn take_done(&mut self, now: Time) -> Option<(Time, TransferId)> {
        if self.is_idle() {
            return None;
        }
        self.next_event(now)
    }

    /// When `id`, which must be on the link, is done, if no other starts.
    ///
    /// # Panics
    /// If it is not.
    pub fn done_at(&self, id: TransferId) -> Time {
        let mut link = self.clone();
        loop {
            let (at, done) = link.next_event(Time::NEVER).expect("the transfer is on the link");
            if done == id {
                return at;
            }
        }
    }

    /// How long it takes from `now` until nothing is left to move, if nothing more comes.
    pub fn backlog(&self, now: Time) -> Span {
        let mut link = self.clone();
        let mut last = now;
        while let Some((at, _)) = link.take_done(Time::NEVER) {
            last = at;
        }
        last.saturating_since(now)
    }

    fn clone_if_needed(&self) -> Option<Link> {
        if self.is_idle() { None } else { Some(self.clone()) }
    }

    /// Goes on until a transfer is done, but not beyond `until`.
    fn next_event(&mut self, until: Time) -> Option<(Time, TransferId)> {
        loop {
            let starts = self.announced.iter().map(|&(at, ..)| at).min();
            let done = self.moving.first().map(|&(work, id)| (self.time_of(work), work, id));
            match (starts, done) {
                // One that is done as another starts to move is done first: it never shared.
                (Some(at), done) if done.is_none_or(|(done, ..)| at < done) => {
                    if at > until {
                        return None;
                    }
                    self.begin_moving(at);
                }
                (_, Some((at, work, id))) => {
                    if at > until {
                        return None;
                    }
                    self.moving.remove(0);
                    // What nobody measures from can start anew, and small numbers are exact.
                    let work = if self.moving.is_empty() { 0.0 } else { work };
                    (self.work, self.as_of) = (work, at);
                    return Some((at, id));
                }
                (_, None) => return None,
            }
        }
    }

    /// The transfers whose base latency ends at `at` start to move.
    fn begin_moving(&mut self, at: Time) {
        self.work = self.work_at(at);
        self.as_of = at;
        let mut starting = Vec::new();
        self.announced.retain(|&(start, id, blocks)| {
            if start == at {
                starting.push((f64::from(blocks), id));
            }
            start != at
        });
        for (blocks, id) in starting {
            let end = self.work + blocks;
            let place = self.moving.partition_point(|&(other, _)| other <= end);
            self.moving.insert(place, (end, id));
        }
    }

    fn work_at(&self, at: Time) -> f64 {
        if self.moving.is_empty() {
            return self.work;
        }
        let nanos = float(at.saturating_since(self.as_of).as_nanos());
        let moved = nanos * self.speed.blocks_per_us / 1e3 / float(self.moving.len() as u64);
        // Rounding up to whole nanoseconds must not carry the work past the next end.
        (self.work + moved).min(self.moving[0].0)
    }

    /// When the work, at the present number of transfers, reaches `work`.
    fn time_of(&self, work: f64) -> Time {
        let blocks = (work - self.work) * float(self.moving.len() as u64);
        self.as_of + self.speed.moving(blocks)
    }
}

/// Nanoseconds as a span, rounded up: what is moved in part is not there.
fn up(nanos: f64) -> Span {
    Span::from_nanos_f64(nanos.ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    /// 100 us, then 2 blocks a us.
    fn link() -> Link {
        Link::new(LinkSpeed { base: Span::from_micros(100), blocks_per_us: 2.0 })
    }

    fn run(link: &mut Link, starts: &[(u64, u32)]) -> Vec<(u64, Time)> {
        let mut done = Vec::new();
        for (id, &(start, blocks)) in (0..).zip(starts) {
            while let Some((when, TransferId(id))) = link.take_done(at(start)) {
                done.push((id, when));
            }
            link.start(at(start), blocks, TransferId(id));
        }
        while let Some((when, TransferId(id))) = link.take_done(Time::NEVER) {
            done.push((id, when));
        }
        done
    }

    #[test]
    fn a_transfer_alone_takes_the_base_and_its_blocks() {
        assert_eq!(run(&mut link(), &[(1_000, 40)]), [(0, at(1_120))]);
        assert_eq!(link().speed.alone(40), Span::from_micros(120));
    }

    #[test]
    fn transfers_that_overlap_share_the_bandwidth() {
        // Alone from 100 to 110 (20 blocks moved), both to 130 (20 each), then the second alone.
        let done = run(&mut link(), &[(0, 40), (10, 60)]);
        assert_eq!(done, [(0, at(130)), (1, at(150))]);
    }

    #[test]
    fn equal_transfers_at_once_take_as_long_as_all_their_blocks() {
        let done = run(&mut link(), &[(0, 40), (0, 40), (0, 40)]);
        assert_eq!(done, [(0, at(160)), (1, at(160)), (2, at(160))]);
    }

    #[test]
    fn the_base_latency_costs_no_bandwidth() {
        // The second waits for its base latency while the first moves alone, from 100 to 120.
        assert_eq!(run(&mut link(), &[(0, 40), (20, 10)]), [(0, at(120)), (1, at(125))]);
    }

    #[test]
    fn looking_changes_nothing() {
        let starts = [(0, 37), (3, 11), (110, 5), (111, 23), (140, 1)];
        let expected = run(&mut link(), &starts);
        let mut looked = link();
        let mut done = Vec::new();
        let mut next = 0;
        for nanos in (0..400_000).step_by(37) {
            let now = Time::from_nanos(nanos);
            while next < starts.len() && at(starts[next].0) <= now {
                while let Some((when, TransferId(id))) = looked.take_done(at(starts[next].0)) {
                    done.push((id, when));
                }
                looked.start(at(starts[next].0), starts[next].1, TransferId(next as u64));
                next += 1;
            }
            let _ = (looked.next_done(), looked.backlog(now));
            while let Some((when, TransferId(id))) = looked.take_done(now) {
                done.push((id, when));
            }
        }
        assert_eq!(done, expected);
    }

    #[test]
    fn the_link_is_never_faster_than_its_bandwidth_and_never_idles_with_work() {
        // All start within the base latency of the first, so it moves blocks without a break.
        let starts: Vec<(u64, u32)> =
            (0..50).map(|i| (i, 10 + u32::try_from(i).unwrap())).collect();
        let blocks: u32 = starts.iter().map(|&(_, blocks)| blocks).sum();
        let last = run(&mut link(), &starts).last().map(|&(_, when)| when).expect("all are done");
        let exact = 100.0 + f64::from(blocks) / 2.0;
        let found = last.as_micros_f64();
        assert!(found >= exact && found < exact + 0.2, "{found} us, not {exact}");
    }

    #[test]
    fn an_infinite_bandwidth_without_base_is_free() {
        let mut link = Link::new(LinkSpeed { base: Span::ZERO, blocks_per_us: f64::INFINITY });
        assert_eq!(run(&mut link, &[(7, 1_000), (7, 5)]), [(0, at(7)), (1, at(7))]);
    }

    #[test]
    fn a_transfer_is_on_the_link_from_after_it_begins_until_it_is_done() {
        let mut link = link();
        link.start(at(10), 40, TransferId(1));
        link.start(at(50), 40, TransferId(2));
        // The first moves alone from 110 to 130 and is done as it begins to share; both have moved
        // their blocks at 130 and 170.
        let found: Vec<usize> = [(10, 0), (10, 1), (50, 0), (50, 1), (130, 0), (130, 1), (170, 0)]
            .map(|(micros, nanos)| at(micros) + Span::from_nanos(nanos))
            .map(|instant| link.transfers_at(instant))
            .to_vec();
        assert_eq!(found, [0, 1, 1, 2, 2, 1, 1]);
        assert_eq!((link.transfers_at(at(171)), link.transfers()), (0, 2), "looking takes nothing");
    }

    #[test]
    fn the_end_of_one_transfer_is_known_while_others_move() {
        let mut link = link();
        link.start(at(0), 40, TransferId(1));
        link.start(at(0), 80, TransferId(2));
        assert_eq!(link.done_at(TransferId(1)), at(140));
        assert_eq!(link.done_at(TransferId(2)), at(160));
        assert_eq!(
            (link.next_done(), link.backlog(at(150))),
            (Some(at(140)), Span::from_micros(10))
        );
    }
}
