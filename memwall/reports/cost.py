"""What tokens cost in money and energy. Prices are the user's; nothing is assumed in their stead.

    $ a token out  = GPUs x $/GPU-hour / 3600 x TPOT / batch / utilisation
    $ a token in   = GPUs x $/GPU-hour / 3600 x TTFT / prompt / utilisation
    GPU-seconds a request = GPUs x (TTFT + output x TPOT / batch) / utilisation
    joules a token = GPUs x watts x time of the token

A prompt is read by itself, by all the layout's GPUs; tokens out by the whole batch at the context given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from memwall.constant import Constant
from memwall.errors import NotAvailable, NotPublished, UsageError
from memwall.hardware import Device
from memwall.models.model import Model
from memwall.parallel.fit import instead
from memwall.parallel.layout import Layout
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.case import DEFAULT_GPU, DeviceLike
from memwall.reports.energy import Split, split
from memwall.reports.fitting import held_sequences, roomier
from memwall.reports.notebook import Report
from memwall.reports.step import StepReport, step

HOUR_S = 3600
YEAR_HOURS = 24 * 365
LAYOUT = ("tp", "pp", "ep", "dp", "sequence_parallel", "imbalance")


class Prices(NamedTuple):
    """What the user pays and how he uses it."""

    per_gpu_hour: float
    """Dollars, or any currency."""
    utilisation: float = 1.0
    """Part of the hours paid for in which the GPUs serve."""
    watts: float | None = None
    """Of each GPU with its part of the node; None: the GPU's own at most."""
    requests_per_s: float | None = None
    output_tokens: int | None = None
    """Tokens that a request is answered with."""


@dataclass(frozen=True, slots=True, repr=False)
class CostReport(Report):
    """Tokens of a model on a layout, priced."""

    decode: StepReport
    prefill: StepReport
    prices: Prices
    power: Constant
    """Watts a GPU."""
    defaults: tuple[str, ...]

    @property
    def device(self) -> Device:
        """The GPU."""
        return self.decode.device

    @property
    def model(self) -> Model:
        """The model."""
        return self.decode.model

    @property
    def layout(self) -> Layout:
        """How it stands on the GPUs."""
        return self.decode.spread.layout

    @property
    def tpot_s(self) -> float:
        """Time between two tokens of a user [s]."""
        return _time_s(self.decode)

    @property
    def ttft_s(self) -> float:
        """Time to read one prompt [s]."""
        return _time_s(self.prefill)

    @property
    def fits(self) -> bool:
        """Whether weights and the batch's cache are within a GPU's memory; true where that is not known."""
        return self.decode.fits is not False

    @property
    def missing_bytes(self) -> int:
        """What a GPU lacks of it [B]; 0 if it fits."""
        return 0 if self.fits else self.decode.resident_bytes - (self.decode.capacity_bytes or 0)

    @property
    def instead(self) -> str:
        """What to type for it to fit; empty if it does, or if nothing would do."""
        return "" if self.fits else instead(roomier(self.decode), "--batch", held_sequences(self.decode))

    @property
    def gpu_s_per_token_out(self) -> float:
        """GPU-seconds that a generated token takes while they serve."""
        return self.layout.gpus * self.tpot_s / self.decode.tokens.batch

    @property
    def gpu_s_per_token_in(self) -> float:
        """GPU-seconds that a token of a prompt takes while they serve."""
        return self.layout.gpus * self.ttft_s / (self.prefill.tokens.seq_q * self.prefill.tokens.batch)

    def price(self, gpu_s: float) -> float:
        """Of so many GPU-seconds of service [the price's currency]."""
        return gpu_s / self.prices.utilisation * self.prices.per_gpu_hour / HOUR_S

    def joules(self, gpu_s: float) -> float:
        """Energy of so many GPU-seconds of service [J]."""
        return gpu_s * self.power.value

    @property
    def energy_out(self) -> Split:
        """Where the energy of a generated token goes."""
        return split(self.decode, self.joules(self.gpu_s_per_token_out), self.decode.tokens.batch)

    @property
    def energy_in(self) -> Split:
        """Where that of a token of a prompt goes."""
        tokens = self.prefill.tokens.seq_q * self.prefill.tokens.batch
        return split(self.prefill, self.joules(self.gpu_s_per_token_in), tokens)

    @property
    def gpu_s_per_request(self) -> float | None:
        """GPU-seconds of a prompt and its answer while they serve; None without the answer's length."""
        if self.prices.output_tokens is None:
            return None
        prompt = self.prefill.tokens.seq_q
        return prompt * self.gpu_s_per_token_in + self.prices.output_tokens * self.gpu_s_per_token_out

    @property
    def gpu_equivalents(self) -> float | None:
        """GPUs that a rate of requests keeps busy: rate x GPU-seconds a request / utilisation."""
        if self.prices.requests_per_s is None or self.gpu_s_per_request is None:
            return None
        return self.prices.requests_per_s * self.gpu_s_per_request / self.prices.utilisation

    @property
    def price_per_year(self) -> float | None:
        """Of those GPUs, in 8760 hours [the price's currency]."""
        if self.gpu_equivalents is None:
            return None
        return self.gpu_equivalents * self.prices.per_gpu_hour * YEAR_HOURS


@checked
def cost(
    model: ModelLike,
    *,
    price: float,
    gpu: DeviceLike = DEFAULT_GPU,
    context: int,
    prompt: int | None = None,
    batch: int = 1,
    utilisation: float = 1.0,
    watts: float | None = None,
    requests_per_s: float | None = None,
    output_tokens: int | None = None,
    defaults: tuple[str, ...] = (),
    **options: Any,
) -> CostReport:
    """What a model's tokens cost on a layout.

    Args:
        model: a model, or its name or file.
        price: of a GPU-hour.
        gpu: a device, or its name or file.
        context: tokens of a sequence while it is decoded.
        prompt: tokens of the prompt; by default the context.
        batch: sequences on all GPUs.
        utilisation: part of the hours paid for in which the GPUs serve.
        watts: of each GPU with its part of the node; by default the GPU's own at most.
        requests_per_s: requests that arrive.
        output_tokens: those that each is answered with.
        defaults: what the caller assumed on the user's behalf, for the report.
        options: formats and layout, as memwall.step takes them.

    Raises:
        UsageError: a price, rate or layout that cannot be.
        NotAvailable: a constant is not published.
    """
    _check(price, utilisation, requests_per_s, output_tokens)
    formats: Mapping[str, Any] = {key: value for key, value in options.items() if value is not None}
    loaded = model_of(model)
    if not loaded.decodes:
        raise NotAvailable(
            f"{loaded.title} is an encoder: it generates no tokens to price",
            f"For its time: memwall step --model {loaded.name} --phase prefill --seq 512",
        )
    decode = step(loaded, gpu=gpu, phase="decode", context=context, batch=batch, defaults=defaults, **formats)
    replicas = decode.spread.layout.dp
    given = {**formats, "phase": "prefill", "seq": prompt or context, "batch": replicas}
    prefill = step(decode.model, gpu=decode.device, **given)
    prices = Prices(price, utilisation, watts, requests_per_s, output_tokens)
    return CostReport(decode, prefill, prices, _power(decode.device, watts), decode.defaults)


def _time_s(report: StepReport) -> float:
    estimate = report.estimate
    return report.kernels_bound_time_s if estimate is None else float(estimate.time_s)


def _check(price: float, utilisation: float, rate: float | None, output_tokens: int | None) -> None:
    if price <= 0:
        raise UsageError(f"--price is what a GPU-hour costs, above 0, not {price}", "Try --price 2.50")
    if not 0 < utilisation <= 1:
        raise UsageError(f"--utilisation is from 0 to 1, not {utilisation}", "Try --utilisation 0.6")
    if rate is not None and output_tokens is None:
        raise UsageError(
            "--rate needs --output-tokens: those that a request is answered with", "Try --output-tokens 512"
        )


def _power(device: Device, watts: float | None) -> Constant:
    if watts is not None:
        return Constant("power.tdp_w", watts, "seen", "given by you")
    if not device.group("power").get("tdp_w"):
        raise NotPublished(f"{device.title}: its power is not in its file", "Give it: --watts 700")
    return device.constant("power", "tdp_w")
