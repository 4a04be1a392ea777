//! Algebra: formulas in their simplest form, which decides as they do.
//!
//! Sums and products have their terms in one order, with numbers computed; what is always true or
//! false goes; of a scorer only the order of instances matters, so what is the same for all of
//! them, positive factors and increasing functions around the whole go as well. Values may differ
//! in their last digits.

use crate::tree::{join, negative, over};
use blis_policy::formula::signals::Role;
use blis_policy::formula::syntax::{Binary, Expr, Unary};
use blis_policy::formula::{Formula, Value, known};

/// Each pass may enable another; more than a few never do.
const PASSES: usize = 8;

/// `expr`, a legal formula of `role`, in its simplest form.
pub fn simplify(role: Role, expr: &Expr) -> Expr {
    let mut found = expr.clone();
    for _ in 0..PASSES {
        let mut next = pass(role, &found);
        if role == Role::Scorer {
            next = ranked(&next, false);
        }
        if next == found || Formula::read(role, &next.to_string()).is_err() {
            break;
        }
        found = next;
    }
    found
}

/// A condition that always holds: syntax has no word for it.
fn always() -> Expr {
    join(Binary::Less, Expr::Number(0.0), Expr::Number(1.0))
}

fn never() -> Expr {
    join(Binary::Less, Expr::Number(1.0), Expr::Number(0.0))
}

/// Whether `expr` always holds, or never does; `None` if that depends.
pub(crate) fn settled(expr: &Expr) -> Option<bool> {
    if *expr == always() { Some(true) } else { (*expr == never()).then_some(false) }
}

fn condition(holds: bool) -> Expr {
    if holds { always() } else { never() }
}

fn call(name: &str, inner: Vec<Expr>) -> Expr {
    Expr::Call(name.to_owned(), inner)
}

/// The number that `expr` is, if it is made of numbers alone.
fn literal(role: Role, expr: &Expr) -> Option<f64> {
    known(role, expr).filter(|value| value.literal).map(|value| value.low)
}

fn pass(role: Role, expr: &Expr) -> Expr {
    let expr = over(expr, |child| pass(role, child));
    if let Some(number) = literal(role, &expr) {
        let size = Expr::Number(number.abs());
        return if number < 0.0 { negative(size) } else { size };
    }
    match &expr {
        Expr::Number(_) | Expr::Name(_) => expr,
        Expr::Unary(Unary::Not, inner) => not(inner),
        Expr::Binary(Binary::And | Binary::Or, ..) => joined(&expr),
        Expr::Unary(Unary::Minus, _)
        | Expr::Binary(Binary::Plus | Binary::Minus | Binary::Times | Binary::Over, ..) => {
            Sum::of(role, &expr).expr()
        }
        Expr::Binary(sign, left, right) => compared(role, *sign, left, right),
        Expr::Call(name, inner) => called(role, name, inner),
    }
}

/// A product: a number, factors, and divisors, in the order of their texts.
#[derive(Clone, Debug)]
struct Product {
    number: f64,
    factors: Vec<Expr>,
    divisors: Vec<Expr>,
}

impl Product {
    fn of(role: Role, expr: &Expr) -> Product {
        let mut found = Product { number: 1.0, factors: Vec::new(), divisors: Vec::new() };
        found.take(role, expr, false);
        // Names and calls before sums.
        let key = |expr: &Expr| (matches!(expr, Expr::Binary(..)), expr.to_string());
        found.factors.sort_by_cached_key(key);
        found.divisors.sort_by_cached_key(key);
        for divisor in std::mem::take(&mut found.divisors) {
            match found.factors.iter().position(|factor| *factor == divisor) {
                Some(place) => drop(found.factors.remove(place)),
                None => found.divisors.push(divisor),
            }
        }
        found
    }

    fn take(&mut self, role: Role, expr: &Expr, divides: bool) {
        if let Some(number) = literal(role, expr) {
            self.number = if divides { self.number / number } else { self.number * number };
            return;
        }
        match expr {
            Expr::Unary(Unary::Minus, inner) => {
                self.number = -self.number;
                self.take(role, inner, divides);
            }
            Expr::Binary(Binary::Times, left, right) => {
                self.take(role, left, divides);
                self.take(role, right, divides);
            }
            Expr::Binary(Binary::Over, left, right) => {
                self.take(role, left, divides);
                self.take(role, right, !divides);
            }
            _ if divides => self.divisors.push(expr.clone()),
            _ => self.factors.push(expr.clone()),
        }
    }

    /// It with `number` instead of its own.
    fn times(&self, number: f64) -> Expr {
        if number < 0.0 && matches!(self.factors.first(), Some(Expr::Binary(..))) {
            return negative(self.times(-number));
        }
        let signed = |expr: Expr| if number < 0.0 { negative(expr) } else { expr };
        let mut factors = self.factors.iter().cloned();
        let first = match factors.next() {
            Some(first) if (number.abs() - 1.0).abs() <= 0.0 => signed(first),
            Some(first) => join(Binary::Times, signed(Expr::Number(number.abs())), first),
            None => signed(Expr::Number(number.abs())),
        };
        let product = factors.fold(first, |left, right| join(Binary::Times, left, right));
        self.divisors.iter().cloned().fold(product, |left, right| join(Binary::Over, left, right))
    }

    fn is_number(&self) -> bool {
        self.factors.is_empty() && self.divisors.is_empty()
    }
}

/// A sum of products that differ in more than their numbers.
struct Sum(Vec<Product>);

impl Sum {
    fn of(role: Role, expr: &Expr) -> Sum {
        let mut found = Sum(Vec::new());
        found.take(role, expr, 1.0);
        found.0.retain(|term| term.number.abs() > 0.0);
        let key =
            |term: &Product| (term.number < 0.0, term.is_number(), term.times(1.0).to_string());
        found.0.sort_by_cached_key(key);
        found
    }

    fn take(&mut self, role: Role, expr: &Expr, sign: f64) {
        match expr {
            Expr::Binary(Binary::Plus, left, right) => {
                self.take(role, left, sign);
                self.take(role, right, sign);
            }
            Expr::Binary(Binary::Minus, left, right) => {
                self.take(role, left, sign);
                self.take(role, right, -sign);
            }
            Expr::Unary(Unary::Minus, inner) => self.take(role, inner, -sign),
            _ => {
                let mut term = Product::of(role, expr);
                term.number *= sign;
                let text = term.times(1.0);
                match self.0.iter_mut().find(|other| other.times(1.0) == text) {
                    Some(other) => other.number += term.number,
                    None => self.0.push(term),
                }
            }
        }
    }

    fn expr(&self) -> Expr {
        let mut terms = self.0.iter();
        let Some(first) = terms.next() else { return Expr::Number(0.0) };
        terms.fold(first.times(first.number), |left, term| {
            let sign = if term.number < 0.0 { Binary::Minus } else { Binary::Plus };
            join(sign, left, term.times(term.number.abs()))
        })
    }
}

fn not(inner: &Expr) -> Expr {
    match inner {
        Expr::Unary(Unary::Not, inner) => (**inner).clone(),
        _ if settled(inner).is_some() => condition(settled(inner) == Some(false)),
        Expr::Binary(sign, left, right) => {
            let other = match sign {
                Binary::Less => Binary::AtLeast,
                Binary::AtMost => Binary::Greater,
                Binary::Greater => Binary::AtMost,
                Binary::AtLeast => Binary::Less,
                Binary::Equal => Binary::Unequal,
                Binary::Unequal => Binary::Equal,
                _ => return Expr::Unary(Unary::Not, Box::new(inner.clone())),
            };
            Expr::Binary(other, left.clone(), right.clone())
        }
        _ => Expr::Unary(Unary::Not, Box::new(inner.clone())),
    }
}

/// Conditions in a row, each once.
fn joined(expr: &Expr) -> Expr {
    let Expr::Binary(sign, ..) = expr else { return expr.clone() };
    let mut all = Vec::new();
    collect(*sign, expr, &mut all);
    // One that settles the whole, and one that has no say.
    let (decides, idle) = (*sign == Binary::Or, *sign == Binary::And);
    if all.iter().any(|one| settled(one) == Some(decides)) {
        return condition(decides);
    }
    all.retain(|one| settled(one) != Some(idle));
    all.sort_by_cached_key(Expr::to_string);
    all.dedup();
    let joined = all.into_iter().reduce(|left, right| join(*sign, left, right));
    joined.unwrap_or_else(|| condition(idle))
}

fn collect(sign: Binary, expr: &Expr, all: &mut Vec<Expr>) {
    match expr {
        Expr::Binary(found, left, right) if *found == sign => {
            collect(sign, left, all);
            collect(sign, right, all);
        }
        _ => all.push(expr.clone()),
    }
}

/// A comparison with what is a number on the right.
fn compared(role: Role, sign: Binary, left: &Expr, right: &Expr) -> Expr {
    let whole = join(sign, left.clone(), right.clone());
    let (Some(a), Some(b)) = (known(role, left), known(role, right)) else { return whole };
    let mirrored = match sign {
        Binary::Less => Binary::Greater,
        Binary::AtMost => Binary::AtLeast,
        Binary::Greater => Binary::Less,
        Binary::AtLeast => Binary::AtMost,
        _ => return whole,
    };
    let holds = match sign {
        Binary::Less => order(a, b, false),
        Binary::AtMost => order(a, b, true),
        Binary::Greater => order(b, a, false),
        _ => order(b, a, true),
    };
    if let Some(holds) = holds {
        return condition(holds);
    }
    let swaps = a.literal || (!b.literal && left.to_string() > right.to_string());
    if swaps { join(mirrored, right.clone(), left.clone()) } else { whole }
}

/// Whether `a` is surely below `b`, or, if `equal`, at most there; `None` if that depends.
fn order(a: Value, b: Value, equal: bool) -> Option<bool> {
    let (below, above) =
        if equal { (a.high <= b.low, a.low > b.high) } else { (a.high < b.low, a.low >= b.high) };
    if below { Some(true) } else { above.then_some(false) }
}

fn called(role: Role, name: &str, inner: &[Expr]) -> Expr {
    match (name, inner) {
        ("min" | "max", _) => bounded(role, name, inner),
        ("if", [condition, yes, no]) => match settled(condition) {
            Some(true) => yes.clone(),
            Some(false) => no.clone(),
            None if yes == no => yes.clone(),
            None => call(name, inner.to_vec()),
        },
        ("prefer_low" | "prefer_high", [inner]) => match ranked(inner, true) {
            Expr::Unary(Unary::Minus, inner) => {
                let other = if name == "prefer_low" { "prefer_high" } else { "prefer_low" };
                call(other, vec![*inner])
            }
            inner => call(name, vec![inner]),
        },
        ("number", [Expr::Call(second, again)]) if second == name => called(role, name, again),
        _ => call(name, inner.to_vec()),
    }
}

/// The least or the greatest of some, each once, without those that never are.
fn bounded(role: Role, name: &str, inner: &[Expr]) -> Expr {
    let mut all = Vec::new();
    for expr in inner {
        match expr {
            Expr::Call(same, more) if same == name => all.extend(more.iter().cloned()),
            _ => all.push(expr.clone()),
        }
    }
    all.sort_by_cached_key(|expr| (literal(role, expr).is_some(), expr.to_string()));
    all.dedup();
    let ranges: Vec<Option<Value>> = all.iter().map(|expr| known(role, expr)).collect();
    let beaten = |place: usize| {
        let mut others = (0..all.len()).filter(|&other| other != place);
        others.any(|other| {
            let (Some(own), Some(than)) = (ranges[place], ranges[other]) else { return false };
            // Two numbers that are equal were one already.
            if name == "min" { own.low >= than.high } else { own.high <= than.low }
        })
    };
    let kept: Vec<Expr> =
        (0..all.len()).filter(|&at| !beaten(at)).map(|at| all[at].clone()).collect();
    match &kept[..] {
        [one] => one.clone(),
        [] => call(name, all),
        _ => call(name, kept),
    }
}

/// An expression that ranks instances as `expr` does; if `even`, the steps between instances stay
/// in proportion.
fn ranked(expr: &Expr, even: bool) -> Expr {
    match ordered(expr, 1.0, even) {
        (sign, expr) if sign < 0.0 => Sum::of(Role::Scorer, &negative(expr)).expr(),
        (_, expr) => expr,
    }
}

/// The same, with 1 if larger is better, else -1.
fn ordered(expr: &Expr, sign: f64, even: bool) -> (f64, Expr) {
    let value = |expr: &Expr| known(Role::Scorer, expr);
    let is_each = |expr: &Expr| value(expr).is_none_or(|value| value.each);
    let is_positive = |expr: &Expr| value(expr).is_some_and(|value| value.low > 0.0);
    match expr {
        Expr::Unary(Unary::Minus, inner) => return ordered(inner, -sign, even),
        Expr::Call(name, inner) if is_each(&inner[0]) => match name.as_str() {
            "number" | "prefer_high" => return ordered(&inner[0], sign, even),
            "sqrt" | "exp" | "log" if !even => return ordered(&inner[0], sign, even),
            "prefer_low" => return ordered(&inner[0], -sign, even),
            _ => return (sign, expr.clone()),
        },
        Expr::Binary(..) => {}
        _ => return (sign, expr.clone()),
    }
    let Sum(mut terms) = Sum::of(Role::Scorer, expr);
    terms.retain(|term| is_each(&term.times(1.0)));
    let first = terms.iter().min_by_key(|term| term.times(1.0).to_string());
    let Some(scale) = first.map(|term| term.number.abs()) else { return (sign, expr.clone()) };
    for term in &mut terms {
        term.number /= scale;
    }
    let [term] = &mut terms[..] else { return (sign, Sum(terms).expr()) };
    let sign = sign * term.number.signum();
    term.number = 1.0;
    let matters = |expr: &Expr| is_each(expr) || !is_positive(expr);
    term.factors.retain(matters);
    term.divisors.retain(matters);
    match (&term.factors[..], &term.divisors[..]) {
        ([one], []) => ordered(one, sign, even),
        ([], [one]) if is_positive(one) && !even => ordered(one, -sign, even),
        _ => (sign, term.times(1.0)),
    }
}
