//! Evaluates a compiled formula: for one request, or for all instances at once.
//!
//! A step works on whole columns, one value an instance, so that its cost is spread over them. It
//! must never allocate once a column has been as long as the cluster.

use super::check::{DEEPEST, Function, Op};
use super::signals::{Get, Moment};
use super::syntax::{Binary, Unary};
use crate::scale::{Best, min_max};
use blis_core::math;

/// A value that waits for its operator.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// The same for all instances.
    One(f64),
    /// In the column of the same place.
    Each,
}

/// The values that wait.
pub(super) struct Stack<'a> {
    slots: [Slot; DEEPEST],
    top: usize,
    /// As many as there are slots, or none if nothing is read of instances.
    columns: &'a mut [Vec<f64>],
}

impl<'a> Stack<'a> {
    /// What `ops` make of `moment`; if it is one value an instance, it is in the first column.
    pub(super) fn run(ops: &[Op], moment: &Moment<'_>, columns: &'a mut [Vec<f64>]) -> Slot {
        let mut stack = Stack { slots: [Slot::One(0.0); DEEPEST], top: 0, columns };
        for op in ops {
            match op {
                Op::Constant(x) => stack.push(Slot::One(*x)),
                Op::Signal(signal) => match signal.get {
                    Get::One(get) => stack.push(Slot::One(get(moment))),
                    Get::Each(get) => {
                        let column = &mut stack.columns[stack.top];
                        column.resize(moment.instances.len(), 0.0);
                        get(moment, column);
                        stack.push(Slot::Each);
                    }
                },
                Op::Unary(Unary::Minus) => stack.one(|x| -x),
                Op::Unary(Unary::Not) => stack.one(|x| 1.0 - x),
                Op::Binary(binary) => stack.binary(*binary),
                Op::Call(function) => stack.call(*function),
            }
        }
        stack.slots[0]
    }

    fn push(&mut self, slot: Slot) {
        self.slots[self.top] = slot;
        self.top += 1;
    }

    fn binary(&mut self, binary: Binary) {
        let truth = |holds: bool| f64::from(u8::from(holds));
        match binary {
            Binary::Or => self.two(f64::max),
            Binary::And => self.two(f64::min),
            Binary::Less => self.two(|x, y| truth(x < y)),
            Binary::AtMost => self.two(|x, y| truth(x <= y)),
            Binary::Greater => self.two(|x, y| truth(x > y)),
            Binary::AtLeast => self.two(|x, y| truth(x >= y)),
            Binary::Equal => self.two(|x, y| truth(same(x, y))),
            Binary::Unequal => self.two(|x, y| truth(!same(x, y))),
            Binary::Plus => self.two(|x, y| x + y),
            Binary::Minus => self.two(|x, y| x - y),
            Binary::Times => self.two(|x, y| x * y),
            Binary::Over => self.two(|x, y| x / y),
        }
    }

    fn call(&mut self, function: Function) {
        match function {
            Function::Min => self.two(f64::min),
            Function::Max => self.two(f64::max),
            Function::Abs => self.one(f64::abs),
            Function::Log => self.one(math::ln),
            Function::Exp => self.one(math::exp),
            Function::Sqrt => self.one(f64::sqrt),
            // A bound is compiled as `Max` and `Min`; a unit is gone after the check.
            Function::Clamp | Function::Number => {}
            Function::If => self.choose(),
            Function::Least => self.across(|column| fold(column, f64::INFINITY, f64::min)),
            Function::Most => self.across(|column| fold(column, f64::NEG_INFINITY, f64::max)),
            Function::Sum => self.across(|column| column.iter().sum()),
            Function::Mean => {
                self.across(mean);
            }
            Function::PreferLow => min_max(&mut self.columns[self.top - 1], Best::Least),
            Function::PreferHigh => min_max(&mut self.columns[self.top - 1], Best::Most),
        }
    }

    fn one(&mut self, of: impl Fn(f64) -> f64) {
        let last = self.top - 1;
        match &mut self.slots[last] {
            Slot::One(x) => *x = of(*x),
            Slot::Each => self.columns[last].iter_mut().for_each(|x| *x = of(*x)),
        }
    }

    fn two(&mut self, of: impl Fn(f64, f64) -> f64) {
        self.top -= 1;
        let (left, right) = (self.top - 1, self.top);
        match (self.slots[left], self.slots[right]) {
            (Slot::One(x), Slot::One(y)) => self.slots[left] = Slot::One(of(x, y)),
            (Slot::Each, Slot::One(y)) => {
                self.columns[left].iter_mut().for_each(|x| *x = of(*x, y));
            }
            (Slot::One(x), Slot::Each) => {
                self.columns.swap(left, right);
                self.columns[left].iter_mut().for_each(|y| *y = of(x, *y));
                self.slots[left] = Slot::Each;
            }
            (Slot::Each, Slot::Each) => {
                let (before, from) = self.columns.split_at_mut(right);
                for (x, y) in before[left].iter_mut().zip(&from[0]) {
                    *x = of(*x, *y);
                }
            }
        }
    }

    /// `if`.
    fn choose(&mut self) {
        self.top -= 2;
        let condition = self.top - 1;
        let slots = [0, 1, 2].map(|at: usize| self.slots[condition + at]);
        if let [Slot::One(holds), Slot::One(x), Slot::One(y)] = slots {
            self.slots[condition] = Slot::One(if holds > 0.0 { x } else { y });
            return;
        }
        let columns = &mut self.columns[condition..condition + 3];
        let instances = columns.iter().zip(slots).filter(|(_, slot)| matches!(slot, Slot::Each));
        let instances = instances.map(|(column, _)| column.len()).next().unwrap_or(0);
        for (column, slot) in columns.iter_mut().zip(slots) {
            if let Slot::One(x) = slot {
                column.clear();
                column.resize(instances, x);
            }
        }
        let [holds, yes, no] = columns else { unreachable!("three columns") };
        for ((holds, yes), no) in holds.iter_mut().zip(yes).zip(no) {
            *holds = if *holds > 0.0 { *yes } else { *no };
        }
        self.slots[condition] = Slot::Each;
    }

    fn across(&mut self, of: impl Fn(&[f64]) -> f64) {
        let last = self.top - 1;
        self.slots[last] = Slot::One(of(&self.columns[last]));
    }
}

fn mean(column: &[f64]) -> f64 {
    column.iter().sum::<f64>() / math::float(column.len() as u64)
}

fn fold(column: &[f64], start: f64, of: impl Fn(f64, f64) -> f64) -> f64 {
    column.iter().copied().fold(start, of)
}

#[expect(clippy::float_cmp, reason = "a formula that says `==` means it")]
fn same(x: f64, y: f64) -> bool {
    x == y
}
