"""Serving engines as far as a user's times depend on them, and what their hosts add to a pass.

    vllm     a pass reads prompts and makes everyone's next token; the next step is scheduled while one runs
    trtllm   the same
    sglang   prompts are read first: nobody's next token is made while a prompt waits

Five constants are fitted, all to configs/measurements/serving.csv: a start for the engines that read prompts
in their steps and one for the other, what a host adds to a step and to each token of it, and TOGETHER.

Sources: vLLM, docs/design: chunked prefill, async scheduling; TensorRT-LLM, docs: in-flight batching, overlap
scheduler; SGLang, server arguments: chunked-prefill-size, enable-mixed-chunk (off), scheduler-recv-interval.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.catalog import normalise
from memwall.errors import UnknownName
from memwall.reports.serve_loop import Rules

CHUNK = 8192
"""Tokens of prompts that engines read in a pass, at most: the default of all three on these GPUs."""
TOGETHER = 512
"""Tokens of short prompts that a pass reads together. Longer ones come one by one, and seldom share a pass:
inferred from the measured TTFT of vLLM and TensorRT-LLM, which is one prompt's at 512 tokens and at 4096."""
HOST_STEP_S, HOST_TOKEN_S = 0.0009, 0.00002
"""What a host adds to a step, and to it for each request whose token it sends. Fitted to measured TPOT."""


class Engine(NamedTuple):
    """A serving engine."""

    name: str
    prefill_first: bool
    """Whether decoding rests while prompts are read."""
    ahead: int
    """Steps scheduled ahead."""
    start_s: float
    """Server, tokeniser and network, there and with the first token back. Fitted to measured TTFT."""


ENGINES = {
    each.name: each
    for each in (
        Engine("vllm", False, 1, 0.028),
        Engine("trtllm", False, 1, 0.028),
        Engine("sglang", True, 0, 0.1),
    )
}
ALIASES = {"tensorrt-llm": "trtllm", "trt-llm": "trtllm"}
DEFAULT_ENGINE = "vllm"


class Serving(NamedTuple):
    """An engine as it was started."""

    engine: Engine
    max_batch: int | None = None
    """Requests that it runs at once, at most, on a replica; None: as many as memory holds."""
    ahead: int | None = None
    """Steps scheduled ahead; None: as the engine does."""
    poll: int = 1
    """Steps between looks for new requests."""
    hold: int = 0
    """Steps that a prompt is held, so that others join it."""
    stream: int = 1
    """Tokens of an answer that are sent out together."""

    @property
    def host_s(self) -> tuple[float, float]:
        """What the host adds to a step, and for each who runs [s]."""
        return HOST_STEP_S / self.stream, HOST_TOKEN_S / self.stream

    def rules(self, slots: int, isl: int) -> Rules:
        """Its scheduling, with prompts of so many tokens."""
        engine = self.engine
        together = engine.prefill_first or self.hold > 0
        limit = CHUNK if together else min(CHUNK, max(TOGETHER, isl))
        ahead = engine.ahead if self.ahead is None else self.ahead
        return Rules(slots, limit, engine.start_s, engine.prefill_first, ahead, self.poll, self.hold)


def engine_of(name: str) -> Engine:
    """The engine of a name.

    Raises:
        UnknownName: there is no such engine here.

    >>> engine_of("TensorRT-LLM").name
    'trtllm'
    """
    own = ALIASES.get(normalise(name), normalise(name))
    if own not in ENGINES:
        raise UnknownName("engine", name, (*ENGINES, *ALIASES), ", ".join(ENGINES))
    return ENGINES[own]
