"""The command line: one file a command, imported when it is called.

Each command's one-line help stands here, so that `memwall --help` imports none of them; a test holds
the two equal. This is the only place where an error becomes an exit code.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click

import memwall
from memwall.errors import MemwallError, UnknownName, shown

EXIT_CODES = """\b
Exit codes (1 and 5 are for commands that check or verify):
  0    done
  1    the answer is no: a check fails, it does not fit
  2    usage: an unknown name, a missing or impossible value
  3    an input file: missing, malformed, a wrong key
  4    not supported by the hardware, or not published
  5    the verifier cannot run here
  70   a fault in memwall itself
  130  interrupted
"""

FAULT = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # as shells count it: 128 + SIGINT

EXAMPLES = """\b
Examples:
  memwall roofline --gpu h100 --op gemv
  memwall roofline --gpu h100,h200,mi300x --op gemm --m 4096 --n 4096 --k 4096
  memwall attention --model llama3-70b --seq 8192
  memwall step --model llama3-8b --phase decode --context 4096
  memwall gpu list
"""

COMMANDS = {
    "roofline": "What one kernel must cost: FLOPs, bytes, regime and bound time.",
    "attention": "Standard and flash attention side by side, per head, layer and pass.",
    "step": "One prefill or step of decoding of a model, kernel by kernel.",
    "capacity": "What fits: weights, cache and reserve; most tokens, sequences and context.",
    "quant": "Weights in each format: bytes with scales, fit, and the bound of a decode step.",
    "train-memory": "Training: parameters, gradients, optimizer and activations on each GPU.",
    "train-step": "One training step: FLOPs of each GPU, what they exchange, and the bound.",
    "plan": "Layouts on several GPUs: those that meet the targets, ranked, and why each other fails.",
    "serve": "Serving at a constant number of users: TTFT, TPOT, throughput.",
    "cost": "Tokens in money and energy, at the prices you name; what one choice saves over another.",
    "collective": "What a collective takes: its bound, and the time of a good library.",
    "node": "Nodes: GPUs, links, network and host, and what leaving one costs. Without a name, the list.",
    "sweep": "Thousands of rooflines or steps at once, over ranges, to a table or a file.",
    "plot": "Pictures: rooflines, traffic, decode, memory and more, as SVG or in the terminal.",
    "report": "One page with summary, roofline, kernels, memory, and sliders computed in it.",
    "predict": "A table of kernels in, each with its bound and its estimate out.",
    "accuracy": "How far the estimates are from measured times, and what that rests on.",
    "calibrate": "The few constants of a GPU's estimates, from measured rows, cross-validated.",
    "hierarchy": "The memory hierarchy: size, bandwidth, latency and scope of each level, with sources.",
    "tile": "Tiles: traffic at each level, shared memory and stages, waves, and the best tile.",
    "explain": "Every quantity of an operator: its formula, the numbers in it, the result, the source.",
    "crossover": "Where the regime changes as a dimension grows, exactly, and on several GPUs.",
    "fuse": "What fusion saves: bytes unfused, in each legal fusion, and all as one kernel.",
    "occupancy": "Blocks and warps an SM by CUDA's rules, which resource limits, what spills.",
    "banks": "Bank conflicts in shared memory, and what padding does.",
    "access": "Sectors and lines of a warp's request to memory, and the bandwidth that is left.",
    "diagnose": "Read a profiler's CSV: each kernel on the roofline, healthy ranges, next steps.",
    "gpu": "The hardware catalogue: list, show, compare.",
    "hbm": "Memory standards beside what each product runs.",
    "op": "The operators: list, show.",
    "model": "The model catalogue: list, show.",
    "check": "Printed numbers against what they should be: claims files, and numbers in Markdown.",
    "verify": "Real kernels on this GPU: their time and bytes against the prediction.",
}


class LazyGroup(click.Group):
    """A group that imports a command only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in reading order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"memwall.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to run; a misspelt one names the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UnknownName("command", args[0], COMMANDS, "memwall --help")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{EXAMPLES}\n{EXIT_CODES}",
)
@click.version_option(memwall.__version__, "-V", "--version", prog_name="memwall")
def cli() -> None:
    """What must a GPU kernel, or one pass of an LLM, cost? Bytes, FLOPs, regime, time, and why."""


def run(args: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        return _run(args)
    except MemwallError as error:
        from memwall.cli.mistakes import in_own_words  # only a mistake pays for it

        return _fail(in_own_words(error, sys.argv[1:] if args is None else args), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        from memwall.cli.mistakes import advice

        return _fail(advice(error, sys.argv[1:] if args is None else args), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except OSError as error:
        if error.filename is not None:  # a file of memwall's own: a fault, not a mistake
            return _fault(error)
        _silence_stdout()
        return _fail(f"stdout: {error.strerror}. Write to a file instead: -o FILE", 2)
    except Exception as error:  # the last door: a fault of memwall's own reaches nobody as a traceback
        return _fault(error)


def _run(args: list[str] | None) -> int:
    if isinstance(sys.stdout, TextIOWrapper):  # a title that the terminal cannot spell is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(args, prog_name="memwall", standalone_mode=False)
    except SystemExit as stop:  # click leaves so when the reader of stdout has gone
        raise BrokenPipeError from stop
    if sys.stdout is not None:  # closed by the shell: >&-
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    return code


def _fault(error: Exception) -> int:
    """A fault of memwall's own, in one line; MEMWALL_DEBUG=1 shows where."""
    if os.environ.get("MEMWALL_DEBUG"):
        raise error
    what = f"{type(error).__name__}: {shown(error, 200)}"
    return _fail(f"a fault in memwall: {what}. Please report it with MEMWALL_DEBUG=1 set", FAULT)


def _silence_stdout() -> None:
    """Nobody can read on: let the interpreter's last flush go nowhere."""
    sys.stdout = sys.__stdout__  # click has wrapped it when the reader went away
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
