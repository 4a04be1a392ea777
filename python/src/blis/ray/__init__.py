"""Studies and searches whose trials run on a Ray cluster; `pip install "blis[ray]"`.

>>> import blis.ray
>>> blis.ray.study("studies/plan-memory.yaml", address="auto")

or `python -m blis.ray study FILE --address auto`. Trials are sent away in batches, and their rows
come back into the ledger of the machine that asks, under the keys that `blis study` uses: a study
can be begun here and ended there. A batch whose worker dies is sent again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import _core
from ..lab import LEDGER
from ..result import Found
from ..scenario import read
from .driver import Driver, Progress

__all__ = ["Progress", "optimize", "study"]

Source = Mapping[str, Any] | os.PathLike[str] | str


def study(
    source: Source,
    *,
    address: str | None = None,
    ledger: os.PathLike[str] | str = LEDGER,
    batch: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Found:
    """Runs a study on Ray; what `blis study --format json` prints.

    `address` is that of a cluster, or `"auto"`; without one, a local Ray is started, unless this
    process is connected already. `batch` is how many trials a task runs; by default as many as take
    about a second. Stopped by Ctrl-C or otherwise, it goes on from its ledger when called again.
    """
    text, path = read(source, "study")
    return _run(_core.Rounds.study(text, path, ledger), address, batch, progress)[0]


def optimize(
    source: Source,
    *,
    address: str | None = None,
    ledger: os.PathLike[str] | str = LEDGER,
    batch: int | None = None,
    control: bool = False,
    out: os.PathLike[str] | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Found:
    """Runs a search on Ray; what `blis optimize --format json` prints.

    What is measured next depends on what was measured, so no more runs at a time than one round has:
    ask for a larger `budget.batch`, or an engine such as `sobol` or `nsga2`, to use many machines.
    """
    text, path = read(source, "search")
    found, strategy = _run(
        _core.Rounds.search(text, path, ledger, control), address, batch, progress
    )
    if out is not None and strategy is not None:
        Path(out).write_text(strategy, encoding="utf-8")
    return found


def _run(
    rounds: _core.Rounds,
    address: str | None,
    batch: int | None,
    progress: Callable[[Progress], None] | None,
) -> tuple[Found, str | None]:
    if batch is not None and batch < 1:
        raise ValueError(f"batch is {batch}; legal: 1 or more")
    # Not at the top: `import blis.ray` must tell what is missing in words, and Ray takes seconds.
    engine = _engine()
    ours = not engine.is_initialized()
    if ours:
        engine.init(address=address, log_to_driver=False)
    try:
        driver = Driver(engine, rounds, batch, progress)
        driver.go()
    finally:
        if ours:
            engine.shutdown()
    report, strategy = rounds.report()
    return Found(report), strategy


def _engine() -> Any:
    try:
        # By name: this module is called `ray` too.
        return import_module("ray")
    except ImportError as error:
        message = 'Ray is not installed; install it with `pip install "blis[ray]"`'
        raise ImportError(message) from error
