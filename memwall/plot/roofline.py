"""The log-log roofline: slopes of the memory levels, a roof for each format, ridge points, and operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memwall.hardware import Device
from memwall.plot.figure import Axis, Curve, Dot, Figure, Link, Point, compact, decades
from memwall.plot.levels import LEVELS, missing, slopes
from memwall.plot.roofs import formats_of, no_roof, roofless, roofs_of
from memwall.reports.roofline import RooflineReport
from memwall.units import (
    format_bytes_per_s,
    format_flops_per_s,
    format_seconds,
    significant,
)

OPS, ROOM = 1, 1.25
"""The colour of operators on one GPU, and how far the axes reach beyond what they show."""


class Run(NamedTuple):
    """A measured run of an operator."""

    report: RooflineReport
    """What it was predicted to cost."""
    time_s: float
    name: str
    """Of the kernel."""
    above: bool = False
    """Whether it beats its bound by more than clocks and timers are off."""

    @property
    def flops_per_s(self) -> float:
        """What it reached."""
        return self.report.flops / self.time_s


def figure(
    devices: Sequence[Device],
    reports: Sequence[RooflineReport],
    runs: Sequence[Run] = (),
    dtypes: Sequence[str] = (),
    least: float = 1.0,
    levels: Sequence[str] | None = None,
) -> Figure:
    """The picture of operators on one or several GPUs.

    Args:
        devices: one colour each.
        reports: the operators; those without FLOPs or bytes have no place on it and are named in a note.
        runs: measured runs, each beside its prediction.
        dtypes: whose roofs to draw; by default every one of a single GPU, of several those asked for.
        least: an intensity that the picture reaches down to [FLOP/B].
        levels: memories whose slopes to draw; by default every one of a single GPU, of several the main one.
    """
    drawn_of = formats_of(devices, reports, dtypes)
    roofs = {device.name: roofs_of(device, drawn_of) for device in devices}
    if not any(roofs.values()):
        raise no_roof(devices, drawn_of)
    dots = _labelled(list(dict.fromkeys(_dot(report, devices) for report in reports if _at(report))))
    dots += [_measured(run, devices) for run in runs if _at(run.report)]
    links = [Link(at, (at[0], run.flops_per_s)) for run in runs if (at := _at(run.report)) is not None]
    x, y = _axes(devices, roofs, [dot.at for dot in dots], least)
    curves: list[Curve] = []
    for number, device in enumerate(devices):
        several = len(devices) > 1
        drawn = slopes(device, levels or (LEVELS if not several else LEVELS[:1]))
        curves += _curves(device, roofs[device.name], x, y, number if several else 0, several, drawn)
        dots += _ridges(device, roofs[device.name], number if several else 0, several)
    notes = [f"{report.op}: no FLOPs or no bytes, so no place here" for report in reports if not _at(report)]
    notes += [*roofless(devices, dtypes), *missing(devices, levels)]
    unlabelled = len(devices) > 1 and any(not dot.label and dot.shape == "disc" for dot in dots)
    title = (
        " and ".join(device.title for device in devices) if len(devices) < _NAMED else f"{len(devices)} GPUs"
    )
    return Figure(
        f"Roofline: {title}",
        _subtitle(devices, runs),
        x,
        y,
        tuple(curves),
        tuple(dots),
        tuple(links),
        tuple(dict.fromkeys(notes)),
        label_notes=(_ONE_LABEL,) if unlabelled else (),
    )


def _subtitle(devices: Sequence[Device], runs: Sequence[Run]) -> str:
    """What the roofs are, and whether a run is above its own."""
    own = any(device.assumed or device.own for device in devices)
    rests_on = f"Compulsory traffic and {'peaks as given' if own else 'published peaks'}"
    above = sum(run.above for run in runs)
    if above:
        return f"{rests_on}; measured runs above their roof: {above:,} of {len(runs):,}"
    return f"{rests_on}: no kernel is above its roof"


_NAMED = 3
_ONE_LABEL = "An operator has one intensity on every GPU: its label stands at one of its dots"


def _at(report: RooflineReport) -> Point | None:
    """Where an operator stands; None where it has no FLOPs or no bytes."""
    intensity = report.bound.arithmetic_intensity
    return (intensity, report.bound.attainable_flops_per_s) if intensity else None


def _dot(report: RooflineReport, devices: Sequence[Device]) -> Dot:
    at = _at(report)
    assert at is not None  # noqa: S101 - the caller has looked
    hover = (
        f"{label(report)} on {report.device.name}: {significant(at[0])} FLOP/B, {format_flops_per_s(at[1])}, "
        f"{format_seconds(report.bound_time_s)}, {report.regime}"
    )
    color = _color(report.device, devices)
    return Dot(at, color, label(report), hover, form=color if len(devices) > 1 else 0)


def _labelled(dots: Sequence[Dot]) -> list[Dot]:
    """An operator has one intensity on every GPU, so its dots are a column: the highest has the label."""
    columns: dict[tuple[str, float], set[Point]] = {}
    for dot in dots:
        columns.setdefault((dot.label, dot.at[0]), set()).add(dot.at)
    found = []
    for dot in dots:
        *lower, highest = sorted(columns[dot.label, dot.at[0]], key=lambda at: at[1])
        found.append(dot._replace(also=tuple(lower)) if dot.at == highest else dot._replace(label=""))
    return found


def _measured(run: Run, devices: Sequence[Device]) -> Dot:
    at = _at(run.report)
    assert at is not None  # noqa: S101 - the caller has looked
    reached = run.flops_per_s
    hover = (
        f"{run.name} measured: {format_flops_per_s(reached)}, {format_seconds(run.time_s)}, "
        f"{significant(100 * reached / at[1], 3)} % of the bound"
    )
    color = _color(run.report.device, devices, 2)
    return Dot((at[0], reached), color, "", hover, "ring", form=color if len(devices) > 1 else 0)


def _color(device: Device, devices: Sequence[Device], alone: int = OPS) -> int:
    return [each.name for each in devices].index(device.name) if len(devices) > 1 else alone


def label(report: RooflineReport) -> str:
    """An operator in few words: gemm 4096x4096x4096, gemv 8192x8192 int4-g128."""
    sizes = [f"{size}" for name, size in report.shape.items() if not (name in _QUIET and size == 1)]
    case = report.case
    impl = f" {case.impl}" if case and case.impl else ""
    if case and case.op.name in ("attention", "mla"):
        dims = report.shape
        heads = f"{dims['heads']}/{dims['kv_heads']}" if "kv_heads" in dims else str(dims["heads"])
        seq = (
            str(dims["seq_kv"])
            if dims["seq_q"] in (1, dims["seq_kv"])
            else f"{dims['seq_q']}:{dims['seq_kv']}"
        )
        what = "decode" if dims["seq_q"] == 1 else ""
        batch = f"{dims['batch']}x" if dims.get("batch", 1) > 1 else ""
        width = f" of {dims['head_dim']}" if "head_dim" in dims else ""
        sizes = [f"{batch}{heads} heads{width}, {seq}"]
        impl = f" {what}{impl}".rstrip() if what else impl
        sizes[0] += ", no mask" if case.causal is False and not what else ""
    formats = [] if report.formats.dtype == "bf16" else [report.formats.dtype]
    formats += [each for each in report.formats[1:] if each]
    return " ".join([f"{report.op}{impl}", "x".join(sizes), *formats]).strip()


_QUIET = ("batch",)


def _axes(
    devices: Sequence[Device], roofs: dict[str, dict[float, str]], points: Sequence[Point], least: float
) -> tuple[Axis, Axis]:
    """Room for every roof, ridge and point."""
    peaks = [peak for each in roofs.values() for peak in each]
    ridges = [peak / device.bandwidth.value for device in devices for peak in roofs[device.name]]
    low = min([least, *(x for x, _ in points)])
    high = max([*(ridge * 8 for ridge in ridges), *(x for x, _ in points)])
    low, high = low / _ROOM_X, high * ROOM
    bottom = min(low * min(device.bandwidth.value for device in devices), *(y for _, y in points), max(peaks))
    most = max([*peaks, *(y for _, y in points)])
    x = Axis("arithmetic intensity, FLOP/B", low, high, decades(low, high, compact))
    bottom, top = bottom / ROOM, most * 2
    return x, Axis("FLOP/s", bottom, top, decades(bottom, top, _rate))


_ROOM_X = 1.6


def _rate(value: float) -> str:
    return format_flops_per_s(value).removesuffix("FLOP/s").strip()


def _curves(
    device: Device,
    roofs: dict[float, str],
    x: Axis,
    y: Axis,
    color: int,
    several: bool,
    drawn: Sequence[tuple[str, float]],
) -> list[Curve]:
    curves = []
    highest = max(roofs, default=y.high)  # without a peak in these formats the slope has no end
    for number, (level, rate) in enumerate(drawn):
        start = max(x.low, y.low / rate)
        end = min(x.high, highest / rate)
        text = f"{level} {format_bytes_per_s(rate)}"
        curves.append(
            Curve(
                ((start, start * rate), (end, end * rate)),
                color,
                _legend(device, roofs, drawn) if several and not number else "",
                f"{device.name} {level}" if several else text,
                f"{device.name} {level}" if several else level,
                strong=not number,
                form=color if several else None,
            )
        )
    rate = device.bandwidth.value
    for peak, formats in reversed(roofs.items()):
        text = f"{formats} {format_flops_per_s(peak)}"
        roof = ((min(peak / rate, x.high), peak), (x.high, peak))
        brief = f"{device.name} {formats}" if several else formats
        curves.append(Curve(roof, color, "", brief if several else text, brief, end=brief if several else ""))
    return curves


def _legend(device: Device, roofs: dict[float, str], drawn: Sequence[tuple[str, float]]) -> str:
    """A GPU among several with its rates: its slopes and roofs have no room for them."""
    slopes = [f"{level} {format_bytes_per_s(rate)}" for level, rate in drawn]
    peaks = [f"{formats} {format_flops_per_s(peak)}" for peak, formats in roofs.items()]
    return f"{device.name}: {', '.join([*slopes, *peaks])}"


def _ridges(device: Device, roofs: dict[float, str], color: int, several: bool) -> list[Dot]:
    dots = []
    for peak, formats in roofs.items():
        ridge = peak / device.bandwidth.value
        where = f"{device.name} {formats}" if several else formats
        dots.append(
            Dot(
                (ridge, peak),
                color,
                significant(ridge, 3),
                f"ridge of {where}: {significant(ridge)} FLOP/B",
                "diamond",
                True,
            )
        )
    return dots
