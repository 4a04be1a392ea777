"""Policies in Python keep the contract, see what they declare, and stop a run that they fail."""

from __future__ import annotations

import traceback
from typing import Any

import pyarrow as pa
import pytest
from conftest import ROOT, SHARED_PREFIX

import blis

MANY_TENANTS = ROOT / "scenarios" / "many-tenants.yaml"


def scored(policy: blis.Policy[Any], **settings: Any) -> blis.Result:
    settings.setdefault("num_requests", 300)
    settings.setdefault("routing_scorers", f"{policy.name}:1")
    return blis.run(SHARED_PREFIX, policies=[policy], routing_policy="weighted", **settings)


def decisions(result: blis.Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.table(result.decisions()).to_pylist()
    return rows


@pytest.mark.parametrize("others", ["", ",pa:3,kv:2"])
def test_the_example_decides_as_queue_depth_does(others: str) -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    file = ROOT / "python" / "examples" / "queue_depth.py"
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    mine = namespace["queue_depth"]
    found = []
    for name in [mine.name, "queue-depth"]:
        done = blis.run(
            MANY_TENANTS,
            policies=[mine] if name == mine.name else [],
            num_requests=2000,
            routing_policy="weighted",
            routing_scorers=f"{name}:2{others}",
            snapshot_refresh_interval=50_000,
            decisions=True,
        )
        rows = decisions(done)
        for row in rows:
            row["because"] = row["because"].replace(mine.name, "queue-depth")
        found.append(rows)
    assert found[0] == found[1]
    assert len(found[0]) == 2000
    assert {row["because"] for row in found[0]} >= {"queue-depth"}
    assert len({row["instance"] for row in found[0]}) == 4


def test_an_order_in_python_is_the_one_that_ships() -> None:
    @blis.order(name="my-sjf")
    def shortest(waiting: blis.Waiting) -> float:
        return waiting.request.input_tokens

    busy = blis.Scenario(SHARED_PREFIX, num_requests=1500, num_instances=1, rate=300)
    ours = blis.run(busy, policies=[shortest], scheduler="my-sjf")
    theirs = blis.run(busy, scheduler="sjf")
    assert ours.json["cluster"] == theirs.json["cluster"]
    assert theirs.json["cluster"] != blis.run(busy).json["cluster"], "the order matters"


def test_an_order_that_varies_sees_the_time_and_the_priority() -> None:
    seen = set()

    @blis.order(needs=["priority", "cached"], varies=True)
    def oldest(waiting: blis.Waiting) -> float:
        seen.add(waiting.priority)
        assert waiting.cached_blocks >= 0
        assert waiting.expected_hit_blocks is not None, "the router has an opinion"
        assert waiting.now_s >= waiting.enqueued_s >= waiting.request.arrival_s
        return waiting.enqueued_s - waiting.now_s

    done = blis.run(
        SHARED_PREFIX,
        policies=[oldest],
        scheduler="oldest",
        priority_policy="slo-class",
        num_requests=500,
        num_instances=1,
    )
    assert seen == {10.0, 5.0, 1.0}
    assert done.python_policy_cost["oldest"].calls > 500, "it is asked again"


def test_an_admission_policy_gives_reasons_and_takes_parameters() -> None:
    @blis.admission(name="short-only", params={"most_tokens": (1, 100_000, 10_000)})
    def short_only(request: blis.Request, cluster: blis.Cluster, most_tokens: int) -> bool | str:
        if request.slo_class == "critical":
            return True
        return "too-long" if request.input_tokens > most_tokens else request.round == 0

    def rejected(gate: str) -> dict[str, Any]:
        done = blis.run(
            SHARED_PREFIX, policies=[short_only], admission_policy=gate, num_requests=500
        )
        assert done.classes["critical"].rejected == 0
        cluster: dict[str, Any] = done.json["cluster"]
        return cluster

    assert rejected("short-only")["rejected_requests"] == 0
    few = rejected("short-only[most-tokens=700]")
    assert 0 < few["rejected_requests"] < 500
    within = rejected("all-of(short-only[most-tokens=700]; always-admit)")
    assert within["rejected_requests"] == few["rejected_requests"]


def test_parameters_are_checked_like_those_of_any_policy() -> None:
    @blis.scorer(params={"slope": (0.0, 1.0, 0.5), "sort": ["up", "down"], "strict": True})
    def sloped(
        request: blis.Request, cluster: blis.Cluster, slope: float, sort: str, strict: bool
    ) -> list[float]:
        assert (slope, sort, strict) == (0.25, "down", False)
        return [slope] * len(cluster.instances)

    scored(sloped, routing_scorers="sloped[slope=0.25,sort=down,strict=false]:1")
    with pytest.raises(blis.ScenarioError, match="legal: a number from 0 to 1") as caught:
        scored(sloped, routing_scorers="sloped[slope=2]:1")
    assert caught.value.path == "routing.scorers"
    with pytest.raises(blis.ScenarioError, match="did you mean `sloped`"):
        scored(sloped, routing_scorers="slopped:1")


SIGNALS = {
    "load": ["queue_depth", "running", "unseen", "load", "as_of_s"],
    "classes": ["waiting_by_class"],
    "kv": ["kv_utilization", "free_blocks", "kv_as_of_s"],
    "hit_rate": ["cache_hit_rate"],
    "transfers": ["pending_transfer_us", "thrashing_rate"],
    "events": ["cached_blocks", "cached_cpu_blocks"],
}
LIVE = ["id", "pool", "in_flight", "in_flight_tokens", "unstarted_tokens"]


@pytest.mark.parametrize("need", SIGNALS)
def test_a_signal_is_seen_if_it_is_declared_and_hidden_if_not(need: str) -> None:
    @blis.scorer(name="reader", needs=[need])
    def reader(request: blis.Request, cluster: blis.Cluster) -> list[float]:
        for instance in cluster.instances:
            for name in LIVE + SIGNALS[need]:
                getattr(instance, name)
        return [0.5 for _ in cluster.instances]

    scored(reader, num_requests=20)
    for name in SIGNALS[need]:

        @blis.scorer(name="blind")
        def blind(request: blis.Request, cluster: blis.Cluster) -> list[float]:
            return [float(getattr(instance, name)) for instance in cluster.instances]  # noqa: B023

        with pytest.raises(blis.SignalError, match=f"`{name}` is not declared; add"):
            scored(blind, num_requests=20)


def test_a_waiting_request_hides_what_is_not_declared() -> None:
    for name in ["cached_blocks", "priority", "now_s"]:

        @blis.order(name="blind")
        def blind(waiting: blis.Waiting) -> float:
            return float(getattr(waiting, name))  # noqa: B023

        with pytest.raises(blis.SignalError, match=f"`{name}`"):
            blis.run(SHARED_PREFIX, policies=[blind], scheduler="blind", num_requests=20)


def test_an_exception_stops_the_run_and_comes_with_its_traceback() -> None:
    calls = 0

    @blis.scorer(name="failing")
    def failing(request: blis.Request, cluster: blis.Cluster) -> list[float]:
        nonlocal calls
        calls += 1
        return [1 / (3 - request.id)] * len(cluster.instances)

    with pytest.raises(ZeroDivisionError) as caught:
        scored(failing)
    assert calls == 4, "it is not asked again"
    lines = "".join(traceback.format_exception(caught.value))
    assert "return [1 / (3 - request.id)]" in lines


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([1.5] * 8, r"scorer `wrong` gave instance 0 1\.5; legal: a number from 0 to 1"),
        ([float("nan")] * 8, "gave instance 0 NaN; legal"),
        ([-0.1] * 8, "legal: a number from 0 to 1"),
        ([0.5], "gave 1 scores for 8 instances"),
        (None, "must give a list of numbers, one an instance"),
        (["a"] * 8, "must give a list of numbers"),
    ],
)
def test_scores_out_of_range_are_refused(answer: Any, words: str) -> None:
    @blis.scorer(name="wrong")
    def wrong(request: blis.Request, cluster: blis.Cluster) -> Any:
        return answer

    with pytest.raises(blis.PolicyError, match=words):
        scored(wrong)


@pytest.mark.parametrize("answer", [float("inf"), float("nan"), None, "first"])
def test_ranks_that_are_no_finite_numbers_are_refused(answer: Any) -> None:
    @blis.order(name="wrong")
    def wrong(waiting: blis.Waiting) -> Any:
        return answer

    with pytest.raises(blis.PolicyError, match="order `wrong`"):
        blis.run(SHARED_PREFIX, policies=[wrong], scheduler="wrong", num_requests=20)


@pytest.mark.parametrize("answer", [1, None, 0.5])
def test_verdicts_that_are_none_are_refused(answer: Any) -> None:
    @blis.admission(name="wrong")
    def wrong(request: blis.Request, cluster: blis.Cluster) -> Any:
        return answer

    with pytest.raises(blis.PolicyError, match="must give True, or False or a word"):
        blis.run(SHARED_PREFIX, policies=[wrong], admission_policy="wrong", num_requests=20)


def test_an_admission_policy_has_a_limited_vocabulary() -> None:
    @blis.admission(name="wordy")
    def wordy(request: blis.Request, cluster: blis.Cluster) -> str:
        return f"reason-{request.id}"

    with pytest.raises(blis.PolicyError, match="more than 64 different words"):
        blis.run(SHARED_PREFIX, policies=[wordy], admission_policy="wordy", num_requests=100)


def test_names_needs_and_parameters_are_checked_where_they_are_declared() -> None:
    def declared(**keywords: Any) -> None:
        blis.scorer(**keywords)(lambda request, cluster: [])

    with pytest.raises(blis.PolicyError, match="ships; give it another name"):
        declared(name="queue-depth")
    with pytest.raises(blis.PolicyError, match="ships"):
        declared(name="qd")
    with pytest.raises(blis.PolicyError, match="lower case"):
        declared(name="My Scorer")
    with pytest.raises(ValueError, match="legal: `load`, `classes`, `kv`"):
        declared(name="x", needs=["cached"])
    with pytest.raises(ValueError, match="the default is not within a number from 0 to 1"):
        declared(name="x", params={"a": (0.0, 1.0, 2.0)})
    with pytest.raises(TypeError, match="legal: \\(min, max, default\\)"):
        declared(name="x", params={"a": 3})


def test_a_policy_is_known_only_where_it_is_handed_in() -> None:
    @blis.scorer(name="guest")
    def guest(request: blis.Request, cluster: blis.Cluster) -> list[float]:
        return [1.0] * len(cluster.instances)

    scored(guest)
    with pytest.raises(blis.ScenarioError, match="unknown scorer `guest`"):
        blis.run(SHARED_PREFIX, routing_policy="weighted", routing_scorers="guest:1")
    with pytest.raises(blis.PolicyError, match="given twice"):
        blis.run(SHARED_PREFIX, policies=[guest, guest])
    with pytest.raises(blis.PolicyError, match="`guest` is not used"):
        blis.run(SHARED_PREFIX, policies=[guest])
    with pytest.raises(blis.PolicyError, match="cannot hold policies in Python"):
        blis.Scenario(policies=[guest]).trial()


def test_the_hash_of_a_scenario_changes_with_the_source_of_its_policies() -> None:
    def hashed(policy: blis.Policy[Any]) -> str:
        made = blis.Scenario(
            SHARED_PREFIX, policies=[policy], routing_policy="weighted", routing_scorers="two:1"
        )
        return made.hash

    @blis.scorer(name="two")
    def one(request: blis.Request, cluster: blis.Cluster) -> list[float]:
        return [1.0] * len(cluster.instances)

    @blis.scorer(name="two")
    def other(request: blis.Request, cluster: blis.Cluster) -> list[float]:
        return [0.5] * len(cluster.instances)

    assert hashed(one) == hashed(one) != hashed(other)


def test_what_a_policy_costs_is_told_with_the_result() -> None:
    @blis.scorer(name="costly", needs=["load"])
    def costly(request: blis.Request, cluster: blis.Cluster) -> list[float]:
        return [1 / (1 + instance.load) for instance in cluster.instances]

    done = scored(costly)
    cost = done.python_policy_cost["costly"]
    assert cost.calls == 300
    assert cost.seconds > 0
    assert cost.us_per_call == pytest.approx(1e6 * cost.seconds / 300)
    assert "Python policy costly 300 calls, " in repr(done)
    assert "Python policy costly" in done._repr_markdown_()
    assert blis.run(SHARED_PREFIX, num_requests=10).python_policy_cost == {}


def test_a_policy_stays_a_function() -> None:
    @blis.scorer()
    def plain_function(request: Any, cluster: Any) -> list[float]:
        """What it prefers."""
        return [1.0]

    assert plain_function(None, None) == [1.0]
    assert (plain_function.name, plain_function.__doc__) == ("plain-function", "What it prefers.")
    assert repr(plain_function) == "<blis policy `plain-function`>"
