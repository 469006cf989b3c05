"""What would hold a model that does not fit as it was asked for: wider, deeper, or with fewer sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from memwall.models.model import Model
from memwall.nodes import Node
from memwall.parallel.layout import Layout, faults, layout_layers, splitting

OF_A_SERVER = 8
"""GPUs that a tp group has at most where no node of the catalogue says."""


def nearest(
    model: Model, layout: Layout, node: Node | None, holds: Callable[[Layout], bool]
) -> tuple[Layout, ...]:
    """The layouts next to one under which everything fits: with more tp, and with more stages.

    Args:
        model: the whole model.
        layout: that which does not hold it.
        node: what it stands on; tp stays within.
        holds: whether a layout does.
    """
    tps = [tp for tp in splitting(model, node) if tp > layout.tp and (node or tp <= OF_A_SERVER)]
    wider = (layout._replace(tp=tp) for tp in tps)
    deeper = (layout._replace(tp=tp, pp=pp) for tp in (layout.tp, *tps[-1:]) for pp in _stages(layout, model))
    found = (_first(kind, model, node, holds) for kind in (wider, deeper))
    return tuple(each for each in found if each is not None)


def _first(
    layouts: Iterable[Layout], model: Model, node: Node | None, holds: Callable[[Layout], bool]
) -> Layout | None:
    possible = (each for each in layouts if next(faults(each, model, node), None) is None)
    return next((each for each in possible if holds(each)), None)


def _stages(layout: Layout, model: Model) -> Iterator[int]:
    """More stages than the layout has, doubling, as many as there are layers for."""
    stages = 2 * layout.pp
    while stages <= layout_layers(model):
        yield stages
        stages *= 2


def most_sequences(asked: int, holds: Callable[[int], bool]) -> int:
    """The largest batch below the one asked for that fits; 0 if not one sequence does."""
    low, high = 0, asked
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def flags(layout: Layout) -> str:
    """A layout as it is typed: --tp 8 --pp 2."""
    degrees = {"tp": layout.tp, "pp": layout.pp, "ep": layout.ep, "dp": layout.dp}
    return " ".join(f"--{name} {degree}" for name, degree in degrees.items() if degree > 1) or "--tp 1"


def instead(layouts: Iterable[Layout], option: str, most: int) -> str:
    """What to type for it to fit: --tp 4, or --pp 2, or --batch 96; empty if nothing does.

    Args:
        layouts: those that hold it.
        option: how the command names its sequences: --batch.
        most: sequences that fit; 0 if none do.
    """
    return ", or ".join([*map(flags, layouts), *([f"{option} {most}"] if most else [])])
