"""The step logger for vLLM, against a fake of vLLM's scheduler and against vLLM's own source."""

from __future__ import annotations

import ast
import csv
import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from fake_vllm import BLOCK, Engine, Request, config, kv_cache, load_logger

VERSIONS = ["0.11.0", "0.11.1", "0.12.0", "0.26.0"]
# 0.11.0 takes no scheduler class if it schedules asynchronously.
ENGINES = [(v, a) for v in VERSIONS for a in (False, True) if (v, a) != ("0.11.0", True)]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "server.steps.csv"
    monkeypatch.setenv("BLIS_STEPS", str(path))
    return path


def prompt(tokens: int) -> list[int]:
    return list(range(tokens))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def numbers(path: Path, *columns: str) -> list[tuple[int, ...]]:
    return [tuple(int(row[column]) for column in columns) for row in rows(path)]


def served(
    asynchronous: bool,
    requests: list[Request],
    version: str = "0.26.0",
    budget: int = 2048,
    blocks: int = 1000,
) -> Any:
    """The scheduler after all requests have been served."""
    kind = load_logger(version).StepLog
    scheduler = kind(vllm_config=config(asynchronous, budget), kv_cache_config=kv_cache(blocks))
    for request in requests:
        scheduler.add_request(request)
    Engine(scheduler).drain()
    return scheduler


def test_a_synchronous_step_begins_when_it_is_scheduled_and_ends_with_its_tokens(log: Path) -> None:
    served(False, [Request("x", prompt(20), 3)])
    # By hand: 100 us of scheduling, 1,000 of launching, the GPU's 5,000 from the launch on, 50 of
    # updating; the next step begins then.
    times = numbers(
        log, "start_us", "duration_us", "scheduled_us", "schedule_us", "launch_us", "update_us"
    )
    assert times == [
        (1_000_000, 5_100, 1_000_000, 100, 1_000, 50),
        (1_005_150, 5_100, 1_005_150, 100, 1_000, 50),
        (1_010_300, 5_100, 1_010_300, 100, 1_000, 50),
    ]
    shapes = numbers(
        log,
        "prefill_seqs",
        "prefill_tokens",
        "prefill_past_tokens",
        "prefill_attention_pairs",
        "decode_seqs",
        "decode_context_sum",
        "decode_longest",
    )
    assert shapes == [(1, 20, 0, 210, 0, 0, 0), (0, 0, 0, 0, 1, 21, 21), (0, 0, 0, 0, 1, 22, 22)]
    after = numbers(log, "running_after", "waiting_after", "free_blocks_after")
    assert after == [(1, 0, 997), (1, 0, 997), (0, 0, 999)]


def test_with_two_steps_in_flight_a_step_is_scheduled_before_the_last_one_has_ended(
    log: Path,
) -> None:
    served(True, [Request("x", prompt(20), 3)])
    # By hand: steps are scheduled at 0 and 1,300; the first is done at 100 + 5,000 and processed at
    # 5,150, when the third is scheduled; the GPU then computes without a pause.
    times = numbers(log, "start_us", "duration_us", "scheduled_us", "launch_us")
    assert times == [
        (1_000_000, 5_100, 1_000_000, 1_000),
        (1_005_100, 5_000, 1_001_300, 1_000),
        (1_010_100, 5_000, 1_005_150, 1_000),
    ]


def test_one_class_is_the_scheduler_that_the_server_would_have_taken(log: Path) -> None:
    for asynchronous, name in ((True, "AsyncScheduler"), (False, "Scheduler")):
        scheduler = served(asynchronous, [Request("x", prompt(4), 1)])
        assert type(scheduler).__mro__[2].__name__ == name


@pytest.mark.parametrize(("version", "asynchronous"), ENGINES)
def test_every_token_of_every_version_is_counted_once(
    log: Path, version: str, asynchronous: bool
) -> None:
    requests = [Request(f"cmpl-blis-7-{n}-0-ab", prompt(40 + n), 20) for n in range(6)]
    served(asynchronous, requests, version, budget=64)
    shapes = numbers(log, "prefill_tokens", "prefill_past_tokens", "decode_seqs")
    cached = {name: int(n) for row in rows(log) for name, n in named(row["new_requests"])}
    assert sum(prefill for prefill, _, _ in shapes) == sum(
        40 + n - cached[f"7-{n}"] for n in range(6)
    )
    assert sum(decodes for _, _, decodes in shapes) == 6 * 19
    assert any(past for _, past, _ in shapes), "the budget cuts prompts into chunks"


def named(cell: str) -> list[list[str]]:
    return [name.split(":") for name in cell.split(";") if name]


@pytest.mark.parametrize(("version", "asynchronous"), ENGINES)
def test_preemptions_and_cached_tokens_are_told_by_request(
    log: Path, version: str, asynchronous: bool
) -> None:
    requests = [Request(f"cmpl-blis-7-{n}-0-ab", [n] * 32, 40) for n in range(4)]
    served(asynchronous, requests, version, blocks=13)
    told = [name for row in rows(log) for (name,) in named(row["preempted_requests"])]
    had = [f"7-{n}" for n, one in enumerate(requests) for _ in range(one.num_preemptions)]
    assert sorted(told) == had and had, "the KV cache is too small for all"
    new = [name for row in rows(log) for name in named(row["new_requests"])]
    assert new[:4] == [[f"7-{n}", "0"] for n in range(4)]
    again = len(had) if version == "0.26.0" else 0
    assert len(new) == 4 + again, "the newest version sends them to its workers again"


def test_cached_tokens_are_those_that_are_not_computed(log: Path) -> None:
    scheduler = served(False, [Request("cmpl-blis-7-0-0", prompt(100), 2)])
    scheduler.add_request(Request("cmpl-blis-7-1-0", prompt(100), 2))
    Engine(scheduler).drain()
    new = [name for row in rows(log) for name in named(row["new_requests"])]
    assert new == [["7-0", "0"], ["7-1", str(100 // BLOCK * BLOCK)]]


def test_nothing_is_written_but_numbers_and_the_names_of_replayed_requests(log: Path) -> None:
    requests = [Request("cmpl-secret,\n-0", [987654321] * 5, 2), Request("cmpl-blis-7-3-0", [5], 2)]
    served(True, requests)
    text = log.read_text()
    header, *lines = text.splitlines()
    assert "secret" not in text and "987654321" not in text
    assert len(lines) == 2
    for line in lines:
        assert line.count(",") == header.count(",")
        assert set(line) <= set("0123456789,:;-")
    assert rows(log)[0]["new_requests"] == "7-3:0"


def test_the_engine_s_settings_stand_in_every_row(log: Path) -> None:
    served(True, [Request("x", prompt(20), 3)], budget=512)
    settings = "max_num_scheduled_tokens max_num_running_reqs max_cudagraph_capture_size cpu_blocks"
    assert set(numbers(log, *settings.split())) == {(512, 256, 512, 64)}


def test_engines_of_one_server_write_files_of_their_own(log: Path) -> None:
    for ranks in (2, 3):
        kind = load_logger().StepLog
        kind(vllm_config=config(True, ranks=ranks), kv_cache_config=kv_cache()).shutdown()
    written = sorted(path.name for path in log.parent.iterdir())
    assert written == ["server.steps.1.csv", "server.steps.2.csv"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_alone_can_be_calibrated_to(log: Path, version: str, command: Command) -> None:
    requests = [Request(str(n), [n] * (30 + 37 * n % 400), 10 + 9 * n) for n in range(60)]
    served(False, requests, version, budget=256)
    assert "launch_us" in rows(log)[0] or version == "0.11.0"
    assert "prefill_tokens" in command("calibrate", str(log), "--out", "-", "--padding", "none")


# What the logger takes for granted, by file below `vllm`. Of names with a stroke between them one
# must be there: the newer comes first. These tests passed with the sources of all releases from
# 0.11.0 to 0.27.0, of 0.28.0rc2 and of 0.32.0.
NAMES = {
    "v1/core/sched/scheduler.py": """
        Scheduler.schedule Scheduler.update_from_output Scheduler.get_grammar_bitmask
        Scheduler.get_request_counts Scheduler.shutdown Scheduler.requests Scheduler.vllm_config
        Scheduler.kv_cache_config Scheduler.kv_cache_manager Scheduler.max_num_scheduled_tokens
        Scheduler.max_num_running_reqs""",
    "v1/core/sched/async_scheduler.py": "AsyncScheduler._update_after_schedule",
    "v1/core/sched/output.py": """
        SchedulerOutput.num_scheduled_tokens SchedulerOutput.scheduled_new_reqs
        SchedulerOutput.scheduled_cached_reqs NewRequestData.req_id
        NewRequestData.num_computed_tokens CachedRequestData.req_ids
        SchedulerOutput.preempted_req_ids|CachedRequestData.resumed_req_ids|\
CachedRequestData.resumed_from_preemption""",
    "v1/request.py": "Request.num_computed_tokens Request.num_prompt_tokens",
    "v1/core/kv_cache_manager.py": "KVCacheManager.block_pool",
    "v1/core/block_pool.py": "BlockPool.get_num_free_blocks",
    "v1/kv_cache_interface.py": """
        KVCacheConfig.num_blocks KVCacheConfig.kv_cache_tensors KVCacheTensor.size""",
    "config/scheduler.py": "SchedulerConfig.async_scheduling SchedulerConfig.scheduler_cls",
    "config/parallel.py": """
        ParallelConfig.data_parallel_size ParallelConfig.data_parallel_rank
        ParallelConfig.world_size""",
    "config/compilation.py": """
        CompilationConfig.max_cudagraph_capture_size|CompilationConfig.max_capture_size""",
    "config/kv_transfer.py": "KVTransferConfig.kv_connector_extra_config",
}


def vllm_source() -> Path | None:
    """The folder `vllm` that $VLLM_SOURCE names, or of an installed vLLM, which is not imported."""
    if folder := os.environ.get("VLLM_SOURCE"):
        return Path(folder)
    found = importlib.util.find_spec("vllm")
    return Path(found.origin).parent if found and found.origin else None


def members(kind: ast.ClassDef) -> set[str]:
    """Methods, fields, and what methods set on `self`."""
    names: set[str] = set()
    for node in ast.walk(kind):
        match node:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.add(name)
    return names


SOURCE = vllm_source()


@pytest.mark.skipif(SOURCE is None, reason="no vLLM is installed, and VLLM_SOURCE names none")
def test_vllm_has_every_name_that_the_logger_uses() -> None:
    assert SOURCE is not None
    missing = []
    for file, names in NAMES.items():
        tree = ast.parse((SOURCE / file).read_text())
        kinds = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        found = {f"{kind.name}.{name}" for kind in kinds for name in members(kind)}
        missing += [name for name in names.split() if not found & set(name.split("|"))]
    assert not missing


@pytest.mark.skipif(SOURCE is None, reason="no vLLM is installed, and VLLM_SOURCE names none")
def test_vllm_calls_the_scheduler_in_the_order_that_the_logger_expects() -> None:
    assert SOURCE is not None
    scheduler = (SOURCE / "v1/core/sched/scheduler.py").read_text()
    assert "self._update_after_schedule(" in method(scheduler, "schedule")
    counts = method(scheduler, "_update_after_schedule")
    assert "num_computed_tokens += " in counts, "tokens count as computed when they are scheduled"
    core = (SOURCE / "v1/engine/core.py").read_text()
    calls = ["scheduler.schedule(", "execute_model", "update_from_output("]
    if "scheduler_output" in method(scheduler, "get_grammar_bitmask").partition(")")[0]:
        calls[2:2] = ["get_grammar_bitmask(", "sample_tokens("]
    for loop in (method(core, "step"), method(core, "step_with_batch_queue")):
        places = [loop.index(call) for call in calls]
        assert places == sorted(places)


def method(source: str, name: str) -> str:
    """The text of a method, up to the next."""
    return source.partition(f"    def {name}(")[2].partition("\n    def ")[0]
