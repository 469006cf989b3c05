"""Sequences longer than a model was made for: its numbers still hold, and its answers may not."""

from __future__ import annotations

from memwall.models.model import Model
from memwall.models.step.sides import encoder_positions


def too_long(model: Model, tokens: int, encoded: int = 0) -> list[str]:
    """The remark that it is so; none if it is not, or if the model's file does not say.

    Args:
        model: the model.
        tokens: of a sequence that it generates, when it is longest; 0: none.
        encoded: those that its encoder reads.
    """
    lengths = [
        (encoded, encoder_positions(model) or model.context, "its encoder"),
        (tokens, model.context, "it"),
    ]
    return [
        f"{length:,} tokens are more than the {most:,} {which} was made for"
        for length, most, which in lengths
        if most and length > most
    ]
