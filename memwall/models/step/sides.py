"""Which weights outside the layers belong to the encoder, and which to the decoder.

A weight of which there are two copies (BART's positions, T5's table of distances) has one on each side.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.errors import UsageError
from memwall.models.model import Model
from memwall.models.weights import Weight

ENCODER = "encoder."


class Sides(NamedTuple):
    """A model's weights outside the layers that are neither embedding, final norm nor head."""

    encoder: tuple[Weight, ...]
    decoder: tuple[Weight, ...]


def sides(model: Model) -> Sides:
    """The weights of both sides, a copy of what both have with each; without an encoder there is one."""
    if not model.encoder:
        return Sides((), model.extras)
    convolutions = {weight.name for weight in model.extras if weight.role == "convolution"}
    own = {*convolutions, *(f"{name}.bias" for name in convolutions)}
    encoder, decoder = [], []
    for weight in model.extras:
        if weight.copies == 2:
            encoder.append(weight._replace(copies=1))
            decoder.append(weight._replace(copies=1))
        elif weight.name.startswith(ENCODER) or weight.name in own:
            encoder.append(weight._replace(name=weight.name.removeprefix(ENCODER)))
        else:
            decoder.append(weight)
    return Sides(tuple(encoder), tuple(decoder))


def encoder_positions(model: Model) -> int | None:
    """Rows of the table of positions that the encoder alone has: as many tokens as it can read.

    A table that both sides have a copy of may hold rows besides (BART keeps two): it limits nothing here.
    """
    tables = (w for w in model.extras if w.role == "table" and w.name.startswith(ENCODER))
    return next((weight.shape[0] for weight in tables if "position" in weight.name), None)


def source_tokens(model: Model, given: int | None, context: int) -> int:
    """Tokens that the encoder has read for each sequence; 0 without an encoder.

    By default all that its own table has positions for (Whisper pads every recording to them), and without
    such a table as many as the decoder's context.

    Raises:
        UsageError: some for a model that has no encoder and decoder.
    """
    if model.encoder and model.decodes:
        return (encoder_positions(model) or context) if given is None else given
    if given:
        raise UsageError(f"{model.title} has no encoder with a decoder after it", "Leave out --source-tokens")
    return 0


def source_default(given: int | None, tokens: int) -> tuple[str, ...]:
    """What was assumed on the user's behalf about them, for a report."""
    return (f"source tokens {tokens}",) if tokens and given is None else ()
