"""What click refuses, said as advice: what was wrong, the nearest right thing, a line to copy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import click

from memwall.errors import MemwallError, nearest, shown

OPERATOR_EXAMPLE = re.compile(r"memwall roofline --op (?P<op>\S+)(?P<flags>(?: --\S+ \S+)*)")
"""What an operator shows of itself: it does not know which command asked."""
OWN = {
    "crossover": "memwall crossover --op {op}",
    "diagnose": "memwall diagnose report.csv --op {op}",
    "explain": "memwall explain {op}",
    "sweep": "memwall sweep --op {op}",
    "tile": "memwall tile --op {op}",
}
"""How other commands name the operator."""


def advice(error: click.ClickException, args: Sequence[str]) -> str:
    """A usage error in one line.

    Args:
        error: as click raised it.
        args: what was typed, for errors that do not know their command.
    """
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    path = ctx.command_path if ctx else " ".join(["memwall", *_command_words(args)])
    message, near = _said(error, ctx, path)
    hint = f"Did you mean {near[0]}? " if near else ""
    return f"{message}. {hint}{_next(error, ctx, path)}"


def in_own_words(error: MemwallError, args: Sequence[str]) -> str:
    """An error in one line, an operator's example in it as the command that was typed takes it.

    Args:
        error: as it was raised.
        args: what was typed.
    """
    command, under = next(iter(args), ""), next(iter(args[1:]), "")
    swept = command == "sweep" and under in OWN
    command = under if swept else command
    found = OPERATOR_EXAMPLE.search(str(error)) if command in OWN else None
    if found is None:
        return str(error)
    flags = re.findall(r"--(\S+) (\S+)", found["flags"])
    varied = ""
    if command == "crossover":  # what varies has no value
        named = _varied(args)
        dimension = named if named in dict(flags) else flags[0][0]
        varied = f" --vary {dimension}"
        flags = [(name, value) for name, value in flags if name != dimension]
    sizes = "".join(f" --{name} {value}" for name, value in flags)
    example = OWN[command].format(op=found["op"]) + varied + sizes
    if swept:
        example = example.replace("memwall ", "memwall sweep ", 1)
    return str(error).replace(found[0], example)


def _varied(args: Sequence[str]) -> str:
    """The dimension after --vary, as a flag spells it."""
    word = re.search(r"--vary[ =](\S+)", " ".join(args))
    return word[1].lower().replace("_", "-") if word else ""


def _said(error: click.ClickException, ctx: click.Context | None, path: str) -> tuple[str, list[str]]:
    """What was wrong, and the nearest right names."""
    if isinstance(error, click.NoSuchOption):
        flags = [name for param in ctx.command.params for name in param.opts] if ctx else []
        return f"{path} has no flag '{shown(error.option_name)}'", nearest(error.option_name, flags, 1)
    if isinstance(error, click.NoSuchCommand):
        return f"{path} has no command '{shown(error.command_name)}'", _near_command(error, ctx)
    if isinstance(error, click.MissingParameter) and error.param:
        word = _word(error.param, ctx)
        flag = error.param.opts[0] if isinstance(error.param, click.Option) else ""
        return f"{path} needs {f'{flag} {word}' if flag else _article(word)}", []
    if isinstance(error, click.BadParameter) and error.param and isinstance(error.param.type, click.Choice):
        return _wrong_choice(error.message, error.param.opts[0], error.param.type.choices)
    if isinstance(error, click.BadOptionUsage) and "requires" in error.message:
        return f"{error.option_name} needs a value after it", []
    return shown(error.format_message().rstrip("."), 250), []


def _wrong_choice(message: str, flag: str, choices: Iterable[str]) -> tuple[str, list[str]]:
    given = message.partition("' is not one of")[0].lstrip("'")
    allowed = list(choices)
    return f"{flag} takes {', '.join(allowed)}, not '{shown(given)}'", nearest(given, allowed, 1)


def _near_command(error: click.NoSuchCommand, ctx: click.Context | None) -> list[str]:
    group = ctx.command if ctx else None
    return nearest(
        error.command_name, group.list_commands(ctx) if ctx and isinstance(group, click.Group) else [], 1
    )


def _next(error: click.ClickException, ctx: click.Context | None, path: str) -> str:
    """A line to copy: for something missing or out of place, the command's own first example."""
    examples = (ctx.command.epilog or "").splitlines() if ctx else []
    example = next((line.strip() for line in examples if line.strip().startswith("memwall ")), None)
    misplaced = type(error) is click.UsageError or isinstance(error, click.MissingParameter)
    listing = getattr(getattr(getattr(error, "param", None), "type", None), "listing", None)
    if isinstance(error, click.MissingParameter) and listing and not example:
        return f"The list: {listing}"
    return f"For example: {example}" if example and misplaced else f"Try {path} --help"


def _word(param: click.Parameter, ctx: click.Context | None) -> str:
    """What stands for a parameter in the help, once: GPU."""
    return param.make_metavar(ctx).split()[0] if ctx else (param.name or "value").upper()


def _article(metavar: str) -> str:
    return f"a {metavar}" if metavar[:1] not in "AEIO" else f"an {metavar}"


def _command_words(args: Sequence[str]) -> list[str]:
    from memwall.cli import COMMANDS

    return [args[0]] if args and args[0] in COMMANDS else []
