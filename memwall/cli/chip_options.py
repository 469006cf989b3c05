"""The options of the commands that look inside a chip: sizes on it, and shapes such as 32x32."""

from __future__ import annotations

from typing import Any

import click

from memwall.errors import UsageError, shown
from memwall.units import parse_count, parse_size


class Bytes(click.ParamType[int]):
    """An amount of on-chip memory such as 64KiB; a bare number is bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes."""
        if isinstance(value, int):
            return value
        return parse_size(f"{value}B" if value.strip().isdigit() else value, _flag(param))


class Extents(click.ParamType[tuple[int, ...]]):
    """Sizes joined by x, such as 32x32 or 128x256x64."""

    name = "AxB"

    def __init__(self, example: str) -> None:
        self.example = example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The sizes."""
        if isinstance(value, tuple):
            return value
        parts = value.lower().replace("\u00d7", "x").split("x")
        if len(parts) != len(self.example.split("x")):
            raise UsageError(
                f"{_flag(param)} must be like {self.example}, not '{shown(value)}'",
                f"Try {_flag(param)} {self.example}",
            )
        return _sizes(parts, param, self.example)


class Sides(click.ParamType[tuple[int, ...]]):
    """Two or three sizes joined by x."""

    name = "AxB[xC]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The sizes."""
        if isinstance(value, tuple):
            return value
        parts = value.lower().replace("\u00d7", "x").split("x")
        if len(parts) not in (2, 3):
            raise UsageError(f"{_flag(param)} must be like 128x128x64, not '{shown(value)}'", "Or 64x64")
        return _sizes(parts, param, "64x64" if ctx and ctx.params.get("op") == "attention" else "128x128x64")


def _sizes(parts: list[str], param: click.Parameter | None, example: str) -> tuple[int, ...]:
    """Each part as a whole number; the advice shows all of them, joined."""
    try:
        return tuple(parse_count(part, _flag(param)) for part in parts)
    except UsageError as error:
        raise UsageError(error.message, f"Write it like {_flag(param)} {example}") from error


def _flag(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "the value"
