"""What a config class assumes for a key that its file leaves out.

configs/huggingface/defaults.yaml has one line a model_type; only that line is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memwall import yamlfile
from memwall.catalog import shipped_text

FILE = "configs/huggingface/defaults.yaml"


def defaults_of(model_type: str) -> Mapping[str, Any]:
    """The structural keys' defaults of a model_type; empty if it is not there."""
    text = shipped_text(FILE)
    name = model_type.replace("-", "_")
    start = text.find(f"\n{name}: {{") + 1
    if not start:
        return {}
    line = text[start : text.index("\n", start)]
    return yamlfile.parse(line, FILE)[name]  # type: ignore[no-any-return]
