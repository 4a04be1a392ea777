"""What runs on the workers of a Ray cluster."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import _core

__all__ = ["Luggage", "run_batch"]

Luggage = tuple[str, list[str], Any]
"""Files on their way: a name for all of them, the paths that trials name, and Ray's reference."""


@dataclass
class _Bench:
    """What a worker process keeps between batches."""

    worker: _core.Worker = field(default_factory=_core.Worker)
    folders: dict[str, tempfile.TemporaryDirectory[str]] = field(default_factory=dict)

    def place(self, name: str, files: Mapping[str, bytes]) -> None:
        """Writes files below a folder of this process, at the paths that they had."""
        folder = tempfile.TemporaryDirectory(prefix="blis-")
        for path, content in files.items():
            target = under(folder.name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        self.folders[name] = folder


_bench: _Bench | None = None


def under(folder: str, path: str) -> Path:
    """Where the file at the absolute `path` is below `folder`."""
    return Path(folder) / os.path.normpath(path).lstrip("/")


def run_batch(
    code: str, documents: Sequence[str], luggage: Luggage | None
) -> tuple[list[str], float]:
    """Runs trials one after the other; their rows, and how many seconds that took."""
    global _bench
    if code != _core.CODE:
        raise RuntimeError(
            f"the blis on this worker ({_core.__version__}, code {_core.CODE}) is not that of the "
            f"machine that asks (code {code}); install the same wheel everywhere"
        )
    if _bench is None:
        _bench = _Bench()
    bench = _bench
    started = time.perf_counter()
    if luggage is not None:
        name, paths, content = luggage
        if name not in bench.folders:
            bench.place(name, import_module("ray").get(content))
        folder = bench.folders[name].name
        documents = [_moved(document, paths, folder) for document in documents]
    rows = [bench.worker.run(document) for document in documents]
    return rows, time.perf_counter() - started


def _moved(document: str, paths: Sequence[str], folder: str) -> str:
    """The trial whose files are below `folder`.

    Its hash covers what is in the files and not where they are, and is checked when it is read.
    """
    for path in paths:
        old, new = (json.dumps(p, ensure_ascii=False) for p in (path, str(under(folder, path))))
        document = document.replace(old, new)
    return document
