//! Which client's next arrival comes first.
//!
//! [`crate::MixSource`] asks once a request. Up to 16 clients a scan of one cache line or two beats
//! a heap; cohorts of many thousands need the heap. Both give the same order: by time, then by
//! lowest client.

use blis_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Above this many clients a heap is used.
const SCAN_AT_MOST: usize = 16;

/// The next arrival of every client.
#[derive(Clone, Debug)]
pub(crate) enum Merge {
    /// Scanned; the index is the client.
    Few(Vec<Time>),
    /// Kept as a heap of (time, client).
    Many(BinaryHeap<Reverse<(Time, usize)>>),
}

impl Merge {
    /// The merge of clients whose first arrivals are `first` (not empty).
    pub(crate) fn new(first: Vec<Time>) -> Merge {
        if first.len() <= SCAN_AT_MOST { Merge::Few(first) } else { Merge::heap(first) }
    }

    fn heap(first: Vec<Time>) -> Merge {
        let by_time = first.into_iter().enumerate().map(|(client, time)| Reverse((time, client)));
        Merge::Many(by_time.collect())
    }

    /// The earliest arrival and its client, the lowest one among equals.
    pub(crate) fn earliest(&self) -> (Time, usize) {
        match self {
            Merge::Few(times) => {
                let mut best = 0;
                for (client, time) in times.iter().enumerate() {
                    if *time < times[best] {
                        best = client;
                    }
                }
                (times[best], best)
            }
            Merge::Many(heap) => heap.peek().expect("a mix has clients").0,
        }
    }

    /// Replaces the earliest arrival, which is that of `client`, by this client's next one.
    pub(crate) fn replace_earliest(&mut self, client: usize, next: Time) {
        match self {
            Merge::Few(times) => times[client] = next,
            Merge::Many(heap) => {
                *heap.peek_mut().expect("a mix has clients") = Reverse((next, client));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    fn order(mut merge: Merge) -> Vec<(Time, usize)> {
        let mut dice = Dice::new(5, Purpose::Arrival, 0);
        let mut taken = Vec::new();
        for _ in 0..500 {
            let (time, client) = merge.earliest();
            taken.push((time, client));
            // Steps of 0 to 3 ns make many ties.
            let step = u64::try_from(dice.below(4)).unwrap();
            merge.replace_earliest(client, Time::from_nanos(time.as_nanos() + step));
        }
        taken
    }

    #[test]
    fn scanning_and_the_heap_agree_also_on_ties() {
        let first: Vec<Time> = (0..9).map(|i| Time::from_nanos(i % 4)).collect();
        assert_eq!(order(Merge::Few(first.clone())), order(Merge::heap(first)));
    }

    #[test]
    fn among_equals_the_lowest_client_comes_first() {
        for merge in [Merge::Few(vec![Time::ZERO; 3]), Merge::heap(vec![Time::ZERO; 3])] {
            assert_eq!(merge.earliest(), (Time::ZERO, 0));
        }
    }
}
