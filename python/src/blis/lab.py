"""Runs, trials, studies, searches, calibrations."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from .policy import Policy
from .result import Found, Result
from .scenario import Scenario, Setting, Source, read

Path = os.PathLike[str] | str
LEDGER: str = _core.LEDGER
"""Where finished trials are kept unless another ledger is named."""


def run(
    scenario: Source = None,
    *,
    policies: Sequence[Policy[Any]] = (),
    audit: bool = False,
    requests: bool = True,
    timeline_ms: float | None = None,
    decisions: bool = False,
    **settings: Setting,
) -> Result:
    """Simulates `scenario` once; settings are named like the flags of `blis run`.

    `policies` are those in Python that the scenario may name. `requests` records one row a request,
    `timeline_ms` one an instance every so many milliseconds, `decisions` one a routing decision;
    `audit` checks every invariant on the way. The interpreter's lock is free meanwhile.

    >>> blis.run("scenarios/shared-prefix.yaml", routing_policy="round-robin").ttft_p99
    """
    made = Scenario(scenario, policies=policies, **settings)
    done = _core.run(
        made._core, audit=audit, requests=requests, timeline_ms=timeline_ms, decisions=decisions
    )
    return Result(done)


def trial(document: str | Mapping[str, Any]) -> dict[str, Any]:
    """Runs one trial, a scenario and a seed, and gives its row; a pure function of the document."""
    text = document if isinstance(document, str) else json.dumps(document, allow_nan=False)
    row: dict[str, Any] = json.loads(_core.run_trial(text))
    return row


def policies(kind: str | None = None) -> list[dict[str, Any]]:
    """All policies with their parameters, by kind."""
    kinds: list[dict[str, Any]] = json.loads(_core.policies())
    if kind is None:
        return kinds
    known = [entry["kind"] for entry in kinds]
    if kind not in known:
        raise ValueError(f"unknown kind `{kind}`; known: {', '.join(known)}")
    return [entry for entry in kinds if entry["kind"] == kind]


def study(
    source: Mapping[str, Any] | Path, *, ledger: Path | None = LEDGER, jobs: int = 0
) -> Found:
    """Runs a study, a file, a text or a dictionary; what `blis study --format json` prints.

    Finished trials are taken from `ledger` and kept there; `None` keeps none. `report()` gives the
    verdicts and tables as text, Markdown or HTML.
    """
    text, path = read(source, "study")
    return Found(_core.study_report(text, path, ledger, jobs))


def optimize(
    source: Mapping[str, Any] | Path,
    *,
    ledger: Path | None = LEDGER,
    jobs: int = 0,
    control: bool = False,
    out: Path | None = None,
) -> Found:
    """Runs a search; what `blis optimize --format json` prints.

    The recommended strategy is written to the file `out`, if there is one of both.
    """
    text, path = read(source, "search")
    report, strategy = _core.search_report(text, path, ledger, jobs, control)
    if out is not None and strategy is None:
        warnings.warn("no single strategy is recommended: `out` was not written", stacklevel=2)
    elif out is not None and strategy is not None:
        with open(out, "w", encoding="utf-8") as file:
            file.write(strategy)
    return Found(report)


def calibrate(
    steps: Path | Sequence[Path],
    *,
    requests: Sequence[Path] = (),
    grid: Sequence[Path] = (),
    padding: str | None = None,
    block_size: int = 16,
    model: str | None = None,
    hardware: str | None = None,
    tp: int | None = None,
    out: Path | None = None,
) -> Found:
    """Fits a latency profile to logs of a server; what `blis calibrate --format json` prints.

    `steps` are files, or folders of such. `grid` names files of single steps; without it, those that
    stand in the folders (`steps_grid.csv`, `steps_sizes.csv`) are taken, as by the command. The
    profile is written to the file `out`, for `latency_model=` of a scenario.
    """
    files = [steps] if isinstance(steps, (str, os.PathLike)) else list(steps)
    report, profile = _core.calibrate(
        files,
        requests=list(requests),
        grid=list(grid),
        padding=padding,
        block_size=block_size,
        model=model,
        hardware=hardware,
        tp=tp,
    )
    if out is not None:
        with open(out, "w", encoding="utf-8") as file:
            file.write(profile)
    return Found(report)
