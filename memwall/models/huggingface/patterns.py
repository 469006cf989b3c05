"""Which layers have a window, and which have experts: the ways in which files say it."""

from __future__ import annotations

from memwall.errors import shown
from memwall.models.huggingface.config import Config
from memwall.models.huggingface.parts import layer_count

_WINDOWED = ("sliding_attention", "chunked_attention", "sliding", "local")
_STATEFUL = ("linear_attention", "mamba", "mamba2", "conv", "recurrent")
_OTHERS = ("full_attention", "attention", "global", "indexed_attention", "hybrid", "mlp", "moe")
_KINDS = frozenset({*_WINDOWED, *_STATEFUL, *_OTHERS})
"""Every word that layer_types has in a published config."""


def windows(c: Config, pattern: int | None = None, full_first: bool = False) -> list[int | None]:
    """Each layer's window, None for none.

    In this order: use_sliding_window false; a window beyond the longest sequence is none; layer_types;
    sliding_window_pattern p (every p-th layer sees all; text such as LLLG likewise); max_window_layers (those
    below see all); else every layer.

    Args:
        c: the config.
        pattern: the family's own, where the file states none.
        full_first: whether that pattern begins with a layer that sees all, not ends with it.

    Raises:
        FileError: layer_types of another length, or with a word that is no kind of attention.
    """
    count = layer_count(c)
    size, longest = c.whole("sliding_window", None, least=0), c.longest()
    types = layer_types(c)
    every = c.get("sliding_window_pattern") or c.get("_sliding_window_pattern") or pattern
    first = c.whole("max_window_layers", None, least=0)
    used = c.get("use_sliding_window")
    if not size or used is False or (longest and size >= longest):
        return [None] * count
    if types:
        return [size if kind in _WINDOWED else None for kind in types]
    if isinstance(every, str):
        return [size if every[i % len(every)] == "L" else None for i in range(count)]
    if every:
        return [size if (i + (not full_first)) % every else None for i in range(count)]
    if first is not None:
        return [size if i >= first else None for i in range(count)]
    return [size] * count


def layer_types(c: Config, key: str = "layer_types") -> list[str] | None:
    """What mixes tokens in each layer, in the file's words; None if it does not say.

    Raises:
        FileError: another length, or a word that is no kind of layer.
    """
    types = c.per_layer(key, layer_count(c))
    for kind in types or ():
        if kind not in _KINDS:
            raise c.wrong(key, f"has {shown(repr(kind))}", f"The kinds: {', '.join(sorted(_KINDS))}")
    return types


def sparse(c: Config) -> list[bool]:
    """Whether each layer has experts.

    mlp_layer_types or a moe_layer_freq list say it layer by layer; first_k_dense_replace or num_dense_layers
    name dense layers at the start, with moe_layer_freq f every f-th from there on; decoder_sparse_step s
    makes every s-th sparse but for mlp_only_layers; none of them: all.

    Raises:
        FileError: a list of another length.
    """
    count = layer_count(c)
    kinds, frequency = c.per_layer("mlp_layer_types", count), c.get("moe_layer_freq")
    dense = c.whole("first_k_dense_replace", None, least=0)
    if dense is None:
        dense = c.whole("num_dense_layers", 0, least=0)
    step, only = c.whole("decoder_sparse_step", None, least=0), set(c.get("mlp_only_layers") or [])
    if kinds:
        return [kind == "sparse" for kind in kinds]
    if isinstance(frequency, list):
        return [bool(each) for each in c.per_layer("moe_layer_freq", count) or []]
    if step is not None:
        return [bool(step) and (i + 1) % step == 0 and i not in only for i in range(count)]
    every = c.whole("moe_layer_freq", 1)
    return [i >= dense and i % every == 0 for i in range(count)]
