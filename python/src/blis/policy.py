"""Policies in Python: the way to try an idea before writing its Rust file.

A policy is a function with a name. The engine asks it through the same contract as any other: it
sees what it declares in `needs` and nothing else, and its answers are checked. It is used by name
in the scenarios that it is handed to:

>>> @blis.scorer(name="emptiest", needs=["kv"])
... def emptiest(request, cluster):
...     return [1 - instance.kv_utilization for instance in cluster.instances]
>>> blis.run(scenario, policies=[emptiest], routing_policy="weighted", routing_scorers="emptiest:1")
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, Union

from . import _core

F = TypeVar("F", bound=Callable[..., Any])

Param = Union[
    tuple[float, float, float],
    tuple[int, int, int],
    bool,
    Sequence[str],
]
"""A parameter: `(min, max, default)`, a flag, or a list of words that begins with the default."""


class Policy(Generic[F]):
    """A function that the engine can ask; still a function for everybody else."""

    def __init__(self, core: _core.Policy, function: F) -> None:
        self._core = core
        self._function = function
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """How scenarios spell it."""
        return self._core.name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._function(*args, **keywords)

    def __repr__(self) -> str:
        return f"<blis policy `{self.name}`>"


def _declare(
    kind: str,
    name: str | None,
    needs: Sequence[str],
    params: Mapping[str, Param] | None,
    varies: bool = False,
) -> Callable[[F], Policy[F]]:
    def declare(function: F) -> Policy[F]:
        called = function.__name__.replace("_", "-") if name is None else name
        core = _core.Policy(
            kind, called, list(needs), dict(params or {}), _identity(function), varies, function
        )
        return Policy(core, function)

    return declare


def _identity(function: Callable[..., Any]) -> str:
    """A hash of the function's own source, so that a scenario's hash changes with it."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = repr((code.co_code, code.co_consts)) if code is not None else repr(function)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def scorer(
    *,
    name: str | None = None,
    needs: Sequence[str] = (),
    params: Mapping[str, Param] | None = None,
) -> Callable[[F], Policy[F]]:
    """Declares a scorer: `f(request, cluster, **params)` gives each instance a score in 0..1.

    `needs` may have `load`, `classes`, `kv`, `hit_rate`, `transfers` and `events`.
    """
    return _declare("scorer", name, needs, params)


def admission(
    *,
    name: str | None = None,
    needs: Sequence[str] = (),
    params: Mapping[str, Param] | None = None,
) -> Callable[[F], Policy[F]]:
    """Declares an admission policy: `f(request, cluster, **params)` gives True to let it in.

    False or a word turns it away; the word is the reason that is counted. `needs` is as for scorers.
    """
    return _declare("admission", name, needs, params)


def order(
    *,
    name: str | None = None,
    needs: Sequence[str] = (),
    params: Mapping[str, Param] | None = None,
    varies: bool = False,
) -> Callable[[F], Policy[F]]:
    """Declares an order of waiting requests: `f(waiting, **params)` gives a rank, lowest first.

    It is asked once, when a request joins the queue; with `varies`, at every step. `needs` may have
    `cached` and `priority`.
    """
    return _declare("order", name, needs, params, varies)
