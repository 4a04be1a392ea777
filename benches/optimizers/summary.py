"""Summarises what `optimizers judge` printed: a Markdown table, and a plot if a file is named.

python summary.py judged.csv [plot.svg]

For each method and problem: the median of the true regret over seeds with an interval of 95 % (by
resampling seeds), after 30 and 50 calls. A method's own recommendation is judged: the expectation
of the model for `blis`, the best measured value for the others.
"""

import csv
import random
import statistics
import sys
from collections import defaultdict

PROBLEMS = ["branin", "hartmann6", "ackley5m", "serving6n", "hart6n", "gardner", "townsend", "g4"]
VOLUMES = ["zdt1", "serving2"]
METHODS = ["blis", "optuna-gp", "skopt-gp", "egobox", "egobox-matern", "random"]


def interval(values):
    """The median and its 95 % interval, by resampling."""
    dice = random.Random(1)
    medians = sorted(
        statistics.median(dice.choices(values, k=len(values))) for _ in range(2000)
    )
    return statistics.median(values), medians[49], medians[1949]


def number(x):
    return f"{x:.2f}" if x >= 1 else f"{x:.3f}" if x >= 0.01 else f"{x:.5f}"


def main():
    groups = defaultdict(list)
    for row in csv.DictReader(open(sys.argv[1])):
        own = "model" if row["method"] == "blis" else "measured"
        key = (row["problem"], row["method"], int(row["calls"]))
        regret, feasible = float(row[f"regret_{own}"]), row[f"feasible_{own}"] == "1"
        groups[key].append((regret, feasible))
    print("| problem | method | seeds | after 30 calls | after 50 calls | feasible |")
    print("|---|---|---|---|---|---|")
    for problem in PROBLEMS + VOLUMES:
        for method in METHODS:
            if (problem, method, 50) not in groups:
                continue
            cells = []
            for calls in (30, 50):
                rows = groups[problem, method, calls]
                # What is not feasible is worse than anything that is.
                values = [regret if ok else 1e9 for regret, ok in rows]
                middle, low, high = interval(values)
                cells.append(f"{number(middle)} [{number(low)}, {number(high)}]")
            feasible = sum(ok for _, ok in rows)
            print(
                f"| {problem} | {method} | {len(rows)} | {cells[0]} | {cells[1]} "
                f"| {feasible} of {len(rows)} |"
            )
    if len(sys.argv) > 2:
        plot(groups, sys.argv[2])


def plot(groups, path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "optimizers", "svg.fonttype": "none"})
    figure, panels = plt.subplots(2, 4, figsize=(12, 5.6))
    colours = dict(zip(METHODS, plt.get_cmap("tab10").colors))
    there = [method for method in METHODS if any(method == key[1] for key in groups)]
    for panel, problem in zip(panels.flat, PROBLEMS):
        for place, method in enumerate(there):
            for calls, shape, shift in ((30, "o", -0.13), (50, "s", 0.13)):
                rows = groups.get((problem, method, calls))
                if not rows:
                    continue
                middle, low, high = interval([max(regret, 1e-6) for regret, _ in rows])
                x, colour = place + shift, colours[method]
                fill = "white" if calls == 30 else colour
                panel.plot([x, x], [low, high], color=colour, linewidth=1.5)
                panel.plot([x], [middle], shape, color=colour, markerfacecolor=fill, markersize=6)
        panel.set_title(problem, fontsize=10)
        panel.set_yscale("log")
        panel.set_xticks(range(len(there)))
        panel.set_xticklabels(there, rotation=50, ha="right", fontsize=8)
        panel.grid(axis="y", alpha=0.3)
    for panel in panels[:, 0]:
        panel.set_ylabel("true regret")
    figure.suptitle(
        "Median true regret and its 95 % interval: circles after 30 calls, squares after 50",
        fontsize=10,
    )
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


main()
