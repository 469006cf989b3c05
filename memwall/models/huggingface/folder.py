"""Where a config.json is: a file, or a folder with one. Looks at names before it reads anything."""

from __future__ import annotations

import os

from memwall.errors import FileError, NotAvailable, shown


def config_path(name: str) -> str | None:
    """The config.json that a name means; None if it is a catalogue's name or a YAML file.

    Raises:
        FileError: a folder without one.
        NotAvailable: a diffusion pipeline.
    """
    if os.path.isdir(name):
        return _in_folder(name)
    if name.endswith(".safetensors"):
        raise FileError(
            f"{shown(name, 120)}: weights alone do not say what a model is made of",
            f"Name the folder with their config.json: {shown(os.path.dirname(name) or '.', 80)}",
        )
    if not name.endswith(".json"):
        if name.startswith((os.sep, ".", "~")) and not os.path.exists(name):
            raise FileError(f"{shown(name, 120)}: no such file or folder", "Name a config.json or its folder")
        return None
    if os.path.basename(name) == "model_index.json":
        raise _pipeline(name)
    if name.endswith(".safetensors.index.json"):  # the weights' index stands beside the config
        return os.path.join(os.path.dirname(name), "config.json")
    return name


def _in_folder(name: str) -> str | None:
    config = os.path.join(name, "config.json")
    if os.path.exists(config):
        return config
    if os.path.exists(os.path.join(name, "model_index.json")):
        raise _pipeline(os.path.join(name, "model_index.json"))
    if os.sep not in name and name not in (".", ".."):
        return None  # a folder that happens to be called like a model of the catalogue
    raise FileError(
        f"{shown(name, 120)}: no config.json in this folder", "Name the folder that a model was saved to"
    )


def _pipeline(path: str) -> NotAvailable:
    return NotAvailable(
        f"{shown(path, 120)}: a diffusion pipeline, and only language models have a formula here",
        "Its text encoder alone has a config.json of its own: name that one",
    )
