"""What `memwall sweep` was asked: its flags as a sweep in plain texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memwall.cli.lists import say_from_zero
from memwall.cli.options import Count, Named, named_gpus
from memwall.cli.sweep_options import NEVER, Many, of_command
from memwall.errors import UsageError, shown
from memwall.reports.case import DEFAULT_DTYPE
from memwall.sweeps.kinds import KINDS
from memwall.sweeps.words import OF_PASSES

if TYPE_CHECKING:
    from memwall.sweeps.planned import Planned, Spec

OP = "op"


def spec_of(ctx: click.Context, what: str, given: Mapping[str, Any]) -> Spec:
    """The sweep as it was typed.

    Args:
        ctx: of the command, whose parameters are those of the command that is swept.
        what: `op` for operators, else the command's name.
        given: what was typed, by the parameters' names.

    Raises:
        UsageError: values that cannot be meant.
    """
    from memwall.sweeps.planned import Spec
    from memwall.sweeps.ranges import parse_axis
    from memwall.sweeps.where import together

    report = what in KINDS
    words: dict[str, tuple[Any, ...]] = {}
    ranges: dict[str, str] = {}
    settings: dict[str, Any] = _defaults(what) if report else {}
    if given.get("gpu") or not report or KINDS[what].gpu:
        words["gpu"] = tuple(_gpus(given.get("gpu")))
    for param in ctx.command.params:
        name, value = str(param.name), given.get(str(param.name))
        if value is None or param.name in ("gpu", "changes") or (name == OP and what == OP):
            continue
        if not isinstance(param.type, Many):
            if param.name in _settings(what):
                settings |= {name: value} if value is not False or param.secondary_opts else {}
        elif _is_range(what, name, param.type.single):
            flag = max(param.opts, key=len)
            parse_axis(value, name, flag)  # which knows its flag
            say_from_zero(value, flag)
            ranges[name] = value
        else:
            settings.pop(name, None)
            words[name] = tuple(_values(what, name, value, param.type.single, ctx))
    both = _both(ctx, what, given)
    settings = {name: value for name, value in settings.items() if name not in both}
    changes, varied = _changes(given.get("changes") or {})
    settings |= {"changes": changes} if changes else {}
    if not report:
        words = {"gpu": words.pop("gpu"), **({"dtype": (DEFAULT_DTYPE,)} if what == OP else {}), **words}
        settings |= {name: words.pop(name)[0] for name in _single(words)}
    for name in ranges:
        settings.pop(name, None)
    named = _op(given[OP]) if what == OP else what
    where = together(given["where"])
    return Spec(named, {**words, **both, **varied}, ranges, settings, where, report=report)


def _settings(what: str) -> frozenset[str]:
    """Flags of the swept command, and of the sweep that change its rows."""
    own = of_command("roofline" if what == OP else what).params
    return frozenset([*(str(param.name) for param in own), "estimate"]) - NEVER


def _defaults(what: str) -> dict[str, Any]:
    """What the command has where nothing is given."""
    params = of_command(what).params
    return {
        str(param.name): param.default
        for param in params
        if isinstance(param, click.Option)
        and isinstance(param.default, str | int | float)
        and param.name not in NEVER
        and not param.multiple
        and param.default is not False
    }


def _is_range(what: str, name: str, single: click.Parameter) -> bool:
    """Whether it is a dimension: whole numbers in a range of any length."""
    if not isinstance(single.type, Count):
        return False
    return what != "step" or name in OF_PASSES


def _single(words: Mapping[str, Sequence[Any]]) -> list[str]:
    """Choices that are the same everywhere, which a row need not repeat."""
    return [name for name in ("impl", "phase", "library", "calibration") if len(words.get(name, ())) == 1]


def _values(what: str, name: str, text: str, single: click.Parameter, ctx: click.Context) -> list[Any]:
    """Each of a list as the swept command takes it.

    Raises:
        UsageError, click.BadParameter: as that command says.
    """
    from memwall.sweeps.ranges import spread

    if what in KINDS and name in KINDS[what].whole:
        return [text]
    flag = max(single.opts, key=len)
    words = text.split(",") if isinstance(single.type, Named) else spread(text, flag)
    made = [single.type.convert(word.strip(), single, ctx) for word in words]
    if single.callback is not None:
        made = [single.callback(ctx, single, value) for value in made]
    for model in made if name == "model" else ():
        from memwall.cli.models import load_model

        load_model(model)
    if isinstance(single.type, click.types.StringParamType):
        made = list(_numbers(made))  # --price 2,3
    return list(dict.fromkeys(made))


def _changes(typed: Mapping[str, str]) -> tuple[dict[str, str], dict[str, tuple[Any, ...]]]:
    """What-ifs of one value, and those that vary."""
    from memwall.sweeps.ranges import spread

    same: dict[str, str] = {}
    varied: dict[str, tuple[Any, ...]] = {}
    for key, text in typed.items():
        values = spread(text, f"--set {key}")
        if len(values) == 1:
            same[key] = values[0]
        elif "." not in key:
            raise UsageError(
                f"--set: '{shown(key)}' is not a number of a GPU", "memwall gpu show h100 --yaml"
            )
        else:
            varied[key] = _numbers(values)
    return same, varied


def _both(ctx: click.Context, what: str, given: Mapping[str, Any]) -> dict[str, tuple[bool, bool]]:
    """The flags of --both: off, and on.

    Raises:
        UsageError: one is no flag of the swept command, or is given by itself too.
    """
    flags = {str(p.name): p for p in ctx.command.params if p.name in _settings(what) - {"estimate"}}
    flags = {name: param for name, param in flags.items() if getattr(param, "is_flag", False)}
    asked = [word.strip().removeprefix("--").replace("-", "_") for word in (given["both"] or "").split(",")]
    asked = asked if given["both"] else []
    for name in asked:
        if name not in flags:
            choices = ", ".join(each.replace("_", "-") for each in flags)
            raise UsageError(
                f"--both takes flags to ask both ways, and here '{shown(name)}' is none",
                f"Choose: {choices}" if choices else "It has no flag; leave --both out",
            )
        if given.get(name) not in (None, False):
            flag = name.replace("_", "-")
            raise UsageError(f"--both {flag} asks it off and on", f"Leave out --{flag}, or --both {flag}")
    return dict.fromkeys(asked, (False, True))


def _numbers(texts: Sequence[str]) -> tuple[Any, ...]:
    """As numbers where all are, so that conditions compare them."""
    from memwall.units import LARGEST_AMOUNT, parse_number

    try:
        return tuple(parse_number(text, "", LARGEST_AMOUNT) for text in texts)
    except UsageError:
        return tuple(texts)


def _op(name: str) -> str:
    from memwall.ops import registry

    return registry.find(name).name


def _gpus(text: str | None) -> list[str]:
    """Canonical names; a file of the user's by its path."""
    from memwall import hardware

    devices = [(name, hardware.load(name)) for name in named_gpus(text)]
    return [name if device.own else device.name for name, device in devices]


def shard_of(sweep: Planned, text: str | None) -> tuple[Planned, range]:
    """The blocks of --shard 3/16, of a sweep that is cut finely enough; all of them without it."""
    from memwall.sweeps.plan import plan

    if text is None:
        return sweep, range(sweep.grid.count)
    index, slash, of = text.partition("/")
    good = slash and index.strip().isdigit() and of.strip().isdigit()
    if not good or not 1 <= int(index) <= int(of):
        raise UsageError(
            f"--shard takes I/N, from 1/N to N/N, not '{shown(text)}'", "For example: --shard 3/16"
        )
    sweep = plan(sweep.spec._replace(block_points=sweep.grid.shared(int(of))))
    return sweep, sweep.grid.shard(int(index), int(of))
