"""Runs through the package are those of the command, and results read well."""

from __future__ import annotations

import json
import signal
import sys
import threading
from typing import get_args

import pytest
from conftest import SHARED_PREFIX, Command, without_clock

import blis
from blis.result import Format


@pytest.fixture(scope="module")
def result() -> blis.Result:
    return blis.run(SHARED_PREFIX, num_requests=2000)


def test_a_run_gives_what_the_command_prints(result: blis.Result, command: Command) -> None:
    arguments = ["run", str(SHARED_PREFIX), "--num-requests", "2000", "--format", "json", "--quiet"]
    printed = json.loads(command(*arguments))
    assert without_clock(result.json) == without_clock(printed)


def test_numbers_are_attributes_of_the_result_and_of_each_class(result: blis.Result) -> None:
    assert result.ttft_p99 == result.json["cluster"]["ttft_p99_ms"]
    assert set(result.classes) == {"critical", "standard", "sheddable"}
    critical = result.classes["critical"]
    assert critical.ttft_p99 == result.json["classes"]["critical"]["ttft_p99_ms"]
    assert sum(numbers.completed for numbers in result.classes.values()) == result.completed


def test_unknown_numbers_and_numbers_without_a_sample_are_told_apart(result: blis.Result) -> None:
    with pytest.raises(AttributeError, match="did you mean `ttft_p90`"):
        result.ttft_p9  # noqa: B018
    nobody = blis.run(SHARED_PREFIX, num_requests=50, admission_policy="reject-all")
    with pytest.raises(blis.NoSampleError, match="no sample of `ttft_p99`"):
        nobody.ttft_p99  # noqa: B018
    assert getattr(nobody, "ttft_p99", None) is None


def test_a_result_tells_of_itself_in_a_line_and_as_markdown(result: blis.Result) -> None:
    assert repr(result).startswith("Result(completed 2,000, TTFT p99 ")
    page = result._repr_markdown_()
    assert page.startswith("# ")
    assert "\n| sheddable |" in page


def test_a_report_is_what_the_command_prints(result: blis.Result, command: Command) -> None:
    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if "simulated seconds" not in line]

    for format in get_args(Format)[:2]:
        printed = command("run", SHARED_PREFIX, "--num-requests", "2000", "--format", format)
        assert lines(result.report(format)) == lines(printed)
    assert max(len(line) for line in result.report(width=60).splitlines()) <= 60
    assert result.report("html").startswith("<!doctype html>")
    assert json.loads(result.report("json")) == result.json
    with pytest.raises(ValueError, match="legal: `table`, `markdown`, `html` or `json`"):
        result.report("pdf")  # type: ignore[arg-type]


def test_a_run_is_the_same_every_time_and_under_audit(result: blis.Result) -> None:
    again = blis.run(SHARED_PREFIX, num_requests=2000, audit=True, requests=False)
    assert without_clock(again.json) == without_clock(result.json)
    with pytest.raises(ValueError, match="requests=True"):
        again.requests()


def test_the_lock_of_the_interpreter_is_free_while_a_run_goes() -> None:
    gate = threading.Lock()
    passed = threading.Event()

    def pass_the_gate() -> None:
        with gate:
            passed.set()

    interval = sys.getswitchinterval()
    # Nobody is made to give the lock away: the other thread gets it only if a run lets go of it.
    sys.setswitchinterval(1000)
    try:
        with gate:
            other = threading.Thread(target=pass_the_gate)
            other.start()
        assert not passed.is_set(), "the other thread has no chance yet"
        for _ in range(50):
            blis.run(SHARED_PREFIX, num_requests=2000, requests=False)
            if passed.is_set():
                break
        assert passed.is_set()
    finally:
        sys.setswitchinterval(interval)
        other.join()


ENDLESS = {"workload": {"distribution": {"rate": 100, "num_requests": 4_000_000}}}


SHARE = {
    "cluster": {"instances": 500},
    "workload": {"preset": "orthogonal-slo", "rate": "90%", "num_requests": 1000},
}


@pytest.mark.parametrize("what", ["run", "timeline", "trial", "saturation", "study"])
def test_an_interrupt_ends_what_is_being_simulated(what: str) -> None:
    gate = threading.Lock()

    def interrupt() -> None:
        with gate:
            signal.raise_signal(signal.SIGINT)

    gate.acquire()
    other = threading.Thread(target=interrupt)
    other.start()
    scenario = blis.Scenario(ENDLESS)
    document = scenario.trial()
    with pytest.raises(KeyboardInterrupt):
        # From here on it may come, like Ctrl-C; the other thread waits for the interpreter's lock.
        gate.release()
        if what == "run":
            blis.run(scenario, requests=False)
        elif what == "timeline":
            blis.run(scenario, requests=False, timeline_ms=1000)
        elif what == "saturation":
            blis.Scenario(SHARE).trial()
        elif what == "trial":
            blis.trial(document)
        else:
            study = {"question": "?", "base": ENDLESS, "metrics": ["ttft_p99"]}
            blis.study(study, ledger=None)
    other.join()


def test_runs_in_threads_are_the_runs_one_after_the_other(result: blis.Result) -> None:
    found: list[dict[str, object]] = []

    def run() -> None:
        found.append(without_clock(blis.run(SHARED_PREFIX, num_requests=2000).json))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [without_clock(result.json)] * 3
