"""Rows of a table, as people and data sets write them, as cases of an operator on a device.

Both vocabularies are read: memwall's own (seq_q, heads, op=attention, impl=fa2) and that of the published
measurements (q_len, n_q_heads, phase=decode, kernel=vllm_flash_attn_fa3|vllm_0.24.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from memwall import dtypes, hardware
from memwall.errors import MemwallError, UnknownName, UsageError, shown
from memwall.estimate.library import NAMES, UNKNOWN, Library, recognise
from memwall.hardware import Device
from memwall.ops import registry
from memwall.ops.registry import Op

Cells = Mapping[str, str]

_SEVERAL = {
    "m": ("m",),
    "n": ("n",),
    "k": ("k",),
    "experts": ("experts",),
    "rows": ("rows",),
    "cols": ("cols",),
    "vocab": ("vocab",),
    "batch": ("batch",),
    "heads": ("heads", "n_q_heads"),
    "kv_heads": ("kv_heads", "n_kv_heads"),
    "seq": ("seq",),
    "seq_q": ("seq_q", "q_len"),
    "seq_kv": ("seq_kv", "kv_len"),
    "head_dim": ("head_dim",),
    "head_dim_v": ("head_dim_v",),
    "window": ("window",),
}
DIMS = _SEVERAL | {
    dim: (dim,) for op in registry.ops().values() for dim in (*op.dims, *op.shorthand) if dim not in _SEVERAL
}
"""The columns that give a dimension of an operator."""
COLUMNS = frozenset(
    {
        *(column for columns in DIMS.values() for column in columns),
        *("id", "gpu", "op", "phase", "dtype", "kv_dtype", "weight_dtype", "out_dtype", "impl", "backend"),
        *("kernel", "library", "causal", "warm", "footprint_in_l2", "suspect", "time_us", "latency_us"),
        *("collective", "bytes", "message_bytes", "gpus", "num_gpus", "min_bytes"),
    }
)
"""Every column that means something."""

_STREAM = ("copy", "fused")
OPS = {
    "prefill": "attention",
    "decode": "attention",
    "prefill_mla": "attention",
    "decode_mla_absorbed": "mla",
    "residual_add": "add",
    "norm_fwd(vidur)": "rmsnorm",
    "rms_norm_fwd": "rmsnorm",
    "layer_norm_fwd": "layernorm",
    "layernorm_fwd": "layernorm",
    "fused_add_rms_norm_fwd": "residual_rmsnorm",
    "softmax_fwd": "softmax",
    "torch_softmax": "softmax",
    "torch_logsoftmax": "softmax",
    "gelu_fwd": "gelu",
    "elementwise_gelu": "gelu",
    "torch_gelu": "gelu",
    "act_mul": "silu_mul",
    "cast_bf16_to_fp8(static scale)": "copy",
    "relu_squared_fwd": "copy",
    **dict.fromkeys((f"elementwise_{name}" for name in ("add", "mul", "div", "pow")), "add"),
    **dict.fromkeys(
        (f"elementwise_{name}" for name in ("addu", "mulu", "divu", "powu", "relu", "tanh")), "copy"
    ),
    **dict.fromkeys(
        (
            f"torch_{n}"
            for n in [
                "elu",
                "hardsigmoid",
                "hardtanh",
                "leakyrelu",
                "relu",
                "selu",
                "sigmoid",
                "softplus",
                "tanh",
            ]
        ),
        "copy",
    ),
}
"""Data sets' names of operators; a function of one tensor moves what a copy does, of two what a sum does."""

FUNCTIONS = {"elementwise_pow": "pow", "elementwise_powu": "pow", "relu_squared_fwd": "relu_squared"}
"""Functions that cost more than the bytes of their tensors: more clocks an element, or kernels."""

_FUSED = ("act_mul",)
FP16_BYTES, GATED_TENSORS = 2, 2.5
_BACKENDS = {"flash": "fa2", "cudnn": "fa3", "default": ""}
_CASTS = {"cast_bf16_to_fp8(static scale)": "fp8"}
_TRUE, _FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


class Row(NamedTuple):
    """One row, read: an operator of a shape in given formats on a device."""

    device: Device
    op: Op
    dims: tuple[tuple[str, int], ...]
    dtype: str
    weight: str | None
    kv: str | None
    out: str | None
    impl: str | None
    causal: bool | None
    library: Library
    warm: bool
    function: str | None = None
    """Of FUNCTIONS, which the operator stands for."""

    @property
    def group(self) -> tuple[Any, ...]:
        """Rows alike in all but their sizes, which one evaluation of the formulas serves."""
        dims = dict(self.dims)
        names = tuple(name for name, _ in self.dims)
        few = dims.get("seq_q", 0) <= 8
        same = dims.get("head_dim") == dims.get("head_dim_v")
        return (self.device.name, self.op.name, names, few, same, self.function, *self[3:10])


def read_row(cells: Cells, gpu: str | None) -> Row:
    """A row of a table.

    Args:
        cells: its columns by name.
        gpu: the device where the row names none.

    Raises:
        MemwallError: a row that cannot be predicted, and why.
    """
    name = (cells.get("op") or cells.get("phase") or _op_of(cells)).strip()
    op = _op("gelu" if _ungated(cells, name) else _name_of(cells, name))
    impl, library = _implementation(cells, op, name)
    dtype, weight = _formats(cells.get("dtype") or "bf16")
    kv = cells.get("kv_dtype") if op.name in ("attention", "mla") else None
    weight = cells.get("weight_dtype") or weight
    dims = _dims(op.name, tuple((dim, _cell(cells, names)) for dim, names in _columns(op.name)))
    causal = _flag(cells.get("causal"), "causal")
    if op.mask:
        causal = op.mask(dict(dims), causal)
    elif causal is not None:
        causal = None
    out = cells.get("out_dtype") or _CASTS.get(name.lower())
    warm = bool(
        _flag(cells.get("warm") or cells.get("footprint_in_L2") or cells.get("footprint_in_l2"), "warm")
    )
    device = _device(cells.get("gpu") or gpu)
    kv, out, function = _plain(kv, dtype), out or None, FUNCTIONS.get(name.lower())
    return Row(device, op, dims, dtype, weight, kv, out, impl, causal, library, warm, function)


def _ungated(cells: Cells, name: str) -> bool:
    """Whether `act_mul` has no gate, as the table's own count of bytes tells: two tensors, not three."""
    try:
        tensors = float(cells["min_bytes"]) / (float(cells["rows"]) * float(cells["cols"])) / FP16_BYTES
    except (KeyError, ValueError, ZeroDivisionError):
        return False
    return name in _FUSED and tensors < GATED_TENSORS


def _name_of(cells: Cells, name: str) -> str:
    """Our name of an operator; data sets write a gemv as a product of one row, of n columns."""
    return "gemm" if name.lower() == "gemv" and cells.get("n") else OPS.get(name.lower(), name)


def _op_of(cells: Cells) -> str:
    if cells.get("m") and cells.get("k"):
        return "gemm"
    raise UsageError("the row names no operator", "Add a column op: gemm, attention, rmsnorm ...")


@cache
def _op(name: str) -> Op:
    return registry.find(name)


@cache
def _device(name: str | None) -> Device:
    if not name:
        raise UsageError("the row names no GPU", "Add a column gpu, or --gpu h200")
    return hardware.load(name)


def _implementation(cells: Cells, op: Op, name: str) -> tuple[str | None, Library]:
    """The operator's implementation, and the library if one is named."""
    word = (cells.get("impl") or cells.get("backend") or "").strip()
    impl = _BACKENDS.get(word, word)
    library = recognise(cells.get("kernel") or cells.get("library"))
    if impl and impl not in op.impls:
        library = library if library.known else _of_a_word(impl, free=not cells.get("impl"))
        impl = ""
    if op.name == "attention" and not impl and library.kernel == "standard":
        impl = "standard"
    if impl in ("fa1", "fa2", "fa3") and not library.known:
        library = Library(impl)
    if op.name == "silu_mul" and not impl:
        impl = "fused" if name in _FUSED else "eager"
    return impl or None, UNKNOWN if library.kernel == "standard" else library


@cache
def _of_a_word(word: str, free: bool) -> Library:
    """The library that `impl` means where it is none of the operator's; a data set's `backend` may be any.

    Raises:
        UnknownName: no operator and no library has it, so that it is a misspelt one.
    """
    library = recognise(word)
    others = {impl for op in registry.ops().values() for impl in op.impls}
    if library.known or free or word in others:
        return library
    known = sorted({*others, *_BACKENDS, *NAMES})
    raise UnknownName("impl", word, known, ", ".join(known))


@cache
def _formats(text: str) -> tuple[str, str | None]:
    """The compute format, and the weights' where it is another: w4a16."""
    if text in ("w4a16", "w8a16"):
        return "fp16", f"int{text[1]}"
    return dtypes.find(text).name, None


def _plain(kv: str | None, dtype: str) -> str | None:
    return None if not kv or kv == dtype else kv


def _cell(cells: Cells, names: tuple[str, ...]) -> str:
    return next((cells[name] for name in names if cells.get(name)), "")


@cache
def _dims(name: str, cells: tuple[tuple[str, str], ...]) -> tuple[tuple[str, int], ...]:
    op = _op(name)
    given = {dim: _count(dim, text) for dim, text in cells if text}
    return tuple(registry.resolve(op, given)[0].items())


@cache
def _columns(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The dimensions that an operator takes, and the columns that give them."""
    op = _op(name)
    return tuple((dim, names) for dim, names in DIMS.items() if dim in op.dims or dim in op.shorthand)


@cache
def _count(name: str, text: str) -> int:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number != number or number % 1 or number < 1:
        raise UsageError(
            f"{name} must be a whole number of at least 1, not '{shown(text)}'", "For example: 4096"
        )
    return int(number)


def _flag(text: str | None, name: str) -> bool | None:
    if text is None or not text.strip():
        return None
    word = text.strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise UsageError(f"{name} is 1 or 0, not '{shown(text)}'", "Leave it empty for the default")
    return word in _TRUE


def try_row(cells: Cells, gpu: str | None) -> Row | MemwallError:
    """A row, or why it cannot be predicted."""
    try:
        return read_row(cells, gpu)
    except MemwallError as error:
        return error
