"""memwall sweep: of an operator by itself, of any command's report as a command under it."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli import sweep_options
from memwall.cli.sweep_run import run
from memwall.cli.sweep_spec import OP, spec_of
from memwall.errors import UsageError
from memwall.sweeps.kinds import KINDS

WIDEST = 74
"""Characters of an example's line, so that a terminal of 80 has it whole."""


def wrapped(example: str) -> str:
    """An example as it is pasted: broken before an option where it is long."""
    lines = [""]
    for option in example.replace(" -", "\n-").split("\n"):
        if lines[-1] and len(lines[-1]) + len(option) > WIDEST - 4:
            lines.append("   ")
        lines[-1] += f" {option}" if lines[-1] else option
    return " \\\n".join(f"  {line}" for line in lines)


EXAMPLES = (
    "memwall sweep --op gemm --m 1:8192:log2 --n 4096,8192 --k 4096 --gpu h100,h200 -o out.csv",
    "memwall sweep --op gemm --m 1:512 --n 8 --k 8 --where 'regime == \"memory-bound\"' --best bound_time_s",
    "memwall sweep --op attention --heads 64 --head-dim 128 --seq 1024:65536:log2 --format csv",
    "memwall sweep step --model llama3-70b --gpu b200 --batch 1:256:log2 --context 4096,32768",
    "memwall sweep step --model llama3-70b --batch 64 --context 8192 --tp 2,4,8 --estimate",
    "memwall sweep serve --model llama3-8b --concurrency 1:64:log2 --isl 1024 --osl 128,1024",
    "memwall sweep --op gemm --m 1:4096 --n 4096 --k 4096 -o part-3.csv --shard 3/16",
)
RANGES = """\b
Ranges: 1:100 every whole number, 0:4096:64 steps of 64 from the first on,
1:8192:log2 doublings; several by comma, as names are. A number of the GPU
is one too: --set memory.bandwidth_gb_per_s=2000:4000:500.
Ctrl-C leaves out.partial.csv, which can be read; --resume goes on from it.
"""
EPILOG = "\b\nExamples:\n" + "\n".join(map(wrapped, EXAMPLES)) + f"\n\n{RANGES}"
STEP = "memwall sweep step --model llama3-70b --gpu h100,b200 --batch 1:64:log2 --context 8192 --tp 2,4,8"
OF_ANY_KERNEL = ("flops", "bytes")
"""Of `roofline` these are for kernels that are no operator."""


class Sweep(click.Group):
    """Commands under it are those whose report can be swept."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return ["step", *KINDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The sweep of that command."""
        return _under(cmd_name) if cmd_name in self.list_commands(ctx) else None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Those of an operator, found when they are asked for."""
        if not self.params:
            of_operators = (
                param for param in sweep_options.swept("roofline") if param.name not in OF_ANY_KERNEL
            )
            self.params = [*of_operators, *sweep_options.own(estimate=True)]
        return super().get_params(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to sweep; one that cannot be is refused by name."""
        if args and args[0] not in self.list_commands(ctx):
            from memwall.cli import COMMANDS

            raise sweep_options.refused(args[0], list(COMMANDS))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, without importing any."""
        from memwall.cli import COMMANDS

        with formatter.section("Or the report of a command, over ranges of its own options"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _under(name: str) -> click.Command:
    """The sweep of a command: its own options with ranges, and a sweep's."""
    params = [*sweep_options.swept(name), *sweep_options.own(estimate=name == "step")]
    example = STEP if name == "step" else KINDS[name].example

    @click.pass_context
    def callback(ctx: click.Context, /, **given: Any) -> int:
        return run(spec_of(ctx, name, given), given)

    what = "the fast way, as arrays" if name == "step" else "point by point"
    return click.Command(
        name,
        params=list(params),
        callback=callback,
        help=f"`memwall {name}` over ranges and lists of its options, {what}; a row for each answer.",
        epilog=f"\b\nFor example:\n{wrapped(example)}\n\n{RANGES}",
    )


@click.pass_context
def _operators(ctx: click.Context, /, **given: Any) -> int:
    """Thousands of rooflines or steps at once, over ranges, to a table or a file."""
    if ctx.invoked_subcommand is not None:
        typed = [
            param for param in ctx.command.params if given.get(str(param.name)) not in (None, False, (), {})
        ]
        if typed:
            flag = max(typed[0].opts, key=len)
            raise UsageError(
                f"{flag} stands before {ctx.invoked_subcommand}, whose option it is",
                f"Write it after: memwall sweep {ctx.invoked_subcommand} {flag} ...",
            )
        return 0
    if not given["op"]:
        raise UsageError(
            "what to sweep: --op OP, or step, serve, capacity ...",
            "For example: memwall sweep --op gemm --m 1:8192:log2 --n 4096 --k 4096",
        )
    return run(spec_of(ctx, OP, given), given)


command = Sweep(
    "sweep",
    callback=_operators,
    help="Thousands of rooflines or steps at once, over ranges, to a table or a file.",
    epilog=EPILOG,
    invoke_without_command=True,
)
