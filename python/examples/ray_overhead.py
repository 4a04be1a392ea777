"""What Ray costs for each trial: the same trials here, one after the other, and through Ray.

Both use one worker, so that the difference is what serialising, scheduling, sending and keeping
cost, and not what is gained by more cores.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ray

import blis.ray
from blis import _core


def study(trials: int) -> dict[str, Any]:
    """A study of so many tiny trials."""
    return {
        "question": "what does Ray cost?",
        "base": {"workload": {"distribution": {"rate": 20, "num_requests": 20}}},
        "metrics": ["ttft_p99"],
        "seeds": trials,
    }


def local(text: str, ledger: Path) -> float:
    """The seconds that the trials take in one thread, with a ledger."""
    started = time.perf_counter()
    _core.study_report(text, "study", ledger, 1)
    return time.perf_counter() - started


def remote(document: dict[str, Any], ledger: Path, batch: int | None) -> float:
    """The seconds that they take through Ray, which is warm."""
    started = time.perf_counter()
    blis.ray.study(document, ledger=ledger, batch=batch)
    return time.perf_counter() - started


def main() -> None:
    """Prints a line for each size of batch, the best of some repetitions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--batches", default="1,10,50,auto")
    args = parser.parse_args()
    document = study(args.trials)
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:

        def best(name: str, once: Callable[[Path], float]) -> float:
            return min(once(Path(folder) / f"{name}-{k}.db") for k in range(args.repeat))

        remote(study(10), Path(folder) / "warm.db", 1)
        here = best("local", lambda ledger: local(json.dumps(document), ledger))
        print(f"{args.trials} trials in one thread: {1e3 * here / args.trials:.2f} ms a trial")
        for word in args.batches.split(","):
            size = None if word == "auto" else int(word)
            there = best(word, partial(remote, document, batch=size))
            more = 1e3 * (there - here) / args.trials
            print(
                f"through Ray, batches of {word}: {1e3 * there / args.trials:.2f} ms a trial, "
                f"{more:+.2f} ms for Ray"
            )


if __name__ == "__main__":
    main()
