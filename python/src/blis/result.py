"""What a run gives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from . import _core
from .errors import NoSampleError


class Numbers:
    """Numbers by name, of all requests or of those of one service class.

    Names are those of studies: `ttft_p99`, `e2e_mean`, `itl_p50`, `goodput_per_sec`,
    `slo_attainment`, `completed`; latencies are in milliseconds. A number without a sample raises
    `NoSampleError`, which is an `AttributeError`, so that `getattr(numbers, name, None)` works.
    """

    def __init__(self, core: _core.Run, prefix: str) -> None:
        self._core = core
        self._prefix = prefix

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        value = self._core.metric(self._prefix + name)
        if value is None:
            raise NoSampleError(f"the run has no sample of `{self._prefix}{name}`")
        return value


class Classes(Mapping[str, Numbers]):
    """Numbers of each service class that had requests."""

    def __init__(self, core: _core.Run, names: list[str]) -> None:
        self._numbers = {name: Numbers(core, f"{name}.") for name in names}

    def __getitem__(self, name: str) -> Numbers:
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"Classes({', '.join(self._numbers)})"


class Result(Numbers):
    """A finished run.

    `result.ttft_p99` is a number of all requests, `result.classes["critical"].ttft_p99` one of a
    class, `result.json` everything that `blis run --format json` prints.
    """

    def __init__(self, core: _core.Run) -> None:
        super().__init__(core, "")

    @cached_property
    def json(self) -> dict[str, Any]:
        """Everything, as `blis run --format json` prints it."""
        found: dict[str, Any] = json.loads(self._core.json())
        return found

    @cached_property
    def classes(self) -> Classes:
        """The numbers of each service class."""
        return Classes(self._core, list(self.json.get("classes", {})))

    @property
    def warnings(self) -> list[str]:
        """What the numbers do not show, although whoever reads them must know."""
        return self._core.warnings

    @property
    def notes(self) -> list[str]:
        """What should be known of the scenario."""
        return self._core.notes
