"""What runs on the machine that asks: it sends trials away and keeps what comes back."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import BlisError, InternalError, ScenarioError
from .worker import Luggage, run_batch

__all__ = ["Driver", "Progress"]

Trial = tuple[str, str]

RETRIES = 3
"""How often a batch is sent again after its worker died, before Ray gives up on it."""
RESUBMISSIONS = 3
"""How often it is sent anew after that, e.g. because the node with its arguments is gone."""
BATCH_SECONDS = 1.0
"""About how long a batch should take: long beside what Ray costs, short beside a lost worker."""
LARGEST_BATCH = 256
AHEAD = 2
"""Batches for each core of the cluster that are under way or wait there."""
POLL_SECONDS = 0.2
STOPPED_POLLS = 150
"""After so many polls, half a minute, another process that has not moved has stopped."""
CORES_SECONDS = 5.0
"""How often the cores of the cluster are counted."""


@dataclass(frozen=True)
class Progress:
    """How far a study or search is."""

    finished: int
    """Trials that came back since it was begun."""
    expected: int
    """Trials that are known to be needed, those that came back included."""
    round: int
    """Which round this is, from 1: what is needed next depends on what came back."""
    lost: int
    """Batches that were sent anew because they were lost."""


@dataclass
class _Sent:
    """A batch that is under way."""

    trials: list[Trial]
    times: int = 1


class Driver:
    """Sends what is missing away and keeps what comes back, round by round."""

    def __init__(
        self,
        engine: Any,
        rounds: _core.Rounds,
        batch: int | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.engine = engine
        self.rounds = rounds
        self.fixed = batch
        self.size = batch or 1
        self.tell = progress
        self.task = engine.remote(run_batch).options(
            max_retries=RETRIES, num_cpus=1, scheduling_strategy="SPREAD"
        )
        self.sent: dict[Any, _Sent] = {}
        self.luggage: dict[str, Luggage] = {}
        self.by_scenario: dict[str, Luggage | None] = {}
        self.cores = 1
        self.counted = -CORES_SECONDS
        self.finished = 0
        self.expected = 0
        self.round = 0
        self.lost = 0

    def go(self) -> None:
        """Until nothing is missing."""
        try:
            while needed := self.rounds.needed():
                self.round += 1
                self.expected = self.finished + len(needed)
                self._show()
                self._run_round(deque(needed))
        except BaseException:
            self._give_up()
            raise

    def _run_round(self, open_: deque[Trial]) -> None:
        waiting: list[Trial] = []
        while open_ or self.sent or waiting:
            if not open_ and not self.sent:
                # What is left is being run by another process that shares the ledger.
                time.sleep(POLL_SECONDS)
                if taken := self.rounds.take_over(STOPPED_POLLS):
                    text = "another process on this ledger has stopped; its runs are run here: "
                    warnings.warn(text + str(taken), RuntimeWarning, stacklevel=2)
                open_.extend(waiting)
                waiting.clear()
            self._fill(open_, waiting)
            if self.sent:
                self._collect()

    def _fill(self, open_: deque[Trial], waiting: list[Trial]) -> None:
        """Sends batches until the cluster has enough to do for a while."""
        cores = self._cores()
        while open_ and len(self.sent) < AHEAD * cores:
            # The last ones are shared out, so that no core waits for another.
            share = -(-len(open_) // cores)
            size = self.size if self.fixed else max(1, min(self.size, share))
            batch: list[Trial] = []
            luggage = self._luggage(open_[0][1])
            while open_ and len(batch) < size and self._luggage(open_[0][1]) is luggage:
                batch.append(open_.popleft())
            self._send(batch, luggage, waiting)

    def _cores(self) -> int:
        """How many cores the cluster has by now; it may grow and shrink."""
        now = time.monotonic()
        if now >= self.counted + CORES_SECONDS:
            self.counted = now
            self.cores = max(1, int(self.engine.cluster_resources().get("CPU", 1)))
        return self.cores

    def _send(self, batch: list[Trial], luggage: Luggage | None, waiting: list[Trial]) -> None:
        claims = self.rounds.claim([key for key, _ in batch])
        ours = [trial for trial, claim in zip(batch, claims, strict=True) if claim == "ours"]
        waiting.extend(trial for trial, claim in zip(batch, claims, strict=True) if claim == "taken")
        self.expected -= claims.count("finished")
        if ours:
            self._submit(_Sent(ours), luggage)

    def _submit(self, sent: _Sent, luggage: Luggage | None) -> None:
        documents = [document for _, document in sent.trials]
        self.sent[self.task.remote(_core.CODE, documents, luggage)] = sent

    def _collect(self) -> None:
        """Keeps what has come back; waits for something if nothing has."""
        # All that is there by now, not one at a time: asking costs as much as an answer.
        ready, _ = self.engine.wait(list(self.sent), timeout=POLL_SECONDS)
        more, _ = self.engine.wait(list(self.sent), num_returns=len(self.sent), timeout=0)
        for reference in dict.fromkeys([*ready, *more]):
            self._take(reference)
        if ready:
            self._show()

    def _take(self, reference: Any) -> None:
        """Keeps a batch that has come back, or sends it again if it is lost."""
        sent = self.sent[reference]
        exceptions = self.engine.exceptions
        lost = (
            exceptions.WorkerCrashedError,
            exceptions.ObjectLostError,
            exceptions.NodeDiedError,
            exceptions.OutOfMemoryError,
        )
        try:
            rows, seconds = self.engine.get(reference)
        except lost as error:
            if sent.times > RESUBMISSIONS:
                keys = ", ".join(key for key, _ in sent.trials[:3])
                message = f"a batch was lost {sent.times} times (trials {keys}, ...): {error}"
                raise InternalError(message) from error
            self.lost += 1
            del self.sent[reference]
            self._submit(_Sent(sent.trials, sent.times + 1), self._luggage(sent.trials[0][1]))
            return
        except exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, (BlisError, RuntimeError)):
                raise cause from None
            raise
        self._keep(sent, rows)
        del self.sent[reference]
        if self.fixed is None:
            self._fit(seconds / len(rows))

    def _keep(self, sent: _Sent, rows: list[str]) -> None:
        documents = [document for _, document in sent.trials]
        self.rounds.keep(list(zip(documents, rows, strict=True)))
        self.finished += len(rows)

    def _fit(self, seconds: float) -> None:
        """Lets batches take about `BATCH_SECONDS`, growing at most twofold at a time."""
        wanted = int(BATCH_SECONDS / max(seconds, 1e-6))
        self.size = max(1, min(wanted, 2 * self.size, LARGEST_BATCH))

    def _luggage(self, document: str) -> Luggage | None:
        """The files that a trial names, as they travel; `None` if it names none."""
        scenario = document.rsplit('"seed":', 1)[0]
        if scenario not in self.by_scenario:
            self.by_scenario[scenario] = self._pack(document)
        return self.by_scenario[scenario]

    def _pack(self, document: str) -> Luggage | None:
        named = [str(path) for path in self.rounds.files(document)]
        if not named:
            return None
        inside = [path for path in named if json.dumps(path, ensure_ascii=False) in document]
        folders = tuple(os.path.join(os.path.dirname(path), "") for path in inside)
        for path in named:
            if path not in inside and not path.startswith(folders):
                message = (
                    f"`{path}` is named by an absolute path inside another file, and cannot "
                    "travel; name it relative to that file"
                )
                raise ScenarioError(message, message=message)
        files = {path: Path(path).read_bytes() for path in named}
        digest = sha256()
        for path, content in files.items():
            digest.update(f"{len(path)} {path} {len(content)} ".encode())
            digest.update(content)
        name = digest.hexdigest()
        if name not in self.luggage:
            self.luggage[name] = (name, inside, self.engine.put(files))
        return self.luggage[name]

    def _give_up(self) -> None:
        """Keeps what has come back already, and leaves the rest for the next time."""
        ready, pending = [], []
        try:
            if self.sent:
                ready, pending = self.engine.wait(
                    list(self.sent), num_returns=len(self.sent), timeout=0
                )
            for reference in pending:
                self.engine.cancel(reference, force=True)
            for reference in ready:
                rows, _ = self.engine.get(reference, timeout=1)
                self._keep(self.sent[reference], rows)
                del self.sent[reference]
        except Exception:  # noqa: BLE001
            # What matters is why it stopped. What is not kept is run again.
            pass
        self.rounds.release([key for sent in self.sent.values() for key, _ in sent.trials])
        self.sent.clear()
        self._show()

    def _show(self) -> None:
        if self.tell is not None:
            self.tell(Progress(self.finished, self.expected, self.round, self.lost))
