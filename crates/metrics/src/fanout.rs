//! One listener that tells several: the simulator knows one listener, a run may have many.

use crate::fact::{Fact, Listener};
use blis_core::Time;

/// Passes every fact to each of its listeners, in the order given.
pub struct Fanout<'a> {
    listeners: Vec<&'a mut dyn Listener>,
}

impl<'a> Fanout<'a> {
    /// A listener that tells all of `listeners`; an empty list is a listener that ignores all.
    pub fn new(listeners: Vec<&'a mut dyn Listener>) -> Fanout<'a> {
        Fanout { listeners }
    }

    /// Adds a listener, to be told after those already there.
    pub fn push(&mut self, listener: &'a mut dyn Listener) {
        self.listeners.push(listener);
    }
}

impl Listener for Fanout<'_> {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        for listener in &mut self.listeners {
            listener.hear(at, fact);
        }
    }

    fn wants_details(&self) -> bool {
        self.listeners.iter().any(|listener| listener.wants_details())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::RequestId;

    struct Count(u32);

    impl Listener for Count {
        fn hear(&mut self, _: Time, _: &Fact<'_>) {
            self.0 += 1;
        }
    }

    #[test]
    fn every_listener_hears_every_fact() {
        let (mut first, mut second) = (Count(0), Count(0));
        let mut fanout = Fanout::new(vec![&mut first]);
        fanout.push(&mut second);
        for _ in 0..3 {
            fanout.hear(Time::ZERO, &Fact::Admitted { request: RequestId(0) });
        }
        assert_eq!((first.0, second.0), (3, 3));
    }
}
