"""Architectures: one short function each, from a config's keys to what its layers are made of.

To add a family: a function with `@family("its_model_type")` in the file where its relatives are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from memwall.errors import NotAvailable, nearest, shown
from memwall.models.huggingface.config import Config
from memwall.models.model import Model

_FILES = ("llama", "gpt", "gemma", "moe", "latent", "hybrid", "mamba", "encoders", "seq2seq", "multimodal")

Build = Callable[[Config], Model]
_BUILD: dict[str, Build] = {}

NO_FORMULA = {
    "deepseek_v4": "its attention compresses tokens layer by layer (compress_ratios)",
    "minimax_m3": "its attention reads blocks of keys that an index picks (sparse_attention_config)",
    "minimax_m3_vl": "its attention reads blocks of keys that an index picks (sparse_attention_config)",
}
"""Families that are known and have no formula here, and what is missing."""


def family(*model_types: str) -> Callable[[Build], Build]:
    """Registers what builds the models of these types."""

    def register(build: Build) -> Build:
        for name in model_types:
            _BUILD[name.replace("-", "_")] = build
        return build

    return register


def find(model_type: str) -> Build | None:
    """What builds a model of that type; `-` and `_` are one."""
    if not _BUILD:
        for name in _FILES:
            import_module(f"{__name__}.{name}")
    return _BUILD.get(model_type.replace("-", "_"))


def known() -> list[str]:
    """Every model type that has a formula."""
    find("")
    return sorted(_BUILD)


def refusal(model_type: str, where: str) -> NotAvailable:
    """Why an architecture is not answered: what is missing, or that it is not known."""
    name = model_type.replace("-", "_")
    if name in NO_FORMULA:
        return NotAvailable(
            f"{where}: model_type {model_type} has no formula here: {NO_FORMULA[name]}",
            "Its dimensions as YAML, for the parts that have a formula: memwall model show llama3-70b --yaml",
        )
    near = nearest(name, known(), limit=2)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return NotAvailable(
        f"{where}: model_type '{shown(model_type)}' is not known, so there is no formula for its layers",
        f"{meant}Write its parts as YAML: memwall model show llama3-70b --yaml > my-model.yaml",
    )
