"""Optuna searches the space that a search declares, and measures what the search measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import blis
import blis.optuna

optuna = pytest.importorskip("optuna", reason='Optuna is not installed: pip install "blis[optuna]"')
optuna.logging.set_verbosity(optuna.logging.WARNING)

SEARCH: dict[str, Any] = {
    "question": "which weights?",
    "base": {
        "cluster": {"instances": 3},
        "workload": {"preset": "orthogonal-slo", "rate": 320, "num_requests": 100},
    },
    "strategy": "slo-compound",
    "parameters": ["pa", "qd", "gate"],
    "objective": "critical.ttft_p99",
    "constraints": ["tokens_per_sec >= 0.9 * baseline", "completed >= 1"],
    "budget": {"calls": 6, "seeds": 2, "engine": "random"},
    "confirm": {"seeds": 2},
}


@pytest.fixture
def own(tmp_path: Path) -> dict[str, Any]:
    """A search over a strategy of its own, with parameters of every kind, and one that ships."""
    strategy = tmp_path / "mine.yaml"
    strategy.write_text(
        "name: mine\n"
        "help: every kind of parameter\n"
        "parameters:\n"
        "  weight: {default: 2, min: 0, max: 10, help: a number}\n"
        "  gate: {default: 8, min: 1, max: 256, kind: log, help: by its logarithm}\n"
        "  most: {default: 64, min: 16, max: 256, kind: int, help: a whole number}\n"
        "  order: {default: fcfs, choices: [fcfs, sjf], help: a word}\n"
        "set:\n"
        '  routing: {policy: weighted, scorers: "pa:{weight},qd:1"}\n'
        "  scheduler: '{order}'\n"
        "  engine: {max_num_running_reqs: '{most}'}\n"
        "  admission: 'slo-gated[threshold={gate}]'\n"
    )
    return {**SEARCH, "strategy": [str(strategy), "least-loaded"], "parameters": None}


def objective(tmp_path: Path, search: dict[str, Any]) -> blis.optuna.Objective:
    return blis.optuna.Objective(search, ledger=tmp_path / "ledger.db")


def test_a_point_has_the_values_that_blis_measures_there(tmp_path: Path) -> None:
    found = blis.optimize(SEARCH, ledger=None)
    ours = objective(tmp_path, SEARCH)
    assert (ours.metrics, ours.directions, ours.calls) == (["critical.ttft_p99"], ["minimize"], 6)
    for call in found["calls"]:
        values = {name: float(call["parameters"][name]) for name in ["pa", "qd", "gate"]}
        trial = optuna.trial.FixedTrial(values)
        assert ours(trial) == pytest.approx(call["critical.ttft_p99"], rel=1e-12)
        assert call["feasible"] == all(excess <= 0 for excess in trial.user_attrs["blis.excesses"])


IMPOSSIBLE = {**SEARCH, "constraints": ["tokens_per_sec >= 2 * baseline", "completed >= 1"]}


@pytest.mark.filterwarnings("ignore:.*constraints_func.*:FutureWarning")
def test_samplers_that_ask_for_constraints_are_answered(tmp_path: Path) -> None:
    asked: list[list[float]] = []
    ours = objective(tmp_path, IMPOSSIBLE)

    def constraints(trial: Any) -> Any:
        asked.append(list(ours.constraints(trial)))
        return asked[-1]

    sampler = optuna.samplers.TPESampler(seed=1, constraints_func=constraints)
    study = ours.create_study(sampler=sampler)
    study.optimize(ours, n_trials=4)
    assert len(asked) == 4
    assert all(throughput > 0 and count <= 0 for throughput, count in asked)
    assert not any(ours.is_feasible(trial) for trial in study.trials)
    assert study.trials[0].params == ours.hand_set == {"pa": 4.0, "qd": 3.0, "gate": 5.0}
    assert asked[0][0] == pytest.approx(1.0), "the hand-set point has half of what is wanted"


def test_optuna_knows_by_itself_what_is_feasible(tmp_path: Path) -> None:
    none = objective(tmp_path, IMPOSSIBLE)
    study = none.create_study()
    study.optimize(none, n_trials=3)
    with pytest.raises(ValueError, match="feasible"):
        study.best_trial  # noqa: B018
    some = objective(tmp_path, {**SEARCH, "constraints": ["tokens_per_sec >= 0.1 * baseline"]})
    study = some.create_study()
    study.optimize(some, n_trials=3)
    assert some.is_feasible(study.best_trial)


def test_seeds_are_the_noise_of_a_value(tmp_path: Path) -> None:
    ours = objective(tmp_path, SEARCH)
    trial = optuna.trial.FixedTrial(ours.hand_set)
    value = ours(trial)
    (seeds,) = trial.user_attrs["blis.values"].values()
    assert len(seeds) == 2
    assert seeds[0] != seeds[1]
    assert value == pytest.approx(sum(seeds) / 2)
    (error,) = trial.user_attrs["blis.standard_errors"].values()
    assert error == pytest.approx(abs(seeds[0] - seeds[1]) / 2)


def test_every_kind_of_parameter_is_suggested_as_it_is_declared(
    tmp_path: Path, own: dict[str, Any]
) -> None:
    own.pop("parameters")
    ours = objective(tmp_path, own)
    kinds = ours.distributions()
    prefix = f"{own['strategy'][0]}."
    made = optuna.distributions
    assert kinds["strategy"] == made.CategoricalDistribution(tuple(own["strategy"]))
    assert kinds[prefix + "weight"] == made.FloatDistribution(0, 10)
    assert kinds[prefix + "gate"] == made.FloatDistribution(1, 256, log=True)
    assert kinds[prefix + "most"] == made.IntDistribution(16, 256)
    assert kinds[prefix + "order"] == made.CategoricalDistribution(("fcfs", "sjf"))
    study = ours.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    study.optimize(ours, n_trials=8)
    done = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    chosen = {trial.params["strategy"] for trial in done}
    assert chosen == set(own["strategy"]), "both strategies were measured"
    for trial in done:
        for name in trial.params:
            under = "strategy" if name == "strategy" else name.rpartition(".")[0]
            assert under in {"strategy", trial.params["strategy"]}, "only what exists is asked for"


def test_points_that_are_no_legal_scenario_are_pruned(tmp_path: Path) -> None:
    ours = objective(tmp_path, SEARCH)
    study = ours.create_study()
    study.enqueue_trial({"pa": 0.0, "qd": 0.0, "gate": 5.0})
    study.optimize(ours, n_trials=2)
    refused = study.trials[1]
    assert refused.state == optuna.trial.TrialState.PRUNED
    assert "weight" in refused.user_attrs["blis.refused"]
    with pytest.raises(blis.ScenarioError, match="constraints"):
        objective(tmp_path, {**SEARCH, "constraints": ["tokens_per_sec > 3"]})


def test_several_objectives_have_their_directions(tmp_path: Path) -> None:
    ours = objective(tmp_path, {**SEARCH, "maximise": "goodput_per_sec"})
    assert ours.directions == ["minimize", "maximize"]
    study = ours.create_study()
    study.optimize(ours, n_trials=2)
    assert len(study.best_trials) >= 1
    assert len(study.best_trials[0].values) == 2


WORKLOADS = [
    {"name": "calm", "set": {"cluster": {"instances": 4}}},
    {"name": "full house", "set": {"cluster": {"instances": 2}}},
]


def test_a_point_is_measured_on_every_workload(tmp_path: Path) -> None:
    search = {**SEARCH, "workloads": WORKLOADS}
    found = blis.optimize(search, ledger=None)
    ours = objective(tmp_path, search)
    assert ours.constraint_texts[:2] == [
        "tokens_per_sec @ calm >= 0.9 * baseline",
        "tokens_per_sec @ full house >= 0.9 * baseline",
    ]
    call = found["calls"][1]
    trial = optuna.trial.FixedTrial(
        {name: float(call["parameters"][name]) for name in ["pa", "qd", "gate"]}
    )
    assert ours(trial) == pytest.approx(call["critical.ttft_p99"], rel=1e-12)
    assert len(trial.user_attrs["blis.excesses"]) == 4


def test_what_optuna_measured_the_command_finds_in_the_ledger(
    tmp_path: Path, command: Command
) -> None:
    ledger = tmp_path / "ledger.db"
    blis.optuna.Objective(SEARCH, ledger=ledger)(
        optuna.trial.FixedTrial({"pa": 4.0, "qd": 3.0, "gate": 5.0})
    )
    listed = json.loads(command("ledger", "list", "--format", "json", "--ledger", str(ledger)))
    assert len(listed) == 2
