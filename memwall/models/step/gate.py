"""A learned gate on a result: a sigmoid an element, a head or a token."""

from __future__ import annotations

from memwall.models.step.launch import Launch, Setting, launched
from memwall.ops.elementwise import sigmoid_mul


def gated(name: str, cols: int, gates: int, setting: Setting) -> list[Launch]:
    """The kernels that multiply a result by its gates.

    Args:
        name: in the pass.
        cols: elements of a token's result.
        gates: of a token; each serves cols / gates of them.
        setting: formats and tokens.
    """
    program = sigmoid_mul(setting.rows, cols, precision=setting.plain, impl=setting.steps)
    shape = (setting.rows, gates)
    kernels = tuple(
        kernel._replace(reads=tuple(t._replace(shape=shape) if t.name == "gate" else t for t in kernel.reads))
        for kernel in program.kernels
    )
    return launched(name, "elementwise", program._replace(kernels=kernels))
