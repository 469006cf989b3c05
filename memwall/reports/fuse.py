"""What fusing a chain of kernels saves on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall.bound import kernel_bounds
from memwall.dtypes import Precision
from memwall.errors import UsageError
from memwall.fusion import Chain, Fusion, Step, chain_of, fusions
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Kernel, Tensor, kernel_work
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, DeviceLike, Formats, device_of
from memwall.units import MEGA

EXAMPLES = {
    "residual-norm": "the residual add and the norm after it; the sum is kept for the next layer",
    "qkv": "three projections of one input as one wider product",
    "mlp": "gate and up projections, SiLU and product, down projection",
}


class Way(NamedTuple):
    """A fusion with its cost on the device."""

    fusion: Fusion
    read_bytes: int
    """Each kernel's own operands: what two kernels read is read twice."""
    written_bytes: int
    time_s: float
    """The sum of the kernels' bounds, one after the other [s]."""

    @property
    def traffic_bytes(self) -> int:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.written_bytes

    @property
    def legal(self) -> bool:
        """Whether a block has on chip what it needs."""
        return not self.fusion.obstacles

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of its kernels."""
        return tuple(kernel.name for kernel in self.fusion.program.kernels)


class FuseReport(NamedTuple):
    """A chain of kernels on a device, joined in every way."""

    device: Device
    chain: Chain
    tokens: int
    hidden: int
    width: int
    formats: Formats
    ways: tuple[Way, ...]
    """The unfused chain first, all of it as one kernel last."""
    defaults: tuple[str, ...]

    @property
    def unfused(self) -> Way:
        """A kernel a step."""
        return self.ways[0]

    @property
    def all_fused(self) -> Way:
        """One kernel, legal or not: the floor."""
        return self.ways[-1]

    @property
    def best(self) -> Way:
        """The legal way that takes least time; of equals, fewest bytes and kernels."""
        legal = [way for way in self.ways if way.legal]
        return min(legal, key=lambda way: (way.time_s, way.traffic_bytes, len(way.kernels)))


def fuse(
    steps: str,
    *,
    tokens: int,
    hidden: int,
    width: int | None = None,
    kv_width: int | None = None,
    gpu: DeviceLike = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    weight_dtype: str | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> FuseReport:
    """Bytes and time of a chain, unfused, in each legal fusion, and all as one.

    Args:
        steps: linear,gelu,layernorm and so on, or residual-norm, qkv, mlp.
        tokens: rows.
        hidden: columns of the input.
        width: columns that a linear writes; mlp: of the hidden layer, 4 x hidden unless given.
        kv_width: qkv: columns of K and of V; hidden unless given.
        gpu: a device, or its name or file.
        dtype: format of activations, and of the computation.
        weight_dtype: storage format of weights.
        changes: what-ifs.
        defaults: what the caller assumed.

    Raises:
        UsageError: no such step.
        NotAvailable: the device has no peak for the format.
    """
    device = device_of(gpu, changes)
    formats = Formats.named(dtype, weight_dtype)
    precision = formats.precision
    name = steps.strip().lower().replace("+", "-").replace("_", "-")
    if kv_width is not None and name != "qkv":
        raise UsageError("--kv-width belongs to qkv", "Try memwall fuse qkv")
    out = width or (4 * hidden if name == "mlp" else hidden)
    if max(tokens, hidden, out) > MEGA * MEGA:
        raise UsageError("tokens, hidden and width are at most 1e12", "Try --tokens 4096 --hidden 4096")
    if name == "residual-norm":
        chain = chain_of(("add", "rmsnorm"), tokens, hidden, out, precision)
        chain = chain._replace(name=name, kept=frozenset({chain.steps[0].kernel.writes[0].name}))
    elif name == "qkv":
        chain = _side_by_side(
            name, tokens, hidden, {"q": hidden, "k": kv_width or hidden, "v": kv_width or hidden}, precision
        )
    elif name == "mlp":
        chain = _mlp(tokens, hidden, out, precision)
    else:
        chain = chain_of([word for word in name.split(",") if word.strip()], tokens, hidden, out, precision)
    ways = tuple(_way(fusion, device) for fusion in fusions(chain, device))
    return FuseReport(device, chain, tokens, hidden, out, formats, ways, defaults)


def _way(fusion: Fusion, device: Device) -> Way:
    works = [kernel_work(kernel) for kernel in fusion.program.kernels]
    read, written = (
        int(sum(getattr(work, name) for work in works)) for name in ("read_bytes", "written_bytes")
    )
    return Way(fusion, read, written, sum(each.time_s for _, each in kernel_bounds(fusion.program, device)))


def _linear(name: str, x: Tensor, out: int, precision: Precision) -> Step:
    rows, cols = x.shape
    kernel: Kernel = registry.find("gemm").build(m=rows, n=out, k=cols, precision=precision).kernels[0]
    weight = kernel.reads[1]._replace(name=f"W {name}")
    result = kernel.writes[0]._replace(name=name)
    return Step(kernel._replace(name=f"linear {name}", reads=(x, weight), writes=(result,)), "product", out)


def _side_by_side(
    name: str, tokens: int, hidden: int, widths: Mapping[str, int], precision: Precision
) -> Chain:
    x = Tensor("x", (tokens, hidden), precision.activation)
    return Chain(name, tuple(_linear(part, x, width, precision) for part, width in widths.items()))


def _mlp(tokens: int, hidden: int, width: int, precision: Precision) -> Chain:
    x = Tensor("x", (tokens, hidden), precision.activation)
    gate, up = _linear("gate", x, width, precision), _linear("up", x, width, precision)
    joined = registry.find("silu_mul").build(rows=tokens, cols=width, precision=precision).kernels[0]
    activated = joined.writes[0]._replace(name="activated")
    reads = (gate.kernel.writes[0], up.kernel.writes[0])
    middle = Step(joined._replace(name="silu_mul", reads=reads, writes=(activated,)), "map", width)
    return Chain("mlp", (gate, up, middle, _linear("down", activated, hidden, precision)))
