"""Trials, studies, searches and calibrations through the package are those of the command."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command

import blis
from blis import _core

OUTCOMES = {
    "confirmed",
    "refuted",
    "equivalent within 2 %",
    "no effect",
    "too short",
    "overloaded",
    "inconclusive",
}

STUDY: dict[str, Any] = {
    "question": "does it matter where requests go?",
    "base": {
        "cluster": {"instances": 3},
        "workload": {"preset": "orthogonal-slo", "rate": 320, "num_requests": 200},
    },
    "arms": [
        {"name": "in turn"},
        {"name": "anywhere", "set": {"routing": {"policy": "random"}}},
    ],
    "metrics": ["ttft_p99", "critical.ttft_p99"],
    "hypotheses": [{"claim": "ttft_p99(in turn) <= ttft_p99(anywhere)"}],
    "seeds": 3,
    "max_seeds": 12,
}

SEARCH: dict[str, Any] = {
    "question": "which weights?",
    "base": STUDY["base"],
    "strategy": "slo-compound",
    "parameters": ["pa", "qd", "gate"],
    "objective": "critical.ttft_p99",
    "budget": {"calls": 12, "seeds": 2},
    "confirm": {"seeds": 2},
}


def elsewhere(rounds: _core.Rounds) -> int:
    """Runs what is needed as an engine would, until nothing is; how many rounds that takes."""
    count = 0
    while needed := rounds.needed():
        keys = [key for key, _ in needed]
        assert rounds.claim(keys) == ["ours"] * len(keys)
        rounds.keep([(document, _core.run_trial(document)) for _, document in needed])
        assert rounds.claim(keys) == ["finished"] * len(keys)
        count += 1
    return count


def test_a_trial_is_that_of_the_command(command: Command) -> None:
    document = blis.Scenario(num_requests=50, rate=5).trial(seed=7)
    row = blis.trial(document)
    assert row == json.loads(command("trial", stdin=document))
    assert row == blis.trial(json.loads(document))
    assert row["run"]["seed"] == 7


def test_a_study_gives_what_the_command_prints(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(STUDY))
    ledger = tmp_path / "ledger.db"
    found = blis.study(file, ledger=ledger)
    arguments = ["study", str(file), "--format", "json", "--quiet", "--ledger", str(ledger)]
    assert found == json.loads(command(*arguments))
    assert found["hypotheses"][0]["verdict"] in OUTCOMES
    assert found == blis.study(STUDY, ledger=None, jobs=1)
    verdict = found["hypotheses"][0]["verdict"]
    assert f"\n{verdict} " in found.report()
    assert f": {verdict}\n" in found.report("markdown")
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_study_whose_trials_run_elsewhere_finds_the_same(tmp_path: Path) -> None:
    rounds = _core.Rounds.study(json.dumps(STUDY), "file", tmp_path / "ledger.db")
    assert elsewhere(rounds) > 1, "seeds come in rounds"
    assert blis.Found(rounds.report()[0]) == blis.study(STUDY, ledger=None)


def test_a_search_whose_trials_run_elsewhere_finds_the_same(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    rounds = _core.Rounds.search(json.dumps(SEARCH), "file", ledger)
    assert elsewhere(rounds) > 2, "points come in rounds"
    out = tmp_path / "best.yaml"
    found = blis.optimize(SEARCH, ledger=ledger, out=out)
    assert found == blis.optimize(SEARCH, ledger=None)
    assert (found, out.read_text()) == (blis.Found(rounds.report()[0]), rounds.report()[1])
    assert len(found["calls"]) == 12
    best = blis.run(SEARCH["base"], strategy=str(out))
    assert best.completed > 0, "what was written can be run"


def test_a_report_runs_what_was_sent_away_and_has_not_come_back(tmp_path: Path) -> None:
    rounds = _core.Rounds.study(json.dumps(STUDY), "file", tmp_path / "ledger.db")
    keys = [key for key, _ in rounds.needed()]
    assert rounds.claim(keys) == ["ours"] * len(keys)
    assert blis.Found(rounds.report()[0]) == blis.study(STUDY, ledger=None)


def test_a_row_is_kept_with_its_own_trial_only(tmp_path: Path) -> None:
    scenario = blis.Scenario(num_requests=10)
    one, other = scenario.trial(seed=1), scenario.trial(seed=2)
    rounds = _core.Rounds.study(json.dumps(STUDY), "file", tmp_path / "ledger.db")
    with pytest.raises(blis.ScenarioError, match="not the row of its trial"):
        rounds.keep([(one, _core.run_trial(other))])
    with pytest.raises(blis.ScenarioError, match="32 hexadecimal digits"):
        rounds.claim(["x"])


def test_a_ledger_that_is_none_is_told(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.write_text("this is no database, and long enough to look like one" * 20)
    with pytest.raises(blis.LedgerError):
        blis.study(STUDY, ledger=file)


def test_a_calibration_gives_what_the_command_prints(tmp_path: Path, command: Command) -> None:
    measured, runs = ROOT / "data" / "h200", tmp_path / "runs"
    runs.mkdir()
    for kind in ("steps", "requests"):
        for file in measured.glob(f"*.{kind}.csv"):
            (runs / file.name).write_bytes(file.read_bytes())
    out = tmp_path / "profile.yaml"
    profiles = []
    # Single steps beside the runs are taken, as are those that are named.
    alone: list[Path] = []
    for folder, grid in [(measured, alone), (runs, alone), (runs, [measured / "steps_grid.csv"])]:
        found = blis.calibrate(folder, grid=grid, out=out)
        named = [argument for file in grid for argument in ("--grid", str(file))]
        arguments = ["calibrate", str(folder), *named]
        assert found == json.loads(command(*arguments, "--format", "json"))
        assert out.read_text() == command(*arguments, "--out", "-")
        profiles.append(out.read_text())
    assert len(set(profiles)) == 3, "single steps make a difference"


def test_policies_are_listed_by_kind(command: Command) -> None:
    assert blis.policies() == json.loads(command("policies", "--format", "json"))
    (scorers,) = blis.policies("scorer")
    assert "queue-depth" in [policy["name"] for policy in scorers["policies"]]
    with pytest.raises(ValueError, match="known: admission, routing, scorer"):
        blis.policies("scorers")
