"""How much faster two threads are than one: the interpreter's lock is free while a run goes.

On a machine with other work, threads also wait for a core. Linux counts that, so the second ratio
leaves it out: what two threads would reach on two cores of their own.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import blis


def waited() -> float:
    """Seconds that this thread was ready and had no core, where the system tells."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def seconds(scenario: str, threads: int, runs: int) -> tuple[float, float]:
    """How long `runs` runs take on so many threads, with and without waiting for a core."""

    def part(first: int) -> float:
        began, began_waiting = time.perf_counter(), waited()
        for seed in range(first, runs, threads):
            blis.run(scenario, seed=seed)
        return time.perf_counter() - began - (waited() - began_waiting)

    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        longest = max(pool.map(part, range(threads)))
    return time.perf_counter() - started, longest


def main(scenario: str, runs: int = 16) -> None:
    """Prints both ratios, the best of five of each."""
    one = [seconds(scenario, 1, runs) for _ in range(5)]
    two = [seconds(scenario, 2, runs) for _ in range(5)]
    for what, index in [("on this machine now", 0), ("waiting for a core left out", 1)]:
        single, double = (min(times[index] for times in found) for found in (one, two))
        print(
            f"{what}: {runs} runs take {single:.3f} s on one thread and {double:.3f} s on two, "
            f"{single / double:.2f} x"
        )


if __name__ == "__main__":
    main(sys.argv[1])
