//! `belady`: the cached blocks that are needed again last. An oracle, for bounds only.
//!
//! **Prefers** to drop what no request to come begins with, then what is needed again furthest in
//! the future. The host cuts runs where the next use of their blocks changes, so each block is
//! judged by itself: on one instance that serves one request at a time in order of arrival, no
//! evictor finds more cached blocks.
//!
//! **Reads** the future: which request, in order of arrival, begins with a run next. So it takes a
//! workload whose requests are known beforehand. It is not a strict bound where requests overlap
//! (finding more ends a request sooner, which changes what others find), are scheduled in another
//! order than they arrive in, or are preempted; nor with several instances, because the next use is
//! the cluster's, wherever it will be routed to; nor of admission, because whoever is turned away
//! was expected until then.
//!
//! **Parameters** none.
//!
//! **Origin** L. A. Belady, "A study of replacement algorithms for a virtual-storage computer",
//! IBM Systems Journal 5(2), 1966.

use crate::prelude::*;
use blis_core::math::float;

/// How `belady` introduces itself.
pub const SPEC: Spec<dyn Evict> = Spec {
    name: "belady",
    help: "Evicts the blocks whose next use is furthest away (Belady); an oracle, for bounds only",
    needs: |_| Needs { future: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Box::new(Belady))
};

/// A run is worth the more the sooner it is needed. Whoever needs a run needs what it continues, so
/// a prefix is needed no later.
#[derive(Clone, Copy, Debug)]
pub struct Belady;

impl Evict for Belady {
    fn worth(&self, ended: &UseView) -> f64 {
        // Neighbouring quotients differ while there are fewer than 2^52 requests.
        ended.next_use.map_or(0.0, |request| 1.0 / (1.0 + float(request.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::used;
    use blis_core::RequestId;

    fn worth(next_use: Option<u64>) -> f64 {
        Belady.worth(&UseView { next_use: next_use.map(RequestId), ..used() })
    }

    #[test]
    fn what_is_needed_sooner_is_worth_more_and_what_is_not_needed_again_nothing() {
        let worths = [None, Some(1 << 40), Some((1 << 40) - 1), Some(8), Some(7), Some(0)];
        assert!(worths.map(worth).is_sorted_by(|less, more| less < more));
        assert_eq!(worth(None).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn nothing_but_the_next_use_counts() {
        let often = UseView { uses: 99, worth: 7.0, preempted: true, ..used() };
        assert_eq!(Belady.worth(&often).to_bits(), worth(None).to_bits());
    }
}
