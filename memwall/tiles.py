"""A tiled matrix product with an L2 behind it: what reaches main memory, and what passes between L2 and the
units.

The compute units work on as many output tiles as there are units, a wave. Tiles of a wave walk along k
together, so each row panel of a (tile_m x k) and column panel of b (tile_n x k) that the wave touches comes
from main memory once. What the next wave touches again has survived in L2 or not (`memwall.retention`).

The tiles are taken in bands of `band` columns of tiles, row by row within a band. A library's order is its
own and is not published; this one is assumed, because it comes nearest to what an H200 counts for cuBLAS.
"""

from __future__ import annotations

from math import exp, gcd
from typing import NamedTuple

from memwall.maths import Count, ceil_div, minimum
from memwall.retention import L2
from memwall.traffic import Traffic
from memwall.units import MEGA

DRIFT_BYTES = 32 * MEGA
"""How many bytes of a row a unit walks along, in tiles of 128 x 256, until its wave has come apart to 1 -
1/e: blocks that finish at different times share less and less. Measured on one H200: long products
(16384^3) read 1.6 to 1.9 times what waves in step would."""


class Product(NamedTuple):
    """c[m,n] = a[m,k] b[n,k]^T and what an element of each takes."""

    m: int
    n: int
    k: int
    a_bytes: float
    """Of an element of a [B]."""
    b_bytes: float
    c_bytes: float

    @property
    def operands(self) -> tuple[float, float]:
        """Bytes of a and of b."""
        return self.m * self.k * self.a_bytes, self.n * self.k * self.b_bytes

    @property
    def written_bytes(self) -> float:
        """Bytes of c."""
        return self.m * self.n * self.c_bytes


class Tiling(NamedTuple):
    """How a product is cut into tiles, and the order in which they are taken."""

    tile_m: int = 128
    tile_n: int = 256
    tile_k: int = 64
    band: int = 6
    """Columns of tiles in a band."""

    @classmethod
    def of(cls, tile_m: int, tile_n: int, tile_k: int = 64) -> Tiling:
        """Another tile, in bands of the same number of columns of c."""
        plain = cls()
        return cls(tile_m, tile_n, tile_k, max(1, round(plain.band * plain.tile_n / tile_n)))

    @property
    def share_of_plain(self) -> float:
        """Its area in plain tiles: how much longer one takes."""
        plain = Tiling()
        return self.tile_m * self.tile_n / (plain.tile_m * plain.tile_n)

    def rows(self, product: Product) -> int:
        """Tiles along m."""
        return int(ceil_div(product.m, self.tile_m))

    def cols(self, product: Product) -> int:
        """Tiles along n."""
        return int(ceil_div(product.n, self.tile_n))

    def tiles(self, product: Product) -> int:
        """Output tiles."""
        return self.rows(product) * self.cols(product)


def library_tiling(product: Product) -> Tiling:
    """The tile that libraries are taken to choose: 128 x 256, and 128 x 192 for operands of 8 bits or fewer.

    Read from the names of cuBLAS' kernels on an H200: 128 x 256 to 320 and 192 x 192 in 16 bits, 128 x 128 to
    160 in fp8. A narrower tile also stands for the smaller clusters that they come in.
    """
    return Tiling.of(128, 192) if product.a_bytes <= 1 else Tiling()


def no_reuse(product: Product, tiling: Tiling) -> Traffic:
    """Every tile loads its own panels: `traffic.tiled_gemm` with a and b each in its own format."""
    a, b = product.operands
    return Traffic(a * tiling.cols(product) + b * tiling.rows(product), product.written_bytes)


def with_l2(product: Product, tiling: Tiling, units: int, l2: L2, places: float) -> Traffic:
    """What of a tiled product reaches main memory.

        read = R + (no reuse - R) (1 - exp(-waves k element tile / (128 x 256) / DRIFT_BYTES))
        R    = a (1 + a's panels again x missed) + b (1 + b's panels again x missed)

    A run of L tiles that share a panel lies in 1 + (L - gcd(L, units)) / units waves on average, so that is
    how often the panel is asked for again; a band's rows come again in the next band.

    Args:
        product: the shape and its formats.
        tiling: tile sizes and order.
        units: tiles that run at once.
        l2: the cache.
        places: lines of L2 that a line of a shared panel takes.

    An H200 counted 149.8e6 bytes read for bf16 4096^3 (67e6 compulsory, 1611e6 without reuse):

    >>> cube = Product(4096, 4096, 4096, 2, 2, 2)
    >>> round(with_l2(cube, Tiling(), 132, L2(62914560, 2), 1.5).read_bytes / 1e6)
    147
    """
    a, b = product.operands
    worst = no_reuse(product, tiling).read_bytes
    again = read_again(product, tiling, units, l2, places)
    return Traffic(dram_reads(a, b, worst, *again), product.written_bytes)


class ReadAgain(NamedTuple):
    """How far a product's reads go beyond each operand once."""

    a_again: float
    """How often the panels of a come from main memory after the first time."""
    b_again: float
    apart: float
    """The share of the way to no reuse that blocks out of step have gone."""


def dram_reads(a: Count, b: Count, worst: Count, a_again: Count, b_again: Count, apart: Count) -> Count:
    """Bytes from main memory: R + (worst - R) apart,  R = min(worst, a (1 + a_again) + b (1 + b_again)).

    Args:
        a: bytes of a.
        b: bytes of b.
        worst: bytes without reuse.
        a_again: as in `ReadAgain`, like the others.
        b_again: of b.
        apart: of the way to `worst`.
    """
    in_step = minimum(worst, a * (1 + a_again) + b * (1 + b_again))
    return in_step + (worst - in_step) * apart


def read_again(product: Product, tiling: Tiling, units: int, l2: L2, places: float) -> ReadAgain:
    """How often panels come again, and how far the blocks come apart; arguments as `with_l2`."""
    waves = tiling.tiles(product) / units
    if waves <= 1:
        return ReadAgain(0.0, 0.0, 0.0)
    walked = waves * product.k * product.a_bytes * tiling.share_of_plain
    apart = 1 - exp(-walked / DRIFT_BYTES)
    return ReadAgain(*_again(product, tiling, units, l2, places, waves), apart)


def _again(
    product: Product, tiling: Tiling, units: int, l2: L2, places: float, waves: float
) -> tuple[float, float]:
    """How often the panels of a, and those of b, come from main memory after the first time."""
    rows, cols = tiling.rows(product), tiling.cols(product)
    band = min(tiling.band, cols)
    run = rows * band
    straddled = (run - gcd(run, units)) / units
    if run < units:  # a wave takes several bands: all rows in each wave
        wave_cols = min(cols, (units / run + 1) * band)
        missed = l2.missed(_wave_bytes(product, tiling, rows, wave_cols, units, places))
        return (waves - 1) * missed, min(waves - 1, straddled) * missed
    wave_rows = min(rows, units / band + 1)
    wave = _wave_bytes(product, tiling, wave_rows, band, units, places)
    missed = l2.missed(wave)
    bands = cols / band
    next_band = (bands - 1) * l2.missed(wave * run / units)
    return next_band + bands * (band - gcd(band, units)) / units * missed, straddled * missed


def _wave_bytes(
    product: Product, tiling: Tiling, rows: float, cols: float, units: int, places: float
) -> float:
    """Bytes of L2 that one wave passes through: its panels and its results."""
    a = min(product.m, rows * tiling.tile_m) * product.k * product.a_bytes
    b = min(product.n, cols * tiling.tile_n) * product.k * product.b_bytes
    return (a + b) * places + units * tiling.tile_m * tiling.tile_n * product.c_bytes


def through_l2(product: Product, tiling: Tiling, cluster: int) -> Traffic:
    """Bytes between L2 and the units: each tile's panels, one load of a panel for a whole cluster.

    Args:
        product: the shape and its formats.
        tiling: tile sizes.
        cluster: neighbouring tiles along m that load a column panel together (TMA multicast); 1 without
            clusters.

    An H200 counted 1.04e9 for bf16 4096^3, its library in clusters of two:

    >>> through_l2(Product(4096, 4096, 4096, 2, 2, 2), Tiling(), 2).total_bytes / 1e9
    1.107296256
    """
    return no_reuse(product, tiling._replace(tile_m=tiling.tile_m * cluster))
