"""A case: an operator, its shape and its formats, ready to be asked again with something changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from memwall.bound import Bound, bound
from memwall.dtypes import Precision, find, precision
from memwall.errors import UsageError, shown
from memwall.hardware import Device, load
from memwall.ops import registry
from memwall.program import Program

DEFAULT_GPU = "h100"
DEFAULT_DTYPE = "bf16"


DeviceLike: TypeAlias = str | os.PathLike[str] | Device
"""A GPU, or its name, or its file."""


def device_of(gpu: DeviceLike, changes: Mapping[str, str | float] | None) -> Device:
    """The device that a caller means, with its what-ifs.

    Raises:
        UsageError: neither a name nor a device, or what-ifs on a device that is already made.
        UnknownName, FileError: as they say.
    """
    if isinstance(gpu, Device):
        if changes:
            raise UsageError(
                "what-ifs are made when a device is loaded", f"memwall.gpu('{gpu.name}', changes)"
            )
        return gpu
    if isinstance(gpu, str | os.PathLike):
        return load(os.fspath(gpu), changes)
    raise UsageError(
        f"gpu must be a name, a file or memwall.gpu(...), not {shown(repr(gpu))}", "For example: 'h100'"
    )


class Formats(NamedTuple):
    """The number formats as the user named them; None: as the operator's default has it."""

    dtype: str = DEFAULT_DTYPE
    weight: str | None = None
    kv: str | None = None
    out: str | None = None

    @classmethod
    def named(
        cls, dtype: str, weight: str | None = None, kv: str | None = None, out: str | None = None
    ) -> Formats:
        """The formats under their own names, whatever the spelling.

        Raises:
            UnknownName: with the nearest formats.
        """
        named = (dtype, *(name for name in (weight, kv, out) if name is not None))
        wrong = [name for name in named if not isinstance(name, str)]
        if wrong:
            raise UsageError(f"a number format is a word, not {shown(repr(wrong[0]))}", "For example: bf16")
        return cls(
            find(dtype).name, *(None if name is None else find(name).name for name in (weight, kv, out))
        )

    @property
    def precision(self) -> Precision:
        """The formats of each kind of operand."""
        return precision(self.dtype, self.weight, self.kv, self.out)

    @property
    def text(self) -> str:
        """For people: bf16, weights int4-g128."""
        others = {"weights": self.weight, "KV": self.kv, "output": self.out}
        return ", ".join([self.dtype, *(f"{what} {name}" for what, name in others.items() if name)])


class Case(NamedTuple):
    """One operator on one shape in given formats."""

    op: registry.Op
    dims: Mapping[str, int]
    formats: Formats
    causal: bool | None = None
    impl: str | None = None

    @property
    def program(self) -> Program:
        """Its kernels and tensors."""
        return registry.build(self.op, dict(self.dims), self.formats.precision, self.causal, self.impl)

    def bound(self, device: Device) -> Bound:
        """Its bound on a device."""
        return bound(self.program.work, device)

    def sized(self, **dims: int) -> Case:
        """The same case with other dimensions."""
        return self._replace(dims={**self.dims, **dims})

    def stored(self, **formats: Any) -> Case:
        """The same case in other formats: weight="fp8"."""
        return self._replace(formats=self.formats._replace(**formats))

    @property
    def shape_text(self) -> str:
        """For people: m=4096 n=4096 k=4096."""
        return " ".join(f"{name}={value}" for name, value in self.dims.items())
