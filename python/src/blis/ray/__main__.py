"""`python -m blis.ray`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BlisError, InternalError, ScenarioError
from ..lab import LEDGER
from . import Progress, optimize, study

LOG_SECONDS = 30.0
"""How often a log is told how far it is."""


class _Bar:
    """Shows progress: on one line to somebody who looks, now and then in a log."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty()
        self.started = time.monotonic()
        self.told = self.started
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self.last = progress
        now = time.monotonic()
        if not self.on and now < self.told + LOG_SECONDS:
            return
        self.told = now
        rate = progress.finished / max(now - self.started, 1e-9)
        lost = f", {progress.lost} batches sent anew" if progress.lost else ""
        text = (
            f"round {progress.round}: {progress.finished} of {progress.expected} trials, "
            f"{rate:.0f}/s{lost}"
        )
        line = f"\r\033[K{text}" if self.on else f"{text}\n"
        print(line, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    what_it_is = "Studies and searches whose trials run on a Ray cluster."
    parser = argparse.ArgumentParser(prog="python -m blis.ray", description=what_it_is)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in [("study", "a study"), ("optimize", "a search")]:
        command = commands.add_parser(name, help=f"run {what}")
        command.add_argument("file", help=f"{what}, as for `blis {name}`")
        command.add_argument(
            "--address", help="of the cluster, or `auto`; default: start a Ray on this machine"
        )
        command.add_argument("--ledger", default=LEDGER, help=f"default: {LEDGER}")
        command.add_argument(
            "--batch", type=int, metavar="N", help="trials in a task; default: a second's worth"
        )
        command.add_argument("--json", action="store_true", help="print everything as JSON")
        if name == "optimize":
            command.add_argument("--control", action="store_true", help="search at random as well")
            command.add_argument("--out", help="write the recommended strategy to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status is that of `blis`."""
    args = _arguments(arguments)
    bar = _Bar()
    options: dict[str, Any] = {
        "address": args.address,
        "ledger": args.ledger,
        "batch": args.batch,
        "progress": bar,
    }
    try:
        if args.command == "study":
            found = study(args.file, **options)
        else:
            found = optimize(args.file, control=args.control, out=args.out, **options)
    except KeyboardInterrupt:
        bar.end()
        kept = bar.last.finished if bar.last is not None else 0
        print(
            f"interrupted: {kept} trials came back and are kept in {args.ledger}; the same command "
            "goes on from there",
            file=sys.stderr,
        )
        return 130
    except (BlisError, ImportError, ValueError, ConnectionError, RuntimeError) as error:
        bar.end()
        print(f"error: {error}", file=sys.stderr)
        if isinstance(error, InternalError):
            return 4
        return 2 if isinstance(error, (ScenarioError, ValueError)) else 3
    bar.end()
    if args.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        print(_summary(args.command, found, args, bar.last))
    return 0


def _summary(
    command: str, found: Mapping[str, Any], args: argparse.Namespace, last: Progress | None
) -> str:
    ran = last.finished if last is not None else 0
    lines = [found["question"], f"{ran} trials ran; all rows are in {args.ledger}"]
    for verdict in found.get("hypotheses", []):
        lines.append(f"{verdict['verdict']}: {verdict['claim']}")
    for best in found.get("recommended", []):
        lines.append(f"recommended: {json.dumps(best['search']['parameters'], ensure_ascii=False)}")
    again = f"blis {command} {args.file} --ledger {args.ledger}"
    lines.append(f"tables and charts, without a run: {again}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
