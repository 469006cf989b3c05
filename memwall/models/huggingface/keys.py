"""What is said of the keys of a config.json that nobody read.

configs/huggingface/harmless.yaml lists those that size nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from fnmatch import translate
from functools import cache
from typing import Any

from memwall import yamlfile
from memwall.catalog import shipped_text
from memwall.models.huggingface.config import Config

FILE = "configs/huggingface/harmless.yaml"
_STRUCTURAL = re.compile(
    r"head|dim|layer|expert|size|rank|window|width|num_|hidden|bias|group|interval|pattern|type|kv|moe"
)
_ALIKE = 0.92
"""How alike two keys are that are one keystroke apart; num_experts and num_experts_per_tok are less so."""


def unread(c: Config) -> Iterator[tuple[Config, str]]:
    """Every key that nobody read and that could change a size, here and within."""
    harmless = _harmless(_in_tower(c))
    for key in c.unread():
        if not harmless.match(key):
            yield c, key
    for inner in c.inners:
        yield from unread(inner)


def sizing(c: Config) -> dict[str, Any]:
    """The keys that were read, or that might have sized something, here and within."""
    harmless = _harmless(_in_tower(c))
    inners = {inner.path[-1]: inner for inner in c.inners if inner.path}
    return {
        key: sizing(inners[key]) if key in inners else value
        for key, value in c.data.items()
        if key in c.read or not harmless.match(key)
    }


def misspelt(c: Config, key: str) -> str | None:
    """The key that was looked for in vain and that this one resembles."""
    absent = [name for name in c.read if name not in c.data]
    near = get_close_matches(key, absent, n=1, cutoff=_ALIKE)
    return near[0] if near else None


def structural(key: str) -> bool:
    """Whether a key sounds as if it sized something."""
    return bool(_STRUCTURAL.search(key))


@cache
def _harmless(tower: bool) -> re.Pattern[str]:
    data = yamlfile.parse(shipped_text(FILE), FILE)
    patterns = [pattern for listed in data["everywhere"].values() for pattern in listed]
    patterns += data["towers"] if tower else []
    return re.compile("|".join(map(translate, patterns)))


def _in_tower(c: Config) -> bool:
    return bool(c.path) and c.path[-1] in ("vision_config", "audio_config")
