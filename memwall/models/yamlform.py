"""An imported model as a file of configs/models/, to keep, edit and give a name of its own."""

from __future__ import annotations

import re

import yaml

from memwall.models.huggingface.model import keys_of
from memwall.models.load import IMPORTED
from memwall.models.model import Model


def to_yaml(model: Model, config_path: str) -> str:
    """The keys of a config.json that size the model, under its name.

    Raises:
        FileError, NotAvailable: as reading the config does.
    """
    data = {
        "name": re.sub(r"[^a-z0-9.]+", "-", model.name.lower()).strip("-.") or "my-model",
        "title": model.title,
        IMPORTED: keys_of(config_path),
        "source": [{"derived": "its config.json"}],
    }
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=110)
