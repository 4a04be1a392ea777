//! `formula`: a score written as an expression.
//!
//! **Prefers** the highest value of the formula: 1 for the highest, 0 for the lowest, in proportion
//! between; 1 for all if all are equal. With `scale=absolute` the value itself is the score, within
//! 0..=1.
//!
//! **Reads** the signals that the formula names, each as old as for any other scorer.
//!
//! **Parameters** `formula`: the expression. `scale`: whether instances are compared with one
//! another. `knowledge`: whether hits are guessed from what was sent or read from KV events, if the
//! formula reads any. `cpu-weight` (blocks): what a block in the CPU tier is worth if they are
//! read.
//!
//! **Origin** ours: an idea should not need a program. The default is `lmetric`.

use crate::formula::Formula as Expression;
use crate::formula::Scratch;
use crate::formula::signals::{Facts, Moment, Role};
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};
use crate::routing::scorers::{Best, min_max};

/// How `formula` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "formula",
    help: "Prefers the highest value of an expression over signals",
    params: &[
        Param::formula(
            "formula",
            |text| Expression::read(Role::Scorer, text).map(|formula| formula.to_string()),
            "-uncached_tokens * (in_flight + 1)",
        )
        .help("The expression, higher is better"),
        Param::choice("scale", &["relative", "absolute"])
            .help("Scale values from the worst instance to the best, or clamp them to 0..1"),
        knowledge::PARAM,
        knowledge::CPU_WEIGHT,
    ],
    needs: |values| {
        let formula = expression(values);
        let hits = if formula.reads_hits() { knowledge::needs(values) } else { Needs::NONE };
        formula.needs().or(hits)
    },
    ..Spec::built_by(|values, cluster| Box::new(Formula::new(values, cluster)))
};

fn expression(values: &Values) -> Expression {
    Expression::checked(Role::Scorer, values.choice("formula"))
}

/// An expression over the signals of instances.
#[derive(Clone, Debug)]
pub struct Formula {
    expression: Expression,
    facts: Facts,
    relative: bool,
    /// `None` if the formula reads no hits.
    knowledge: Option<Knowledge>,
    hits: Vec<f64>,
    scratch: Scratch,
}

impl Formula {
    fn new(values: &Values, cluster: &Cluster) -> Formula {
        let expression = expression(values);
        let knowledge = expression.reads_hits().then(|| Knowledge::of(values, cluster));
        Formula {
            expression,
            facts: Facts::new(cluster),
            relative: values.choice("scale") == "relative",
            knowledge,
            hits: Vec::new(),
            scratch: Scratch::new(),
        }
    }
}

impl Scorer for Formula {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.look(request, cluster);
            self.hits.resize(cluster.instances.len(), 0.0);
            cluster.each(&mut self.hits, |view| knowledge.worth(view));
        }
        let ClusterView { now, instances, .. } = *cluster;
        let (facts, hits) = (&self.facts, &self.hits[..]);
        let moment = Moment { request, now, facts, instances, hits, waiting: None };
        self.expression.each(&moment, &mut self.scratch, scores);
        let negated = self.expression.is_negated();
        if self.relative {
            min_max(scores, if negated { Best::Least } else { Best::Most });
            return;
        }
        for score in scores {
            *score = (if negated { -*score } else { *score }).clamp(0.0, 1.0);
        }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.sent(request, instance);
        }
    }

    fn expected_hit_blocks(&self, instance: InstanceId) -> Option<u32> {
        self.knowledge.as_ref().map(|knowledge| knowledge.blocks(instance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::scores;

    fn scores_of(formula: &'static str, scale: &'static str) -> Vec<f64> {
        let mut scorer = SPEC.made(&[("formula", formula), ("scale", scale)]);
        scores(&mut *scorer, &[1, 2], &[2, 10, 4])
    }

    #[test]
    fn values_are_scaled_from_the_worst_instance_to_the_best_or_clamped() {
        assert_eq!(scores_of("-load", "relative"), [1.0, 0.0, 0.75]);
        assert_eq!(scores_of("load / 8 - 0.25", "absolute"), [0.0, 1.0, 0.25]);
        assert_eq!(scores_of("prefer_low(load) / 2", "absolute"), [0.5, 0.0, 0.375]);
    }

    #[test]
    fn hits_are_looked_up_only_if_the_formula_reads_them() {
        let read = |formula: &'static str| {
            let given = [("formula", formula), ("knowledge", "precise")];
            let values = Values::parse(SPEC.params, given).expect("legal");
            let scorer = (SPEC.build)(&values, &Cluster::SMALL);
            ((SPEC.needs)(&values).events, scorer.expected_hit_blocks(InstanceId(0)).is_some())
        };
        assert_eq!(read("cached_share"), (true, true));
        assert_eq!(read("-in_flight"), (false, false));
    }
}
