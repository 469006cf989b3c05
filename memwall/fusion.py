"""Chains of kernels, and which of them can be one kernel.

A chain is a list of steps in order; a fusion joins neighbours. The tensors that only pass between joined
steps stay on chip (`memwall.program.fuse`). Joining is legal if a block has on chip what the next step needs:

    after anything        a map (GELU, add ...) works element by element, in the epilogue
    rows after a product  a norm or a softmax needs whole rows; a block has a tile's columns of them, a
    cluster of
                          blocks as many tiles' (Hopper on, through distributed shared memory)
    a product after rows  its blocks would each need the statistics of whole rows first
    a product after a product   a block's rows of the tensor between must fit shared memory beside the tiles
    products of one input side by side: one wider product
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from memwall.dtypes import Precision
from memwall.errors import UsageError, nearest, shown
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Kernel, Program, Tensor, fuse
from memwall.units import KIBI, scaled_binary

Kind = Literal["product", "rows", "map"]

TILE_COLUMNS = 256
CLUSTER = 8
"""Blocks of a portable cluster. Source: CUDA C++ Programming Guide, "Thread Block Clusters"."""
BLOCK_ROWS = 64
ROW_SUM_BYTES = 4
MOST_STEPS = 8
MAPS = {"gelu": "gelu", "add": "add", "residual": "add", "copy": "copy"}
ROWS = {"rmsnorm": "rmsnorm", "layernorm": "layernorm", "softmax": "softmax", "norm": "rmsnorm"}
WORDS = ("linear", *MAPS, *ROWS)


class Step(NamedTuple):
    """One kernel of a chain, and what kind it is."""

    kernel: Kernel
    kind: Kind
    width: int
    """Columns of what it writes."""


class Chain(NamedTuple):
    """Steps in order, and the results that are written even when fused."""

    name: str
    steps: tuple[Step, ...]
    kept: frozenset[str] = frozenset()

    @property
    def program(self) -> Program:
        """The chain, a kernel a step."""
        return Program(self.name, tuple(step.kernel for step in self.steps), self.kept)


class Fusion(NamedTuple):
    """One way to join neighbours."""

    program: Program
    """A kernel a group."""
    vanishing: tuple[Tensor, ...]
    """What no longer passes through memory."""
    obstacles: tuple[str, ...]
    """Why it cannot be done; empty if it can."""


def chain_of(words: Sequence[str], tokens: int, hidden: int, width: int, precision: Precision) -> Chain:
    """A chain from words: linear, linear:14336, gelu, add, rmsnorm, layernorm, softmax.

    Args:
        words: the steps.
        tokens: rows.
        hidden: columns of the first input.
        width: columns that a plain `linear` writes.
        precision: formats.

    Raises:
        UsageError: a word that is no step, or too many.
    """
    if not 1 <= len(words) <= MOST_STEPS:
        raise UsageError(
            f"a chain has 1 to {MOST_STEPS} steps, not {len(words)}", "Try linear,gelu,layernorm"
        )
    steps: list[Step] = []
    flowing = Tensor("x", (tokens, hidden), precision.activation)
    for number, word in enumerate(words, 1):
        step = _step(word, number, flowing, width, precision)
        steps.append(step)
        (flowing,) = step.kernel.writes
    return Chain(",".join(words), tuple(steps))


def fusions(chain: Chain, device: Device) -> list[Fusion]:
    """Every way to join neighbours, the unfused chain first and the whole as one last."""
    return [_fusion(chain, groups, device) for groups in _groupings(len(chain.steps))]


def _step(word: str, number: int, x: Tensor, width: int, precision: Precision) -> Step:
    name, colon, size = word.strip().lower().partition(":")
    rows, cols = x.shape
    if name == "linear":
        out = _size(size, word) if colon else width
        kernel = registry.find("gemm").build(m=rows, n=out, k=cols, precision=precision).kernels[0]
        return Step(_chained(kernel, number, x, f"linear {number}"), "product", out)
    if colon or name not in WORDS:
        near = [f"Did you mean {each}? " for each in nearest(name, WORDS, 1)]
        raise UsageError(
            f"no step '{shown(word)}'", f"{''.join(near)}Steps: {', '.join(WORDS)}, linear:14336"
        )
    op = MAPS.get(name) or ROWS[name]
    kernel = registry.find(op).build(rows=rows, cols=cols, precision=precision).kernels[0]
    return Step(_chained(kernel, number, x, f"{op} {number}"), "rows" if name in ROWS else "map", cols)


def _size(text: str, word: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= KIBI * KIBI:
        raise UsageError(f"'{shown(word)}' names no width", "Write it like linear:14336")
    return int(text)


def _chained(kernel: Kernel, number: int, x: Tensor, name: str) -> Kernel:
    """The kernel with the chain's tensor as its first operand, its others its own."""
    others = kernel.reads[1:]
    reads = (x, *(tensor._replace(name=f"{tensor.name} {number}") for tensor in others))
    writes = tuple(tensor._replace(name=f"{name}'s result") for tensor in kernel.writes)
    return kernel._replace(name=name, reads=reads, writes=writes)


def _groupings(count: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way to cut so many steps into runs of neighbours; the finest first, the whole last."""
    cuts = sorted(range(1 << (count - 1)), key=lambda joined: (joined.bit_count(), joined))
    for joined in cuts:
        groups: list[list[int]] = [[0]]
        for step in range(1, count):
            if joined >> (step - 1) & 1:
                groups[-1].append(step)
            else:
                groups.append([step])
        yield tuple(map(tuple, groups))


def _fusion(chain: Chain, groups: tuple[tuple[int, ...], ...], device: Device) -> Fusion:
    kernels = []
    obstacles: list[str] = []
    for group in groups:
        members = [chain.steps[i] for i in group]
        inside = {t.name for step in members for t in step.kernel.writes}
        after = [s.kernel for i, s in enumerate(chain.steps) if i not in group]
        needed = {t.name for kernel in after for t in kernel.reads} | chain.kept
        name = " + ".join(step.kernel.name for step in members)
        part = Program(name, tuple(s.kernel for s in members), frozenset(inside & needed))
        kernels.append(fuse(part).kernels[0] if len(members) > 1 else members[0].kernel)
        obstacles += _obstacles(members, device)
    program = Program(chain.name, tuple(kernels), chain.kept)
    left = {t.name for kernel in kernels for t in (*kernel.reads, *kernel.writes)}
    before = chain.program.intermediates
    return Fusion(program, tuple(t for t in before if t.name not in left), tuple(obstacles))


def _obstacles(members: Sequence[Step], device: Device) -> Iterator[str]:
    """What stands against these neighbours as one kernel."""
    unit = device.group("unit")
    shared = unit.get("shared_memory_per_block_kib", unit.get("shared_memory_kib", 64)) * KIBI
    columns = TILE_COLUMNS * (CLUSTER if "clusters" in device.features else 1)
    product: Step | None = None
    reduced = False
    for before, step in pairwise(members):
        if before.kind == "product":
            product = before
        reduced = reduced or before.kind == "rows"
        flows = any(t.name in {w.name for w in before.kernel.writes} for t in step.kernel.reads)
        if step.kind == "rows" and product and product.width > columns:
            yield (
                f"{step.kernel.name} needs whole rows of {product.width}, the tiles on chip have"
                f" {columns} columns"
            )
        if step.kind == "rows" and step.width * ROW_SUM_BYTES > shared:
            yield f"{step.kernel.name}: a row of {step.width} does not fit {scaled_binary(shared)}"
        if step.kind == "product" and flows and reduced:
            yield f"{step.kernel.name} would need the statistics of whole rows before its first tile"
        elif step.kind == "product" and flows and product:
            rows_bytes = BLOCK_ROWS * product.kernel.writes[0].dtype.bits // 8 * before.width
            if 2 * rows_bytes > shared:
                yield (
                    f"{step.kernel.name}: {BLOCK_ROWS} rows of {before.width} take"
                    f" {scaled_binary(rows_bytes)},"
                    f" a block has {scaled_binary(shared)} for them and its tiles"
                )
