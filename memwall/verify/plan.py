"""Which trials a run makes: the standard two minutes, or what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memwall.dtypes import find as find_dtype
from memwall.errors import NotAvailable, UsageError, nearest, shown
from memwall.ops import registry
from memwall.units import MEBI
from memwall.verify.case import Trial

FORMATS = ("bf16", "fp16", "fp32")
CUPY_FORMAT = "fp32"
"""The CUDA C++ kernels are written in it."""
SIXTEEN_BITS = frozenset(
    ("triton.flash", "triton.decode", "triton.standard", "triton.gemm", "library.flash2", "library.cudnn")
)
"""Kernels whose products are the matrix unit's; in fp32 that would round to tf32."""
DEFAULT_HEAD_DIM = 128

_KERNELS = {
    "gemv": {"triton": "triton.gemv", "cupy": "cupy.gemv", "library": "library.gemv"},
    "gemm": {
        "triton": "triton.gemm",
        "tiled": "cupy.tiled_gemm",
        "naive": "cupy.naive_gemm",
        "library": "library.gemm",
    },
    "batched_gemm": {"triton": "triton.batched_gemv", "library": "library.batched_gemm"},
    "rmsnorm": {"triton": "triton.rmsnorm", "library": "library.rmsnorm"},
    "layernorm": {"triton": "triton.layernorm", "library": "library.layernorm"},
    "residual_rmsnorm": {"triton": "triton.residual_rmsnorm"},
    "softmax": {"triton": "triton.softmax", "library": "library.softmax"},
    "attention": {
        "standard": "triton.standard",
        "flash": "triton.flash",
        "cupy": "cupy.standard",
        "fa2": "library.flash2",
        "cudnn": "library.cudnn",
    },
    "copy": {"cupy": "cupy.copy", "library": "library.copy"},
    "add": {"cupy": "cupy.add", "library": "library.add"},
    "gelu": {"library": "library.gelu"},
    "read_sum": {"cupy": "cupy.read_sum"},
}
"""By operator: the words that `--impl` takes, and the kernel behind each."""


def requested_plan(
    op: str,
    shape: Mapping[str, int | None],
    *,
    impls: Sequence[str] = (),
    dtype: str | None = None,
    causal: bool | None = None,
    warm: bool = False,
) -> list[Trial]:
    """The trials of one operator: of every kernel of it that computes in the format, or of those named.

    Args:
        op: the operator's name.
        shape: its dimensions, None where the user named none.
        impls: words of `_KERNELS`; empty for all that can.
        dtype: bf16, fp16 or fp32; by default bf16, and fp32 for the CUDA C++ kernels.
        causal: attention's mask.
        warm: keep L2 warm.

    Raises:
        UsageError: an unknown name, or a shape that cannot be.
        NotAvailable: no kernel of this operator, or none in this format.
    """
    operator = registry.find(op)
    if operator.name not in _KERNELS:
        raise NotAvailable(
            f"the verifier has no kernel for {operator.name}", f"It has: {', '.join(_KERNELS)}"
        )
    given = dict(shape)
    if operator.name == "attention" and not given.get("head_dim"):
        given["head_dim"] = DEFAULT_HEAD_DIM
    dims, _ = registry.resolve(operator, given)
    masked = operator.mask(dims, causal) if operator.mask else None
    named = find_dtype(dtype).name if dtype else None
    trials = [
        Trial(kernel, operator.name, dims, named or _default_format(kernel), masked, _impl(kernel), warm)
        for kernel in _named(operator.name, impls, dims, named)
    ]
    for trial in trials:
        _check(trial)
    return trials


def _named(op: str, impls: Sequence[str], dims: Mapping[str, int], dtype: str | None) -> list[str]:
    kernels = _KERNELS[op]
    for word in impls:
        if word not in kernels:
            near = [f"Did you mean {name}? " for name in nearest(word, kernels, 1)]
            raise UsageError(
                f"the verifier has no {op} '{shown(word)}'",
                f"{''.join(near)}Choose from: {', '.join(kernels)}",
            )
    chosen = [kernels[word] for word in (impls or kernels)]
    if op == "attention" and dims["seq_q"] == 1:
        chosen = ["triton.decode" if kernel == "triton.flash" else kernel for kernel in chosen]
    able = [kernel for kernel in chosen if _computes(kernel, dtype)]
    if not able:
        raise NotAvailable(f"no {op} kernel of the verifier computes in {dtype}", "Try --dtype bf16")
    return able if impls else [kernel for kernel in able if dtype or not kernel.startswith("cupy.naive")]


def _computes(kernel: str, dtype: str | None) -> bool:
    """Whether a kernel computes in that format; in its own if none is asked for."""
    if dtype is None:
        return True
    if kernel.startswith("cupy."):
        return dtype == CUPY_FORMAT
    return dtype in FORMATS and not (dtype == "fp32" and kernel in SIXTEEN_BITS)


def _default_format(kernel: str) -> str:
    return CUPY_FORMAT if kernel.startswith("cupy.") else "bf16"


def _impl(kernel: str) -> str | None:
    """The implementation that memwall's operator calls it."""
    if kernel.endswith(".standard"):
        return "standard"
    return "flash" if kernel.split(".")[1] in ("flash", "flash2", "cudnn", "decode") else None


def _check(trial: Trial) -> None:
    """What the kernels cannot take, said before anything runs."""
    dims = trial.dims
    if trial.op == "attention" and (dims.get("window") or dims["head_dim"] != dims["head_dim_v"]):
        raise NotAvailable("the verifier's attention has no window and one head_dim", "Leave it out")
    if trial.op == "attention" and dims["head_dim"] not in (16, 32, 64, 128, 256):
        raise NotAvailable("the verifier's attention takes a head_dim of 16 to 256, a power of 2", "Try 128")
    if trial.kernel == "triton.batched_gemv" and dims["n"] != 1:
        raise NotAvailable("triton's batched product is a GEMV", "Try --n 1, or --impl library")
    if trial.kernel.startswith("cupy.") and trial.op in ("copy", "add", "read_sum") and dims["cols"] % 4:
        raise NotAvailable("the streams take four elements at a time", "Try a multiple of 4 for --cols")


def standard_plan() -> list[Trial]:
    """The standard run: every kernel, at sizes well beyond L2, and the L2 plateau; about two minutes."""
    return [*_streams(), *_access(), *_products(), *_rows(), *_attention(), *_three_kernels()]


def _streams() -> Iterable[Trial]:
    """Copy, read and sum over working sets from inside L2 to far beyond; the small ones warm."""
    for mib in (16, 32, 512):
        elements = mib * MEBI // 4
        for op, tensors in (("copy", 2), ("read_sum", 1), ("add", 3)):
            rows = elements // tensors // 4096
            yield Trial(f"cupy.{op}", op, {"rows": rows, "cols": 4096}, CUPY_FORMAT, warm=mib < 64)
    for op in ("copy", "add", "gelu"):
        yield Trial(f"library.{op}", op, {"rows": 16384, "cols": 8192})


def _access() -> Iterable[Trial]:
    """The same loads coalesced, every 2nd, 8th and 32nd element, and scattered; and a transpose."""
    elements, count = 512 * MEBI, 16 * MEBI
    scattered = int(elements * 0.6180339887) | 1  # the golden section: no two near each other
    for step in (1, 2, 8, 32, scattered):
        dims = {"count": count, "step": step, "elements": elements}
        yield Trial("cupy.access", "access", dims, CUPY_FORMAT)
    for kernel in ("cupy.conflicting", "cupy.padded"):
        yield Trial(kernel, "transpose", {"rows": 8192, "cols": 8192}, CUPY_FORMAT)


def _products() -> Iterable[Trial]:
    square = {"m": 8192, "k": 8192, "batch": 1}
    yield Trial("triton.gemv", "gemv", square)
    yield Trial("library.gemv", "gemv", square)
    yield Trial("cupy.gemv", "gemv", square, CUPY_FORMAT)
    yield Trial("triton.gemv", "gemv", {"m": 512, "k": 262144, "batch": 1})  # few rows: the sum is split
    many = {"batch": 64, "m": 2048, "n": 1, "k": 4096}
    yield Trial("triton.batched_gemv", "batched_gemm", many)
    yield Trial("library.batched_gemm", "batched_gemm", many)
    for size in (4096, 8192, 16384):
        cube = {"m": size, "n": size, "k": size}
        yield Trial("triton.gemm", "gemm", cube)
        yield Trial("library.gemm", "gemm", cube)
    small = {"m": 2048, "n": 2048, "k": 2048}
    yield Trial("cupy.naive_gemm", "gemm", small, CUPY_FORMAT)
    yield Trial("cupy.tiled_gemm", "gemm", small, CUPY_FORMAT)


def _rows() -> Iterable[Trial]:
    shape = {"rows": 16384, "cols": 8192}
    for op in ("rmsnorm", "layernorm", "softmax", "residual_rmsnorm"):
        yield from (Trial(kernel, op, shape) for kernel in _KERNELS[op].values())


def _attention() -> Iterable[Trial]:
    for causal, shape in (
        (True, _shape(1, 32, 32, 128, 8192, 8192)),
        (True, _shape(1, 64, 8, 128, 4096, 4096)),
        (False, _shape(2, 32, 32, 128, 4096, 4096)),
        (False, _shape(2, 64, 64, 64, 4096, 4096)),
        (False, _shape(2, 16, 16, 256, 4096, 4096)),
    ):
        for kernel in ("triton.flash", "library.flash2", "library.cudnn"):
            yield Trial(kernel, "attention", shape, causal=causal, impl="flash")
    for shape in (_shape(32, 64, 8, 128, 1, 8192), _shape(4, 64, 8, 128, 1, 32768)):
        for kernel in ("triton.decode", "library.flash2", "library.cudnn"):
            yield Trial(kernel, "attention", shape, causal=False, impl="flash")


def _three_kernels() -> Iterable[Trial]:
    for causal in (False, True):
        shape = _shape(1, 32, 32, 128, 4096, 4096)
        yield Trial("triton.standard", "attention", shape, causal=causal, impl="standard")
    small = _shape(1, 16, 16, 64, 2048, 2048)
    yield Trial("cupy.standard", "attention", small, CUPY_FORMAT, True, "standard")


def _shape(batch: int, heads: int, kv_heads: int, head_dim: int, seq_q: int, seq_kv: int) -> dict[str, int]:
    return {
        "heads": heads, "head_dim": head_dim, "seq_q": seq_q, "seq_kv": seq_kv,
        "kv_heads": kv_heads, "head_dim_v": head_dim, "batch": batch,
    }  # fmt: skip
