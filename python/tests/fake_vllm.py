"""A small fake of what measure/vllm_steps.py touches of vLLM, with a clock of its own.

`python3 python/tests/fake_vllm.py` prints what the logger costs a step, by the size of the batch.
"""

from __future__ import annotations

import importlib
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

BLOCK = 16
MEASURE = Path(__file__).parents[2] / "measure"


class Clock:
    """Time in microseconds that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def monotonic(self) -> float:
        return self.now / 1e6


class Request:
    """A request as the scheduler keeps it."""

    def __init__(self, request_id: str, prompt: list[int], max_tokens: int) -> None:
        self.request_id = request_id
        self.prompt_token_ids = prompt
        self.num_prompt_tokens = len(prompt)
        self.num_computed_tokens = 0
        self.num_preemptions = 0
        self.max_tokens = max_tokens
        self.generated: list[int] = []
        self.in_flight = 0
        self.blocks = 0


class Scheduler:
    """First come, first served, with chunked prefill, a prefix cache and preemption of the last."""

    version = "0.26.0"
    ahead = 0
    clock = Clock()
    schedule_us = 100
    update_us = 50

    def __init__(self, vllm_config: Any, kv_cache_config: Any, log_stats: bool = False) -> None:
        self.vllm_config = vllm_config
        self.kv_cache_config = kv_cache_config
        self.requests: dict[str, Request] = {}
        self.running: list[Request] = []
        self.waiting: deque[Request] = deque()
        self.max_num_scheduled_tokens = vllm_config.scheduler_config.max_num_batched_tokens
        self.max_num_running_reqs = 256
        self.free = kv_cache_config.num_blocks - 1
        self.cached: set[tuple[int, ...]] = set()
        pool = SimpleNamespace(get_num_free_blocks=lambda: self.free)
        self.kv_cache_manager = SimpleNamespace(block_pool=pool)

    def add_request(self, request: Request) -> None:
        self.requests[request.request_id] = request
        self.waiting.append(request)

    def has_requests(self) -> bool:
        return bool(self.requests)

    def get_request_counts(self) -> tuple[int, int]:
        return len(self.running), len(self.waiting)

    def schedule(self, throttle_prefills: bool = False) -> Any:
        self.clock.now += self.schedule_us
        budget = self.max_num_scheduled_tokens
        scheduled: dict[str, int] = {}
        preempted: list[Request] = []
        for request in list(self.running):
            known = request.num_prompt_tokens + len(request.generated) + request.in_flight
            count = min(known - request.num_computed_tokens, budget)
            if len(request.generated) + request.in_flight == request.max_tokens:
                count = 0
            while count and request in self.running and not self.allocate(request, count):
                victim = self.running.pop()
                self.preempt(victim)
                preempted.append(victim)
            if count and request in self.running:
                scheduled[request.request_id] = count
                budget -= count
        new: list[Request] = []
        while self.waiting and budget and not preempted:
            request = self.waiting[0]
            known = request.num_prompt_tokens + len(request.generated)
            hit = self.hit(request)
            request.num_computed_tokens = hit
            if not self.allocate(request, known - hit):
                request.num_computed_tokens = 0
                break
            self.running.append(self.waiting.popleft())
            scheduled[request.request_id] = min(known - hit, budget)
            budget -= scheduled[request.request_id]
            new.append(request)
            self.keep(request)
        return self.output(scheduled, new, preempted)

    def hit(self, request: Request) -> int:
        ids = request.prompt_token_ids + request.generated
        full = range(BLOCK, len(ids), BLOCK)
        return max((n for n in full if tuple(ids[:n]) in self.cached), default=0)

    def keep(self, request: Request) -> None:
        """Full blocks can be found once they are allocated, those of the answer at its end."""
        ids = request.prompt_token_ids + request.generated[:-1]
        self.cached |= {tuple(ids[:n]) for n in range(BLOCK, len(ids) + 1, BLOCK)}

    def allocate(self, request: Request, count: int) -> bool:
        more = -(-(request.num_computed_tokens + count) // BLOCK) - request.blocks
        if more > self.free:
            return False
        self.free -= more
        request.blocks += more
        return True

    def release(self, request: Request) -> None:
        self.free += request.blocks
        request.blocks = 0

    def preempt(self, request: Request) -> None:
        self.release(request)
        request.num_computed_tokens = request.in_flight = 0
        request.num_preemptions += 1
        self.waiting.appendleft(request)

    def output(
        self, scheduled: dict[str, int], new: list[Request], preempted: list[Request]
    ) -> Any:
        """A SchedulerOutput with the fields of the version."""
        resumed = [request for request in new if request.num_preemptions]
        fresh = new if self.version == "0.26.0" else [one for one in new if one not in resumed]
        others = [name for name in scheduled if name not in {one.request_id for one in fresh}]
        cached = SimpleNamespace(req_ids=others)
        output = SimpleNamespace(
            scheduled_new_reqs=[
                SimpleNamespace(
                    req_id=one.request_id,
                    prompt_token_ids=one.prompt_token_ids,
                    num_computed_tokens=one.num_computed_tokens,
                )
                for one in fresh
            ],
            scheduled_cached_reqs=cached,
            num_scheduled_tokens=scheduled,
            total_num_scheduled_tokens=sum(scheduled.values()),
            life={name: self.requests[name].num_preemptions for name in scheduled},
            samples=set(),
        )
        back = {one.request_id for one in resumed}
        if self.version == "0.11.0":
            cached.resumed_from_preemption = [name in back for name in others]
            self.ask_for_bitmask(scheduled)
        elif self.version == "0.11.1":
            cached.resumed_req_ids = back
        else:
            output.preempted_req_ids = {one.request_id for one in preempted}
        for name, count in scheduled.items():
            request = self.requests[name]
            request.num_computed_tokens += count
            if request.num_computed_tokens >= request.num_prompt_tokens + len(request.generated):
                output.samples.add(name)
                request.in_flight += self.ahead
        return output

    def ask_for_bitmask(self, scheduled: dict[str, int]) -> None:
        raise NotImplementedError

    def get_grammar_bitmask(self, scheduler_output: Any) -> None:
        return None

    def update_from_output(
        self, scheduler_output: Any, model_runner_output: Any
    ) -> list[tuple[Request, int]]:
        """The tokens that were generated."""
        self.clock.now += self.update_us
        tokens = []
        for name in scheduler_output.samples:
            request = self.requests[name]
            if request.num_preemptions > scheduler_output.life[name]:
                continue
            request.in_flight -= self.ahead
            request.generated.append(2000 + len(request.generated))
            tokens.append((request, request.generated[-1]))
            if len(request.generated) == request.max_tokens:
                self.keep(request)
                self.running.remove(request)
                self.release(request)
                del self.requests[name]
        return tokens

    def shutdown(self) -> None:
        return None


class AsyncScheduler(Scheduler):
    """Schedules a request again before its last token is known."""

    ahead = 1


class OldScheduler(Scheduler):
    """That of 0.11.0, which asks for the bitmask itself."""

    version = "0.11.0"

    def ask_for_bitmask(self, scheduled: dict[str, int]) -> None:
        self.get_grammar_bitmask(list(scheduled), {})

    def get_grammar_bitmask(  # type: ignore[override]
        self, requests: Any, scheduled_spec_decode_tokens: Any
    ) -> None:
        return None


class Engine:
    """The loop of vLLM's engine core around a scheduler, one or two steps in flight."""

    launch_us = 1_000
    sample_us = 200
    gpu_us = 5_000

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.clock = scheduler.clock
        self.flying: deque[tuple[Any, int]] = deque()
        self.gpu_free = 0

    def turn(self) -> list[tuple[Request, int]]:
        """One turn of the loop: the tokens that it hands out."""
        if self.scheduler.has_requests():
            output = self.scheduler.schedule()
            if output.num_scheduled_tokens:
                self.gpu_free = max(self.gpu_free, self.clock.now) + self.gpu_us
                self.clock.now += self.launch_us
                if self.scheduler.version != "0.11.0":
                    self.scheduler.get_grammar_bitmask(output)
                self.clock.now += self.sample_us
                self.flying.append((output, self.gpu_free))
                if len(self.flying) <= self.scheduler.ahead:
                    return []
        output, end = self.flying.popleft()
        self.clock.now = max(self.clock.now, end)
        tokens: list[tuple[Request, int]] = self.scheduler.update_from_output(output, None)
        return tokens

    def drain(self) -> None:
        while self.scheduler.has_requests() or self.flying:
            self.turn()


def config(asynchronous: bool, budget: int = 2048, ranks: int = 1) -> Any:
    """What the logger reads of a VllmConfig."""
    return SimpleNamespace(
        scheduler_config=SimpleNamespace(
            async_scheduling=asynchronous, max_num_batched_tokens=budget
        ),
        parallel_config=SimpleNamespace(
            data_parallel_size=ranks, data_parallel_rank=ranks - 1, world_size=2
        ),
        compilation_config=SimpleNamespace(max_cudagraph_capture_size=512),
        kv_transfer_config=SimpleNamespace(
            kv_connector_extra_config={"cpu_bytes_to_use": 64 * 32.0}
        ),
    )


def kv_cache(blocks: int = 1000) -> Any:
    """What it reads of a KVCacheConfig: 16 bytes a block and worker, in two tensors."""
    return SimpleNamespace(
        num_blocks=blocks, kv_cache_tensors=[SimpleNamespace(size=8 * blocks)] * 2
    )


def load_logger(version: str = "0.26.0", clock: Any = None) -> Any:
    """`vllm_steps` as it is imported where this fake is vLLM."""
    parts = "vllm vllm.v1 vllm.v1.core vllm.v1.core.sched".split()
    names = [*parts, "vllm.v1.core.sched.scheduler", "vllm.v1.core.sched.async_scheduler"]
    sys.modules.update({name: ModuleType(name) for name in names})
    base = OldScheduler if version == "0.11.0" else Scheduler
    time_of_all = clock or Clock()
    shared = {"version": version, "clock": time_of_all}
    vars(sys.modules[names[-2]])["Scheduler"] = type("Scheduler", (base,), shared)
    later = type("AsyncScheduler", (AsyncScheduler,), shared)
    vars(sys.modules[names[-1]])["AsyncScheduler"] = later
    sys.modules.pop("vllm_steps", None)
    if str(MEASURE) not in sys.path:
        sys.path.append(str(MEASURE))
    logger = importlib.import_module("vllm_steps")
    vars(logger)["time"] = time_of_all
    for name in names:
        del sys.modules[name]
    return logger


def cost_us(sequences: int, steps: int = 5000) -> float:
    """Microseconds that the logger adds to a step that decodes so many sequences: the median of
    steps of a scheduler that does nothing, with the logger and without."""
    logger = load_logger(clock=SimpleNamespace(now=0, monotonic=time.monotonic))
    nothing = {"schedule": lambda self: self.step, "update_from_output": lambda *_: None}
    vanilla = type("Nothing", (logger.AsyncScheduler,), nothing)
    taken = []
    for kind in (vanilla, type("Logged", (logger.Logged, vanilla), {})):
        scheduler = kind(vllm_config=config(True), kv_cache_config=kv_cache())
        for number in range(sequences):
            request = Request(f"cmpl-blis-1-{number}-0", [1] * 8, 9)
            request.num_computed_tokens = 500 + number
            scheduler.requests[request.request_id] = request
        scheduler.running = list(scheduler.requests.values())
        scheduler.step = scheduler.output(dict.fromkeys(scheduler.requests, 1), [], [])
        turns = []
        for _ in range(steps):
            begin = time.perf_counter()
            output = scheduler.schedule()
            scheduler.get_grammar_bitmask(output)
            scheduler.update_from_output(output, None)
            turns.append(time.perf_counter() - begin)
        taken.append(statistics.median(turns) * 1e6)
    return taken[1] - taken[0]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BLIS_STEPS"] = f"{folder}/steps.csv"
        for size in (1, 64, 256):
            print(f"{size:4} sequences: {cost_us(size):.1f} us a step")
