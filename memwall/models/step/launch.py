"""One kernel of a pass with its repeats, and what all kernels of a pass are made under."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from memwall.dtypes import Dtype, Precision
from memwall.maths import ceil_div, whole_up
from memwall.models.model import Storage
from memwall.models.passes import Tokens
from memwall.program import Kernel, Program, Tensor

Kind = Literal[
    "embedding", "norm", "linear", "attention", "recurrence", "elementwise", "routing", "head", "sampling"
]


class Launch(NamedTuple):
    """A kernel that a pass launches so many times."""

    name: str
    """What it does in the pass: attention.qkv, mlp.down."""
    kind: Kind
    kernel: Kernel
    """Its tensors with their formats, and its arithmetic; its tensors are named as in memwall.ops."""
    repeats: int = 1


class Setting(NamedTuple):
    """What the kernels of a group of layers have in common."""

    tokens: Tokens
    linear: Precision
    """Of the linear layers that quantisation covers; their results have 16 bits."""
    plain: Precision
    """Of everything else: 16 bits, and the cache's format."""
    storage: Storage
    eager: bool = False
    """Every elementwise step is a kernel of its own, and every projection unless they are merged."""
    merged: bool = True
    """Projections of one input are one product: QKV, gate and up."""
    impl: str = "flash"
    absorbed: bool = False
    """Latent attention computed on the latent cache itself."""
    causal: bool = True
    """Whether a token sees only those before it, and its K and V are kept."""
    prefill: bool = False
    """Whether the prompt is read; else one token a sequence is added."""
    rotary: bool = True
    """Whether positions turn Q and K; False where a table of positions is added to the embedding."""
    source: int = 0
    """Tokens of the encoder that cross-attention reads."""
    widths_differ: bool = False
    """Whether the model has MLPs of several widths, which their kernels then name."""
    unquantised: frozenset[str] = frozenset()
    """Linear weights that this group keeps at 16 bits."""
    spread: int = 1
    """GPUs that share the tokens of norms and residual sums."""
    expert_gpus: int = 1
    """GPUs that whole experts are spread over."""
    expert_rows: int = 0
    """New tokens whose experts are among them; 0: those of this pass."""
    imbalance: float = 1.0
    """Tokens of the busiest of those GPUs over the mean."""

    @property
    def rows(self) -> int:
        """New tokens of all sequences."""
        return self.tokens.batch * self.tokens.seq_q

    @property
    def norm_rows(self) -> int:
        """New tokens that a GPU norms and adds to the residual stream."""
        return ceil_div(self.rows, self.spread)  # type: ignore[no-any-return]

    @property
    def met(self) -> int:
        """New tokens that meet a layer's experts, on whichever GPU."""
        return self.expert_rows or self.rows

    def pairs(self, used: int) -> int:
        """Pairs of a token and an expert on one GPU, each token using so many experts; of the busiest."""
        if self.expert_gpus == 1:
            return self.rows * used
        return whole_up(self.met * used * self.imbalance / self.expert_gpus)  # type: ignore[no-any-return]

    @property
    def narrow(self) -> Dtype | None:
        """The format that linear layers read activations in, where it has fewer than 16 bits."""
        narrow = self.linear.activation
        return narrow if narrow.bits < self.plain.activation.bits else None

    @property
    def steps(self) -> str:
        """The implementation of the operators that may be fused."""
        return "eager" if self.eager else "fused"


def launched(name: str, kind: Kind, program: Program) -> list[Launch]:
    """A program's kernels; several go by their own names, within the part's."""
    if len(program.kernels) == 1:
        return [Launch(name, kind, program.kernels[0])]
    area = name.partition(".")[0]
    return [Launch(f"{area}.{kernel.name}", kind, kernel) for kernel in program.kernels]


def reading(launches: Sequence[Launch], *tensors: Tensor) -> list[Launch]:
    """The launches, the last of which reads more."""
    *before, last = launches
    kernel = last.kernel
    return [*before, last._replace(kernel=kernel._replace(reads=(*kernel.reads, *tensors)))]


def narrowed(launches: Sequence[Launch], setting: Setting) -> list[Launch]:
    """The launches, whose result a narrower linear layer reads.

    A fused kernel writes it in that format at once; an eager pass has a kernel that converts it.
    """
    if setting.narrow is None:
        return list(launches)
    *before, last = launches
    wide = [tensor for tensor in last.kernel.writes if tensor.role == "activation"][-1]
    slim = wide._replace(dtype=setting.narrow)
    if setting.eager:
        quantise = Kernel("quantise", (wide,), (slim._replace(name="quantised"),))
        return [*before, last, Launch("quantise", "elementwise", quantise)]
    writes = tuple(slim if tensor is wide else tensor for tensor in last.kernel.writes)
    return [*before, last._replace(kernel=last.kernel._replace(writes=writes))]


def repeated(launches: Iterable[Launch], times: int) -> list[Launch]:
    """The launches of so many equal layers; none of none."""
    if not times:
        return []
    return [launch._replace(repeats=launch.repeats * times) for launch in launches]


def merged(launches: Iterable[Launch]) -> tuple[Launch, ...]:
    """Equal launches of one name as one with their repeats.

    What belongs to a part stands together, whichever layers have it, in the order in which it runs; what
    mixes tokens stands before MLPs, and the head last.
    """
    repeats: dict[Launch, int] = {}
    parts: dict[str, list[Launch]] = {}
    before: Launch | None = None
    for launch in launches:
        key = launch._replace(repeats=0)
        part = parts.setdefault(_part(launch.name), [])
        if key not in repeats:
            place = part.index(before) + 1 if before is not None and before in part else len(part)
            part.insert(place, key)
        repeats[key] = repeats.get(key, 0) + launch.repeats
        before = key
    ordered = sorted(parts, key=lambda part: _LATER.get(part, 0))
    return tuple(key._replace(repeats=repeats[key]) for part in ordered for key in parts[part])


_LATER = {"mlp": 1, "moe": 1, "extra": 1, "final norm": 2, "outer": 2, "head": 3, "sampling": 3}


def _part(name: str) -> str:
    """The part that a kernel's name begins with: attention.qkv and `attention, window 4096` have one."""
    area = name.partition(".")[0].partition(",")[0]
    return "moe" if area in ("experts", "shared") else area
