"""What docs/validation/optimize-strategies.md says about searches, measured with the program itself.

    python3 measure/optimize_strategies.py kills|compound|layers [path of blis [seeds]]

Standard library only. Search files are copied to a temporary folder with small changes.
"""

import json
import random
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLIS = str(Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "target/release/blis").resolve())


def search(folder, name, **changes):
    """A copy of a search file whose budget has `changes`."""
    text = (ROOT / "studies" / f"{name}.yaml").read_text()
    for key, value in changes.items():
        if key == "requests":
            text = re.sub(r"(workload: \{preset: [a-z0-9-]+, rate: \d+%)[^}]*\}",
                          rf"\1, num_requests: {value}}}", text)
        elif key == "confirm":
            text = re.sub(r"confirm: \{seeds: \d+\}", f"confirm: {{seeds: {value}}}", text)
        else:
            text = re.sub(rf"(budget: \{{.*?)(, {key}: \w+)?\}}", rf"\1, {key}: {value}}}", text)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def run(folder, *args):
    """The JSON of a search, and the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([BLIS, "optimize", *map(str, args), "--quiet", "--format", "json"],
                          cwd=folder, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), seconds


def kills(folder, wanted=25):
    """kill -9 at random moments, again and again, until a search has ended by itself."""
    file = search(folder, "optimize-slo-compound", requests=500, confirm=3)
    command = [BLIS, "optimize", file, "--quiet", "--format", "json", "--jobs", "1", "--ledger"]

    def sequence(ledger):
        with sqlite3.connect(folder / ledger) as database:
            return [key for (key,) in database.execute("SELECT key FROM trials ORDER BY id")]

    began = time.monotonic()
    whole = subprocess.run([*command, "whole.db"], cwd=folder, capture_output=True, check=True).stdout
    length = time.monotonic() - began
    dice, killed, rounds, same = random.Random(1), 0, 0, 0
    while killed < wanted:
        rounds += 1
        while True:
            child = subprocess.Popen([*command, f"{rounds}.db"], cwd=folder, stdout=subprocess.PIPE)
            try:
                out, _ = child.communicate(timeout=dice.uniform(0, length / 2))
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                killed += 1
                if killed >= wanted:
                    out = subprocess.run([*command, f"{rounds}.db"], cwd=folder, capture_output=True,
                                         check=True).stdout
                else:
                    continue
            break
        same += out == whole and sequence(f"{rounds}.db") == sequence("whole.db")
    print(f"{killed} kills in {rounds} searches; {same} of them with the same trials in the same "
          f"order and the same answer as one that was left alone")


def change(found):
    """The change of the objective on fresh seeds, with its interval, in percent."""
    ratio = next(value for key, value in found.items() if key != "constraints")["ratio"]
    return tuple(round(100 * (ratio[key] - 1), 1) for key in ("mean", "low", "high"))


def compound(folder):
    """Three optimiser seeds, with all seeds of all points and with racing."""
    for racing in ("true", "false"):
        for seed in range(3):
            file = search(folder, "optimize-slo-compound", seed=seed, racing=racing)
            found, seconds = run(folder, file, "--no-ledger", "--jobs", "2")
            best = found["recommended"][0]
            trials = sum(call["seeds"] for call in found["calls"])
            holds = [one["holds"] for one in best["fresh"]["constraints"]]
            print(f"racing {racing}, optimiser seed {seed}: {trials} runs of the search, {seconds:.1f} "
                  f"CPU-s in all; change {change(best['fresh'])} %, constraints hold {holds}, "
                  f"{best['search']['parameters']}", flush=True)


def layers(folder):
    """Fronts beside those of chance, and what of them holds on fresh seeds; optimiser seeds may be
    named, e.g. `0-9`."""
    first, last = map(int, (sys.argv[3] if len(sys.argv) > 3 else "0-9").split("-"))
    wins, better, repetitions = 0, 0, last + 1 - first
    for seed in range(first, last + 1):
        file = search(folder, "optimize-all-layers", seed=seed, confirm=4)
        found, seconds = run(folder, file, "--no-ledger", "--control", "--jobs", "2")
        own, chance = found["front"]["hypervolume"], found["control"]["front"]["hypervolume"]
        gains = [sum(is_gain(name, one["fresh"][name]) for name in OBJECTIVES)
                 for one in found["recommended"]]
        wins += own > chance
        better += max(gains) >= 2
        print(f"optimiser seed {seed}: hypervolume {own:.3f}, at random {chance:.3f}, by hand "
              f"{found['front']['hypervolume_of_hand_set']:.3f}; front of {len(gains)}, "
              f"{sum(gain >= 2 for gain in gains)} of them surely better in two or more objectives, "
              f"{sum(gain >= 3 for gain in gains)} in all three; {seconds:.0f} CPU-s", flush=True)
    print(f"above chance in {wins} of {repetitions}; better in two objectives in {better}")


OBJECTIVES = {"critical.ttft_p99": -1, "itl_p99": -1, "goodput_per_sec": 1}


def is_gain(name, fresh):
    """Whether a fresh value is surely better than the hand-set point's."""
    ratio = fresh.get("ratio")
    if ratio is None:
        return False
    return ratio["high"] < 1 if OBJECTIVES[name] < 0 else ratio["low"] > 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        {"kills": kills, "compound": compound, "layers": layers}[sys.argv[1]](Path(name))
