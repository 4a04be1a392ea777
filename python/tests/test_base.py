"""Runs and trials through the package are those of the command."""

from __future__ import annotations

import json

import blis


def test_a_scenario_means_the_same_however_it_is_written() -> None:
    spellings = [
        blis.Scenario({"cluster": {"instances": 4}}),
        blis.Scenario("cluster: {instances: 4}"),
        blis.Scenario(num_instances=4),
    ]
    assert len({spelling.hash for spelling in spellings}) == 1


def test_a_trial_gives_the_row_of_its_run() -> None:
    scenario = blis.Scenario(num_requests=50, rate=5)
    row = blis.trial(scenario.trial(seed=7))
    assert row["cluster"] == blis.run(scenario, seed=7).json["cluster"]
    assert json.loads(scenario.trial(seed=7))["seed"] == 7
