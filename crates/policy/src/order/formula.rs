//! `formula`: an order written as an expression.
//!
//! **Prefers** the lowest value of the formula.
//!
//! **Reads** what the formula names. If that changes while a request waits, queues are ranked again
//! at every step.
//!
//! **Parameters** `formula`: the expression.
//!
//! **Origin** ours: an idea should not need a program. The default is `sjf`.

use crate::formula::Formula as Expression;
use crate::formula::signals::{Facts, Moment, Role};
use crate::prelude::*;

/// How `formula` introduces itself.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "formula",
    help: "Schedules the lowest value of an expression first",
    params: &[Param::formula(
        "formula",
        |text| Expression::read(Role::Order, text).map(|formula| formula.to_string()),
        "input_tokens",
    )
    .help("The expression, lowest first")],
    needs: |values| expression(values).needs(),
    ..Spec::built_by(|values, cluster| {
        Box::new(Formula { expression: expression(values), facts: Facts::new(cluster) })
    })
};

fn expression(values: &Values) -> Expression {
    Expression::checked(Role::Order, values.choice("formula"))
}

/// An expression over a waiting request and its priority.
#[derive(Clone, Debug)]
pub struct Formula {
    expression: Expression,
    facts: Facts,
}

impl Order for Formula {
    fn rank(&self, waiting: &WaitingView<'_>, priority: f64, now: Time) -> f64 {
        self.expression.one(&Moment::in_queue(waiting, priority, now, &self.facts))
    }

    fn varies(&self) -> bool {
        self.expression.varies()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{cache_first, edf, priority_fcfs, sjf};
    use crate::view::examples::waiting;

    #[test]
    fn orders_that_ship_can_be_written_as_formulas() {
        for (formula, same) in [
            ("input_tokens", sjf::SPEC.made(&[])),
            ("-priority", priority_fcfs::SPEC.made(&[])),
            ("1000 * (arrival_ms + min(deadline_ms, 60000))", edf::SPEC.made(&[])),
            (
                "if(waited_ms >= 2000, -1e10, -number(cached_tokens) / 16)",
                cache_first::SPEC.made(&[]),
            ),
        ] {
            let written = SPEC.made(&[("formula", formula)]);
            for (tokens, cached_blocks, ms) in [(1, 0, 0), (90, 3, 1_999), (7, 5, 2_000)] {
                let view = WaitingView { cached_blocks, ..waiting(tokens) };
                let now = Time::from_micros(ms * 1_000);
                let [a, b] = [&written, &same].map(|order| order.rank(&view, 2.5, now));
                assert_eq!(a.to_bits(), b.to_bits(), "{formula}: {a} and {b}");
            }
        }
    }
}
