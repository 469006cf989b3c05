"""One cold run of a trial between two flushes, for the profiler to count.

A flush reads a clean buffer of several times L2. The one before writes back what was dirty, so that none
of it is evicted at the trial's expense; what the one after writes back is what the trial left dirty in L2.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from memwall.verify.case import Launch

FLUSH = "memwall_flush"
"""The kernel's name, by which the profiler's rows are told apart."""
TIMES_L2, BLOCK = 4, 2048


@triton.jit
def memwall_flush(x, y, block: tl.constexpr):
    """Read everything; write next to nothing."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    tl.store(y + tl.program_id(0) % 32, tl.sum(tl.load(x + place), 0))


class Profiled:
    """Runs launches so that the profiler sees them and the flushes around them, and nothing else."""

    def __init__(self, l2_bytes: int) -> None:
        size = TIMES_L2 * l2_bytes // 4 // BLOCK * BLOCK
        self._clean = torch.ones(size, device="cuda")
        self._sums = torch.empty(32, device="cuda")
        self._flush()
        torch.cuda.synchronize()

    def run(self, launch: Launch) -> None:
        """One cold run, counted; a first one, not counted, compiles."""
        launch()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        self._flush()
        launch()
        self._flush()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()

    def _flush(self) -> None:
        memwall_flush[(self._clean.numel() // BLOCK,)](self._clean, self._sums, block=BLOCK)
