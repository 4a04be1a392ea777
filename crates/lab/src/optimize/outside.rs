//! What engines outside of this program need to search: the space as JSON, and what is measured at
//! a point of it.

use super::sample::Hand;
use super::search::by_point;
use super::{Search, points};
use crate::failure::Failure;
use crate::trial::Runner;
use blis_core::Value;
use blis_optimize::{Dimension, Kind, Point};
use blis_scenario::json::present;
use blis_scenario::problem::{Place, Problem, quoted};
use serde_json::{Value as Json, json};

/// What was measured at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// The values of each objective, one a seed, in its own unit; absent without a sample.
    pub objectives: Vec<Vec<Option<f64>>>,
    /// By how much each constraint is broken on average, at most 0 where it holds; infinite if a
    /// seed has no sample.
    pub excesses: Vec<f64>,
}

impl Search {
    /// What may be chosen, what is improved and what must hold, as one JSON object.
    pub fn space(&self) -> Json {
        let hand = self.points.hand(0);
        let values = |index: usize| hand.as_ref().and_then(|point| point.values[index].as_ref());
        let dimensions = self.points.space.dimensions().iter().enumerate();
        let objective = |objective: &super::Objective| {
            let (metric, maximise) = (objective.number.name(), objective.maximise);
            json!({"metric": metric, "maximise": maximise})
        };
        let constraints = self.constraints.iter().map(|constraint| constraint.text.as_str());
        present(json!({
            "question": self.question,
            "dimensions": dimensions
                .map(|(index, dimension)| self.dimension_object(dimension, values(index)))
                .collect::<Vec<_>>(),
            "objectives": self.objectives.iter().map(objective).collect::<Vec<_>>(),
            "constraints": constraints.collect::<Vec<_>>(),
            "workloads": Some(self.workloads()).filter(|names| !names.is_empty()),
            "seeds": self.budget.seeds,
            "calls": self.budget.calls,
        }))
    }

    fn dimension_object(&self, dimension: &Dimension, hand: Option<&Value>) -> Json {
        let (kind, min, max) = match dimension.kind {
            Kind::Float { min, max } => ("float", json!(min), json!(max)),
            Kind::Log { min, max } => ("log", json!(min), json!(max)),
            Kind::Int { min, max } => ("int", json!(min), json!(max)),
            Kind::Choice { .. } => ("choice", Json::Null, Json::Null),
        };
        let words = |kind: &Kind| match kind {
            Kind::Choice { options } => Some(options.iter().map(Value::to_string).collect()),
            _ => None,
        };
        let under = dimension.condition.map(|condition| {
            let parent = &self.points.space.dimensions()[condition.parent];
            let options: Option<Vec<String>> = words(&parent.kind);
            json!({"name": parent.name, "option": options.map(|all| all[condition.option].clone())})
        });
        json!({
            "name": dimension.name,
            "options": words(&dimension.kind),
            "kind": kind,
            "min": min,
            "max": max,
            "under": under,
            "hand_set": hand.map(Value::to_string),
        })
    }

    /// Measures the point with these values of the dimensions, by name, on the seeds of the search;
    /// the hand-set point too, if constraints are relative to it.
    ///
    /// # Errors
    /// If it is no point of the space, its parameters are not legal together, or a run fails.
    pub fn measure_at(
        &self,
        values: &[(String, String)],
        runner: &Runner<'_>,
    ) -> Result<Measures, Failure> {
        let point = self.point(values)?;
        let (candidate, settings) = self.points.settings(&point);
        let mut points = vec![self.plans(candidate, &settings)?];
        if self.constraints.iter().any(|constraint| constraint.relative) {
            points.push(self.plans_by_hand()?);
        }
        let seeds = self.seeds();
        let found = by_point(&points, &seeds, runner)?;
        let of = |runs| self.sample(runs, &[]);
        let sample = of(&found[0]);
        let hand = found.last().map_or_else(|| sample.clone(), of);
        let hand = Hand { sample: hand, guards: Vec::new() };
        let observation = self.observation(point, &sample, &hand);
        let excesses = observation.constraints.iter().map(|measured| measured.mean).collect();
        Ok(Measures { objectives: sample.objectives, excesses })
    }

    /// The point with these values.
    fn point(&self, values: &[(String, String)]) -> Result<Point, Problem> {
        let space = &self.points.space;
        let wrong = |message| Problem::new(Place::Unknown, "parameters", message);
        let names: Vec<&str> = space.dimensions().iter().map(|one| one.name.as_str()).collect();
        let strange = values.iter().find(|(name, _)| !names.contains(&name.as_str()));
        if let Some((name, _)) = strange {
            return Err(wrong(format!("unknown parameter `{name}`; known: {}", quoted(&names))));
        }
        let value = |dimension: &Dimension| -> Result<Option<Value>, Problem> {
            let Some((name, text)) = values.iter().find(|(name, _)| *name == dimension.name) else {
                return Ok(None);
            };
            let message = || wrong(format!("`{name}` cannot be `{text}`"));
            points::value(&dimension.kind, text).map(Some).ok_or_else(message)
        };
        let values = space.dimensions().iter().map(value).collect::<Result<_, _>>()?;
        let point = Point { values };
        space.unit(&point).map_err(|error| wrong(error.to_string()))?;
        Ok(point)
    }
}
