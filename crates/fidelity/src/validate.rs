//! Predictions against measured runs: replays every workload and compares what requests saw.
//!
//! By default a workload is predicted by a profile that was fitted to all other workloads. Each
//! number comes with an interval: the same replay with profiles that the measurements allow just
//! as well, on servers that are slower or faster throughout by as much as whole runs were off.

mod judge;
mod numbers;
mod outside;

pub use blis_latency::fit::beyond::Beyond;
pub use blis_latency::fit::judge::Errors;
pub use judge::{Bounds, Coverage, Transfer, beyond, coverage, transfer, widest};
pub use numbers::{Metric, Quantity, Statistic, numbers_of, sorted};
pub use outside::Outside;

use crate::measured::{Fared, Measured, first_runs};
use crate::replay::{Server, plan, replay};
use blis_core::math::float;
use blis_latency::StepTime;
use blis_latency::fit::judge::{Region, drift, errors, leave_one_out, workloads};
use blis_latency::fit::log::Run;
use blis_latency::fit::{FitError, Options as FitOptions, fit, resample};
use blis_latency::profile::Profile;
use blis_latency::profile::padding::Padding;
use blis_scenario::pool;
use blis_scenario::problem::Problem;
use blis_scenario::profile::ProfileFile;
use blis_scenario::run::RunFailure;
use blis_scenario::scenario::Plan;
use std::sync::Arc;

/// Share of the resampled predictions that is below an interval, and above it.
const TAIL: f64 = 0.05;

/// Which profile predicts a workload.
#[derive(Clone, Debug)]
pub enum Basis {
    /// The one that was fitted to all other workloads.
    LeaveOneOut,
    /// The one that was fitted to all workloads, this one included: not a test of anything but the
    /// terms of the model.
    Refit,
    /// This one.
    Given(Box<ProfileFile>),
}

/// How to validate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which profile predicts.
    pub basis: Basis,
    /// The server that was measured.
    pub server: Server,
    /// How it pads its batches.
    pub padding: Padding,
    /// Resampled predictions for an interval; 0: no intervals.
    pub resamples: u32,
    /// What the resampling follows from.
    pub seed: u64,
    /// Replays at a time; 0: one for each core.
    pub jobs: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            basis: Basis::LeaveOneOut,
            server: Server::default(),
            padding: Padding::measured_server(),
            resamples: 60,
            seed: 1,
            jobs: 0,
        }
    }
}

/// One number, predicted and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Which number.
    pub quantity: Quantity,
    /// What the profile predicts.
    pub predicted: f64,
    /// The interval about it, if there is one.
    pub interval: Option<(f64, f64)>,
    /// What was measured.
    pub measured: f64,
    /// What other runs of the same arrivals gave.
    pub repeats: Vec<f64>,
}

/// A workload, predicted and measured.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Its name.
    pub workload: String,
    /// Step times of the profile on the steps that were measured.
    pub steps: Option<Errors>,
    /// Steps that were measured where nothing was fitted to.
    pub outside: Outside,
    /// The numbers.
    pub cells: Vec<Cell>,
    /// Requests whose cached tokens are those that were measured, as a share.
    pub cached_equal: f64,
    /// What requests saw in the replay.
    pub predicted: Vec<Fared>,
    /// What they saw in the server.
    pub measured: Vec<Fared>,
    /// What they saw in other runs of the same arrivals.
    pub repeats: Vec<Vec<Fared>>,
    /// The same prediction with the host as fast as it was in the run, if that was logged.
    pub own_host: Option<OwnHost>,
}

/// A prediction that is told one number of the run: how fast its host was.
#[derive(Clone, Debug)]
pub struct OwnHost {
    /// How many times as long as the profile says the host took.
    pub pace: f64,
    /// The numbers, without intervals.
    pub cells: Vec<Cell>,
}

impl Cell {
    /// How far the prediction is off, relative to what was measured.
    pub fn error(&self) -> Option<f64> {
        relative(self.predicted, self.measured)
    }

    /// How far each of the other runs was off.
    pub fn spreads(&self) -> impl Iterator<Item = f64> {
        self.repeats.iter().filter_map(|&repeat| relative(repeat, self.measured))
    }

    /// How far that of the other runs was off which was off most.
    pub fn spread(&self) -> Option<f64> {
        self.spreads().max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }

    /// Whether the interval has the measured value in it.
    pub fn is_covered(&self) -> Option<bool> {
        self.interval.map(|(low, high)| low <= self.measured && self.measured <= high)
    }

    /// The width of the interval, relative to what was measured.
    pub fn width(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        (self.measured > 0.0).then(|| (high - low) / self.measured)
    }
}

fn relative(found: f64, truth: f64) -> Option<f64> {
    (truth > 0.0).then(|| found / truth - 1.0)
}

/// A workload to be predicted: its first run and the others of the same arrivals.
struct Case<'a> {
    first: &'a Measured,
    others: Vec<&'a Measured>,
    plan: Plan,
    /// The steps that were measured.
    run: Run,
    profile: Profile,
    /// How far that is off over whole runs.
    drift: f64,
}

/// Predicts the workloads of `measured` that are in `wanted` (all of them if that is empty) and
/// compares. `runs` is what may be fitted to: those of `measured`, and steps measured apart.
///
/// # Errors
/// If a workload is unknown, cannot be replayed, or too little is left to fit to.
pub fn validate(
    measured: &[Measured],
    runs: &[Run],
    wanted: &[String],
    options: &Options,
) -> Result<Vec<Compared>, RunFailure> {
    let fitted = Fitted::new(runs, options).map_err(refused)?;
    let mut cases = Vec::new();
    for first in first_runs(measured) {
        if wanted.is_empty() || wanted.contains(&first.workload) {
            let (profile, drift) = fitted.without(first.served(), options).map_err(refused)?;
            let others = measured.iter().filter(|run| run.is_again(first)).collect();
            let plan = plan(first, &options.server)?;
            let run = first.run(options.server.block_size);
            cases.push(Case { first, others, plan, run, profile, drift });
        }
    }
    let resamples = options.resamples as usize;
    let work: Vec<(usize, u64)> =
        (0..cases.len()).flat_map(|at| (0..=resamples as u64).map(move |n| (at, n))).collect();
    let replayed = pool::each(options.jobs, &work, |&(at, number)| {
        let case = &cases[at];
        let profile = match number.checked_sub(1) {
            None => case.profile.clone(),
            Some(index) => resample::varied(&case.profile, case.drift, options.seed, index)
                .map_err(|error| refused(error.into()))?,
        };
        case.replay(&profile, options)
    })?;
    let on_own_hosts = pool::each(options.jobs, &cases, |case| case.on_its_own_host(options))?;
    let mut replayed = replayed.into_iter();
    let mut compared = Vec::new();
    for (case, on_own_host) in cases.iter().zip(on_own_hosts) {
        let own: Result<Vec<Vec<Fared>>, RunFailure> =
            replayed.by_ref().take(resamples + 1).collect();
        compared.push(Compared { own_host: on_own_host?, ..case.compare(own?) });
    }
    Ok(compared)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn refused(error: FitError) -> RunFailure {
    let advice = match error {
        FitError::TooFew { .. } => {
            "; name more runs to fit to with `--data`, or take a profile with `--profile`"
        }
        _ => "",
    };
    Problem::of_file("validate", format!("{error}{advice}")).into()
}

/// What predictions come from: all that was measured, and a fit without each workload.
struct Fitted<'a> {
    runs: &'a [Run],
    left_out: Vec<(String, Profile)>,
}

impl<'a> Fitted<'a> {
    fn new(runs: &'a [Run], options: &Options) -> Result<Fitted<'a>, FitError> {
        let fit_options = FitOptions::of(options.padding.clone());
        let left_out = match options.basis {
            Basis::LeaveOneOut | Basis::Refit if workloads(runs).len() > 1 => {
                leave_one_out(runs, &fit_options)?
            }
            _ => Vec::new(),
        };
        Ok(Fitted { runs, left_out })
    }

    /// The profile that predicts `workload`, and how far others were off.
    fn without(&self, workload: &str, options: &Options) -> Result<(Profile, f64), FitError> {
        let fit_options = FitOptions::of(options.padding.clone());
        match &options.basis {
            Basis::Given(file) => Ok((file.profile.clone(), file.profile.parameters().drift)),
            Basis::Refit => Ok((fit(self.runs, &fit_options)?, drift(self.runs, &self.left_out))),
            Basis::LeaveOneOut => {
                let others = self.runs.iter().filter(|run| run.workload != workload);
                let others: Vec<Run> = others.cloned().collect();
                let profile = match self.left_out.iter().find(|(name, _)| name == workload) {
                    Some((_, profile)) => profile.clone(),
                    None => fit(&others, &fit_options)?,
                };
                Ok((profile, drift(&others, &self.left_out)))
            }
        }
    }
}

impl Case<'_> {
    fn replay(&self, profile: &Profile, options: &Options) -> Result<Vec<Fared>, RunFailure> {
        let graph = options.server.largest_graph(self.first);
        let latency = Arc::new(profile.with_graphs_up_to(graph)) as Arc<dyn StepTime>;
        replay(&self.plan, latency)
    }

    /// The prediction with the host as fast as it was in the run.
    fn on_its_own_host(&self, options: &Options) -> Result<Option<OwnHost>, RunFailure> {
        let host = self.profile.parameters().host.as_ref();
        let Some(pace) = host.and_then(|host| self.run.host_pace(host)) else { return Ok(None) };
        let profile = self.profile.with_slower_host(pace);
        let profile = profile.map_err(|error| refused(error.into()))?;
        let compared = self.compare(vec![self.replay(&profile, options)?]);
        Ok(Some(OwnHost { pace, cells: compared.cells }))
    }

    /// Compares `replayed`, the first of which is the prediction, with what was measured.
    fn compare(&self, replayed: Vec<Vec<Fared>>) -> Compared {
        let fared = self.first.fared();
        let repeats: Vec<Vec<Fared>> = self.others.iter().map(|run| run.fared()).collect();
        let measured = numbers_of(&fared);
        let again: Vec<_> = repeats.iter().map(|fared| numbers_of(fared)).collect();
        let all: Vec<Vec<(Quantity, f64)>> = replayed.iter().map(|run| numbers_of(run)).collect();
        let cell = |&(quantity, measured): &(Quantity, f64)| {
            let predicted = numbers::find(&all[0], quantity)?;
            let others: Vec<f64> =
                all[1..].iter().filter_map(|numbers| numbers::find(numbers, quantity)).collect();
            let repeats = again.iter().filter_map(|numbers| numbers::find(numbers, quantity));
            let (interval, repeats) = (interval(others), repeats.collect());
            Some(Cell { quantity, predicted, interval, measured, repeats })
        };
        let predicted = replayed.into_iter().next().unwrap_or_default();
        Compared {
            workload: self.first.workload.clone(),
            steps: errors(&self.profile, &self.run, Region::All),
            outside: Outside::of(&self.profile, &self.run),
            cells: measured.iter().filter_map(cell).collect(),
            cached_equal: cached_equal(&predicted, &fared),
            predicted,
            measured: fared,
            repeats,
            own_host: None,
        }
    }
}

/// The middle of the values, without the tails.
fn interval(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let low = numbers::quantile(&values, TAIL)?;
    Some((low, numbers::quantile(&values, 1.0 - TAIL)?))
}

/// The share of requests, paired by number, whose cached tokens are equal.
fn cached_equal(predicted: &[Fared], measured: &[Fared]) -> f64 {
    let cached = |id: u64| {
        let at = predicted.binary_search_by_key(&id, |request| request.id).ok()?;
        Some(predicted[at].cached_tokens)
    };
    let equal = measured.iter().filter(|request| cached(request.id) == Some(request.cached_tokens));
    float(equal.count() as u64) / float(measured.len().max(1) as u64)
}
