"""Scenarios: a file, a text, a dictionary, or settings by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from . import _core
from .errors import ScenarioError
from .policy import Policy

Setting = Union[str, int, float, bool, Sequence[Union[str, int, float]], "os.PathLike[str]", None]
"""The value of a setting: what would stand behind the flag of that name; `None` is not given."""

Source = Union["Scenario", Mapping[str, Any], str, "os.PathLike[str]", None]
"""What a scenario can be given as."""


class Scenario:
    """A scenario: a base, and settings over it.

    The base is the path of a YAML file, a YAML or JSON text, a dictionary of the same shape, or
    another scenario; without one, everything has its default. A string that has a line break or
    `: ` in it is a text, any other string a path. Settings are named like the flags of `blis run`,
    with underscores, and win over the base. `policies` are those in Python that it may name.

    >>> Scenario("scenarios/shared-prefix.yaml", num_instances=4, routing_policy="random").hash
    """

    __slots__ = ("_core",)

    def __init__(
        self,
        base: Source = None,
        *,
        policies: Sequence[Policy[Any]] = (),
        **settings: Setting,
    ) -> None:
        core = _read(base)
        if policies:
            core = core.invite([policy._core for policy in policies])
        self._core = _set(core, settings)

    def set(self, **settings: Setting) -> Scenario:
        """The same with these settings, which win."""
        made = Scenario(self)
        made._core = _set(self._core, settings)
        return made

    @property
    def hash(self) -> str:
        """The hash of what it means; equal scenarios have equal ones.

        Raises `ScenarioError` if it is not legal.
        """
        return self._core.check()

    def trial(self, seed: int | None = None) -> str:
        """The trial of it with `seed` as a JSON document: what `blis.trial` and `blis trial` run."""
        return self._core.trial(seed)


def _read(base: Source) -> _core.Scenario:
    if base is None:
        return _core.Scenario.empty()
    if isinstance(base, Scenario):
        return base._core
    if isinstance(base, Mapping):
        if not base:
            return _core.Scenario.empty()
        return _core.Scenario.from_text("scenario", document(base))
    if isinstance(base, str) and is_text(base):
        return _core.Scenario.from_text("scenario", base)
    return _core.Scenario.read(base)


def _set(core: _core.Scenario, settings: Mapping[str, Setting]) -> _core.Scenario:
    given = [(name, _text(name, value)) for name, value in settings.items() if value is not None]
    return core.set(given) if given else core


def is_text(source: str) -> bool:
    """Whether a string is YAML and not the path of a file."""
    return "\n" in source or ": " in source or source.startswith("{")


def document(tree: Mapping[str, Any]) -> str:
    """A dictionary as the text that the reader of YAML reads."""
    return json.dumps(tree, allow_nan=False, indent=1, default=_plain)


def read(source: Mapping[str, Any] | str | os.PathLike[str], name: str) -> tuple[str, str]:
    """The text of a study or search, and the path beside which its files are."""
    if isinstance(source, Mapping):
        return document(source), name
    if isinstance(source, str) and is_text(source):
        return source, name
    path = Path(source)
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except FileNotFoundError:
        message = "cannot read: there is no such file; check the name"
        raise ScenarioError(f"{path}: {message}", path=str(path), message=message) from None
    except UnicodeDecodeError as error:
        message = f"not a text file: byte {error.start} is not UTF-8"
        raise ScenarioError(f"{path}: {message}", path=str(path), message=message) from None


def _plain(value: object) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    # Numbers of numpy and its like know how to be plain.
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise TypeError(f"a scenario cannot hold {value!r}")


def _text(name: str, value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return ",".join(_text(name, item) for item in value)
    if isinstance(value, Mapping):
        raise TypeError(f"`{name}` is one value; what has fields belongs into the scenario")
    return str(value)
