"""The time of attention with one new token a sequence: K and V are streamed, split over the units.

    items      = batch kv_heads ceil(group / packed)       group = heads / kv_heads, served by one pass
    splits     = between 1 and the tiles of keys, so that items x splits fill the units' slots; 1 where
                 items / units >= whole_from
    turns      = max(1, items splits / (units min(slots, resident)))
    memory     = max(bytes / (bandwidth bandwidth_share), turns x one CTA's keys / its rate)
    compute    = FLOPs, the group padded to `padded` rows / (peak matrix_share) + converted elements / rate
    time       = launch + max(memory, compute) + cta_s turns head_dim / 128 + combine log2(splits)

A CTA draws what it keeps in flight (cta_bytes_per_clock), so few long sequences take as long as one CTA
needs for its share of the keys. A unit runs `resident` CTAs at a time; a rule that aims at more slots makes
them wait their turn, and each pays its first tile and its end. Splits end in a pass that combines them. The
queries of a group share K and V, padded to the matrix unit's rows. Cached fp8 is converted on the lanes. What
is in L2 already comes at l2_share of the rate of its ports.

Groups that the matrix kernel does not take, and launches whose tiles would leave most units idle
(least_fill), run head by head on the lanes:

    heads      = batch heads,  splits = between 1 and the tiles of keys, so that heads x splits fill units
    lanes      = max(elements / (units plain_per_clock), elements of one CTA / (plain_per_clock / 2))
    time       = launch + max(memory, lanes) + combine log2(splits)

Source: Dao et al. 2023, "Flash-Decoding for long-context inference" (split-KV and its combine pass); the
rates are fitted.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.estimate.chip import Chip
from memwall.maths import Count, ceil_div, log2, maximum, minimum, smooth_maximum, where


class DecodeShape(NamedTuple):
    """One launch of attention with one query token a sequence (or a few)."""

    batch: Count
    heads: Count
    kv_heads: Count
    seq_kv: Count
    head_dim: Count
    head_dim_v: Count
    kv_bytes_per_token: Count
    """Of one KV head: K and V, or the latent."""
    traffic_bytes: Count
    narrow: bool
    """K and V in fewer bits than the computation."""


class DecodeConstants(NamedTuple):
    """What differs between architectures and libraries."""

    launch_s: float
    bandwidth_share: float
    cta_bytes_per_clock: float
    """What one CTA draws from memory."""
    cta_s: float
    """First tile and end of a CTA, for 128 elements of head_dim."""
    combine_s: float
    """A doubling of the splits."""
    matrix_share: float
    convert_per_clock: float
    """Elements of a narrow cache that a unit converts in a clock; 0: free."""
    l2_share: float
    """Of the rate of L2's ports, where K and V are there already."""
    slots: float
    """CTAs a unit that the split rule aims to fill."""
    resident: float
    """CTAs that a unit runs at a time."""
    split_group: float
    """Groups below are never split."""
    most_splits: float
    """1: the library does not split."""
    least_keys: float
    """Keys that a split keeps at least."""
    packed: float
    """Query heads of one group that one CTA serves."""
    padded: float
    """Rows that the matrix unit computes at least."""
    unsplit_padded: float
    """The same where nothing is split and the prefill kernel serves the queries; 0: it does not."""
    wide: float
    """Of convert_per_clock, what is left above head_dim 128: fewer keys of a tile fit on chip."""
    plain_per_clock: float
    """Elements of K and V that a unit multiplies in a clock, in the kernel for other groups; 0: none."""
    least_group: float
    """Groups below use that kernel."""
    least_fill: float
    """Of the units, what tiles of keys must fill, or that kernel serves them."""
    most_group: float
    """Groups above use it too."""
    sharpness: float
    whole_from: float = 0.0
    """Items a unit from which nothing is split: the units are full enough; 0: no such rule."""


TILE_KEYS = 128
USUAL_HEAD = 128
FULL = 1.6
"""`whole_from` of flash-attention 2: 0.8 of two CTAs a unit (num_splits_heuristic in its flash_api.cpp)."""
PLAIN_ALONE = 0.5
"""Of what a unit's lanes multiply, what one CTA alone does."""


def decode_time_s(shape: DecodeShape, chip: Chip, c: DecodeConstants, warm: Count = False) -> Count:
    """The time of the launch and its combine pass [s].

    Args:
        shape: the sequences and heads.
        chip: the device, with the peak of the format that computes.
        c: the constants.
        warm: whether K and V are in L2 already.
    """
    s = shape
    group = ceil_div(s.heads, s.kv_heads)
    packed_s = _packed_s(s, group, chip, c, warm)
    if c.plain_per_clock:
        items = s.batch * s.kv_heads * (s.seq_kv // TILE_KEYS)
        few = items < c.least_fill * chip.units
        plain = (group < c.least_group) | (group > c.most_group) | few
        packed_s = where(plain, _plain_s(s, chip, c, warm), packed_s)
    return c.launch_s + packed_s


def _stream(chip: Chip, c: DecodeConstants, warm: Count) -> Count:
    """Bytes a second from memory, or from L2 where they are there already."""
    memory = chip.bandwidth_bytes_per_s * c.bandwidth_share
    return where(warm, max(memory, chip.l2_bytes_per_s * c.l2_share), memory)


def _plain_s(s: DecodeShape, chip: Chip, c: DecodeConstants, warm: Count) -> Count:
    """Each query head by itself on the lanes: its group's K and V again for every head, from L2."""
    heads = s.batch * s.heads
    splits = maximum(1, minimum(chip.units // heads, s.seq_kv // TILE_KEYS))
    per_key = s.head_dim + s.head_dim_v
    lanes = chip.clock_hz * c.plain_per_clock
    evenly = heads * s.seq_kv * per_key / (chip.units * lanes)
    longest = s.seq_kv / splits * per_key / (PLAIN_ALONE * lanes)
    busy = smooth_maximum(s.traffic_bytes / _stream(chip, c, warm), maximum(evenly, longest), c.sharpness)
    return busy + c.combine_s * log2(splits)


def _packed_s(s: DecodeShape, group: Count, chip: Chip, c: DecodeConstants, warm: Count) -> Count:
    """A group's queries together on the matrix unit, the keys split over CTAs."""
    items = s.batch * s.kv_heads * ceil_div(group, c.packed)
    tiles = ceil_div(s.seq_kv, c.least_keys)
    splits = maximum(1, minimum(minimum(chip.units * c.slots // items, tiles), c.most_splits))
    whole = (items >= c.whole_from * chip.units) & (c.whole_from > 0)
    splits = where((group < c.split_group) | whole, 1, splits)
    turns = maximum(1, items * splits / (chip.units * min(c.slots, c.resident)))
    cta_bytes = ceil_div(ceil_div(s.seq_kv, splits), TILE_KEYS) * TILE_KEYS * s.kv_bytes_per_token
    cta_rate = max(chip.clock_hz * c.cta_bytes_per_clock, chip.least_unit_bytes_per_s)
    in_turn = turns * cta_bytes / cta_rate
    memory = smooth_maximum(s.traffic_bytes / _stream(chip, c, warm), in_turn, c.sharpness)
    padded = where(splits > 1, c.padded, max(c.padded, c.unsplit_padded))
    rows = ceil_div(group, padded) * padded
    keys = s.batch * s.kv_heads * s.seq_kv
    compute = 2 * keys * rows * (s.head_dim + s.head_dim_v) / (chip.peak_flops_per_s * c.matrix_share)
    if s.narrow and c.convert_per_clock:
        elements = keys * (s.head_dim + s.head_dim_v)
        rate = c.convert_per_clock * where(s.head_dim > USUAL_HEAD, c.wide, 1.0)
        compute = compute + elements / (chip.units * chip.clock_hz * rate)
    busy = smooth_maximum(memory, compute, c.sharpness) + c.cta_s * turns * s.head_dim / USUAL_HEAD
    return busy + c.combine_s * log2(splits)
