"""Kernels read tensors, write tensors and do arithmetic; a program is a short list of kernels.

Everything that memwall says about an operator follows from its program:

- compulsory traffic: every tensor that crosses the program's edge once, plus the tensors that
  pass between its kernels, written once and read by each kernel that needs them;
- fusion: `fuse` joins the kernels, and what passed between them no longer touches memory;
- quantisation is another dtype on a tensor, grouped queries another shape on K and V.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from memwall.dtypes import Dtype, bytes_of
from memwall.maths import Count, exact_div


class Tensor(NamedTuple):
    """A dense tensor in memory; within a program its name is its identity."""

    name: str
    shape: tuple[Count, ...]
    dtype: Dtype
    role: Literal["activation", "weight", "cache", "state", "parameter"] = "activation"
    """activation: made by one kernel, read by the next. weight: a matrix or table of the model, stored in the
    weights' format. cache: kept from token to token; state: the same, of constant size. parameter: a small
    vector beside the weights."""

    @property
    def bytes(self) -> Count:
        """Stored bytes, block scales included."""
        return bytes_of(self.shape, self.dtype)


class Kernel(NamedTuple):
    """One launch: what it reads, writes and computes."""

    name: str
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    matrix_flops: Count = 0
    vector_flops: Count = 0
    special_ops: Count = 0
    compute: str = "fp32"
    """The format of the matrix work."""


@dataclass(frozen=True)
class Work:
    """What a program asks of the hardware: bytes through memory, operations by engine."""

    read_bytes: Count
    written_bytes: Count
    matrix_flops: Mapping[str, Count]
    """By compute format."""
    vector_flops: Count
    special_ops: Count

    @property
    def traffic_bytes(self) -> Count:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.written_bytes

    @property
    def flops_by_engine(self) -> dict[str, Count]:
        """Operations of the matrix unit, the vector lanes and the special-function unit."""
        return {
            "matrix": sum(self.matrix_flops.values()),
            "vector": self.vector_flops,
            "special": self.special_ops,
        }

    @property
    def flops(self) -> Count:
        """Matrix FLOPs where there are any (gemm, gemv, attention); else vector plus special."""
        if self.matrix_flops:
            return sum(self.matrix_flops.values())
        return self.vector_flops + self.special_ops

    def __add__(self, other: Work) -> Work:
        """The work of both, one after the other."""
        formats = {**self.matrix_flops, **other.matrix_flops}
        return Work(
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
            {f: self.matrix_flops.get(f, 0) + other.matrix_flops.get(f, 0) for f in formats},
            self.vector_flops + other.vector_flops,
            self.special_ops + other.special_ops,
        )

    def times(self, count: Count) -> Work:
        """The work of so many repetitions."""
        return Work(
            self.read_bytes * count,
            self.written_bytes * count,
            {f: flops * count for f, flops in self.matrix_flops.items()},
            self.vector_flops * count,
            self.special_ops * count,
        )

    def share(self, parts: Count) -> Work:
        """One of so many equal parts; exact ints where they divide."""
        return Work(
            _part(self.read_bytes, parts),
            _part(self.written_bytes, parts),
            {f: _part(flops, parts) for f, flops in self.matrix_flops.items()},
            _part(self.vector_flops, parts),
            _part(self.special_ops, parts),
        )


class Program(NamedTuple):
    """Kernels in the order in which they run."""

    name: str
    kernels: tuple[Kernel, ...]
    kept: frozenset[str] = frozenset()
    """Intermediates that are results as well, and so are written even when fused."""

    @property
    def produced(self) -> dict[str, Tensor]:
        """The tensors that its kernels write, by name."""
        return {tensor.name: tensor for kernel in self.kernels for tensor in kernel.writes}

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that come in over the program's edge, each once."""
        produced = self.produced
        read = {tensor.name: tensor for kernel in self.kernels for tensor in kernel.reads}
        return tuple(tensor for name, tensor in read.items() if name not in produced)

    @property
    def intermediates(self) -> tuple[Tensor, ...]:
        """The tensors that one kernel writes and another reads."""
        read = {tensor.name for kernel in self.kernels for tensor in kernel.reads}
        return tuple(tensor for name, tensor in self.produced.items() if name in read)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that leave over the program's edge."""
        passing = {tensor.name for tensor in self.intermediates} - self.kept
        return tuple(tensor for name, tensor in self.produced.items() if name not in passing)

    @property
    def work(self) -> Work:
        """Compulsory traffic and arithmetic of the whole program."""
        produced = self.produced
        between = [t for kernel in self.kernels for t in kernel.reads if t.name in produced]
        total = Work(_bytes([*self.inputs, *between]), _bytes(produced.values()), {}, 0, 0)
        for kernel in self.kernels:
            total = total + replace(kernel_work(kernel), read_bytes=0, written_bytes=0)
        return total


def kernel_work(kernel: Kernel) -> Work:
    """What one kernel asks for by itself: each of its operands once."""
    matrix = {kernel.compute: kernel.matrix_flops} if _some(kernel.matrix_flops) else {}
    return Work(_bytes(kernel.reads), _bytes(kernel.writes), matrix, kernel.vector_flops, kernel.special_ops)


def fuse(program: Program, name: str | None = None) -> Program:
    """The same program as one kernel: only what crosses its edge touches memory.

    FLOPs stay, traffic can only fall: what passed between the kernels is neither written nor
    read again, unless it is kept as a result.
    """
    formats = {kernel.compute for kernel in program.kernels if _some(kernel.matrix_flops)}
    if len(formats) > 1:
        raise ValueError(f"cannot fuse kernels that compute in {' and '.join(sorted(formats))}")
    kernel = Kernel(
        name or program.name,
        program.inputs,
        program.outputs,
        sum(k.matrix_flops for k in program.kernels),
        sum(k.vector_flops for k in program.kernels),
        sum(k.special_ops for k in program.kernels),
        next(iter(formats), "fp32"),
    )
    return Program(name or program.name, (kernel,), program.kept)


def _bytes(tensors: Iterable[Tensor]) -> Count:
    return sum(tensor.bytes for tensor in tensors)


def _part(whole: Count, parts: Count) -> Count:
    if isinstance(whole, int) and isinstance(parts, int) and whole % parts == 0:
        return exact_div(whole, parts)
    return whole / parts


def _some(flops: Count) -> bool:
    """Whether there is work at all; an array or a symbol counts as work."""
    return not (isinstance(flops, int) and flops == 0)
