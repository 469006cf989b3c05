"""Serving at a constant number of users: what each of them sees, and what the GPUs give.

    TPOT, decoding alone  = a step with all users at the mean context, isl + osl / 2
    TPOT, inclusive       = that + (1 - 1 / (2 rounds)) users x prefill of a prompt / osl
    TTFT                  = start + a prefill alone + a step + users x prefill of a prompt / (2 rounds)

Each user sends a prompt of isl tokens, is answered with osl, and sends the next at once. While one request's
osl tokens are made, every user's next prompt is read once, and all wait meanwhile: so a token takes longer
than a step. Prompts of many users are read together, up to 8192 tokens a pass. A benchmark begins with all
users at once: of the first of its rounds each waits for half of the prompts, and sees the other half. With
replicas each has its part of the users.

Source: the definitions of the serving benchmarks of vLLM, SGLang and TensorRT-LLM: TPOT = (end-to-end time -
TTFT) / (osl - 1), a mean of requests at a maximum concurrency.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.models.load import load as load_model
from memwall.models.model import Model
from memwall.models.passes import Tokens
from memwall.nodes import node_of
from memwall.parallel.fit import instead, most_sequences, nearest
from memwall.parallel.layout import Layout
from memwall.reports import notebook
from memwall.reports.case import DEFAULT_GPU, Formats, device_of
from memwall.reports.expected import Passes, subject
from memwall.reports.step_layout import layout_of

CHUNK = 8192
"""Tokens of prompts that engines read in a pass by default."""
ROUNDS = 10
"""Requests of each user that serving benchmarks send, by default."""
START_S = 0.05
"""From a request's arrival to its first pass: server, tokeniser, scheduler. Fitted to measured TTFT."""


class Demand(NamedTuple):
    """What is asked of the server."""

    users: int
    """Requests in flight (concurrency)."""
    isl: int
    """Tokens of a prompt."""
    osl: int
    """Tokens of an answer."""
    rounds: int = ROUNDS
    """Requests of each user, the first of which come all at once."""


class ServeReport(NamedTuple):
    """A model served to so many users."""

    model: Model
    device: Device
    layout: Layout
    formats: Formats
    demand: Demand
    step_s: float
    """A step of decoding with all users [s]."""
    prompt_s: float
    """A prompt's part of a pass that reads as many as go together [s]."""
    alone_s: float
    """A prompt read alone [s]."""
    needed_bytes: int
    total_bytes: int
    basis: str
    roomier: tuple[Layout, ...]
    """The nearest layouts that hold it all, where this one does not."""
    most_users: int
    """Of whom this layout holds the caches; `users` if it holds them all."""
    defaults: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report under the keys of its JSON."""
        return notebook.to_dict(self)

    def to_rows(self) -> list[dict[str, Any]]:
        """Flat rows for `pandas.DataFrame` and `polars.DataFrame`."""
        return notebook.to_rows(self)

    def _repr_html_(self) -> str:
        return notebook.repr_html(self)

    @property
    def users_each(self) -> int:
        """Users of the replica with most."""
        return int(ceil_div(self.demand.users, self.layout.dp))

    @property
    def tpot_s(self) -> float:
        """Time between two tokens of a user, the others' prompts included [s]."""
        seen = 1 - 1 / (2 * self.demand.rounds)
        return self.step_s + seen * self.users_each * self.prompt_s / self.demand.osl

    @property
    def ttft_s(self) -> float:
        """Mean time to the first token [s]."""
        burst_s = self.users_each * self.prompt_s / 2
        return START_S + self.alone_s + self.step_s + burst_s / self.demand.rounds

    @property
    def request_s(self) -> float:
        """From a prompt's arrival to its last token [s]."""
        return self.ttft_s + (self.demand.osl - 1) * self.tpot_s

    @property
    def tokens_per_s(self) -> float:
        """Generated, of all users."""
        return self.demand.users * self.demand.osl / self.request_s

    @property
    def requests_per_s(self) -> float:
        """Answered, of all users."""
        return self.demand.users / self.request_s

    @property
    def fits(self) -> bool:
        """Whether all users' caches are there at their longest."""
        return self.needed_bytes <= self.total_bytes

    @property
    def missing_bytes(self) -> int:
        """What the fullest GPU lacks of it [B]; 0 if it fits."""
        return max(self.needed_bytes - self.total_bytes, 0)

    @property
    def instead(self) -> str:
        """What to type for it to fit; empty if it does, or if nothing would do."""
        return "" if self.fits else instead(self.roomier, "--concurrency", self.most_users)

    @property
    def decodes(self) -> bool:
        """Whether there are tokens after the first, and so a time between two."""
        return self.demand.osl > 1


def serve(
    model: str | Model,
    *,
    users: int,
    isl: int,
    osl: int,
    rounds: int = ROUNDS,
    gpu: str | Device = DEFAULT_GPU,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    **degrees: Any,
) -> ServeReport:
    """TTFT, TPOT and throughput of a model at so many users.

    Args:
        model: a model, or its name or file.
        users: requests in flight, on all GPUs.
        isl: tokens of a prompt.
        osl: tokens of an answer.
        rounds: requests of each user; 1: all come at once and none follows.
        gpu: a device, or its name or file.
        dtype: format that the linear layers compute and are stored in.
        weight_dtype: format that they are stored in.
        kv_dtype: the cache's format.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.
        degrees: tp, pp, ep, dp, sequence_parallel, imbalance.

    Raises:
        UsageError: an unknown name, or a layout that the model does not have.
        NotAvailable: a constant is not published.
    """
    device = device_of(gpu, changes)
    loaded = load_model(model) if isinstance(model, str) else model
    layout = layout_of(loaded, device, degrees)
    served, formats = subject(loaded, device, dtype, weight_dtype, kv_dtype)
    defaults = defaults if dtype else (*defaults, f"dtype {formats.dtype}")
    passes = Passes(served)
    together = max(1, min(ceil_div(users, layout.dp), CHUNK // isl))
    replicas = layout.dp

    def read_s(prompts: int) -> float:
        return passes.time(layout, Tokens(prompts * replicas, isl, isl), prefill=True).time_s

    return ServeReport(
        loaded,
        device,
        layout,
        formats,
        Demand(users, isl, osl, rounds),
        passes.time(layout, Tokens(users, 1, isl + osl // 2), prefill=False).time_s,
        read_s(together) / together,
        read_s(1),
        passes.needed_bytes(layout, users, isl + osl),
        passes.total_bytes,
        passes.basis,
        *_roomier(passes, layout, users, isl + osl),
        defaults,
    )


def _roomier(passes: Passes, layout: Layout, users: int, length: int) -> tuple[tuple[Layout, ...], int]:
    """The nearest layouts under which everything fits, and the users that this one holds."""

    def holds(wider: Layout, count: int = users) -> bool:
        return passes.needed_bytes(wider, count, length) <= passes.total_bytes

    if holds(layout):
        return (), users
    model, device = passes.subject.model, passes.subject.device
    return nearest(model, layout, node_of(device), holds), most_sequences(users, lambda n: holds(layout, n))
