"""Which implementation a kernel's name means: the kernel, and the engine that calls it.

Names are those that profilers, engines and data sets use: `vllm_flash_attn_fa3|vllm_0.24.0`,
`CutlassFP8ScaledMMLinearKernel`, `torch_flow|trtllm_1.3.0`. A name that means nothing here is no library.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from memwall.errors import UnknownName

HOST_TIMED = "host-timed"
"""Times that include the launch from the host are no kernel's: kept apart from all others."""
EAGER, HUGGING_FACE = "eager", "huggingface"
"""Kernels that a framework launches one by one, each timed with its launch; and a model's code of such."""

_KERNELS = (
    (HOST_TIMED, r"host-timed"),
    ("standard", r"^standard"),
    ("triton-mla", r"triton.*mla"),
    ("flashinfer-trtllm", r"trtllm_?(?:mla|mha|decode|prefill|gen)|flash_?infer_trtllm"),
    ("flashmla", r"flash_?mla"),
    ("flash-attn-mla", r"flash_?attn_?mla"),
    ("fa3", r"fa3|flash_attn_3|flash_?attention[-_]?3|flash3"),
    ("fa4", r"fa4|flash_attn_4"),
    ("fa2", r"fa2|flash_attn_2|flash_?attention[-_]?2|flash2"),
    ("fa1", r"fa1"),
    ("flash-attn", r"flash[-_]?att(?:n|ention)"),
    ("flashinfer", r"flash_?infer"),
    ("cudnn", r"cu_?dnn"),
    ("deepgemm", r"deep_?gemm"),
    ("cutlass", r"cutlass"),
    ("cublas", r"cu_?blas(?:_?lt)?|torch\.nn\.functional\.linear|torch\.matmul|nvjet|^v_?llm_default"),
    ("liger", r"liger"),
    ("triton", r"triton"),
    ("compiled", r"torch\.compile|inductor|compiled"),
    (EAGER, r"eager"),
    (HUGGING_FACE, r"hugging_?face"),
    ("weight-only", r"weight_only"),
    ("smooth-quant", r"smooth_quant"),
)
_ENGINES = (
    ("trtllm", r"trt[-_]?llm|tensor_?rt(?:[-_]llm)?"),
    ("vllm", r"v_?llm"),
    ("sglang", r"sglang"),
    ("torch", r"(?:py_?)?torch"),
)
_WORD = r"(?<![a-z0-9])(?:{})(?![a-z]|(?<=[0-9])[0-9])"
"""A pattern as a whole word: what other letters touch, or another digit after its own, is another word."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where words meet in CutlassFP8ScaledMMLinearKernel."""

NAMES = tuple(dict.fromkeys(name for name, _ in (*_KERNELS, *_ENGINES)))
"""Every library that a name may mean; each is a name for itself."""


class Library(NamedTuple):
    """An implementation, as far as its name tells."""

    kernel: str | None = None
    engine: str | None = None

    def __str__(self) -> str:
        return "/".join(part for part in self if part)

    @property
    def known(self) -> bool:
        """Whether the name said anything."""
        return bool(self.kernel or self.engine)


UNKNOWN = Library()
TORCH = Library(None, "torch")
TRITON = Library("triton")
LIGER = Library("liger")
COMPILED = Library("compiled", "torch")
_OF_ROWS = (HOST_TIMED, "liger", "triton", "compiled", EAGER, HUGGING_FACE)
"""Kernels of norms, softmax and elementwise work; the others are of products or of attention."""


def of_rows(library: Library, within: bool = False) -> Library:
    """Whose kernels norms, softmax and elementwise work run by, where that is another's.

    FlashAttention's name says nothing about them, its engine's does. What a Hugging Face model does not chain
    itself, and what nobody names, is PyTorch's native kernel, or in a pass, which fuses, what its compiler
    makes. Liger's are one Triton kernel a row, and stand for such.

    Args:
        library: as it was named.
        within: a pass.

    >>> str(of_rows(UNKNOWN)), str(of_rows(TRITON)), str(of_rows(Library("fa3", "vllm")))
    ('torch', 'liger', 'vllm')
    """
    if library.kernel not in _OF_ROWS:
        library = Library(None, library.engine)
    if library.kernel == HUGGING_FACE:
        return TORCH
    if not library.known:
        return COMPILED if within else TORCH
    return LIGER if library.kernel in ("triton", "liger") else library


@lru_cache(maxsize=4096)
def recognise(name: str | None) -> Library:
    """The library that a name means.

    >>> str(recognise("vllm_flash_attn_fa3|vllm_0.24.0")), str(recognise("torch_flow|trtllm_1.3.0rc20"))
    ('fa3/vllm', 'trtllm')
    >>> recognise("q_proj").known
    False
    """
    if not name:
        return UNKNOWN
    text = _CAMEL.sub("_", name.strip()).lower()
    kernel, _, engine = text.partition("|")
    named = _first(_ENGINES, engine or text)
    return Library(_first(_KERNELS, kernel), named)


def library_named(name: str | None) -> Library:
    """The library that a user asks for: a word that means none would be estimated as if nothing was said.

    Raises:
        UnknownName: no library is called so.

    >>> str(library_named("FlashAttention-3")), library_named(None).known
    ('fa3', False)
    """
    found = recognise(name)
    if name in dict(_KERNELS):  # its own name, which a pattern of other spellings may miss
        return found._replace(kernel=name)
    if name is not None and not found.known:
        raise UnknownName("library", name, NAMES, ", ".join(NAMES))
    return found


def parse(text: str | None) -> Library:
    """A library as `str` writes it: fa3/vllm, trtllm, cublas."""
    if not text:
        return UNKNOWN
    kernel, _, engine = text.partition("/")
    engines = {name for name, _ in _ENGINES}
    if not engine and kernel in engines:
        return Library(None, kernel)
    return Library(kernel, engine or None)


def _first(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for name, pattern in table if re.search(_WORD.format(pattern), text)), None)
