"""Trials that run on Ray give the ledger that they give here, also when workers die."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command

import blis
import blis.ray
from blis import _core
from blis.ray import driver

ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "blis[ray]"')

TINY: dict[str, Any] = {
    "question": "500 tiny trials",
    "base": {"workload": {"distribution": {"rate": 20, "num_requests": 200}}},
    "sweep": {"cluster.instances": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]},
    "metrics": ["ttft_p99"],
    "seeds": 50,
}

SEQUENTIAL: dict[str, Any] = {
    "question": "does it matter where requests go?",
    "base": {
        "cluster": {"instances": 3},
        "workload": {"preset": "orthogonal-slo", "rate": 320, "num_requests": 100},
    },
    "arms": [
        {"name": "in turn"},
        {"name": "anywhere", "set": {"routing": {"policy": "random"}}},
    ],
    "metrics": ["ttft_p99"],
    "hypotheses": [{"claim": "ttft_p99(in turn) <= ttft_p99(anywhere)"}],
    "seeds": 3,
    "max_seeds": 12,
}


@pytest.fixture(scope="module", autouse=True)
def raylet() -> Iterator[int]:
    """A Ray of this machine with two workers; the process that starts them."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray.get(ray.remote(lambda: os.getppid()).remote())
    ray.shutdown()


def rows(ledger: Path) -> dict[str, tuple[object, ...]]:
    """All trials of a ledger, by key."""
    with sqlite3.connect(ledger) as database:
        found = database.execute("SELECT key, code, scenario_hash, seed, row FROM trials")
        return {key: tuple(rest) for key, *rest in found}


def scenarios(ledger: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(ledger) as database:
        return database.execute("SELECT * FROM scenarios ORDER BY 1").fetchall()


def runs(ledger: Path) -> tuple[int, int, int]:
    """How many runs were begun, of how many trials, and how many were finished."""
    with sqlite3.connect(ledger) as database:
        found: tuple[int, int, int] = database.execute(
            "SELECT count(*), count(DISTINCT key), sum(finished) FROM runs"
        ).fetchone()
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)
        return found


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """The ledger of `blis study`, beside the study that it ran."""
    folder = tmp_path_factory.mktemp("tiny")
    file = folder / "tiny.yaml"
    file.write_text(json.dumps(TINY))
    command("study", str(file), "--quiet", "--ledger", str(folder / "ledger.db"))
    assert len(rows(folder / "ledger.db")) == 500
    return folder


def kill_a_worker_at_work(raylet: int) -> bool:
    """Kills a process of this Ray that is running a batch; whether there was one."""
    for _ in range(100):
        for children in Path(f"/proc/{raylet}/task").glob("*/children"):
            for process in children.read_text().split():
                try:
                    title = Path(f"/proc/{process}/cmdline").read_text(errors="replace")
                except OSError:
                    continue
                if "run_batch" in title:
                    os.kill(int(process), signal.SIGKILL)
                    return True
    return False


def test_a_study_on_ray_leaves_the_ledger_of_the_command(tiny: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    seen: list[blis.ray.Progress] = []
    found = blis.ray.study(tiny / "tiny.yaml", ledger=ledger, progress=seen.append)
    assert rows(ledger) == rows(tiny / "ledger.db")
    assert scenarios(ledger) == scenarios(tiny / "ledger.db")
    assert runs(ledger) == (500, 500, 500)
    assert found == blis.study(tiny / "tiny.yaml", ledger=tiny / "ledger.db")
    assert (seen[0].finished, seen[-1].finished, seen[-1].expected) == (0, 500, 500)
    again: list[blis.ray.Progress] = []
    assert blis.ray.study(tiny / "tiny.yaml", ledger=ledger, progress=again.append) == found
    assert again == [], "nothing is run twice"


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found through /proc")
@pytest.mark.parametrize("retries", [3, 0])
def test_a_killed_worker_costs_nothing_but_time(
    tiny: Path, tmp_path: Path, raylet: int, retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Ray's own retries, and without: then the batch is sent anew."""
    monkeypatch.setattr(driver, "RETRIES", retries)
    ledger, killed, lost = tmp_path / "ledger.db", 0, 0

    def kill(progress: blis.ray.Progress) -> None:
        nonlocal killed, lost
        lost = progress.lost
        enough = killed if retries else lost
        if 0 < progress.finished < 450 and not enough:
            killed += kill_a_worker_at_work(raylet)

    blis.ray.study(tiny / "tiny.yaml", ledger=ledger, batch=20, progress=kill)
    assert killed, "a worker was killed in the middle"
    assert retries or lost, "a batch was sent anew"
    assert rows(ledger) == rows(tiny / "ledger.db")
    assert runs(ledger) == (500, 500, 500)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found through /proc")
def test_kills_of_workers_at_any_moment_change_no_row(
    tiny: Path, tmp_path: Path, raylet: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as `BLIS_RAY_KILLS` says, over as many studies as that takes."""
    monkeypatch.setattr(driver, "RETRIES", -1)
    wanted, killed = int(os.environ.get("BLIS_RAY_KILLS", "6")), 0
    while killed < wanted:
        ledger, dice = tmp_path / f"{killed}.db", random.Random(killed)

        def kill(progress: blis.ray.Progress) -> None:
            nonlocal killed
            if killed < wanted and progress.finished < 490 and dice.random() < 0.5:
                killed += kill_a_worker_at_work(raylet)

        found = blis.ray.study(tiny / "tiny.yaml", ledger=ledger, batch=10, progress=kill)
        assert rows(ledger) == rows(tiny / "ledger.db")
        assert runs(ledger) == (500, 500, 500)
        assert found == blis.study(tiny / "tiny.yaml", ledger=tiny / "ledger.db")


def test_a_study_that_was_stopped_goes_on_from_its_ledger(tiny: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"

    def stop(progress: blis.ray.Progress) -> None:
        if 100 <= progress.finished < 400:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        blis.ray.study(tiny / "tiny.yaml", ledger=ledger, batch=10, progress=stop)
    kept = rows(ledger)
    assert 100 <= len(kept) < 500
    assert kept.items() <= rows(tiny / "ledger.db").items()
    seen: list[blis.ray.Progress] = []
    blis.ray.study(tiny / "tiny.yaml", ledger=ledger, progress=seen.append)
    assert seen[-1].finished == 500 - len(kept), "what is finished is not run again"
    assert rows(ledger) == rows(tiny / "ledger.db")


def test_seeds_and_points_come_in_rounds_as_they_do_here(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    seen: list[blis.ray.Progress] = []
    found = blis.ray.study(SEQUENTIAL, ledger=ledger, progress=seen.append)
    local = tmp_path / "local.db"
    assert found == blis.study(SEQUENTIAL, ledger=local)
    assert rows(ledger) == rows(local), "no more trials than needed"
    assert seen[-1].round > 1
    search = {
        "question": "which weights?",
        "base": SEQUENTIAL["base"],
        "strategy": "slo-compound",
        "parameters": ["pa", "qd", "gate"],
        "objective": "critical.ttft_p99",
        "budget": {"calls": 12, "seeds": 2},
        "confirm": {"seeds": 2},
        "workloads": [
            {"name": "as it is"},
            {"name": "fewer", "set": {"cluster": {"instances": 1}}},
        ],
    }
    out = tmp_path / "best.yaml"
    found = blis.ray.optimize(search, ledger=ledger, out=out)
    assert found == blis.optimize(search, ledger=local, out=tmp_path / "local.yaml")
    assert rows(ledger) == rows(local)
    assert out.read_text() == (tmp_path / "local.yaml").read_text()


@pytest.mark.parametrize("kind", ["trace", "spec"])
def test_files_travel_with_their_trials(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are gone from here before any worker can have read them."""
    folder = tmp_path / "files of a study"
    folder.mkdir()
    base: dict[str, Any]
    if kind == "trace":
        line = '{"arrival_us": %d, "input_tokens": 200, "output_tokens": 20}'
        lines = [line % (20_000 * number) for number in range(40)]
        (folder / "trace.jsonl").write_text("\n".join(lines) + "\n")
        blis.calibrate(ROOT / "data" / "h200", out=folder / "profile.yaml")
        base = {"workload": {"trace": "trace.jsonl"}, "latency": {"model": "profile.yaml"}}
    else:
        (folder / "data").mkdir()
        lengths = '{"0": {"input_tokens": "{100: 1.0}", "output_tokens": "{10: 1.0}"}}'
        (folder / "data" / "chunk-0-trace.csv").write_text("0,5,1,Gamma\n")
        (folder / "data" / "chunk-0-dataset.json").write_text(lengths)
        (folder / "spec.yaml").write_text("version: 2\nservegen_data: {path: data}\n")
        base = {"workload": {"spec": "spec.yaml", "num_requests": 200}}
    study = folder / "study.yaml"
    study.write_text(
        json.dumps({
            "question": "do files travel?",
            "base": base,
            "metrics": ["ttft_p99"],
            "seeds": 4,
        })
    )
    local, ledger = tmp_path / "local.db", tmp_path / "ledger.db"
    expected = blis.study(study, ledger=local)
    pack = driver.Driver._pack

    def pack_and_remove(self: driver.Driver, document: str) -> Any:
        packed = pack(self, document)
        assert packed is not None
        shutil.rmtree(folder)
        return packed

    monkeypatch.setattr(driver.Driver, "_pack", pack_and_remove)
    assert blis.ray.study(study, ledger=ledger) == expected
    assert not folder.exists()
    assert rows(ledger) == rows(local)
    assert scenarios(ledger) == scenarios(local), "the ledger knows them where they were"


def test_mistakes_are_told_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(blis.ScenarioError, match="cluster.instances"):
        blis.ray.study(
            {**TINY, "base": {"cluster": {"instances": 0}}, "sweep": {}},
            ledger=tmp_path / "ledger.db",
        )
    with pytest.raises(ValueError, match="legal: 1 or more"):
        blis.ray.study(TINY, ledger=tmp_path / "ledger.db", batch=0)


def test_a_worker_with_other_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        CODE = "another"

        def __getattr__(self, name: str) -> Any:
            return getattr(_core, name)

    monkeypatch.setattr(driver, "_core", Other())
    with pytest.raises(RuntimeError, match="install the same wheel everywhere"):
        blis.ray.study(TINY, ledger=tmp_path / "ledger.db")
    assert rows(tmp_path / "ledger.db") == {}


def test_trials_that_others_run_are_waited_for_and_not_run(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    study = {**TINY, "sweep": {"cluster.instances": [1]}, "seeds": 6}
    other = _core.Rounds.study(json.dumps(study), "study", ledger)
    needed = other.needed()
    theirs, left = needed[:2], needed[2:]
    assert other.claim([key for key, _ in theirs]) == ["ours", "ours"]
    seen: list[blis.ray.Progress] = []

    def finish(progress: blis.ray.Progress) -> None:
        seen.append(progress)
        if progress.finished == len(left):
            other.keep([(document, _core.run_trial(document)) for _, document in theirs])

    blis.ray.study(study, ledger=ledger, batch=2, progress=finish)
    assert len(rows(ledger)) == 6
    assert seen[-1].finished == len(left) == 4
    assert runs(ledger) == (6, 6, 6)


def test_the_command_prints_a_summary_or_everything(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from blis.ray.__main__ import main

    file, ledger = tmp_path / "study.yaml", tmp_path / "ledger.db"
    file.write_text(json.dumps(SEQUENTIAL))
    assert main(["study", str(file), "--ledger", str(ledger), "--batch", "4"]) == 0
    printed = capsys.readouterr().out
    assert SEQUENTIAL["hypotheses"][0]["claim"] in printed
    assert f"blis study {file} --ledger {ledger}" in printed
    assert main(["study", str(file), "--ledger", str(ledger), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == blis.study(file, ledger=ledger)
    assert main(["study", str(tmp_path / "none.yaml")]) == 2
    assert "there is no such file" in capsys.readouterr().err
