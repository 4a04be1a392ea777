//! `slo-headroom-filter`: instances that would be in time.
//!
//! **Prefers** instances where the first token is predicted within the budget of the request's
//! class (less a margin): the others are left out. Now and then it is the other way round, so that
//! instances that were late are tried again. All are kept if the class has no budget.
//!
//! **Reads** the router's own counts (live): `unstarted_tokens`, `in_flight`; with `precise`
//! knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are).
//!
//! **Parameters** one per class, named like it (ms): its budget; `auto` is the TTFT target of the
//! class, if it has one. `margin`: the share of the budget that must be left. `exploration`: the
//! share of requests that go to the late ones. `knowledge`: whether hits are guessed from what was
//! sent or read from KV events. `cpu-weight` (blocks): what a block in the CPU tier is worth if
//! they are read.
//!
//! **Origin** llm-d's SLO-headroom tier filter with its share of exploration, on the TTFT alone.

use crate::predict::{Budgets, Predictor};
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};

/// How `slo-headroom-filter` introduces itself.
pub const SPEC: Spec<dyn Filter> = Spec {
    name: "slo-headroom-filter",
    help: "Drops instances predicted to miss the TTFT budget",
    params: &{
        let [critical, standard, sheddable, batch, background] = Budgets::PARAMS;
        [
            critical,
            standard,
            sheddable,
            batch,
            background,
            MARGIN,
            EXPLORATION,
            knowledge::PARAM,
            knowledge::CPU_WEIGHT,
        ]
    },
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| Box::new(SloHeadroomFilter::new(values, cluster)))
};

const MARGIN: Param =
    Param::float("margin", 0.0..=1.0, 0.0, "").help("Share of the budget to keep as a margin");

const EXPLORATION: Param = Param::float("exploration", 0.0..=1.0, 0.01, "")
    .help("Share of requests sent to instances predicted to be late");

/// A limit on the predicted TTFT.
#[derive(Clone, Debug)]
pub struct SloHeadroomFilter {
    budgets: Budgets,
    /// The share of a budget that may be used.
    usable: f64,
    exploration: f64,
    knowledge: Knowledge,
    predictor: Predictor,
    explored: u64,
}

impl SloHeadroomFilter {
    fn new(values: &Values, cluster: &Cluster) -> SloHeadroomFilter {
        SloHeadroomFilter {
            budgets: Budgets::of(values, cluster),
            usable: 1.0 - values.float(MARGIN.name),
            exploration: values.float(EXPLORATION.name),
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
            explored: 0,
        }
    }
}

impl Filter for SloHeadroomFilter {
    fn keep(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
        kept: &mut [bool],
    ) {
        let Some(budget) = self.budgets.ms(request.class) else {
            return;
        };
        self.knowledge.look(request, cluster);
        for (kept, view) in kept.iter_mut().zip(cluster.instances) {
            let tokens = self.predictor.uncached_tokens(request, self.knowledge.worth(view));
            *kept = self.predictor.ttft_ms(view, tokens) <= budget * self.usable;
        }
        // Dice are drawn only if there is something to explore.
        let both = kept.contains(&true) && kept.contains(&false);
        if both && self.exploration > 0.0 && dice.unit() < self.exploration {
            self.explored += 1;
            for kept in kept {
                *kept = !*kept;
            }
        }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        self.knowledge.sent(request, instance);
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add(SPEC.name, "explored", self.explored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::StepCost;
    use crate::view::examples::{cluster, dice, instances, prompt, request};
    use blis_core::SloClass;

    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 0.0, prefill_token_us: 1_000.0, decode_us: 0.0 },
        ..Cluster::SMALL
    };

    fn kept(given: &[(&'static str, &'static str)], class: SloClass, key: u64) -> [bool; 3] {
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        let mut filter = SloHeadroomFilter::new(&values, &CLUSTER);
        let mut views = instances(&[0, 0, 0]);
        // First tokens of a prompt of 64 ms come after 64, 164 and 264 ms.
        (views[1].unstarted_tokens, views[2].unstarted_tokens) = (100, 200);
        let mut kept = [true; 3];
        let asked = prompt(&[1, 2, 3, 4]);
        let request = RequestView { class, ..request(&asked) };
        filter.keep(&request, &cluster(&views), &mut dice(key), &mut kept);
        kept
    }

    #[test]
    fn instances_that_would_be_late_are_left_out() {
        let given = [("exploration", "0"), ("critical", "164"), ("batch", "50")];
        assert_eq!(kept(&given, SloClass::Critical, 0), [true, true, false]);
        assert_eq!(kept(&given, SloClass::Batch, 0), [false; 3], "passed over then");
        assert_eq!(kept(&given, SloClass::Standard, 0), [true; 3], "promised nothing");
    }

    #[test]
    fn a_margin_makes_it_stricter() {
        let given = [("exploration", "0"), ("critical", "164"), ("margin", "0.1")];
        assert_eq!(kept(&given, SloClass::Critical, 0), [true, false, false]);
    }

    #[test]
    fn a_share_of_requests_goes_to_the_late_ones() {
        let given = [("exploration", "0.2"), ("critical", "164")];
        let late = |key: &u64| kept(&given, SloClass::Critical, *key) == [false, false, true];
        let explored = (0..1_000).filter(late).count();
        assert!((160..240).contains(&explored), "{explored}");
    }
}
