"""BLIS: a deterministic simulator of LLM inference clusters, and the lab around it.

>>> import blis
>>> result = blis.run("scenarios/shared-prefix.yaml", rate=500)
>>> result.ttft_p99, result.classes["critical"].ttft_p99
"""

from ._core import Cluster, Instance, Request, Table, Waiting, __version__
from .errors import (
    BlisError,
    InputOutputError,
    InternalError,
    LedgerError,
    NoSampleError,
    PolicyError,
    Problem,
    ScenarioError,
    SignalError,
)
from .lab import LEDGER, calibrate, optimize, policies, run, study, trial
from .policy import Policy, admission, order, scorer
from .result import Classes, Found, Numbers, PolicyCost, Result
from .scenario import Scenario

__all__ = [
    "LEDGER",
    "BlisError",
    "Classes",
    "Cluster",
    "Found",
    "InputOutputError",
    "Instance",
    "InternalError",
    "LedgerError",
    "NoSampleError",
    "Numbers",
    "Policy",
    "PolicyCost",
    "PolicyError",
    "Problem",
    "Request",
    "Result",
    "Scenario",
    "ScenarioError",
    "SignalError",
    "Table",
    "Waiting",
    "__version__",
    "admission",
    "calibrate",
    "optimize",
    "order",
    "policies",
    "run",
    "scorer",
    "study",
    "trial",
]
