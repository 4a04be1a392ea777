//! Sessions: conversations that grow by exactly what was said, open and closed loop.

use crate::mix::{client, mix_of};
use blis_core::math::float;
use blis_core::{Ending, Request, Segment, Source, Span, Time};
use blis_workload::{
    Activity, ActivityPart, Arrival, Client, Context, Length, Mix, OnRejection, Pacing, Sessions,
    Think,
};

const THINK: Span = Span::from_micros(500_000);

fn talker(pacing: Pacing) -> Client {
    Client {
        arrival: Arrival::Poisson,
        sessions: Some(Sessions {
            rounds: Length::Constant(4),
            think: Think::Constant(THINK),
            context: Context::Accumulate,
            pacing,
            single: false,
        }),
        ..client("talker")
    }
}

fn sessions(client: &mut Client) -> &mut Sessions {
    client.sessions.as_mut().expect("a talker has sessions")
}

fn all(mix: &Mix) -> Vec<Request> {
    mix.validate().expect("the test's mix is legal");
    let mut source = mix.source();
    std::iter::from_fn(|| source.next_request().expect("a mix cannot fail")).collect()
}

fn talk(client: Client, requests: u64) -> Mix {
    Mix { num_requests: Some(requests), ..mix_of(vec![client], 10.0) }
}

/// The rounds of each session, in the order in which sessions start.
fn by_session(requests: &[Request]) -> Vec<Vec<&Request>> {
    let mut found: Vec<Vec<&Request>> = Vec::new();
    for request in requests {
        match found.iter_mut().find(|rounds| rounds[0].session == request.session) {
            Some(rounds) => rounds.push(request),
            None => found.push(vec![request]),
        }
    }
    found
}

fn prompt(request: &Request) -> Vec<Segment> {
    request.content.segments().to_vec()
}

#[test]
fn each_round_of_a_conversation_holds_all_that_was_said_before() {
    let requests = all(&talk(talker(Pacing::Open), 400));
    let mut whole = 0;
    for rounds in by_session(&requests).iter().filter(|rounds| rounds.len() == 4) {
        whole += 1;
        for (round, pair) in (1..).zip(rounds.windows(2)) {
            let (before, after) = (pair[0], pair[1]);
            assert_eq!(after.round, round);
            assert_eq!(after.arrival.since(before.arrival), THINK);
            let [prefix, said] = prompt(before)[..] else { panic!("prefix and conversation") };
            let [same_prefix, longer] = prompt(after)[..] else { panic!("the same two") };
            assert_eq!(prefix, same_prefix);
            assert_eq!(said.stream, longer.stream);
            assert_eq!(before.content.output_stream(), said.stream);
            assert!(longer.tokens > said.tokens + before.output_tokens, "and a new question");
        }
    }
    assert!(whole >= 80, "only {whole} whole sessions");
}

#[test]
fn without_context_every_round_is_a_stream_of_its_own() {
    let mut fresh = talker(Pacing::Open);
    sessions(&mut fresh).context = Context::Fresh;
    let requests = all(&talk(fresh, 400));
    let mut streams: Vec<u64> =
        requests.iter().map(|request| prompt(request)[1].stream.0).collect();
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams.len(), 400);
}

#[test]
fn arrivals_are_sorted_and_the_rate_counts_sessions() {
    let mut talk = talk(talker(Pacing::Open), 0);
    talk.num_requests = None;
    talk.horizon = Some(Time::from_micros(400_000_000));
    let requests = all(&talk);
    assert!(requests.is_sorted_by_key(|request| request.arrival));
    // 400 s at 10 sessions a second, 4 rounds each but for the last ones.
    let mean = 16_000.0;
    let found = float(requests.len() as u64);
    assert!((found - mean).abs() < 4.0 * 4.0 * f64::sqrt(4_000.0), "{found} requests, not {mean}");
}

#[test]
fn the_number_of_requests_counts_rounds() {
    assert_eq!(all(&talk(talker(Pacing::Open), 403)).len(), 403);
}

#[test]
fn one_session_is_one_session() {
    let mut once = talker(Pacing::Open);
    sessions(&mut once).single = true;
    let requests = all(&talk(once, 1_000));
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.session == requests[0].session));
}

#[test]
fn rounds_that_fall_into_an_absence_are_not_sent_and_not_remembered() {
    let from = |micros| Time::from_micros(micros);
    let mut away = talker(Pacing::Open);
    sessions(&mut away).single = true;
    sessions(&mut away).think = Think::Constant(Span::from_micros(10_000_000));
    // Round 0 comes in the first window, round 1 in the gap, round 2 in the second window.
    away.activity = Activity {
        parts: vec![
            ActivityPart::Window { from: from(0), until: from(9_000_000) },
            ActivityPart::Window { from: from(18_000_000), until: from(29_000_000) },
        ],
    };
    let requests = all(&talk(away, 1_000));
    let rounds: Vec<u32> = requests.iter().map(|request| request.round).collect();
    assert_eq!(rounds, [0, 2]);
    let said = prompt(&requests[0])[1].tokens + requests[0].output_tokens;
    let new = prompt(&requests[1])[1].tokens - said;
    assert!(new > 0 && new <= 4_096, "{new} new tokens");
}

fn closed() -> Client {
    talker(Pacing::Closed(OnRejection::End))
}

/// Answers every request after a time that depends on the request, and returns all of them in
/// the order of arrival.
fn served(mix: &Mix, service: impl Fn(&Request) -> (Ending, Span)) -> Vec<Request> {
    mix.validate().expect("the test's mix is legal");
    let mut source = mix.source();
    assert!(source.is_closed_loop());
    let mut requests = Vec::new();
    let mut waiting: Vec<Request> = Vec::new();
    while let Some(first) = source.next_request().expect("a mix cannot fail") {
        waiting.push(first);
        while let Some(request) = waiting.pop() {
            let (ending, span) = service(&request);
            waiting.extend(source.follow_up(&request, ending, request.arrival + span));
            requests.push(request);
        }
    }
    requests.sort_by_key(|request| (request.session, request.round, request.attempt));
    requests
}

#[test]
fn a_closed_loop_round_comes_the_think_time_after_the_answer() {
    let answer = Span::from_micros(123_457);
    let requests = served(&talk(closed(), 400), |_| (Ending::Finished, answer));
    assert_eq!(requests.len(), 400);
    let mut follow_ups = 0;
    for pair in requests.windows(2).filter(|pair| pair[0].session == pair[1].session) {
        follow_ups += 1;
        assert_eq!(pair[1].round, pair[0].round + 1);
        assert_eq!(pair[1].arrival.since(pair[0].arrival), answer + THINK);
    }
    assert_eq!(follow_ups, 300);
}

#[test]
fn how_fast_the_cluster_answers_changes_nothing_but_the_time_of_later_rounds() {
    let content = |requests: &[Request]| -> Vec<(Option<_>, u32, Vec<Segment>, u32)> {
        let of = |r: &Request| (r.session, r.round, prompt(r), r.output_tokens);
        requests.iter().map(of).collect()
    };
    for requests in [400, 401, 402, 403] {
        let mix = talk(closed(), requests);
        let quick = served(&mix, |_| (Ending::Finished, Span::from_micros(10)));
        let slow = served(&mix, |r| {
            (Ending::Finished, Span::from_micros(1_000_000 * u64::from(r.output_tokens)))
        });
        assert_eq!(quick.len() as u64, requests);
        assert_eq!(content(&quick), content(&slow));
        // And the very same conversations are held open loop.
        let open = Mix { clients: vec![talker(Pacing::Open)], num_requests: None, ..mix };
        let open = Mix { horizon: Some(Time::from_micros(100_000_000)), ..open };
        let mut open = all(&open);
        open.sort_by_key(|request| (request.session, request.round));
        let of_both = content(&quick);
        let common = of_both.iter().zip(content(&open)).take(300);
        assert!(common.clone().count() == 300 && common.into_iter().all(|(a, b)| *a == b));
    }
}

#[test]
fn a_rejected_round_ends_the_session_or_is_sent_again_as_stated() {
    let wait = Span::from_micros(250_000);
    let reject_second_rounds = |request: &Request| match (request.round, request.attempt) {
        (1, 0 | 1) => (Ending::Rejected, Span::ZERO),
        _ => (Ending::Finished, Span::from_micros(10)),
    };
    let giving_up = served(&talk(closed(), 400), reject_second_rounds);
    assert_eq!(giving_up.len(), 200, "100 sessions of two rounds");

    let retrying = talker(Pacing::Closed(OnRejection::Retry { after: wait, at_most: 2 }));
    let requests = served(&talk(retrying, 400), reject_second_rounds);
    assert_eq!(requests.len(), 600, "100 sessions of four rounds, one of them sent three times");
    for pair in requests.windows(2).filter(|pair| pair[1].attempt > 0) {
        assert_eq!(pair[1].arrival.since(pair[0].arrival), wait);
        assert_eq!(prompt(&pair[1]), prompt(&pair[0]));
    }

    let impatient = talker(Pacing::Closed(OnRejection::Retry { after: wait, at_most: 1 }));
    let requests = served(&talk(impatient, 400), reject_second_rounds);
    assert_eq!(requests.len(), 300, "100 sessions of one round, and one sent twice in vain");
}

#[test]
fn sessions_may_have_a_random_number_of_rounds() {
    let mut random = closed();
    sessions(&mut random).rounds = Length::Geometric { mean: 3.0 };
    let requests = served(&talk(random, 6_000), |_| (Ending::Finished, THINK));
    assert_eq!(requests.len(), 6_000);
    let count = float(by_session(&requests).len() as u64);
    assert!((count - 2_000.0).abs() < 200.0, "{count} sessions, not 2000");
}
