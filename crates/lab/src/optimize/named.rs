//! What the ledger is told about the trials of a search, before they run.

use super::{Budget, Engine, Objective, Search};
use crate::failure::Failure;
use crate::ledger::{Experiment, PlannedCell};
use crate::trial::Runner;
use blis_scenario::scenario::Plan;

impl Search {
    /// The number and the name of call number `call`, from 1, of `engine`.
    pub(super) fn label(&self, engine: Engine, call: usize) -> (usize, String) {
        let control = engine == Engine::Random && self.budget.engine != Engine::Random;
        let before = if control { self.most_calls() } else { 0 };
        (before + call, format!("{} {call}", engine.name()))
    }

    /// The number and the name of what is run on fresh seeds as cell number `cell`: the hand-set
    /// point, `recommended` points, and those of the control.
    pub(super) fn fresh_label(&self, cell: usize, recommended: usize) -> (usize, String) {
        let name = match cell {
            0 => "fresh: by hand".to_owned(),
            cell if cell > recommended => format!("fresh: at random {}", cell - recommended),
            _ => format!("fresh: recommended {cell}"),
        };
        (2 * self.most_calls() + 1 + cell, name)
    }

    /// How many points an engine and the race after it measure at most: while parameters are put
    /// back, half of those that are left are tried each time.
    fn most_calls(&self) -> usize {
        self.budget.calls + 2 * self.points.space.len()
    }

    /// Tells the ledger, if there is one, that `points` have these numbers and names. Each is the
    /// scenarios of its workloads.
    pub(crate) fn note(
        &self,
        runner: &Runner<'_>,
        labels: &[(usize, String)],
        points: &[Vec<Plan>],
        seeds: &[u64],
    ) -> Result<(), Failure> {
        let Some(ledger) = runner.ledger else { return Ok(()) };
        let mut cells = Vec::new();
        for ((number, label), plans) in labels.iter().zip(points) {
            let first = number * self.loads.len();
            for (number, (plan, load)) in (first..).zip(plans.iter().zip(&self.loads)) {
                let levels = std::iter::once(label.clone()).chain(load.name.clone()).collect();
                cells.push(PlannedCell { number, levels, plan, seeds: seeds.to_vec() });
            }
        }
        Ok(ledger.record_cells(&self.experiment(), &cells)?)
    }

    fn experiment(&self) -> Experiment {
        let mut metrics: Vec<String> = Vec::new();
        let objectives = self.objectives.iter().map(|objective| objective.number.metric);
        for metric in objectives.chain(self.constraints.iter().map(|one| one.number.metric)) {
            if !metrics.contains(&metric.name()) {
                metrics.push(metric.name());
            }
        }
        let constraints: Vec<&str> = self.constraints.iter().map(|one| one.text.as_str()).collect();
        let names: Vec<&str> = self.points.candidates.iter().map(super::Candidate::name).collect();
        let objective = |Objective { number, maximise }: &Objective| {
            let what = if *maximise { "maximise" } else { "minimise" };
            format!("{what} {}", number.name())
        };
        let objectives: Vec<String> = self.objectives.iter().map(objective).collect();
        let mut factors = vec!["point".to_owned()];
        let workloads = self.workloads();
        if !workloads.is_empty() {
            factors.push("workload".to_owned());
        }
        let mut lines = vec![
            self.question.clone(),
            objectives.join("\t"),
            budget(&self.budget),
            constraints.join("\t"),
            names.join("\t"),
            self.space()["dimensions"].to_string(),
            workloads.join("\t"),
        ];
        lines.extend(self.loads.iter().map(|load| load.base.to_json()));
        Experiment {
            key: Experiment::key_of(&lines),
            name: self.name.clone(),
            question: self.question.clone(),
            factors,
            metrics,
        }
    }
}

fn budget(budget: &Budget) -> String {
    let Budget { calls, seeds, engine, seed, batch, racing } = budget;
    format!("{calls}\t{seeds}\t{}\t{seed}\t{batch}\t{racing}", engine.name())
}
