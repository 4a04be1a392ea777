"""A search by Optuna: its sampler asks, BLIS measures, and what must hold is told to the sampler."""

from __future__ import annotations

import sys

import blis.optuna


def main(search: str, calls: int | None = None) -> None:
    """Prints the best legal point beside the hand-set one, the first trial."""
    objective = blis.optuna.Objective(search)
    study = objective.create_study()
    study.optimize(objective, n_trials=calls or objective.calls)
    (metric,) = objective.metrics
    hand = study.trials[0]
    done = [trial for trial in study.trials if trial.value is not None]
    legal = [trial for trial in done if objective.is_feasible(trial)]
    sign = -1 if objective.directions == ["maximize"] else 1
    best = min(legal, key=lambda trial: sign * (trial.value or 0.0))
    print(objective.question)
    for name, trial in [("hand-set", hand), ("best", best)]:
        noise = trial.user_attrs["blis.standard_errors"].get(metric, 0.0)
        print(f"{name}: {metric} {trial.value:.1f} ± {noise:.1f} at {trial.params}")
    print(f"{len(legal)} of {len(study.trials)} points meet {', '.join(objective.constraint_texts)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
