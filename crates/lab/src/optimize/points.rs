//! What a search may choose: strategies and their parameters, as a space and as scenarios.

use blis_core::Value;
use blis_core::math::{count, float, ln, pow};
use blis_optimize::{Dimension, Kind, Point, Space};
use blis_scenario::problem::{Place, Problem, unknown};
use blis_scenario::problems::{Findings, Problems, every};
use blis_scenario::strategy::{self, Choice, Parameter, ParameterKind, Strategy};
use blis_scenario::yaml::{self, Kind as Shape, Node};

/// The name of the choice among strategies.
const CHOICE: &str = "strategy";

/// A strategy that may be chosen.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The strategy.
    pub strategy: Strategy,
    /// Its parameters as they are set by hand: what the file gives, and defaults.
    pub hand: Vec<(String, String)>,
    /// How the file calls it.
    name: String,
    place: Place,
}

/// A parameter that is free.
#[derive(Clone, Copy, Debug)]
struct Slot {
    candidate: usize,
    parameter: usize,
    dimension: usize,
}

/// What may be chosen.
#[derive(Clone, Debug)]
pub struct Points {
    /// The strategies; the first is the one that others are compared with.
    pub candidates: Vec<Candidate>,
    /// The space that is searched.
    pub space: Space,
    slots: Vec<Slot>,
    /// Weights of which only the ratios matter, as indices of slots.
    weights: Vec<Vec<usize>>,
}

impl Points {
    /// What the fields `strategy` and `parameters` of the search in `tree` allow, which may be
    /// nothing.
    pub(crate) fn read(
        tree: &Node,
        strategy: Option<&Node>,
        parameters: Option<&Node>,
    ) -> Result<Points, Problems> {
        let candidates = candidates(tree, strategy)?;
        let wanted = wanted(parameters, &candidates)?;
        let several = candidates.len() > 1;
        let (mut dimensions, mut slots) = (Vec::new(), Vec::new());
        let mut found = Findings::default();
        if several {
            let word = |candidate: &Candidate| Value::Word(candidate.name.clone());
            let options = candidates.iter().map(word).collect();
            dimensions.push(Dimension::new(CHOICE, Kind::Choice { options }));
        }
        for (number, candidate) in candidates.iter().enumerate() {
            for (index, parameter) in candidate.strategy.parameters.iter().enumerate() {
                let Some(narrowed) = found.keep(narrowed(&wanted, parameter)).flatten() else {
                    continue;
                };
                slots.push(Slot {
                    candidate: number,
                    parameter: index,
                    dimension: dimensions.len(),
                });
                dimensions.push(if several {
                    let name = format!("{}.{}", candidate.name, parameter.name);
                    Dimension::new(name, narrowed).under(0, number)
                } else {
                    Dimension::new(parameter.name.clone(), narrowed)
                });
            }
        }
        let (dimensions, slots) = found.done((dimensions, slots))?;
        let space = match &dimensions[..] {
            [] => Space::default(),
            _ => Space::new(dimensions).map_err(|error| {
                tree.problem(CHOICE, format!("nothing can be searched here: {error}"))
            })?,
        };
        let weights: Vec<Vec<usize>> = (0..candidates.len())
            .filter_map(|number| weights(number, &candidates[number].strategy, &slots))
            .filter(|group| group.iter().all(|&slot| is_plain(&space, &slots[slot])))
            .collect();
        let dimensions = |group: &Vec<usize>| {
            group.iter().map(|&slot| slots[slot].dimension).collect::<Vec<usize>>()
        };
        let space = space.with_ratios(weights.iter().map(dimensions).collect());
        Ok(Points { candidates, space, slots, weights })
    }

    /// The point at which candidate number `candidate` stands by hand; `None` if it is outside of
    /// what may be searched.
    pub fn hand(&self, candidate: usize) -> Option<Point> {
        self.point_of(candidate, &self.candidates[candidate].hand)
    }

    /// The point at which candidate number `candidate` has these parameters.
    fn point_of(&self, candidate: usize, settings: &[(String, String)]) -> Option<Point> {
        let mut values: Vec<Option<Value>> = vec![None; self.space.len()];
        let chosen = &self.candidates[candidate];
        if self.candidates.len() > 1 {
            values[0] = Some(Value::Word(chosen.name.clone()));
        }
        for slot in self.slots.iter().filter(|slot| slot.candidate == candidate) {
            let text = &settings[slot.parameter].1;
            values[slot.dimension] = value(&self.space.dimensions()[slot.dimension].kind, text);
        }
        let point = Point { values };
        self.space.unit(&point).is_ok().then_some(point)
    }

    /// The candidate that `point` chooses, and all of its parameters there. Numbers are rounded to
    /// about a five-hundredth of their range, or to three digits: what is run is what can be
    /// written down, and no difference that could be measured is lost. Weights of which only the
    /// ratios matter are written so that the first that is above 0 is as it is by hand.
    ///
    /// # Panics
    /// If the point is not of this space.
    pub fn settings(&self, point: &Point) -> (usize, Vec<(String, String)>) {
        let candidate = match &point.values[0] {
            Some(Value::Word(word)) if self.candidates.len() > 1 => {
                let named = |candidate: &Candidate| candidate.name == *word;
                self.candidates.iter().position(named).expect("a choice of this space")
            }
            _ => 0,
        };
        let mut settings = self.candidates[candidate].hand.clone();
        for (index, slot) in self.slots.iter().enumerate() {
            if let (true, Some(value)) =
                (slot.candidate == candidate, &point.values[slot.dimension])
            {
                let kind = &self.space.dimensions()[slot.dimension].kind;
                let value = match value {
                    Value::Float(value) => Value::Float(self.scale(index, point) * value),
                    other => other.clone(),
                };
                settings[slot.parameter].1 = rounded(&value, kind);
            }
        }
        (candidate, settings)
    }

    /// What the value of slot number `slot` at `point` is multiplied with when it is written: 1,
    /// unless it is a weight of which only the ratio to others matters.
    fn scale(&self, slot: usize, point: &Point) -> f64 {
        let Some(group) = self.weights.iter().find(|group| group.contains(&slot)) else {
            return 1.0;
        };
        let value = |slot: &usize| match point.values[self.slots[*slot].dimension] {
            Some(Value::Float(value)) => value,
            _ => 0.0,
        };
        let range = |slot: &usize| self.range(self.slots[*slot].dimension).unwrap_or_default();
        let by_hand = |slot: &usize| {
            let Slot { candidate, parameter, .. } = self.slots[*slot];
            yaml::float(&self.candidates[candidate].hand[parameter].1).unwrap_or(0.0)
        };
        let positive = || group.iter().filter(|slot| value(slot) > 0.0);
        let least = positive().map(|slot| range(slot).0 / value(slot)).fold(0.0, f64::max);
        let most = positive().map(|slot| range(slot).1 / value(slot)).fold(f64::MAX, f64::min);
        match positive().next().map(|first| by_hand(first) / value(first)) {
            Some(wanted) if wanted > 0.0 => wanted.max(least).min(most),
            _ => 1.0,
        }
    }

    /// What values of dimension number `dimension` around `point` are multiplied with when they
    /// are written.
    pub(super) fn scale_of(&self, dimension: usize, point: &Point) -> f64 {
        let slot = self.slots.iter().position(|slot| slot.dimension == dimension);
        slot.map_or(1.0, |slot| self.scale(slot, point))
    }

    /// `settings` of candidate number `candidate` with the hand-set values of `parameters`, which
    /// are places in the list, and their point; `None` if that is outside of what may be searched.
    pub(super) fn with_hand(
        &self,
        candidate: usize,
        settings: &[(String, String)],
        parameters: &[usize],
    ) -> Option<(Point, Vec<(String, String)>)> {
        let mut settings = settings.to_vec();
        for &index in parameters {
            settings[index].clone_from(&self.candidates[candidate].hand[index]);
        }
        Some((self.point_of(candidate, &settings)?, settings))
    }

    /// The free parameters of candidate number `candidate` that are not as by hand in `settings`
    /// and lie on a bound of their range. A weight of which only the ratio to others matters has a
    /// bound at its lower end alone.
    pub fn on_bound(&self, candidate: usize, settings: &[(String, String)]) -> Vec<String> {
        let is_weight = |slot: usize| self.weights.iter().any(|group| group.contains(&slot));
        let slots = self.slots.iter().enumerate();
        let slots = slots.filter(|(_, slot)| slot.candidate == candidate);
        let on = slots.filter_map(|(index, slot)| {
            let (name, text) = settings.get(slot.parameter)?;
            let (min, max, _) = self.range(slot.dimension)?;
            let value = yaml::float(text)?;
            let at_end = value <= min || (value >= max && !is_weight(index));
            let changed = self.candidates[candidate].hand[slot.parameter].1 != *text;
            (at_end && changed).then(|| name.clone())
        });
        on.collect()
    }

    /// Whether the parameter `name` of candidate number `candidate` is free, and as which
    /// dimension.
    pub fn dimension(&self, candidate: usize, name: &str) -> Option<usize> {
        let parameters = &self.candidates[candidate].strategy.parameters;
        let mut slots = self.slots.iter().filter(|slot| slot.candidate == candidate);
        let slot = slots.find(|slot| parameters[slot.parameter].name == name)?;
        Some(slot.dimension)
    }

    /// The range of dimension number `dimension`, if it is a number, and whether it is searched by
    /// its logarithm.
    pub fn range(&self, dimension: usize) -> Option<(f64, f64, bool)> {
        match self.space.dimensions()[dimension].kind {
            Kind::Float { min, max } => Some((min, max, false)),
            Kind::Log { min, max } => Some((min, max, true)),
            Kind::Int { min, max } => Some((float(min), float(max), false)),
            Kind::Choice { .. } => None,
        }
    }

    /// `base` with the strategy of candidate number `candidate` and these parameters.
    pub(crate) fn tree(
        &self,
        base: &Node,
        candidate: usize,
        settings: &[(String, String)],
    ) -> Node {
        let Candidate { name, place, .. } = &self.candidates[candidate];
        let node = |kind: Shape| Node { place: place.clone(), kind };
        let scalar = |text: &str| node(Shape::Scalar { text: text.to_owned(), quoted: false });
        let params = settings.iter();
        let params = params.map(|(name, value)| (name.clone(), place.clone(), scalar(value)));
        let mut fields = vec![("name".to_owned(), place.clone(), scalar(name))];
        if !settings.is_empty() {
            fields.push(("params".to_owned(), place.clone(), node(Shape::Map(params.collect()))));
        }
        let mut tree = base.clone();
        strategy::choose(&mut tree, node(Shape::Map(fields)));
        tree
    }
}

/// The slots of the weights of candidate number `number`, if only their ratios matter: they are the
/// weights of all scorers of its router, and nothing else.
fn weights(number: usize, strategy: &Strategy, slots: &[Slot]) -> Option<Vec<usize>> {
    let routing = strategy.template().field("routing")?;
    let scalar = |field: &str| routing.field(field).and_then(Node::text);
    scalar("policy").filter(|policy| *policy == "weighted")?;
    let whole = strategy.template().to_json();
    let mut depth = 0_usize;
    let items = scalar("scorers")?.split(|letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    let slot = |item: &str| {
        let weight = item.trim().rsplit_once(':')?.1;
        let name = weight.strip_prefix('{')?.strip_suffix('}')?;
        let once = whole.matches(weight).count() == 1;
        let named = |slot: &Slot| strategy.parameters[slot.parameter].name == name;
        slots.iter().position(|slot| once && slot.candidate == number && named(slot))
    };
    let group: Vec<usize> = items.map(slot).collect::<Option<_>>()?;
    (group.len() > 1).then_some(group)
}

/// Whether what is chosen in `slot` is a number on a plain scale from 0 on.
fn is_plain(space: &Space, slot: &Slot) -> bool {
    matches!(space.dimensions()[slot.dimension].kind, Kind::Float { min, .. } if min >= 0.0)
}

/// What `text` means in a dimension of this kind.
pub(super) fn value(kind: &Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Float { .. } | Kind::Log { .. } => yaml::float(text).map(Value::Float),
        Kind::Int { .. } => yaml::whole(text).map(Value::Int),
        Kind::Choice { .. } => Some(Value::Word(text.to_owned())),
    }
}

/// A value with as many digits as its range deserves.
fn rounded(value: &Value, kind: &Kind) -> String {
    let text = match (value, kind) {
        (Value::Float(value), Kind::Float { min, max }) => {
            let digits = (ln((max - min) / 500.0) / std::f64::consts::LN_10).floor();
            let decimals = usize::try_from(count(-digits)).unwrap_or_default();
            // Of large numbers the last digits go as well.
            let step = if digits > 0.0 { pow(10.0, digits) } else { 1.0 };
            let value = if digits > 0.0 { (value / step).round() * step } else { *value };
            format!("{value:.decimals$}")
        }
        (Value::Float(value), Kind::Log { .. }) => format!("{value:.2e}"),
        _ => return value.to_string(),
    };
    match (yaml::float(&text), kind) {
        (Some(found), Kind::Float { min, max } | Kind::Log { min, max }) => {
            found.clamp(*min, *max).to_string()
        }
        _ => text,
    }
}

impl Candidate {
    /// How the file calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn read(node: &Node) -> Result<Candidate, Problems> {
        let choice = Choice::read(node)?;
        let (strategy, _) = choice.find(node)?;
        let Choice { name, params } = choice;
        let hand = |parameter: &Parameter| {
            let given = params.iter().rev().find(|(name, _)| *name == parameter.name);
            let text = given.map_or(&parameter.default, |(_, text)| text);
            (parameter.name.clone(), text.clone())
        };
        let hand = strategy.parameters.iter().map(hand).collect();
        Ok(Candidate { strategy, hand, name, place: node.place.clone() })
    }
}

fn candidates(tree: &Node, strategy: Option<&Node>) -> Result<Vec<Candidate>, Problems> {
    let nodes: Vec<&Node> = match tree.required("", CHOICE, strategy)? {
        Node { kind: Shape::List(nodes), .. } => nodes.iter().collect(),
        node => vec![node],
    };
    if nodes.is_empty() {
        let message = "missing; name the strategy to tune, or a list of them";
        return Err(tree.problem(CHOICE, message));
    }
    let mut names: Vec<String> = Vec::new();
    every(nodes.into_iter().map(|node| {
        let candidate = Candidate::read(node)?;
        if names.contains(&candidate.name) {
            let message = format!("found `{}` twice; keep one", candidate.name);
            return Err(Problem::new(node.place.clone(), CHOICE, message).into());
        }
        names.push(candidate.name.clone());
        Ok::<_, Problems>(candidate)
    }))
}

/// The parameters that are named, with what narrows them; `None`: all.
type Wanted<'a> = Option<Vec<(String, Option<&'a Node>)>>;

fn wanted<'a>(
    parameters: Option<&'a Node>,
    candidates: &[Candidate],
) -> Result<Wanted<'a>, Problems> {
    const FIELD: &str = "parameters";
    let illegal = |place: &Place| {
        let message = "legal: a list of names, or names with `{min, max}` or `{choices}`";
        Problem::new(place.clone(), FIELD, message)
    };
    let Some(parameters) = parameters else { return Ok(None) };
    let wanted = match &parameters.kind {
        Shape::List(names) => every(names.iter().map(|node| {
            let text = node.text().ok_or_else(|| illegal(&node.place))?;
            Ok::<_, Problem>((text.to_owned(), None, &node.place))
        }))?,
        Shape::Map(fields) => {
            let narrows = |node: &&Node| !matches!(node.kind, Shape::Null);
            let one = |(name, place, node): &'a (String, Place, Node)| {
                (name.clone(), Some(node).filter(narrows), place)
            };
            fields.iter().map(one).collect()
        }
        _ => return Err(illegal(&parameters.place).into()),
    };
    let known: Vec<&str> = candidates
        .iter()
        .flat_map(|candidate| candidate.strategy.parameters.iter().map(|p| p.name.as_str()))
        .collect();
    let wanted = every(wanted.into_iter().map(|(name, node, place)| {
        if known.contains(&name.as_str()) {
            return Ok((name, node));
        }
        Err(Problem::new(place.clone(), FIELD, unknown("parameter", &name, &known)))
    }))?;
    Ok(Some(wanted))
}

/// What `parameter` is searched as; `None` if it is not free.
fn narrowed(wanted: &Wanted<'_>, parameter: &Parameter) -> Result<Option<Kind>, Problem> {
    let node = match wanted {
        None => None,
        Some(wanted) => match wanted.iter().find(|(name, _)| *name == parameter.name) {
            None => return Ok(None),
            Some((_, node)) => *node,
        },
    };
    let kind = match node {
        None => parameter.kind.clone(),
        Some(node) => narrower(node, parameter)?,
    };
    Ok(Some(match kind {
        ParameterKind::Float { min, max, log: true } => Kind::Log { min, max },
        ParameterKind::Float { min, max, log: false } => Kind::Float { min, max },
        ParameterKind::Int { min, max } => Kind::Int { min, max },
        ParameterKind::Choice(choices) => {
            Kind::Choice { options: choices.into_iter().map(Value::Word).collect() }
        }
    }))
}

/// The range of `parameter` as the search's file narrows it.
fn narrower(node: &Node, parameter: &Parameter) -> Result<ParameterKind, Problem> {
    let path = format!("parameters.{}", parameter.name);
    let wrong = |place: &Place, message: String| Problem::new(place.clone(), &path, message);
    let legal = match &parameter.kind {
        ParameterKind::Choice(_) => "`{choices: [...]}`",
        _ => "`{min: ..., max: ...}`, one of them or both",
    };
    let illegal = || wrong(&node.place, format!("legal: {legal}; {}", parameter.legal()));
    let Shape::Map(fields) = &node.kind else { return Err(illegal()) };
    let mut kind = parameter.kind.clone();
    for (field, _, value) in fields {
        let text = value.text().unwrap_or_default();
        match (&mut kind, field.as_str()) {
            (ParameterKind::Choice(choices), "choices") => {
                let Shape::List(items) = &value.kind else { return Err(illegal()) };
                let word = |item: &Node| match &item.kind {
                    Shape::Scalar { text, .. } if parameter.allows(text) => Ok(text.clone()),
                    _ => Err(illegal()),
                };
                *choices = items.iter().map(word).collect::<Result<_, _>>()?;
            }
            _ if !parameter.allows(text) => {
                let message = format!("found `{text}`; legal: {}", parameter.legal());
                return Err(wrong(&value.place, message));
            }
            (ParameterKind::Float { min, .. }, "min") => *min = number(text),
            (ParameterKind::Float { max, .. }, "max") => *max = number(text),
            (ParameterKind::Int { min, .. }, "min") => *min = whole(text),
            (ParameterKind::Int { max, .. }, "max") => *max = whole(text),
            _ => return Err(illegal()),
        }
    }
    let empty = match &kind {
        ParameterKind::Float { min, max, .. } => min >= max,
        ParameterKind::Int { min, max } => min >= max,
        ParameterKind::Choice(choices) => choices.is_empty(),
    };
    if empty {
        return Err(wrong(&node.place, "there is nothing between `min` and `max`".to_owned()));
    }
    Ok(kind)
}

fn number(text: &str) -> f64 {
    yaml::float(text).expect("it is within the range")
}

fn whole(text: &str) -> u64 {
    yaml::whole(text).expect("it is within the range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_their_range_deserves() {
        let float = |value, min, max| rounded(&Value::Float(value), &Kind::Float { min, max });
        assert_eq!(float(3.456_789, 0.0, 10.0), "3.46");
        assert_eq!(float(0.123_456, 0.0, 1.0), "0.123");
        assert_eq!(float(123_456.789, 0.0, 1e6), "123000");
        assert_eq!(float(9.999, 0.0, 9.997), "9.997", "never out of the range");
        let log = |value| rounded(&Value::Float(value), &Kind::Log { min: 1e-4, max: 1e4 });
        assert_eq!([log(0.001_234_56), log(8_765.4)], ["0.00123", "8770"]);
        assert_eq!(rounded(&Value::Int(12_345), &Kind::Int { min: 0, max: 99_999 }), "12345");
    }
}
