"""memwall op list | show."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.options import OP, output_options
from memwall.cli.output import Output, emit
from memwall.ops import registry

EPILOG = """\b
Examples:
  memwall op list
  memwall op show attention
"""

LIST_EPILOG = """\b
Examples:
  memwall op list
  memwall op list --json
"""

SHOW_EPILOG = """\b
Examples:
  memwall op show attention
  memwall op show gemm --format markdown
"""


@click.group("op", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """The operators: list, show."""


@command.command("list", epilog=LIST_EPILOG)
@output_options
def list_ops(**options: Any) -> None:
    """Every operator with its dimensions."""
    from memwall.render import operators

    ops = sorted(registry.ops().values(), key=_family)  # whichever file was imported first
    emit(
        Output(**options),
        lambda: [operators.record(op) for op in ops],
        lambda: operators.list_page(ops),
        several=True,
    )


@command.command("show", epilog=SHOW_EPILOG)
@click.argument("op", type=OP)
@output_options
def show_op(op: str, **options: Any) -> None:
    """One operator: its formula, the bytes of each tensor, its flags and its source."""
    from memwall.render import operators

    found = registry.find(op)
    emit(Output(**options), lambda: [operators.full_record(found)], lambda: operators.show_page(found))


def _family(op: registry.Op) -> int:
    return registry.FAMILIES.index(op.build.__module__.rpartition(".")[2])
