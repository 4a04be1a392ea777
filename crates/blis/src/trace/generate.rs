//! `blis trace generate`: the requests of a scenario's workload as a native trace.

use crate::args::GenerateArgs;
use crate::failure::Failure;
use crate::flags::settled;
use crate::record::Sink;
use crate::record::trace::TraceFile;
use crate::target::Target;
use crate::{interrupt, output};
use blis_core::{Ending, Request, RequestId, Source};
use blis_report::text::grouped;
use blis_scenario::scenario::Workload;
use blis_scenario::{Plan, RunFailure};
use blis_workload::{After, Client, OnRejection, Pacing, TraceError};

/// Writes what `args` describe.
pub(super) fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    let draft = args.flags.draft(args.scenario.as_deref(), None)?;
    let plan = settled(&draft)?;
    if matches!(&plan.workload, Workload::Mix(mix) if mix.has_users()) {
        let message = "when users send depends on when they are answered; record a run instead: \
                       `blis run ... --trace-out FILE`";
        return Err(Failure::Input(message.to_owned()));
    }
    let target = Target::out(&args.out)?;
    let retries = "retries are not written: when the trace is replayed, rejected clients give up";
    let retries = retries_in(&plan).then(|| retries.to_owned());
    output::notes(args.quiet, plan.notes.iter().chain(&retries));
    let mut source = plan.source(plan.seed)?;
    let mut file = TraceFile::create(&target)?;
    while let Some(request) = next(&mut *source)? {
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        // Nothing arrives after the horizon of a run.
        if plan.horizon.is_some_and(|horizon| request.arrival > horizon) {
            break;
        }
        write_session(&mut file, request, &mut *source)?;
    }
    let (seed, written) = (plan.seed, file.rows());
    if written == 0 {
        let message = "no request arrives before the horizon; raise `--horizon`";
        return Err(Failure::Input(message.to_owned()));
    }
    file.finish()?;
    if !args.quiet {
        output::note(&format!("{} requests written, seed {seed}", grouped(written)));
    }
    Ok(())
}

/// Whether a client sends a request again that was turned away, which a trace cannot say.
fn retries_in(plan: &Plan) -> bool {
    let Workload::Mix(mix) = &plan.workload else { return false };
    let is_retry = |pacing: Pacing| matches!(pacing, Pacing::Closed(OnRejection::Retry { .. }));
    let retries = |client: &Client| {
        let sessions = client.sessions.as_ref();
        client.retry.is_some() || sessions.is_some_and(|sessions| is_retry(sessions.pacing))
    };
    mix.clients.iter().any(retries)
}

fn next(source: &mut dyn Source) -> Result<Option<Request>, Failure> {
    source.next_request().map_err(|error| match error.downcast::<TraceError>() {
        Ok(error) => (*error).into(),
        Err(error) => RunFailure::Source(error.to_string()).into(),
    })
}

/// Writes a request and all that its client sends because of the answers. They are asked for as if
/// every answer came at once, so that what lies between two of them is the time to think.
fn write_session(
    file: &mut TraceFile,
    first: Request,
    source: &mut dyn Source,
) -> Result<(), Failure> {
    let mut last = numbered(first, file.rows());
    file.write(&last, None, source)?;
    while let Some(next) = source.follow_up(&last, Ending::Finished, last.arrival) {
        let name = last.name.clone().unwrap_or_else(|| last.id.0.to_string().into());
        let after = After { name, think: next.arrival.since(last.arrival) };
        last = numbered(next, file.rows());
        file.write(&last, Some(&after), source)?;
    }
    Ok(())
}

/// A request whose number is its line's: that is its name, if it has no other.
fn numbered(request: Request, line: u64) -> Request {
    Request { id: RequestId(line), ..request }
}
