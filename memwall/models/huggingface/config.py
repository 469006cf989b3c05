"""A config.json as its family reads it: checked values, the class's defaults, and what was never read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from memwall.errors import FileError, NotAvailable, shown
from memwall.units import LARGEST_COUNT

# The same dimension has other names in older classes; the first that is there counts.
SPELLINGS = {
    "hidden_size": ("n_embd", "d_model", "model_dim", "embed_dim", "dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "depth", "decoder_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "num_key_value_heads": ("n_head_kv", "num_kv_heads", "multi_query_group_num"),
    "head_dim": ("attention_head_dim", "kv_channels", "d_kv"),
    "intermediate_size": ("n_inner", "ffn_hidden_size", "ffn_dim", "d_ff", "decoder_ffn_dim"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": ("n_positions", "n_ctx", "max_seq_len", "seq_length"),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token",
        "experts_per_token",
        "moe_topk",
        "moe_k",
        "top_k_experts",
        "moe_top_k",
    ),
    "tie_word_embeddings": ("tie_embeddings", "weight_tying"),
}
CORE = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
"""What a file of its own must state; one nested in another may leave it to its class."""
MOST_LAYERS = 5000
_LONGEST = "max_position_embeddings"
_MISSING = object()


class Config:
    """One mapping of a config.json."""

    def __init__(
        self,
        data: Mapping[str, Any],
        file: ConfigFile,
        path: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.data = data
        self.file = file
        self.path = path
        self.defaults = defaults or {}
        self.read: set[str] = set()
        self.assumed: dict[str, Any] = {}
        """What the file leaves to its class, as far as it was asked for."""
        self.notes: list[str] = []
        """What a reader should know of how the file was understood."""
        self.inners: list[Config] = []
        """Mappings within that families read."""

    def get(self, key: str, default: Any = None) -> Any:
        """A value of any kind; null is as good as absent.

        Raises:
            FileError: two spellings of the key contradict each other.
        """
        names = (key, *SPELLINGS.get(key, ()))
        self.read.update(names)
        stated = [name for name in names if self.data.get(name) is not None]
        if stated:
            self._check_agreement(stated)
            return self.data[stated[0]]
        fallback = next((self.defaults[name] for name in names if name in self.defaults), None)
        if fallback is not None and key not in self.data:
            if fallback is not False:
                self.assumed[key] = fallback
            return fallback
        return default

    def has(self, key: str) -> bool:
        """Whether the key, or another spelling of it, is there and not null."""
        return self.get(key) is not None

    def whole(self, key: str, default: Any = _MISSING, least: int = 1, most: int = LARGEST_COUNT) -> Any:
        """A whole number; without a default it must be there.

        Raises:
            FileError: missing, not a whole number, or out of range.
        """
        if key in CORE and not self.path and not self._stated(key):
            raise self._missing(key)
        value = self.get(key)
        if value is None:
            if default is _MISSING:
                raise self._missing(key)
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, f"must be a whole number, not {shown(repr(value))}")
        if not least <= value <= most:
            raise self.wrong(key, f"must be from {least} to {most:g}, not {value}")
        return value

    def longest(self) -> int | None:
        """The longest sequence that the file names; its class's default would say nothing of this model."""
        longest: int | None = self.whole(_LONGEST, None) if self._stated(_LONGEST) else None
        return longest

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false.

        Raises:
            FileError: anything else.
        """
        value = self.get(key)
        if value is None:
            return default
        if value not in (True, False):
            raise self.wrong(key, f"must be true or false, not {shown(repr(value))}")
        return bool(value)

    def per_layer(self, key: str, layers: int) -> list[Any] | None:
        """A list with an entry a layer; None if it is not there.

        Raises:
            FileError: not a list, or of another length.
        """
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise self.wrong(key, f"must be a list, not {shown(repr(value))}")
        if len(value) != layers:
            raise self.wrong(key, f"has {len(value)} entries for {layers} layers")
        return list(value)

    def settle(self, key: str) -> None:
        """Takes a list that repeats one value for every layer as that value.

        Raises:
            FileError: its values differ, which this architecture's formula does not cover.
        """
        value = self.data.get(key)
        if isinstance(value, list) and value:
            if any(each != value[0] for each in value):
                raise self.wrong(key, "differs from layer to layer, which is not counted here")
            self.data = {**self.data, key: value[0]}

    def inner(self, key: str, defaults: Mapping[str, Any] | None = None) -> Config:
        """A mapping within; empty if it is not there.

        Raises:
            FileError: not a mapping.
        """
        self.read.add(key)
        value = self.data.get(key) or {}
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"must be an object, not {shown(repr(value))}")
        return Config(value, self.file, (*self.path, key), defaults)

    def wrong(self, key: str, problem: str, hint: str = "") -> FileError:
        """An error about a key: file, line, key, what is wrong."""
        name = next((n for n in (key, *SPELLINGS.get(key, ())) if n in self.data), key)
        return self.file.wrong((*self.path, name), problem, hint)

    def unknown_family(self, model_type: str) -> NotAvailable:
        """The refusal of an architecture that has no formula here."""
        from memwall.models.huggingface.families import refusal

        return refusal(model_type, self.file.where)

    def unread(self) -> list[str]:
        """The keys that nobody asked for and that say something: null, false and empty ones do not."""
        return [
            key
            for key, value in self.data.items()
            if key not in self.read and value not in (None, False, [], {})
        ]

    def _check_agreement(self, names: list[str]) -> None:
        """Towers apart, whose hidden_size and embed_dim are different things."""
        first, *others = names
        other = next((name for name in others if self.data[name] != self.data[first]), None)
        if other and self.path[-1:] != ("vision_config",):
            problem = f"{shown(self.data[first])} contradicts {other} {shown(self.data[other])}"
            raise self.wrong(first, problem, "Both name the same dimension: delete the one that is wrong")

    def _stated(self, key: str) -> bool:
        return any(self.data.get(name) is not None for name in (key, *SPELLINGS.get(key, ())))

    def _missing(self, key: str) -> FileError:
        near = get_close_matches(key, self.unread(), n=1, cutoff=0.8)
        hint = f"Is '{near[0]}' meant to be it?" if near else f'Add it: "{key}": ...'
        return self.file.wrong((*self.path, key), "is missing", hint)


class ConfigFile:
    """The file that mappings come from: its name and text, for messages."""

    def __init__(self, where: str, text: str) -> None:
        self.where = where
        self.text = text

    def wrong(self, path: tuple[str, ...], problem: str, hint: str = "") -> FileError:
        """An error about the key at a path."""
        place = f"{shown(self.where, 120)}:{self.line_of(path)}"
        fallback = "Compare it with the file as published: memwall reads what its makers wrote"
        return FileError(f"{place}: {'.'.join(path)} {problem}", hint or fallback)

    def line_of(self, path: tuple[str, ...]) -> int:
        """The 1-based line of the last key of a path that is there."""
        at = 0
        for key in path:
            found = re.compile(rf'(?<![\w"]){re.escape(key)}"?\s*:|"{re.escape(key)}"').search(self.text, at)
            at = found.start() if found else at
        return self.text.count("\n", 0, at) + 1
