//! Tests of the file beside.

use super::*;
use crate::run::RunFailure;
use crate::scenario::Draft;
use blis_policy::Policies;

fn policies(text: &str) -> Result<[String; 4], String> {
    let plan = Draft::from_text("s.yaml", text)
        .map_err(RunFailure::from)
        .and_then(|draft| draft.plan())
        .map_err(|problem| problem.to_string())?;
    let Policies { admission, routing, order, priority, .. } = plan.policies;
    Ok([admission.to_string(), routing.to_string(), order.to_string(), priority.to_string()])
}

fn routing(text: &str) -> String {
    policies(text).map_or_else(|error| panic!("{error}"), |[_, routing, ..]| routing)
}

#[test]
fn every_strategy_that_ships_is_well_made_and_makes_a_scenario_at_all_ends_of_its_ranges() {
    let mut known: Vec<String> = Vec::new();
    for shipped in ALL {
        let strategy = shipped.read().unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(strategy.name, shipped.name);
        assert!(!strategy.help.ends_with('.') && !strategy.help.is_empty(), "{}", shipped.name);
        assert!(!known.contains(&strategy.help), "two strategies say: {}", strategy.help);
        known.push(strategy.help.clone());
        let mut texts = vec![format!("strategy: {}", shipped.name)];
        for parameter in &strategy.parameters {
            let ends = match &parameter.kind {
                ParameterKind::Float { min, max, .. } => vec![min.to_string(), max.to_string()],
                ParameterKind::Int { min, max } => vec![min.to_string(), max.to_string()],
                ParameterKind::Choice(choices) => choices.clone(),
            };
            let named = |end| format!("strategy: '{}[{}={end}]'", shipped.name, parameter.name);
            texts.extend(ends.into_iter().map(named));
        }
        for text in texts {
            if let Err(error) = policies(&text) {
                panic!("{text}: {error}");
            }
        }
    }
}

#[test]
fn a_scenario_may_change_the_parameters_of_its_strategy_in_either_form() {
    let expected = "weighted(prefix-affinity:5,queue-depth:2; max-score)";
    assert_eq!(routing("strategy: no-kv[pa=5]"), expected);
    assert_eq!(routing("strategy: {name: no-kv, params: {pa: 5}}"), expected);
    assert_eq!(routing("strategy: {name: 'no-kv[pa=1]', params: {pa: 5}}"), expected);
    let plain = "weighted(prefix-affinity:3,queue-depth:2; max-score)";
    assert_eq!(routing("strategy: no-kv"), plain);
}

#[test]
fn what_the_scenario_says_itself_wins() {
    let own = "strategy: slo-compound\nscheduler: sjf\npriority: constant";
    let [admission, _, scheduler, priority] = policies(own).expect("legal");
    assert_eq!((scheduler.as_str(), priority.as_str()), ("sjf", "constant"));
    assert_eq!(admission, "slo-gated");
    let scorers = routing("strategy: no-kv\nrouting: {scorers: 'qd:1'}");
    assert_eq!(scorers, "weighted(queue-depth:1; max-score)");
    assert_eq!(routing("strategy: no-kv\nrouting: random"), "random");
}

#[test]
fn a_strategy_chosen_later_replaces_the_policies_that_were_there() {
    let draft = Draft::from_text("s.yaml", "routing: random\nscheduler: sjf\nseed: 7");
    let mut draft = draft.expect("well-formed");
    draft.choose_strategy("--strategy", "no-kv[qd=3]");
    let plan = draft.plan().expect("legal");
    assert_eq!(plan.routing(), "weighted(prefix-affinity:1,queue-depth:1; max-score)");
    assert_eq!((plan.scheduler().as_str(), plan.seed), ("fcfs", 7));
}

#[test]
fn mistakes_are_told_with_their_place_and_what_is_legal() {
    for (text, message) in [
        (
            "strategy: no-kw",
            "s.yaml:1:11: strategy: unknown strategy `no-kw`, did you mean `no-kv`",
        ),
        ("strategy: no-kv[pq=1]", "unknown parameter `pq`, did you mean `pa`?; known: `pa`, `qd`"),
        ("strategy: round-robin[pa=1]", "strategy `round-robin` has no parameters"),
        ("strategy: no-kv[pa=11]", "strategy.pa: `pa` is `11`; legal: a number from 0 to 10"),
        ("strategy: no-kv[pa=x]", "`pa` is `x`; legal: a number"),
        ("strategy: no-kv[pa]", "legal: `name`, `name[parameter=value,...]`"),
        ("strategy: [no-kv]", "legal: `name`"),
        ("strategy: {params: {pa: 1}}", "strategy: field `name` is missing; add it"),
        ("strategy: {nmae: no-kv}", "strategy.nmae: unknown field `nmae`, did you mean `name`?"),
        ("strategi: no-kv", "strategi: unknown field `strategi`, did you mean `strategy`?"),
        ("strategy: nowhere.yaml", "s.yaml:1:11: strategy: `nowhere.yaml`: cannot read"),
    ] {
        let found = policies(text).expect_err(text);
        assert!(found.contains(message), "{found}\nnot: {message}");
    }
}

#[test]
fn a_strategy_file_that_is_not_well_made_is_refused() {
    let good = "name: a\nhelp: b\nparameters: {x: {default: 1, min: 0, max: 2, help: c}}\n\
                set: {routing: {policy: weighted, scorers: 'pa:{x},qd:1'}}\n";
    let read = |text: &str| {
        let tree = yaml::read_text("a.yaml", text).expect("well-formed");
        Strategy::from_tree(&tree).map_err(|problem| problem.to_string())
    };
    assert!(read(good).is_ok());
    for (from, to, message) in [
        ("'pa:{x},qd:1'", "'pa:{y},qd:1'", "`{y}` is not among the parameters"),
        ("'pa:{x},qd:1'", "'pa:3,qd:1'", "parameters.x: is never used"),
        ("default: 1", "default: 3", "its default is `3`; legal: a number from 0 to 2"),
        ("max: 2", "max: 0", "`min` and `max` are not a range of numbers"),
        ("max: 2,", "", "legal: `min` and `max`"),
        ("help: c", "", "parameters.x: field `help` is missing; add it"),
        ("routing: {", "roting: {", "set.roting: is not part of a strategy"),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good);
        let found = read(&text).expect_err(message);
        assert!(found.contains(message), "{found}\nnot: {message}");
    }
}

#[test]
fn a_strategy_cannot_name_an_oracle() {
    let file = |set: &str| {
        let text = format!("name: a\nhelp: b\n{set}\n");
        let tree = yaml::read_text("a.yaml", &text).expect("well-formed");
        let fields = Strategy::from_tree(&tree).and_then(|strategy| strategy.fields(&[], &tree));
        fields.map(drop).map_err(|problem| problem.to_string())
    };
    assert_eq!(file("set: {evict: lru}"), Ok(()));
    for evict in ["belady", "{policy: belady}", "' belady '"] {
        let found = file(&format!("set: {{evict: {evict}}}")).expect_err(evict);
        assert!(found.contains("set.evict: found `belady`, an oracle, which cannot be"), "{found}");
    }
    let chosen = "parameters: {e: {default: belady, choices: [lru, belady], help: c}}\n\
                  set: {evict: '{e}'}";
    assert!(file(chosen).expect_err("an oracle").contains("an oracle"));
    let found = file("set: {oracles: [routing]}").expect_err("an oracle");
    assert!(found.contains("set.oracles: is not part of a strategy"), "{found}");
}

#[test]
fn a_formula_can_stand_for_the_policy_of_its_part() {
    let text = "\
routing: {formula: '-uncached_tokens*(in_flight+2)', params: {knowledge: precise}, picker: random}
admission: {admit_when: waiting<64 or class==critical and kv_utilization < 0.9}
scheduler: {formula: -priority}
priority: {formula: 'min(age_ms, 1000)'}";
    let expected = [
        "formula[admit-when=waiting < 64 or class == critical and kv_utilization < 0.9]",
        "weighted(formula[formula=-uncached_tokens * (in_flight + 2),knowledge=precise]:1; random)",
        "formula[formula=-priority]",
        "formula[formula=min(age_ms, 1000)]",
    ];
    assert_eq!(policies(text).expect("legal"), expected);
    // The full spelling reads as the same.
    let [admission, _, scheduler, priority] = expected;
    let again = format!(
        "routing: {{policy: weighted, picker: random, scorers: \
         'formula[formula=-uncached_tokens * (in_flight + 2),knowledge=precise]:1'}}\n\
         admission: '{admission}'\nscheduler: '{scheduler}'\npriority: '{priority}'"
    );
    assert_eq!(policies(&again).expect("legal"), expected);
}

#[test]
fn a_formula_of_a_scenario_wins_over_the_policy_of_its_strategy() {
    let own =
        "strategy: least-harm\nadmission: {admit_when: waiting < 8}\nrouting: {formula: -load}";
    let [admission, routing, ..] = policies(own).expect("legal");
    assert_eq!(admission, "formula[admit-when=waiting < 8]");
    assert_eq!(routing, "weighted(formula[formula=-load]:1; max-score)");
}

#[test]
fn mistakes_in_formulas_are_told_with_their_place() {
    for (text, complaint) in [
        (
            "admission: {admit_when: waitin < 8}",
            "admission policy `formula`: `admit-when`: unknown name `waitin`, did you mean",
        ),
        ("routing: {formula: 1 / load}", "routing.formula: `1 / load` divides by what"),
        ("routing: {formula: -load, scorers: 'qd:1'}", "takes the place of `policy`"),
        ("preempt: {formula: -load}", "takes the place of `policy`"),
    ] {
        let error = policies(text).expect_err(text);
        assert!(error.contains(complaint) && error.contains("s.yaml:1"), "{text}: {error}");
    }
}
