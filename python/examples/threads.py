"""How much faster two threads are than one: the interpreter's lock is free while a run goes."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import blis


def seconds(scenario: str, threads: int, runs: int) -> float:
    """How long `runs` runs take on so many threads."""
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda seed: blis.run(scenario, seed=seed), range(runs)))
    return time.perf_counter() - started


def main(scenario: str, runs: int = 16) -> None:
    """Prints the ratio, the best of five of each."""
    seconds(scenario, 2, 2)
    one = min(seconds(scenario, 1, runs) for _ in range(5))
    two = min(seconds(scenario, 2, runs) for _ in range(5))
    print(f"{runs} runs: {one:.3f} s on one thread, {two:.3f} s on two: {one / two:.2f} x")


if __name__ == "__main__":
    main(sys.argv[1])
