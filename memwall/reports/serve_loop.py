"""Users who ask again and again, and an engine that answers them: what happens, from event to event.

Every user sends a request, waits for its answer, and sends the next at once. A request is its prompt, read in
a pass that also makes its first token, and a step for each token after it. Each step makes a token of
everyone who runs, so that all are at one place on a common axis of steps: a request that joins at step K and
has osl tokens leaves at K + osl - 1, and the loop leaps to the next of such steps, or to the next arrival.

Prompts are read

    first           no token is made while a prompt waits (SGLang)
    in the steps    a pass reads prompts and makes everyone's next token (vLLM, TensorRT-LLM)

Units: seconds, tokens, steps. Deterministic: lengths that are spread follow a low-discrepancy sequence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

GOLDEN, PLASTIC = 0.6180339887498949, 0.7548776662466927
"""Steps of two additive recurrences: the answers' lengths and the prompts'. Source: Roberts, The unreasonable
effectiveness of quasirandom sequences: 1 / the golden ratio, 1 / the plastic number."""


class Times(Protocol):
    """How long an engine's passes take."""

    def step_s(self, running: int, context: float) -> float:
        """A token for each who runs, at a mean context."""

    def read_s(self, tokens: int) -> float:
        """Prompts alone."""

    def mixed_s(self, running: int, context: float, tokens: int) -> float:
        """Both in one pass."""


class Demand(NamedTuple):
    """What is asked of the server."""

    users: int
    """Requests in flight (concurrency)."""
    isl: int
    """Tokens of a prompt, at most."""
    osl: int
    """Tokens of an answer, at most."""
    rounds: int
    """Requests of each user, the first of which come all at once."""
    spread: float = 1
    """Lengths are even from this part of isl and osl up; 1: all are alike."""


class Rules(NamedTuple):
    """How an engine schedules."""

    slots: int
    """Requests that it runs at once: by memory, or by order."""
    limit: int
    """Tokens of prompts in a pass, at most."""
    start_s: float = 0
    """From a user's sending to the engine, and with the first token back."""
    prefill_first: bool = False
    ahead: int = 0
    """Steps by which a request waits after it has come, because they are scheduled already."""
    poll: int = 1
    """Steps between looks for new requests."""
    hold: int = 0
    """Steps more that the first who waits is held, so that others join it."""


class Request(NamedTuple):
    """One prompt and its answer."""

    number: int
    sent_s: float
    isl: int
    osl: int


class Outcome(NamedTuple):
    """What the users have seen, a value for each request."""

    ttft_s: Sequence[float]
    tpot_s: Sequence[float]
    """Of those with more than one token."""
    request_s: Sequence[float]
    queue_s: Sequence[float]
    """Waiting for a slot alone."""
    read_tokens: int
    made_tokens: int
    """The first of each answer included."""
    end_s: float


class Loop:
    """The closed loop."""

    def __init__(self, times: Times, demand: Demand, rules: Rules) -> None:
        self.times, self.demand, self.rules = times, demand, rules
        self.now_s = 0.0
        self.step = self.passes = self.since = self.sent = self.active = 0
        self.contexts = 0  # of those who run, summed, less step for each of them
        self.coming: list[tuple[float, Request]] = []
        self.came: deque[tuple[int, Request]] = deque()
        self.waiting: deque[tuple[float, Request]] = deque()
        self.admitted: deque[Request] = deque()
        self.unread = 0  # tokens of the first of the admitted, once it is begun
        self.running: list[tuple[int, int, float, Request]] = []
        self.ttft_s: list[float] = []
        self.tpot_s: list[float] = []
        self.request_s: list[float] = []
        self.queue_s: list[float] = []
        self.read_tokens = self.made_tokens = 0

    def run(self) -> Outcome:
        """All rounds of all users."""
        for _ in range(self.demand.users):
            self._send()
        while self.coming or self.came or self.waiting or self.admitted or self.running:
            self._receive()
            self._admit()
            if self.admitted:
                self._read()
            elif self.running:
                self._decode()
        return Outcome(
            self.ttft_s, self.tpot_s, self.request_s, self.queue_s,
            self.read_tokens, self.made_tokens, self.now_s,
        )  # fmt: skip

    @property
    def context(self) -> float:
        """Mean context of those who run [tokens]."""
        return self.contexts / len(self.running) + self.step if self.running else 0

    def _send(self) -> None:
        d = self.demand
        if self.sent == d.users * d.rounds:
            return
        isl, osl = self._lengths(self.sent)
        heappush(self.coming, (self.now_s + self.rules.start_s, Request(self.sent, self.now_s, isl, osl)))
        self.sent += 1

    def _lengths(self, number: int) -> tuple[int, int]:
        d = self.demand
        if d.spread == 1:
            return d.isl, d.osl
        parts = [d.spread + (1 - d.spread) * ((number + 1) * each % 1) for each in (PLASTIC, GOLDEN)]
        return max(1, round(d.isl * parts[0])), max(1, round(d.osl * parts[1]))

    def _receive(self) -> None:
        """Requests that have come are seen at every look; after a pause, at once."""
        if not (self.running or self.admitted or self.waiting or self.came):
            self.now_s = max(self.now_s, self.coming[0][0])
            self.since = self.rules.poll
        if self.since >= self.rules.poll or not self.running:
            while self.coming and self.coming[0][0] <= self.now_s:
                self.came.append((self.passes, heappop(self.coming)[1]))
            self.since = 0

    def _admit(self) -> None:
        """Those whose turn it is, as far as there are slots."""
        idle = not (self.running or self.admitted)
        if idle or (self.came and self._due() <= self.passes):
            while self.came and (idle or self.came[0][0] + self.rules.ahead <= self.passes):
                self.waiting.append((self.now_s, self.came.popleft()[1]))
        while self.waiting and self.active < self.rules.slots:
            due_s, request = self.waiting.popleft()
            self.queue_s.append(self.now_s - due_s)
            self.admitted.append(request)
            self.active += 1

    def _due(self) -> int:
        """The pass from which on those who have come are read."""
        return self.came[0][0] + self.rules.ahead + self.rules.hold

    def _read(self) -> None:
        """One pass over prompts, with everyone's next token in it or without."""
        tokens, read = 0, []
        while self.admitted and tokens < self.rules.limit:
            left = self.unread or self.admitted[0].isl
            part = min(left, self.rules.limit - tokens)
            tokens += part
            self.unread = left - part
            if not self.unread:
                read.append(self.admitted.popleft())
        self.read_tokens += tokens
        self.passes += 1
        running = len(self.running)
        if self.rules.prefill_first or not running:
            self.now_s += self.times.read_s(tokens)
            self.since = self.rules.poll
        else:
            self.now_s += self.times.mixed_s(running, self.context, tokens)
            self._made(1)
        for request in read:
            self._begin(request)

    def _begin(self, request: Request) -> None:
        """The first token is there."""
        self.made_tokens += 1
        self.ttft_s.append(self.now_s - request.sent_s)
        if request.osl == 1:
            self._end(request)
            return
        leaves = self.step + request.osl - 1
        heappush(self.running, (leaves, request.number, self.now_s, request))
        self.contexts += request.isl - self.step

    def _decode(self) -> None:
        """Steps up to the next event."""
        running, context = len(self.running), self.context
        steps = self.running[0][0] - self.step
        if self.came:
            steps = min(steps, max(1, self._due() - self.passes))
        if self.coming:
            step_s = self.times.step_s(running, context + steps / 2)
            steps = min(steps, self._steps_to(self.coming[0][0] - self.now_s, step_s))
        self.now_s += steps * self.times.step_s(running, context + steps / 2)
        self.passes += steps
        self._made(steps)

    def _steps_to(self, wait_s: float, step_s: float) -> int:
        """Whole steps until the look at which what comes in this time is seen."""
        steps = int(wait_s / step_s) + 1 if wait_s > 0 else 1
        poll = self.rules.poll
        to_look = max(1, poll - self.since)
        return to_look + max(0, -((to_look - steps) // poll)) * poll

    def _made(self, steps: int) -> None:
        """So many tokens for each who runs; who has all of them leaves."""
        self.made_tokens += steps * len(self.running)
        self.step += steps
        poll = self.rules.poll
        self.since = (self.since + steps - 1) % poll + 1  # at looks in between there was nothing to see
        while self.running and self.running[0][0] <= self.step:
            leaves, _, first_s, request = heappop(self.running)
            self.contexts -= request.isl - (leaves - request.osl + 1)
            self.tpot_s.append((self.now_s - first_s) / (request.osl - 1))
            self._end(request)

    def _end(self, request: Request) -> None:
        self.active -= 1
        self.request_s.append(self.now_s - request.sent_s)
        self._send()
