//! Clients that do not take a rejection for an answer, nor silence.
//!
//! Without them, shedding looks free: whoever is turned away is gone. A client that retries comes
//! back after a wait that doubles each time, with the same request; each attempt is a request of
//! its own in reports. A client that lost its patience waits the same way: it does not tell a
//! server that refuses from one that is silent. Rounds of closed-loop sessions say what becomes of
//! both themselves (`OnRejection`).

use crate::error::{SpecError, ensure, within_ten_years};
use blis_core::{Ending, Span};

/// How a client comes back when it was turned away or has given up waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often it sends a request again (1..=[`MAX_RETRIES`]).
    pub at_most: u32,
    /// How long it waits before the first time; twice as long before each further time.
    pub backoff: Span,
}

/// Most retries of a request; the wait has doubled beyond ten years long before.
pub const MAX_RETRIES: u32 = 1_000;

impl Retry {
    /// Checks every number; the error's field is relative to the retry, e.g. `backoff`.
    ///
    /// # Errors
    /// If a number is out of its range.
    pub fn validate(&self) -> Result<(), SpecError> {
        let legal = || format!("a whole number from 1 to {MAX_RETRIES}");
        ensure((1..=MAX_RETRIES).contains(&self.at_most), "at_most", self.at_most, legal)?;
        within_ten_years("backoff", self.backoff)
    }

    /// How long the client waits after attempt number `attempt` (from 0) came to this end, before
    /// it sends the request again; `None`: it does not.
    pub(crate) fn after(self, ending: Ending, attempt: u32) -> Option<Span> {
        let failed = matches!(ending, Ending::Rejected | Ending::Abandoned);
        let again = failed && attempt < self.at_most;
        let doubled = 1_u64.checked_shl(attempt).unwrap_or(u64::MAX);
        let nanos = self.backoff.as_nanos().saturating_mul(doubled);
        again.then(|| Span::from_nanos(nanos).min(Span::LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_the_client_gives_up() {
        let retry = Retry { at_most: 3, backoff: Span::from_micros(5) };
        let waits = [0, 1, 2, 3].map(|attempt| retry.after(Ending::Rejected, attempt));
        assert_eq!(waits, [Some(5), Some(10), Some(20), None].map(|w| w.map(Span::from_micros)));
        assert_eq!(retry.after(Ending::Abandoned, 1), retry.after(Ending::Rejected, 1));
        assert_eq!(retry.after(Ending::Abandoned, 3), None);
        assert_eq!(retry.after(Ending::Unservable, 0), None);
        assert_eq!(retry.after(Ending::Finished, 0), None);
        let stubborn = Retry { at_most: MAX_RETRIES, backoff: Span::from_micros(5) };
        assert_eq!(stubborn.after(Ending::Rejected, 999), Some(Span::LONGEST));
    }
}
