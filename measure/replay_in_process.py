"""Replays traces on vLLM's engine in this process, without HTTP and tokenizer.

    BLIS_STEPS=engine.csv python3 measure/replay_in_process.py MODEL runs chat20.jsonl chat40.jsonl

MODEL is a folder with a `config.json`; its weights are random. --engine sets vLLM's arguments, e.g.
`{"max_num_seqs": 256}`; an engine in process has other defaults than `vllm serve`. A part of the
first trace warms it up, and every trace begins with an empty prefix cache. Written are the files of
replay_trace.py: RUNS/chat20.requests.csv and so on.
"""
from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import time
from pathlib import Path
from typing import Any

from replay_trace import Replay, Request, ServerError, read_trace, summary, write


class InProcess(Replay):
    """A replay whose requests go to an AsyncLLM."""

    def __init__(self, requests: list[Request], engine: Any) -> None:
        super().__init__(requests, "", "")
        self.engine = engine

    async def answer(self, request: Request, message: Any) -> list[int]:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        how = SamplingParams(
            max_tokens=request.output_tokens, min_tokens=request.output_tokens, ignore_eos=True,
            temperature=0.0, detokenize=False, output_kind=RequestOutputKind.DELTA)
        tokens: list[int] = []
        async for part in self.engine.generate(message, how, f"blis-{self.run}-{request.number}"):
            request.last = time.monotonic()
            request.first = request.first or request.last
            tokens += part.outputs[0].token_ids
        if len(tokens) != request.output_tokens:
            raise ServerError(f"request {request.number} got {len(tokens)} tokens")
        return tokens

    def message(self, request: Request) -> Any:
        from vllm.inputs import TokensPrompt

        return TokensPrompt(prompt_token_ids=self.streams.prompt(request))


async def replay(engine: Any, trace: Path, log: Path, out: Path | None, limit: int | None) -> None:
    with trace.open() as lines:
        run = InProcess(read_trace(lines, limit), engine)
    await run.all()
    gc.unfreeze()
    # The log is flushed when the engine is idle.
    await asyncio.sleep(1.5)
    if out is not None:
        steps = run.join(log)
        write(run, steps, out / trace.stem, trace.stem)
        print(f"{trace.stem}: {summary(run, len(steps))}", flush=True)
    await engine.reset_prefix_cache()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path, help="folder of the files to write")
    parser.add_argument("traces", type=Path, nargs="+", help="traces in the native format")
    parser.add_argument("--engine", type=json.loads, default={}, help="arguments of vLLM's engine")
    given = parser.parse_args()

    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    settings = {"load_format": "dummy", "skip_tokenizer_init": True, "dtype": "bfloat16",
                "gpu_memory_utilization": 0.9, "block_size": 16, "disable_log_stats": True,
                "scheduler_cls": "vllm_steps.StepLog", **given.engine}
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=str(given.model), **settings))
    log = Path(os.environ.get("BLIS_STEPS", "vllm.steps.csv"))
    await replay(engine, given.traces[0], log, None, 150)
    for trace in given.traces:
        await replay(engine, trace, log, given.out, None)
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
