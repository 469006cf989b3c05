"""Standard attention and the generations of flash side by side: what each moves, recomputes and needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from memwall import flash
from memwall.dtypes import Precision
from memwall.errors import UsageError
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.modelled import Question, modelled
from memwall.models.model import Model
from memwall.reports.attention import AttentionReport, LayerKind, attention
from memwall.reports.backward import Backward, asymptote_bytes_of, backward_of, shape_of, visible_scores
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, DeviceLike
from memwall.retention import cache_of
from memwall.traffic import STATISTIC_BYTES, Traffic, flash1_figure
from memwall.units import KIBI

IMPLS = ("standard", "fa1", "fa2", "fa3")
NEEDS: Mapping[str, tuple[frozenset[str], ...]] = {
    "standard": (),
    "fa1": (),
    "fa2": (frozenset({"cp_async", "tma", "mfma", "mfma_scaled", "wmma"}),),
    "fa3": (frozenset({"tma"}), frozenset({"wgmma"})),
}
"""Features of the hardware, one of each set. Source: flash-attention at 0251105a, README, "Requirements"."""

OUTER = {"standard": "none: whole S and P", "fa1": "keys", "fa2": "queries", "fa3": "queries"}
"""What the outer loop goes over."""

RESCALES = {"fa1": 3, "fa2": 1, "fa3": 1}
"""Operations on each element of O for each block of keys: FA1 multiplies by the old sum, by the correction
and divides by the new sum; FA2 and FA3 correct, and divide once at the end. Source: Dao 2023,
arXiv:2307.08691, 3.1."""


class Generation(NamedTuple):
    """What one implementation does in the whole pass."""

    impl: str
    runs_as: str
    """What runs on this device: itself, or the generation before it."""
    lacks: tuple[str, ...]
    """Features that the device does not have."""
    blocks: flash.Blocks | None
    """None for standard."""
    compulsory: Traffic
    dram: Traffic
    no_reuse: Traffic
    l2: Traffic
    l2_counter_bytes: float
    computed_pairs: int
    """Scores that are computed, those that a block computes and masks included."""
    visible_pairs: int
    """Scores that count."""
    square_pairs: int
    """Scores without a mask."""
    exp_ops: int
    rescale_flops: int
    state_bytes: int
    """Kept for the backward pass besides O."""
    smem_bytes: float
    """Tiles in shared memory a block; 0 for standard."""
    figure_bytes: float | None
    """FA1 only: bytes as its paper's figure 2 counts them."""


class GenerationsReport(NamedTuple):
    """Standard attention and the generations of flash on one device."""

    base: AttentionReport
    generations: tuple[Generation, ...]
    backward: Backward
    asymptote_bytes: float | None
    """N^2 d^2 / M, in bytes: how FA1's traffic grows. None if the shared memory is not known."""
    smem_limit_bytes: float | None
    """Shared memory that a block may have."""

    @property
    def device(self) -> Device:
        """The device."""
        return self.base.device


def generations(
    model: str | Model | None = None,
    *,
    impl: str = "all",
    block_q: int | None = None,
    block_kv: int | None = None,
    gpu: DeviceLike = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    kv_dtype: str | None = None,
    causal: bool | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    library: str | None = None,
    calibration: str | None = None,
    bound_only: bool = False,
    **shape: int | None,
) -> GenerationsReport:
    """The generations side by side, for a model's pass or one layer of a shape.

    Args:
        model: as in `attention`.
        impl: all, or one of standard, fa1, fa2, fa3.
        block_q: rows of a block of queries; each generation's own unless given.
        block_kv: keys of a block.
        gpu: as in `attention`, like all that follow.
        dtype: format of Q and O.
        kv_dtype: format of K and V.
        causal: the mask.
        changes: what-ifs.
        defaults: what the caller assumed.
        library: as in `attention`, like the two that follow.
        calibration: constants of the user's own.
        bound_only: no estimate.
        shape: the shape.

    Raises:
        UsageError, NotAvailable: as `attention` says; NotPublished: no L2 in the device's file.
    """
    base = attention(
        model, gpu=gpu, dtype=dtype, kv_dtype=kv_dtype, causal=causal, changes=changes, defaults=defaults,
        library=library, calibration=calibration, bound_only=bound_only, **shape,
    )  # fmt: skip
    for name, size in (("block-q", block_q), ("block-kv", block_kv)):
        if size is not None and not 1 <= size <= KIBI:
            raise UsageError(f"--{name} must be from 1 to {KIBI}, not {size}", f"Try --{name} 128")
    names = IMPLS if impl == "all" else (impl,)
    made = tuple(_generation(name, base, block_q, block_kv) for name in names)
    limit = base.device.group("unit").get("shared_memory_per_block_kib")
    limit_bytes = limit * KIBI if limit else None
    return GenerationsReport(
        base, made, backward_of(base), asymptote_bytes_of(base, limit_bytes), limit_bytes
    )


def runs_as(impl: str, device: Device) -> tuple[str, tuple[str, ...]]:
    """The generation that runs when this one is asked for, and what the device lacks for it."""
    lacks = tuple(sorted(min(one) for one in NEEDS[impl] if not one & device.features))
    if not lacks:
        return impl, ()
    earlier = IMPLS[IMPLS.index(impl) - 1]
    return runs_as(earlier, device)[0], lacks


def _generation(impl: str, base: AttentionReport, block_q: int | None, block_kv: int | None) -> Generation:
    running, lacks = runs_as(impl, base.device)
    if impl == "standard":
        return _sum([_standard(kind, base) for kind in base.kinds], [k.repeats for k in base.kinds])
    parts = []
    for kind in base.kinds:
        shape = shape_of(kind, base)
        blocks = flash.blocks_of(running, shape, block_q, block_kv)
        parts.append(_flash(impl, running, lacks, shape, blocks, base))
    return _sum(parts, [kind.repeats for kind in base.kinds])


def _standard(kind: LayerKind, base: AttentionReport) -> Generation:
    shape = shape_of(kind, base)
    program = kind.programs["standard"]
    question = _question(base, program_name="standard", kind=kind)
    model = modelled(question, base.device)
    work = program.work
    square = shape.rows * shape.keys
    compulsory = Traffic(work.read_bytes, work.written_bytes)
    stored = program.produced["P"].bytes
    return Generation(
        "standard", "standard", (), None, compulsory, model.dram, model.l2, model.l2,
        model.l2_counter_bytes, square, _visible(kind, base), square, square + shape.rows, 0, stored, 0, None,
    )  # fmt: skip


def _question(base: AttentionReport, program_name: str, kind: LayerKind) -> Question:
    precision: Precision = base.formats.precision
    dims = {"seq_q": base.tokens.seq_q, "seq_kv": base.tokens.seq_kv}
    return Question("attention", dims, precision, kind.programs[program_name], base.causal, program_name)


def _flash(
    impl: str, running: str, lacks: tuple[str, ...], shape: flash.Shape, blocks: flash.Blocks,
    base: AttentionReport,
) -> Generation:  # fmt: skip
    l2, units = cache_of(base.device), base.device.units or 1
    compulsory = Traffic(shape.query_bytes + shape.cache_bytes, shape.output_bytes)
    figure = None
    if running == "fa1":
        no_reuse = through = flash.fa1_full(shape, blocks)
        dram = flash.fa1_dram(shape, blocks, units, l2)
        counter = through.total_bytes * l2.crossing
        head = flash1_figure(shape.seq_q, shape.head_dim, blocks.block_kv, shape.q_bytes)
        figure = head.times(shape.batch * shape.heads).total_bytes
    else:
        no_reuse, through = flash.without_reuse(shape, blocks), flash.through_l2(shape, blocks)
        dram = flash.through_dram(shape, blocks, units, l2)
        counter = flash.counted_l2(shape, blocks, l2)
    computed = shape.batch * shape.heads * _computed_pairs(shape, blocks)
    steps = int(ceil_div(computed, blocks.block_kv))
    statistics = 2 if running == "fa1" else 1
    return Generation(
        impl, running, lacks, blocks, compulsory, dram, no_reuse, through, counter, computed,
        visible_scores(shape), shape.rows * shape.keys, computed + steps,
        RESCALES[running] * steps * (shape.head_dim_v or shape.head_dim),
        statistics * shape.rows * STATISTIC_BYTES, _tile_bytes(shape, blocks), figure,
    )  # fmt: skip


def _computed_pairs(shape: flash.Shape, blocks: flash.Blocks) -> int:
    """Scores of the blocks that are not skipped, of one head: whole blocks of keys for each block of
    queries.
    """
    if shape.seq_q == 1:
        return shape.keys
    q_blocks = ceil_div(shape.seq_q, blocks.block_q)
    visited = flash.visited_keys(shape, blocks)
    return min(shape.seq_q * shape.keys, int(visited * shape.seq_q // q_blocks))


def _visible(kind: LayerKind, base: AttentionReport) -> int:
    return visible_scores(shape_of(kind, base))


def _tile_bytes(shape: flash.Shape, blocks: flash.Blocks) -> float:
    """Q, K and V tiles of a block, and its rows' maxima and sums."""
    q = blocks.block_q * shape.head_dim * shape.q_bytes
    kv = blocks.block_kv * (shape.head_dim + shape.head_dim_v) * shape.kv_bytes
    return q + kv + 2 * blocks.block_q * STATISTIC_BYTES


def _sum(parts: list[Generation], repeats: list[int]) -> Generation:
    """All layers: amounts added up, the rest of the first kind of layer."""
    pairs = list(zip(parts, repeats, strict=True))

    def traffic(of: Callable[[Generation], Traffic]) -> Traffic:
        total = Traffic(0, 0)
        for part, times in pairs:
            total = total + of(part).times(times)
        return total

    def count(of: Callable[[Generation], int]) -> int:
        return sum(of(part) * times for part, times in pairs)

    first = parts[0]
    figure = None if first.figure_bytes is None else sum((p.figure_bytes or 0) * times for p, times in pairs)
    return first._replace(
        compulsory=traffic(lambda part: part.compulsory),
        dram=traffic(lambda part: part.dram),
        no_reuse=traffic(lambda part: part.no_reuse),
        l2=traffic(lambda part: part.l2),
        l2_counter_bytes=sum(part.l2_counter_bytes * times for part, times in pairs),
        computed_pairs=count(lambda part: part.computed_pairs),
        visible_pairs=count(lambda part: part.visible_pairs),
        square_pairs=count(lambda part: part.square_pairs),
        exp_ops=count(lambda part: part.exp_ops),
        rescale_flops=count(lambda part: part.rescale_flops),
        state_bytes=count(lambda part: part.state_bytes),
        figure_bytes=figure,
    )
