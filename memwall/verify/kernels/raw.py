"""Compiling CUDA C++ with CuPy, and starting it on torch's tensors and stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import torch

from memwall.verify.case import Launch


def compiled(source: str, name: str) -> Any:
    """The kernel of that name, compiled for the current GPU."""
    return cupy.RawKernel(source, name, options=("--std=c++17",))


def launcher(
    kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], *arguments: Any, shared_bytes: int = 0
) -> Launch:
    """A launch on torch's current stream; tensors, kept alive, are passed as pointers, ints as long long."""

    def launch() -> None:
        passed = tuple(a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments)
        with cupy.cuda.Stream.from_external(torch.cuda.current_stream()):
            kernel(grid, block, passed, shared_mem=shared_bytes)

    return launch


def in_turn(*launches: Callable[[], Any]) -> Launch:
    """Several launches, one after the other."""

    def launch() -> None:
        for each in launches:
            each()

    return launch
