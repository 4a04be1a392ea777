//! Tests of what formulas refuse, and of what they compute.

use super::*;
use crate::formula::signals::Facts;
use crate::spec::Cluster;
use crate::view::examples::{instances, prompt, request};
use blis_core::Time;
use proptest::prelude::*;

fn refused(role: Role, text: &str) -> String {
    Formula::read(role, text).expect_err(text)
}

#[test]
fn what_is_wrong_with_a_formula_is_said() {
    for (role, text, complaint) in [
        (Role::Scorer, "-waitin", "unknown name `waitin`, did you mean `waiting`?; known: `wait"),
        (Role::Scorer, "waited_ms", "unknown name `waited_ms`"),
        (Role::Priority, "priority", "unknown name `priority`"),
        (Role::Scorer, "maximum(load, 1)", "unknown function `maximum`"),
        (Role::Scorer, "prefer_lo(load)", "did you mean `prefer_low`?"),
        (Role::Scorer, "min(load)", "`min` has other arguments; write `min(x, y, ...)`"),
        (Role::Scorer, "if(load > 1, 2)", "write `if(condition, x, y)`"),
        (Role::Scorer, "waiting + uncached_tokens", "`waiting` has requests and `uncached_tokens`"),
        (Role::Scorer, "load < free_blocks", "write `number(...)` around both"),
        (Role::Scorer, "load + kv_utilization", "`load` has requests and `kv_utilization` has no"),
        (Role::Scorer, "load * load + load", "`load * load` has requests x requests and `load`"),
        (
            Role::Scorer,
            "1 / in_flight",
            "divides by what can be 0; divide by e.g. `max(in_flight, 1)`",
        ),
        (Role::Scorer, "load / (2 - 2)", "`load / (2 - 2)` divides by 0"),
        (Role::Scorer, "log(load)", "`log(load)` can be of 0 or less; write `max(load, 1)`"),
        (Role::Scorer, "sqrt(load - 1)", "`sqrt(load - 1)` can be of less than 0"),
        (Role::Scorer, "exp(load)", "`exp(load)` can become too large for a number"),
        (Role::Scorer, "load > 3", "is not a number; write e.g. `if(load > 3, 1, 0)`"),
        (Role::Scorer, "load * (load > 3)", "`load > 3` is a condition where a number is needed"),
        (Role::Scorer, "load * class", "`class` is a class where a number is needed"),
        (Role::Scorer, "if(class == load, 1, 0)", "`load` is not a class"),
        (Role::Scorer, "if(class < batch, 1, 0)", "`class` is a class where a number is needed"),
        (Role::Scorer, "input_tokens", "is the same for all instances, so it prefers none"),
        (Role::Scorer, "load - mean(input_tokens)", "`input_tokens` is the same for all"),
        (Role::Gate, "waiting", "`waiting` is not a condition; compare it"),
        (Role::Gate, "waiting and load > 1", "`waiting` is not a condition; compare it, as in"),
        (Role::Gate, "waiting < 2 * mean(waiting)", "write two in `all-of(...; ...)`"),
        (Role::Order, "mean(input_tokens)", "`input_tokens` is the same for all"),
        (Role::Order, "waiting", "unknown name `waiting`"),
    ] {
        let problem = refused(role, text);
        assert!(problem.contains(complaint), "{text}: {problem}");
    }
    let deep = format!("{}load{}", "1 - (".repeat(20), ")".repeat(20));
    assert!(refused(Role::Scorer, &deep).contains("nested deeper than 16"));
}

#[test]
fn only_what_a_formula_names_is_needed() {
    let read = |text| Formula::read(Role::Scorer, text).expect("legal");
    let needs = |text| read(text).needs();
    let both = Needs { load: true, kv: true, ..Needs::NONE };
    assert_eq!(needs("-waiting - kv_utilization * load"), both);
    assert_eq!(needs("-waiting - 0 * kv_utilization * load"), Needs { kv: false, ..both });
    let lmetric = read("-uncached_tokens * (in_flight + 1)");
    assert_eq!((lmetric.needs(), lmetric.reads_hits()), (Needs::NONE, true));
    assert!(Formula::read(Role::Order, "-priority").expect("legal").needs().priority);
}

/// The value of `text` at instances with these queues, of which the last has two blocks cached of a
/// prompt of four.
fn values(text: &str, queues: [u32; 3]) -> Vec<f64> {
    let formula = Formula::read(Role::Scorer, text).unwrap_or_else(|p| panic!("{text}: {p}"));
    let (prompt, views) = (prompt(&[1, 2, 3, 4]), instances(&queues));
    let (request, facts) = (request(&prompt), Facts::new(&Cluster::SMALL));
    let (now, hits) = (Time::ZERO, [0.0, 0.0, 2.0]);
    let moment = Moment {
        request: &request,
        now,
        facts: &facts,
        instances: &views,
        hits: &hits,
        waiting: None,
    };
    let mut out = vec![f64::NAN; 3];
    formula.each(&moment, &mut Scratch::new(), &mut out);
    out.iter().map(|x| if formula.is_negated() { -x } else { *x }).collect()
}

#[test]
fn values_are_those_of_arithmetic() {
    for (text, expected) in [
        ("uncached_tokens * (in_flight + 1)", [64.0, 192.0, 192.0]),
        ("10 - waiting", [10.0, 8.0, 5.0]),
        ("waiting - mean(waiting) * 3", [-7.0, -5.0, -2.0]),
        ("most(waiting) - waiting + least(waiting) + sum(waiting)", [12.0, 10.0, 7.0]),
        ("prefer_low(waiting) + prefer_high(waiting) * 2", [1.0, 1.4, 2.0]),
        ("if(waiting > 1 and not waiting >= 5, 1, cached_share)", [0.0, 1.0, 0.5]),
        ("if(class == standard, waiting, 0)", [0.0, 2.0, 5.0]),
        ("if(waiting == 2 or waiting != 2 and 1 < 0, 7, 8)", [8.0, 7.0, 8.0]),
        ("clamp(waiting, 1, 3) + min(waiting, 4, 2) - max(1, waiting)", [0.0, 2.0, 0.0]),
        ("sqrt(4 * number(waiting) * number(waiting)) + log(1) * exp(0)", [0.0, 4.0, 10.0]),
        ("abs(waiting - 3) * -1", [-3.0, -1.0, -2.0]),
        ("cached_tokens + input_tokens / 64", [1.0, 1.0, 33.0]),
        ("-waiting * -(2 * waiting) / -1 + 0 * load * load", [0.0, -8.0, -50.0]),
        ("(10 - waiting) + 3 + (7 - waiting) * 1", [20.0, 16.0, 10.0]),
        ("if(0 < 1, -waiting * 2, 3) - 2 * (3 - waiting)", [-6.0, -6.0, -6.0]),
    ] {
        assert_eq!(values(text, [0, 2, 5]), expected, "{text}");
    }
}

/// Texts of formulas, most of which are legal.
fn texts() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0..20_u32).prop_map(|n| (f64::from(n) / 4.0).to_string()),
        prop::sample::select(vec!["waiting", "kv_utilization", "uncached_tokens", "input_tokens"])
            .prop_map(|name| format!("number({name})")),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let sign = prop::sample::select(vec!["+", "-", "*", "/"]);
        let one = prop::sample::select(vec!["log", "exp", "sqrt", "abs", "mean", "prefer_low"]);
        let two = (inner.clone(), sign, inner.clone());
        let choice = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            4 => two.prop_map(|(a, sign, b)| format!("({a} {sign} {b})")),
            1 => (one, inner).prop_map(|(function, a)| format!("{function}({a})")),
            1 => choice.prop_map(|(a, b, c)| format!("if({a} < {b}, {c}, max({a}, {b}))")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn what_passes_the_check_is_finite_wherever_it_is_evaluated(
        text in texts(),
        queues in [0..3_u32, 0..100, 0..u32::MAX],
    ) {
        if Formula::read(Role::Scorer, &text).is_ok() {
            let values = values(&text, queues);
            prop_assert!(values.iter().all(|x| x.is_finite()), "{text}: {values:?}");
        }
    }
}
