//! What a search learned besides: what matters, and what the front is worth.

use super::findings::{Chosen, Front, Refusal};
use super::guard::Guard;
use super::number::Runs;
use super::search::{Explored, by_point};
use super::{Load, Plateau, Search, Sensitivity};
use crate::failure::Failure;
use crate::study::gates::{refused_by_class, serves_everybody};
use crate::trial::Runner;
use blis_optimize::{pareto, sensitivity, sensitivity_around};

impl Search {
    /// What matters for objective `k`: around the one point that is recommended, or around the best
    /// in this objective if there are several.
    pub(super) fn sensitivity(
        &self,
        found: &Explored,
        chosen: &[Chosen],
        k: usize,
    ) -> Option<Sensitivity> {
        let history = found.optimizer.history();
        let [one] = chosen else { return sensitivity(history, k) };
        let mut found = sensitivity_around(history, k, one.call)?;
        // Where the model has it: weights may be written smaller.
        let space = &self.points.space;
        let unit = space.unit(&history.observations()[one.call].point).ok()?;
        let point = space.point(&unit);
        for (dimension, influence) in found.dimensions.iter_mut().enumerate() {
            if let Plateau::Range { within_noise, not_worse } = &mut influence.plateau {
                let scale = self.points.scale_of(dimension, &point);
                for end in [within_noise, not_worse].into_iter().flat_map(|(a, b)| [a, b]) {
                    *end *= scale;
                }
            }
        }
        Some(found)
    }

    /// Takes back those of `chosen` that break a guard on fresh seeds. Where one point is
    /// recommended, the hand-set point takes its place.
    pub(super) fn take_back(
        &self,
        chosen: &mut Vec<Chosen>,
        fresh: &mut Vec<Runs>,
        guards: &[Guard],
    ) -> Vec<(usize, String)> {
        let broken = |runs: &Runs, hand: &Runs| {
            let breaks = |guard: &&Guard| guard.excess_of(runs, hand).mean > 0.0;
            guards.iter().find(breaks).map(|guard| guard.text.clone())
        };
        let mut taken_back = Vec::new();
        for number in (0..chosen.len()).rev() {
            let cell = number + 1;
            let text = broken(&fresh[cell], &fresh[0]).filter(|_| chosen[number].legal);
            let Some(text) = text else { continue };
            taken_back.push((chosen[number].call, text));
            if chosen.len() > 1 {
                chosen.remove(number);
                fresh.remove(cell);
            } else if self.points.hand(0).is_some() {
                let settings = self.points.candidates[0].hand.clone();
                chosen[number] = Chosen { call: 0, candidate: 0, settings, legal: true };
                let hand = fresh[0].clone();
                fresh[cell] = hand;
            } else {
                chosen[number].legal = false;
            }
        }
        taken_back
    }

    /// What the hand-set point refuses on fresh seeds and would serve without its gate.
    pub(super) fn needless_refusals(
        &self,
        fresh: &[Runs],
        runner: &Runner<'_>,
    ) -> Result<Vec<Refusal>, Failure> {
        let refused: Vec<_> = fresh[0].iter().map(|rows| refused_by_class(rows)).collect();
        if refused.iter().all(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let open = |load: &Load| load.plan_without_gate(&self.points);
        let plans = self.loads.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (plans, seeds) = ([plans], self.fresh_seeds());
        let (number, _) = self.fresh_label(fresh.len(), fresh.len());
        self.note(
            runner,
            &[(number, "fresh: by hand without its gate".to_owned())],
            &plans,
            &seeds,
        )?;
        let runs = by_point(&plans, &seeds, runner)?;
        let mut found = Vec::new();
        for ((load, refused), rows) in self.loads.iter().zip(refused).zip(&runs[0]) {
            if rows.iter().all(serves_everybody) {
                let workload = &load.name;
                found.extend(refused.into_iter().map(|(class, refused)| Refusal {
                    workload: workload.clone(),
                    class,
                    refused,
                }));
            }
        }
        Ok(found)
    }

    /// For several objectives, what the points of the search and of its control dominate, below a
    /// reference that both share: the worst that either has measured among legal points.
    pub(super) fn fronts(
        &self,
        found: &Explored,
        control: Option<&Explored>,
    ) -> Option<(Front, Front)> {
        if self.objectives.len() < 2 {
            return None;
        }
        let all = found.calls.iter().chain(control.iter().flat_map(|control| &control.calls));
        let legal: Vec<&Vec<f64>> =
            all.filter(|call| call.is_usable()).map(|call| &call.scores).collect();
        let reference: Vec<f64> = (0..self.objectives.len())
            .map(|k| legal.iter().map(|scores| scores[k]).fold(f64::NEG_INFINITY, f64::max))
            .collect();
        let front = |explored: &Explored| {
            let points = explored.front();
            let scores: Vec<Vec<f64>> =
                points.iter().map(|&i| explored.calls[i].scores.clone()).collect();
            let hand = vec![0.0; self.objectives.len()];
            let below = hand.iter().zip(&reference).all(|(hand, worst)| hand <= worst);
            Front {
                hypervolume: pareto::hypervolume(&scores, &reference),
                of_hand: if below { pareto::hypervolume(&[hand], &reference) } else { 0.0 },
                points,
            }
        };
        let own = front(found);
        Some((own.clone(), control.map_or(own, front)))
    }
}

impl Explored {
    /// The legal points that no other dominates.
    pub(super) fn front(&self) -> Vec<usize> {
        let legal: Vec<usize> =
            (0..self.calls.len()).filter(|&i| self.calls[i].is_usable()).collect();
        let scores: Vec<Vec<f64>> = legal.iter().map(|&i| self.calls[i].scores.clone()).collect();
        pareto::front(&scores).into_iter().map(|k| legal[k]).collect()
    }
}
