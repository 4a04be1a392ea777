"""A scheduler for vLLM that logs every step: what it computed, and when. For `blis calibrate`.

    BLIS_STEPS=server.csv PYTHONPATH=measure vllm serve MODEL --scheduler-cls vllm_steps.StepLog

Copy this one file to the server; it needs vLLM 0.11 or newer and nothing else. It decides nothing:
vLLM's own scheduler does, the asynchronous or the synchronous one, as the server is set.

$BLIS_STEPS gets a row per step: the columns of data/vllm/README.md, how the engine is set (the
columns of data/vllm/engines.csv), and which requests of replay_trace.py were sent to the workers as
new, with their cached tokens, or preempted. Requests of other clients are only counted; no prompt,
token or text is written. Times are microseconds of the machine's monotonic clock. With data
parallelism every engine writes a file of its own: server.0.csv, server.1.csv, ...

vLLM 0.11.0 launches and samples in one call, so its rows lack `launch_us`, and with
--async-scheduling it ignores --scheduler-cls.
"""
import inspect
import os
import re
import time

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

STEP = ("start_us,duration_us,prefill_seqs,prefill_tokens,prefill_past_tokens,"
        "prefill_attention_pairs,decode_seqs,decode_context_sum,running_after,waiting_after,"
        "free_blocks_after,decode_longest,scheduled_us,schedule_us,launch_us,update_us")
ENGINE = ",max_num_scheduled_tokens,max_num_running_reqs,max_cudagraph_capture_size,cpu_blocks"
REQUESTS = ",new_requests,preempted_requests"

# How replay_trace.py names its requests: `blis-RUN-NUMBER`, to which vLLM adds what it likes.
NAMED = re.compile(r"blis-(\d+-\d+)")


class Logged:
    """What is added to a scheduler. A step is logged when its output has been processed."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # The steps in flight, by the identity of their SchedulerOutput.
        self._flying = {}
        self._preempted = []
        self._last_end = self._flushed = 0.0
        launch = inspect.signature(super().get_grammar_bitmask).parameters
        self._sees_launch = "scheduler_output" in launch
        self._engine = f",{engine_settings(self)}"
        self._log = open(log_path(self.vllm_config.parallel_config), "w", buffering=1 << 20)
        step = STEP if self._sees_launch else STEP.replace(",launch_us", "")
        self._log.write(step + ENGINE + REQUESTS + "\n")

    def schedule(self, *args, **kwargs):
        begin = time.monotonic()
        output = super().schedule(*args, **kwargs)
        end = time.monotonic()
        self._preempted += preempted(output)
        if output.num_scheduled_tokens:
            shape = step_shape(self.requests, output.num_scheduled_tokens)
            new = [f"{name}:{data.num_computed_tokens}" for data in output.scheduled_new_reqs
                   if (name := named(data.req_id))]
            names = f",{';'.join(new)},{';'.join(self._preempted)}\n"
            self._preempted = []
            # The launch begins now: what was counted above is the time of neither.
            self._flying[id(output)] = [begin, end, shape, names, time.monotonic(), None]
        return output

    def get_grammar_bitmask(self, scheduler_output, *args, **kwargs):
        # The engine asks for it when the model is launched, before it samples.
        step = self._flying.get(id(scheduler_output))
        if step is not None and step[5] is None:
            step[5] = time.monotonic()
        return super().get_grammar_bitmask(scheduler_output, *args, **kwargs)

    def update_from_output(self, scheduler_output, *args, **kwargs):
        at_hand = time.monotonic()
        result = super().update_from_output(scheduler_output, *args, **kwargs)
        updated = time.monotonic()
        step = self._flying.pop(id(scheduler_output), None)
        if step is None:
            return result
        begin, end, shape, names, launch, launched = step
        start = max(begin, self._last_end)
        self._last_end = at_hand
        running, waiting = self.get_request_counts()
        free = self.kv_cache_manager.block_pool.get_num_free_blocks()
        sampled = f",{((launched or launch) - launch) * 1e6:.0f}" if self._sees_launch else ""
        row = (f"{start * 1e6:.0f},{(at_hand - start) * 1e6:.0f},{shape[0]},{shape[1]},{shape[2]},"
               f"{shape[3]},{shape[4]},{shape[5]},{running},{waiting},{free},{shape[6]},"
               f"{begin * 1e6:.0f},{(end - begin) * 1e6:.0f}{sampled},"
               f"{(updated - at_hand) * 1e6:.0f}")
        self._log.write(row + self._engine + names)
        # Whoever waited for the last answer finds all steps in the file.
        if updated > self._flushed + 1.0 or not running + waiting:
            self._log.flush()
            self._flushed = updated
        return result

    def shutdown(self):
        self._log.close()
        super().shutdown()


class SyncStepLog(Logged, Scheduler):
    """Logs the steps of the synchronous scheduler."""


class StepLog(Logged, AsyncScheduler):
    """Logs the steps of the scheduler that vLLM would have taken."""

    def __new__(cls, *args, **kwargs):
        config = kwargs["vllm_config"] if "vllm_config" in kwargs else args[0]
        if config.scheduler_config.async_scheduling:
            return super().__new__(cls)
        return SyncStepLog(*args, **kwargs)


def step_shape(requests, scheduled):
    """What a step computes, after `schedule()` has counted its tokens as computed: sequences,
    tokens, past tokens and attention pairs of prefill; sequences, context and longest of decode.
    """
    prefills = tokens = pasts = pairs = decodes = context = longest = 0
    for name, count in scheduled.items():
        request = requests[name]
        computed = request.num_computed_tokens
        if count == 1 and computed > request.num_prompt_tokens:
            decodes += 1
            context += computed
            if computed > longest:
                longest = computed
        else:
            past = computed - count
            prefills += 1
            tokens += count
            pasts += past
            pairs += count * past + count * (count + 1) // 2
    return prefills, tokens, pasts, pairs, decodes, context, longest


def named(request_id):
    """What replay_trace.py calls the request; None if it is of another client."""
    found = NAMED.search(request_id)
    return found and found[1]


def preempted(output):
    """The requests of replay_trace.py that were preempted. Before 0.12.0 vLLM does not say so:
    there it is those that come back."""
    if hasattr(output, "preempted_req_ids"):
        ids = output.preempted_req_ids or ()
    elif hasattr(output.scheduled_cached_reqs, "resumed_req_ids"):
        ids = output.scheduled_cached_reqs.resumed_req_ids
    else:
        cached = output.scheduled_cached_reqs
        ids = [name for name, back in zip(cached.req_ids, cached.resumed_from_preemption) if back]
    return sorted(name for one in ids if (name := named(one)))


def engine_settings(scheduler):
    """The values of the columns ENGINE."""
    config = scheduler.vllm_config
    graphs = config.compilation_config
    # 0.11.0 has the older name.
    largest = getattr(graphs, "max_cudagraph_capture_size", None)
    largest = getattr(graphs, "max_capture_size", None) if largest is None else largest
    tokens, requests = scheduler.max_num_scheduled_tokens, scheduler.max_num_running_reqs
    return f"{tokens},{requests},{largest or 0},{cpu_blocks(config, scheduler.kv_cache_config)}"


def cpu_blocks(config, kv_cache_config):
    """KV blocks of vLLM's CPU tier, 0 without one: a number in older versions, bytes in newer."""
    extra = getattr(config.kv_transfer_config, "kv_connector_extra_config", None) or {}
    block = sum(tensor.size for tensor in kv_cache_config.kv_cache_tensors)
    block = max(block // max(kv_cache_config.num_blocks, 1), 1)
    if "kv_bytes_per_rank" in extra:
        return int(extra["kv_bytes_per_rank"]) // block
    whole = block * config.parallel_config.world_size
    return int(extra.get("num_cpu_blocks") or int(extra.get("cpu_bytes_to_use", 0)) // whole)


def log_path(parallel_config):
    """The file to write: that of $BLIS_STEPS, one for each engine."""
    path = os.environ.get("BLIS_STEPS", "vllm.steps.csv")
    if parallel_config.data_parallel_size < 2:
        return path
    root, ending = os.path.splitext(path)
    return f"{root}.{parallel_config.data_parallel_rank}{ending}"
