"""How each mechanism is fitted: where from, which constants, among which choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.estimate.chip import STREAM_SHARE
from memwall.estimate.constants import in_si
from memwall.estimate.decode import FULL, TILE_KEYS, DecodeConstants
from memwall.estimate.gemm import GemmConstants
from memwall.estimate.prefill import PrefillConstants
from memwall.estimate.rowwise import SHORT_ROW, RowwiseConstants


class Plan(NamedTuple):
    """The fit of a family."""

    start: Any
    """Round numbers between generations, from microbenchmarks: the fit is drawn towards them."""
    fitted: tuple[str, ...]
    choices: Mapping[str, tuple[float, ...]]
    """Constants that are counted, not measured: the best of these is taken. Zero switches a mechanism off."""


def _us(value: float) -> float:
    return in_si("launch_us", value)


def _pj(value: float) -> float:
    return in_si("energy_pj", value)


_GEMM = Plan(
    GemmConstants(
        launch_s=_us(3),
        bandwidth_share=0.88,
        unit_bytes_per_clock=20,
        matrix_share=0.9,
        edge=0.1,
        wave_s=_us(0.2),
        split_s=_us(1),
        most_splits=16,
        energy_per_flop_j=_pj(0.7),
        convert=0,
        convert_row_clocks=0,
        warm_gain=1.5,
        sharpness=4,
    ),
    (
        "matrix_share",
        "launch_s",
        "bandwidth_share",
        "unit_bytes_per_clock",
        "edge",
        "wave_s",
        "split_s",
        "energy_per_flop_j",
        "warm_gain",
    ),
    {"unit_bytes_per_clock": (20, 50), "most_splits": (1, 4, 16), "gemv": (0, 1)},
)
_QUANTISED = Plan(
    _GEMM.start._replace(energy_per_flop_j=_pj(0.35), convert_row_clocks=1500, convert_element_clocks=0.4),
    (*_GEMM.fitted, "convert_row_clocks", "convert_element_clocks"),
    {
        "convert": (0, 1),
        "tall_above": (0, 128, 256),
        "cluster": (1, 2),
        "unit_bytes_per_clock": (20, 50),
        "most_splits": (1, 4, 16),
    },
)
_FOUR_BIT = _QUANTISED._replace(
    start=_QUANTISED.start._replace(convert_row_clocks=200, convert_element_clocks=0.05)
)
"""Their quantiser takes a scale for each block of a row, none for the row: no reduction to wait for."""
_PREFILL = Plan(
    PrefillConstants(
        launch_s=_us(8),
        bandwidth_share=0.88,
        matrix_share=0.8,
        exp_share=1.5,
        block_s=_us(2),
        tail=0.6,
        prepare=0.5,
        energy_per_flop_j=_pj(0.7),
        rows=128,
        cols=128,
        small=1.0,
        wide=0.9,
        sharpness=6,
    ),
    ("launch_s", "matrix_share", "block_s", "tail", "prepare", "energy_per_flop_j", "wide", "small"),
    {"rows": (64, 128), "cols": (64, 128)},
)
_LATENT_PREFILL = _PREFILL._replace(  # head_dim 192 alone: its share of the peak is one constant
    fitted=("launch_s", "block_s", "tail", "prepare", "energy_per_flop_j", "wide")
)
_DECODE = Plan(
    DecodeConstants(
        launch_s=_us(10),
        bandwidth_share=0.93,
        cta_bytes_per_clock=25,
        cta_s=_us(0.5),
        combine_s=_us(0.8),
        matrix_share=0.5,
        convert_per_clock=0,
        l2_share=0.4,
        slots=2,
        resident=2,
        split_group=1,
        most_splits=64,
        least_keys=128,
        packed=64,
        padded=16,
        unsplit_padded=0,
        wide=1,
        plain_per_clock=0,
        least_group=2,
        least_fill=0.0,
        most_group=32,
        sharpness=3,
    ),
    (
        "launch_s",
        "bandwidth_share",
        "cta_bytes_per_clock",
        "cta_s",
        "combine_s",
        "matrix_share",
        "l2_share",
        "plain_per_clock",
    ),
    {
        "plain_per_clock": (0, 6),
        "least_group": (1, 2),
        "least_fill": (0, 0.25),
        "split_group": (1, 2),
        "most_splits": (1, 8, 32, 128),
        "least_keys": (TILE_KEYS, 4 * TILE_KEYS, 8 * TILE_KEYS),
        "slots": (1, 2, 4),
        "resident": (1, 2),
        "packed": (16, 64),
        "padded": (16, 64, 128),
        "unsplit_padded": (0, 128),
    },
)
_NARROW = Plan(
    _DECODE.start._replace(convert_per_clock=20),
    (*_DECODE.fitted, "convert_per_clock", "wide"),
    _DECODE.choices,
)
_ROWWISE = Plan(
    RowwiseConstants(
        launch_s=_us(1.2),
        first_s=_us(0.75),
        bandwidth_share=STREAM_SHARE,
        warm_bytes_per_clock=32,
        reread=0,
        resident_rows=16,
        row_clocks=0,
        element_clocks=0,
        serial_clocks=0,
        short_clocks=0,
        short_serial_clocks=0,
        short_row=SHORT_ROW,
        sharpness=4,
    ),
    (
        "launch_s",
        "element_clocks",
        "bandwidth_share",
        "row_clocks",
        "serial_clocks",
        "warm_bytes_per_clock",
        "reread",
    ),
    {},
)
_COMPUTING = _ROWWISE._replace(start=_ROWWISE.start._replace(element_clocks=0.3))
_REDUCING = _ROWWISE._replace(
    start=_ROWWISE.start._replace(row_clocks=250, element_clocks=0.35, serial_clocks=3),
    choices={"reread": (0, 1), "resident_rows": (4, 16)},
)

_PLANS = {
    "gemm": _GEMM,
    "grouped_gemm": _GEMM,
    "prefill": _PREFILL,
    "mla_prefill": _LATENT_PREFILL,
    "decode": _DECODE,
    "mla_decode": _DECODE,
    "elementwise": _ROWWISE,
    "activation": _COMPUTING,
    "cast": _ROWWISE._replace(start=_ROWWISE.start._replace(element_clocks=0.2)),
    "power": _COMPUTING._replace(choices={"element_clocks": (0.6, 3)}),
    "rmsnorm": _REDUCING,
    "layernorm": _REDUCING,
    "softmax": _REDUCING._replace(
        start=_REDUCING.start._replace(short_clocks=0.4, short_serial_clocks=5),
        fitted=(*_REDUCING.fitted, "short_clocks", "short_serial_clocks"),
        choices={"reread": (0, 1), "resident_rows": (4, 16), "short_row": (0, SHORT_ROW, 2 * SHORT_ROW)},
    ),
    "mask": _ROWWISE._replace(start=_ROWWISE.start._replace(bandwidth_share=0.35)),
    "gated": _COMPUTING,
    "read": _ROWWISE,
    "gather": _ROWWISE._replace(start=_ROWWISE.start._replace(bandwidth_share=0.7)),
}


KNOWN = {("decode", "fa2"): {"whole_from": FULL}}
"""What a kernel's source says: neither fitted nor a choice."""


def plan_of(family: str, number: str, kernel: str | None = None) -> Plan:
    """The plan of a family for a class of number formats, and for a kernel whose source is known."""
    plan, known = _plan_of(family, number), KNOWN.get((family, kernel or ""))
    return plan._replace(start=plan.start._replace(**known)) if known else plan


def _plan_of(family: str, number: str) -> Plan:
    if family == "gemm" and number in ("fp8", "int8"):
        return _QUANTISED
    if family == "gemm" and number in ("nvfp4", "mxfp4"):
        return _FOUR_BIT
    if family == "decode" and number not in ("16-bit", "fp32"):
        return _NARROW
    return _PLANS[family]
