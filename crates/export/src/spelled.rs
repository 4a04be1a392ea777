//! The policies of a plan taken apart: names, parameters with their defaults, members and weights.
//!
//! It reads canonical spellings, which were checked when the plan was made.

use blis_core::{Param, Value};
use blis_policy::kinds;
use blis_scenario::scenario::Plan;

/// A policy with its parameters.
#[derive(Clone, Debug)]
pub(super) struct Spelled {
    pub(super) kind: &'static str,
    pub(super) name: String,
    params: &'static [Param],
    given: Vec<(String, String)>,
}

/// A composition of admission policies.
#[derive(Clone, Debug)]
pub(super) enum Gate {
    One(Spelled),
    /// `all-of` or `any-of`, and its members.
    Composed(Spelled, Vec<Gate>),
}

/// A router, and what it is made of.
#[derive(Clone, Debug)]
pub(super) struct Routing {
    pub(super) policy: Spelled,
    pub(super) filters: Vec<Spelled>,
    /// With their weights; of several profiles, the first.
    pub(super) scorers: Vec<(Spelled, f64)>,
    pub(super) picker: Option<Spelled>,
}

impl Spelled {
    /// The policy of `kind` that `text` spells.
    pub(super) fn of(kind: &'static str, text: &str) -> Spelled {
        let (name, inside) = match text.trim().split_once('[') {
            None => (text.trim(), ""),
            Some((name, inside)) => (name, inside.trim_end_matches(']')),
        };
        let all = kinds().into_iter().find(|all| all.name == kind).expect("a kind of policies");
        // A policy that is not ours has parameters that we do not know.
        let entry = all.entries.iter().find(|entry| entry.name == name);
        let pair = |part: &str| {
            part.split_once('=')
                .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        };
        let given = inside.split(',').filter_map(pair).collect();
        let params = entry.map_or(&[][..], |entry| entry.params);
        Spelled { kind, name: name.trim().to_owned(), params, given }
    }

    /// What it is, for comments.
    pub(super) fn part(&self) -> String {
        format!("{} `{}`", self.kind, self.name)
    }

    /// The value of a parameter as text, the default if it was not given.
    pub(super) fn value(&self, name: &str) -> String {
        if let Some((_, value)) = self.given.iter().find(|(given, _)| given == name) {
            return value.clone();
        }
        let param = self.params.iter().find(|param| param.name == name);
        let param = param.unwrap_or_else(|| panic!("`{}` has no `{name}`", self.name));
        match param.kind.default_value() {
            Value::Float(number) => number.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Word(word) => word,
        }
    }

    /// The value of a parameter, if the policy has it.
    pub(super) fn value_of(&self, name: &str) -> Option<String> {
        self.params.iter().any(|param| param.name == name).then(|| self.value(name))
    }

    /// The value of a number; `None` for `auto`.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.value(name).parse().ok()
    }
}

impl Gate {
    /// The gate of `plan`.
    pub(super) fn of(plan: &Plan) -> Gate {
        Gate::parse(&plan.policies.admission)
    }

    fn parse(text: &str) -> Gate {
        let text = text.trim();
        let open = text.find('(').filter(|open| !text[..*open].contains('['));
        let Some(open) = open else { return Gate::One(Spelled::of("admission", text)) };
        let inside = text[open + 1..].strip_suffix(')').unwrap_or_default();
        let members = split(inside, ';').iter().map(|member| Gate::parse(member)).collect();
        Gate::Composed(Spelled::of("admission", &text[..open]), members)
    }
}

impl Routing {
    /// The router of `plan`.
    pub(super) fn of(plan: &Plan) -> Routing {
        let text = plan.policies.routing.as_str();
        let Some((head, inside)) = text.split_once('(') else {
            let policy = Spelled::of("routing", text);
            return Routing { policy, filters: Vec::new(), scorers: Vec::new(), picker: None };
        };
        let parts = split(inside.strip_suffix(')').unwrap_or(inside), ';');
        let [filters @ .., scorers, picker] = &parts[..] else {
            panic!("a router of parts has scorers and a picker: {text}");
        };
        let scorer = |text: &String| {
            let (name, weights) = text.rsplit_once(':').expect("scorers have weights");
            let first = weights.split('/').next().unwrap_or(weights);
            (Spelled::of("scorer", name), first.parse().expect("weights are numbers"))
        };
        Routing {
            policy: Spelled::of("routing", head),
            filters: filters.iter().map(|text| Spelled::of("filter", text)).collect(),
            scorers: split(scorers, ',').iter().map(scorer).collect(),
            picker: Some(Spelled::of("picker", picker)),
        }
    }
}

/// The parts of `text` between those `separator`s that are in no brackets.
fn split(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == separator && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().expect("there is always a part").push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compositions_are_taken_apart() {
        let text = "all-of(slo-gated[batch=0.5]; any-of(kv-gate; token-bucket))";
        let Gate::Composed(all, members) = Gate::parse(text) else { panic!("composed") };
        assert_eq!((all.name.as_str(), members.len()), ("all-of", 2));
        let Gate::One(gate) = &members[0] else { panic!("one") };
        assert_eq!((gate.value("batch"), gate.value("threshold")), ("0.5".into(), "5".into()));
        let Gate::Composed(any, members) = &members[1] else { panic!("composed") };
        assert_eq!((any.name.as_str(), members.len()), ("any-of", 2));
    }

    #[test]
    fn parts_in_brackets_stay_whole() {
        let parts = split("a[b=1,c=2]:3,d:4/5", ',');
        assert_eq!(parts, ["a[b=1,c=2]:3", "d:4/5"]);
    }
}
