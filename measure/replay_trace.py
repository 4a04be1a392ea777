"""Replays a trace against a vLLM server in real time, and writes what `blis calibrate` reads.

    python3 measure/replay_trace.py chat.jsonl --steps server.csv --out runs/chat

The trace is in BLIS's own format (docs/workloads.md; `blis trace` converts others). Requests are
sent at their recorded times, rounds that follow up on an answer after it and their think time.
Prompts are token ids: those of a stream are drawn at random, other ones in every replay, and what
the server generates continues them. The server must generate all tokens that the trace asks for.

The server logs to the file of --steps with vllm_steps.py and has no other clients. It must be on
this machine, whose clock both use. Written are OUT.requests.csv, OUT.steps.csv (the steps of this
replay) and the line of OUT in engines.csv beside them. Standard library only, Python 3.10 or newer.
"""
from __future__ import annotations

import argparse
import asyncio
import csv
import gc
import json
import random
import resource
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEPS = ("start_us,duration_us,prefill_seqs,prefill_tokens,prefill_past_tokens,"
         "prefill_attention_pairs,decode_seqs,decode_context_sum,running_after,waiting_after,"
         "free_blocks_after,decode_longest,scheduled_us,schedule_us,launch_us,update_us").split(",")
ENGINE = ("max_num_scheduled_tokens,max_num_running_reqs,max_cudagraph_capture_size,"
          "cpu_blocks").split(",")
REQUESTS = ("request_id,arrival_us,session_id,round,prefix_group,prefix_tokens,input_tokens,"
            "output_tokens,scheduled_us,cached_tokens,ttft_us,e2e_us,preemptions,think_us").split(",")

# Token ids that are plain text in every usual vocabulary.
PLAIN = range(1000, 30000)

Prompt = list[tuple[str, int]]


@dataclass
class Request:
    """A line of the trace, and what became of it."""

    number: int
    # Seconds from the start; None: `think` seconds after the answer to `waits_for`.
    arrival: float | None
    think: float
    prompt: Prompt
    output_tokens: int
    output_stream: str
    # The request whose answer must be complete first.
    waits_for: Request | None = None
    # Whether a later prompt contains the answer.
    continued: bool = False
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    # Seconds of the monotonic clock.
    sent: float = 0.0
    first: float = 0.0
    last: float = 0.0
    # What the server logged.
    scheduled_us: float = 0.0
    cached_tokens: int = -1
    preemptions: int = 0

    def output_offset(self) -> int:
        """Where the answer begins in its stream."""
        return max((n for stream, n in self.prompt if stream == self.output_stream), default=0)


def read_trace(lines: Iterable[str], limit: int | None = None) -> list[Request]:
    """The first `limit` requests of a trace, each with the request it has to wait for."""
    requests: list[Request] = []
    writers: dict[str, Request] = {}
    for text in lines:
        line = json.loads(text)
        if "rows" in line:
            continue
        number = len(requests)
        if number == limit:
            break
        own = f"own {number}"
        request = Request(
            number=number,
            arrival=None if line.get("after") is not None else line["arrival_us"] / 1e6,
            think=(line.get("think_ms") or 0) / 1e3,
            prompt=[(str(stream), n) for stream, n in
                    line.get("prompt") or [(own, line["input_tokens"])] if n > 0],
            output_tokens=line["output_tokens"],
            output_stream=str(line.get("output_stream") or own),
        )
        for stream, n in request.prompt:
            writer = writers.get(stream)
            if writer is not None and n > writer.output_offset():
                writer.continued, request.waits_for = True, writer
        if request.arrival is None:
            request.waits_for = requests[-1]
        writers[request.output_stream] = request
        requests.append(request)
    return requests


class Streams:
    """The token ids of every stream. A stream is forgotten when no prompt needs it any more."""

    def __init__(self, requests: list[Request], salt: int) -> None:
        self.salt = salt
        self.needed = Counter(stream for request in requests for stream, _ in request.prompt)
        self.known: dict[str, tuple[random.Random, list[int]]] = {}

    def prompt(self, request: Request) -> list[int]:
        ids: list[int] = []
        for stream, n in request.prompt:
            dice, tokens = self.known.setdefault(
                stream, (random.Random(f"{self.salt} {stream}"), []))
            tokens += dice.choices(PLAIN, k=max(0, n - len(tokens)))
            ids += tokens[:n]
            self.needed[stream] -= 1
            if not self.needed[stream]:
                del self.known[stream]
        return ids

    def answered(self, request: Request, answer: list[int]) -> None:
        """The answer continues its stream, unless another prompt went on there already."""
        stream, offset = request.output_stream, request.output_offset()
        _, tokens = self.known.get(stream, (None, []))
        if len(tokens) == offset and self.needed[stream]:
            dice = random.Random(f"{self.salt} {stream} {offset}")
            self.known[stream] = (dice, tokens + answer)


class ServerError(Exception):
    """The server did not do what it was asked."""


class Answer(asyncio.Protocol):
    """One request over one connection, and the moments of its first and last bytes of answer."""

    def __init__(self, sent: bytes) -> None:
        self.sent = sent
        self.first: float | None = None
        self.last = 0.0
        self.received = bytearray()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.sent)

    def data_received(self, data: bytes) -> None:
        self.last = time.monotonic()
        self.received += data
        if self.first is None and b"data: {" in self.received:
            self.first = self.last

    def connection_lost(self, problem: Exception | None) -> None:
        if problem is not None:
            self.closed.set_exception(problem)
        else:
            self.closed.set_result(None)

    def events(self) -> list[bytes]:
        """The events of the stream, as JSON texts."""
        head, _, body = bytes(self.received).partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in head.lower():
            body = b"".join(chunks(body))
        if not head.startswith(b"HTTP/1.1 200 ") or self.first is None:
            raise ServerError((head.partition(b"\r\n")[0] + b" " + body[:500]).decode())
        return [line[6:] for line in body.splitlines() if line.startswith(b"data: {")]


def chunks(body: bytes) -> Iterable[bytes]:
    """The parts of a chunked body."""
    at = 0
    while (end := body.find(b"\r\n", at)) >= 0 and (size := int(body[at:end], 16)):
        yield body[end + 2:end + 2 + size]
        at = end + 4 + size


class Replay:
    """One replay of `requests` against the server at `url`."""

    def __init__(self, requests: list[Request], url: str, model: str, speed: float = 1.0) -> None:
        self.requests = requests
        self.url = urllib.parse.urlsplit(url)
        self.model = model
        self.speed = speed
        self.run = round(time.monotonic() * 1e6)
        self.streams = Streams(requests, self.run)
        # The start, in seconds of the monotonic clock.
        self.zero = 0.0

    def message(self, request: Request) -> Any:
        """The request as it goes over the wire."""
        body = json.dumps({
            "model": self.model,
            "prompt": self.streams.prompt(request),
            "max_tokens": request.output_tokens,
            "min_tokens": request.output_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            # Costs the server time: only where it must be known.
            "return_token_ids": request.continued,
        }).encode()
        head = (
            f"POST {self.url.path.rstrip('/')}/v1/completions HTTP/1.1\r\n"
            f"Host: {self.url.netloc}\r\nConnection: close\r\n"
            f"X-Request-Id: blis-{self.run}-{request.number}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def serve(self, request: Request, message: Any) -> None:
        """Sends the request when it is due, and waits for the answer."""
        due = self.zero + (request.arrival or 0.0) / self.speed
        if (before := request.waits_for) is not None:
            await before.finished.wait()
            due = before.last + request.think if request.arrival is None else due
        message = message or self.message(request)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        request.sent = time.monotonic()
        answer = await self.answer(request, message)
        if request.continued:
            self.streams.answered(request, answer)
        request.finished.set()

    async def answer(self, request: Request, message: Any) -> list[int]:
        """Sends the request and notes when its tokens came. Returns them, if they are continued."""
        secure = self.url.scheme == "https"
        _, answer = await asyncio.get_running_loop().create_connection(
            lambda: Answer(message), self.url.hostname or "127.0.0.1",
            self.url.port or (443 if secure else 80), ssl=secure or None)
        await answer.closed
        events = answer.events()
        generated = (json.loads(events[-1]).get("usage") or {}).get("completion_tokens")
        if generated != request.output_tokens:
            raise ServerError(f"request {request.number} asked for {request.output_tokens} tokens "
                              f"and got {generated}: {events[-1].decode()[:500]}")
        request.first, request.last = answer.first or 0.0, answer.last
        if not request.continued:
            return []
        choices = [choice for event in events for choice in json.loads(event)["choices"]]
        return [id for choice in choices for id in choice["token_ids"]]

    async def all(self) -> None:
        """Serves every request. The first failure ends the replay."""
        # What can be done before is, so that it delays nobody.
        ready = [self.message(request) if request.waits_for is None else None
                 for request in self.requests]
        gc.freeze()
        self.zero = time.monotonic() + 0.5
        await asyncio.gather(*map(self.serve, self.requests, ready))

    def micros(self, moment: float) -> int:
        """Microseconds from the start of the replay to a moment of the monotonic clock."""
        return round((moment - self.zero) * 1e6)

    def join(self, log: Path) -> list[dict[str, str]]:
        """Reads the server's log: tells the requests what it says of them, and returns the steps
        of this replay, with times from its start."""
        text = log.read_text()
        rows = list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))
        rows = [row for row in rows if float(row["scheduled_us"]) >= self.zero * 1e6]
        for row in rows:
            for column in ("start_us", "scheduled_us"):
                row[column] = str(round(float(row[column]) - self.zero * 1e6))
            for name in filter(None, row["new_requests"].split(";")):
                name, _, cached = name.partition(":")
                # A request that was preempted may be new again.
                if (request := self.named(name)) and request.cached_tokens < 0:
                    request.scheduled_us = float(row["scheduled_us"])
                    request.cached_tokens = int(cached)
            for name in filter(None, row["preempted_requests"].split(";")):
                if request := self.named(name):
                    request.preemptions += 1
        unseen = sum(request.cached_tokens < 0 for request in self.requests)
        if unseen:
            raise ServerError(f"{log}: no step scheduled {unseen} of the {len(self.requests)} "
                              "requests; is it the log of this server, on this machine?")
        return rows

    def named(self, name: str) -> Request | None:
        run, _, number = name.partition("-")
        return self.requests[int(number)] if int(run) == self.run else None


@dataclass
class Sharing:
    """What a requests file can say of a prompt: a prefix of a group, then the start of a session's
    one stream, or tokens of its own. -1: none."""

    session: int = -1
    round: int = 0
    group: int = -1
    prefix_tokens: int = 0


def sharing(requests: list[Request]) -> tuple[list[Sharing], int]:
    """How the prompts share tokens, and for how many of them that is more than can be said."""
    users = Counter(stream for request in requests for stream in {s for s, _ in request.prompt})
    sessions: dict[str, int] = {}
    rounds: Counter[str] = Counter()
    groups: dict[tuple[Any, ...], int] = {}
    said: list[Sharing] = []
    ways: dict[str, set[tuple[int, int]]] = {}
    for request in requests:
        last, _ = request.prompt[-1]
        own = last == request.output_stream or users[last] == 1
        prefix = request.prompt[:-1] if own else request.prompt
        way = Sharing(prefix_tokens=sum(n for _, n in prefix))
        if prefix:
            key = (*prefix[:-1], prefix[-1][0])
            way.group = groups.setdefault(key, len(groups))
        if own and users[last] > 1:
            way.session = sessions.setdefault(last, len(sessions))
            way.round = rounds[last]
            rounds[last] += 1
        said.append(way)
        begins = (way.group, -1) if prefix else (-1, way.session)
        ways.setdefault(request.prompt[0][0], set()).add(begins)
    lost = sum(len(ways[request.prompt[0][0]]) > 1 for request in requests)
    return said, lost


def write_rows(path: Path, columns: list[str], rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def write(replay: Replay, steps: list[dict[str, str]], out: Path, workload: str) -> None:
    """Writes the files of a run."""
    out.parent.mkdir(parents=True, exist_ok=True)
    columns = [column for column in STEPS if column in steps[0]]
    write_rows(Path(f"{out}.steps.csv"), columns, steps)
    ways, lost = sharing(replay.requests)
    if lost:
        print(f"{lost} requests share tokens in a way that a requests file cannot say; `blis "
              "validate` will expect fewer hits than the server had")
    write_rows(Path(f"{out}.requests.csv"), REQUESTS, (
        dict(zip(REQUESTS, (
            request.number, replay.micros(request.sent), way.session, way.round, way.group,
            way.prefix_tokens, sum(n for _, n in request.prompt), request.output_tokens,
            f"{request.scheduled_us:.0f}", request.cached_tokens,
            round((request.first - request.sent) * 1e6),
            round((request.last - request.sent) * 1e6), request.preemptions,
            "" if request.arrival is not None else round(request.think * 1e6))))
        for request, way in zip(replay.requests, ways)))
    engines = out.with_name("engines.csv")
    rows: list[dict[str, Any]] = []
    if engines.is_file():
        rows = [row for row in csv.DictReader(engines.open()) if row["run"] != out.name]
    rows.append({"run": out.name, "workload": workload, **steps[-1]})
    rows.sort(key=lambda row: str(row["run"]))
    write_rows(engines, ["run", "workload", *ENGINE], rows)


def summary(replay: Replay, steps: int) -> str:
    """What happened, in two lines."""
    def milliseconds(values: Iterable[float]) -> str:
        ordered = sorted(values)
        mean = sum(ordered) / len(ordered)
        p50, p99 = (ordered[int(q * (len(ordered) - 1))] for q in (0.5, 0.99))
        return f"mean {mean * 1e3:.1f}, p50 {p50 * 1e3:.1f}, p99 {p99 * 1e3:.1f} ms"

    requests = replay.requests
    late = max((request.sent - replay.zero - request.arrival / replay.speed for request in requests
                if request.arrival is not None and request.waits_for is None), default=0.0)
    return (f"{len(requests)} requests, {steps} steps, "
            f"{sum(request.preemptions for request in requests)} preemptions, "
            f"{sum(request.cached_tokens for request in requests)} cached tokens, "
            f"sent at most {late * 1e3:.1f} ms late\n"
            f"TTFT {milliseconds(request.first - request.sent for request in requests)}; "
            f"E2E {milliseconds(request.last - request.sent for request in requests)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace", type=Path, help="trace in the native format")
    parser.add_argument("--steps", type=Path, required=True, help="file the server logs to")
    parser.add_argument("--out", type=Path, required=True,
                        help="FOLDER/NAME of the files to write; NAME.repeat is a second run")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="[default: %(default)s]")
    parser.add_argument("--model", help="[default: the first one that the server lists]")
    parser.add_argument("--speed", type=float, default=1.0,
                        help="divide arrival times by this; 2 is twice the rate [default: 1]")
    parser.add_argument("--limit", type=int, help="stop after this many requests")
    given = parser.parse_args()
    with given.trace.open() as lines:
        requests = read_trace(lines, given.limit)
    model = given.model
    if model is None:
        with urllib.request.urlopen(given.url.rstrip("/") + "/v1/models") as answer:
            model = json.load(answer)["data"][0]["id"]
    # One connection a request.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    replay = Replay(requests, given.url, model, given.speed)
    try:
        asyncio.run(replay.all())
        steps = replay.join(given.steps)
    except (OSError, ServerError) as problem:
        raise SystemExit(f"replay_trace.py: {problem}") from problem
    # The same requests at another rate are another workload.
    workload = given.trace.stem + (f".x{given.speed:g}" if given.speed != 1.0 else "")
    write(replay, steps, given.out, workload)
    print(summary(replay, len(steps)))


if __name__ == "__main__":
    main()
