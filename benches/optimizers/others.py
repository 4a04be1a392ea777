"""Runs Optuna and scikit-optimize on the standard problems of `optimizers serve`.

python others.py PROGRAM METHOD PROBLEM CALLS FIRST_SEED SEEDS >> measurements.csv

PROGRAM is the built `optimizers`; METHOD is optuna-gp, optuna-tpe or skopt-gp. Every method has its
own defaults, except that ten points are spread before it learns. docs/validation/optimizers.md says
what to install.
"""

import subprocess
import sys
import warnings

INITIAL = 10

# Spaces as `standard.rs` has them: (kind, ...) a dimension.
UNIT6 = [("float", 0.0, 1.0)] * 6
SERVING = [
    ("float", 0.0, 1.0),
    ("log", 1e-3, 10.0),
    ("int", 1, 64),
    ("int", 1, 8),
    ("choice", list("abcd")),
    ("choice", list("xyz")),
]
SPACES = {
    "branin": [("float", -5.0, 10.0), ("float", 0.0, 15.0)],
    "hartmann6": UNIT6,
    "hart6n": UNIT6,
    "ackley5m": [("float", -5.0, 10.0)] * 3 + [("int", 0, 15), ("choice", list("abcde"))],
    "serving6n": SERVING,
    "gardner": [("float", 0.0, 6.0)] * 2,
    "townsend": [("float", -2.25, 2.5), ("float", -2.5, 1.75)],
    "g4": [("float", 78.0, 102.0), ("float", 33.0, 45.0)] + [("float", 27.0, 45.0)] * 3,
    "zdt1": UNIT6,
    "serving2": SERVING,
}
OBJECTIVES = {"zdt1": 2, "serving2": 2}


class Server:
    """The problem itself, measured by the Rust program so that it is written once."""

    def __init__(self, program, problem, seed):
        self.process = subprocess.Popen(
            [program, "serve", problem, str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, values):
        words = [v if isinstance(v, str) else repr(float(v)) for v in values]
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        point, measured, truth = self.process.stdout.readline().strip().split(",")
        return point, measured, truth

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_optuna(method, problem, calls, seed, measure):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    objectives = OBJECTIVES.get(problem, 1)

    def constraints(trial):
        return trial.user_attrs["constraints"]

    constrained = problem in ("gardner", "townsend", "g4")
    options = {"constraints_func": constraints} if constrained else {}
    if method == "optuna-gp":
        sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=INITIAL, **options)
    else:
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=INITIAL, **options)
    study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)

    def objective(trial):
        values = []
        for j, (kind, *rest) in enumerate(SPACES[problem]):
            name = f"x{j}"
            if kind == "choice":
                values.append(trial.suggest_categorical(name, rest[0]))
            elif kind == "int":
                values.append(trial.suggest_int(name, *rest))
            else:
                values.append(trial.suggest_float(name, *rest, log=kind == "log"))
        measured = measure(values)
        trial.set_user_attr("constraints", measured[objectives:])
        return tuple(measured[:objectives])

    study.optimize(objective, n_trials=calls)


def run_skopt(problem, calls, seed, measure):
    from skopt import Optimizer
    from skopt.space import Categorical, Integer, Real

    kinds = {
        "float": lambda low, high: Real(low, high),
        "log": lambda low, high: Real(low, high, prior="log-uniform"),
        "int": lambda low, high: Integer(low, high),
        "choice": lambda options: Categorical(options),
    }
    space = [kinds[kind](*rest) for kind, *rest in SPACES[problem]]
    optimizer = Optimizer(space, "GP", n_initial_points=INITIAL, random_state=seed)
    for _ in range(calls):
        values = optimizer.ask()
        optimizer.tell(values, measure(values)[0])


def main():
    program, method, problem, calls, first, seeds = sys.argv[1:]
    warnings.filterwarnings("ignore")
    for seed in range(int(first), int(first) + int(seeds)):
        server = Server(program, problem, seed)
        call = 0

        def measure(values):
            nonlocal call
            point, measured, truth = server.measure(values)
            print(f"{method},{problem},{seed},{call},{point},{measured},{truth}", flush=True)
            call += 1
            return [float(word) for word in measured.split()]

        if method == "skopt-gp":
            run_skopt(problem, int(calls), seed, measure)
        else:
            run_optuna(method, problem, int(calls), seed, measure)
        server.close()


main()
