"""What a launch asks of the GPU that it is for; Triton's interpreter, on the CPU, counts as a small one."""

from __future__ import annotations

from typing import Any

import torch

_INTERPRETED_UNITS = 4


def units(tensor: Any) -> int:
    """Compute units of the GPU that holds a tensor."""
    if not tensor.is_cuda:
        return _INTERPRETED_UNITS
    return int(torch.cuda.get_device_properties(tensor.device).multi_processor_count)


def stages_that_fit(tensor: Any, wanted: int, bytes_a_stage: int, other_bytes: int = 0) -> int:
    """How many stages of a pipeline fit in a block's shared memory: those wanted, or fewer, at least one."""
    if not tensor.is_cuda:
        return wanted
    shared_bytes = torch.cuda.get_device_properties(tensor.device).shared_memory_per_block_optin
    return int(max(1, min(wanted, (shared_bytes - other_bytes) // bytes_a_stage)))
