"""The examples for clusters are what their schedulers read, and the parts make the whole."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command

import blis

CLUSTER = ROOT / "examples" / "cluster"
STUDY: dict[str, Any] = {
    "question": "does it matter where requests go?",
    "base": {
        "cluster": {"instances": 3},
        "workload": {"preset": "orthogonal-slo", "rate": 320, "num_requests": 50},
    },
    "arms": [{"name": "in turn"}, {"name": "anywhere", "set": {"routing": {"policy": "random"}}}],
    "metrics": ["ttft_p99"],
    "seeds": 4,
}


def documents(name: str) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    found: list[dict[str, Any]] = list(yaml.safe_load_all((CLUSTER / name).read_text()))
    return found


def test_the_ray_job_asks_with_a_ledger_that_outlives_it() -> None:
    claim, job = documents("kuberay.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    (container,) = head["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    words = job["spec"]["entrypoint"].split()
    assert words[:4] == ["python", "-m", "blis.ray", "study"]
    assert words[4].startswith(mounts["study"])
    assert words[words.index("--ledger") + 1].startswith(mounts["ledger"])
    volumes = {volume["name"]: volume for volume in head["volumes"]}
    named = volumes["ledger"]["persistentVolumeClaim"]["claimName"]
    assert claim["metadata"]["name"] == named
    (workers,) = cluster["workerGroupSpecs"]
    images = {c["image"] for c in workers["template"]["spec"]["containers"]}
    assert images == {container["image"]}, "all nodes have the same code"
    dockerfile = (CLUSTER / "Dockerfile").read_text()
    assert f"rayproject/ray:{cluster['rayVersion']}-" in dockerfile


def test_the_entrypoint_of_the_ray_job_is_a_legal_command() -> None:
    from blis.ray.__main__ import _arguments

    _, job = documents("kuberay.yaml")
    args = _arguments(job["spec"]["entrypoint"].split()[3:])
    assert (args.command, args.address, args.json) == ("study", "auto", True)


def test_the_indexed_job_has_as_many_parts_as_completions(
    tmp_path: Path, program: str, command: Command
) -> None:
    _, job = documents("indexed-job.yaml")
    spec = job["spec"]
    assert (job["apiVersion"], spec["completionMode"]) == ("batch/v1", "Indexed")
    (container,) = spec["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert variables == {"PARTS": str(spec["completions"])}
    (script,) = container["args"]
    check = subprocess.run(["bash", "-n"], input=script, text=True, check=False)
    assert check.returncode == 0
    # What a pod does, with folders of this machine for its volumes.
    for mount in ["study", "parts", "scratch"]:
        (tmp_path / mount).mkdir()
        assert f"/{mount}/" in script
        script = script.replace(f"/{mount}/", f"{tmp_path / mount}/")
    study = tmp_path / "study" / "study.yaml"
    study.write_text(json.dumps(STUDY))
    for index in range(2):
        environment = {"JOB_COMPLETION_INDEX": str(index), "PARTS": "2", **path(program)}
        subprocess.run([*container["command"], script], env=environment, check=True)
    joined(study, tmp_path, command)


def test_the_slurm_array_makes_the_whole_study_and_goes_on(
    tmp_path: Path, program: str, command: Command
) -> None:
    script = CLUSTER / "slurm.sh"
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    study = tmp_path / "study.yaml"
    study.write_text(json.dumps(STUDY))
    for index in [0, 1, 1]:
        environment = {
            "SLURM_ARRAY_TASK_ID": str(index),
            "SLURM_ARRAY_TASK_MIN": "0",
            "SLURM_ARRAY_TASK_STEP": "1",
            "SLURM_ARRAY_TASK_COUNT": "2",
            "PARTS": str(tmp_path / "parts"),
            "TMPDIR": str(tmp_path),
            **path(program),
        }
        subprocess.run([str(script), str(study)], env=environment, check=True)
    assert sorted(os.listdir(tmp_path)) == ["parts", "study.yaml"], "no scratch is left"
    joined(study, tmp_path, command)


def path(program: str) -> dict[str, str]:
    """The environment in which the command is found by its name."""
    return {"PATH": f"{Path(program).parent}:{os.environ['PATH']}"}


def joined(study: Path, folder: Path, command: Command) -> None:
    """Joins the ledgers of the parts, which have everything: nothing is left to run."""
    ledger = str(folder / "whole.db")
    parts = sorted(str(part) for part in (folder / "parts").iterdir())
    assert [Path(part).name for part in parts] == ["part0.db", "part1.db"]
    command("ledger", "merge", *parts, "--ledger", ledger)
    before = Path(ledger).stat().st_size
    assert before > 0
    found = blis.study(study, ledger=ledger)
    assert found == blis.study(study, ledger=None)
