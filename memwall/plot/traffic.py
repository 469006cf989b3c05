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
        Curve(tuple(zip(map(float, lengths), standard, strict=True)), 1, "standard: S and P through memory"),
        Curve(tuple(zip(map(float, lengths), flash, strict=True)), 0, "flash: scores stay on chip"),
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
