"""Number formats: the bits they store, scales included, and the engine that computes in them.

A format is stored as `bits` an element plus, for block-scaled formats, `scale_bits` for every
`block` elements of a row (the last axis). So int4-g128 takes 4 + 16/128 = 4.125 bits, nvfp4
4 + 8/16 = 4.5, mxfp4 4 + 8/32 = 4.25 and q8_0 8 + 16/32 = 8.5. A per-tensor scale (nvfp4 has a
32-bit one) is a few bytes and is not counted.

Sources: OCP Microscaling Formats v1.0 (mx*: E8M0 scale per 32); NVIDIA's NVFP4 (E4M3 scale per 16);
GPTQ/AWQ checkpoints (int4-gN: 16-bit scale a group, `-zp` with 4-bit zero points); GGML (q8_0, q4_0:
16-bit scale per 32; q6_k: sixteen 8-bit and one 16-bit scale per 256; q4_k: 128 bits of scales and minima per
256; q4_k_m: half of the layers' value and down projections in q6_k, the rest in q4_k: 4.797 bits in Llama 3,
llama.cpp, src/llama-quant.cpp); gpt-fast (int4-g32-zp16: 16-bit scales and zeros); DeepSeek-V3's report,
arXiv:2412.19437, section 3.3.2 (fp8-128x128: a 32-bit scale a square).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memwall.errors import NotAvailable, UnknownName
from memwall.maths import Count, ceil_div, exact_div


class Dtype(NamedTuple):
    """One number format."""

    name: str
    bits: int
    engine: str | None  # the peak it computes at; None: storage only
    scale_bits: int = 0
    block: int = 1
    block_rows: int = 1
    """Rows that share a scale; above one, a block is a rectangle of the matrix."""

    @property
    def bits_per_element(self) -> float:
        """Stored bits an element in a row that the block divides [bit]."""
        return self.bits + self.scale_bits / (self.block * self.block_rows)


_FORMATS = (
    Dtype("fp64", 64, "fp64"),
    Dtype("fp32", 32, "fp32"),
    Dtype("tf32", 32, "tf32"),  # a way to compute; stored as fp32
    Dtype("bf16", 16, "bf16"),
    Dtype("fp16", 16, "fp16"),
    Dtype("fp8", 8, "fp8"),
    Dtype("fp6", 6, "fp6"),
    Dtype("fp4", 4, "fp4"),
    Dtype("int8", 8, "int8"),
    Dtype("int4", 4, "int4"),
    Dtype("nvfp4", 4, "nvfp4", 8, 16),
    Dtype("mxfp4", 4, "mxfp4", 8, 32),
    Dtype("mxfp6", 6, None, 8, 32),  # no file has a peak for block-scaled 6- and 8-bit floats yet
    Dtype("mxfp8", 8, None, 8, 32),
    Dtype("fp8-128x128", 8, None, 32, 128, 128),
    Dtype("int4-g32", 4, None, 16, 32),
    Dtype("int4-g64", 4, None, 16, 64),
    Dtype("int4-g128", 4, None, 16, 128),
    Dtype("int4-g128-zp", 4, None, 20, 128),
    Dtype("int8-g128", 8, None, 16, 128),
    Dtype("q8_0", 8, None, 16, 32),
    Dtype("q4_0", 4, None, 16, 32),
    Dtype("q6_k", 6, None, 144, 256),
    Dtype("q4_k_m", 4, None, 204, 256),  # a mixture: 6 of 7 linear weights in q4_k, 4.5 bits, 1 of 7 in q6_k
    Dtype("int4-g32-zp16", 4, None, 32, 32),
    Dtype("int32", 32, None),
    Dtype("int64", 64, None),
)
_BY_NAME = {dtype.name: dtype for dtype in _FORMATS}
_ALIASES = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "fp8-e4m3": "fp8",
    "fp8-e5m2": "fp8",
    "q8-0": "q8_0",
    "q4-0": "q4_0",
    "q6-k": "q6_k",
    "q4-k-m": "q4_k_m",
}

ENGINES = frozenset(d.engine for d in _FORMATS if d.engine)
"""The formats that a hardware file may give a peak for."""


def names() -> list[str]:
    """Every format by its own name."""
    return list(_BY_NAME)


def find(name: str) -> Dtype:
    """The format of that name, whatever its case; `_` and `-` are one.

    Raises:
        UnknownName: with the nearest formats.
    """
    key = name.strip().lower()
    dashed = key.replace("_", "-")
    found = _BY_NAME.get(key) or _BY_NAME.get(dashed) or _BY_NAME.get(_ALIASES.get(dashed, ""))
    if found is None:
        raise UnknownName("dtype", name, names(), ", ".join(names()))
    return found


def bytes_of(shape: tuple[Count, ...], dtype: Dtype) -> Count:
    """Stored bytes of a dense tensor, scales included.

        ceil(elements * bits / 8) + ceil(scales * scale_bits / 8)
        scales = rows * ceil(cols / block), or ceil(rows / block_rows) * ceil(cols / block) a matrix

    Args:
        shape: the dimensions, the blocked one last.
        dtype: the number format.

    >>> bytes_of((8192, 8192), find("bf16"))
    134217728
    >>> bytes_of((4096, 4096), find("int4-g128"))  # 4.125 bits an element
    8650752
    """
    elements = _product(shape)
    payload = _whole_bytes(elements, dtype.bits)
    if not dtype.scale_bits:
        return payload
    *outer, rows, cols = (1, *shape)
    scales = _product(outer) * ceil_div(rows, dtype.block_rows) * ceil_div(cols, dtype.block)
    return payload + _whole_bytes(scales, dtype.scale_bits)


def _product(shape: Sequence[Count]) -> Count:
    product: Count = 1
    for dimension in shape:
        product = product * dimension
    return product


def _whole_bytes(elements: Count, bits: int) -> Count:
    return elements * exact_div(bits, 8) if bits % 8 == 0 else ceil_div(elements * bits, 8)


class Precision(NamedTuple):
    """Which format each kind of operand of a program has.

    `compute` names the engine; `weight`, `kv` and `out` default to what real kernels use: weights
    and KV cache like the activations; results in 16 bits for 8- and 4-bit floats, in 32 for integers.
    """

    activation: Dtype
    weight: Dtype
    kv: Dtype
    result: Dtype
    """What a matrix product writes."""
    plain: Dtype
    """What an elementwise or normalising kernel writes."""

    @property
    def compute(self) -> str:
        """The engine's format.

        Raises:
            NotAvailable: the format only stores; no engine computes in it.
        """
        if self.activation.engine is None:
            raise NotAvailable(
                f"no engine computes in {self.activation.name}: it is a storage format",
                f"Try --dtype bf16 --weight-dtype {self.activation.name}",
            )
        return self.activation.engine

    @property
    def attended(self) -> Dtype:
        """What attention writes: the product's result, but 16 bits after integers, as its kernels do."""
        return _BY_NAME["bf16"] if self.result.name == "int32" else self.result

    @property
    def scores(self) -> Dtype:
        """How unfused attention stores its score matrix: like the activations, in no less than 16 bits."""
        return self.activation if self.activation.bits >= 16 else _BY_NAME["bf16"]


def precision(
    dtype: str, weight: str | None = None, kv: str | None = None, out: str | None = None
) -> Precision:
    """The formats of a program's operands, from what the user named."""
    activation = find(dtype)
    result = find(out) if out else _BY_NAME[_RESULTS.get(activation.name, activation.name)]
    return Precision(
        activation=activation,
        weight=find(weight) if weight else activation,
        kv=find(kv) if kv else activation,
        result=result,
        plain=find(out) if out else activation,
    )


# cuBLASLt's defaults: 16-bit results of 8- and 4-bit float products, 32-bit ones of integer products.
_RESULTS = {
    "fp8": "bf16",
    "fp6": "bf16",
    "fp4": "bf16",
    "nvfp4": "bf16",
    "mxfp4": "bf16",
    "int8": "int32",
    "int4": "int32",
    "tf32": "fp32",
}
