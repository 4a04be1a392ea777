//! `formula`: a priority written as an expression.
//!
//! **Prefers** the highest value of the formula.
//!
//! **Reads** what the formula names. If that changes while a request waits, queues are ranked again
//! at every step.
//!
//! **Parameters** `formula`: the expression.
//!
//! **Origin** ours: an idea should not need a program.

use crate::formula::Formula as Expression;
use crate::formula::signals::{Facts, Moment, Role};
use crate::prelude::*;

/// How `formula` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "formula",
    help: "Priority is the value of an expression",
    params: &[Param::formula(
        "formula",
        |text| Expression::read(Role::Priority, text).map(|formula| formula.to_string()),
        "if(class == critical, 10, 1) * age_ms",
    )
    .help("The expression, higher is sooner")],
    needs: |values| expression(values).needs(),
    ..Spec::built_by(|values, cluster| {
        Box::new(Formula { expression: expression(values), facts: Facts::new(cluster) })
    })
};

fn expression(values: &Values) -> Expression {
    Expression::checked(Role::Priority, values.choice("formula"))
}

/// An expression over a waiting request.
#[derive(Clone, Debug)]
pub struct Formula {
    expression: Expression,
    facts: Facts,
}

impl Priority for Formula {
    fn priority(&self, waiting: &WaitingView<'_>, now: Time) -> f64 {
        self.expression.one(&Moment::in_queue(waiting, 0.0, now, &self.facts))
    }

    fn varies(&self) -> bool {
        self.expression.varies()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;

    #[test]
    fn a_priority_by_class_and_age_grows_while_a_request_waits() {
        let policy = SPEC.made(&[]);
        let any = waiting(1);
        let critical = RequestView { class: SloClass::Critical, ..any.request };
        let critical = WaitingView { request: critical, ..any };
        let at = |waiting, ms: u64| policy.priority(waiting, Time::from_micros(ms * 1_000));
        assert_eq!(vec![at(&any, 7), at(&critical, 7)], [7.0, 70.0]);
        assert!(policy.varies() && !SPEC.made(&[("formula", "-input_tokens")]).varies());
    }
}
