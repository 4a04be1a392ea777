"""What can go wrong, as exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "BlisError",
    "InputOutputError",
    "InternalError",
    "LedgerError",
    "NoSampleError",
    "PolicyError",
    "Problem",
    "ScenarioError",
    "SignalError",
]


class BlisError(Exception):
    """Anything that BLIS raises by itself."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a scenario, study or search."""

    text: str
    """What the command line prints."""
    path: str
    """The field at fault, e.g. `cluster.instances`; empty if it is not about one field."""
    message: str
    """What is wrong, and what is legal."""
    file: str | None = None
    """Where it stands, if that is a file or a text."""
    line: int | None = None
    """Its line, from 1."""
    column: int | None = None
    """Its column, from 1."""


class ScenarioError(BlisError, ValueError):
    """A scenario, study or search is not legal; nothing was run.

    The text is the one that the command line prints. Path, message and place are those of the
    first problem.
    """

    problems: tuple[Problem, ...]
    """All that is wrong, in the order of the file."""
    path: str
    """The field at fault, e.g. `cluster.instances`; empty if it is not about one field."""
    message: str
    """What is wrong, and what is legal."""
    file: str | None
    """Where it stands, if that is a file or a text."""
    line: int | None
    """Its line, from 1."""
    column: int | None
    """Its column, from 1."""

    def __init__(
        self,
        text: str,
        *,
        path: str = "",
        message: str = "",
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(text)
        self.problems = tuple(problems) or (Problem(text, path, message),)
        first = self.problems[0]
        self.path = first.path
        self.message = first.message
        self.file = first.file
        self.line = first.line
        self.column = first.column


class PolicyError(BlisError, ValueError):
    """A policy in Python broke its contract: a score out of 0..1, a rank that is not finite."""


class SignalError(BlisError, AttributeError):
    """A policy in Python read a signal that it has not declared in `needs`."""


class NoSampleError(BlisError, AttributeError):
    """The run has no sample of this number, e.g. no request of the class finished."""


class LedgerError(BlisError, OSError):
    """The ledger cannot be read or written."""


class InputOutputError(BlisError, OSError):
    """A file is there and cannot be read, or the system gave no threads."""


class InternalError(BlisError, RuntimeError):
    """An invariant of the simulator is broken: a mistake in BLIS, worth a report."""
