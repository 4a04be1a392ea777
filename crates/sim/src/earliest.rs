//! A time for each instance, and which is the earliest.

use blis_core::Time;

/// A time for each of a fixed number of instances.
#[derive(Debug)]
pub(crate) struct Earliest {
    /// A complete binary tree: node `n` is the earlier of its children `2n` and `2n + 1`; leaves
    /// are the last `width` nodes.
    times: Vec<Time>,
    width: usize,
}

impl Earliest {
    /// All of them `NEVER`.
    pub(crate) fn new(count: usize) -> Earliest {
        let width = count.next_power_of_two();
        Earliest { times: vec![Time::NEVER; 2 * width], width }
    }

    pub(crate) fn set(&mut self, index: usize, at: Time) {
        let mut node = self.width + index;
        self.times[node] = at;
        while node > 1 {
            node /= 2;
            let earlier = self.times[2 * node].min(self.times[2 * node + 1]);
            if self.times[node] == earlier {
                return;
            }
            self.times[node] = earlier;
        }
    }

    pub(crate) fn get(&self, index: usize) -> Time {
        self.times[self.width + index]
    }

    /// The earliest time.
    pub(crate) fn time(&self) -> Time {
        self.times[1]
    }

    /// Whose it is; of several, the first.
    pub(crate) fn index(&self) -> usize {
        let mut node = 1;
        while node < self.width {
            node = 2 * node + usize::from(self.times[2 * node] != self.times[1]);
        }
        node - self.width
    }
}
