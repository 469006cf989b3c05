"""A Hugging Face config.json, and the weights beside it where they are there, as a Model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from memwall.catalog import read_file
from memwall.errors import FileError, NotAvailable, shown
from memwall.models.huggingface import keys, quantisation, safetensors
from memwall.models.huggingface.config import Config, ConfigFile
from memwall.models.huggingface.defaults import defaults_of
from memwall.models.huggingface.families import find
from memwall.models.huggingface.families import known as known_families
from memwall.models.model import UNREAD, Model
from memwall.units import MEBI


def read(path: str) -> Model:
    """The model of a config.json.

    Raises:
        FileError: missing, not JSON, or a key that is wrong, misspelt or contradicts another.
        NotAvailable: an architecture that has no formula here.
    """
    c = _parsed(path)
    name, title = _names(path, c)
    model = _understood(c)._replace(name=name, title=title)
    return safetensors.beside(model, os.path.dirname(path))


def from_keys(data: Mapping[str, Any], where: str, text: str) -> Model:
    """The model of a config's keys that stand in another file; without a name.

    Raises:
        FileError, NotAvailable: as `read` says.
    """
    return _understood(Config(data, ConfigFile(where, text)))


def keys_of(path: str) -> dict[str, Any]:
    """A config.json's keys, without those that size nothing.

    Raises:
        FileError, NotAvailable: as `read` says.
    """
    c = _parsed(path)
    _understood(c)
    return keys.sizing(c)


def _understood(c: Config) -> Model:
    model = _built(c)
    found = quantisation.read(c) or next(
        (q for q in (quantisation.read(inner) for inner in c.inners) if q is not None), None
    )
    if found:
        model = quantisation.skip(model._replace(storage=found.storage), found.skipped)
    _check_spelling(c)
    return model._replace(notes=(*_limits(c, model), *_notes(c)))


def _parsed(path: str) -> Config:
    if not os.path.exists(path):
        raise FileError(
            f"{shown(path, 120)}: no such file", "Name a config.json, or the folder that holds one"
        )
    text = read_file(path).text.removeprefix("\ufeff")
    if len(text) > MEBI:
        raise FileError(f"{shown(path, 120)}: larger than 1 MiB", "A config.json is a few kilobytes long")
    file = ConfigFile(path, text)
    try:
        data = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, file))
    except json.JSONDecodeError as error:
        raise FileError(
            f"{shown(path, 120)}:{error.lineno}: not JSON: {error.msg}",
            "Is the file cut off? Compare its end with the file as published",
        ) from None
    except RecursionError:
        raise FileError(
            f"{shown(path, 120)}: nested too deep", "A config.json is a few levels deep"
        ) from None
    if not isinstance(data, dict):
        raise FileError(
            f"{shown(path, 120)}:1: must be an object: {{...}}", "Name the config.json of a model"
        )
    return Config(data, file)


def _unique(pairs: list[tuple[str, Any]], file: ConfigFile) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data and data[key] != value:
            raise file.wrong((key,), "is there twice, with different values", "Delete the one that is wrong")
        data[key] = value
    return data


def _built(c: Config) -> Model:
    kind = c.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise c.wrong("model_type", f"must be a word, not {shown(repr(kind))}", 'Such as "llama"')
    if not kind:
        if "_class_name" in c.data:
            kind = shown(c.data["_class_name"])
            raise NotAvailable(
                f"{c.file.where}: {kind} is a part of a diffusion model, which has no formula here",
                "Name the config.json of a language model",
            )
        raise c.wrong(
            "model_type", "is missing", 'It says what the layers are made of: "model_type": "llama"'
        )
    c.defaults = defaults_of(kind)
    build = find(kind)
    if build is None:
        raise c.unknown_family(kind)
    return build(c)


def _check_spelling(c: Config) -> None:
    """A key that nobody read and that resembles one that was looked for in vain is a mistake."""
    for where, key in keys.unread(c):
        meant = keys.misspelt(where, key)
        if meant:
            raise where.wrong(key, "is not a key of this architecture", f"Did you mean '{meant}'?")


def _limits(c: Config, model: Model) -> list[str]:
    """What the numbers leave out."""
    notes = [] if model.decodes else ["encoder only: no KV cache, no decode phase"]
    dtypes = (each.get(key) for each in (c, *c.inners) for key in ("torch_dtype", "dtype"))
    wide = next((dtype for dtype in dtypes if dtype not in (None, "bfloat16", "float16")), None)
    if wide:
        notes.append(f"torch_dtype {shown(wide)}: what is not quantised is counted in 16 bits all the same")
    notes += _other_architecture(c)
    extra = next((each.get("num_nextn_predict_layers") for each in (c, *c.inners)), None)
    if extra:
        notes.append(f"num_nextn_predict_layers {extra}: the multi-token-prediction module is not counted")
    return notes


def _other_architecture(c: Config) -> list[str]:
    """Where `architectures` names a family that is known and is not that of model_type."""
    kind, named = str(c.get("model_type")), str((c.get("architectures") or [""])[0])
    family = named.partition("For")[0].lower()
    others = {known.replace("_", ""): known for known in known_families()}
    if family not in others or find(others[family]) is find(kind):
        return []
    return [f"architectures names {shown(named)}, model_type {kind}: read as {kind}"]


def _notes(c: Config) -> list[str]:
    notes = list(c.notes)
    for inner in c.inners:
        notes += inner.notes
    left = {key: value for each in (c, *c.inners) for key, value in each.assumed.items()}
    if left:
        words = ", ".join(f"{key} {value}" for key, value in left.items())
        notes.append(f"left to the class's defaults: {words}")
    unknown = [key for _, key in keys.unread(c)]
    sizing = [key for key in unknown if keys.structural(key)]
    if sizing:
        notes.append(f"{UNREAD}: {', '.join(sizing)}")
    rest = [key for key in unknown if key not in sizing]
    if rest:
        notes.append(f"not read: {', '.join(rest)}")
    return notes


def _names(path: str, c: Config) -> tuple[str, str]:
    """The model's name: its folder's, else the file's own, else what it calls itself."""
    stated = str(c.data.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    stem = os.path.splitext(os.path.basename(path))[0]
    name = folder if stem == "config" else stem
    return name, shown(stated or name, 80)
