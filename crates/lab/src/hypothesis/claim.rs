//! Claims as values: what is compared with what.

use crate::design::Design;
use crate::metric::Metric;
use std::fmt::Write;

/// Comparisons that must all hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// At least one.
    pub parts: Vec<Comparison>,
}

/// Two numbers and how they should compare. The left one has a metric in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The left side.
    pub left: Expr,
    /// How it should compare.
    pub relation: Relation,
    /// The right side.
    pub right: Expr,
}

/// How two numbers should compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `~ ... within`: the left is the right one times 1 minus or plus this share.
    About(f64),
}

/// A number that is computed from those of one seed.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number as written.
    Number(f64, Suffix),
    /// A number of a run.
    Value(Reference),
    /// Two numbers and what is done with them.
    Binary(Box<Expr>, Op, Box<Expr>),
}

/// What stands behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// Nothing.
    None,
    /// `%`
    Percent,
    /// `ms`
    Ms,
    /// `s`
    Seconds,
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Over,
}

/// A metric and where it is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Which number.
    pub metric: Metric,
    /// The level of each factor of the design; `None`: every one of them.
    pub levels: Vec<Option<usize>>,
}

impl Claim {
    /// Everything that it looks up.
    pub fn references(&self) -> Vec<&Reference> {
        self.parts.iter().flat_map(Comparison::references).collect()
    }

    /// The same claim about level `level` of factor `factor` wherever it names none.
    #[must_use]
    pub fn at(mut self, factor: usize, level: usize) -> Claim {
        for part in &mut self.parts {
            part.left.fix(factor, level);
            part.right.fix(factor, level);
        }
        self
    }

    /// The claim in the words that [`parse`](super::parse) reads.
    pub fn text(&self, design: &Design) -> String {
        let parts: Vec<String> = self.parts.iter().map(|part| part.text(design)).collect();
        parts.join(" and ")
    }
}

impl Comparison {
    /// Everything that it looks up.
    pub fn references(&self) -> Vec<&Reference> {
        [self.left.references(), self.right.references()].concat()
    }

    /// In the words that [`parse`](super::parse) reads.
    pub fn text(&self, design: &Design) -> String {
        let (left, right) = (self.left.text(design), self.right.text(design));
        match self.relation {
            Relation::About(share) => {
                format!("{left} ~ {right} within {}%", percent(share))
            }
            relation => format!("{left} {} {right}", relation.sign()),
        }
    }
}

impl Relation {
    /// Its spelling.
    pub const fn sign(self) -> &'static str {
        match self {
            Relation::Below => "<",
            Relation::AtMost => "<=",
            Relation::Above => ">",
            Relation::AtLeast => ">=",
            Relation::About(_) => "~",
        }
    }

    /// The same with the sides exchanged; `None` if that is another claim.
    pub(super) const fn mirrored(self) -> Option<Relation> {
        match self {
            Relation::Below => Some(Relation::Above),
            Relation::AtMost => Some(Relation::AtLeast),
            Relation::Above => Some(Relation::Below),
            Relation::AtLeast => Some(Relation::AtMost),
            Relation::About(_) => None,
        }
    }
}

impl Expr {
    /// Its value, where `of` looks metrics up; `None` without a sample, or beyond all numbers.
    pub fn value(&self, of: &dyn Fn(&Reference) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Expr::Number(value, suffix) => suffix.scale() * value,
            Expr::Value(reference) => of(reference)?,
            Expr::Binary(left, op, right) => {
                let (left, right) = (left.value(of)?, right.value(of)?);
                match op {
                    Op::Plus => left + right,
                    Op::Minus => left - right,
                    Op::Times => left * right,
                    Op::Over => left / right,
                }
            }
        };
        value.is_finite().then_some(value)
    }

    /// Whether it is the same whatever was run.
    pub fn is_fixed(&self) -> bool {
        self.references().is_empty()
    }

    /// The number, if it is the same whatever was run.
    pub fn constant(&self) -> Option<f64> {
        if self.is_fixed() { self.value(&|_| None) } else { None }
    }

    /// The number that it begins or ends with as a factor, and what is left.
    pub fn factored(&self) -> (f64, &Expr) {
        if let Expr::Binary(left, op, right) = self {
            match (op, left.constant(), right.constant()) {
                (Op::Times, Some(number), None) => return (number, right),
                (Op::Times, None, Some(number)) => return (number, left),
                (Op::Over, None, Some(number)) => return (1.0 / number, left),
                _ => {}
            }
        }
        (1.0, self)
    }

    /// Whether something is taken away in it, so that it may be negative.
    pub fn subtracts(&self) -> bool {
        match self {
            Expr::Number(value, _) => *value < 0.0,
            Expr::Value(_) => false,
            Expr::Binary(left, op, right) => {
                *op == Op::Minus || left.subtracts() || right.subtracts()
            }
        }
    }

    /// Looks everything up at level `level` of factor `factor` that names none.
    pub fn fix(&mut self, factor: usize, level: usize) {
        match self {
            Expr::Number(..) => {}
            Expr::Value(reference) => {
                reference.levels[factor].get_or_insert(level);
            }
            Expr::Binary(left, _, right) => {
                left.fix(factor, level);
                right.fix(factor, level);
            }
        }
    }

    /// Everything that it looks up.
    pub fn references(&self) -> Vec<&Reference> {
        match self {
            Expr::Number(..) => Vec::new(),
            Expr::Value(reference) => vec![reference],
            Expr::Binary(left, _, right) => [left.references(), right.references()].concat(),
        }
    }

    /// In the words that [`parse`](super::parse) reads.
    pub fn text(&self, design: &Design) -> String {
        match self {
            Expr::Number(value, suffix) => format!("{value}{}", suffix.text()),
            Expr::Value(reference) => reference.text(design),
            Expr::Binary(left, op, right) => {
                let around = |side: &Expr, tighter: bool| {
                    let text = side.text(design);
                    if side.binds() < op.binds() || (tighter && side.binds() == op.binds()) {
                        format!("({text})")
                    } else {
                        text
                    }
                };
                format!("{} {} {}", around(left, false), op.text(), around(right, true))
            }
        }
    }

    /// How tightly it holds together.
    fn binds(&self) -> u8 {
        match self {
            Expr::Binary(_, op, _) => op.binds(),
            Expr::Number(..) | Expr::Value(_) => 3,
        }
    }
}

impl Op {
    const fn binds(self) -> u8 {
        match self {
            Op::Plus | Op::Minus => 1,
            Op::Times | Op::Over => 2,
        }
    }

    /// Its spelling.
    pub const fn text(self) -> &'static str {
        match self {
            Op::Plus => "+",
            Op::Minus => "-",
            Op::Times => "*",
            Op::Over => "/",
        }
    }
}

impl Suffix {
    /// What a number with it is multiplied by. Latencies are in milliseconds.
    pub const fn scale(self) -> f64 {
        match self {
            Suffix::None | Suffix::Ms => 1.0,
            Suffix::Percent => 0.01,
            Suffix::Seconds => 1_000.0,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Suffix::None => "",
            Suffix::Percent => "%",
            Suffix::Ms => "ms",
            Suffix::Seconds => "s",
        }
    }
}

impl Reference {
    /// The levels at which it is looked up, where `free` stands for what it does not name.
    pub fn at(&self, free: &[usize]) -> Vec<usize> {
        self.levels.iter().zip(free).map(|(level, &free)| level.unwrap_or(free)).collect()
    }

    /// In the words that [`parse`](super::parse) reads.
    pub fn text(&self, design: &Design) -> String {
        let mut text = self.metric.name();
        let named = |factor: &str| {
            let index = design.factor(factor)?;
            self.levels[index].map(|level| spelled(&design.factors[index].levels[level]))
        };
        let mut items = Vec::new();
        match (named("arm"), named("workload")) {
            (None, None) => {}
            (Some(arm), None) => items.push(arm),
            (None, Some(workload)) => items.push(format!("@ {workload}")),
            (Some(arm), Some(workload)) => items.push(format!("{arm} @ {workload}")),
        }
        for (factor, level) in design.factors.iter().zip(&self.levels) {
            if let (Some(level), false) = (level, is_patched(&factor.name)) {
                items.push(format!(
                    "{}={}",
                    spelled(&factor.name),
                    spelled(&factor.levels[*level])
                ));
            }
        }
        if !items.is_empty() {
            let _ = write!(text, "({})", items.join(", "));
        }
        text
    }
}

/// Whether a factor is named by its place rather than by `name=level`.
pub(super) fn is_patched(factor: &str) -> bool {
    matches!(factor, "arm" | "workload")
}

/// Whether `c` may stand in a name without quotes.
pub(super) fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || " _+-.:/".contains(c)
}

/// `name` as it is written in a claim: in quotes if it needs them.
pub(crate) fn spelled(name: &str) -> String {
    let plain = name.chars().all(is_plain) && name.trim() == name && !name.is_empty();
    if plain { name.to_owned() } else { format!("\"{name}\"") }
}

/// A share in percent, so that it reads back as the same number.
fn percent(share: f64) -> f64 {
    let rounded = (share * 1e8).round() / 1e6;
    if (rounded / 100.0).total_cmp(&share).is_eq() { rounded } else { share * 100.0 }
}
