//! Service-level objectives: what each class was promised, and whether a request got it.
//!
//! The summary asks for every finished request. Targets are post-processing: they never reach a
//! policy from here.

use blis_core::{SloClass, Span};

/// The targets of one class. A target that is `None` is always met.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SloTarget {
    /// Longest time to first token, in ms.
    pub ttft_ms: Option<f64>,
    /// Largest mean inter-token latency of a request, in ms.
    pub itl_ms: Option<f64>,
    /// Longest time to the last token, in ms.
    pub e2e_ms: Option<f64>,
}

/// The targets of all classes; by default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SloTargets {
    by_class: [SloTarget; SloClass::ALL.len()],
}

impl SloTargets {
    /// The same targets, but `target` for `class`.
    #[must_use]
    pub fn with(mut self, class: SloClass, target: SloTarget) -> SloTargets {
        self.by_class[class.index()] = target;
        self
    }

    /// The targets of `class`.
    pub fn of(&self, class: SloClass) -> &SloTarget {
        &self.by_class[class.index()]
    }
}

impl SloTarget {
    /// Whether nothing is promised.
    pub fn is_empty(&self) -> bool {
        *self == SloTarget::default()
    }

    /// Whether a finished request of `output_tokens` tokens is within every target; its own
    /// deadline is the caller's to check. A request of one token has no inter-token latency and
    /// meets that target.
    pub fn attained(&self, ttft: Span, e2e: Span, output_tokens: u32) -> bool {
        let within = |span_ms: f64, target: Option<f64>| target.is_none_or(|most| span_ms <= most);
        let gaps = output_tokens.saturating_sub(1);
        let decode_ms = e2e.as_millis_f64() - ttft.as_millis_f64();
        within(ttft.as_millis_f64(), self.ttft_ms)
            && within(e2e.as_millis_f64(), self.e2e_ms)
            && (gaps == 0 || within(decode_ms / f64::from(gaps), self.itl_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_that_is_set_must_be_met() {
        let ms = |x: f64| Span::from_micros_f64(x * 1e3);
        let target = |ttft, itl, e2e| SloTarget { ttft_ms: ttft, itl_ms: itl, e2e_ms: e2e };
        for (target, attained) in [
            (target(None, None, None), true),
            (target(Some(10.0), Some(5.0), Some(30.0)), true),
            (target(Some(9.9), None, None), false),
            (target(None, Some(4.9), None), false),
            (target(None, None, Some(29.9)), false),
        ] {
            assert_eq!(target.attained(ms(10.0), ms(30.0), 5), attained, "{target:?}");
        }
        assert!(target(None, Some(0.0), None).attained(ms(1.0), ms(1.0), 1), "no gap, no miss");
    }

    #[test]
    fn each_class_has_its_own_targets() {
        let strict = SloTarget { ttft_ms: Some(1.0), ..SloTarget::default() };
        let targets = SloTargets::default().with(SloClass::Critical, strict);
        assert_eq!(targets.of(SloClass::Critical), &strict);
        assert_eq!(targets.of(SloClass::Batch), &SloTarget::default());
    }
}
