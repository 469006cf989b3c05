"""A trial: one kernel on one shape, as the plan lists it, the worker runs it and a record keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

Tensors: TypeAlias = Mapping[str, Any]
"""A kernel's inputs and outputs by name, as torch tensors."""
Launch: TypeAlias = Callable[[], None]
"""Starts the kernel, on the current stream."""


class Trial(NamedTuple):
    """One kernel on one shape."""

    kernel: str
    """Where it comes from and which it is: triton.flash, cupy.gemv, library.cudnn."""
    op: str
    dims: Mapping[str, int]
    """The operator's full shape."""
    dtype: str = "bf16"
    causal: bool | None = None
    impl: str | None = None
    warm: bool = False
    """Run on one set of buffers, so that L2 keeps what fits; else sets rotate and L2 is cold."""

    @property
    def name(self) -> str:
        """For people, and unique in a plan: attention heads=32 ... bf16 causal triton.flash."""
        shape = " ".join(f"{key}={value}" for key, value in self.dims.items())
        mask = {None: "", True: " causal", False: ""}[self.causal]
        return f"{self.op} {shape} {self.dtype}{mask} {self.kernel}{' warm' if self.warm else ''}"

    @property
    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {**self._asdict(), "dims": dict(self.dims)}


def trial_of(record: Mapping[str, Any]) -> Trial:
    """A trial from its JSON.

    Raises:
        KeyError, TypeError: it is none.
    """
    return Trial(**{key: record[key] for key in Trial._fields if key in record})


IRREGULAR = {
    "m": 509,
    "n": 387,
    "k": 1031,
    "rows": 61,
    "cols": 1028,  # streams take four elements at a time
    "seq_q": 333,
    "seq_kv": 333,
    "count": 5003,
    "elements": 65536,  # a power of two, as the access pattern needs
}
"""Sizes that no block divides, for checking a kernel; small enough for float64."""
_DECODED_KEYS = 1031


def irregular(trial: Trial) -> Trial:
    """The same kernel on a small and irregular shape: heads, groups, mask and head size stay."""
    dims = {name: min(size, IRREGULAR.get(name, size)) for name, size in trial.dims.items()}
    dims["batch"] = min(dims.get("batch", 1), 3)
    if trial.op == "attention":
        group = dims["heads"] // dims["kv_heads"]
        dims["kv_heads"] = min(dims["kv_heads"], 2)
        dims["heads"] = group * dims["kv_heads"]
        if dims["seq_q"] == 1:
            dims["seq_kv"] = min(trial.dims["seq_kv"], _DECODED_KEYS)
    return trial._replace(dims={name: dims[name] for name in trial.dims})
