//! Evaluates a compiled formula: for one request, or for all instances at once.
//!
//! A step works on whole columns, one value an instance, so that its cost is spread over them. It
//! must never allocate once a column has been as long as the cluster.

use super::check::{DEEPEST, Op};
use super::functions::Function;
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

/// Room to compute in, kept from one evaluation to the next.
#[derive(Clone, Debug)]
pub struct Scratch {
    slots: [Slot; DEEPEST],
    columns: Vec<f64>,
    pub(super) first: Vec<f64>,
}

impl Scratch {
    /// Empty.
    pub fn new() -> Scratch {
        Scratch { slots: [Slot::One(0.0); DEEPEST], columns: Vec::new(), first: Vec::new() }
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

/// The values that wait.
pub(super) struct Stack<'a> {
    slots: &'a mut [Slot; DEEPEST],
    top: usize,
    instances: usize,
    /// The columns of the first slot and, one behind the other, of the others.
    first: &'a mut [f64],
    columns: &'a mut [f64],
}

impl<'a> Stack<'a> {
    /// What `ops` make of `moment`; if it is one value an instance, it is in `first`.
    pub(super) fn run(
        ops: &[Op],
        moment: &Moment<'_>,
        scratch: &'a mut Scratch,
        first: &'a mut [f64],
    ) -> Slot {
        let instances = moment.instances.len();
        let Scratch { slots, columns, .. } = scratch;
        if columns.len() < (DEEPEST - 1) * instances {
            columns.resize((DEEPEST - 1) * instances, 0.0);
        }
        let mut stack = Stack { slots, top: 0, instances, first, columns };
        for op in ops {
            match op {
                Op::Constant(x) => stack.push(Slot::One(*x)),
                Op::Signal(signal) => match signal.get {
                    Get::One(get) => stack.push(Slot::One(get(moment))),
                    Get::Each(get) => {
                        stack.push(Slot::Each);
                        get(moment, stack.last());
                    }
                },
                Op::Unary(Unary::Minus) => stack.one(|x| -x),
                Op::Unary(Unary::Not) => stack.one(|x| 1.0 - x),
                Op::Binary(binary) => stack.binary(*binary),
                Op::With(Binary::Plus, y) => stack.one(|x| x + y),
                Op::With(Binary::Times, y) => stack.one(|x| x * y),
                Op::With(binary, y) => {
                    stack.push(Slot::One(*y));
                    stack.binary(*binary);
                }
                Op::Call(function) => stack.call(*function),
            }
        }
        stack.slots[0]
    }

    /// The column of the last slot.
    fn last(&mut self) -> &mut [f64] {
        if self.top == 1 {
            return self.first;
        }
        let start = (self.top - 2) * self.instances;
        &mut self.columns[start..start + self.instances]
    }

    /// The columns of the last slot and of the one behind it, which has just been taken.
    fn both(&mut self) -> (&mut [f64], &mut [f64]) {
        let behind = (self.top - 1) * self.instances;
        let (before, from) = self.columns.split_at_mut(behind);
        let last =
            if self.top == 1 { &mut *self.first } else { &mut before[behind - self.instances..] };
        (last, &mut from[..self.instances])
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
            Function::PreferLow => min_max(self.last(), Best::Least),
            Function::PreferHigh => min_max(self.last(), Best::Most),
        }
    }

    fn one(&mut self, of: impl Fn(f64) -> f64) {
        match &mut self.slots[self.top - 1] {
            Slot::One(x) => *x = of(*x),
            Slot::Each => self.last().iter_mut().for_each(|x| *x = of(*x)),
        }
    }

    fn two(&mut self, of: impl Fn(f64, f64) -> f64) {
        self.top -= 1;
        let left = self.top - 1;
        match (self.slots[left], self.slots[self.top]) {
            (Slot::One(x), Slot::One(y)) => self.slots[left] = Slot::One(of(x, y)),
            (Slot::Each, Slot::One(y)) => self.last().iter_mut().for_each(|x| *x = of(*x, y)),
            (Slot::One(x), Slot::Each) => {
                let (place, right) = self.both();
                place.iter_mut().zip(right).for_each(|(place, y)| *place = of(x, *y));
                self.slots[left] = Slot::Each;
            }
            (Slot::Each, Slot::Each) => {
                let (x, y) = self.both();
                x.iter_mut().zip(y).for_each(|(x, y)| *x = of(*x, *y));
            }
        }
    }

    /// `if`.
    fn choose(&mut self) {
        self.top -= 2;
        let at = self.top - 1;
        let [holds, yes, no] = [0, 1, 2].map(|more: usize| self.slots[at + more]);
        if let (Slot::One(holds), Slot::One(x), Slot::One(y)) = (holds, yes, no) {
            self.slots[at] = Slot::One(if holds > 0.0 { x } else { y });
            return;
        }
        let instances = self.instances;
        self.top += 1;
        let (yes_column, no_column) = self.both();
        widen(yes, yes_column);
        widen(no, no_column);
        self.top -= 1;
        widen(holds, self.last());
        let start = (at + 1) * instances;
        for instance in 0..instances {
            let [yes, no] = [start - instances, start].map(|from| self.columns[from + instance]);
            let holds = &mut self.last()[instance];
            *holds = if *holds > 0.0 { yes } else { no };
        }
        self.slots[at] = Slot::Each;
    }

    fn across(&mut self, of: impl Fn(&[f64]) -> f64) {
        let value = of(self.last());
        self.slots[self.top - 1] = Slot::One(value);
    }
}

/// Writes the value of `slot` for every instance.
fn widen(slot: Slot, column: &mut [f64]) {
    if let Slot::One(x) = slot {
        column.fill(x);
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
