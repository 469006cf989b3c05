"""A sweep on a Dask cluster: its blocks in parts, each a file of Parquet in one folder.

A part is written under a name of its own and renamed when it is whole, and says nothing of any other, so a
worker that is lost costs the time of its parts and nothing else, and a run that was stopped goes on by
writing the parts that are not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import memwall
from memwall.errors import NotAvailable, UsageError, shown
from memwall.sweeps.files import arrow, opened
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Planned, Spec

PART_BLOCKS = 32
"""Blocks a part: up to two million points."""
MANIFEST, SUCCESS = "_sweep.json", "_SUCCESS"
"""What the folder holds, and that it is whole; readers of Parquet pass over names that begin so."""
RETRIES = 5


class Part(NamedTuple):
    """One task."""

    number: int
    start: int
    stop: int


class Written(NamedTuple):
    """What came of a part."""

    points: int
    rows: int
    counts: dict[str, int]
    examples: dict[str, str]
    columns: tuple[str, ...] = ()


def parts_of(blocks: range) -> list[Part]:
    """The blocks in parts of equal size."""
    starts = range(blocks.start, blocks.stop, PART_BLOCKS)
    return [Part(n, start, min(start + PART_BLOCKS, blocks.stop)) for n, start in enumerate(starts)]


def part_name(folder: str, number: int) -> str:
    """Where a part goes."""
    return os.path.join(folder, f"part-{number:06}.parquet")


def write_part(spec: Spec, part: Part, folder: str) -> Written:
    """Compute a part and write it whole, on whichever worker this runs."""
    sweep, left_out = plan(spec), LeftOut()
    path = part_name(folder, part.number)
    partial = os.path.join(folder, f".{part.number:06}.{os.getpid()}.partial")
    points = rows = 0
    try:
        with open(partial, "wb") as file:
            writer = opened(file, "parquet", sweep.columns)
            for number in range(part.start, part.stop):
                points += sweep.grid.block(number).points
                found = sweep.rows(number, left_out)
                if found is not None and found.length:
                    writer.write(found)
                    rows += found.length
            if rows:
                writer.finish()
        if rows:
            os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    return Written(points, rows, left_out.counts, left_out.examples, tuple(sorted(left_out.columns)))


def run(
    sweep: Planned, blocks: range, address: str, folder: str, seen: Callable[[int], None]
) -> tuple[Written, list[str]]:
    """Write every part that is not there yet.

    Args:
        sweep: what is asked.
        blocks: those of this run.
        address: tcp://... of a scheduler whose workers see the same folder, or `local`.
        folder: takes the parts.
        seen: told how many points are done.

    Returns:
        What was written now, and the lines on what was left out.

    Raises:
        UsageError: the folder holds another sweep, or nobody answers at the address.
        NotAvailable: dask or pyarrow is not installed.
    """
    arrow()
    distributed = _distributed()
    _claim(sweep.spec, blocks, folder)
    waiting = [part for part in parts_of(blocks) if not os.path.exists(part_name(folder, part.number))]
    points = rows = 0
    left_out = LeftOut()
    with _client(distributed, address) as client:
        futures = client.map(
            write_part,
            [sweep.spec] * len(waiting),
            waiting,
            [folder] * len(waiting),
            retries=RETRIES,
            pure=False,
        )
        for _, written in distributed.as_completed(futures, with_results=True):
            points, rows = points + written.points, rows + written.rows
            left_out.merge(written.counts, written.examples, written.columns)
            seen(points)
    for name in os.listdir(folder):
        if name.endswith(".partial"):  # of workers that were lost
            os.unlink(os.path.join(folder, name))
    with open(os.path.join(folder, SUCCESS), "w", encoding="utf-8"):
        pass
    return Written(points, rows, left_out.counts, left_out.examples), left_out.lines


def _claim(spec: Spec, blocks: range, folder: str) -> None:
    """The folder for this sweep, and no other."""
    text = json.dumps([memwall.__version__, *spec, blocks.start, blocks.stop, PART_BLOCKS], sort_keys=True)
    path = os.path.join(folder, MANIFEST)
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                raise UsageError(f"-o {shown(folder, 120)} holds another sweep", "Name another folder")
        return
    if os.listdir(folder):
        raise UsageError(f"-o {shown(folder, 120)} is not empty", "Name a new folder for the parts")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise NotAvailable(
            "--dask needs Dask, which is not installed", "pip install 'memwall[dask]'"
        ) from None
    return distributed


@contextmanager
def _client(distributed: Any, address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, or of workers on this machine."""
    if address == "local":
        with (
            distributed.LocalCluster(
                n_workers=os.cpu_count() or 1, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--dask {shown(address)}: nobody answers: {shown(error, 80)}",
            "Try --dask local, or tcp://HOST:8786",
        ) from None
    with client:
        yield client
