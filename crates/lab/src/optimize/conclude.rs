//! What a search comes to: the recommended point or the front, and what matters.

use super::findings::{Chosen, Front};
use super::search::{Explored, MOST_MODELLED};
use super::{Search, Sensitivity};
use blis_optimize::{pareto, recommend, sensitivity, sensitivity_around};

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
        match chosen {
            [one] if self.objectives.len() == 1 => sensitivity_around(history, k, one.call),
            _ => sensitivity(history, k),
        }
    }

    /// What is recommended: a point for one objective, the front for several.
    pub(super) fn choose(&self, explored: &Explored) -> Vec<Chosen> {
        let history = explored.optimizer.history();
        let chosen = |call: usize| Chosen {
            call,
            candidate: explored.calls[call].candidate,
            settings: explored.calls[call].settings.clone(),
            expected: None,
            feasibility: None,
        };
        if self.objectives.len() > 1 {
            let front = explored.front();
            if !front.is_empty() {
                return front.into_iter().map(chosen).collect();
            }
        }
        if explored.calls.len() > MOST_MODELLED {
            let feasible = (0..explored.calls.len()).filter(|&i| explored.calls[i].feasible);
            let score = |i: &usize| explored.calls[*i].scores[0];
            let best = feasible.filter(|i| score(i).is_finite());
            let best = best.min_by(|a, b| score(a).total_cmp(&score(b)));
            return best.map(chosen).into_iter().collect();
        }
        let found = recommend(history, 0);
        // A point that measured no better is no reason to change anything.
        let hand = explored.calls.first().filter(|first| {
            first.is_usable()
                && self.points.hand(0) == Some(history.observations()[0].point.clone())
        });
        if let (Some(_), Some(found)) = (hand, &found)
            && explored.calls[found.index].scores[0] >= 0.0
        {
            return vec![chosen(0)];
        }
        let with = found.map(|found| Chosen {
            expected: Some(found.objective),
            feasibility: Some(found.feasibility),
            ..chosen(found.index)
        });
        with.into_iter().collect()
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
    fn front(&self) -> Vec<usize> {
        let legal: Vec<usize> =
            (0..self.calls.len()).filter(|&i| self.calls[i].is_usable()).collect();
        let scores: Vec<Vec<f64>> = legal.iter().map(|&i| self.calls[i].scores.clone()).collect();
        pareto::front(&scores).into_iter().map(|k| legal[k]).collect()
    }
}
