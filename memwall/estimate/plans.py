"""How each mechanism is fitted: where from, which constants, among which choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.estimate.constants import in_si
from memwall.estimate.decode import TILE_KEYS, DecodeConstants
from memwall.estimate.gemm import GemmConstants
from memwall.estimate.prefill import PrefillConstants
from memwall.estimate.rowwise import RowwiseConstants


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
    {"unit_bytes_per_clock": (20, 50), "most_splits": (1, 16)},
)
_QUANTISED = Plan(
    _GEMM.start._replace(energy_per_flop_j=_pj(0.35), convert_row_clocks=50),
    (*_GEMM.fitted, "convert", "convert_row_clocks"),
    {"convert": (0, 1.5), "convert_row_clocks": (50, 1200), **_GEMM.choices},
)
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
        launch_s=_us(2),
        bandwidth_share=0.85,
        warm_gain=1.5,
        passes=1,
        row_clocks=0,
        element_clocks=0,
        serial_clocks=0,
        short_share=0,
        sharpness=3,
    ),
    ("launch_s", "bandwidth_share", "warm_gain", "row_clocks", "element_clocks", "serial_clocks"),
    {},
)
_REDUCING = _ROWWISE._replace(
    start=_ROWWISE.start._replace(row_clocks=300, element_clocks=0.5, serial_clocks=0.3)
)

_PLANS = {
    "gemm": _GEMM,
    "grouped_gemm": _GEMM,
    "prefill": _PREFILL,
    "mla_prefill": _LATENT_PREFILL,
    "decode": _DECODE,
    "mla_decode": _DECODE,
    "elementwise": _ROWWISE,
    "activation": _ROWWISE._replace(start=_ROWWISE.start._replace(element_clocks=0.3)),
    "rmsnorm": _REDUCING,
    "layernorm": _REDUCING,
    "softmax": _REDUCING._replace(
        fitted=(*_REDUCING.fitted, "short_share"), choices={"short_share": (0, 0.6)}
    ),
    "mask": _ROWWISE._replace(start=_ROWWISE.start._replace(bandwidth_share=0.4)),
    "gated": _ROWWISE._replace(start=_ROWWISE.start._replace(element_clocks=0.3)),
    "read": _ROWWISE,
    "gather": _ROWWISE,
}


def plan_of(family: str, number: str) -> Plan:
    """The plan of a family for a class of number formats."""
    if family == "gemm" and number in ("fp8", "nvfp4", "mxfp4", "int8"):
        return _QUANTISED
    if family == "decode" and number not in ("16-bit", "fp32"):
        return _NARROW
    return _PLANS[family]
