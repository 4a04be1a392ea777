//! One run of a plan: builds the world, listens to it, and gives its numbers.
//!
//! The binary and every experiment run scenarios through [`run_scenario`] and nothing else, so that
//! a number is the same wherever it is asked for.

use crate::limit;
use crate::names::Names;
use crate::problem::Problem;
use crate::problems::Problems;
use crate::scenario::tier::CONNECTOR;
use crate::scenario::{Plan, Trial, Workload};
use crate::workload_spec::trace_problem;
use blis_core::{Request, Source, TenantId, Time};
use blis_latency::profile::VARIABLES;
use blis_metrics::{
    Audit, AuditReport, Fact, Fanout, Listener, Report, RunEnd, Saturation, Summary, check_report,
};
use blis_sim::{
    Config, End, Extrapolated, Future, Observer, Outcome, Pool, Progress, RunError, Unobserved,
};
use blis_workload::TraceError;

/// What a run gives.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The seed it ran with.
    pub seed: u64,
    /// Its numbers.
    pub report: Report,
    /// How it ended.
    pub outcome: Outcome,
    /// Names of the tenants of `report.tenants`, in the same order: that of the names, so that it
    /// does not depend on how the source has numbered them.
    pub tenants: Vec<String>,
    /// What the audit found, if there was one.
    pub audit: Option<AuditReport>,
}

impl RunResult {
    /// Whether it is one that can be believed.
    ///
    /// # Errors
    /// If the run stalled or the audit found something: the program's own fault.
    pub fn check(&self) -> Result<(), RunFailure> {
        if let End::Stalled { why } = &self.outcome.end {
            let seed = self.seed;
            return Err(RunFailure::Broken(format!("the run with seed {seed} stalled: {why}")));
        }
        let Some(audit) = self.audit.as_ref().filter(|audit| !audit.is_clean()) else {
            return Ok(());
        };
        let mut lines = vec![format!("internal invariant broken {} times:", audit.count)];
        lines.extend(audit.first.iter().map(|violation| format!("  {violation}")));
        Err(RunFailure::Broken(lines.join("\n")))
    }

    /// What the numbers do not show, although whoever reads them must know; not that the run was
    /// interrupted or the cluster overloaded.
    pub fn warnings(&self, plan: &Plan) -> Vec<String> {
        let (end, sent) = (&self.outcome.end, self.outcome.arrived);
        let mut warnings = Vec::new();
        if *end == End::Horizon && plan.horizon.is_none() {
            warnings.push(
                "stopped after a hundred simulated years, the limit; the numbers cover only that \
                 part"
                    .to_owned(),
            );
        }
        if *end == End::Drained || (*end == End::Horizon && sent == 0) {
            warnings.extend(too_few(plan, sent));
        }
        if self.report.large {
            warnings.push(
                "more than 500,000 requests: percentiles of latencies are within 0.1 %; means, \
                 maxima and counts are exact"
                    .to_owned(),
            );
        }
        warnings.extend(self.extrapolation());
        warnings.extend(plan.latency_caveat.clone());
        warnings
    }

    /// That steps were outside what the latency model was fitted to.
    fn extrapolation(&self) -> Option<String> {
        let Extrapolated { steps, beyond } = self.outcome.extrapolated;
        let names = VARIABLES.iter().enumerate().filter(|(bit, _)| beyond >> bit & 1 == 1);
        let names: Vec<&str> = names.map(|(_, &name)| name).collect();
        let all: u64 = self.report.instances.iter().map(|instance| instance.steps).sum();
        (steps > 0).then(|| {
            // Whole per cents, so that the runs of a study say the same.
            let share = (100 * steps).div_ceil(all.max(1));
            format!(
                "{share} % of the steps were outside the fitted range of the latency profile \
                 ({}); their times are extrapolated",
                names.join(", ")
            )
        })
    }
}

/// What to say if fewer requests arrived than were asked for.
fn too_few(plan: &Plan, sent: u64) -> Option<String> {
    if let Some(wanted) = plan.expected_requests().filter(|&wanted| wanted > sent) {
        return Some(format!(
            "only {sent} of {wanted} requests arrive within ten years; the others are left out"
        ));
    }
    if sent == 0 {
        return Some("no request arrives: the workload ends before its first".to_owned());
    }
    let Workload::Mix(mix) = &plan.workload else { return None };
    let wanted = mix.num_requests.filter(|&wanted| wanted > sent && plan.horizon.is_none())?;
    Some(format!("only {sent} of {wanted} requests arrive: no client is active after them"))
}

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunFailure {
    /// The input is bad, or turned out to be, e.g. a trace that changed since it was checked.
    #[error(transparent)]
    Input(#[from] Problems),
    /// The request source failed in the middle of the run, or requests stood in each other's way.
    #[error("{0}")]
    Source(String),
    /// The system did not give the threads to run on.
    #[error("cannot start worker threads: {0}; lower `--jobs`")]
    Threads(String),
    /// Its observer has stopped it.
    #[error("interrupted")]
    Interrupted,
    /// It is the program's own fault.
    #[error("{0}")]
    Broken(String),
}

impl From<Problem> for RunFailure {
    fn from(problem: Problem) -> RunFailure {
        RunFailure::Input(problem.into())
    }
}

/// Runs `plan` once. `listeners` hear every fact besides the summary; `names` learns the names of
/// tenants and sessions as they appear.
///
/// # Errors
/// If the workload cannot be read.
pub fn run_scenario(
    plan: &Plan,
    trial: Trial,
    listeners: &mut [&mut dyn Listener],
    names: Option<Names>,
    observer: &mut dyn Observer,
) -> Result<RunResult, RunFailure> {
    check_samples(plan, trial, observer)?;
    let (config, mut source) = world(plan, trial, names, observer)?;
    let sizes = config.pools.iter().map(|pool| (pool.name.clone(), pool.count as usize));
    let mut summary = Summary::new(plan.slo).counting_from(plan.warmup).by_pool(sizes.collect());
    if trial.curves {
        summary = summary.with_curves();
    }
    let fcfs = plan.scheduler() == "fcfs";
    let connector = plan.policies.offload.name() == CONNECTOR;
    let audited = |pool: &Pool| pool.audited(fcfs, connector);
    let pools = || config.pools.iter().map(audited).collect::<Vec<_>>();
    let mut audit = trial.audit.then(|| Audit::new(&pools()));
    let outcome = if audit.is_none() && listeners.is_empty() {
        // Most runs are heard by the summary alone, and told to it directly.
        blis_sim::run(config, &mut *source, &mut summary, observer)
    } else {
        let mut fanout = Fanout::new(vec![&mut summary]);
        if let Some(audit) = &mut audit {
            fanout.push(audit);
        }
        for listener in listeners {
            fanout.push(&mut **listener);
        }
        blis_sim::run(config, &mut *source, &mut fanout, observer)
    };
    let outcome = outcome.map_err(run_failure)?;
    let end =
        RunEnd { ended_at: outcome.ended_at, end: outcome.end.clone(), instances: plan.instances };
    let mut report = summary.finish(&end);
    report.mechanisms.clone_from(&outcome.mechanisms);
    // Just above saturation batches and caches fill for up to a million requests before queues
    // do, so a run without a queue shows nothing.
    if plan.is_above_saturation() && report.saturation == Some(Saturation::Stable) {
        report.saturation = Some(Saturation::Growing);
    }
    let tenants = sort_tenants(&*source, &mut report);
    let audit = audit.map(|audit| {
        let mut found = audit.finish(&end);
        let numbers = check_report(&report);
        found.count += numbers.len() as u64;
        found.first.extend(numbers);
        found
    });
    Ok(RunResult { seed: trial.seed, report, outcome, tenants, audit })
}

/// Refuses a run whose samples would take more than its scenario allows. They are taken at least
/// until the last arrival.
fn check_samples(plan: &Plan, trial: Trial, observer: &mut dyn Observer) -> Result<(), RunFailure> {
    let Some(interval) = trial.sample_interval else { return Ok(()) };
    read_ahead(plan, trial, observer, |request| {
        let samples = request.arrival.as_nanos() / interval.as_nanos().max(1);
        let above = limit::of_samples(plan.instances, samples, plan.max_gb);
        above.map_or(Ok(()), |message| Err(Problem::of_file("timeline", message).into()))
    })
}

/// Tells the requests of `plan` up to its horizon before they are simulated, in order of arrival;
/// of clients who wait for answers the first ones only.
fn read_ahead(
    plan: &Plan,
    trial: Trial,
    observer: &mut dyn Observer,
    mut tell: impl FnMut(&Request) -> Result<(), RunFailure>,
) -> Result<(), RunFailure> {
    let mut source = plan.source(trial.seed)?;
    let until = plan.config(&trial).horizon.unwrap_or(Time::NEVER);
    let mut next = || source.next_request().map_err(|error| run_failure(RunError::Source(error)));
    for arrived in 0_u64.. {
        let Some(request) = next()?.filter(|request| request.arrival <= until) else { break };
        let progress = Progress { now: Time::ZERO, arrived, closed: 0 };
        if arrived % 1024 == 0 && !observer.go_on(progress) {
            return Err(RunFailure::Interrupted);
        }
        tell(&request)?;
    }
    Ok(())
}

/// What oracles are told of the requests to come. Where clients wait for answers, that is what came
/// in a run with the policy that the oracle replaces.
fn future(plan: &Plan, trial: Trial, observer: &mut dyn Observer) -> Result<Future, RunFailure> {
    let block_size = plan.engine.block_size;
    if !plan.source(trial.seed)?.is_closed_loop() {
        let mut future = Future::new(block_size);
        read_ahead(plan, trial, observer, |request| {
            future.add(&request.content);
            Ok(())
        })?;
        return Ok(future);
    }
    let mut before = plan.clone();
    before.oracles.evict = false;
    Ok(Future::recorded(&recorded(&before, trial, observer)?, block_size))
}

/// Tells all requests that arrive in a run of `plan`, in order of arrival. Where clients wait for
/// answers, they are those that arrive under its policies.
///
/// # Errors
/// If the workload cannot be read.
pub fn requests(
    plan: &Plan,
    trial: Trial,
    mut tell: impl FnMut(&Request),
) -> Result<(), RunFailure> {
    if plan.source(trial.seed)?.is_closed_loop() {
        recorded(plan, trial, &mut Unobserved)?.iter().for_each(tell);
        return Ok(());
    }
    read_ahead(plan, trial, &mut Unobserved, |request| {
        tell(request);
        Ok(())
    })
}

/// The requests that arrive in a run of `plan`.
fn recorded(
    plan: &Plan,
    trial: Trial,
    observer: &mut dyn Observer,
) -> Result<Vec<Request>, RunFailure> {
    let names = Names::with_requests();
    let mut record = Record { names: names.clone(), requests: Vec::new() };
    listen(plan, trial, &mut record, Some(names), observer)?;
    Ok(record.requests)
}

/// Runs `plan` once for `listener` alone: without a summary, so without numbers.
///
/// # Errors
/// If the workload cannot be read.
pub(crate) fn listen(
    plan: &Plan,
    trial: Trial,
    listener: &mut dyn Listener,
    names: Option<Names>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunFailure> {
    let (config, mut source) = world(plan, trial, names, observer)?;
    blis_sim::run(config, &mut *source, listener, observer).map_err(run_failure)
}

/// What a run of `plan` is made of: the cluster, and where its requests come from.
fn world(
    plan: &Plan,
    trial: Trial,
    names: Option<Names>,
    observer: &mut dyn Observer,
) -> Result<(Config, Box<dyn Source>), RunFailure> {
    let mut source = plan.source(trial.seed)?;
    if let Some(names) = names {
        source = names.of(source);
    }
    let mut config = plan.config(&trial);
    if config.policies.engine_needs.future {
        config.future = Some(future(plan, trial, observer)?);
    }
    Ok((config, source))
}

/// Keeps the requests of a run, in order of arrival.
struct Record {
    names: Names,
    requests: Vec<Request>,
}

impl Listener for Record {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if let Fact::Arrived { .. } = fact {
            self.requests.push(self.names.arrived(at));
        }
    }
}

fn run_failure(error: RunError) -> RunFailure {
    let RunError::Source(error) = error else { return RunFailure::Source(error.to_string()) };
    match error.downcast::<TraceError>() {
        // The trace knows whether its content or the reading is at fault.
        Ok(error) => trace_problem(&error).into(),
        Err(error) => RunFailure::Source(error.to_string()),
    }
}

/// Puts the tenants of `report` in the order of their names, and gives the names.
fn sort_tenants(source: &dyn Source, report: &mut Report) -> Vec<String> {
    let name = |tenant: TenantId| source.tenant_name(tenant);
    report.tenants.sort_by_cached_key(|&(tenant, _)| Natural::of(&name(tenant)));
    report.tenants.iter().map(|&(tenant, _)| name(tenant)).collect()
}

/// A name as people sort names: `tenant-9` before `tenant-10`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Natural {
    parts: Vec<(String, Option<u64>)>,
    /// Tells `a1` from `a01`.
    name: String,
}

impl Natural {
    fn of(name: &str) -> Natural {
        let mut parts = Vec::new();
        let mut rest = name;
        while !rest.is_empty() {
            let (text, digits) =
                rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
            let (number, behind) =
                digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
            let number = (!number.is_empty()).then(|| number.parse().unwrap_or(u64::MAX));
            parts.push((text.to_owned(), number));
            rest = behind;
        }
        Natural { parts, name: name.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_numbers_are_in_the_order_of_the_numbers() {
        let mut names = ["t10", "t9", "b", "t9-2", "t09", "", "t", "9", "t9-10"];
        names.sort_by_cached_key(|name| Natural::of(name));
        assert_eq!(names, ["", "9", "b", "t", "t09", "t9", "t9-2", "t9-10", "t10"]);
    }
}
