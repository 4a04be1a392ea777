"""How many tokens of KV cache vLLM finds room for, model by model.

    python3 measure/kv_capacity.py MODEL [MODEL ...] [--engine JSON]

MODEL is a folder with a config.json; weights are made up. Every model starts an engine of its own,
in a process of its own, and prints what vLLM keeps beside weights and KV cache.
"""

import argparse
import json
import re
import subprocess
import sys

START = """
import json, sys
from vllm import LLM
LLM(**json.loads(sys.argv[1]))
"""

SHOWN = {
    "tokens": r"GPU KV cache size: ([\d,]+) tokens",
    "weights_gib": r"Model loading took ([\d.]+) GiB",
    "activations_gib": r"([\d.]+) GiB for peak activation",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--engine", type=json.loads, default={}, help="arguments of vLLM's engine")
    args = parser.parse_args()
    print(",".join(["model", *SHOWN]))
    for model in args.models:
        usual = {"model": model, "load_format": "dummy", "skip_tokenizer_init": True, "max_model_len": 8192}
        command = [sys.executable, "-c", START, json.dumps({**usual, **args.engine})]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        found = [re.search(pattern, done.stdout) for pattern in SHOWN.values()]
        if done.returncode != 0 or found[0] is None:
            sys.exit(f"{model}: vLLM did not start\n{done.stdout[-2000:]}")
        print(",".join([model, *(match[1].replace(",", "") if match else "" for match in found)]), flush=True)


if __name__ == "__main__":
    main()
