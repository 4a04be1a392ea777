//! Writing a trace and reading it are inverse.

use blis_core::{
    Content, Request, RequestId, Segment, SloClass, Source, Span, StreamId, TenantId, Time,
};
use blis_workload::{TraceOptions, TraceSource, write_request};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;

fn source(text: Vec<u8>) -> TraceSource {
    TraceSource::from_reader(Box::new(Cursor::new(text)), "t.jsonl", &TraceOptions::default())
        .expect("its format is known")
}

/// A request with the names of its tenant and session.
type Named = (Request, String, Option<String>);

/// The id of a stream that has a name.
fn named() -> impl Strategy<Value = u64> {
    0_u64..1 << 63
}

fn request() -> impl Strategy<Value = Named> {
    let content = (prop::collection::vec((named(), 1_u32..1 << 24), 1..4), named(), 1_u32..1 << 24);
    let names = (prop::option::of(".{1,4}"), ".{1,4}", prop::option::of(".{1,4}"));
    let span = || prop::option::of(1_u64..1 << 45);
    let rest = (0_u64..1 << 45, 0_usize..5, any::<u32>(), span(), span());
    (content, names, rest).prop_map(|((segments, own, output_tokens), names, rest)| {
        let (name, tenant, session) = names;
        let (gap, class, round, deadline, patience) = rest;
        let segment = |(stream, tokens)| Segment { stream: StreamId(stream), tokens };
        let request = Request {
            id: RequestId(0),
            name: name.map(Into::into),
            arrival: Time::from_nanos(gap),
            content: Content::new(segments.into_iter().map(segment), StreamId(own)),
            output_tokens,
            class: SloClass::ALL[class],
            tenant: TenantId(0),
            session: None,
            round: if session.is_some() { round } else { 0 },
            attempt: 0,
            deadline: deadline.map(Span::from_nanos),
            patience: patience.map(Span::from_nanos),
        };
        (request, tenant, session)
    })
}

/// Makes of requests whose arrivals are gaps what a trace gives: ids count up, arrivals never
/// decrease, names are unique, tenants are numbered in the order of their first use.
fn arrange(mut requests: Vec<Named>) -> Vec<Named> {
    let (mut now, mut tenants) = (0, Vec::new());
    for (index, (request, tenant, _)) in (0..).zip(&mut requests) {
        now += request.arrival.as_nanos();
        request.arrival = Time::from_nanos(now);
        request.id = RequestId(index);
        request.name = request.name.take().map(|name| format!("{name} {index}").into());
        request.tenant = TenantId(u32::try_from(number(&mut tenants, tenant)).expect("a few"));
    }
    requests
}

fn number(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

#[test]
fn a_mix_written_as_a_trace_reads_back_as_the_same_requests() {
    let mut mix = super::mix::poisson_clients(20, 500.0, 3).source();
    let (mut text, mut sent) = (Vec::new(), Vec::new());
    for _ in 0..2_000 {
        let request = mix.next_request().unwrap().expect("enough requests");
        write_request(&mut text, &request, &mix.tenant_name(request.tenant), None).unwrap();
        sent.push(request);
    }
    let mut trace = source(text);
    let mut private = BTreeSet::new();
    for request in sent {
        let again = trace.read_request().unwrap().expect("as many requests");
        assert_eq!(trace.tenant_name(again.tenant), mix.tenant_name(request.tenant));
        // A trace numbers tenants by their first request, a mix by their client.
        let content = request.content.clone();
        let (prefix, question) = (content.segments()[0], content.segments()[1]);
        let segments = again.content.segments();
        assert_eq!((segments[0], segments[1].tokens), (prefix, question.tokens));
        assert_eq!(segments[1].stream, again.content.output_stream(), "as it was in the mix");
        assert!(private.insert(segments[1].stream), "every request keeps a stream of its own");
        assert_eq!(Request { tenant: request.tenant, content, ..again }, request);
    }
    assert_eq!(trace.read_request(), Ok(None));
}

proptest! {
    #[test]
    fn reading_what_was_written_gives_the_same_requests(
        requests in prop::collection::vec(request(), 1..20).prop_map(arrange),
    ) {
        let mut text = Vec::new();
        for (request, tenant, session) in &requests {
            write_request(&mut text, request, tenant, session.as_deref()).unwrap();
        }
        let mut source = source(text);
        for (request, tenant, session) in &requests {
            let again = source.read_request().unwrap().expect("as many requests");
            prop_assert_eq!(again.session.map(|s| source.session_name(s)), session.clone());
            prop_assert_eq!(&Request { session: None, ..again }, request);
            prop_assert_eq!(&source.tenant_name(request.tenant), tenant);
        }
        prop_assert_eq!(source.read_request(), Ok(None));
    }
}
