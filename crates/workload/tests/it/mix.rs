//! Mixes of clients: draws that nothing else disturbs, content, ends and refusals.

use blis_core::{Ending, Request, SloClass, Source, Span, Time};
use blis_workload::{
    Activity, Arrival, Client, Length, Mix, Rate, Retry, SimpleLength, SimpleWorkload,
};

pub(crate) fn client(name: &str) -> Client {
    Client {
        name: name.to_owned(),
        tenant: format!("tenant of {name}"),
        class: SloClass::Critical,
        share: 1.0,
        arrival: Arrival::Gamma { cv: 3.5 },
        prefix_group: Some("shared".to_owned()),
        prefix_tokens: 512,
        input: Length::Gaussian { mean: 256.0, std_dev: 100.0, min: 1, max: 4_096 }.into(),
        output: Length::Exponential { mean: 128.0, min: 1, max: 4_096 },
        activity: Activity::default(),
        sessions: None,
        deadline: None,
        patience: None,
        retry: None,
    }
}

pub(crate) fn mix_of(clients: Vec<Client>, rate_per_sec: f64) -> Mix {
    Mix {
        clients,
        rate: Rate::Steady(rate_per_sec),
        num_requests: Some(1_000_000_000),
        horizon: None,
        seed: 42,
        in_turn: false,
    }
}

pub(crate) fn poisson_clients(clients: u32, rate_per_sec: f64, seed: u64) -> Mix {
    let client = |index: u32| Client {
        arrival: Arrival::Poisson,
        share: 1.0 + f64::from(index),
        ..client(&index.to_string())
    };
    Mix { seed, ..mix_of((0..clients).map(client).collect(), rate_per_sec) }
}

pub(crate) fn take(mix: &Mix, requests: usize) -> Vec<Request> {
    mix.validate().expect("a legal mix");
    let mut source = mix.source();
    let next = || source.next_request().expect("a mix does not fail");
    std::iter::from_fn(next).take(requests).collect()
}

/// What must not change when other clients do: all but the place in the common order.
fn of_tenant(requests: &[Request], tenant: u32) -> Vec<Request> {
    let own = requests.iter().filter(|request| request.tenant.0 == tenant);
    own.map(|request| Request { id: blis_core::RequestId(0), ..request.clone() }).collect()
}

#[test]
fn a_clients_output_lengths_change_nothing_else() {
    let before = mix_of(vec![client("a"), client("b"), client("c")], 300.0);
    let mut after = before.clone();
    after.clients[1].output = Length::Gaussian { mean: 9.0, std_dev: 5.0, min: 1, max: 99 };
    let (before, after) = (take(&before, 5_000), take(&after, 5_000));
    for (old, new) in before.iter().zip(&after) {
        let same_but_output = Request { output_tokens: old.output_tokens, ..new.clone() };
        assert_eq!(*old, same_but_output);
        assert!(old.tenant.0 == 1 || old.output_tokens == new.output_tokens);
    }
    assert_ne!(before, after);
}

#[test]
fn adding_a_client_leaves_the_requests_of_the_others_as_they_were() {
    // The total rate grows with the client, so that the rates of the others stay: 64 requests a
    // second each.
    let small = mix_of(vec![client("a"), client("b")], 128.0);
    let mut large = mix_of(vec![client("a"), client("b"), client("c"), client("d")], 256.0);
    large.clients[2].prefix_group = Some("another".to_owned());
    let (small, large) = (take(&small, 2_000), take(&large, 5_000));
    for tenant in [0, 1] {
        let (before, after) = (of_tenant(&small, tenant), of_tenant(&large, tenant));
        let both = before.len().min(after.len());
        assert!(both > 500, "a test of something: {both}");
        assert_eq!(before[..both], after[..both]);
    }
}

#[test]
fn scanning_few_clients_and_the_heap_of_many_give_the_same_requests() {
    let few = poisson_clients(16, 100.0, 1);
    let mut many = few.clone();
    many.clients.push(Client { share: 1e-12, ..client("never") });
    let bare = |mix: &Mix| -> Vec<(u64, u32, u32)> {
        let row = |r: &Request| (r.arrival.as_nanos(), r.tenant.0, r.output_tokens);
        take(mix, 3_000).iter().map(row).collect()
    };
    for ((few, a, x), (many, b, y)) in bare(&few).into_iter().zip(bare(&many)) {
        // The 17th client's share is far below the precision of the rates of the others.
        assert!(few.abs_diff(many) <= 1 && (a, x) == (b, y), "{few} and {many}");
    }
}

#[test]
fn pulling_one_by_one_gives_what_a_second_source_gives() {
    let mix = poisson_clients(20, 100.0, 9);
    let collected = take(&mix, 500);
    let mut source = mix.source();
    let _pause = take(&poisson_clients(3, 10.0, 9), 100);
    for expected in &collected {
        assert_eq!(source.next_request().unwrap().as_ref(), Some(expected));
    }
}

#[test]
fn arrivals_never_decrease_and_ids_count_from_zero() {
    let requests = take(&poisson_clients(30, 1e7, 4), 20_000);
    assert!(requests.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
    assert!((0..).zip(&requests).all(|(id, request)| request.id.0 == id));
}

#[test]
fn shares_divide_the_rate() {
    let mut mix = mix_of(vec![client("a"), client("b")], 1_000.0);
    mix.clients[0].share = 3.0;
    for client in &mut mix.clients {
        client.arrival = Arrival::Constant;
    }
    let requests = take(&mix, 4_000);
    assert_eq!(of_tenant(&requests, 0).len(), 3_000);
    assert_eq!(requests[3_999].arrival, Time::from_micros(4_000_000));
}

#[test]
fn prompts_share_their_groups_stream_and_nothing_else() {
    let mut mix = mix_of(vec![client("a"), client("b"), client("c")], 300.0);
    mix.clients[1].prefix_tokens = 64;
    mix.clients[2].prefix_group = None;
    mix.clients[2].prefix_tokens = 0;
    let requests = take(&mix, 3_000);
    let mut own: Vec<_> = requests.iter().map(|r| r.content.output_stream()).collect();
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), requests.len(), "every request has a stream of its own");
    for request in &requests {
        let segments = request.content.segments();
        let (prefix, question) = segments.split_at(segments.len() - 1);
        assert_eq!(question[0].stream, request.content.output_stream());
        assert!(question[0].stream.0 >= 1 << 63);
        let expected = [&[512][..], &[64], &[]][request.tenant.0 as usize];
        assert_eq!(prefix.iter().map(|segment| segment.tokens).collect::<Vec<_>>(), expected);
        assert!(prefix.iter().all(|segment| segment.stream.0 == 0), "one group, one stream");
    }
}

#[test]
fn a_source_ends_at_its_number_of_requests_or_before_its_horizon() {
    let mut mix = mix_of(vec![Client { arrival: Arrival::Constant, ..client("a") }], 10.0);
    mix.num_requests = Some(25);
    assert_eq!(mix.source().expected(), Some(25));
    assert_eq!(take(&mix, 1_000).len(), 25);
    mix.horizon = Some(Time::from_micros(1_000_000));
    assert_eq!(mix.source().expected(), None);
    assert_eq!(take(&mix, 1_000).len(), 9, "the tenth arrives at the horizon");
    mix.num_requests = None;
    assert_eq!(take(&mix, 1_000).len(), 9);
}

#[test]
fn a_client_that_retries_sends_the_same_again_after_waits_that_double() {
    let patient = Retry { at_most: 2, backoff: Span::from_micros(500) };
    let retrying = Client { retry: Some(patient), ..client("b") };
    let mix = mix_of(vec![client("a"), retrying], 300.0);
    assert!(mix.is_closed_loop() && mix.expected().is_none());
    let plain = take(&mix_of(vec![client("a"), client("b")], 300.0), 100);
    assert_eq!(plain, take(&mix, 100), "what is sent first does not change");
    let mut source = mix.source();
    for request in plain {
        let now = request.arrival + Span::from_micros(10);
        let mut again = |request: &Request, ending| source.follow_up(request, ending, now);
        assert_eq!(again(&request, Ending::Finished), None);
        assert_eq!(again(&request, Ending::Unservable), None);
        let Some(second) = again(&request, Ending::Rejected) else {
            assert_eq!(request.tenant.0, 0, "only the other client gives up");
            continue;
        };
        assert_eq!(request.tenant.0, 1);
        let sent = |wait, attempt| {
            Some(Request { arrival: now + Span::from_micros(wait), attempt, ..request.clone() })
        };
        assert_eq!(Some(&second), sent(500, 1).as_ref());
        let third = again(&second, Ending::Rejected);
        assert_eq!(third, sent(1_000, 2));
        assert_eq!(again(&third.expect("it is"), Ending::Rejected), None);
    }
}

#[test]
fn a_rate_too_low_to_finish_is_refused() {
    let mut mix = mix_of(vec![Client { arrival: Arrival::Constant, ..client("a") }], 0.01);
    mix.num_requests = Some(4_000_000);
    assert_eq!(
        mix.validate().expect_err("12 years").to_string(),
        "field `rate`: found 4000000 requests at 0.01 requests per second; \
         legal: a rate at which all requests arrive within ten years, or a horizon"
    );
    mix.horizon = Some(Time::from_micros(1));
    assert!(mix.validate().is_ok(), "the horizon ends it");
}

#[test]
fn random_arrivals_that_exceed_ten_years_end_there() {
    // Expected within eight years; gamma gaps of CV 100 are mostly tiny, and rarely enormous.
    let bursty = Client { arrival: Arrival::Gamma { cv: 100.0 }, ..client("a") };
    let mut short = 0;
    for seed in 0..50 {
        let mut mix = Mix { seed, ..mix_of(vec![bursty.clone()], 4e-7) };
        mix.num_requests = Some(100);
        let requests = take(&mix, 1_000);
        let last = requests.last().map_or(0, |request| request.arrival.as_nanos());
        assert!(last <= Span::LONGEST.as_nanos());
        short += u32::from(requests.len() < 100);
    }
    assert!(short > 0, "a test of something");
}

#[test]
fn the_simple_workload_is_one_client_with_a_common_prefix() {
    let mut simple = SimpleWorkload {
        rate: Rate::Steady(4.0),
        num_requests: Some(8),
        horizon: None,
        seed: 42,
        arrival: Arrival::Constant,
        prefix_tokens: 100,
        prompt: SimpleLength { mean: 512.0, std_dev: 0.0, min: 2, max: 7_000 },
        output: SimpleLength { mean: 512.0, std_dev: 256.0, min: 2, max: 600 },
    };
    let mix = Mix::simple(simple.clone());
    let requests = take(&mix, 100);
    assert_eq!(requests.len(), 8);
    assert_eq!(mix.source().tenant_name(requests[0].tenant), "default");
    for request in &requests {
        assert_eq!((request.class, request.content.prompt_tokens()), (SloClass::Standard, 612));
        assert!((2..=600).contains(&request.output_tokens));
    }
    assert_eq!(requests[7].arrival.since(requests[3].arrival), Span::from_micros(1_000_000));
    simple.prefix_tokens = 0;
    assert_eq!(take(&Mix::simple(simple), 1)[0].content.segments().len(), 1);
}

#[test]
fn illegal_mixes_are_refused_with_the_path_of_the_field() {
    let legal = mix_of(vec![client("a"), client("b"), client("c")], 100.0);
    let check = |change: &dyn Fn(&mut Mix), message: &str| {
        let mut mix = legal.clone();
        change(&mut mix);
        assert_eq!(mix.validate().expect_err(message).to_string(), message);
    };
    check(&|mix| mix.clients.clear(), "field `clients`: found 0; legal: from 1 to 1048576 clients");
    check(
        &|mix| mix.clients[2].arrival = Arrival::Gamma { cv: -1.0 },
        "field `clients[2].arrival.cv`: found -1; legal: a number from 0.01 to 100",
    );
    check(
        &|mix| mix.clients[1].output = Length::Geometric { mean: 0.0 },
        "field `clients[1].output.mean`: found 0; legal: a number from 1 to 1073741824",
    );
    for share in ["0", "-1", "NaN", "inf"] {
        check(
            &|mix| mix.clients[0].share = share.parse().unwrap(),
            &format!(
                "field `clients[0].share`: found {share}; legal: a number above 0, at most 1e12"
            ),
        );
    }
    check(
        &|mix| mix.clients[0].prefix_group = None,
        "field `clients[0].prefix_tokens`: found 512; \
         legal: 0, or name the prefix_group whose tokens they are",
    );
    check(
        &|mix| mix.clients[0].tenant.clear(),
        "field `clients[0].tenant`: found an empty name; legal: a name, e.g. `default`",
    );
    check(
        &|mix| mix.rate = Rate::Steady(f64::INFINITY),
        "field `rate`: found inf; legal: a number from 0.000000001 to 1000000000",
    );
    check(
        &|mix| mix.num_requests = Some(0),
        "field `num_requests`: found 0; legal: a whole number from 1 to 1000000000000",
    );
    check(
        &|mix| mix.num_requests = None,
        "field `num_requests`: found neither a number of requests nor a horizon; \
         legal: one of the two: else the workload never ends",
    );
    check(
        &|mix| mix.horizon = Some(Time::ZERO),
        "field `horizon`: found 0 ns; legal: from 1 ns to 315360000000000000 ns (ten years)",
    );
}
