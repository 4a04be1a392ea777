"""Makes data files for `blis validate --public` from the traces of residency-vllm.

    git clone https://github.com/inference-sim/residency-vllm traces/residency-vllm
    git -C traces/residency-vllm checkout 2641b57
    python3 measure/residency_vllm.py traces/residency-vllm traces/residency
    blis validate --public traces/residency

The repository states no licence, so neither its traces nor its figures are part of this project.
"""

import csv
import sys
from pathlib import Path

HEAD = """title: "residency-vllm, {name}"
source: "github.com/inference-sim/residency-vllm @2641b57, results/{name}"
licence: none stated
hardware: 1 x H100 80 GB
engine: "vLLM 0.23.0, bf16, as `vllm serve` starts it; 128 output tokens, Poisson arrivals, at most 256 requests under way"
models: dense
seeds: 1
scenario:
  model: qwen/qwen3-14b
  hardware: H100
  tp: 1
  latency: {{model: operators}}
  engine: {{max_num_scheduled_tokens: 8192, max_num_running_reqs: 256}}
workload: {{most: 256}}
columns: [output_tokens_per_s, ttft_mean_s, itl_mean_ms, e2e_mean_s]
arms:
"""
NUMBERS = ["arrival_time_us", "send_time_us", "first_chunk_time_us", "last_chunk_time_us", "server_input_tokens",
           "output_tokens"]


def arm(trace: Path, name: str) -> str:
    """A run as an arm: its requests, and its means."""
    with trace.open(newline="", encoding="utf-8") as file:
        answered = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    rows = sorted([int(row[number]) for number in NUMBERS] for row in answered)
    requests = [[(row[0] - rows[0][0]) / 1e6, *row[4:]] for row in rows]
    times = [((first - sent) / 1e6, (last - first) / 1e3 / (answer - 1), (last - sent) / 1e6)
             for _, sent, first, last, _, answer in rows]
    means = [sum(values) / len(rows) for values in zip(*times)]
    seconds = (max(row[3] for row in rows) - min(row[1] for row in rows)) / 1e6
    rate = sum(row[5] for row in rows) / seconds
    point = ", ".join(f"{value:.5g}" for value in [rate, *means])
    return f"  - name: {name}\n    set: {{}}\n    requests: {requests}\n    points: [[~, {point}]]\n"


def main() -> None:
    checkout, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for sweep in sorted((checkout / "results").glob("*_*")):
        # Where a run was made twice, `vanilla` is stock vLLM.
        traces = sorted(sweep.glob("*/vanilla/trace.csv")) or sorted(sweep.glob("*/trace.csv"))
        arms = (arm(trace, trace.relative_to(sweep).parts[0]) for trace in traces)
        text = HEAD.format(name=sweep.name) + "".join(arms)
        (out / f"residency-{sweep.name}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
