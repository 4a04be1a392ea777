"""What all tests share: the repository, and the command to compare with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SHARED_PREFIX = ROOT / "scenarios" / "shared-prefix.yaml"

Command = Callable[..., str]


@pytest.fixture(scope="session")
def program() -> str:
    """The path of `blis`. `BLIS_COMMAND` may name a fresh one."""
    found = os.environ.get("BLIS_COMMAND")
    if found is not None:
        return found
    subprocess.run(["cargo", "build", "--quiet", "--workspace", "--bins"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "debug" / "blis")


@pytest.fixture(scope="session")
def command(program: str) -> Command:
    """Runs `blis` with these arguments; what it prints."""

    def run(*arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [program, *arguments],
            cwd=ROOT,
            # Whatever the width of the terminal that the tests run in.
            env={**os.environ, "COLUMNS": "100"},
            input=stdin,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout

    return run


def without_clock(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what depends on the machine."""
    copy: dict[str, Any] = json.loads(json.dumps(result))
    copy["run"].pop("wall_seconds", None)
    copy["run"].pop("cpu_seconds", None)
    return copy
