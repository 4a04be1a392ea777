//! `formula`: a gate written as a condition.
//!
//! **Prefers** requests for which the condition holds. A condition about an instance is asked after
//! routing, about the instance that was chosen; one about all instances (`mean(waiting) < 8`) or
//! none is asked before.
//!
//! **Reads** the signals that the condition names, each as old as for any other gate; what of a
//! prompt is cached is read from KV events.
//!
//! **Parameters** `admit-when`: the condition.
//!
//! **Origin** ours: an idea should not need a program.

use crate::formula::Formula as Expression;
use crate::formula::Scratch;
use crate::formula::signals::{Facts, Moment, Role};
use crate::prelude::*;

/// How `formula` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "formula",
    help: "Admits the requests for which a condition over signals holds",
    params: &[Param::formula(
        "admit-when",
        |text| Expression::read(Role::Gate, text).map(|formula| formula.to_string()),
        "waiting < 64 or class == critical",
    )
    .help("The condition")],
    needs: |values| {
        let formula = expression(values);
        formula.needs().or(Needs { events: formula.reads_hits(), ..Needs::NONE })
    },
    ..Spec::built_by(|values, cluster| {
        Box::new(Formula {
            expression: expression(values),
            facts: Facts::new(cluster),
            hits: Vec::new(),
            scratch: Scratch::new(),
        })
    })
};

fn expression(values: &Values) -> Expression {
    Expression::checked(Role::Gate, values.choice("admit-when"))
}

/// A condition over signals.
#[derive(Clone, Debug)]
pub struct Formula {
    expression: Expression,
    facts: Facts,
    hits: Vec<f64>,
    scratch: Scratch,
}

impl Formula {
    fn verdict(
        &mut self,
        request: &RequestView<'_>,
        instances: &[InstanceView],
        now: Time,
    ) -> Verdict {
        if self.expression.reads_hits() {
            self.hits.clear();
            self.hits.extend(instances.iter().map(|view| f64::from(view.cached_blocks)));
        }
        let (facts, hits) = (&self.facts, &self.hits[..]);
        let moment = Moment { request, now, facts, instances, hits, waiting: None };
        let holds = self.expression.first(&moment, &mut self.scratch);
        if holds > 0.0 { Verdict::Admit } else { Verdict::Reject(SPEC.name) }
    }
}

impl Admission for Formula {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        if self.expression.is_each() {
            return Verdict::Admit;
        }
        self.verdict(request, cluster.instances, cluster.now)
    }

    fn admit_at(&mut self, request: &RequestView<'_>, chosen: &InstanceView, now: Time) -> Verdict {
        if !self.expression.is_each() {
            return Verdict::Admit;
        }
        self.verdict(request, std::slice::from_ref(chosen), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    /// Who is admitted before routing, and after routing to the first and the second instance.
    fn admitted(condition: &'static str, class: SloClass, queues: [u32; 2]) -> [bool; 3] {
        let mut gate = SPEC.made(&[("admit-when", condition)]);
        let views = instances(&queues);
        let request = RequestView { class, ..request(&NOTHING) };
        [
            gate.admit(&request, &cluster(&views), &mut dice(0)),
            gate.admit_at(&request, &views[0], Time::ZERO),
            gate.admit_at(&request, &views[1], Time::ZERO),
        ]
        .map(|verdict| verdict == Verdict::Admit)
    }

    #[test]
    fn a_condition_about_an_instance_is_asked_of_the_one_that_was_chosen() {
        let condition = "waiting < 64 or class == critical";
        assert_eq!(admitted(condition, SloClass::Batch, [63, 64]), [true, true, false]);
        assert_eq!(admitted(condition, SloClass::Critical, [63, 64]), [true, true, true]);
    }

    #[test]
    fn a_condition_about_all_instances_is_asked_before_routing() {
        for (condition, admits) in [
            ("mean(waiting) < 5", false),
            ("mean(waiting) <= 5 and most(waiting) - least(waiting) == 6", true),
            ("sum(waiting) < 10 and not class == batch", false),
            ("class != batch or input_tokens > 1", false),
        ] {
            let found = admitted(condition, SloClass::Batch, [2, 8]);
            assert_eq!(found, [admits, true, true], "{condition}");
        }
    }
}
