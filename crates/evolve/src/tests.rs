//! Tests of what breeding promises: legal formulas, the same for the same seed, and simplification
//! that leaves decisions alone.

use crate::breed::Breeder;
use crate::genome::{Genome, Part, Space};
use crate::race::{Arena, Budget, race};
use crate::simplify::simplify;
use blis_core::math::float;
use blis_core::random::Purpose;
use blis_core::{Content, Dice, InstanceId, RequestId, RequestView, Segment, SloClass, StreamId};
use blis_core::{TenantId, Time};
use blis_policy::formula::signals::{Facts, Moment, Role};
use blis_policy::formula::syntax::Expr;
use blis_policy::formula::{Formula, Scratch};
use blis_policy::spec::Cluster;
use blis_policy::view::InstanceView;

fn space() -> Space {
    let options = ["fcfs", "priority-fcfs"].map(str::to_owned).to_vec();
    let parts = vec![Part { field: "scheduler".to_owned(), options }];
    Space { gate: true, priority: true, parts, size: 24, ..Space::default() }
}

/// Some generations without selection.
fn lines(seed: u64, count: usize) -> Vec<Genome> {
    let space = space();
    let mut breeder = Breeder::new(&space, seed);
    let mut all: Vec<Genome> = (0..20).filter_map(|_| breeder.random()).collect();
    for at in 0..count {
        let (one, other) = (&all[at % all.len()], &all[(7 * at + 3) % all.len()]);
        if let Some((child, _)) = breeder.child(one, other) {
            all.push(child);
        }
    }
    all
}

#[test]
fn no_bred_formula_is_refused_by_the_checker_and_few_draws_are() {
    let mut seen = [0; 3];
    for genome in lines(1, 2_000) {
        for (role, formula) in genome.formulas() {
            let text = formula.to_string();
            let read = Formula::read(role, &text);
            assert!(read.is_ok(), "{text}: {:?}", read.err());
            seen[role as usize] += 1;
        }
        assert!(genome.size() <= 24, "{}", genome.text(&space()));
    }
    assert!(seen.iter().all(|&count| count > 300), "{seen:?}");
    let space = space();
    let mut breeder = Breeder::new(&space, 2);
    assert!((0..500).all(|_| breeder.random().is_some()));
    let (drawn, refused) = breeder.drawn();
    assert!(4 * refused < drawn, "{refused} of {drawn}");
}

#[test]
fn the_same_seed_breeds_the_same_line() {
    assert_eq!(lines(3, 300), lines(3, 300));
    assert_ne!(lines(3, 300), lines(4, 300));
}

#[test]
fn formulas_that_rank_alike_are_one() {
    for (text, simple) in [
        ("-uncached_tokens * (in_flight + 1)", "-uncached_tokens * (in_flight + 1)"),
        ("3 - 2 * (1 + in_flight) * uncached_tokens", "-uncached_tokens * (in_flight + 1)"),
        ("-load - load", "-load"),
        ("input_tokens - load * input_tokens", "-load"),
        ("1 / (in_flight + 1)", "-in_flight"),
        ("prefer_low(2 * in_flight + 1) * 3", "-in_flight"),
        ("log(cached_tokens + 1)", "cached_tokens"),
        ("0.5 * waiting + running + mean(load)", "running + 0.5 * waiting"),
        ("if(waiting >= 0, -load, load)", "-load"),
        ("min(load, load, 3 + 4)", "min(load, 7)"),
    ] {
        let expr = Expr::read(text).expect(text);
        assert_eq!(simplify(Role::Scorer, &expr).to_string(), simple, "{text}");
    }
    for (text, simple) in [
        ("not (waiting < 3)", "waiting >= 3"),
        ("3 > waiting", "waiting < 3"),
        ("waiting < 3 or waiting < 3 or 1 < 0", "waiting < 3"),
        ("waiting >= 0 and load < 4", "load < 4"),
        ("waiting < 3 or load >= 0", "0 < 1"),
    ] {
        let expr = Expr::read(text).expect(text);
        assert_eq!(simplify(Role::Gate, &expr).to_string(), simple, "{text}");
    }
}

#[test]
fn the_numbers_of_a_part_are_bred_too() {
    let options = vec!["priority-fcfs[aging=2,cap=0.5]".to_owned()];
    let parts = vec![Part { field: "scheduler".to_owned(), options }];
    let space = Space { parts, size: 24, ..Space::default() };
    let mut breeder = Breeder::new(&space, 7);
    let first = breeder.random().expect("legal");
    let mut line = vec![first.clone()];
    for _ in 0..200 {
        let one = line.last().expect("one").clone();
        line.extend(breeder.child(&one, &first).map(|(child, _)| child));
    }
    let all: std::collections::BTreeSet<&str> =
        line.iter().map(|one| one.parts[0].as_str()).collect();
    assert!(all.len() > 20, "{all:?}");
    for part in all {
        let numbers = part.strip_prefix("priority-fcfs[aging=").and_then(|it| it.strip_suffix(']'));
        let (aging, cap) = numbers.and_then(|it| it.split_once(",cap=")).expect(part);
        assert!(aging.parse::<u64>().is_ok() && cap.parse::<f64>().is_ok(), "{part}");
    }
}

/// Instances in all sorts of states.
fn instances(dice: &mut Dice) -> Vec<InstanceView> {
    let view = |id: u32| {
        let mut count = |most: usize| u32::try_from(dice.below(most)).expect("small");
        let (queue_depth, running) = (count(6), count(30));
        InstanceView {
            queue_depth,
            running,
            in_flight: queue_depth + running + count(3),
            unseen: count(3),
            in_flight_tokens: u64::from(count(20_000)),
            unstarted_tokens: u64::from(count(4_000)),
            waiting_by_class: [queue_depth, 0, 0, 0, 0],
            kv_utilization: f64::from(count(101)) / 100.0,
            ..InstanceView::idle(InstanceId(id), count(100))
        }
    };
    (0..6).map(view).collect()
}

/// The values of a formula with these instances, of which some have blocks of the prompt.
fn values(
    role: Role,
    expr: &Expr,
    views: &[InstanceView],
    hits: &[f64],
    class: SloClass,
) -> Vec<f64> {
    let formula = Formula::read(role, &expr.to_string()).expect("legal");
    let segments = (1..=8).map(|stream| Segment { stream: StreamId(stream), tokens: 16 });
    let prompt = Content::new(segments, StreamId(u64::MAX));
    let request = RequestView {
        id: RequestId(0),
        arrival: Time::ZERO,
        input_tokens: prompt.prompt_tokens(),
        prompt_blocks: prompt.prompt_blocks(16),
        class,
        tenant: TenantId(0),
        session: None,
        round: 1,
        attempt: 0,
        deadline: None,
    };
    let facts = Facts::new(&Cluster::SMALL);
    let now = Time::ZERO;
    let moment =
        Moment { request: &request, now, facts: &facts, instances: views, hits, waiting: None };
    let mut out = vec![0.0; views.len()];
    formula.each(&moment, &mut Scratch::new(), &mut out);
    let sign = if formula.is_negated() { -1.0 } else { 1.0 };
    out.iter().map(|value| sign * value).collect()
}

/// How far `a` and `b` are apart, for numbers of this size.
fn close(a: f64, b: f64, size: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + size)
}

#[test]
fn simplification_preserves_decisions() {
    let space = space();
    let mut dice = Dice::new(5, Purpose::Sampling, 0);
    let (mut changed, mut shorter, mut apart, mut refusals) = (0, 0, 0, 0);
    for seed in 0..2_000 {
        let mut breeder = Breeder::new(&space, seed);
        let role = if seed % 3 == 0 { Role::Gate } else { Role::Scorer };
        let Some(expr) = breeder.formula(role) else { continue };
        let simple = simplify(role, &expr);
        changed += usize::from(simple != expr);
        shorter += usize::from(simple.to_string().len() < expr.to_string().len());
        for _ in 0..8 {
            let (views, class) = (instances(&mut dice), SloClass::ALL[dice.below(5)]);
            let hits: Vec<f64> = (0..6).map(|_| [0.0, 0.0, 3.0, 8.0][dice.below(4)]).collect();
            let before = values(role, &expr, &views, &hits, class);
            let after = values(role, &simple, &views, &hits, class);
            if role == Role::Gate {
                assert_eq!(before, after, "{expr} is not {simple}");
                refusals += usize::from(before[0] < 0.5);
                continue;
            }
            // Whoever is best after was best before, and all that were best still are.
            let best = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let size = |values: &[f64]| values.iter().map(|it| it.abs()).fold(0.0, f64::max);
            for (at, (&old, &new)) in before.iter().zip(&after).enumerate() {
                let was = close(old, best(&before), size(&before));
                let is = close(new, best(&after), size(&after));
                assert_eq!(was, is, "instance {at}: {expr} is not {simple}: {before:?} {after:?}");
                apart += usize::from(!was);
            }
        }
    }
    // The rare cases did occur.
    assert!(changed > 500 && shorter > 300, "{changed} changed, {shorter} shorter");
    assert!(apart > 10_000 && refusals > 500, "{apart} decisions, {refusals} refusals");
}

/// Scores are the share of decisions that differ from those of `target`, and luck.
struct Guess {
    target: Expr,
    moments: Vec<(Vec<InstanceView>, Vec<f64>)>,
    /// The most that luck makes of one seed.
    luck: f64,
    scores: Vec<(usize, f64)>,
}

impl Guess {
    fn new(seed: u64, luck: f64) -> Guess {
        let mut dice = Dice::new(8, Purpose::Sampling, seed);
        let mut moment = || {
            let views = instances(&mut dice);
            let hits = (0..6).map(|_| [0.0, 0.0, 3.0, 7.0][dice.below(4)]).collect();
            (views, hits)
        };
        let moments = (0..60).map(|_| moment()).collect();
        let target = Expr::read("-uncached_tokens * (in_flight + 1)").expect("legal");
        Guess { target, moments, luck, scores: Vec::new() }
    }

    fn of(&self, genome: &Genome) -> f64 {
        let choice = |expr: &Expr, (views, hits): &(Vec<InstanceView>, Vec<f64>)| {
            let values = values(Role::Scorer, expr, views, hits, SloClass::Standard);
            (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]))
        };
        let others = self.moments.iter();
        let others = others.filter(|it| choice(&genome.score, it) != choice(&self.target, it));
        float(others.count() as u64) / float(self.moments.len() as u64)
    }
}

impl Arena for Guess {
    type Failure = ();

    fn takes(&self, _: &Genome) -> bool {
        true
    }

    fn look(&mut self, who: &[(usize, &Genome)]) -> Result<Vec<(f64, f64)>, ()> {
        Ok(who.iter().map(|(_, genome)| (0.0, self.of(genome))).collect())
    }

    fn measure(&mut self, who: &[(usize, &Genome)], have: usize, seeds: usize) -> Result<(), ()> {
        for (one, genome) in who {
            let score = self.of(genome);
            let mut dice = Dice::new(9, Purpose::Sampling, *one as u64);
            let luck = (0..seeds).map(|_| self.luck * (dice.unit() - 0.5)).skip(have);
            self.scores.extend(luck.map(|luck| (*one, score + luck)));
        }
        Ok(())
    }

    fn score(&self, one: usize, seeds: usize) -> f64 {
        let own = self.scores.iter().filter(|(other, _)| *other == one);
        let own: Vec<f64> = own.map(|it| it.1).take(seeds).collect();
        own.iter().sum::<f64>() / float(own.len() as u64)
    }

    fn broken(&self, _: usize) -> f64 {
        0.0
    }

    fn same(&self, _: usize, _: usize) -> bool {
        false
    }
}

#[test]
fn a_race_finds_a_product_of_two_signals_with_any_seed() {
    let space = Space { size: 20, ..Space::default() };
    let (mut random, mut bred) = (0.0, 0.0);
    for seed in 1..=5 {
        let mut guess = Guess::new(seed, 0.0);
        let budget =
            Budget { population: 24, generations: 6, seeds: 1, climbs: 24, seed, parsimony: 0.002 };
        let raced = race(&mut guess, &space, budget, 1).expect("it runs");
        let best = &raced.entrants[raced.finalists[0]];
        assert!(best.score < 0.15, "seed {seed}: {} of {}", best.score, best.genome.text(&space));
        random += raced.entrants[raced.best[0]].score;
        bred += best.score;
    }
    assert!(bred < 0.5 * random, "{bred} bred, {random} at random");
}

#[test]
fn who_leads_by_luck_is_given_more_seeds_and_falls_back() {
    let space = Space { size: 12, ..Space::default() };
    let mut guess = Guess::new(1, 0.6);
    let budget =
        Budget { population: 8, generations: 2, seeds: 1, climbs: 24, seed: 1, parsimony: 0.002 };
    let raced = race(&mut guess, &space, budget, 16).expect("it runs");
    let one_seed = |one: usize| guess.score(one, 1);
    let first = raced.finalists[0];
    let luckier = (0..raced.entrants.len()).filter(|&one| one_seed(one) < one_seed(first));
    assert!(luckier.count() > 0, "others looked better with one seed");
    assert!(raced.finalists.iter().all(|&one| raced.entrants[one].seeds == 16));
    let truth = |one: usize| guess.of(&raced.entrants[one].genome);
    assert!(truth(first) < 0.2, "{}", raced.entrants[first].genome.text(&space));
}

#[test]
fn neighbours_are_legal_and_different_and_each_is_there_once() {
    let space = space();
    let mut breeder = Breeder::new(&space, 6);
    for genome in lines(6, 50) {
        let all = breeder.neighbours(&genome);
        assert!(all.len() > 10, "{} has {}", genome.text(&space), all.len());
        for (at, near) in all.iter().enumerate() {
            assert!(near.is_legal() && *near != genome && !all[..at].contains(near));
        }
        let gone = genome.gate.is_none() || all.iter().any(|near| near.gate.is_none());
        assert!(gone, "a gate can go: {}", genome.text(&space));
    }
}
