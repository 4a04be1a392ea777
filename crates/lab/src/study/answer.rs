//! The answer of a study: which arm is best where, and which is nowhere far from the best.

use super::lengths::load;
use super::{Findings, Mean, Study};
use crate::metric::Metric;
use crate::stats::Estimate;
use blis_metrics::Saturation;
use blis_scenario::row::Row;
use blis_scenario::scenario::oracles::Oracles;

/// Paired intervals of the ranking leave out the truth with this probability, each.
const LEVEL: f64 = 0.05;

/// Which arm is best, by the first metric of the study that has a better side.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The metric.
    pub metric: Metric,
    /// Each combination of what is not an arm, in the order of the cells.
    pub places: Vec<Place>,
    /// Those that nothing is known of.
    pub empty: Vec<Empty>,
    /// What each arm of the file loses where it loses most; the least first.
    pub regrets: Vec<Regret>,
}

/// The arms at one combination of what is not an arm.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its levels; empty if cells differ in their arms only.
    pub name: String,
    /// The arms that can be compared, the best first.
    pub ranked: Vec<Ranked>,
    /// The arms that do not keep up: their latencies grow with the length of the run.
    pub overloaded: Vec<usize>,
    /// The arms whose runs are too short to tell.
    pub unsettled: Vec<Unsettled>,
    /// The cell of each arm of the file.
    pub cells: Vec<usize>,
}

/// An arm that is not ranked at a place because its runs are too short.
#[derive(Clone, Copy, Debug)]
pub struct Unsettled {
    /// Which arm.
    pub arm: usize,
    /// Its cell.
    pub cell: usize,
    /// How many times the best one's its runs so far show, paired by seed; longer ones show more if
    /// it grows. `None` if nobody is ranked, or ratios say nothing.
    pub times_best: Option<Estimate>,
}

/// A combination of what is not an arm in which an arm has no request that counts.
#[derive(Clone, Debug)]
pub struct Empty {
    /// Its levels.
    pub name: String,
    /// What is left out of a run, in s.
    pub warmup_s: f64,
    /// How long that run is, in s.
    pub run_s: f64,
}

/// An arm at a place.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    /// Which arm.
    pub arm: usize,
    /// Its cell.
    pub cell: usize,
    /// Its mean over seeds.
    pub mean: Mean,
    /// How many times the best one's it is, paired by seed; `None` for the best, and where ratios
    /// say nothing.
    pub times_best: Option<Estimate>,
}

/// What an arm loses where it loses most.
#[derive(Clone, Debug)]
pub struct Regret {
    /// Which arm.
    pub arm: usize,
    /// The places where it is overloaded and another arm is not. An arm with fewer of them is
    /// safer, however far it is from the best elsewhere.
    pub overloaded: Vec<usize>,
    /// The places where it has not settled and another arm has.
    pub unsettled: Vec<usize>,
    /// Where it is not overloaded, how many times as bad as the best it is at most, paired by seed,
    /// and where.
    pub times: Option<(Estimate, usize)>,
}

impl Regret {
    fn size(&self) -> (usize, f64) {
        (self.overloaded.len(), self.times.map_or(1.0, |(times, _)| times.mean))
    }

    /// Whether this arm loses less at its worst than the other, by more than this share.
    pub fn is_less_than(&self, other: &Regret, share: f64) -> bool {
        let [(lost, times), (other_lost, other_times)] = [self, other].map(Regret::size);
        lost < other_lost || (lost == other_lost && times * (1.0 + share) < other_times)
    }

    /// Whether it has settled wherever another arm has, and is nowhere worse than the best.
    pub fn is_none(&self) -> bool {
        let lost = self.overloaded.len() + self.unsettled.len();
        lost == 0 && self.times.is_some_and(|(times, _)| times.mean <= 1.0)
    }

    /// Whether the runs cannot tell which of two arms loses less at its worst.
    pub fn is_level(&self, other: &Regret) -> bool {
        let both = self.times.zip(other.times);
        let meet = both.is_some_and(|((a, _), (b, _))| a.low <= b.high && b.low <= a.high);
        meet && self.overloaded.len() == other.overloaded.len()
    }
}

impl Ranked {
    /// Whether the runs cannot tell it from the best.
    pub fn is_level(&self) -> bool {
        self.times_best.is_some_and(|ratio| ratio.low <= 1.0 && 1.0 <= ratio.high)
    }
}

impl Answer {
    /// At how many of these places no arm is surely better than this one.
    pub fn won(&self, arm: usize, among: &[usize]) -> usize {
        among.iter().filter(|&&place| self.places[place].is_won_by(arm)).count()
    }

    /// What an arm loses at the one of these places where it loses most; `None` if it was not run
    /// there, or nobody keeps up.
    pub fn worst(&self, arm: usize, among: impl Iterator<Item = usize>) -> Option<Regret> {
        worst(&self.places, &self.metric, arm, among)
    }
}

impl Study {
    /// Which arm is best, if cells differ in their arms and a metric has a better side.
    pub fn answer(&self, findings: &Findings) -> Option<Answer> {
        let arm = self.design.factor("arm").filter(|&arm| self.design.factors[arm].stated > 1)?;
        let metric = *self.ranked_by()?;
        let place = |cells: Vec<usize>| self.place(&cells, arm, &metric, findings);
        let mut places: Vec<Place> = self.places().into_iter().map(place).collect();
        let empty: Vec<Empty> =
            places.iter().filter_map(|place| self.empty(place, findings)).collect();
        places.retain(|place| empty.iter().all(|it| it.name != place.name));
        let mut regrets = regrets(&places, &metric);
        // What oracles decide nobody can deploy.
        let real = |arm: usize| self.cells[places[0].cells[arm]].plan.oracles == Oracles::NONE;
        regrets.retain(|regret| real(regret.arm));
        Some(Answer { metric, places, empty, regrets })
    }

    /// The arms in `cells`, which differ in nothing else, over the seeds that all of them have.
    fn place(&self, cells: &[usize], arm: usize, metric: &Metric, findings: &Findings) -> Place {
        let mut levels = self.design.names(cells[0]);
        levels.remove(arm);
        let mut place = Place {
            name: levels.join(", "),
            ranked: Vec::new(),
            overloaded: Vec::new(),
            unsettled: Vec::new(),
            cells: Vec::new(),
        };
        let seeds = cells.iter().map(|&cell| findings.rows[cell].len()).min().unwrap_or(0);
        for &cell in cells {
            let arm_here = self.design.levels(cell)[arm];
            // Arms that were added for reference are no candidates.
            if arm_here >= self.design.factors[arm].stated {
                continue;
            }
            place.cells.push(cell);
            let rows = &findings.rows[cell];
            if metric.is_latency() && self.grows(rows, cell) {
                place.overloaded.push(arm_here);
            } else if metric.is_latency() && self.is_unsettled(rows, cell) {
                place.unsettled.push(Unsettled { arm: arm_here, cell, times_best: None });
            } else if let Some(mean) = findings.mean_of(cell, metric, seeds) {
                place.ranked.push(Ranked { arm: arm_here, cell, mean, times_best: None });
            }
        }
        place.rank(findings, metric, seeds);
        place
    }

    /// Why a place has no data, if one of its cells has none.
    fn empty(&self, place: &Place, findings: &Findings) -> Option<Empty> {
        let cell = place.cells.iter().copied().find(|&cell| findings.is_empty(cell))?;
        let warmup_s = self.plan(cell, findings.lengths.warmup).warmup.as_secs_f64();
        let runs = findings.rows[cell].iter().map(|row| row.report.duration_s);
        let run_s = runs.fold(0.0, f64::max);
        Some(Empty { name: place.name.clone(), warmup_s, run_s })
    }

    /// The metric that arms are ranked by: the first that has a better side.
    pub(super) fn ranked_by(&self) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.less_is_better().is_some())
    }

    /// Whether requests pile up in most of these runs of a cell, to which they come at a steady
    /// rate: then its latencies grow with the runs.
    pub(super) fn grows(&self, rows: &[Row], cell: usize) -> bool {
        self.cells[cell].plan.steady_requests().is_some() && load(rows) >= Some(Saturation::Growing)
    }
}

impl Place {
    /// Whether no arm is surely better than this one.
    pub fn is_won_by(&self, arm: usize) -> bool {
        let mut ranked = self.ranked.iter().enumerate();
        ranked.any(|(rank, one)| one.arm == arm && (rank == 0 || one.is_level()))
    }

    fn rank(&mut self, findings: &Findings, metric: &Metric, seeds: usize) {
        let less = metric.less_is_better() == Some(true);
        self.ranked.sort_by(|one, other| {
            let order = one.mean.0.total_cmp(&other.mean.0);
            if less { order } else { order.reverse() }
        });
        let Some(best) = self.ranked.first().map(|best| best.cell) else { return };
        let times_best = |cell: usize| {
            findings.paired_of([cell, best], metric, seeds, LEVEL).and_then(|paired| paired.ratio)
        };
        for one in &mut self.ranked[1..] {
            one.times_best = times_best(one.cell);
        }
        for one in &mut self.unsettled {
            one.times_best = times_best(one.cell);
        }
    }
}

/// What each arm that was run everywhere loses where it loses most; the least first, then in the
/// order of the file.
fn regrets(places: &[Place], metric: &Metric) -> Vec<Regret> {
    let mut arms: Vec<usize> = places.iter().flat_map(Place::arms).collect();
    arms.sort_unstable();
    arms.dedup();
    let worst = |&arm: &usize| worst(places, metric, arm, 0..places.len());
    let mut all: Vec<Regret> = arms.iter().filter_map(worst).collect();
    all.sort_by(|one, other| {
        let [(lost, times), (other_lost, other_times)] = [one, other].map(Regret::size);
        lost.cmp(&other_lost).then(times.total_cmp(&other_times))
    });
    all
}

/// What an arm loses at the one of these places where it loses most.
fn worst(
    places: &[Place],
    metric: &Metric,
    arm: usize,
    among: impl Iterator<Item = usize>,
) -> Option<Regret> {
    let worse = |ratio: Estimate| {
        let Estimate { mean, low, high, values } = ratio;
        match metric.less_is_better() {
            Some(true) => ratio,
            _ => Estimate { mean: 1.0 / mean, low: 1.0 / high, high: 1.0 / low, values },
        }
    };
    let mut found = Regret { arm, overloaded: Vec::new(), unsettled: Vec::new(), times: None };
    let mut is_there = false;
    for place in among {
        let here = &places[place];
        is_there |= here.arms().contains(&arm);
        // Where nobody is ranked nobody loses.
        if here.overloaded.contains(&arm) && !here.ranked.is_empty() {
            found.overloaded.push(place);
        }
        let unsettled = here.unsettled.iter().find(|one| one.arm == arm);
        found.unsettled.extend(unsettled.filter(|_| !here.ranked.is_empty()).map(|_| place));
        let times = match here.ranked.iter().position(|one| one.arm == arm) {
            Some(0) => Some(Estimate { mean: 1.0, low: 1.0, high: 1.0, values: 0 }),
            // Who cannot be compared, for one seed or a best of 0, is not ranked.
            Some(rank) => Some(worse(here.ranked[rank].times_best?)),
            None => unsettled.and_then(|one| one.times_best).map(worse),
        };
        if let Some(times) = times
            && found.times.is_none_or(|(worst, _)| times.mean > worst.mean)
        {
            found.times = Some((times, place));
        }
    }
    is_there.then_some(found)
}

impl Place {
    fn arms(&self) -> Vec<usize> {
        let ranked = self.ranked.iter().map(|one| one.arm);
        let unsettled = self.unsettled.iter().map(|one| one.arm);
        ranked.chain(unsettled).chain(self.overloaded.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place where the arms have these means over the best one's; infinity: overloaded.
    fn place(times: &[f64]) -> Place {
        let there = |&(_, times): &(usize, &f64)| times.is_finite();
        let ranked = times.iter().enumerate().filter(there).map(|(arm, &mean)| {
            let times_best = Estimate { mean, low: mean - 0.1, high: mean + 0.1, values: 5 };
            let times_best = (mean > 1.0).then_some(times_best);
            Ranked { arm, cell: arm, mean: (mean, None), times_best }
        });
        let mut ranked: Vec<Ranked> = ranked.collect();
        ranked.sort_by(|one, other| one.mean.0.total_cmp(&other.mean.0));
        let lost = times.iter().enumerate().filter(|it| !there(it));
        let overloaded = lost.map(|(arm, _)| arm).collect();
        let (unsettled, cells) = (Vec::new(), Vec::new());
        Place { name: String::new(), ranked, overloaded, unsettled, cells }
    }

    #[test]
    fn a_place_where_almost_nobody_keeps_up_does_not_hide_who_is_safe_elsewhere() {
        const OVER: f64 = f64::INFINITY;
        let metric = Metric::parse("ttft_p99").expect("known");
        let places = [
            place(&[OVER, 5.0, 2.0, 1.0]),
            place(&[1.0, 1.5, 1.2, OVER]),
            // At too much load only the last one happens not to be overloaded.
            place(&[OVER, OVER, OVER, 1.0]),
            place(&[OVER, OVER, OVER, OVER]),
        ];
        let found = regrets(&places, &metric);
        let order: Vec<usize> = found.iter().map(|one| one.arm).collect();
        assert_eq!(order, [3, 2, 1, 0], "{found:?}");
        assert_eq!((&found[1].overloaded[..], found[1].times.map(|it| it.1)), (&[2][..], Some(0)));
        assert!(!found[1].is_level(&found[2]) && found[0].is_level(&found[0]));
        assert!(found[2].is_less_than(&found[3], 9.0), "overloads count before ratios");
        let by = |share| found[1].is_less_than(&found[2], share);
        assert!(by(0.0) && !by(9.0) && !found[1].is_less_than(&found[1], 0.0), "{found:?}");
    }

    #[test]
    fn an_arm_that_has_not_settled_counts_with_what_its_runs_show_so_far() {
        let metric = Metric::parse("ttft_p99").expect("known");
        let mut busy = place(&[1.0, f64::INFINITY]);
        busy.overloaded.clear();
        let so_far = Estimate { mean: 1.2, low: 1.1, high: 1.3, values: 9 };
        busy.unsettled = vec![Unsettled { arm: 1, cell: 1, times_best: Some(so_far) }];
        let found = regrets(&[place(&[1.5, 1.0]), busy], &metric);
        let told: Vec<_> = found.iter().map(|it| (it.arm, it.times.map(|it| it.0.mean))).collect();
        assert_eq!(told, [(1, Some(1.2)), (0, Some(1.5))], "it is the safer one all the same");
        assert_eq!(found[0].unsettled, [1]);
    }
}
