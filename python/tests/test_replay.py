"""The driver that replays a trace: against a fake server, and into `blis calibrate`."""

from __future__ import annotations

import asyncio
import csv
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command
from fake_vllm import Engine, Request, config, kv_cache, load_logger
from replay_trace import read_trace, sharing

DRIVER = ROOT / "measure" / "replay_trace.py"


class Clock:
    """The real time in microseconds. What takes a while in the fake engine is slept."""

    monotonic = staticmethod(time.monotonic)

    @property
    def now(self) -> int:
        return round(time.monotonic() * 1e6)

    @now.setter
    def now(self, moment: int) -> None:
        time.sleep(max(0.0, moment / 1e6 - time.monotonic()))


class Server:
    """An OpenAI server with one fake engine that logs its steps, in a thread."""

    def __init__(self) -> None:
        logger = load_logger(clock=Clock())
        self.scheduler = logger.StepLog(vllm_config=config(True), kv_cache_config=kv_cache())
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, asyncio.Queue[int]] = {}
        self.omit = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.port: int = asyncio.run_coroutine_threadsafe(self.start(), self.loop).result()

    async def start(self) -> int:
        self.arrived = asyncio.Event()
        self.engine = self.loop.create_task(self.steps())
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 20)
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    async def steps(self) -> None:
        engine = Engine(self.scheduler)
        engine.launch_us, engine.sample_us = 200, 0
        while True:
            if not (self.scheduler.has_requests() or engine.flying):
                self.arrived.clear()
                await self.arrived.wait()
            for request, token in engine.turn():
                self.answers[request.request_id].put_nowait(token)
            await asyncio.sleep(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = text.strip().split("\r\n")
        head = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        if first.startswith("GET /v1/models "):
            body = json.dumps({"data": [{"id": "fake"}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
        else:
            assert first == "POST /v1/completions HTTP/1.1"
            asked = json.loads(await reader.readexactly(int(head["content-length"])))
            await self.complete(asked, head["x-request-id"], writer)
        await writer.drain()
        writer.close()

    async def complete(self, asked: dict[str, Any], id: str, writer: asyncio.StreamWriter) -> None:
        """Streams as vLLM does: an event a chunk, the usage, and the end."""
        if asked["model"] != "fake":
            writer.write(b"HTTP/1.1 404 Not Found\r\n\r\n" + b'{"error": "no such model"}')
            return
        self.requests.append({"id": id, "at": time.monotonic(), **asked})
        request = Request(f"cmpl-{id}-0-1a2b3c4d", asked["prompt"], asked["max_tokens"])
        queue = self.answers[request.request_id] = asyncio.Queue()
        self.scheduler.add_request(request)
        self.arrived.set()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

        def send(event: str) -> None:
            data = f"data: {event}\n\n".encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))

        for _ in range(request.max_tokens):
            choice: dict[str, Any] = {"index": 0, "text": " data: {"}
            token = await queue.get()
            if asked["return_token_ids"]:
                choice["token_ids"] = [token]
            send(json.dumps({"choices": [choice]}))
        usage = {"completion_tokens": request.max_tokens - self.omit}
        send(json.dumps({"choices": [], "usage": usage}))
        send("[DONE]")
        writer.write(b"0\r\n\r\n")

    async def stop(self) -> None:
        self.engine.cancel()
        self.server.close()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.stop(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("BLIS_STEPS", str(tmp_path / "server.csv"))
    server = Server()
    yield server
    server.close()


def replayed(
    server: Server, folder: Path, trace: list[dict[str, Any]], *flags: str, name: str = "chat"
) -> str:
    """What the driver prints."""
    file = folder / "chat.jsonl"
    file.write_text("\n".join(map(json.dumps, trace)))
    command = [sys.executable, str(DRIVER), str(file), "--url", f"http://127.0.0.1:{server.port}"]
    command += ["--steps", str(folder / "server.csv"), "--out", str(folder / "runs" / name), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout


def written(folder: Path, file: str) -> list[dict[str, str]]:
    with (folder / "runs" / file).open() as lines:
        return list(csv.DictReader(lines))


def mixed(count: int, gap_us: int = 5_000) -> list[dict[str, Any]]:
    """Requests that share a prefix, and conversations of two rounds, by turns."""
    trace: list[dict[str, Any]] = []
    for n in range(0, count, 3):
        arrival = {"arrival_us": n * gap_us}
        prompt = [["sys", 64], [f"r{n}", 30 + n]]
        trace.append({**arrival, "prompt": prompt, "output_tokens": 9 + n % 7})
        talk = {"session": f"s{n}", "output_stream": f"s{n}", "output_tokens": 10}
        trace.append({**arrival, **talk, "id": f"a{n}", "prompt": [[f"s{n}", 40]], "round": 0})
        follow = {"after": f"a{n}", "think_ms": 20, "prompt": [[f"s{n}", 80]], "round": 1}
        trace.append({**talk, **follow})
    return [{"rows": len(trace)}, *trace]


def test_calibrate_and_validate_read_what_a_replay_writes(
    server: Server, tmp_path: Path, command: Command
) -> None:
    printed = replayed(server, tmp_path, mixed(150))
    assert printed.startswith("150 requests, ")
    runs = str(tmp_path / "runs")
    (row,) = written(tmp_path, "engines.csv")
    assert list(row.values()) == ["chat", "chat", "2048", "256", "512", "64"]
    # Servers with a CPU tier are not fitted to; and the fake has too few steps for a fit of its own.
    engines = tmp_path / "runs" / "engines.csv"
    engines.write_text(engines.read_text().replace(",512,64", ",512,0"))
    real = [f"data/vllm/{name}.steps.csv" for name in ("independent15", "multiturn8")]
    fit = json.loads(command("calibrate", *real, runs, "--format", "json"))
    assert "chat" in {error["run"] for error in fit["errors"]}
    profile = ["--profile", "h200-vllm-0.26-llama-3.1-8b", "--resamples", "0"]
    (run,) = json.loads(command("validate", runs, *profile, "--format", "json"))["workloads"]
    assert (run["workload"], run["requests"]) == ("chat", 150)
    # Of two that arrive together either may be the first.
    assert run["cached_equal"] > 0.9, "prompts share what the file says"


def test_the_requests_file_says_what_client_and_server_saw(server: Server, tmp_path: Path) -> None:
    replayed(server, tmp_path, mixed(9))
    rows = written(tmp_path, "chat.requests.csv")
    said = [tuple(int(value) for value in list(row.values())[2:8]) for row in rows]
    # session, round, group, prefix, input, output
    assert said[:3] == [(-1, 0, 0, 64, 94, 9), (0, 0, -1, 0, 40, 10), (0, 1, -1, 0, 80, 10)]
    assert said[3:6] == [(-1, 0, 0, 64, 97, 12), (1, 0, -1, 0, 40, 10), (1, 1, -1, 0, 80, 10)]
    cached = [int(row["cached_tokens"]) for row in rows]
    assert sorted(cached[::3]) == [0, 64, 64], "one has to compute the prefix"
    assert cached[1::3] == [0, 0, 0]
    assert cached[2::3] == [48, 48, 48], "three full blocks of 40 + 10 - 1 computed tokens"
    steps = {row["scheduled_us"] for row in written(tmp_path, "chat.steps.csv")}
    for row in rows:
        assert row["scheduled_us"] in steps
        assert int(row["arrival_us"]) <= int(row["scheduled_us"])
        assert 0 < int(row["ttft_us"]) <= int(row["e2e_us"])


def test_a_round_follows_its_answer_after_the_think_time_and_contains_it(
    server: Server, tmp_path: Path
) -> None:
    replayed(server, tmp_path, mixed(3))
    _, asked, follow = sorted(server.requests, key=lambda one: str(one["id"]))
    assert follow["prompt"][:40] == asked["prompt"]
    assert follow["prompt"][40:50] == list(range(2000, 2010)), "what the fake generates"
    assert follow["at"] >= asked["at"] + 0.02
    assert asked["return_token_ids"] and not follow["return_token_ids"]
    for one in server.requests:
        assert one["ignore_eos"] and one["min_tokens"] == one["max_tokens"]


def test_rounds_with_times_of_their_own_wait_for_the_answer_too(
    server: Server, tmp_path: Path
) -> None:
    rounds = [{"arrival_us": n, "prompt": [["s", 32 + 64 * n]], "output_tokens": 32,
               "output_stream": "s"} for n in range(3)]
    replayed(server, tmp_path, rounds)
    rows = written(tmp_path, "chat.requests.csv")
    assert [int(row["cached_tokens"]) for row in rows] == [0, 48, 112]
    ends = [int(row["arrival_us"]) + int(row["e2e_us"]) for row in rows]
    assert ends[0] <= int(rows[1]["arrival_us"]) and ends[1] <= int(rows[2]["arrival_us"])


def test_every_replay_has_new_tokens_and_only_its_own_steps(
    server: Server, tmp_path: Path
) -> None:
    for name in ("chat", "chat.repeat"):
        replayed(server, tmp_path, mixed(9), name=name)
    first, second = (written(tmp_path, f"{name}.requests.csv") for name in ("chat", "chat.repeat"))
    hits = [sorted(int(row["cached_tokens"]) for row in rows) for rows in (first, second)]
    assert hits[0] == hits[1]
    with (tmp_path / "server.csv").open() as log:
        logged = sum(1 for _ in log) - 1
    parts = [written(tmp_path, f"{name}.steps.csv") for name in ("chat", "chat.repeat")]
    assert logged == len(parts[0]) + len(parts[1])
    assert [row["workload"] for row in written(tmp_path, "engines.csv")] == ["chat", "chat"]


def test_speed_and_limit_cut_a_replay(server: Server, tmp_path: Path) -> None:
    replayed(server, tmp_path, mixed(30, gap_us=40_000), "--speed", "4", "--limit", "13")
    rows = written(tmp_path, "chat.requests.csv")
    assert len(rows) == 13
    assert 120_000 <= int(rows[-1]["arrival_us"]) < 480_000
    assert [row["workload"] for row in written(tmp_path, "engines.csv")] == ["chat.x4"]


def test_a_server_that_does_not_serve_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="404 Not Found .*no such model"):
        replayed(server, tmp_path, mixed(3), "--model", "other")
    server.omit = 2
    with pytest.raises(ValueError, match=r"request \d asked for (9|10) tokens and got (7|8)"):
        replayed(server, tmp_path, mixed(3))
    server.omit = 0
    (tmp_path / "old.csv").write_text((tmp_path / "server.csv").read_text())
    with pytest.raises(ValueError, match="no step scheduled 3 of the 3 requests"):
        replayed(server, tmp_path, mixed(3), "--steps", str(tmp_path / "old.csv"))


@pytest.mark.parametrize("workload", ["orthogonal-slo", "rag-4096", "saas-150x6000", "multidoc"])
def test_a_requests_file_has_the_sharing_of_its_trace(
    workload: str, tmp_path: Path, command: Command
) -> None:
    trace = tmp_path / "trace.jsonl"
    wanted = ["--workload", workload, "--num-requests", "60", "--rate", "20"]
    command("trace", "generate", *wanted, "--out", str(trace), "--quiet")
    requests = read_trace(trace.read_text().splitlines())
    ways, lost = sharing(requests)
    assert not lost
    lines = ["request_id,arrival_us,session_id,round,prefix_group,prefix_tokens,input_tokens,"
             "output_tokens"]
    for request, way in zip(requests, ways, strict=True):
        assert request.arrival is not None
        tokens = sum(n for _, n in request.prompt)
        lines.append(f"{request.number},{request.arrival * 1e6:.0f},{way.session},{way.round},"
                     f"{way.group},{way.prefix_tokens},{tokens},{request.output_tokens}")
    table = tmp_path / "trace.requests.csv"
    table.write_text("\n".join(lines) + "\n")
    hits = []
    for file in (trace, table):
        run = command("run", "--trace", str(file), "--format", "json", "--quiet")
        hits.append(json.loads(run)["kv"]["cached_tokens"])
    assert hits[0] == hits[1]


def test_prompts_that_share_more_than_can_be_said_are_counted() -> None:
    def line(*prompt: tuple[str, int]) -> str:
        return json.dumps({"arrival_us": 0, "prompt": prompt, "output_tokens": 1})

    lines = [line(("a", 64), ("b", 64), ("x", 1)), line(("a", 64), ("c", 64), ("y", 1)),
             line(("d", 64), ("z", 1)), line(("d", 32), ("w", 1))]
    ways, lost = sharing(read_trace(lines))
    assert lost == 2
    groups = [(way.group, way.prefix_tokens) for way in ways]
    assert groups == [(0, 128), (1, 128), (2, 64), (2, 32)]
