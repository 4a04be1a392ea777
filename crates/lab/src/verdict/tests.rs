//! Tests of the file beside.

use super::*;
use crate::design::Design;
use crate::design::tests::design;
use crate::hypothesis::{Hypothesis, Prediction, parse, parse_value};
use blis_core::Dice;
use blis_core::math::{exp, float};
use blis_core::random::Purpose;

/// Runs that were never made: the value of a cell is `effect(cell)` times noise that all cells of a
/// seed share and noise of their own.
struct Made<F> {
    effect: F,
    shared: f64,
    own: f64,
    study: u64,
    doubt: Doubt,
}

impl<F: Fn(usize, &str) -> f64> Evidence for Made<F> {
    fn value(&self, cell: usize, seed: usize, metric: &Metric) -> Option<f64> {
        let noise = |key: u64| Dice::new(self.study, Purpose::Sampling, key).normal();
        let (cell_key, seed_key) = (cell as u64 + 1, seed as u64);
        let log = self.shared * noise(seed_key) + self.own * noise(cell_key << 32 | seed_key);
        Some((self.effect)(cell, &metric.name()) * exp(log))
    }

    fn doubt(&self, _: usize, _: usize) -> Doubt {
        self.doubt
    }
}

fn made<F: Fn(usize, &str) -> f64>(effect: F) -> Made<F> {
    Made { effect, shared: 0.3, own: 0.05, study: 1, doubt: Doubt::default() }
}

fn hypothesis(claim: &str, design: &Design) -> Hypothesis {
    Hypothesis {
        name: "h".to_owned(),
        claim: parse(claim, design).unwrap_or_else(|mistake| panic!("{claim}: {mistake:?}")),
        text: claim.to_owned(),
        predict: None,
        because: None,
        fires: Vec::new(),
    }
}

fn judged(
    hypotheses: &[Hypothesis],
    design: &Design,
    seeds: (usize, usize),
    evidence: &dyn Evidence,
) -> Vec<Verdict> {
    let mut judge = Judge::new(hypotheses, design, seeds, ALPHA);
    while judge.next_look().is_some() {
        judge.look(evidence);
    }
    judge.finish()
}

/// Two arms.
fn pair() -> Design {
    let mut design = design();
    design.factors = vec![design.factors.remove(1)];
    design.factors[0].levels.truncate(2);
    design.factors[0].stated = 2;
    design
}

fn one(claim: &str, effect: impl Fn(usize, &str) -> f64) -> Verdict {
    let design = pair();
    judged(&[hypothesis(claim, &design)], &design, (8, 8), &made(effect)).remove(0)
}

/// Arm `full` is a fifth below arm `base`.
fn less(cell: usize, _: &str) -> f64 {
    if cell == 1 { 80.0 } else { 100.0 }
}

#[test]
fn a_clear_effect_is_confirmed_or_refuted_and_an_unclear_one_is_neither() {
    for (claim, outcome) in [
        ("ttft_p99(full) < ttft_p99(base)", Outcome::Confirmed),
        ("ttft_p99(full) <= 0.9 * ttft_p99(base)", Outcome::Confirmed),
        ("ttft_p99(base) > 110% * ttft_p99(full)", Outcome::Confirmed),
        ("ttft_p99(full) <= 0.7 * ttft_p99(base)", Outcome::Refuted),
        ("ttft_p99(full) <= 0.8 * ttft_p99(base)", Outcome::Inconclusive),
        ("ttft_p99(full) ~ 0.8 * ttft_p99(base) within 15%", Outcome::Confirmed),
        ("ttft_p99(full) ~ ttft_p99(base) within 5%", Outcome::Refuted),
        ("ttft_p99(full) ~ 0.8 * ttft_p99(base) within 1%", Outcome::Inconclusive),
        ("ttft_p99(base) - ttft_p99(full) > 1ms", Outcome::Confirmed),
        ("ttft_p99(base) < 1s", Outcome::Confirmed),
        ("ttft_p99 < 1s and ttft_p99(full) < ttft_p99(base)", Outcome::Confirmed),
        ("ttft_p99 < 1s and ttft_p99(full) > ttft_p99(base)", Outcome::Refuted),
        ("ttft_p99 < 1s and ttft_p99(full) < 0.8 * ttft_p99(base)", Outcome::Inconclusive),
    ] {
        let verdict = one(claim, less);
        assert_eq!(verdict.outcome, outcome, "{claim}: {verdict}");
    }
}

#[test]
fn the_sentence_says_effect_interval_bound_and_seeds() {
    let verdict = one("ttft_p99(full) <= 0.9 * ttft_p99(base)", less);
    let why = &verdict.why;
    assert!(why.starts_with("ttft_p99(full) is 0."), "{why}");
    assert!(why.contains(" to 0."), "{why}");
    assert!(why.ends_with(") times ttft_p99(base), claimed: <= 0.9; 8 seeds"), "{why}");
    let verdict = one("ttft_p99(base) - ttft_p99(full) > 1ms", less);
    assert!(verdict.why.starts_with("ttft_p99(base) - ttft_p99(full) is "), "{verdict}");
    assert!(verdict.why.contains(" ms ("), "{verdict}");
}

#[test]
fn a_time_has_no_interval_below_zero() {
    // Nothing for the first seven seeds, and something for the last.
    struct Late;
    impl Evidence for Late {
        fn value(&self, _: usize, seed: usize, _: &Metric) -> Option<f64> {
            Some(if seed == 7 { 100.0 } else { 1.0 })
        }
    }
    let claim = hypothesis("ttft_p99 < 1s", &Design::default()).claim;
    let found = seen(&claim.parts[0], &Late, 8, 0.05).1.estimate.expect("eight seeds");
    assert!(found.low >= 0.0 && found.low < found.mean, "{found:?}");
}

#[test]
fn equal_arms_are_told_to_be_equal() {
    struct Equal;
    impl Evidence for Equal {
        fn value(&self, _: usize, seed: usize, _: &Metric) -> Option<f64> {
            Some(float(seed as u64) + 0.1)
        }
    }
    let design = pair();
    for (claim, outcome) in [
        ("ttft_p99(full) <= ttft_p99(base)", Outcome::Confirmed),
        ("ttft_p99(full) < ttft_p99(base)", Outcome::NoEffect),
        ("ttft_p99(full) ~ ttft_p99(base) within 1%", Outcome::Confirmed),
    ] {
        let found = judged(&[hypothesis(claim, &design)], &design, (3, 3), &Equal).remove(0);
        assert_eq!(found.outcome, outcome, "{claim}");
        assert!(found.why.contains("are the same in every seed"), "{found}");
    }
}

#[test]
fn there_is_no_verdict_if_the_mechanism_never_fired() {
    let design = pair();
    let mut claim = hypothesis("ttft_p99(full) < ttft_p99(base)", &design);
    let counter = "rejected(full)".to_owned();
    claim.fires = vec![(counter.clone(), parse_value(&counter, &design).expect("legal"))];
    let fires = |times: f64| {
        move |cell: usize, name: &str| if name == "rejected" { times } else { less(cell, name) }
    };
    let claims = [claim];
    let silent = judged(&claims, &design, (8, 8), &made(fires(0.0))).remove(0);
    assert_eq!(silent.outcome, Outcome::Inconclusive);
    assert!(silent.why.starts_with("the mechanism never fired: rejected(full) is 0"), "{silent}");
    let idle = Made { own: 0.0, ..made(|_, name: &str| f64::from(name != "rejected")) };
    let idle = judged(&claims, &design, (8, 40), &idle).remove(0);
    assert_eq!((idle.outcome, idle.seeds), (Outcome::NoEffect, 8), "{idle}");
    assert!(idle.why.contains("is 0 in all runs, and the arms are identical"), "{idle}");
    let heard = judged(&claims, &design, (8, 8), &made(fires(10.0))).remove(0);
    assert_eq!(heard.outcome, Outcome::Confirmed);
    assert!(heard.why.contains("; rejected(full): "), "{heard}");
}

#[test]
fn predictions_stand_in_the_sentence() {
    let design = pair();
    let mut claim = hypothesis("ttft_p99(full) < ttft_p99(base)", &design);
    claim.predict = Some(Prediction { low: 0.75, high: 0.85 });
    let found = judged(&[claim], &design, (5, 5), &made(less)).remove(0);
    assert!(found.why.contains("; predicted 0.75 to 0.85, which agrees"), "{found}");
}

#[test]
fn latencies_of_runs_that_are_too_short_or_overloaded_get_no_verdict() {
    let design = pair();
    let claims =
        ["ttft_p99(full) < ttft_p99(base)", "goodput_per_sec(full) < goodput_per_sec(base)"]
            .map(|claim| hypothesis(claim, &design));
    let of = |doubt: Doubt| judged(&claims, &design, (8, 40), &Made { doubt, ..made(less) });
    let short = of(Doubt { overloaded: false, too_short: true });
    assert_eq!(short[0].outcome, Outcome::TooShort);
    assert!(short[0].why.contains("still moves"), "{}", short[0]);
    assert_eq!(short[1].outcome, Outcome::Confirmed, "it is about no latency");
    let overloaded = of(Doubt { overloaded: true, too_short: true });
    let why = &overloaded[0].why;
    assert_eq!(overloaded[0].outcome, Outcome::Overloaded);
    assert!(why.contains("; instead, of full and base: goodput "), "{why}");
    assert!(why.contains("refused ") && why.contains("overloaded after "), "{why}");
    assert_eq!(overloaded[1].outcome, Outcome::Confirmed);
}

#[test]
fn what_is_nearly_the_same_is_equivalent_within_2_percent() {
    let design = pair();
    let claims = [hypothesis("ttft_p99(full) < ttft_p99(base)", &design)];
    for (effect, outcome) in [(100.0, Outcome::Equivalent), (96.0, Outcome::Confirmed)] {
        let evidence = Made { own: 0.02, ..made(|cell, _: &str| [100.0, effect][cell]) };
        let found = judged(&claims, &design, (5, 40), &evidence).remove(0);
        assert_eq!(found.outcome, outcome, "{found}");
        assert!(found.seeds < 40, "{found}");
    }
}

#[test]
fn what_a_claim_does_not_name_must_hold_everywhere() {
    let design = design();
    // Cells: workload (2) x arm (4) x blocks (2). In one of the four places `full` is worse.
    let better = |cell: usize, _: &str| if cell / 2 % 4 == 1 { 50.0 } else { 100.0 };
    let but = |cell: usize, _: &str| if cell == 11 { 150.0 } else { better(cell, "") };
    let text = "ttft_p99(full) < ttft_p99(base)";
    let claims = [hypothesis(text, &design)];
    let found = judged(&claims, &design, (8, 8), &made(better)).remove(0);
    assert_eq!((found.outcome, found.effects.len()), (Outcome::Confirmed, 4), "{found}");
    assert!(found.why.contains("(the closest of 4)"), "{found}");
    let found = judged(&claims, &design, (8, 8), &made(but)).remove(0);
    assert_eq!(found.outcome, Outcome::Refuted, "{found}");
    assert!(found.why.contains("full @ bursty, engine.total_kv_blocks=800"), "{found}");
    let claims = [hypothesis("ttft_p99(full @ steady) < ttft_p99(base @ steady)", &design)];
    let found = judged(&claims, &design, (8, 8), &made(but)).remove(0);
    assert_eq!((found.outcome, found.effects.len()), (Outcome::Confirmed, 2), "{found}");
}

#[test]
fn seeds_are_added_until_the_answer_is_clear() {
    let design = pair();
    let claims = [hypothesis("ttft_p99(full) < ttft_p99(base)", &design)];
    let clear = judged(&claims, &design, (4, 40), &made(less)).remove(0);
    assert!(clear.seeds <= 9, "{clear}");
    let small = |cell: usize, _: &str| if cell == 1 { 97.0 } else { 100.0 };
    let later = judged(&claims, &design, (4, 40), &made(small)).remove(0);
    assert!(later.seeds > clear.seeds && later.outcome == Outcome::Confirmed, "{later}");
    let none = judged(&claims, &design, (4, 40), &made(|_, _| 100.0)).remove(0);
    assert_eq!((none.outcome, none.seeds), (Outcome::Inconclusive, 40), "{none}");
}

/// Nothing differs; a thousand comparisons, three a study, with up to six looks each.
#[test]
fn differences_that_are_none_are_rarely_found() {
    let design = design();
    let claims: Vec<Hypothesis> = [
        "ttft_p99(full @ steady, total_kv_blocks=800) < ttft_p99(base @ steady, total_kv_blocks=800)",
        "e2e_mean(full @ bursty, total_kv_blocks=800) > e2e_mean(base @ bursty, total_kv_blocks=800)",
        "ttft_p99(full @ steady, total_kv_blocks=9000) < ttft_p99(base @ steady, total_kv_blocks=9000)",
    ]
    .map(|claim| hypothesis(claim, &design))
    .into();
    let (mut wrong, mut confirmed) = (0, 0);
    for study in 0..334 {
        let own = 0.02 + 0.002 * float(study % 50);
        let evidence = Made { study: 77 + study, own, ..made(|_, _| 100.0) };
        let found = judged(&claims, &design, (5, 40), &evidence);
        let count = |outcome| found.iter().filter(|verdict| verdict.outcome == outcome).count();
        confirmed += count(Outcome::Confirmed);
        wrong += usize::from(count(Outcome::Confirmed) + count(Outcome::Refuted) > 0);
    }
    // Five of a hundred studies, and two standard deviations: 17 + 2 sqrt(334 * 0.05 * 0.95) = 25.
    assert!(wrong <= 25, "{wrong} of 334 studies found a difference");
    assert!(confirmed <= 50, "{confirmed} of 1,002 comparisons were confirmed");
}

#[test]
fn an_effect_of_five_percent_is_nearly_always_found() {
    let design = pair();
    let claims = [hypothesis("ttft_p99(full) < ttft_p99(base)", &design)];
    let (mut found, mut seeds) = (0, 0);
    for study in 0..100 {
        let effect = |cell: usize, _: &str| if cell == 1 { 95.0 } else { 100.0 };
        let evidence = Made { study: 900 + study, ..made(effect) };
        let verdict = judged(&claims, &design, (5, 40), &evidence).remove(0);
        assert_ne!(verdict.outcome, Outcome::Refuted);
        found += usize::from(verdict.outcome == Outcome::Confirmed);
        seeds += verdict.seeds;
    }
    assert!(found >= 90, "{found} of 100");
    assert!(seeds < 3_000, "{seeds} seeds in all; 4,000 are the most");
}

#[test]
fn numbers_have_three_or_four_digits() {
    for (value, text) in [
        (0.0, "0"),
        (0.41234, "0.412"),
        (1.0, "1"),
        (1.5, "1.500"),
        (1.0025, "1.002"),
        (-3.0, "-3"),
        (-12.345, "-12.3"),
        (123.4, "123"),
        (-1_234_567.8, "-1,234,568"),
        (0.000_04, "0"),
        (-0.000_001, "0"),
        (999.9, "1,000"),
    ] {
        assert_eq!(number(value), text);
    }
}
