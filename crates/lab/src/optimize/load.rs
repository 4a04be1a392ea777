//! What a point is run on: the scenario that it makes of the base, or of a workload of the file.

use super::Load;
use super::points::Points;
use crate::problem::Problem;
use crate::scenario::{Draft, Plan, Workload};
use crate::study::patch::within;
use blis_core::math::{count, float};
use blis_workload::{Mix, Rate};

impl Load {
    /// The same with a rate that all points share, and what there is to know about it. A share of
    /// saturation is that of the hand-set point's cluster: it is measured once, and parameters that
    /// change the engines do not change what they are sent.
    pub(super) fn settled(mut self, points: &Points) -> Result<(Load, Vec<String>), Problem> {
        let hand = |candidate: usize| &points.candidates[candidate].hand;
        let plan = self.plan(points, 0, hand(0))?;
        if plan.oracles.any() {
            let message = "a search finds what a cluster could be set to, and no cluster knows the \
                           future; leave `oracles` out";
            return Err(Problem::new(self.base.place_of("oracles"), "oracles", message));
        }
        if let (Some(_), Workload::Mix(mix)) = (plan.saturation, &plan.workload)
            && let Rate::Steady(rate) = mix.rate
        {
            let mut draft = Draft::from_tree(self.base);
            draft.set_amount("rate", "rate", &rate.to_string());
            self.base = draft.into_tree();
        }
        for candidate in 1..points.candidates.len() {
            self.plan(points, candidate, hand(candidate))?;
        }
        Ok((self, plan.notes))
    }

    /// The scenario of candidate number `candidate` with these parameters.
    pub(super) fn plan(
        &self,
        points: &Points,
        candidate: usize,
        settings: &[(String, String)],
    ) -> Result<Plan, Problem> {
        self.resolved(&Draft::from_tree(points.tree(&self.base, candidate, settings)))
    }

    /// The same with a share of its requests, if their number is given.
    pub(super) fn plan_early(
        &self,
        points: &Points,
        candidate: usize,
        settings: &[(String, String)],
        share: f64,
    ) -> Result<Plan, Problem> {
        let plan = self.plan(points, candidate, settings)?;
        let Workload::Mix(Mix { num_requests: Some(requests), .. }) = &plan.workload else {
            return Ok(plan);
        };
        let fewer = count(float(*requests) * share).max(1);
        let mut draft = Draft::from_tree(points.tree(&self.base, candidate, settings));
        draft.set_amount("early", "num_requests", &fewer.to_string());
        self.resolved(&draft)
    }

    /// The scenario in `draft`, checked; complaints say in which workload.
    fn resolved(&self, draft: &Draft) -> Result<Plan, Problem> {
        draft.resolve().map_err(|problem| match &self.name {
            None => problem,
            Some(name) => within(problem, &format!("the workload {name}")),
        })
    }
}
