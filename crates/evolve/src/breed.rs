//! How genomes come about: drawn at random, changed, crossed, and cut.
//!
//! Trees are drawn and exchanged by unit, so most are legal as they are; what the checker of
//! formulas refuses, what is too large and what decides nothing is drawn again.

use crate::genome::{Genome, Space};
use crate::simplify::{settled, simplify};
use crate::tree::{join, negative, parts, with};
use blis_core::math::{exp, ln, pow};
use blis_core::random::Purpose;
use blis_core::{Dice, SloClass};
use blis_policy::formula::signals::Role;
use blis_policy::formula::syntax::{Binary, Expr, Unary};
use blis_policy::formula::units::{PLAIN, Unit};
use blis_policy::formula::{Formula, Sort, known};
use std::ops::Range;

/// So many draws without a legal one are given up.
const TRIES: usize = 200;
/// How deep trees are that are drawn: whole ones, and those that take the place of a part.
const DEEP: usize = 3;
const SHALLOW: usize = 2;
/// Numbers that are drawn are between 1 over this and this, evenly by their logarithm.
const MOST: f64 = 256.0;
/// How much a number changes: the spread of the logarithm of the factor.
const SPREAD: f64 = 0.7;
/// Significant digits of numbers.
const DIGITS: f64 = 3.0;

/// Draws and changes genomes of a space.
#[derive(Clone, Debug)]
pub struct Breeder<'a> {
    pub(crate) space: &'a Space,
    dice: Dice,
    /// How many formulas were drawn, and how many of them the checker refused.
    drawn: (usize, usize),
}

impl<'a> Breeder<'a> {
    /// One that draws by `seed`.
    pub fn new(space: &'a Space, seed: u64) -> Breeder<'a> {
        Breeder { space, dice: Dice::new(seed, Purpose::Search, 0), drawn: (0, 0) }
    }

    /// How many formulas were drawn, and how many of them the checker refused.
    pub fn drawn(&self) -> (usize, usize) {
        self.drawn
    }

    /// A genome at random; `None` if none is found that is legal.
    pub fn random(&mut self) -> Option<Genome> {
        (0..TRIES).find_map(|_| {
            let score = self.formula(Role::Scorer)?;
            let gate =
                if self.space.gate && self.chance(0.5) { self.formula(Role::Gate) } else { None };
            let priority = self.space.priority && self.chance(0.5);
            let priority = if priority { self.formula(Role::Priority) } else { None };
            let (dice, parts) = (&mut self.dice, self.space.parts.iter());
            let parts = parts.map(|part| part.options[dice.below(part.options.len())].clone());
            let parts = parts.collect();
            self.fits(&Genome { score, gate, priority, parts })
        })
    }

    /// A child of `one`, crossed with `other` or changed, and what was done; `None` if nothing
    /// legal is found that is different.
    pub fn child(&mut self, one: &Genome, other: &Genome) -> Option<(Genome, &'static str)> {
        (0..TRIES).find_map(|_| {
            let (child, change) = self.changed(one, other)?;
            Some((self.fits(&child).filter(|child| child != one)?, change))
        })
    }

    /// `genome` in its simplest form, if that is legal, small enough and decides something.
    pub(crate) fn fits(&mut self, genome: &Genome) -> Option<Genome> {
        let mut fit = genome.clone();
        for (role, formula) in genome.formulas() {
            self.drawn.0 += 1;
            if Formula::read(role, &formula.to_string()).is_err() {
                self.drawn.1 += 1;
                return None;
            }
            let simple = simplify(role, &rounded(&simplify(role, formula)));
            match settled(&simple) {
                Some(true) => fit = fit.with(role, None),
                Some(false) => return None,
                None => fit = fit.with(role, Some(simple)),
            }
        }
        Some(fit).filter(|fit| fit.is_legal() && fit.size() <= self.space.size)
    }

    fn changed(&mut self, one: &Genome, other: &Genome) -> Option<(Genome, &'static str)> {
        let (gate, priority) = (self.space.gate, self.space.priority);
        let chosen = (0..one.parts.len()).any(|at| self.is_chosen(one, at));
        let roles = [(Role::Scorer, true), (Role::Gate, gate), (Role::Priority, priority)];
        let roles: Vec<Role> =
            roles.into_iter().filter(|(_, may)| *may).map(|(role, _)| role).collect();
        // The score decides most, so it changes most.
        let place = self.dice.below(1 + roles.len() + usize::from(chosen));
        let Some(&role) = roles.get(place.saturating_sub(1)) else {
            return Some((self.chosen(one), "another part"));
        };
        let of = |genome: &Genome| {
            genome.formulas().find(|(of, _)| *of == role).map(|(_, it)| it.clone())
        };
        let (own, donor) = (of(one), of(other));
        let Some(own) = own else {
            let (new, change) = match donor {
                Some(donor) if self.chance(0.5) => (Some(donor), "a formula of another"),
                _ => (self.formula(role), "a new formula"),
            };
            return Some((one.with(role, Some(new?)), change));
        };
        if role != Role::Scorer && self.chance(0.2) {
            return Some((one.with(role, None), "a formula removed"));
        }
        let (formula, change) = self.varied(role, &own, donor.as_ref().filter(|_| one != other))?;
        Some((one.with(role, Some(formula)), change))
    }

    /// Whether part number `at` of `genome` can be another: by option, or by a number in it.
    fn is_chosen(&self, genome: &Genome, at: usize) -> bool {
        self.space.parts[at].options.len() > 1 || !numbers(&genome.parts[at]).is_empty()
    }

    /// `genome` with another option for one of its parts, or another number in it.
    fn chosen(&mut self, genome: &Genome) -> Genome {
        let mut genome = genome.clone();
        let many: Vec<usize> =
            (0..genome.parts.len()).filter(|&at| self.is_chosen(&genome, at)).collect();
        if let Some(&at) = self.pick(&many) {
            let options = &self.space.parts[at].options;
            let places = numbers(&genome.parts[at]);
            genome.parts[at] = match self.pick(&places) {
                Some(place) if options.len() == 1 || self.chance(0.7) => {
                    let old = &genome.parts[at][place.clone()];
                    let new = self.nearby(old.parse().unwrap_or(1.0));
                    let whole = old.bytes().all(|byte| byte.is_ascii_digit());
                    let new = if whole { new.round() } else { new };
                    let mut text = genome.parts[at].clone();
                    text.replace_range(place.clone(), &rounded(&Expr::Number(new)).to_string());
                    text
                }
                _ => options[self.dice.below(options.len())].clone(),
            };
        }
        genome
    }

    /// A number of about this size.
    fn nearby(&mut self, old: f64) -> f64 {
        let factor = exp(SPREAD * self.dice.normal());
        if old > 0.0 { old * factor } else { factor }
    }

    /// `own` with a change, perhaps with a part of `donor`.
    fn varied(
        &mut self,
        role: Role,
        own: &Expr,
        donor: Option<&Expr>,
    ) -> Option<(Expr, &'static str)> {
        if let (Role::Scorer, Some(donor)) = (role, donor)
            && self.chance(0.15)
        {
            return Some((product(own, donor), "multiplied"));
        }
        let all = parts(own);
        let place = self.dice.below(all.len());
        let part = all[place];
        let found = known(role, part).filter(|found| found.sort != Sort::Class)?;
        let unit = (place > 0 && !found.literal).then_some(found.unit);
        let is_number = found.sort == Sort::Number;
        let fits = |other: &&&Expr| {
            known(role, other).is_some_and(|other| {
                let same = unit.is_none() || other.literal || unit == Some(other.unit);
                other.sort == found.sort && same
            })
        };
        let (new, change) = match (self.dice.below(10), donor) {
            (0..=3, Some(donor)) => {
                let donors = parts(donor);
                let donors: Vec<&&Expr> = donors.iter().filter(fits).collect();
                ((**self.pick(&donors)?).clone(), "crossed")
            }
            (0..=4, _) if is_number => (self.number(role, unit, SHALLOW), "a new part"),
            (0..=4, _) => (self.condition(role, SHALLOW), "a new part"),
            (5, _) => {
                let inner = parts(part);
                let inner: Vec<&&Expr> = inner.iter().skip(1).filter(fits).collect();
                ((**self.pick(&inner)?).clone(), "cut")
            }
            (6, _) if is_number => (self.wrapped(role, part), "wrapped"),
            (7 | 8, _) => (self.nudged(part)?, "another number"),
            _ => {
                let others = self.others(role, part);
                (self.pick(&others)?.clone(), "another sign or signal")
            }
        };
        Some((with(own, place, &new), change))
    }

    /// `part` and something else.
    fn wrapped(&mut self, role: Role, part: &Expr) -> Expr {
        let found = known(role, part);
        let unit = found.filter(|found| !found.literal).map(|found| found.unit);
        let (sign, other) = match self.dice.below(5) {
            0 => (Binary::Plus, self.number(role, unit, 1)),
            1 => (Binary::Minus, self.number(role, unit, 1)),
            2 => (Binary::Over, self.divisor(role, None, 0)),
            _ => (Binary::Times, self.number(role, None, 1)),
        };
        join(sign, part.clone(), other)
    }

    /// `part` with another number in it, if it has one.
    fn nudged(&mut self, part: &Expr) -> Option<Expr> {
        let all = parts(part);
        let numbers: Vec<usize> =
            (0..all.len()).filter(|&at| matches!(all[at], Expr::Number(_))).collect();
        let place = *self.pick(&numbers)?;
        let Expr::Number(old) = all[place] else { return None };
        let new = self.nearby(*old);
        Some(with(part, place, &Expr::Number(new)))
    }

    pub(crate) fn formula(&mut self, role: Role) -> Option<Expr> {
        let draw = |breeder: &mut Breeder<'_>| {
            if role == Role::Gate {
                return breeder.condition(role, SHALLOW);
            }
            // Small ones too; and of what is good to have much of, others are good to have little.
            let depth = 1 + breeder.dice.below(DEEP);
            let number = breeder.number(role, None, depth);
            if breeder.chance(0.5) { negative(number) } else { number }
        };
        (0..TRIES).find_map(|_| {
            let formula = draw(self);
            self.drawn.0 += 1;
            let legal = Formula::read(role, &formula.to_string()).is_ok();
            self.drawn.1 += usize::from(!legal);
            legal.then_some(formula)
        })
    }

    /// A number of this unit, or of any.
    fn number(&mut self, role: Role, unit: Option<Unit>, depth: usize) -> Expr {
        if depth == 0 || self.chance(0.25) {
            return self.leaf(role, unit);
        }
        let below = depth - 1;
        let plain = unit.map(|_| PLAIN);
        match self.dice.below(10) {
            0..=2 => {
                let (a, b) = self.pair(role, unit, below);
                let sign = if self.chance(0.5) { Binary::Plus } else { Binary::Minus };
                join(sign, a, b)
            }
            3..=5 => {
                let a = self.number(role, unit, below);
                join(Binary::Times, a, self.number(role, plain, below))
            }
            6 => {
                let a = self.number(role, unit, below);
                join(Binary::Over, a, self.divisor(role, plain, below))
            }
            7 => {
                let (a, b) = self.pair(role, unit, below);
                let name = if self.chance(0.5) { "min" } else { "max" };
                Expr::Call(name.to_owned(), vec![a, b])
            }
            8 => {
                let (a, b) = self.pair(role, unit, below);
                Expr::Call("if".to_owned(), vec![self.condition(role, below), a, b])
            }
            _ => self.function(role, unit, below),
        }
    }

    /// A function of one number.
    fn function(&mut self, role: Role, unit: Option<Unit>, depth: usize) -> Expr {
        let is_plain = unit.is_none_or(|unit| unit == PLAIN);
        let names: &[&str] = match (is_plain, role == Role::Scorer) {
            (true, true) => &["prefer_low", "prefer_high", "mean", "least", "most", "log", "sqrt"],
            (true, false) => &["log", "sqrt"],
            (false, true) => &["mean", "least", "most"],
            (false, false) => return self.leaf(role, unit),
        };
        let name = names[self.dice.below(names.len())];
        let keeps_unit = matches!(name, "mean" | "least" | "most");
        let inner = self.number(role, unit.filter(|_| keeps_unit), depth);
        let inner = match name {
            "log" => join(Binary::Plus, inner, Expr::Number(1.0)),
            _ => inner,
        };
        Expr::Call(name.to_owned(), vec![inner])
    }

    /// What can be divided by, if it is of numbers of 0 and more.
    fn divisor(&mut self, role: Role, unit: Option<Unit>, depth: usize) -> Expr {
        let number = self.number(role, unit, depth);
        join(Binary::Plus, number, Expr::Number(1.0))
    }

    /// Two numbers of one unit.
    fn pair(&mut self, role: Role, unit: Option<Unit>, depth: usize) -> (Expr, Expr) {
        let a = self.number(role, unit, depth);
        let own = known(role, &a).filter(|found| !found.literal).map(|found| found.unit);
        let b = self.number(role, unit.or(own), depth);
        (a, b)
    }

    fn condition(&mut self, role: Role, depth: usize) -> Expr {
        if self.chance(0.25) {
            let class = SloClass::ALL[self.dice.below(3)];
            let sign = if self.chance(0.5) { Binary::Equal } else { Binary::Unequal };
            return join(sign, Expr::Name("class".to_owned()), Expr::Name(class.name().to_owned()));
        }
        let below = depth.saturating_sub(1);
        if depth > 0 && self.chance(0.3) {
            let sign = if self.chance(0.5) { Binary::And } else { Binary::Or };
            let left = self.condition(role, below);
            return join(sign, left, self.condition(role, below));
        }
        let (a, b) = if self.chance(0.6) {
            (self.number(role, None, below), self.constant())
        } else {
            self.pair(role, None, below)
        };
        join(if self.chance(0.5) { Binary::Less } else { Binary::Greater }, a, b)
    }

    /// A signal of this unit, or a number.
    fn leaf(&mut self, role: Role, unit: Option<Unit>) -> Expr {
        let fits = |it: &&str| {
            let of = self.space.signals(role).find(|signal| signal.name == *it);
            unit.is_none() || of.map(|signal| signal.unit) == unit
        };
        let names: Vec<&str> =
            self.space.signals(role).map(|signal| signal.name).filter(fits).collect();
        match self.pick(&names).copied() {
            Some(name) if self.chance(0.85) => Expr::Name(name.to_owned()),
            _ => self.constant(),
        }
    }

    fn constant(&mut self) -> Expr {
        if self.chance(0.4) {
            return Expr::Number(1.0);
        }
        let power = 2.0 * self.dice.unit() - 1.0;
        rounded(&Expr::Number(pow(MOST, power)))
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.dice.unit() < probability
    }

    fn pick<'b, T>(&mut self, all: &'b [T]) -> Option<&'b T> {
        if all.is_empty() { None } else { all.get(self.dice.below(all.len())) }
    }
}

/// The product of two scores as costs; what is a gain in one of them divides the other.
fn product(own: &Expr, donor: &Expr) -> Expr {
    let costs = |expr: &Expr| bare(expr).map_or((false, expr.clone()), |bare| (true, bare));
    let ((costs, own), (also, donor)) = (costs(own), costs(donor));
    let product = if costs == also {
        join(Binary::Times, own, donor)
    } else {
        join(Binary::Over, own, join(Binary::Plus, donor, Expr::Number(1.0)))
    };
    if costs { negative(product) } else { product }
}

/// What a negative product is the negative of.
fn bare(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Unary(Unary::Minus, inner) => Some((**inner).clone()),
        Expr::Binary(sign @ (Binary::Times | Binary::Over), left, right) => {
            Some(join(*sign, bare(left)?, (**right).clone()))
        }
        _ => None,
    }
}

/// Where the numbers of a policy stand, as it is spelled: `policy[a=1,b=2]`.
fn numbers(policy: &str) -> Vec<Range<usize>> {
    let values = policy.match_indices('=').map(|(at, _)| {
        let end = policy[at..].find([',', ']']).map_or(policy.len(), |end| at + end);
        at + 1..end
    });
    values.filter(|place| policy[place.clone()].parse::<f64>().is_ok()).collect()
}

/// `expr` with numbers of a few digits.
fn rounded(expr: &Expr) -> Expr {
    match expr {
        Expr::Number(x) if *x > 0.0 => {
            let size = (ln(*x) / std::f64::consts::LN_10).floor();
            let step = pow(10.0, DIGITS - 1.0 - size);
            // Text rounds to what was meant: 0.3, not 0.30000000000000004.
            let text = format!("{:.6e}", (x * step).round() / step);
            Expr::Number(text.parse().unwrap_or(*x))
        }
        _ => crate::tree::over(expr, rounded),
    }
}
