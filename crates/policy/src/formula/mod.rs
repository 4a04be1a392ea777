//! Formulas: decisions written as expressions over declared signals.
//!
//! The policies named `formula` (a scorer, a gate, a priority, an order) hand their text to
//! [`Formula::read`]. It reads the text ([`syntax`]), checks names, units and ranges and compiles
//! it ([`check`]), once; evaluating it ([`run`]) cannot fail. What can be read is the table in
//! [`signals`]. It must never see more than the views of a policy.

mod check;
mod functions;
mod run;
pub mod signals;
pub mod syntax;
pub mod units;

use crate::view::Needs;
use check::{Checker, Op};
pub use check::{Sort, Value};
use functions::FUNCTIONS;
pub use run::Scratch;
use run::{Slot, Stack};
use signals::{Moment, Role, SIGNALS};
use std::fmt::{self, Write};
use syntax::Expr;

/// A formula that was checked and compiled.
#[derive(Clone)]
pub struct Formula {
    expr: Expr,
    ops: Vec<Op>,
    /// Whether instances differ in its value.
    each: bool,
    /// Whether what is computed lacks a minus.
    negated: bool,
}

impl Formula {
    /// Reads `text` as a formula of `role`.
    ///
    /// # Errors
    /// What is wrong with it: it is malformed, names what is not known, mixes units, can divide by
    /// 0 or grow without bound, or decides nothing.
    pub fn read(role: Role, text: &str) -> Result<Formula, String> {
        let expr = Expr::read(text)?;
        let mut checker = Checker::new(role);
        let mut value = checker.check(&expr)?;
        let sort = if role == Role::Gate { Sort::Condition } else { Sort::Number };
        if value.sort != sort {
            return Err(match sort {
                Sort::Condition => format!("`{expr}` is not a condition; compare it"),
                _ => format!("`{expr}` is not a number; write e.g. `if({expr}, 1, 0)`"),
            });
        }
        if !value.has_a_span() {
            return Err(format!("`{expr}` can become too large for a number"));
        }
        if role == Role::Scorer && !value.each {
            return Err(format!("`{expr}` is the same for all instances, so it prefers none"));
        }
        if let (Role::Gate, true, Some(name)) = (role, value.each, checker.across) {
            return Err(format!(
                "`{expr}` is about the chosen instance and, with `{name}`, about all: a gate \
                 decides after routing or before it; write two in `all-of(...; ...)`"
            ));
        }
        if role != Role::Scorer {
            value = checker.settle(value);
        }
        Ok(Formula { expr, ops: checker.ops, each: value.each, negated: value.negated })
    }

    /// One that was checked before.
    ///
    /// # Panics
    /// If it was not.
    pub(crate) fn checked(role: Role, text: &str) -> Formula {
        Formula::read(role, text).unwrap_or_else(|problem| panic!("`{text}`: {problem}"))
    }

    fn signals(&self) -> impl Iterator<Item = &'static signals::Signal> {
        self.ops
            .iter()
            .filter_map(|op| if let Op::Signal(signal) = op { Some(*signal) } else { None })
    }

    /// What it reads, but for what is cached where ([`Formula::reads_hits`]).
    pub fn needs(&self) -> Needs {
        self.signals().fold(Needs::NONE, |needs, signal| needs.or(signal.needs))
    }

    /// Whether it reads what of a prompt is cached where.
    pub fn reads_hits(&self) -> bool {
        self.signals().any(|signal| signal.hits)
    }

    /// Whether its value changes while a request waits.
    pub fn varies(&self) -> bool {
        self.signals().any(|signal| signal.varies)
    }

    /// Whether it has a value for each instance, not one for all.
    pub fn is_each(&self) -> bool {
        self.each
    }

    /// Whether [`Formula::each`] leaves a minus to its caller, who can compare the other way round.
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// Its value for each instance of `moment`, but for the minus of [`Formula::is_negated`].
    pub fn each(&self, moment: &Moment<'_>, scratch: &mut Scratch, out: &mut [f64]) {
        if let Slot::One(x) = Stack::run(&self.ops, moment, scratch, out) {
            out.fill(x);
        }
    }

    /// Its value for the first instance of `moment`, or for all.
    pub fn first(&self, moment: &Moment<'_>, scratch: &mut Scratch) -> f64 {
        let mut first = std::mem::take(&mut scratch.first);
        first.resize(moment.instances.len(), 0.0);
        let value = match Stack::run(&self.ops, moment, scratch, &mut first) {
            Slot::One(x) => x,
            Slot::Each => first[0],
        };
        scratch.first = first;
        value
    }

    /// Its one value, of a formula that reads nothing of instances. Never -0, which would rank
    /// before 0.
    pub fn one(&self, moment: &Moment<'_>) -> f64 {
        self.first(moment, &mut Scratch::new()) + 0.0
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.expr)
    }
}

/// What is known of the value of `expr`, a part of a formula of `role`; `None` if it is not legal.
pub fn known(role: Role, expr: &Expr) -> Option<Value> {
    Checker::new(role).check(expr).ok()
}

/// The section of the reference page about formulas.
pub(crate) fn reference(page: &mut String) {
    let mut line = |text: fmt::Arguments<'_>| {
        writeln!(page, "{text}").expect("writing to a string cannot fail");
    };
    line(format_args!("\n## Formulas\n"));
    line(format_args!(
        "The policies named `formula` take an expression of numbers, the names below, `+ - * /`, \
         `< <= > >= ==\n!=`, `and or not`, parentheses and functions. \
         [How to write one](../guide/formulas.md)."
    ));
    line(format_args!("\n| signal | unit | age | read by | meaning |\n|---|---|---|---|---|"));
    for signal in SIGNALS {
        let roles = [Role::Scorer, Role::Gate, Role::Priority, Role::Order];
        let known = roles.map(|role| signal.is_known_to(role));
        let readers = match known {
            [true, true, true, true] => "all",
            [true, ..] => "scorers, gates",
            [_, _, true, true] => "priorities, orders",
            _ => "orders",
        };
        line(format_args!(
            "| `{}` | {} | {} | {readers} | {} |",
            signal.name, signal.unit, signal.age, signal.help
        ));
    }
    line(format_args!(
        "| `class` | class | live | all | its service class, to compare with `critical`, \
         `standard`, `sheddable`, `batch` or `background` |"
    ));
    line(format_args!("\n| function | value |\n|---|---|"));
    for (name, _, arguments, help) in FUNCTIONS {
        line(format_args!("| `{name}({arguments})` | {help} |"));
    }
}

#[cfg(test)]
mod tests;
