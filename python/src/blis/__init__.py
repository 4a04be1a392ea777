"""BLIS: a deterministic simulator of LLM inference clusters, and the lab around it.

>>> import blis
>>> result = blis.run("scenarios/shared-prefix.yaml", rate=500)
>>> result.ttft_p99, result.classes["critical"].ttft_p99
"""

from ._core import __version__
from .errors import (
    BlisError,
    InputOutputError,
    InternalError,
    LedgerError,
    NoSampleError,
    PolicyError,
    ScenarioError,
    SignalError,
)
from .lab import LEDGER, calibrate, optimize, policies, run, study, trial
from .result import Classes, Numbers, Result
from .scenario import Scenario

__all__ = [
    "LEDGER",
    "BlisError",
    "Classes",
    "InputOutputError",
    "InternalError",
    "LedgerError",
    "NoSampleError",
    "Numbers",
    "PolicyError",
    "Result",
    "Scenario",
    "ScenarioError",
    "SignalError",
    "__version__",
    "calibrate",
    "optimize",
    "policies",
    "run",
    "study",
    "trial",
]
