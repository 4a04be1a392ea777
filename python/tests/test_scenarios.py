"""Scenarios mean the same however they are written, and are refused with the field's path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED_PREFIX

import blis
from blis import _core


def test_a_scenario_means_the_same_however_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "four.yaml"
    file.write_text("cluster: {instances: 4}\nworkload: {distribution: {rate: 3}}\n")
    tree = {"cluster": {"instances": 4}, "workload": {"distribution": {"rate": 3}}}
    spellings: list[Any] = [
        str(file),
        file,
        file.read_text(),
        tree,
        '{"cluster": {"instances": 4}, "workload": {"distribution": {"rate": 3}}}',
        blis.Scenario(num_instances=4, rate=3),
        blis.Scenario(tree, num_instances=9).set(num_instances=4),
    ]
    assert len({blis.Scenario(spelling).hash for spelling in spellings}) == 1
    assert blis.Scenario(num_instances=5, rate=3).hash != blis.Scenario(tree).hash


def test_settings_are_the_flags_of_the_command_and_take_values_of_python() -> None:
    names = [name for name, _, _ in _core.settings()]
    assert {"num_instances", "routing_policy", "rate", "seed", "beta_coeffs"} <= set(names)
    listed = blis.Scenario(beta_coeffs=[1000, 2.5, 3])
    assert listed.hash == blis.Scenario(beta_coeffs="1000,2.5,3").hash
    assert listed.hash != blis.Scenario().hash
    off = blis.Scenario(reserve_full_prompt=False)
    assert off.hash == blis.Scenario(reserve_full_prompt="false").hash != blis.Scenario().hash


def test_settings_that_are_none_are_not_given_and_those_with_fields_are_refused() -> None:
    assert blis.Scenario(rate=None).hash == blis.Scenario().hash
    with pytest.raises(TypeError, match="`workload` is one value"):
        blis.run(workload={"preset": "orthogonal-slo"})  # type: ignore[arg-type]


def test_a_field_at_fault_is_named_with_what_is_legal() -> None:
    with pytest.raises(blis.ScenarioError) as caught:
        blis.run({"cluster": {"instances": "many"}})
    error = caught.value
    assert error.path == "cluster.instances"
    assert error.message == "found `many`; legal: a whole number from 1 to 100000"
    assert (error.file, error.line) == ("scenario", 3)
    assert isinstance(error, ValueError)
    (problem,) = error.problems
    assert (problem.text, problem.path, problem.line) == (str(error), error.path, error.line)


def test_all_fields_at_fault_are_named_at_once() -> None:
    with pytest.raises(blis.ScenarioError) as caught:
        blis.run({"cluster": {"instances": "many"}, "scheduler": "fcsf"})
    error = caught.value
    assert [problem.path for problem in error.problems] == ["cluster.instances", "scheduler"]
    assert str(error) == "\n".join(problem.text for problem in error.problems)
    assert error.path == "cluster.instances"


@pytest.mark.parametrize(
    ("settings", "path", "words"),
    [
        ({"num_instances": 0}, "cluster.instances", "legal: a whole number from 1"),
        ({"num_instance": 2}, "num_instance", "did you mean `num_instances`?"),
        ({"routing_policy": "wieghted"}, "routing.policy", "did you mean `weighted`?"),
        ({"workload": "nobody"}, "workload.preset", "unknown"),
        ({"trace": "a", "workload": "b"}, "workload", "keep exactly one"),
    ],
)
def test_settings_are_refused_by_name(settings: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(blis.ScenarioError) as caught:
        blis.Scenario(**settings).hash  # noqa: B018
    assert caught.value.path == path
    assert words in str(caught.value)


def test_files_that_are_not_there_are_bad_input() -> None:
    for call in (blis.run, blis.study, blis.optimize):
        with pytest.raises(blis.ScenarioError, match="check the name"):
            call("nowhere.yaml")


def test_a_scenario_that_cannot_be_text_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        blis.Scenario({"seed": float("nan")})
    with pytest.raises(TypeError, match="a scenario cannot hold"):
        blis.Scenario({"seed": object()})


def test_paths_may_be_paths() -> None:
    assert blis.Scenario(SHARED_PREFIX).hash == blis.Scenario(str(SHARED_PREFIX)).hash
