"""The survey: the trials that a calibration is fitted to, and what came of them as rows of a measured table.

The kernels are libraries', where they stand for what estimates are of: cuBLAS, the framework's attention and
cuDNN's, its norms, softmax and elementwise kernels, its copy. Formats alternate, so that a GPU that lacks one
keeps half of the rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, product
from typing import Any, NamedTuple

from memwall.hardware import Device
from memwall.units import GIBI, KIBI, KILO, MICRO
from memwall.verify.case import Trial
from memwall.verify.judge import Row, verify
from memwall.verify.outcome import Outcome

BUDGET_S = 0.04
"""How long each kernel is measured: the whole in about two minutes."""
FORMATS = ("bf16", "fp16")

_ROWS = (1, 8, 32, 64, 128, 256, 512, KIBI, 2048, 4096, 8192)
_PANELS = ((KIBI, KIBI), (KIBI, 8192), (8192, KIBI), (2048, 2048), (4096, 4096), (6144, 2560), (8192, 8192))
"""n and k of the grid of products."""
_CORNERS = (
    (8192, 8192, 1), (8192, 8192, 16), (8192, 8192, 64), (8192, 1, 8192), (8192, 16, 8192), (4096, 64, 4096),
    (64, 64, 8192), (256, 256, 8192), (512, 512, 512), (1536, 1536, 1536), (3072, 3072, 3072),
    (5120, 5120, 5120), (2560, 7168, 512), (7168, 2048, 1536), (304, 5000, 704), (KILO, 3000, 2000),
)  # fmt: skip
"""m, n and k that a grid leaves out: thin, flat, deep, and between powers of two."""

_PREFILL = (
    ((1, 32, 8, 128), (256, 512, KIBI, 2048, 4096, 8192)),
    ((4, 16, 16, 64), (256, 512, KIBI, 2048, 4096, 8192)),
    ((16, 32, 8, 128), (512, KIBI, 2048)),
    ((2, 16, 16, 256), (KIBI, 4096)),
)
"""batch, heads, kv_heads and head_dim, and sequence lengths."""
_DECODE_HEADS = ((32, 8, 128), (64, 8, 128), (16, 16, 128))
_DECODE_BATCHES, _DECODE_KEYS = (1, 8, 64), (512, 2048, 8192, 32768)
MOST_CACHE_BYTES = 4 * GIBI

_ROWWISE = ("copy", "add", "gelu", "rmsnorm", "layernorm", "softmax")
_HEIGHTS, _WIDTHS = (16, 128, KIBI, 8192, 32768), (KIBI, 4096, 16384)

LIBRARIES = {"library.gemm": "cublas", "library.flash2": "fa2", "library.cudnn": "cudnn"}
"""The kernel column of a table; the others are the framework's own."""
FRAMEWORK = "torch"
_DIMS = (
    "m", "n", "k", "rows", "cols", "batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim", "head_dim_v",
)  # fmt: skip
COLUMNS = ("gpu", "op", "dtype", *_DIMS, "causal", "kernel", "warm", "time_us")


def survey() -> list[Trial]:
    """Every trial of a calibration's run."""
    return [*_products(), *_prefill(), *_decode(), *_rowwise()]


def _products() -> Iterator[Trial]:
    grid = [(m, n, k) for (n, k), m in product(_PANELS, _ROWS)]
    for (m, n, k), dtype in zip([*grid, *_CORNERS], cycle(FORMATS), strict=False):
        yield Trial("library.gemm", "gemm", {"m": m, "n": n, "k": k}, dtype)


def _prefill() -> Iterator[Trial]:
    formats = cycle(FORMATS)
    for (batch, heads, kv_heads, head_dim), lengths in _PREFILL:
        for seq in lengths:
            yield from _attention((batch, heads, kv_heads, head_dim, seq, seq), next(formats), (False, True))


def _decode() -> Iterator[Trial]:
    formats = cycle(FORMATS)
    for (heads, kv_heads, head_dim), batch, keys in product(_DECODE_HEADS, _DECODE_BATCHES, _DECODE_KEYS):
        if 2 * batch * kv_heads * keys * head_dim * 2 <= MOST_CACHE_BYTES:
            yield from _attention((batch, heads, kv_heads, head_dim, 1, keys), next(formats), (False,))


def _attention(shape: tuple[int, ...], dtype: str, masks: Iterable[bool]) -> Iterator[Trial]:
    batch, heads, kv_heads, head_dim, seq_q, seq_kv = shape
    dims = {
        "heads": heads, "head_dim": head_dim, "seq_q": seq_q, "seq_kv": seq_kv,
        "kv_heads": kv_heads, "head_dim_v": head_dim, "batch": batch,
    }  # fmt: skip
    for causal, kernel in product(masks, ("library.flash2", "library.cudnn")):
        yield Trial(kernel, "attention", dims, dtype, causal, "flash")


def _rowwise() -> Iterator[Trial]:
    sizes = product(_ROWWISE, _HEIGHTS, _WIDTHS)
    for (op, rows, cols), dtype in zip(sizes, cycle(FORMATS), strict=False):
        yield Trial(f"library.{op}", op, {"rows": rows, "cols": cols}, dtype)


class Surveyed(NamedTuple):
    """A survey's outcomes, sorted into what can be fitted and what cannot."""

    rows: Sequence[Mapping[str, Any]]
    """Cells of a measured table, under COLUMNS."""
    left_out: Mapping[str, int]
    """Why rows were left out, and how many."""


def surveyed(
    outcomes: Iterable[Outcome], device: Device, machine: Mapping[str, Any], gpu: str | None = None
) -> Surveyed:
    """The rows of the kernels that ran, were right, and were not faster than their bound.

    Args:
        outcomes: what came of the trials.
        device: the GPU, as the catalogue or a file has it.
        machine: the GPU as the worker found it.
        gpu: what a row calls the GPU; default: the device's name.
    """
    as_run = [_as_it_ran(outcome, device, machine) for outcome in outcomes]
    rows: list[Mapping[str, Any]] = []
    first: dict[tuple[str, str], str] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in verify(device, machine, as_run).rows:
        reason = _unfit(row)
        if reason is None:
            rows.append(_cells(row.outcome, gpu or device.name))
            continue
        place = (row.outcome.trial.kernel, row.verdict)
        first.setdefault(place, reason)
        counts[place] = counts.get(place, 0) + 1
    return Surveyed(rows, {f"{kernel}: {first[kernel, why]}": n for (kernel, why), n in counts.items()})


def _as_it_ran(outcome: Outcome, device: Device, machine: Mapping[str, Any]) -> Outcome:
    """The outcome, called warm where all of its sets of buffers stay in L2 together."""
    (row,) = verify(device, machine, [outcome]).rows
    sets = (outcome.time or {}).get("sets")
    l2_bytes = machine.get("l2_bytes") or device.l2_bytes or 0
    if not sets or row.prediction is None or sets * row.prediction.footprint_bytes > l2_bytes:
        return outcome
    return outcome._replace(trial=outcome.trial._replace(warm=True))


def _unfit(row: Row) -> str | None:
    """Why a calibration must not see it."""
    if row.faults:
        return row.faults[0]
    if not row.outcome.ok:
        return f"{row.outcome.status}: {row.outcome.message}"
    if row.prediction is None:
        return f"no peak for {row.outcome.trial.dtype} is known of this GPU"
    return None if row.outcome.time_s else "no time"


def _cells(outcome: Outcome, gpu: str) -> dict[str, Any]:
    trial = outcome.trial
    return {
        "gpu": gpu,
        "op": trial.op,
        "dtype": trial.dtype,
        **trial.dims,
        "causal": "" if trial.causal is None else int(trial.causal),
        "kernel": LIBRARIES.get(trial.kernel, FRAMEWORK),
        "warm": int(trial.warm),
        "time_us": f"{(outcome.time_s or 0) / MICRO:.5g}",
    }


def provenance(machine: Mapping[str, Any]) -> dict[str, str | int | None]:
    """What a calibration's file says of the machine that was measured; None where it did not tell."""
    packages = ("memwall", "date", "driver", "cuda", "cudnn", "torch", "seed")
    return {"gpu": machine.get("gpu_name"), **{name: machine.get(name) for name in packages}}


def table_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV: a table that `calibrate`, `predict` and `accuracy` read."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
