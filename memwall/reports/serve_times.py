"""How long an engine's passes take at any number of users: a few worked out in full, lines between them.

    step   = a + b x mean context, for each of 1, 2, 4 ... users; both straight between those
    read   = straight between 64, 256 ... tokens, and whole prompts 1, 2, 4 ... of them
    mixed  = read (prompts and everyone's token) + what steps take for the caches beyond their weights

and the host's part of each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from memwall.models.passes import Tokens
from memwall.parallel.layout import Layout
from memwall.reports.expected import Passes
from memwall.reports.serve_engines import CHUNK
from memwall.reports.serve_loop import Demand

SHORT = 64
"""The shortest pass over a prompt that is told apart [tokens]."""


class Line(NamedTuple):
    """A step of so many users."""

    fixed_s: float
    """Without any context."""
    token_s: float
    """For each token of the mean context."""
    weights_s: float
    """With one token of context: all but the caches."""


class PassTimes:
    """Times of a model's passes on a replica; see memwall.reports.serve_loop.Times."""

    def __init__(
        self, passes: Passes, layout: Layout, demand: Demand, users: int, host_s: tuple[float, float]
    ) -> None:
        self.passes, self.layout, self.demand, self.host_s = passes, layout, demand, host_s
        self.line = lru_cache(maxsize=None)(self._line)
        self.users = _doubling(1, users)
        self.lines = [self._worked_out(count) for count in self.users]
        self.tokens, self.read = self._prompts()

    def step_s(self, running: int, context: float) -> float:
        """A token for each who runs, at a mean context [s]."""
        line = self.line(running)
        return line.fixed_s + line.token_s * context + self._host_s(running)

    def read_s(self, tokens: int) -> float:
        """Prompts alone [s]."""
        return self.host_s[0] + self._pass_s(tokens)

    def mixed_s(self, running: int, context: float, tokens: int) -> float:
        """Both in one pass [s]."""
        line = self.line(running)
        caches_s = line.fixed_s + line.token_s * context - line.weights_s
        return self._pass_s(tokens + running) + max(0.0, caches_s) + self._host_s(running)

    def _host_s(self, running: int) -> float:
        return self.host_s[0] + self.host_s[1] * running

    def _pass_s(self, tokens: int) -> float:
        if tokens >= self.tokens[-1]:
            return self.read[-1] * tokens / self.tokens[-1]
        return _between(self.tokens, self.read.__getitem__, max(tokens, self.tokens[0]))

    def _line(self, running: int) -> Line:
        fields = zip(*self.lines, strict=True)
        return Line(*(_between(self.users, field.__getitem__, running) for field in fields))

    def _worked_out(self, users: int) -> Line:
        isl, osl = self.demand.isl, self.demand.osl
        last_s, first_s, weights_s = (self._decode_s(users, length) for length in (isl + osl, isl, 1))
        token_s = (last_s - first_s) / osl
        return Line(first_s - token_s * isl, token_s, weights_s)

    def _decode_s(self, users: int, context: int) -> float:
        tokens = Tokens(users * self.layout.dp, 1, context)
        return self.passes.time(self.layout, tokens, prefill=False).time_s

    def _prompts(self) -> tuple[list[int], list[float]]:
        """Passes over parts of a prompt, and over whole ones; of a longer one than a pass its share."""
        isl = self.demand.isl
        tokens = [each for each in (SHORT, 4 * SHORT, 16 * SHORT, 64 * SHORT) if each < isl]
        read = [self.prompt_s(1, each) for each in tokens]
        if isl > CHUNK:
            return [*tokens, CHUNK], [*read, self.prompt_s(1, isl) * CHUNK / isl]
        counts = _doubling(1, CHUNK // isl)
        return [*tokens, *(isl * count for count in counts)], [
            *read,
            *(self.prompt_s(count, isl) for count in counts),
        ]

    def prompt_s(self, prompts: int, isl: int) -> float:
        """A pass that reads prompts on every replica [s]."""
        tokens = Tokens(prompts * self.layout.dp, isl, isl)
        return self.passes.time(self.layout, tokens, prefill=True).time_s


def _doubling(first: int, last: int) -> list[int]:
    """first, twice that, and so on, and the last."""
    found = [first]
    while 2 * found[-1] < last:
        found.append(2 * found[-1])
    return found if found[-1] == last else [*found, last]


def _between(places: list[int], value: Callable[[int], float], place: int) -> float:
    """The value at a place, straight between those that are known."""
    index = bisect_left(places, place)
    if places[index] == place:
        return value(index)
    low, high = places[index - 1], places[index]
    part = (place - low) / (high - low)
    return value(index - 1) + part * (value(index) - value(index - 1))
