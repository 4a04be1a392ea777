"""Searches by Optuna: `pip install "blis[optuna]"`.

A search file, as for `blis optimize`, becomes an objective: its parameters are suggested within the
ranges that the strategy declares, each point is run with the seeds of the file, and what must hold
is told to samplers that know constraints.

>>> import optuna, blis.optuna
>>> objective = blis.optuna.Objective("studies/optimize-slo-compound.yaml")
>>> study = objective.create_study(sampler=optuna.samplers.TPESampler(seed=1))
>>> study.optimize(objective, n_trials=objective.calls)

Before version 5, Optuna asks for constraints instead of being told: give samplers
`constraints_func=objective.constraints`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import ScenarioError
from .lab import LEDGER
from .scenario import read

if TYPE_CHECKING:
    import optuna

__all__ = ["Objective"]

EXCESSES = "blis.excesses"
"""The attribute of a trial with what breaks its constraints."""
VALUES = "blis.values"
"""The attribute with the value of each objective by seed."""
ERRORS = "blis.standard_errors"
"""The attribute with the standard error of each objective's mean."""
REFUSED = "blis.refused"
"""The attribute with the reason why a point was not run."""


class Objective:
    """What Optuna calls with a trial: the objectives of a search, each a mean over its seeds.

    Values are in the unit of the metric; seeds are the noise, and the same for all points, so that
    all are sent the same requests. A trial's attributes have the value of each seed and the standard
    error of the mean. Finished runs are kept in `ledger` (`None`: nowhere).
    """

    def __init__(
        self,
        source: Mapping[str, Any] | os.PathLike[str] | str,
        *,
        ledger: os.PathLike[str] | str | None = LEDGER,
        jobs: int = 0,
    ) -> None:
        text, path = read(source, "search")
        self._space = _core.Space(text, path, ledger)
        self._jobs = jobs
        found: dict[str, Any] = json.loads(self._space.json())
        self.question: str = found["question"]
        self.metrics: list[str] = [one["metric"] for one in found["objectives"]]
        """The names of the objectives."""
        self.directions: list[str] = [
            "maximize" if one["maximise"] else "minimize" for one in found["objectives"]
        ]
        """Theirs, as Optuna says it."""
        self.constraint_texts: list[str] = found["constraints"]
        self.calls: int = found["calls"]
        """How many points the file wants to be measured."""
        self._dimensions: list[dict[str, Any]] = found["dimensions"]

    def create_study(self, **keywords: Any) -> optuna.Study:
        """A study of Optuna with the right directions, whose first trial is the hand-set point.

        Keywords are those of `optuna.create_study`. Without a sampler, it has a TPE sampler that
        knows the constraints.
        """
        engine = _engine()
        if "sampler" not in keywords:
            asks = bool(self.constraint_texts) and not hasattr(engine.Trial, "set_constraint")
            known = {"constraints_func": self.constraints} if asks else {}
            keywords["sampler"] = engine.samplers.TPESampler(seed=0, **known)
        made: optuna.Study = engine.create_study(directions=self.directions, **keywords)
        if self.hand_set and not made.trials:
            made.enqueue_trial(self.hand_set)
        return made

    @property
    def hand_set(self) -> dict[str, Any]:
        """The first strategy as it stands; empty if it is not a point of the space."""
        given = [one for one in self._dimensions if "hand_set" in one]
        read = {"int": int, "choice": str}
        return {one["name"]: read.get(one["kind"], float)(one["hand_set"]) for one in given}

    def distributions(self) -> dict[str, optuna.distributions.BaseDistribution]:
        """The distribution of each parameter, those of all strategies included."""
        return {one["name"]: _distribution(one) for one in self._dimensions}

    def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
        """A value for each parameter that exists at this point."""
        values: dict[str, Any] = {}
        for one in self._dimensions:
            under = one.get("under")
            if under is None or values.get(under["name"]) == under["option"]:
                values[one["name"]] = _suggest(trial, one)
        return values

    def __call__(self, trial: optuna.Trial) -> float | Sequence[float]:
        """Measures a point. One whose parameters are not legal together is pruned."""
        values = self.suggest(trial)
        texts = [(name, _text(value)) for name, value in values.items()]
        try:
            objectives, excesses = self._space.measure(texts, self._jobs)
        except ScenarioError as error:
            # As if it broke everything: samplers must not take it for a good point.
            trial.set_user_attr(REFUSED, str(error))
            self._tell(trial, [1.0] * len(self.constraint_texts))
            raise _engine().TrialPruned(str(error)) from error
        self._tell(trial, [excess if math.isfinite(excess) else 1e300 for excess in excesses])
        trial.set_user_attr(VALUES, dict(zip(self.metrics, objectives, strict=True)))
        means: list[float] = []
        errors: dict[str, float] = {}
        for metric, samples in zip(self.metrics, objectives, strict=True):
            known = [value for value in samples if value is not None]
            if len(known) < len(samples):
                message = f"{len(samples) - len(known)} of {len(samples)} seeds have no `{metric}`"
                trial.set_user_attr(REFUSED, message)
                raise _engine().TrialPruned(message)
            means.append(fmean(known))
            if len(known) > 1:
                errors[metric] = stdev(known) / math.sqrt(len(known))
        trial.set_user_attr(ERRORS, errors)
        return means[0] if len(means) == 1 else means

    def _tell(self, trial: optuna.Trial, excesses: list[float]) -> None:
        """Tells what breaks the constraints: in an attribute, and to Optuna if it listens."""
        trial.set_user_attr(EXCESSES, excesses)
        tell = getattr(trial, "set_constraint", None)
        if tell is not None:
            for text, excess in zip(self.constraint_texts, excesses, strict=True):
                tell(text, excess)

    def constraints(self, trial: optuna.trial.FrozenTrial) -> Sequence[float]:
        """For `constraints_func`: by how much each constraint is broken, at most 0 where it holds."""
        found: list[float] = trial.user_attrs[EXCESSES]
        return found

    def is_feasible(self, trial: optuna.trial.FrozenTrial) -> bool:
        """Whether a finished trial met all constraints, as measured."""
        return all(excess <= 0 for excess in trial.user_attrs[EXCESSES])


def _engine() -> Any:
    try:
        # When it is needed: it takes a second, and its absence is to be told in words.
        return import_module("optuna")
    except ImportError as error:
        message = 'Optuna is not installed; install it with `pip install "blis[optuna]"`'
        raise ImportError(message) from error


def _distribution(one: Mapping[str, Any]) -> Any:
    made = _engine().distributions
    if one["kind"] == "choice":
        return made.CategoricalDistribution(tuple(one["options"]))
    kind = made.IntDistribution if one["kind"] == "int" else made.FloatDistribution
    return kind(one["min"], one["max"], log=one["kind"] == "log")


def _suggest(trial: optuna.Trial, one: Mapping[str, Any]) -> Any:
    name, log = one["name"], one["kind"] == "log"
    if one["kind"] == "choice":
        return trial.suggest_categorical(name, one["options"])
    if one["kind"] == "int":
        return trial.suggest_int(name, one["min"], one["max"])
    return trial.suggest_float(name, one["min"], one["max"], log=log)


def _text(value: object) -> str:
    """A value as files spell it, a number with all its digits."""
    return repr(value) if isinstance(value, float) else str(value)
