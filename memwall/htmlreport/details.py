"""What tells kernels of one name apart: the shape of their weights, or of what they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memwall.models.step.launch import Launch


def details_of(launches: Sequence[Launch]) -> list[str]:
    """A shape for each kernel that shares its name with others, as "2560 x 1536"; of others nothing.

    Where shapes do not tell them apart either, they are numbered.
    """
    named = Counter(launch.name for launch in launches)
    shapes = [_shape(launch) if named[launch.name] > 1 else "" for launch in launches]
    said = [(launch.name, shape) for launch, shape in zip(launches, shapes, strict=True)]
    alike, seen = Counter(said), Counter[tuple[str, str]]()
    found = []
    for name, shape in said:
        seen[name, shape] += 1
        number = f"no. {seen[name, shape]}" if alike[name, shape] > 1 else ""
        found.append(", ".join(filter(None, (shape, number))))
    return found


def _shape(launch: Launch) -> str:
    """Rows of all its matrices x columns; without any, what a token has of the first tensor."""
    reads = launch.kernel.reads
    matrices = [each.shape for each in reads if each.role == "weight" and len(each.shape) > 1]
    if matrices:
        shape = (sum(each[-2] for each in matrices), matrices[0][-1])
    else:
        shape = reads[0].shape[1:] if reads else ()
    return " x ".join(str(size) for size in shape if isinstance(size, int))
