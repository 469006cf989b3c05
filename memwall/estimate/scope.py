"""Which mechanisms a named library has to do with."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.estimate.library import HOST_TIMED, UNKNOWN, Library

ALIKE = {"cudnn": "fa3"}
"""Kernels of one class, where a GPU has been measured in the other alone."""


def concerned(
    library: Library, on_device: Sequence[Library], every: Sequence[Library], step: bool
) -> Library:
    """The library, as far as a mechanism has to do with it.

    A pass names one library for all of its kernels. FlashAttention-3 says nothing about norms, which are then
    estimated as if nothing was named; where a GPU has been measured in another kernel of the same class, that
    one stands for it.

    Args:
        library: what is named.
        on_device: those that the mechanism has been measured in on this device.
        every: those that it has been measured in at all.
        step: whether it passes between products and attention.
    """
    alike = library._replace(kernel=ALIKE.get(library.kernel or "", library.kernel))
    if _among(library, on_device) or not _among(alike, on_device):
        known = _among(library, every)
        return library if known or not step or library.kernel == HOST_TIMED else UNKNOWN
    return alike


def _among(library: Library, measured: Sequence[Library]) -> bool:
    """Whether one of them is that kernel, or without one, that engine."""
    return any(
        each.kernel == library.kernel if each.kernel else each.engine == library.engine
        for each in measured
        if each.known
    )
