"""memwall verify."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memwall import hardware
from memwall.cli.at_hand import check_folder, timed
from memwall.cli.estimates import CALIBRATION
from memwall.cli.options import (
    GPU,
    OP,
    Count,
    Format,
    causal_option,
    output_options,
    shape_options,
    split_names,
)
from memwall.cli.output import Output, emit
from memwall.errors import UsageError
from memwall.ops.registry import flag

if TYPE_CHECKING:
    from memwall.hardware import Device
    from memwall.verify.case import Trial
    from memwall.verify.host import Settings
    from memwall.verify.judge import Estimate, Verification
    from memwall.verify.outcome import Outcome

EPILOG = """\b
Examples:
  memwall verify
  memwall verify --op attention --impl standard,flash --seq 4096 --heads 32 --causal
  memwall verify --op gemv --m 8192 --k 8192 --counters
  memwall verify --counters --record my-gpu.json
  memwall verify --replay h200 --op attention
  memwall verify --backend numpy

\b
A GPU needs pip install 'memwall[verify]' (CUDA 13) or 'memwall[verify-cuda12]'.
Exit code 0: all as predicted. 1: not. 5: it cannot run here.
"""

DEFAULT_MS = 300


@click.command("verify", epilog=EPILOG)
@click.option("--op", type=OP, help="one operator; default: the standard run over all kernels")
@shape_options()
@click.option("--impl", help="kernels of the operator, a,b,c; default: every one")
@click.option("--dtype", type=Format(), help="bf16, fp16 or fp32; default: bf16, CUDA C++ kernels fp32")
@causal_option
@click.option("--backend", type=click.Choice(["gpu", "numpy"]), default="gpu", help="numpy: no GPU, count")
@click.option("--counters", is_flag=True, help="count bytes with Nsight Compute too")
@click.option("--warm", is_flag=True, help="with --op: keep L2 warm; default: rotate buffers, L2 cold")
@click.option("--gpu", type=GPU, help="predict for this GPU; default: the one that is found")
@click.option("--ms", type=Count(), help="how long each kernel is measured; default 300")
@click.option("--seed", type=Count(), help="of the random inputs; default: a fresh one, kept in the record")
@click.option("--l2-bytes", type=Count(), help="with --backend numpy: an L2 before main memory")
@CALIBRATION
@click.option("--record", metavar="FILE", help="keep what was measured, whole after every kernel")
@click.option("--replay", metavar="FILE|GPU", help="judge a record again, yours or a shipped one: no GPU")
@output_options
def command(op: str | None, backend: str, replay: str | None, **options: Any) -> int:
    """Real kernels on this GPU: their time and bytes against the prediction."""
    output = Output(**{key: options.pop(key) for key in Output._fields})
    _check_alone(backend, op, replay, options)
    if backend == "numpy":
        return _count(output, options["l2_bytes"] or 0)
    for name, path in (("-o", output.output if output.to_file else None), ("--record", options["record"])):
        check_folder(name, path)  # before a minute's work, not after it
    from memwall.verify.estimates import estimator

    estimate = estimator(options["calibration"])
    report = _replayed(replay, op, options["gpu"], estimate) if replay else _run(op, options, estimate)
    from memwall.render import verify as view

    rows = view.rows if output.format == "csv" else lambda report: [view.record(report)]
    emit(output, lambda: rows(report), lambda: view.page(report))
    return 0 if report.passed else 1


def _check_alone(backend: str, op: str | None, replay: str | None, options: Mapping[str, Any]) -> None:
    """What would be ignored is refused.

    Raises:
        UsageError: flags that contradict each other.
    """
    from memwall.cli.options import DIMS

    of_a_run = ("impl", "dtype", "causal", "counters", "warm", "ms", "seed", "record", *DIMS)
    given = [name for name in of_a_run if options[name] not in (None, False)]
    predicted = [name for name in ("gpu", "calibration") if options[name]]
    if backend == "numpy" and (op or given or replay or predicted):
        first = "op" if op else (given or (["replay"] if replay else predicted))[0]
        raise UsageError(f"--backend numpy counts a fixed list: it takes no --{flag(first)}", "Leave it out")
    if options["l2_bytes"] and backend != "numpy":
        raise UsageError("--l2-bytes is an L2 of the counting run", "Add --backend numpy")
    if replay and given:
        raise UsageError(f"--replay runs nothing, so --{flag(given[0])} means nothing", "Leave it out")


def _count(output: Output, l2_bytes: int) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tiles are small: threads would wait for each other
    from memwall.render import counting as view
    from memwall.verify.counting.run import counting_run

    counted = list(counting_run(l2_bytes))
    emit(output, lambda: view.records(counted), lambda: view.page(counted, l2_bytes), several=True)
    return 0 if all(each.exact for each in counted) else 1


def _replayed(name: str, op: str | None, gpu: str | None, estimate: Estimate) -> Verification:
    """A record judged again, or the trials of one operator in it."""
    from memwall.ops import registry
    from memwall.verify import record
    from memwall.verify.judge import verify

    kept = record.find(name)
    wanted = registry.find(op).name if op else None
    outcomes = [outcome for outcome in kept.outcomes if wanted in (None, outcome.trial.op)]
    device = hardware.load(gpu or kept.gpu)
    elsewhere = [f"measured on {kept.gpu}, and judged as if it were {device.name}"]
    notes = [*kept.notes, *(elsewhere if device.name != kept.gpu else [])]
    return verify(device, kept.machine, outcomes, notes, estimate)


def _run(op: str | None, options: dict[str, Any], estimate: Estimate) -> Verification:
    from memwall.estimate.own import own_fits
    from memwall.units import KILO
    from memwall.verify import host
    from memwall.verify.judge import verify

    trials = _plan(op, options)
    host.check_libraries("memwall verify --backend numpy")
    seed = options["seed"] or random.getrandbits(31)
    settings = host.Settings(budget_s=(options["ms"] or DEFAULT_MS) / KILO, seed=seed)

    if options["gpu"]:
        own_fits(options["calibration"], hardware.load(options["gpu"]))

    def keep(device: Device, machine: Mapping[str, Any], outcomes: Sequence[Outcome]) -> None:
        own_fits(options["calibration"], device)  # of another GPU: said at the first kernel, not after all
        _keep(options["record"], device, machine, outcomes, [])

    machine, device, outcomes = timed(trials, settings, options["gpu"], keep)
    notes: list[str] = []
    if options["counters"]:
        outcomes, missing = _counted(outcomes, settings)
        notes = [missing] if missing else []
    _keep(options["record"], device, machine, outcomes, notes)
    return verify(device, machine, outcomes, notes, estimate)


def _plan(op: str | None, options: Mapping[str, Any]) -> Sequence[Trial]:
    from memwall.cli.options import DIMS
    from memwall.verify.plan import requested_plan, standard_plan

    shape = {name: options[name] for name in DIMS}
    given = [
        name for name in (*DIMS, "impl", "dtype", "causal", "warm") if options[name] not in (None, False)
    ]
    if op is None:
        if given:
            raise UsageError(
                f"--{flag(given[0])} describes one operator, and none is named",
                "Add --op, e.g. --op gemv",
            )
        return standard_plan()
    impls = split_names(options["impl"] or "")
    names = ("dtype", "causal", "warm")
    return requested_plan(op, shape, impls=impls, **{name: options[name] for name in names})


def _counted(outcomes: Sequence[Outcome], settings: Settings) -> tuple[Sequence[Outcome], str]:
    from memwall.verify import host

    right = [outcome for outcome in outcomes if outcome.ok]
    counters, missing = host.counted([outcome.trial for outcome in right], settings)
    found = {id(outcome): each for outcome, each in zip(right, counters, strict=True)}
    return [outcome._replace(counters=found.get(id(outcome))) for outcome in outcomes], missing


def _keep(
    path: str | None,
    device: Device,
    machine: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    notes: Sequence[str],
) -> None:
    if path:
        from memwall.verify import record

        record.write(path, record.Record(device.name, machine, outcomes, notes))
