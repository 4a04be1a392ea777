"""What a run gives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from . import _core
from .errors import NoSampleError


Format = Literal["table", "markdown", "html", "json"]


class Found(dict[str, Any]):
    """What a command found: what its `--format json` prints, and the report it prints."""

    def __init__(self, document: _core.Document) -> None:
        super().__init__(json.loads(document.text("json", 0)))
        self._document = document

    def report(self, format: Format = "table", *, width: int = 100) -> str:
        """The report: `table` (for `width` columns), `markdown`, `html` or `json`."""
        return self._document.text(format, width)

    def _repr_markdown_(self) -> str:
        return self.report("markdown")

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


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


@dataclass(frozen=True)
class PolicyCost:
    """What the calls of a policy in Python cost in a run."""

    calls: int
    seconds: float

    @property
    def us_per_call(self) -> float:
        """Microseconds of a call, the making of its arguments included."""
        return 1e6 * self.seconds / self.calls if self.calls else 0.0


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
        return Found(self._core.document())

    def report(self, format: Format = "table", *, width: int = 100) -> str:
        """What `blis run` prints: `table` (for `width` columns), `markdown`, `html` or `json`."""
        return self._core.document().text(format, width)

    @cached_property
    def classes(self) -> Classes:
        """The numbers of each service class."""
        return Classes(self._core, list(self.json.get("classes", {})))

    def requests(self) -> _core.Table:
        """One row a request, with the columns of `blis run --requests-out`, for Arrow's readers."""
        return _recorded(self._core.requests(), "requests", "requests=True")

    def timeline(self) -> _core.Table:
        """One row an instance and sample, with the columns of `blis run --timeline`."""
        return _recorded(self._core.timeline(), "samples", "timeline_ms=100")

    def decisions(self) -> _core.Table:
        """One row a routing decision: request, time, instance, what made the difference, score."""
        return _recorded(self._core.decisions(), "decisions", "decisions=True")

    @cached_property
    def python_policy_cost(self) -> dict[str, PolicyCost]:
        """What each policy in Python cost, by name."""
        costs = self._core.policy_costs
        return {name: PolicyCost(calls, seconds) for name, calls, seconds in costs}

    @property
    def warnings(self) -> list[str]:
        """What the numbers do not show, although whoever reads them must know."""
        return self._core.warnings

    @property
    def notes(self) -> list[str]:
        """What should be known of the scenario."""
        return self._core.notes

    def _facts(self) -> list[tuple[str, str]]:
        """What a line or a table about it says."""
        cluster, run = self.json["cluster"], self.json["run"]
        facts = [("completed", f"{cluster['completed_requests']:,}")]
        for label, name, unit in [
            ("TTFT p99", "ttft_p99", " ms"),
            ("ITL mean", "itl_mean", " ms"),
            ("E2E p99", "e2e_p99", " ms"),
            ("tokens/s", "tokens_per_sec", ""),
            ("goodput", "goodput_per_sec", " requests/s"),
        ]:
            value = getattr(self, name, None)
            if value is not None:
                facts.append((label, f"{value:,.1f}{unit}"))
        facts.append(("cluster", str(cluster.get("saturation", "-"))))
        facts.append(("simulated", f"{run['simulated_seconds']:,.1f} s"))
        facts.append(("took", f"{run['wall_seconds']:.3f} s"))
        for name, cost in self.python_policy_cost.items():
            facts.append((f"Python policy {name}", _cost(cost)))
        return facts

    def __repr__(self) -> str:
        return f"Result({', '.join(f'{label} {value}' for label, value in self._facts())})"

    def _repr_markdown_(self) -> str:
        costs = self.python_policy_cost.items()
        told = [f"\n- Python policy {name}: {_cost(cost)}" for name, cost in costs]
        return self.report("markdown") + "".join(told)


def _cost(cost: PolicyCost) -> str:
    return f"{cost.calls:,} calls, {cost.us_per_call:.1f} us each, {cost.seconds:.3f} s"


def _recorded(table: _core.Table | None, what: str, how: str) -> _core.Table:
    if table is None:
        raise ValueError(f"{what} were not recorded; call `blis.run(..., {how})`")
    return table
