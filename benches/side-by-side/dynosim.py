"""Requests a CPU-second of DynoSim, for prompts of 512 tokens and answers of 128.

    pip install ai-dynamo==1.6.1
    python dynosim.py WORKERS RATE REQUESTS
"""

import resource
import sys

from dynamo.replay.api import run_synthetic_trace_replay


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


workers, rate, requests = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
before = cpu_seconds()
report = run_synthetic_trace_replay(
    512, 128, requests, num_workers=workers, request_rate=rate, arrival_seed=42
)
assert report.summary["completed_requests"] == requests
print(f"{requests / (cpu_seconds() - before):.0f} requests a CPU-second")
