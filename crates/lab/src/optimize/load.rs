//! What a point is run on: the scenario that it makes of the base, or of a workload of the file.

use super::Load;
use super::points::Points;
use crate::failure::Failure;
use crate::study::patch::{self, Once, settings, within};
use crate::trial::Runner;
use blis_scenario::problems::{Problems, every};
use blis_scenario::scenario::{Checked, Draft, Plan, Workload};
use blis_scenario::strategy;
use blis_scenario::yaml::Node;
use blis_sim::Unobserved;
use blis_workload::Rate;

impl Load {
    /// Checks the hand-set point of every candidate.
    pub(super) fn check(&self, points: &Points, once: &mut Once) -> Result<(), Problems> {
        every(points.candidates.iter().enumerate().map(|(number, candidate)| {
            let tree = points.tree(&self.base, number, &candidate.hand);
            let checked = once.resolve(&tree, &self.place())?;
            if checked.plan().oracles.any() {
                let message = "oracles cannot be deployed, so a search may not use them; remove \
                    `oracles`";
                return Err(self.base.problem("oracles", message));
            }
            Ok(())
        }))
        .map(drop)
    }

    /// Finds the rate that all points share; what there is to know about the scenario. A share of
    /// saturation is that of the hand-set point's cluster: it is measured once, and parameters that
    /// change the engines do not change what they are sent.
    pub(super) fn settle(
        &mut self,
        points: &Points,
        runner: &Runner<'_>,
    ) -> Result<Vec<String>, Failure> {
        self.saturations = runner.saturations.clone();
        let replaced = self.replaced(points);
        let hand = self.draft(points, 0, &points.candidates[0].hand);
        let plan = runner.settle(self.checked(&hand)?)?;
        self.slo = plan.slo;
        if let (Some(_), Workload::Mix(mix)) = (plan.saturation, &plan.workload)
            && let Rate::Steady(rate) = mix.rate
        {
            let mut draft = Draft::from_tree(self.base.clone());
            draft.set_amount("rate", "rate", &rate.to_string());
            self.base = draft.into_tree();
        }
        Ok(replaced.into_iter().chain(plan.notes).collect())
    }

    /// What the base says and the search does not use, and the other way round.
    fn replaced(&self, points: &Points) -> Vec<String> {
        let policies = strategy::POLICIES.into_iter().chain([strategy::FIELD]);
        let policies = policies.filter(|part| self.base.has(part));
        let mut notes: Vec<String> =
            policies.map(|part| format!("`{part}` of the base gives way to the search")).collect();
        for candidate in &points.candidates {
            for (path, _) in settings(candidate.strategy.template()) {
                let policy = strategy::POLICIES.contains(&path[0].as_str());
                let (path, name) = (path.join("."), candidate.name());
                let note = format!("`{path}` of the base stands, not that of `{name}`");
                if !policy && self.base.has(&path) && !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        notes
    }

    /// The scenario of candidate number `candidate` with these parameters.
    pub(super) fn plan(
        &self,
        points: &Points,
        candidate: usize,
        settings: &[(String, String)],
    ) -> Result<Plan, Failure> {
        self.plan_of(&self.draft(points, candidate, settings))
    }

    /// That of the hand-set point with everybody admitted.
    pub(super) fn plan_without_gate(&self, points: &Points) -> Result<Plan, Failure> {
        let mut tree = points.tree(&self.base, 0, &points.candidates[0].hand);
        tree.set(&["admission"], Node::from_flag("admission", "always-admit"));
        self.plan_of(&Draft::from_tree(tree))
    }

    /// That of its base after `set`, in which a delay of KV events counts only if they are read.
    pub(crate) fn plan_after(&self, set: impl Fn(&mut Node)) -> Result<Plan, Failure> {
        let mut tree = self.base.clone();
        strategy::POLICIES.iter().chain(&[strategy::FIELD]).for_each(|part| tree.remove(part));
        set(&mut tree);
        let checked = patch::heard(tree, |tree| self.checked(&Draft::from_tree(tree.clone())));
        Ok(checked?.settle(&self.saturations, &mut Unobserved)?)
    }

    fn draft(&self, points: &Points, candidate: usize, settings: &[(String, String)]) -> Draft {
        Draft::from_tree(points.tree(&self.base, candidate, settings))
    }

    fn plan_of(&self, draft: &Draft) -> Result<Plan, Failure> {
        Ok(self.checked(draft)?.settle(&self.saturations, &mut Unobserved)?)
    }

    /// The scenario in `draft`, checked; complaints say in which workload.
    fn checked(&self, draft: &Draft) -> Result<Checked, Problems> {
        let place = self.place();
        let checked = draft.resolve_with(&self.files);
        checked.map_err(|problems| problems.map(|problem| within(problem, &place)))
    }

    /// What problems call it.
    fn place(&self) -> String {
        self.name.as_ref().map_or_else(String::new, |name| format!("the workload {name}"))
    }
}
