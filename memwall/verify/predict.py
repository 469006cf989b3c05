"""What memwall says a trial must cost: its bound, the bytes at each level, and the band that is claimed.

Bytes at main memory are compulsory for kernels that read each operand once or find the rest in L2
(streams, GEMV, norms, attention), and the wave model of `l2.tiled_gemm_dram` for tiled products.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall import l2, traffic
from memwall.bound import Bound, bound
from memwall.dtypes import find as find_dtype
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Program, Work
from memwall.reports.case import Case, Formats
from memwall.traffic import Traffic
from memwall.verify.case import Trial
from memwall.verify.kernels import blocks

MEMORY_ATOM_BYTES = 64
"""What memory hands over for a load that stands alone, though L2's sectors have 32 bytes. Measured: an H200
reads 64.0 bytes for each of 2^24 lone elements, 32.0 for each where every sector is wanted."""


class Band(NamedTuple):
    """How far counted bytes may be from the predicted ones, and why."""

    share: float
    reason: str


STREAM = Band(0.05, "each byte once")
INSIDE_L2 = Band(0.15, "within twice L2")
CAUSAL = Band(0.25, "causal prefill")
TILED = Band(0.20, "tiles re-read through L2")
BOUND_SLACK = 0.02
"""A clock and a bandwidth are known no better: a bound beaten by more is a wrong bound."""

_GEMMS = ("triton.gemm", "library.gemm")
"""Products on the matrix unit, in tiles that share panels through L2; cuBLAS' order is taken to be ours."""

_HALVED_L2 = ("GA100", "GH100")
"""Chips whose L2 is known to be in two partitions, each beside its half of the compute units."""

_REFERENCES = frozenset(
    f"library.{name}"
    for name in (
        *("gemm", "gemv", "batched_gemm", "add", "gelu", "rmsnorm", "layernorm", "softmax"),
        *("flash2", "cudnn"),
    )
)
"""Kernels whose inside we do not know: shown beside ours, and held to the bound alone."""


class Prediction(NamedTuple):
    """What a trial must cost on a device."""

    work: Work
    bound: Bound
    dram: Traffic
    """Bytes through main memory, modelled; reads may be more, up to the next."""
    most_read_bytes: int
    """Reads at the other end of what the blocks' timing can do: see `l2.flash2_dram`, and `_in_step`."""
    l2: Traffic | None
    """Bytes between L2 and the compute units; None where no model says."""
    footprint_bytes: int
    """Bytes of every tensor that enters or leaves."""
    band: Band
    judged: bool
    """Whether counted bytes are held to the band: we know what the kernel does."""
    in_l2: bool
    """Warm and small enough to stay in L2: main memory does not bound it."""

    @property
    def bound_time_s(self) -> float:
        """The least time [s]; without main memory's term where L2 holds everything."""
        times = [term.time_s for term in self.bound.terms if not (self.in_l2 and term.limit == "hbm")]
        return max(times, default=0.0)


def predict(trial: Trial, device: Device) -> Prediction:
    """The prediction for a trial on a device.

    Raises:
        NotAvailable: the device has no peak for its format.
    """
    work, program = work_of(trial)
    footprint = _footprint_bytes(trial, program)
    l2_bytes = device.l2_bytes or 0.0
    in_l2 = trial.warm and footprint <= l2_bytes
    return Prediction(
        work,
        bound(work, device),
        dram := _dram(trial, work, device),
        _most_read_bytes(trial, device, dram.read_bytes),
        _l2(trial, work),
        footprint,
        _band(trial, footprint, l2_bytes),
        trial.kernel not in _REFERENCES and (trial.kernel not in _GEMMS or _in_step(trial, device)),
        in_l2,
    )


def work_of(trial: Trial) -> tuple[Work, Program | None]:
    """What a trial must do, and its operator's program where it is one's.

    Raises:
        UsageError, TypeError, KeyError: no such operator, or of other dimensions.
    """
    if trial.op == "access":
        return _access_work(trial), None
    op = registry.find("copy" if trial.op == "transpose" else trial.op)
    program = Case(op, trial.dims, Formats(trial.dtype), trial.causal, trial.impl).program
    return program.work, program


def _access_work(trial: Trial) -> Work:
    """Elements `step` apart: each costs all that lies between it and the next, at most what comes at once."""
    element = find_dtype(trial.dtype).bits // 8
    count, apart_bytes = trial.dims["count"], trial.dims["step"] * element
    return Work(count * min(apart_bytes, MEMORY_ATOM_BYTES), count * element, {}, 0, 0)


def _footprint_bytes(trial: Trial, program: Program | None) -> int:
    if program is None:
        element = find_dtype(trial.dtype).bits // 8
        return (trial.dims["elements"] + trial.dims["count"]) * element
    return int(sum(tensor.bytes for tensor in (*program.inputs, *program.outputs)))


def _dram(trial: Trial, work: Work, device: Device) -> Traffic:
    if trial.kernel in _GEMMS and device.l2_bytes and device.units:
        dims, element = trial.dims, find_dtype(trial.dtype).bits // 8
        tile = blocks.GEMM
        return l2.tiled_gemm_dram(
            dims["m"], dims["n"], dims["k"], tile.tile_m, tile.tile_n, tile.group, device.units,
            _kept_bytes(device), element, element,
        )  # fmt: skip
    return Traffic(work.read_bytes, work.written_bytes)


def _kept_bytes(device: Device) -> float:
    """What L2 keeps of data that the whole GPU reads [B]: half, where each half of it has its own copy."""
    whole = device.l2_bytes or 0.0
    return whole / 2 if device.data.get("chip") in _HALVED_L2 else whole


def _most_read_bytes(trial: Trial, device: Device, least: int) -> int:
    """Reads at the other end of what the blocks' timing can do; the least where that changes nothing."""
    if trial.kernel in _GEMMS:
        return least if _in_step(trial, device) else 2 * least
    if trial.kernel != "triton.flash" or not (device.l2_bytes and device.units):
        return least
    dims = trial.dims
    sizes = blocks.flash_blocks(dims["head_dim"])
    most = l2.flash2_dram(
        dims["batch"] * dims["heads"], dims["heads"] // dims["kv_heads"], dims["seq_q"], dims["seq_kv"],
        dims["head_dim"], sizes.block_q, device.units, _kept_bytes(device), find_dtype(trial.dtype).bits // 8,
    )  # fmt: skip
    return max(least, int(most.read_bytes))


def _in_step(trial: Trial, device: Device) -> bool:
    """Whether the wave model is claimed: the panels of one wave of tiles are no more than twice L2.

    Beyond that the two halves of the GPU may fall out of step over many waves, and each then fetches the
    panels for itself: up to twice the model's bytes, and another number in each run. At 16384^3, 145 MB a
    wave, an H200 read 12.5e9 to 15.0e9 bytes with tiles of 256 x 128, 12.8e9 to 16.3e9 in cuBLAS, in several
    runs, where the model has 9.1e9; with tiles of 128 x 256, once, the model's 9.3e9.
    """
    if not (device.l2_bytes and device.units):
        return False
    tile, rows = blocks.GEMM, blocks.GEMM.group
    panels = rows * tile.tile_m + device.units / rows * tile.tile_n
    wave_bytes = panels * trial.dims["k"] * find_dtype(trial.dtype).bits / 8
    return bool(wave_bytes <= 2 * device.l2_bytes)


def _l2(trial: Trial, work: Work) -> Traffic | None:
    """Requests of the compute units to L2, for the kernels whose blocks we chose."""
    dims, element = trial.dims, find_dtype(trial.dtype).bits // 8
    if trial.kernel == "triton.flash":
        sizes = blocks.flash_blocks(dims["head_dim"])
        head = traffic.flash2(
            dims["seq_q"], dims["seq_kv"], dims["head_dim"], dims["head_dim_v"],
            sizes.block_q, sizes.block_k, element, causal=bool(trial.causal),
        )  # fmt: skip
        return head.times(dims["batch"] * dims["heads"])
    if trial.kernel == "triton.gemm":
        tile = blocks.GEMM
        return traffic.tiled_gemm(dims["m"], dims["n"], dims["k"], tile.tile_m, tile.tile_n, element, element)
    if trial.kernel.startswith("triton.") and trial.op not in ("attention", "gemv", "batched_gemm"):
        return Traffic(work.read_bytes, work.written_bytes)
    return None


def _band(trial: Trial, footprint_bytes: float, l2_bytes: float) -> Band:
    if footprint_bytes <= 2 * l2_bytes and trial.impl != "standard":
        return INSIDE_L2
    if trial.op == "gemm":
        return TILED
    if trial.op == "attention" and trial.causal and trial.dims["seq_q"] > 1 and trial.impl != "standard":
        return CAUSAL
    return STREAM
