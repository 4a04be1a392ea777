//! The capacities of a study's cells: `capacity: {slo: ["ttft_p99 <= 200ms"], vary: rate}`.
//!
//! Each cell is climbed as it stands, but for its rate, or for its number of instances. Claims and
//! tables then have `capacity`, or `fewest_instances`, with a value for each seed.

use super::{Study, Warmup};
use crate::capacity::{Climb, Question, Slo, Subject, Vary};
use crate::failure::Failure;
use crate::trial::Runner;
use blis_scenario::problem::Problem;
use blis_scenario::problems::{Problems, every};
use blis_scenario::scenario::Draft;
use blis_scenario::yaml::{Node, Whole};
use schemars::JsonSchema;
use serde::Deserialize;

/// About how many runs the capacity of one seed takes, with its share of the pilot's.
const RUNS_OF_A_SEED: usize = 10;

/// The field as written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CapacityFields {
    slo: Vec<String>,
    #[serde(default)]
    vary: Vary,
    max_requests: Option<Whole<1, 100_000_000>>,
}

/// What a study asks that is written so.
pub(super) fn question(
    tree: &Node,
    fields: &CapacityFields,
    warmup: Warmup,
) -> Result<Question, Problems> {
    let slo = every(fields.slo.iter().enumerate().map(|(index, text)| {
        let path = format!("capacity.slo[{index}]");
        Slo::read(text, tree.place_of(&path), &path)
    }))?;
    let slo: Vec<Slo> = slo.into_iter().flatten().collect();
    if slo.is_empty() {
        let message = "there is none, so any rate would do; add one, e.g. `ttft_p99 <= 500ms`";
        return Err(tree.problem("capacity.slo", message));
    }
    let mut question = Question { warmup, ..Question::new(slo, fields.vary) };
    if let Some(most) = fields.max_requests {
        question.most_requests = most.get();
    }
    Ok(question)
}

impl Study {
    /// The cells as subjects of a search for capacities; none if nobody asks.
    pub(super) fn subjects(&self) -> Result<Vec<Subject>, Problem> {
        let Some(question) = &self.capacity else { return Ok(Vec::new()) };
        let subject = |cell: &super::Cell| {
            let draft = Draft::from_tree(cell.tree.clone());
            Subject::new(&cell.levels.join(", "), draft, &cell.plan, question.vary)
        };
        self.cells.iter().map(subject).collect()
    }

    /// The climb of these subjects, after its pilot; `None` if nobody asks.
    pub(super) fn climb<'a>(
        &'a self,
        subjects: &'a [Subject],
        runner: &'a Runner<'a>,
    ) -> Result<Option<Climb<'a>>, Failure> {
        let Some(question) = &self.capacity else { return Ok(None) };
        let mut climb = Climb::new(question, subjects, runner);
        climb.pilot()?;
        Ok(Some(climb))
    }

    /// About how many runs the capacity of one cell takes.
    pub(super) fn trials_of_capacity(&self) -> usize {
        self.capacity.as_ref().map_or(0, |_| self.seeds * RUNS_OF_A_SEED)
    }
}
