//! `blis trace inspect`: what a trace looks like.

use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::show;
use crate::trace::input;
use blis_core::{Ending, Request, Source, Time};
use blis_report::trace::{Inspected, document};
use blis_workload::{Inspector, TraceSource};
use std::collections::BTreeMap;

/// Prints what the trace of `args` looks like.
pub(super) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let mut source = input::open(&args.input)?;
    let mut inspector =
        if args.no_sharing { Inspector::new() } else { Inspector::with_sharing(args.block_size) };
    let follow_ups = feed(&mut source, &mut inspector)?;
    let name = input::name(&args.input);
    let inspected = Inspected { name, source, found: inspector.finish(), follow_ups };
    show::print(&document(&inspected), args.format)
}

/// Shows all requests to the inspector in order of arrival. Those that wait for an answer arrive as
/// if every answer came at once; the value is how many there are.
fn feed(source: &mut TraceSource, inspector: &mut Inspector) -> Result<u64, Failure> {
    let mut follow_ups = 0;
    let mut later: BTreeMap<(Time, u64), Request> = BTreeMap::new();
    let mut first = source.read_request()?;
    loop {
        let arrival = first.as_ref().map_or(Time::NEVER, |request| request.arrival);
        let due = later.first_entry().filter(|entry| entry.key().0 < arrival);
        let request = if let Some(entry) = due {
            entry.remove()
        } else {
            let Some(request) = first else { return Ok(follow_ups) };
            first = source.read_request()?;
            request
        };
        inspector.see(&request);
        if let Some(next) = source.follow_up(&request, Ending::Finished, request.arrival) {
            later.insert((next.arrival, follow_ups), next);
            follow_ups += 1;
        }
    }
}
