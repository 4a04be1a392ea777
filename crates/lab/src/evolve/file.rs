//! Files of evolutions: from YAML to checked searches on training and held-out workloads.

use super::{Budget, Evolution, Outline};
use crate::optimize::file::outline;
use crate::optimize::points::Points;
use crate::optimize::{Constraint, Search};
use crate::study::arms::patched;
use crate::study::file::PatchFields;
use crate::study::levels::Level;
use blis_evolve::{Breeder, Part, Space};
use blis_policy::formula::signals::SIGNALS;
use blis_scenario::legal::Share;
use blis_scenario::problem::{Problem, unknown};
use blis_scenario::problems::{Findings, Problems};
use blis_scenario::scenario::Draft;
use blis_scenario::strategy;
use blis_scenario::yaml::{self, Amount, Kind, Named, Node, Whole};
use serde::Deserialize;
use std::path::Path;

/// How hits can be known.
const KNOWLEDGE: [&str; 2] = ["precise", "approximate"];
/// The most parts that formulas have, unless the file says otherwise.
const SIZE: usize = 20;

/// An evolution as written. What a search has too is checked when that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    baseline: Option<Node>,
    held_out: Vec<Node>,
    evolve: EvolveFields,
    budget: BudgetFields,
    references: Vec<PatchFields>,
    question: Option<Node>,
    base: Option<Node>,
    workloads: Option<Node>,
    objective: Option<Node>,
    maximise: Option<Node>,
    constraints: Option<Node>,
    guards: Option<Node>,
    confirm: Option<Node>,
    discussion: Option<Node>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EvolveFields {
    signals: Vec<String>,
    knowledge: Option<String>,
    gate: bool,
    priority: bool,
    parts: Named<Vec<String>>,
    size: Option<Whole<3, 100>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BudgetFields {
    population: Option<Whole<4, 10_000>>,
    generations: Option<Whole<1, 10_000>>,
    seeds: Option<Whole<1, 100>>,
    climbs: Option<Whole<0, 10_000>>,
    seed: Option<Whole<0, { u64::MAX }>>,
    parsimony: Option<Amount<Share>>,
}

/// Reads the evolution in the file `path`, with another seed of the breeding if one is given.
///
/// # Errors
/// All that is illegal in it; if it cannot be read.
pub fn read(path: &Path, seed: Option<u64>) -> Result<Outline, Problems> {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    evolution(&name, &yaml::read_file(path)?, seed)
}

/// Reads the evolution in `text` as if it stood in a file called `name`.
///
/// # Errors
/// All that is illegal in it.
pub fn read_text(name: &str, text: &str) -> Result<Outline, Problems> {
    evolution(name, &yaml::read_text(name, text)?, None)
}

fn evolution(name: &str, tree: &Node, seed: Option<u64>) -> Result<Outline, Problems> {
    yaml::decode_and(tree, |fields: Fields, tree| {
        let budget = budget(&fields.budget, seed);
        let knowledge = fields.evolve.knowledge.clone().unwrap_or_else(|| KNOWLEDGE[0].to_owned());
        let mut found = Findings::default();
        let baseline = found.keep(tree.required("", "baseline", fields.baseline.clone()));
        if fields.held_out.is_empty() {
            let message = "missing; name the workloads that the best is confirmed on";
            found.keep::<()>(Err(tree.problem("held_out", message)));
        }
        if !KNOWLEDGE.contains(&knowledge.as_str()) {
            let message = unknown("knowledge", &knowledge, &KNOWLEDGE);
            found.keep::<()>(Err(tree.problem("evolve.knowledge", message)));
        }
        let space = found.keep(space(tree, &fields.evolve));
        let references = found.keep(references(tree, &fields.references));
        // Without one, the rest is checked all the same.
        let baseline = baseline.unwrap_or_else(|| Node::from_flag("baseline", "round-robin"));
        let mut train = question(tree, &fields, &baseline, &budget);
        let mut test = train.clone();
        if let Some(held_out) = tree.field("held_out") {
            test.set(&["workloads"], held_out.clone());
        }
        share_constraints(&mut train, &mut test);
        let train = found.keep(outline(&train));
        let test = outline(&test).map_err(|problems| problems.map(of_held_out));
        let test = found.keep(test);
        if train.as_ref().is_some_and(|train| train.search().objectives.len() > 1) {
            let message = "an evolution has one objective; keep one";
            found.keep::<()>(Err(tree.problem("objective", message)));
        }
        let read = (train, test, space, references);
        let (Some(train), Some(test), Some(space), Some(references)) = found.done(read)? else {
            unreachable!("what is missing was found")
        };
        let train = Search { name: name.to_owned(), ..train.0 };
        let test = Search { name: format!("{name}-held-out"), ..test.0 };
        Ok(Outline(Evolution { train, test, space, knowledge, budget, references }))
    })
}

/// `problem` of the search on held-out workloads, under the name that they have in the file.
fn of_held_out(mut problem: Problem) -> Problem {
    if let Some(rest) = problem.path.strip_prefix("workloads") {
        problem.path = format!("held_out{rest}");
    }
    problem
}

/// A constraint that names a workload of one of the two searches is no constraint of the other.
fn share_constraints(train: &mut Node, test: &mut Node) {
    let Some(Kind::List(all)) = train.field("constraints").map(|node| node.kind.clone()) else {
        return;
    };
    let names = |tree: &Node| {
        let listed = tree.field("workloads").map_or(&[][..], Node::items).iter();
        listed.filter_map(|item| Some(item.field("name")?.text()?.to_owned())).collect()
    };
    let [trained, held_out]: [Vec<String>; 2] = [names(train), names(test)];
    let reads = |one: &Node, names: &[String]| {
        one.text().is_some_and(|text| Constraint::parse(text, names).is_ok())
    };
    // What neither reads is told once.
    let of_test = |one: &&Node| reads(one, &held_out);
    let of_train = |one: &&Node| reads(one, &trained) || !reads(one, &held_out);
    let list = |kept: Vec<&Node>| Kind::List(kept.into_iter().cloned().collect());
    let kinds =
        [list(all.iter().filter(of_train).collect()), list(all.iter().filter(of_test).collect())];
    for (tree, kind) in [train, test].into_iter().zip(kinds) {
        let place = tree.place_of("constraints");
        tree.set(&["constraints"], Node { place, kind });
    }
}

/// The search that measures what is bred.
fn question(tree: &Node, fields: &Fields, baseline: &Node, budget: &Budget) -> Node {
    let mut asked = Node { place: tree.place.clone(), ..Node::empty() };
    for (name, field) in [
        ("question", &fields.question),
        ("base", &fields.base),
        ("workloads", &fields.workloads),
        ("objective", &fields.objective),
        ("maximise", &fields.maximise),
        ("constraints", &fields.constraints),
        ("guards", &fields.guards),
        ("confirm", &fields.confirm),
        ("discussion", &fields.discussion),
    ] {
        if let Some(node) = field {
            asked.set(&[name], node.clone());
        }
    }
    asked.set(&[strategy::FIELD], baseline.clone());
    let number = |number: u64| Node::from_flag("budget", &number.to_string());
    let calls = budget.population * budget.generations;
    asked.set(&["budget", "calls"], number(calls.clamp(4, 100_000) as u64));
    asked.set(&["budget", "seeds"], number(budget.seeds as u64));
    asked.set(&["budget", "seed"], number(budget.seed));
    // Refusing a hundredth of the requests can take away all that are late.
    if !tree.has("guards.refused") {
        asked.set(&["guards", "refused"], Node::from_flag("guards", "0%"));
    }
    asked
}

fn budget(fields: &BudgetFields, seed: Option<u64>) -> Budget {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Budget {
        population: size(fields.population.map_or(40, Whole::get)),
        generations: size(fields.generations.map_or(12, Whole::get)),
        seeds: size(fields.seeds.map_or(3, Whole::get)),
        climbs: size(fields.climbs.map_or(24, Whole::get)),
        seed: seed.or(fields.seed.map(Whole::get)).unwrap_or(0),
        parsimony: fields.parsimony.map_or(0.002, |it| it.get()),
    }
}

/// What may be bred.
fn space(tree: &Node, fields: &EvolveFields) -> Result<Space, Problems> {
    let known: Vec<&str> = SIGNALS.iter().map(|signal| signal.name).collect();
    let mut found = Findings::default();
    for name in fields.signals.iter().filter(|name| !known.contains(&name.as_str())) {
        found.keep::<()>(Err(tree.problem("evolve.signals", unknown("signal", name, &known))));
    }
    let legal: Vec<&str> = strategy::POLICIES.into_iter().filter(|it| *it != "routing").collect();
    for (field, options) in &fields.parts.0 {
        let path = format!("evolve.parts.{field}");
        let mut wrong = Vec::new();
        if !legal.contains(&field.as_str()) {
            wrong.push(unknown("part", field, &legal));
        } else if (field == "admission" && fields.gate) || (field == "priority" && fields.priority)
        {
            wrong.push("it is bred already, by `gate` or `priority`; keep one".to_owned());
        } else if options.is_empty() {
            wrong.push("found an empty list; legal: at least one policy".to_owned());
        } else {
            wrong.extend(options.iter().flat_map(|option| misspelled(field, option)));
        }
        for message in wrong {
            found.keep::<()>(Err(tree.problem(&path, message)));
        }
    }
    found.done(())?;
    let part = |(field, options): &(String, Vec<String>)| Part {
        field: field.clone(),
        options: options.clone(),
    };
    let space = Space {
        signals: fields.signals.clone(),
        gate: fields.gate,
        priority: fields.priority,
        parts: fields.parts.0.iter().map(part).collect(),
        size: fields.size.map_or(SIZE, |size| size.get_u32() as usize),
    };
    if Breeder::new(&space, 0).random().is_none() {
        let message = "no legal score is found with these; add one of instances, e.g. `in_flight`";
        return Err(tree.problem("evolve.signals", message));
    }
    Ok(space)
}

/// What is wrong with the policy `option` of the field `field` by itself.
fn misspelled(field: &str, option: &str) -> Vec<String> {
    let mut tree = Node::empty();
    tree.set(&[field], Node::from_flag("evolve", option));
    let Err(problems) = Draft::from_tree(tree).resolve() else { return Vec::new() };
    let own = problems.into_iter().filter(|problem| problem.path.starts_with(field));
    own.map(|problem| problem.message).collect()
}

/// What the best is compared with besides the baseline. What is to be tuned must have parameters.
fn references(tree: &Node, fields: &[PatchFields]) -> Result<Vec<Level>, Problems> {
    let mut found = Findings::default();
    let levels = patched(tree, "references", fields, &[], &[], &mut found).levels;
    for level in &levels {
        let strategy = level.own.iter().find(|(path, _)| path[0] == strategy::FIELD);
        let read = match strategy {
            None => {
                let message = format!("`{}` sets no strategy", level.name);
                Err(tree.problem("references", message))
            }
            Some((_, node)) => Points::read(tree, Some(node), None).and_then(|points| {
                let idle = level.tuned.is_some() && points.space.is_empty();
                let message = format!("`{}` has nothing to tune", level.name);
                if idle { Err(tree.problem("references", message)) } else { Ok(()) }
            }),
        };
        found.keep(read);
    }
    found.done(levels)
}
