//! What makes a formula legal: known names, fitting units, and numbers that stay finite.
//!
//! Every part has a range, from the ranges of the signals in it. A divisor that can be 0, the
//! logarithm of what can be 0, and a number that can grow too large are refused here, so that no
//! decision ever meets one: what passes is computed without a further check.

use super::functions::{FUNCTIONS, Function};
use super::signals::{Get, Role, SIGNALS, Signal};
use super::syntax::{Binary, Expr, Unary};
use super::units::{PLAIN, Unit};
use crate::spec::nearest;
use blis_core::{SloClass, math};

/// How many values wait for their operator at most.
pub(super) const DEEPEST: usize = 16;
/// More instances than any cluster has.
const MOST_INSTANCES: f64 = math::float(1 << 20);
/// Wider than what a sum over all instances can be off by.
const ROUNDING: f64 = 1e-9;

/// One step of a compiled formula: takes the last values, leaves one.
#[derive(Clone, Copy)]
pub(super) enum Op {
    Constant(f64),
    Signal(&'static Signal),
    Unary(Unary),
    Binary(Binary),
    /// The same with a number on the right.
    With(Binary, f64),
    Call(Function),
}

/// What sort of value an expression has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A number.
    Number,
    /// A condition.
    Condition,
    /// A service class.
    Class,
}

/// What is known of an expression's value.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// What sort of value it is.
    pub sort: Sort,
    /// Its unit.
    pub unit: Unit,
    /// Made of numbers alone; fits any unit.
    pub literal: bool,
    /// Whether instances differ in it.
    pub each: bool,
    /// Whether what was computed still lacks a minus: products leave it to whoever needs it.
    pub(super) negated: bool,
    /// It is never less.
    pub low: f64,
    /// It is never more.
    pub high: f64,
}

impl Value {
    fn between(low: f64, high: f64) -> Value {
        Value { sort: Sort::Number, low, high, ..CONDITION }
    }

    /// A value of both.
    fn with(self, other: Value) -> Value {
        Value { each: self.each || other.each, literal: self.literal && other.literal, ..self }
    }

    /// The range that `of` has at the corners of two ranges.
    fn corners(self, other: Value, of: impl Fn(f64, f64) -> f64) -> (f64, f64) {
        let [a, b, c, d] = [
            of(self.low, other.low),
            of(self.low, other.high),
            of(self.high, other.low),
            of(self.high, other.high),
        ];
        (a.min(b).min(c.min(d)), a.max(b).max(c.max(d)))
    }

    /// The difference between its ends is a number too.
    pub(super) fn has_a_span(self) -> bool {
        (self.high - self.low).is_finite()
    }
}

/// Checks a formula and compiles it on the way.
pub(super) struct Checker {
    role: Role,
    pub(super) ops: Vec<Op>,
    /// How many values wait now.
    depth: usize,
    /// Where the steps of the last right side begin.
    middle: usize,
    /// The first function over all instances that was met.
    pub(super) across: Option<&'static str>,
}

type Checked = Result<Value, String>;

impl Checker {
    pub(super) fn new(role: Role) -> Checker {
        Checker { role, ops: Vec::new(), depth: 0, middle: 0, across: None }
    }

    pub(super) fn check(&mut self, expr: &Expr) -> Checked {
        let start = self.ops.len();
        let mut value = match expr {
            Expr::Number(x) => {
                self.push(Op::Constant(*x), 0)?;
                Value { literal: true, ..Value::between(*x, *x) }
            }
            Expr::Name(name) => self.name(name)?,
            Expr::Unary(sign, inner) => self.unary(*sign, inner)?,
            Expr::Binary(binary, left, right) => self.binary(*binary, left, right, expr)?,
            Expr::Call(name, inner) => self.call(name, inner)?,
        };
        if !(value.low.is_finite() && value.high.is_finite()) {
            return Err(format!("`{expr}` can become too large for a number; bound it with `min`"));
        }
        if value.literal {
            self.ops.truncate(start);
            self.ops.push(Op::Constant(value.low));
            value.negated = false;
        }
        Ok(value)
    }

    /// Computes the minus that `value` lacks.
    pub(super) fn settle(&mut self, value: Value) -> Value {
        if value.negated {
            self.ops.push(Op::Unary(Unary::Minus));
        }
        Value { negated: false, ..value }
    }

    /// Adds a step that takes `taken` values and leaves one.
    fn push(&mut self, op: Op, taken: usize) -> Result<(), String> {
        self.ops.push(op);
        self.depth = self.depth + 1 - taken;
        if self.depth > DEEPEST {
            return Err(format!("is nested deeper than {DEEPEST}"));
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Checked {
        let mut known = SIGNALS.iter().filter(|signal| signal.is_known_to(self.role));
        if let Some(signal) = known.find(|signal| signal.name == name) {
            self.push(Op::Signal(signal), 0)?;
            let each = matches!(signal.get, Get::Each(_));
            return Ok(Value {
                unit: signal.unit,
                each,
                ..Value::between(signal.low, signal.high)
            });
        }
        if name == "class" {
            let class = Signal::CLASS;
            self.push(Op::Signal(class), 0)?;
            return Ok(Value { sort: Sort::Class, ..Value::between(class.low, class.high) });
        }
        if let Some(class) = SloClass::from_name(name) {
            let index = math::float(class.index() as u64);
            self.push(Op::Constant(index), 0)?;
            return Ok(Value { sort: Sort::Class, ..Value::between(index, index) });
        }
        Err(self.unknown(name))
    }

    fn unknown(&self, name: &str) -> String {
        let signals = SIGNALS.iter().filter(|signal| signal.is_known_to(self.role));
        let classes = SloClass::ALL.into_iter().map(SloClass::name);
        let known: Vec<&str> =
            signals.map(|signal| signal.name).chain(["class"]).chain(classes).collect();
        unknown("name", name, &known)
    }

    fn number(&mut self, expr: &Expr) -> Checked {
        let value = self.factor(expr)?;
        Ok(self.settle(value))
    }

    /// A number that may lack its minus.
    fn factor(&mut self, expr: &Expr) -> Checked {
        let value = self.check(expr)?;
        match value.sort {
            Sort::Number => Ok(value),
            Sort::Condition => Err(format!(
                "`{expr}` is a condition where a number is needed; write `if({expr}, 1, 0)`"
            )),
            Sort::Class => Err(format!(
                "`{expr}` is a class where a number is needed; write e.g. `if(class == critical, \
                 2, 1)`"
            )),
        }
    }

    pub(super) fn condition(&mut self, expr: &Expr) -> Checked {
        let value = self.check(expr)?;
        if value.sort == Sort::Condition {
            return Ok(value);
        }
        Err(format!("`{expr}` is not a condition; compare it, as in `{expr} > 0`"))
    }

    fn unary(&mut self, sign: Unary, inner: &Expr) -> Checked {
        if sign == Unary::Not {
            let value = self.condition(inner)?;
            self.push(Op::Unary(sign), 1)?;
            return Ok(value);
        }
        let value = self.factor(inner)?;
        Ok(Value { negated: !value.negated, low: -value.high, high: -value.low, ..value })
    }

    fn binary(&mut self, binary: Binary, left: &Expr, right: &Expr, whole: &Expr) -> Checked {
        let start = self.ops.len();
        let value = match binary {
            Binary::Or | Binary::And => {
                let (a, b) = self.both(left, right, Checker::condition)?;
                a.with(b)
            }
            Binary::Equal | Binary::Unequal if names_a_class(left, right) => {
                self.classes(left, right)?
            }
            Binary::Plus | Binary::Minus => {
                let (a, b, unit) = self.alike(left, right)?;
                let (low, high) = match binary {
                    Binary::Plus => (a.low + b.low, a.high + b.high),
                    _ => (a.low - b.high, a.high - b.low),
                };
                Value { unit, low, high, ..a.with(b) }
            }
            Binary::Times => {
                let (a, b) = self.both(left, right, Checker::factor)?;
                let (low, high) = a.corners(b, |x, y| x * y);
                let (unit, negated) = (a.unit.times(b.unit), a.negated != b.negated);
                Value { unit, negated, low, high, ..a.with(b) }
            }
            Binary::Over => {
                let (a, b) = self.both(left, right, Checker::factor)?;
                if b.low <= 0.0 && b.high >= 0.0 {
                    return Err(if b.literal {
                        format!("`{whole}` divides by 0")
                    } else {
                        format!(
                            "`{whole}` divides by what can be 0; divide by e.g. `max({right}, \
                             1)`"
                        )
                    });
                }
                let (low, high) = a.corners(b, |x, y| x / y);
                let (unit, negated) = (a.unit.over(b.unit), a.negated != b.negated);
                Value { unit, negated, low, high, ..a.with(b) }
            }
            _ => {
                let (a, b, _) = self.alike(left, right)?;
                Value { each: a.each || b.each, ..CONDITION }
            }
        };
        Ok(self.join(binary, start, value))
    }

    /// Adds the step between two values whose steps begin at `start`; none if it changes nothing.
    fn join(&mut self, binary: Binary, start: usize, value: Value) -> Value {
        self.depth -= 1;
        if binary == Binary::Times && value.low.abs().max(value.high.abs()) <= 0.0 {
            self.ops.truncate(start);
            self.ops.push(Op::Constant(0.0));
            return Value { each: false, negated: false, ..value };
        }
        let swaps = matches!(binary, Binary::Plus | Binary::Times);
        let alone = self.middle == start + 1;
        if let (true, Op::Constant(x)) = (swaps && alone && !value.literal, self.ops[start]) {
            self.ops.remove(start);
            self.ops.push(Op::Constant(x));
        }
        match (binary, self.ops.last().copied()) {
            (_, Some(Op::Constant(x))) => {
                self.ops.pop();
                let idle = match binary {
                    Binary::Plus | Binary::Minus => 0.0,
                    Binary::Times | Binary::Over => 1.0,
                    _ => f64::NAN,
                };
                if x.to_bits() != f64::to_bits(idle) {
                    self.ops.push(Op::With(binary, x));
                }
            }
            _ => self.ops.push(Op::Binary(binary)),
        }
        value
    }

    /// Two numbers that can be added or compared, and their unit.
    fn alike(&mut self, left: &Expr, right: &Expr) -> Result<(Value, Value, Unit), String> {
        let (a, b) = self.both(left, right, Checker::number)?;
        Ok((a, b, common_unit(left, a, right, b)?))
    }

    /// Both values, left first.
    fn both(
        &mut self,
        left: &Expr,
        right: &Expr,
        of: fn(&mut Checker, &Expr) -> Checked,
    ) -> Result<(Value, Value), String> {
        let a = of(self, left)?;
        let middle = self.ops.len();
        let b = of(self, right)?;
        self.middle = middle;
        Ok((a, b))
    }

    fn classes(&mut self, left: &Expr, right: &Expr) -> Checked {
        for expr in [left, right] {
            if self.check(expr)?.sort != Sort::Class {
                return Err(format!("`{expr}` is not a class, and only classes equal a class"));
            }
        }
        Ok(CONDITION)
    }

    fn call(&mut self, name: &str, inner: &[Expr]) -> Checked {
        let Some(entry) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            return Err(unknown("function", name, &FUNCTIONS.map(|(known, ..)| known)));
        };
        let (name, function, arguments, _) = *entry;
        let (least, most) = match function {
            Function::Min | Function::Max => (2, usize::MAX),
            Function::Clamp | Function::If => (3, 3),
            _ => (1, 1),
        };
        if inner.len() < least || inner.len() > most {
            return Err(format!("`{name}` has other arguments; write `{name}({arguments})`"));
        }
        match function {
            Function::Min | Function::Max | Function::Clamp => self.bound(function, inner),
            Function::If => self.choose(inner),
            Function::Abs | Function::Log | Function::Exp | Function::Sqrt | Function::Number => {
                self.shape(function, &inner[0])
            }
            _ => self.over_instances(name, function, &inner[0]),
        }
    }

    fn bound(&mut self, function: Function, inner: &[Expr]) -> Checked {
        let mut value = self.number(&inner[0])?;
        for (at, expr) in inner.iter().enumerate().skip(1) {
            let other = self.number(expr)?;
            let unit = common_unit(&inner[0], value, expr, other)?;
            let step = match function {
                Function::Clamp if at == 1 => Function::Max,
                Function::Clamp => Function::Min,
                _ => function,
            };
            let (low, high) = if step == Function::Min {
                (value.low.min(other.low), value.high.min(other.high))
            } else {
                (value.low.max(other.low), value.high.max(other.high))
            };
            value = Value { unit, low, high, ..value.with(other) };
            self.push(Op::Call(step), 2)?;
        }
        Ok(value)
    }

    fn choose(&mut self, inner: &[Expr]) -> Checked {
        let condition = self.condition(&inner[0])?;
        let (a, b, unit) = self.alike(&inner[1], &inner[2])?;
        self.push(Op::Call(Function::If), 3)?;
        let (low, high) = (a.low.min(b.low), a.high.max(b.high));
        let each = condition.each || a.each || b.each;
        // Which number it is depends on the condition, so it is not one to compute beforehand.
        Ok(Value { unit, each, ..Value::between(low, high) })
    }

    fn shape(&mut self, function: Function, inner: &Expr) -> Checked {
        let value = self.number(inner)?;
        let (low, high) = match function {
            Function::Abs if value.low >= 0.0 => (value.low, value.high),
            Function::Abs if value.high <= 0.0 => (-value.high, -value.low),
            Function::Abs => (0.0, value.high.max(-value.low)),
            Function::Exp => (math::exp(value.low), math::exp(value.high)),
            Function::Log if value.low > 0.0 => (math::ln(value.low), math::ln(value.high)),
            Function::Log => {
                return Err(format!("`log({inner})` can be of 0 or less; write `max({inner}, 1)`"));
            }
            Function::Sqrt if value.low >= 0.0 => (value.low.sqrt(), value.high.sqrt()),
            Function::Sqrt => {
                let less = format!("`sqrt({inner})` can be of less than 0");
                return Err(format!("{less}; write `max({inner}, 0)`"));
            }
            _ => (value.low, value.high),
        };
        let unit = if function == Function::Abs { value.unit } else { PLAIN };
        let literal = value.literal && function != Function::Number;
        self.push(Op::Call(function), 1)?;
        Ok(Value { unit, literal, low, high, ..value })
    }

    fn over_instances(&mut self, name: &'static str, function: Function, inner: &Expr) -> Checked {
        let value = self.number(inner)?;
        if !value.each {
            return Err(format!(
                "`{name}({inner})` is over all instances, but `{inner}` is the same for all"
            ));
        }
        if !value.has_a_span() {
            return Err(format!("`{inner}` can become too large for a number"));
        }
        self.across = self.across.or(Some(name));
        self.push(Op::Call(function), 1)?;
        let wider = |x: f64, sign: f64| x + sign * x.abs() * ROUNDING;
        let (low, high) = (wider(value.low, -1.0), wider(value.high, 1.0));
        Ok(match function {
            Function::PreferLow | Function::PreferHigh => {
                Value { each: true, ..Value::between(0.0, 1.0) }
            }
            Function::Sum => {
                let (low, high) = (low.min(low * MOST_INSTANCES), high.max(high * MOST_INSTANCES));
                Value { each: false, low, high, ..value }
            }
            Function::Mean => Value { each: false, low, high, ..value },
            _ => Value { each: false, ..value },
        })
    }
}

const CONDITION: Value = Value {
    sort: Sort::Condition,
    unit: PLAIN,
    literal: false,
    each: false,
    negated: false,
    low: 0.0,
    high: 1.0,
};

/// Whether either of them is a class by its name.
fn names_a_class(left: &Expr, right: &Expr) -> bool {
    let is_class = |expr: &Expr| {
        let Expr::Name(name) = expr else { return false };
        name == "class" || SloClass::from_name(name).is_some()
    };
    is_class(left) || is_class(right)
}

/// The unit of two numbers that are added or compared. A number that was written has any.
fn common_unit(left: &Expr, a: Value, right: &Expr, b: Value) -> Result<Unit, String> {
    if a.unit == b.unit || b.literal {
        return Ok(a.unit);
    }
    if a.literal {
        return Ok(b.unit);
    }
    Err(format!(
        "`{left}` has {} and `{right}` has {}; to add or compare them, write `number(...)` around \
         both",
        a.unit, b.unit
    ))
}

fn unknown(what: &str, name: &str, known: &[&'static str]) -> String {
    let hint = nearest(name, known.iter().copied())
        .map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
    format!("unknown {what} `{name}`{hint}; known: `{}`", known.join("`, `"))
}
