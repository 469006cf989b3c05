"""memwall calibrate."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator

import click

from memwall.cli.options import GPU
from memwall.cli.output import Output, write
from memwall.errors import UsageError

EPILOG = """\b
Examples:
  memwall calibrate measured.csv --gpu h200 -o my-h200.yaml
  memwall roofline --gpu h200 --op gemv --calibration my-h200.yaml

A measured table has the columns of predict, and time_us. The shipped files are made so, in minutes:
--rebuild hardware/calibrations
"""

SHIPPED_SOURCE = "configs/measurements, whose README names each set's source and licence"
REBUILD = "memwall calibrate --rebuild hardware/calibrations"


@click.command("calibrate", epilog=EPILOG)
@click.argument("measured", required=False, metavar="MEASURED.csv")
@click.option("--gpu", type=GPU, help="the GPU that was measured")
@click.option("--source", metavar="TEXT", help="where the rows come from, for the file; default: its name")
@click.option("-o", "--output", metavar="FILE", help="write there; default: stdout")
@click.option("--rebuild", metavar="DIR", help="fit every shipped calibration anew, into this folder")
def command(
    measured: str | None, gpu: str | None, source: str | None, output: str | None, rebuild: str | None
) -> int:
    """The few constants of a GPU's estimates, from measured rows, cross-validated."""
    if rebuild:
        if measured or gpu:
            raise UsageError("--rebuild fits what memwall ships", "Leave out the table and --gpu")
        return _rebuild(rebuild)
    if not measured or not gpu:
        raise UsageError(
            "calibrate needs a table of measured rows and its GPU", "Try measured.csv --gpu h200"
        )
    return _calibrate(measured, gpu, source, output)


def _calibrate(measured: str, gpu: str, source: str | None, output: str | None) -> int:
    from memwall.render.calibration import calibration_yaml
    from memwall.reports.calibrate import calibration

    made = calibration(measured, gpu, source)
    name = made.device.name
    again = f"memwall calibrate {measured} --gpu {name}"
    text = calibration_yaml(name, (name,), made.entries, made.source, _today(), again)
    write(Output(None, False, output, "never"), text)
    if output not in (None, "-"):
        click.echo(f"{made.rows} rows, {len(made.entries)} fits, {made.fitted} fitted constants")
    for reason, count in made.left_out.items():
        click.echo(f"left out: {count} rows: {reason}", err=True)
    return 0


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


def _today() -> str:
    return datetime.date.today().isoformat()
