//! The numbers that predictions and measurements are compared by.

use crate::measured::Fared;
use blis_core::math::float;

/// A time that a request sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Arrival to first token.
    Ttft,
    /// Between tokens: the mean of a request that has at least two.
    Itl,
    /// Arrival to last token.
    E2e,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 3] = [Metric::Ttft, Metric::Itl, Metric::E2e];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Ttft => "TTFT",
            Metric::Itl => "ITL",
            Metric::E2e => "E2E",
        }
    }

    /// Its value in milliseconds.
    pub fn of(self, seen: &Fared) -> Option<f64> {
        match self {
            Metric::Ttft => Some(seen.ttft_us / 1e3),
            Metric::E2e => Some(seen.e2e_us / 1e3),
            Metric::Itl => (seen.output_tokens > 1)
                .then(|| (seen.e2e_us - seen.ttft_us) / f64::from(seen.output_tokens - 1) / 1e3),
        }
    }
}

/// A statistic over requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
}

impl Statistic {
    /// All statistics.
    pub const ALL: [Statistic; 4] =
        [Statistic::Mean, Statistic::P50, Statistic::P90, Statistic::P99];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::P50 => "p50",
            Statistic::P90 => "p90",
            Statistic::P99 => "p99",
        }
    }

    /// Its value over `sorted`.
    fn of(self, sorted: &[f64]) -> Option<f64> {
        match self {
            Statistic::Mean => {
                let count = float(sorted.len() as u64);
                (count > 0.0).then(|| sorted.iter().sum::<f64>() / count)
            }
            Statistic::P50 => quantile(sorted, 0.5),
            Statistic::P90 => quantile(sorted, 0.9),
            Statistic::P99 => quantile(sorted, 0.99),
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A statistic of a metric, in milliseconds.
    Latency(Metric, Statistic),
    /// Preemptions of all requests; left out where the server had none.
    Preemptions,
}

impl Quantity {
    /// Its name in tables and, with underscores, in JSON.
    pub fn name(self) -> String {
        match self {
            Quantity::Latency(metric, statistic) => {
                format!("{} {}", metric.name(), statistic.name())
            }
            Quantity::Preemptions => "preemptions".to_owned(),
        }
    }
}

/// All numbers of a run's requests.
pub fn numbers_of(requests: &[Fared]) -> Vec<(Quantity, f64)> {
    let mut numbers = Vec::new();
    for metric in Metric::ALL {
        let sorted = sorted(metric, requests);
        for statistic in Statistic::ALL {
            if let Some(value) = statistic.of(&sorted) {
                numbers.push((Quantity::Latency(metric, statistic), value));
            }
        }
    }
    let preemptions = requests.iter().map(|request| u64::from(request.preemptions)).sum();
    numbers.push((Quantity::Preemptions, float(preemptions)));
    numbers
}

/// The values of `metric` over `requests`, ascending.
pub fn sorted(metric: Metric, requests: &[Fared]) -> Vec<f64> {
    let mut values: Vec<f64> = requests.iter().filter_map(|seen| metric.of(seen)).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// One of `numbers`.
pub(super) fn find(numbers: &[(Quantity, f64)], wanted: Quantity) -> Option<f64> {
    numbers.iter().find(|(quantity, _)| *quantity == wanted).map(|&(_, value)| value)
}

/// The value at rank `share * (n - 1)` of `sorted`, interpolated; `None` without values.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = share * float(sorted.len().checked_sub(1)? as u64);
    let below = usize::try_from(blis_core::math::count((rank - 0.5).max(0.0))).ok()?;
    let low = *sorted.get(below)?;
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    Some(low + (rank - float(below as u64)) * (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_worked_out_by_hand() {
        let seen = |ttft_us, e2e_us, output_tokens| Fared {
            id: 0,
            ttft_us,
            e2e_us,
            output_tokens,
            cached_tokens: 0,
            preemptions: 1,
        };
        let requests = [seen(1000.0, 1000.0, 1), seen(3000.0, 7000.0, 5), seen(5000.0, 9000.0, 3)];
        let numbers = numbers_of(&requests);
        let of = |metric, statistic| {
            let wanted = Quantity::Latency(metric, statistic);
            numbers.iter().find(|(quantity, _)| *quantity == wanted).expect("there").1
        };
        assert!((of(Metric::Ttft, Statistic::Mean) - 3.0).abs() < 1e-9);
        assert!((of(Metric::Ttft, Statistic::P90) - 4.6).abs() < 1e-9);
        assert!((of(Metric::Itl, Statistic::Mean) - 1.5).abs() < 1e-9, "of two requests");
        assert!((of(Metric::E2e, Statistic::P50) - 7.0).abs() < 1e-9);
        assert!(numbers.contains(&(Quantity::Preemptions, 3.0)));
    }

    #[test]
    fn quantiles_interpolate_and_do_without_values() {
        assert_eq!(quantile(&[], 0.5), None);
        for (share, expected) in [(0.0, 1.0), (0.25, 1.5), (0.5, 2.0), (1.0, 3.0)] {
            let found = quantile(&[1.0, 2.0, 3.0], share).expect("values");
            assert!((found - expected).abs() < 1e-12, "{share}: {found}");
        }
    }
}
