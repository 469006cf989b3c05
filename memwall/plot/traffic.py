"""Standard attention against flash over the length of a sequence: bytes through main memory."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.plot.figure import Axis, Curve, Figure, decades, doublings
from memwall.reports.attention import AttentionReport
from memwall.units import format_bytes, significant


def figure(reports: Sequence[AttentionReport], lengths: Sequence[int], what: str) -> Figure:
    """The picture of compulsory traffic.

    Args:
        reports: of the same attention, one a length.
        lengths: their sequence lengths, rising.
        what: whose attention it is.
    """
    standard = [float(report.standard.traffic_bytes) for report in reports]
    flash = [float(report.flash.traffic_bytes) for report in reports]
    low, high = min(flash) / 2, max(standard) * 2
    ratio = standard[-1] / flash[-1]
    x = Axis("tokens of a sequence", float(lengths[0]), float(lengths[-1]), doublings(lengths))
    y = Axis("bytes", low, high, decades(low, high, format_bytes))
    curves = (
        _curve("standard", "S and P through memory", lengths, standard, 1),
        _curve("flash", "scores stay on chip", lengths, flash, 0),
    )
    note = (
        f"At {lengths[-1]} tokens standard moves {format_bytes(standard[-1])}, "
        f"flash {format_bytes(flash[-1])}: {significant(ratio, 3)} times less"
    )
    return Figure(
        f"Attention traffic: {what}",
        "Compulsory bytes of one pass, each tensor once",
        x,
        y,
        curves,
        notes=(note,),
    )


def _curve(name: str, why: str, lengths: Sequence[int], traffic_bytes: Sequence[float], color: int) -> Curve:
    said = [
        f"{name}, {n} tokens: {format_bytes(each)}" for n, each in zip(lengths, traffic_bytes, strict=True)
    ]
    points = tuple(zip(map(float, lengths), traffic_bytes, strict=True))
    return Curve(points, color, f"{name}: {why}", end=name, form=color, values=tuple(said))
