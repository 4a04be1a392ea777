//! Priority inversions, as the `blis` layout counts them: pairs of finished requests of one
//! instance and class of which the earlier took more than twice as long as the later.
//!
//! Heard during a run only if that layout is printed and priorities differ at all.

use blis_metrics::{Fact, Listener, Status};
use std::collections::BTreeMap;

/// Counts inversions.
#[derive(Debug, Default)]
pub(crate) struct Inversions {
    /// By instance and class: request number and E2E in ns.
    finished: BTreeMap<(u32, usize), Vec<(u64, u64)>>,
}

impl Listener for Inversions {
    fn hear(&mut self, _at: blis_core::Time, fact: &Fact<'_>) {
        if let Fact::Closed { status: Status::Finished, record } = fact
            && let (Some(instance), Some(e2e)) = (record.instance, record.e2e)
        {
            let group = self.finished.entry((instance.0, record.class.index())).or_default();
            group.push((record.request.0, e2e.as_nanos()));
        }
    }
}

impl Inversions {
    /// How many there are.
    pub(crate) fn count(mut self) -> u64 {
        self.finished
            .values_mut()
            .map(|group| {
                group.sort_unstable();
                let times: Vec<u64> = group.iter().map(|&(_, e2e)| e2e).collect();
                pairs(&times)
            })
            .sum()
    }
}

/// Pairs i < j with `times[i]` more than twice `times[j]`, by halves: in both halves, and across.
fn pairs(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    pairs_sorting(&mut sorted)
}

fn pairs_sorting(times: &mut [u64]) -> u64 {
    if times.len() < 2 {
        return 0;
    }
    let (earlier, later) = times.split_at_mut(times.len() / 2);
    let mut found = pairs_sorting(earlier) + pairs_sorting(later);
    let mut below = 0;
    for &time in &*earlier {
        while below < later.len() && later[below].saturating_mul(2) < time {
            below += 1;
        }
        found += below as u64;
    }
    times.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_agree_with_looking_at_all_of_them() {
        let mut state = 7_u64;
        for length in [0_usize, 1, 2, 3, 10, 200] {
            let times: Vec<u64> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    state >> 56
                })
                .collect();
            let all = (0..length).flat_map(|i| (i + 1..length).map(move |j| (i, j)));
            let expected = all.filter(|&(i, j)| times[i] > 2 * times[j]).count() as u64;
            assert_eq!(pairs(&times), expected, "{length} times");
            assert!(length < 10 || expected > 0, "there was something to count");
        }
    }
}
