//! Users: so many at most have a request under way, and each goes on when it is answered.

use crate::mix::{client, mix_of};
use blis_core::{Ending, Request, Source, Span, Time};
use blis_workload::{
    Activity, ActivityPart, Client, Context, Length, Mix, OnRejection, Pacing, Rate, Sessions,
    Think, Users,
};

const THINK: Span = Span::from_micros(300);
const ANSWER: Span = Span::from_micros(1_000);

fn users(clients: Vec<Client>, count: u32, ramp: Span) -> Mix {
    let rate = Rate::Users(Users { count, think: Think::Constant(THINK), ramp });
    Mix { rate, num_requests: Some(100), ..mix_of(clients, 1.0) }
}

fn talker(pacing: Pacing) -> Client {
    let (rounds, think) = (Length::Constant(4), Think::Constant(Span::from_micros(50)));
    let sessions = Sessions { rounds, think, context: Context::Accumulate, pacing, single: false };
    Client { sessions: Some(sessions), ..client("talker") }
}

/// All requests in order of arrival, where each is answered after [`ANSWER`]; and how many were
/// under way at most.
fn answered(mix: &Mix) -> (Vec<Request>, usize) {
    mix.validate().expect("the test's mix is legal");
    let mut source = mix.source();
    assert!(source.is_closed_loop());
    let mut coming: Vec<Request> = Vec::new();
    let first = |source: &mut dyn Source| source.next_request().expect("a mix cannot fail");
    coming.extend(std::iter::from_fn(|| first(&mut source)));
    let (mut sent, mut under_way, mut most) = (Vec::new(), Vec::new(), 0);
    while !coming.is_empty() {
        coming.sort_by_key(|request: &Request| request.arrival);
        let next = coming.remove(0);
        under_way.retain(|&end: &Time| end > next.arrival);
        under_way.push(next.arrival + ANSWER);
        most = most.max(under_way.len());
        coming.extend(source.follow_up(&next, Ending::Finished, next.arrival + ANSWER));
        sent.push(next);
    }
    (sent, most)
}

#[test]
fn as_many_requests_are_under_way_as_there_are_users() {
    let (sent, most) = answered(&users(vec![client("a")], 7, Span::ZERO));
    assert_eq!((sent.len(), most), (100, 7));
    let turn = (ANSWER + THINK).as_nanos();
    for (index, request) in (0_u64..).zip(&sent) {
        assert_eq!(request.arrival.as_nanos(), index / 7 * turn, "the {index}th");
    }
    let mut open = mix_of(vec![client("a")], 1.0).source();
    for request in &sent {
        let same = open.next_request().expect("a mix cannot fail").expect("as many");
        assert_eq!((&same.content, same.output_tokens), (&request.content, request.output_tokens));
    }
}

#[test]
fn users_come_one_after_the_other_within_the_ramp() {
    let (sent, most) = answered(&users(vec![client("a")], 4, Span::from_micros(4_000)));
    let joins: Vec<u64> = sent.iter().map(|r| r.arrival.as_nanos() / 1_000).take(4).collect();
    assert_eq!(joins, [0, 1_000, 1_300, 2_000], "the first comes again before the third");
    assert_eq!((sent.len(), most), (100, 4));
}

#[test]
fn a_user_ends_its_session_before_it_begins_another() {
    let (sent, most) = answered(&users(vec![talker(Pacing::Closed(OnRejection::End))], 3, THINK));
    assert_eq!((sent.len(), most), (100, 3));
    let mut open: Vec<(_, u32)> = Vec::new();
    for request in &sent {
        open.retain(|(session, round)| *session != request.session || *round + 1 < request.round);
        if request.round < 3 {
            open.push((request.session, request.round));
        }
        assert!(open.len() <= 3, "{open:?}");
    }
}

#[test]
fn a_user_who_is_turned_away_does_not_come_back_at_once() {
    let mix = users(vec![client("a")], 1, Span::ZERO);
    for (ending, wait) in
        [(Ending::Finished, THINK), (Ending::Rejected, Span::from_micros(1_000_000))]
    {
        let mut source = mix.source();
        let first = source.next_request().expect("a mix cannot fail").expect("one user");
        let next = source.follow_up(&first, ending, first.arrival).expect("it goes on");
        assert_eq!(next.arrival.since(first.arrival), wait, "{ending:?}");
    }
}

#[test]
fn what_users_cannot_do_is_refused() {
    let refused = |clients| users(clients, 3, THINK).validate().expect_err("refused").to_string();
    let open = refused(vec![talker(Pacing::Open)]);
    assert!(open.contains("clients[0].sessions") && open.contains("wait for answers"), "{open}");
    let window = ActivityPart::Window { from: Time::ZERO, until: Time::from_micros(9) };
    let leaving = Client { activity: Activity { parts: vec![window] }, ..client("a") };
    let leaving = refused(vec![leaving]);
    assert!(leaving.contains("clients[0].activity"), "{leaving}");
    let none = users(vec![client("a")], 0, THINK).validate().expect_err("refused").to_string();
    assert!(none.contains("a whole number from 1 to 1000000"), "{none}");
    let endless = Mix { num_requests: None, ..users(vec![client("a")], 3, THINK) };
    assert!(endless.validate().is_err(), "it never ends");
    assert!(Mix { horizon: Some(Time::from_micros(9)), ..endless }.validate().is_ok());
}
