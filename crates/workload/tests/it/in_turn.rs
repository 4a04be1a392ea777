//! The load of a benchmark tool: questions in turn, and stages that are drained.

use crate::mix::{client, mix_of, take};
use blis_core::{Ending, Request, Segment, Source, Span, Time};
use blis_workload::{Arrival, Client, Length, Mix, Rate};

/// Three clients, of which two share a prefix, in stages of 10 and 20 requests per second.
fn tool() -> Mix {
    let one = |(name, group): (&str, &str)| Client {
        arrival: Arrival::Constant,
        prefix_group: Some(group.to_owned()),
        input: Length::Constant(40).into(),
        output: Length::Constant(4),
        ..client(name)
    };
    let clients = [("a", "left"), ("b", "left"), ("c", "right")].map(one).to_vec();
    let steps = [(10.0, 1.05), (20.0, 1.0), (0.0, 0.0)];
    let rate = Rate::steps(steps.map(|(rate, s)| (rate, Span::from_secs_f64(s))));
    Mix { rate, num_requests: None, in_turn: true, ..mix_of(clients, 1.0) }
}

fn prompt(request: &Request) -> Vec<Segment> {
    request.content.segments().to_vec()
}

#[test]
fn every_question_is_asked_again_in_the_same_order_and_answers_are_new() {
    let steady = Mix { rate: Rate::Steady(10.0), num_requests: Some(9), ..tool() };
    let all = take(&steady, 99);
    assert_eq!(all.len(), 9);
    for (first, again) in all.iter().zip(&all[3..]) {
        assert_eq!(prompt(first), prompt(again));
        assert_ne!(first.content.output_stream(), again.content.output_stream());
        assert_eq!(again.arrival, first.arrival + Span::from_secs_f64(0.3), "at the rate of all");
    }
    let mut questions: Vec<_> = all[..3].iter().map(|one| prompt(one)[1].stream).collect();
    questions.sort_unstable();
    questions.dedup();
    assert_eq!(questions.len(), 3, "everybody has a question of its own");
    let orders = (0..20).map(|seed| take(&Mix { seed, ..steady.clone() }, 3));
    let orders = orders.map(|all| all.iter().map(|one| one.tenant.0).collect::<Vec<_>>());
    assert!(orders.collect::<std::collections::BTreeSet<_>>().len() > 3, "the order is shuffled");
    assert!(!steady.source().has_private_streams() && !steady.is_closed_loop());
}

#[test]
fn a_stage_begins_when_the_one_before_is_answered() {
    let mix = tool();
    assert!(mix.is_closed_loop());
    let mut source = mix.source();
    let mut next = |ended: &[Request], at: u64| {
        for request in ended {
            let ended = source.follow_up(request, Ending::Finished, Time::from_micros(at));
            assert!(ended.is_none());
        }
        let next = || source.next_request().expect("a mix cannot fail");
        let sent: Vec<Request> = std::iter::from_fn(next).collect();
        (sent, source.is_waiting())
    };
    let (first, waits) = next(&[], 0);
    assert!((first.len(), waits) == (10, true), "{first:?}");
    assert!(next(&first[1..], 4_000_000).0.is_empty(), "one is not answered");
    let (second, waits) = next(&first[..1], 5_000_000);
    assert!((second.len(), waits) == (20, false), "{}", second.len());
    // Half a gap of the first stage was left when it ended.
    let begins = second[0].arrival.since(Time::from_micros(5_000_000)).as_secs_f64();
    assert!((begins - 0.025).abs() < 1e-6, "{begins}");
    assert_eq!(mix.source().stages(), [vec![0; 10], vec![1; 20]].concat());
}
