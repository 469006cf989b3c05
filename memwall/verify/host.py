"""The host's side: it starts workers, listens to them, and goes on where one has died."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import memwall
from memwall.errors import CannotVerify, shown
from memwall.verify import ncu
from memwall.verify.case import Trial
from memwall.verify.outcome import OK, Counters, Outcome, outcome_of_event

WORKER = (sys.executable, "-m", "memwall.verify.worker")
INSTALL = "pip install 'memwall[verify]' (CUDA 13) or 'memwall[verify-cuda12]'"


class Settings(NamedTuple):
    """How to run."""

    budget_s: float = 0.3
    """How long each trial is measured, warm-up not counted."""
    seed: int = 0
    limit_s: float = 180.0
    """A worker that is silent for so long is stopped."""
    worker: Sequence[str] = WORKER


class Worker:
    """A worker process, from its request to its end."""

    def __init__(self, command: Sequence[str], request: Mapping[str, Any], limit_s: float) -> None:
        self.ending = "crashed"
        """done, crashed or timed-out; valid once `events` has ended."""
        self._limit_s = limit_s
        self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints,
            text=True, encoding="utf-8", env=_environment(), start_new_session=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._last_words = ""
        asking = Thread(target=self._ask, args=(json.dumps(request),), daemon=True)
        self._threads = (Thread(target=self._listen, daemon=True), asking)
        for thread in self._threads:
            thread.start()

    def events(self) -> Iterator[dict[str, Any]]:
        """What the worker says, until it is done, silent for too long, or dead."""
        while True:
            try:
                line = self._lines.get(timeout=self._limit_s)
            except queue.Empty:
                self.ending = "timed-out"
                return
            if line is None:
                return
            event = json.loads(line)
            if event["event"] == "done":
                self.ending = "done"
                self._process.wait()
                return
            yield event

    def stop(self) -> None:
        """End the worker and what it started, and let go of its pipes."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join()
        if self._process.stdout:
            self._process.stdout.close()
        with self._complaints as file:
            file.seek(0)
            self._last_words = next((line.strip() for line in reversed(list(file)) if line.strip()), "")

    @property
    def complaint(self) -> str:
        """How it ended, once it is stopped: its silence, its signal, or its last line on stderr."""
        code = self._process.returncode
        if self.ending == "timed-out":
            return f"silent for {self._limit_s:g} s"
        if code < 0:
            return f"ended by {signal.Signals(-code).name}"
        return shown(self._last_words, 200) or f"exit code {code}"

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            if line.startswith("{"):  # ncu talks on the same pipe
                self._lines.put(line)
        self._lines.put(None)

    def _ask(self, request: str) -> None:
        try:
            with self._process.stdin as pipe:  # type: ignore[union-attr]
                pipe.write(request)
        except BrokenPipeError:
            pass  # it died at once; its silence says so


def check_libraries(instead: str) -> None:
    """See that what every kernel needs is installed, without importing it.

    Args:
        instead: the command that does without a GPU.

    Raises:
        CannotVerify: torch or triton is not.
    """
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        needs = f"the verifier needs {' and '.join(missing)}"
        raise CannotVerify(needs, f"{INSTALL}; without a GPU: {instead}")


def timed(trials: Sequence[Trial], settings: Settings) -> Iterator[Mapping[str, Any] | Outcome]:
    """Run the trials: first the machine, then the outcome of each, in order.

    Raises:
        CannotVerify: there is no GPU, or no worker lives long enough to begin.
    """
    told = False
    for event in _served(trials, "time", settings, settings.worker):
        if event["event"] == "machine":
            if not told:
                yield {key: value for key, value in event.items() if key != "event"}
            told = True
        elif event["event"] == "trial":
            yield outcome_of_event(trials[event["index"]], event)


def counted(trials: Sequence[Trial], settings: Settings) -> tuple[list[Counters | None], str]:
    """Count the bytes of one cold run of each trial; and what was missing, if not all could be.

    Counters are an extra: whatever fails here leaves them out and says why.
    """
    path = ncu.find()
    nothing: list[Counters | None] = [None] * len(trials)
    if path is None:
        return nothing, "ncu is not on the PATH: bytes are not counted. It comes with CUDA, as Nsight Compute"
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "ncu.csv")
        worker = ncu.command(path, log, settings.worker)
        try:
            events = list(_served(trials, "count", settings, worker))
        except CannotVerify as error:
            return nothing, f"bytes are not counted: {ncu.why_not(_text(log) + str(error))}"
        output = _text(log)
    done = [event["index"] for event in events if event["event"] == "trial" and event["status"] == OK]
    found = list(ncu.grouped(ncu.parse(output)))
    if len(found) != len(done):
        return nothing, f"bytes are not counted: {ncu.why_not(output)}"
    for index, counters in zip(done, found, strict=True):
        nothing[index] = counters
    return nothing, ""


def _served(
    trials: Sequence[Trial], mode: str, settings: Settings, command: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The events of as many workers as it takes; each trial has exactly one `trial` event."""
    first = 0
    while first < len(trials):
        request = {
            "mode": mode,
            "budget_s": settings.budget_s,
            "seed": settings.seed + first,
            "trials": [trial.record for trial in trials[first:]],
        }
        process = Worker(command, request, settings.limit_s)
        running: int | None = None
        reached = first
        try:
            for event in process.events():
                if event["event"] == "cannot":
                    raise CannotVerify(event["message"], INSTALL)
                if "index" in event:
                    event["index"] += first
                    running = event["index"] if event["event"] == "start" else None
                    reached = max(reached, event["index"] + (event["event"] == "trial"))
                yield event
        finally:
            process.stop()
        if process.ending == "done":
            return
        if running is not None:
            ending = {"status": process.ending, "message": process.complaint}
            yield {"event": "trial", "index": running, **ending}
            reached = running + 1
        elif reached == first:
            raise CannotVerify(f"the worker ended before its first trial: {process.complaint}", INSTALL)
        first = reached


def _environment() -> dict[str, str]:
    """The worker finds this memwall, wherever it is run from."""
    here = str(Path(memwall.__file__).parents[1])
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
