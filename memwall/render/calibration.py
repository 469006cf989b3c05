"""Calibrations as YAML, in the units that people read: a file for people to review, and to load again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from memwall.estimate.calibrate import Entry, HeldOut, Spread, spread
from memwall.estimate.constants import GENERAL, key_of, out_of_si
from memwall.estimate.shipped import Band
from memwall.units import significant

METHOD = (
    "least mean |log(predicted / measured)|, Nelder-Mead from round numbers; constants that gain less than"
    " 0.15 % stay there; errors are of launches held out, four folds"
)


def calibration_yaml(
    name: str,
    gpus: Sequence[str],
    entries: Sequence[Entry],
    source: str,
    date: str,
    command: str,
    provenance: Mapping[str, str | int | None] = MappingProxyType({}),
    held_out: Spread | None = None,
) -> str:
    """A calibration's file.

    Args:
        name: what it serves: a generation or a GPU.
        gpus: the GPUs that were measured.
        entries: its fits.
        source: where the rows come from.
        date: when it was fitted, ISO.
        command: what makes it again.
        provenance: the machine that was measured: GPU, driver, libraries.
        held_out: the errors of all launches, each where its fit did not see it.
    """
    fitted = sum(len(entry.fitted.fitted) for entry in entries)
    widest = {(entry.family, entry.format): entry.fitted.rows for entry in reversed(entries)}
    lines = [
        f"# Made by: {command}",
        f"name: {name}",
        f"gpus: [{', '.join(gpus)}]",
        f"date: {date}",
        f"source: {_quoted(source)}",
        f"method: {_quoted(METHOD)}",
        f"rows: {sum(widest.values())}",
        f"fitted_constants: {fitted}",
        *_held_out_lines(held_out),
        *_provenance_lines(provenance),
        "fits:",
    ]
    for entry in entries:
        lines += _entry_lines(entry, name == GENERAL)
    return "\n".join(lines) + "\n"


def _held_out_lines(errors: Spread | None) -> list[str]:
    if errors is None:
        return []
    return [f"held_out: {{rows: {errors.rows}, p50: {errors.median:.3f}, p90: {errors.p90:.3f}}}"]


def _provenance_lines(provenance: Mapping[str, str | int | None]) -> list[str]:
    known = {key: value for key, value in provenance.items() if value is not None}
    lines = [f"  {key}: {_quoted(str(value))}" for key, value in known.items()]
    return ["machine:", *lines] if lines else []


def bands_yaml(bands: Iterable[Band], date: str, command: str) -> str:
    """The errors by family and basis."""
    lines = [f"# Made by: {command}", f"date: {date}", "bands:"]
    for band in bands:
        each = band.spread
        lines.append(
            f"  - {{family: {band.family}, basis: {band.basis}, rows: {each.rows}, p50: {each.median:.3f},"
            f" p90: {each.p90:.3f}}}"
        )
    return "\n".join(lines) + "\n"


def _entry_lines(entry: Entry, everywhere: bool) -> list[str]:
    several = entry.generations if everywhere else ()
    errors = spread(entry.fitted.errors)
    constants = ", ".join(
        f"{key_of(name)}: {_number(out_of_si(name, value))}"
        for name, value in entry.fitted.constants._asdict().items()
    )
    return [
        f"  - family: {entry.family}",
        f"    format: {entry.format}",
        *([f"    library: {entry.library}"] if entry.library.known else []),
        f"    gpus: [{', '.join(entry.gpus)}]",
        *([f"    generations: [{', '.join(several)}]"] if several else []),
        f"    rows: {entry.fitted.rows}",
        f"    error_p50: {errors.median:.3f}",
        f"    error_p90: {errors.p90:.3f}",
        f"    fitted: [{', '.join(key_of(name) for name in entry.fitted.fitted)}]",
        f"    constants: {{{constants}}}",
    ]


def _number(value: float) -> str:
    return significant(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', "'") + '"'


def held_out_csv(left: Sequence[HeldOut]) -> str:
    """The errors of launches that took no part in a fit, by what was left out."""
    rows = []
    for each in left:
        s = spread(each.errors)
        values = (s.median, s.mean, s.p90, s.within_25, s.bias)
        rows.append(
            f"{each.scheme},{each.family},{each.format},{each.gpu},{each.library},{s.rows},"
            + ",".join(f"{value:.4f}" for value in values)
        )
    header = "scheme,family,format,gpu,library,rows,median,mean,p90,within_25,bias"
    return "\n".join([header, *rows]) + "\n"
