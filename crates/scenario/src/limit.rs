//! What a run may take, by an estimate that is made before it begins.
//!
//! The bound is the scenario's `max_gb`. Everything that can grow far beyond what its author had in
//! mind is estimated here, and nowhere else.

/// In GB, if a scenario does not say.
pub(crate) const USUAL_GB: u64 = 4;

const GB: u64 = 1_000_000_000;
/// Bytes of an instance.
const INSTANCE: u64 = 6_000;
/// Bytes of what a replica of the gateway knows of an instance.
const VIEW: u64 = 100;
/// Bytes of a sample of an instance, written or kept.
const SAMPLE: u64 = 100;
/// Bytes of a request and its share of the steps in a trace of events.
const EVENTS: u64 = 2_500;

/// Why a cluster takes too much; `None` if it does not.
pub(crate) fn of_cluster(instances: u32, gateways: u32, max_gb: u64) -> Option<String> {
    let bytes = u64::from(instances) * (INSTANCE + u64::from(gateways) * VIEW);
    above(bytes, max_gb, || format!("{gateways} gateways that each know {instances} instances"))
}

/// Why so many samples of all instances take too much; `None` if they do not.
pub(crate) fn of_samples(instances: u32, samples: u64, max_gb: u64) -> Option<String> {
    let bytes = samples.saturating_mul(u64::from(instances) * SAMPLE);
    above(bytes, max_gb, || format!("{samples} samples or more of {instances} instances"))
}

/// Why the events of so many requests take too much; `None` if they do not.
pub fn of_events(requests: u64, max_gb: u64) -> Option<String> {
    above(requests.saturating_mul(EVENTS), max_gb, || format!("the events of {requests} requests"))
}

fn above(bytes: u64, max_gb: u64, what: impl Fn() -> String) -> Option<String> {
    let gb = bytes.div_ceil(GB);
    let message = || {
        let what = what();
        format!(
            "{what} take about {gb} GB; legal: at most {max_gb}, or raise `max_gb` (`--max-gb`)"
        )
    };
    (gb > max_gb).then(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_more_than_the_bound_is_refused() {
        assert_eq!(of_cluster(100_000, 1, USUAL_GB), None);
        assert_eq!(of_cluster(1_000, 1_000, USUAL_GB), None);
        let message = of_cluster(100_000, 1_000, USUAL_GB).expect("10.6 GB");
        assert!(message.contains("about 11 GB; legal: at most 4, or raise"), "{message}");
        assert_eq!(of_cluster(100_000, 1_000, 11), None);
        assert_eq!(of_samples(4, 10_000_000, USUAL_GB), None);
        assert!(of_samples(4, 10_000_001, USUAL_GB).is_some());
        assert!(of_samples(u32::MAX, u64::MAX, USUAL_GB).is_some());
    }
}
