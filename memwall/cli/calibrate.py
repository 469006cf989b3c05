"""memwall calibrate."""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memwall.cli.at_hand import check_folder, timed
from memwall.cli.options import GPU
from memwall.cli.output import Output, write
from memwall.errors import CannotVerify, UsageError
from memwall.units import significant

if TYPE_CHECKING:
    from memwall.hardware import Device
    from memwall.reports.calibrate import CalibrationReport
    from memwall.verify.case import Trial
    from memwall.verify.outcome import Outcome
    from memwall.verify.survey import Surveyed

EPILOG = """\b
Examples:
  memwall calibrate --from-device -o my-gpu.yaml
  memwall calibrate measured.csv --gpu h200 -o my-h200.yaml
  memwall roofline --gpu h200 --op gemv --calibration my-h200.yaml

--from-device runs libraries' kernels on the GPU at hand, for about two minutes, L2 cold: it needs
pip install 'memwall[verify]' (CUDA 13) or 'memwall[verify-cuda12]'; exit code 5: it cannot run here.
Mechanisms with fewer than 8 rows are left out, and named: their shipped constants serve.
A measured table has the columns of predict, and time_us. The shipped files are made so, in minutes:
--rebuild hardware/calibrations; then --engines hardware/engines, in seconds
"""

SHIPPED_SOURCE = "configs/measurements, whose README names each set's source and licence"
REBUILD = "memwall calibrate --rebuild hardware/calibrations"


@click.command("calibrate", epilog=EPILOG)
@click.argument("measured", required=False, metavar="MEASURED.csv")
@click.option("--from-device", is_flag=True, help="measure the GPU at hand, instead of a table")
@click.option("--keep", metavar="FILE.csv", help="with --from-device: keep the measured rows there")
@click.option("--gpu", type=GPU, help="the GPU that was measured; of --from-device the one that is found")
@click.option("--source", metavar="TEXT", help="where the rows come from, for the file; default: its name")
@click.option("-o", "--output", metavar="FILE", help="write there; default: stdout")
@click.option("--rebuild", metavar="DIR", help="fit every shipped calibration anew, into this folder")
@click.option("--engines", metavar="DIR", help="fit every shipped engine anew, into this folder")
def command(
    measured: str | None,
    from_device: bool,
    keep: str | None,
    gpu: str | None,
    source: str | None,
    output: str | None,
    rebuild: str | None,
    engines: str | None,
) -> int:
    """The few constants of a GPU's estimates, from measured rows, cross-validated."""
    if keep and not from_device:
        raise UsageError("--keep keeps what --from-device measures", "Add --from-device, or leave it out")
    if rebuild or engines:
        if measured or gpu or from_device:
            named = "--rebuild" if rebuild else "--engines"
            raise UsageError(
                f"{named} fits what memwall ships", "Leave out the table, --from-device and --gpu"
            )
        return _rebuild(rebuild) if rebuild else _refit(engines or "")
    if from_device:
        if measured:
            raise UsageError("--from-device measures anew, and a table is named too", "Leave out one of them")
        return _from_device(gpu, source, output, keep)
    if not measured or not gpu:
        raise UsageError(
            "calibrate needs a table of measured rows and its GPU",
            "Try measured.csv --gpu h200, or --from-device on the GPU itself",
        )
    return _calibrate(measured, gpu, source, output)


def _calibrate(measured: str, gpu: str, source: str | None, output: str | None) -> int:
    from memwall.reports.calibrate import calibration

    made = calibration(measured, gpu, source)
    return _write(made, f"memwall calibrate {measured} --gpu {made.device.name}", output, {})


def _from_device(gpu: str | None, source: str | None, output: str | None, keep: str | None) -> int:
    """Measure, fit, write."""
    from memwall.estimate import measurements
    from memwall.reports.calibrate import LEAST_ROWS, calibration_of
    from memwall.verify import host
    from memwall.verify.survey import provenance, survey, table_of

    check_folder("-o", output if output != "-" else None)
    check_folder("--keep", keep)
    host.check_libraries("memwall calibrate MEASURED.csv --gpu NAME -o FILE")
    trials = survey()
    machine, device, found = _measured(trials, gpu, keep)
    _say_left_out(found.left_out)
    if len(found.rows) < LEAST_ROWS:
        raise CannotVerify(
            f"{len(found.rows)} of {len(trials)} kernels ran and were right: too few for a calibration",
            host.INSTALL,
        )
    facts = provenance(machine)
    default = f"libraries' kernels, run on {facts['gpu']}"
    reading = measurements.parse("--from-device", table_of(found.rows), gpu)
    return _write(
        calibration_of(reading, device, source or default), "memwall calibrate --from-device", output, facts
    )


def _measured(
    trials: Sequence[Trial], gpu: str | None, keep: str | None
) -> tuple[Mapping[str, Any], Device, Surveyed]:
    """What came of the trials; the rows are kept also where the run is broken off."""
    from memwall.verify.host import Settings
    from memwall.verify.survey import BUDGET_S, Surveyed, surveyed, table_of

    so_far: list[tuple[Mapping[str, Any], Device, Sequence[Outcome]]] = []

    def note(device: Device, machine: Mapping[str, Any], outcomes: Sequence[Outcome]) -> None:
        so_far[:] = [(machine, device, outcomes)]

    found = Surveyed((), {})
    try:
        machine, device, _ = timed(
            trials, Settings(budget_s=BUDGET_S, seed=random.getrandbits(31)), gpu, note
        )
    finally:
        for of_machine, of_device, outcomes in so_far:
            found = surveyed(outcomes, of_device, of_machine, gpu)
        if keep and found.rows:
            write(Output(None, False, keep, "never"), table_of(found.rows))
    return machine, device, found


def _write(
    made: CalibrationReport, again: str, output: str | None, facts: Mapping[str, str | int | None]
) -> int:
    from memwall.render.calibration import calibration_yaml

    name, held_out = made.device.name, made.held_out
    text = calibration_yaml(name, (name,), made.entries, made.source, _today(), again, facts, held_out)
    write(Output(None, False, output, "never"), text)
    if output not in (None, "-"):
        click.echo(f"{made.rows} rows, {len(made.entries)} fits, {made.fitted} fitted constants")
        click.echo(
            f"held out: half within {significant(100 * held_out.median, 2)} %, "
            f"nine in ten within {significant(100 * held_out.p90, 2)} %"
        )
    _say_left_out(made.left_out)
    return 0


def _say_left_out(left_out: Mapping[str, int]) -> None:
    for reason, count in left_out.items():
        click.echo(f"left out: {count} row{'s' if count > 1 else ''}: {reason}", err=True)


def _rebuild(folder: str) -> int:
    if not os.path.isdir(folder):
        raise UsageError(f"--rebuild {folder}: no such folder", "In a checkout: hardware/calibrations")
    for name, text in _rebuilt():
        write(Output(None, False, os.path.join(folder, name), "never"), text)
    return 0


def _rebuilt() -> Iterator[tuple[str, str]]:
    """Each file's name and text."""
    from memwall.render.calibration import bands_yaml, calibration_yaml, held_out_csv
    from memwall.reports.calibrate import rebuilt

    made = rebuilt()
    for each in made.calibrations:
        text = calibration_yaml(each.name, each.gpus, each.entries, SHIPPED_SOURCE, _today(), REBUILD)
        yield f"{each.name}.yaml", text
    yield "bands.yaml", bands_yaml(made.bands, _today(), REBUILD)
    yield "held_out.csv", held_out_csv(made.held_out)


def _refit(folder: str) -> int:
    """The engines' files with constants fitted anew, whole passes against the kernels' estimates of today."""
    from memwall.catalog import shipped_text
    from memwall.estimate.engine import FOLDER, engines
    from memwall.reports.engine_fit import refits, rewritten

    if not os.path.isdir(folder):
        raise UsageError(f"--engines {folder}: no such folder", f"In a checkout: {FOLDER}")
    for engine in engines():
        text = shipped_text(f"{FOLDER}/{engine.name}.yaml")
        found = refits(engine) if engine.fitted else []
        made = rewritten(text, found) if found else text
        write(Output(None, False, os.path.join(folder, f"{engine.name}.yaml"), "never"), made)
    return 0


def _today() -> str:
    return datetime.date.today().isoformat()
