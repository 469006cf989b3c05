"""What one request of a warp costs: bank conflicts in shared memory, sectors and lines in global memory.

Shared memory has 32 banks, a 4-byte word each in turn. Words of one bank are served one after the other; the
same word is served to all who ask for it. Global memory is fetched in sectors of 32 bytes, four to a line of
128 bytes; a request costs each sector that it touches once, whatever it uses of it.

Source: CUDA C++ Programming Guide, "Shared Memory" and "Global Memory" of compute capability 5.x and later;
CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memwall.errors import UsageError
from memwall.maths import ceil_div

WARP = 32
BANKS, WORD_BYTES = 32, 4
SECTOR_BYTES, LINE_BYTES = 32, 128
ATOM_BYTES = 64
"""What HBM hands over for a load that stands alone. Measured: an H200 reads 64.0 bytes for each of 2^24 lone
elements, 32.0 for each where every sector is wanted."""
ELEMENT_SIZES = (1, 2, 4, 8, 16)
"""Bytes that one thread can load at once."""
ACCESSES = ("row", "column", "diagonal", "broadcast")
PATTERNS = ("coalesced", "strided", "random")
LARGEST_TILE = 65536
"""Rows or columns of a tile that shared memory could hold."""


class Conflict(NamedTuple):
    """A warp's access to a tile in shared memory."""

    degree: int
    """The most words of one bank in one pass: 1 is free of conflicts."""
    passes: int
    """Times that the banks are read."""
    least_passes: int
    """How often without conflicts: 1 for up to 4 bytes a thread, 2 for 8, 4 for 16."""

    @property
    def efficiency(self) -> float:
        """Least passes / passes: the share of the shared-memory bandwidth that is left."""
        return self.least_passes / self.passes


def conflict(rows: int, cols: int, access: str, element_bytes: int = 4, pad: int = 0) -> Conflict:
    """Bank conflicts of one access of a warp to a tile of rows x cols, rows of cols + pad elements.

        row        thread i takes [0][i]            column  thread i takes [i][0]
        diagonal   thread i takes [i][i]            broadcast  all take [0][0]
        bank       = word address mod 32; threads of 32 x 4 bytes are served together

    A tile with fewer rows (or columns) than threads goes on in the next column (or row).

    Raises:
        UsageError: an access, an element or a tile that cannot be.

    >>> conflict(32, 32, "column").degree, conflict(32, 32, "column", pad=1).degree
    (32, 1)
    """
    _check_tile(rows, cols, element_bytes, pad)
    width = cols + pad
    addresses = [_element(access, i, rows, cols, width) * element_bytes for i in range(WARP)]
    together = min(WARP, BANKS * WORD_BYTES // max(element_bytes, WORD_BYTES))
    groups = [addresses[start : start + together] for start in range(0, WARP, together)]
    degrees = [_most_words(group, element_bytes) for group in groups]
    return Conflict(max(degrees), sum(degrees), len(groups))


def least_pad(rows: int, cols: int, access: str, element_bytes: int = 4) -> int | None:
    """The fewest elements of padding a row that leave no conflict; None if 32 do not help."""
    degrees = (conflict(rows, cols, access, element_bytes, pad).degree for pad in range(BANKS + 1))
    return next((pad for pad, degree in enumerate(degrees) if degree == 1), None)


def _element(access: str, thread: int, rows: int, cols: int, width: int) -> int:
    """The element that a thread takes."""
    if access == "row":
        return thread // cols % rows * width + thread % cols
    if access == "column":
        return thread % rows * width + thread // rows % cols
    if access == "diagonal":
        return thread % rows * width + thread % cols
    if access == "broadcast":
        return 0
    raise UsageError(f"no access '{access}'", f"Choose from: {', '.join(ACCESSES)}")


def _most_words(addresses: Sequence[int], element_bytes: int) -> int:
    """The most distinct words in one bank."""
    words = {word for address in addresses for word in _pieces(address, element_bytes, WORD_BYTES)}
    banks = [word % BANKS for word in words]
    return max(banks.count(bank) for bank in set(banks))


class Request(NamedTuple):
    """A warp's request to global memory."""

    useful_bytes: int
    sectors: int
    lines: int
    atoms: int
    """Pieces of 64 bytes that memory hands over."""

    @property
    def sector_efficiency(self) -> float:
        """Useful bytes / bytes of the sectors."""
        return self.useful_bytes / (self.sectors * SECTOR_BYTES)

    @property
    def line_efficiency(self) -> float:
        """Useful bytes / bytes of the lines."""
        return self.useful_bytes / (self.lines * LINE_BYTES)

    @property
    def atom_efficiency(self) -> float:
        """Useful bytes / bytes that memory hands over."""
        return self.useful_bytes / (self.atoms * ATOM_BYTES)


def request(pattern: str, element_bytes: int = 4, stride: int = 1, offset: int = 0) -> Request:
    """Sectors and lines of one request of 32 threads.

        coalesced  thread i loads element i
        strided    thread i loads element i x stride
        random     every thread loads from a line of its own: the worst case, and the usual one in a large
        table

    Args:
        pattern: as above.
        element_bytes: what each thread loads [B]: 1, 2, 4, 8 or 16.
        stride: elements between neighbours, for strided.
        offset: elements from the start of a line to the first.

    Raises:
        UsageError: none of these.

    >>> request("strided", 4, 4)[:3], request("random", 4)[:3], request("coalesced", 16)[:3]
    ((128, 16, 4), (128, 32, 32), (512, 16, 4))
    """
    _check_element(element_bytes)
    if pattern not in PATTERNS:
        raise UsageError(f"no pattern '{pattern}'", f"Choose from: {', '.join(PATTERNS)}")
    apart = {"coalesced": element_bytes, "strided": stride * element_bytes, "random": LINE_BYTES}[pattern]
    addresses = [offset * element_bytes + i * apart for i in range(WARP)]
    useful = len(set(addresses)) * element_bytes

    def touched(size: int) -> int:
        return len({piece for address in addresses for piece in _pieces(address, element_bytes, size)})

    return Request(useful, touched(SECTOR_BYTES), touched(LINE_BYTES), touched(ATOM_BYTES))


def _pieces(address: int, length: int, size: int) -> range:
    """The pieces of that size that so many bytes touch."""
    return range(address // size, int(ceil_div(address + length, size)))


def _check_element(element_bytes: int) -> None:
    if element_bytes not in ELEMENT_SIZES:
        sizes = ", ".join(map(str, ELEMENT_SIZES))
        raise UsageError(f"a thread loads {sizes} bytes at once, not {element_bytes}", "Try --element 4")


def _check_tile(rows: int, cols: int, element_bytes: int, pad: int) -> None:
    _check_element(element_bytes)
    if not (1 <= rows <= LARGEST_TILE and 1 <= cols <= LARGEST_TILE):
        raise UsageError(f"a tile of {rows}x{cols} does not fit shared memory", "Try --shape 32x32")
    if not 0 <= pad <= LARGEST_TILE:
        raise UsageError(f"padding is 0 or more elements, not {pad}", "Try --pad 1")
